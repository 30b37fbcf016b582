/* Checks records of operations on single numbers: each result has the value of its operation, equal operations have one
 * slot, and marks go where they are let through. */

#include "bytes.h"
#include "../../../python/gradops/jit/native/runtime/record.c"

enum { INPUTS = 4, MOST = 40 };

static double twice(double x)
{
    return 2 * x;
}

static double (*const functions[])(double) = {NULL, twice};

static const int32_t kinds[] = {
    2 + 4 * ADD, 2 + 4 * SUBTRACT, 2 + 4 * MULTIPLY, 2 + 4 * DIVIDE, 1 + 4 * NEGATIVE, 3 + 4 * SELECT, 1 + 4 * COPY,
    1 + 4 * CALL + 64, 2 + 4 * PYTHON,
};
enum { OPERATIONS = sizeof kinds / sizeof *kinds };

static double value(int op, double x, double y, double z)
{
    const double values[OPERATIONS] = {x + y, x - y, x * y, y == 0 ? -7 : x / y, -x, x != 0 ? y : z, x, 2 * x,
                                       x - 2 * y};
    return values[op];
}

static int is_same(double x, double y)
{
    return x == y || (x != x && y != y);
}

static void check(Bytes *bytes)
{
    const int count = next(bytes) % (MOST + 1), bits = 7 + next(bytes) % 3, size = 1 << bits;
    Row made[MOST];
    double values[INPUTS + MOST] = {0, 1, 0.5, -3};
    uint8_t has_gradient[INPUTS + MOST] = {1, 0, 1, 0}; /* a missing operand is 0, so would show */
    for (int k = 0; k < count; k++) {
        const int op = next(bytes) % OPERATIONS, operands = kinds[op] & 3, most = INPUTS + k;
        int32_t x[3] = {0};
        for (int i = 0; i < operands; i++) {
            x[i] = next(bytes) % most;
            has_gradient[most] |= has_gradient[x[i]];
        }
        made[k] = (Row) {op, x[0], x[1], x[2]};
        values[most] = value(op, values[x[0]], values[x[1]], values[x[2]]);
    }
    const int slots = INPUTS + count;
    int32_t places[INPUTS + MOST] = {0, 1, 2, 3}, ones[] = {1};
    int32_t *table = malloc(4 * size);
    memset(table, -1, 4 * size);
    Record s = {
        .rows = exact(made, count * sizeof(Row)), .count = count, .base = INPUTS, .made = INPUTS, .used = 1,
        .places = exact(places, 4 * slots), .active = exact(has_gradient, slots), .numbers = exact(values, 8 * slots),
        .table = table, .mask = size - 1, .words = malloc((count + 1) * sizeof(Operation)), .functions = functions,
        .kinds = exact(kinds, sizeof kinds), .ones = exact(ones, sizeof ones), .ones_count = 1,
    };
    memset(s.active + INPUTS, 9, count);
    memset(s.numbers + INPUTS, 9, 8 * count);
    s.words[0] = (Operation) {-1, -1, 0, 0, 0}; /* as in a program: the first one is no operation */
    while (!record(&s)) { /* as Python does */
        const Operation last = s.words[s.used - 1];
        const int is_python = last.op == OPERATIONS - 1 || (kinds[last.op] >> 2 & 15) == DIVIDE;
        require(is_python, "what is left to Python");
        s.numbers[last.out] = value(last.op, s.numbers[last.x], s.numbers[last.y], s.numbers[last.z]);
    }
    require(s.k == count && s.made - INPUTS == s.used - 1, "how much is recorded");
    for (int k = 0; k < slots; k++) {
        require(s.places[k] >= 0 && s.places[k] < s.made, "the slots");
        require(is_same(s.numbers[s.places[k]], values[k]), "the values");
        require(s.active[k] == has_gradient[k], "which numbers have gradients");
    }
    for (int k = 0; k < count; k++) {
        const int32_t x = s.places[made[k].x], y = s.places[made[k].y], out = s.places[INPUTS + k];
        const int how = kinds[made[k].op] >> 2 & 15;
        if (how == COPY || (how == MULTIPLY && y == ones[0] && x != ones[0])) require(out == x, "a copy");
        if (how == MULTIPLY && x == ones[0]) require(out == y, "a product with 1");
    }
    for (int i = 1; i < s.used; i++) {
        require(s.words[i].out == INPUTS + i - 1, "the slots of the results");
        for (int j = 1; j < i; j++) require(!are_equal(s.words[i], s.words[j]), "equal operations have one slot");
    }

    /* A new table has the same operations: all rows are known. */
    memset(table, -1, 4 * size);
    record_again(1, s.used, s.words, table, s.mask);
    const int64_t used = s.used;
    s.k = 0;
    require(record(&s) && s.used == used, "operations in a new table");

    const int words = (int) s.used - 1, last = (int) s.made;
    uint8_t through[MOST], back[INPUTS + MOST], forth[INPUTS + MOST], wanted[2][INPUTS + MOST];
    for (int i = 0; i < words; i++) through[i] = next(bytes) & 7;
    for (int i = 0; i < last; i++) back[i] = forth[i] = wanted[0][i] = wanted[1][i] = next(bytes) % 4 == 0;
    for (int i = 0; i < words; i++) {
        const Operation up = s.words[1 + i], down = s.words[words - i];
        const int32_t into[] = {down.x, down.y, down.z}, from[] = {up.x, up.y, up.z};
        for (int b = 0; b < 3; b++) {
            if (through[words - 1 - i] >> b & 1 && wanted[0][down.out]) wanted[0][into[b]] = 1;
            if (through[i] >> b & 1 && wanted[1][from[b]]) wanted[1][up.out] = 1;
        }
    }
    uint8_t *t = exact(through, words), *m = exact(back, last), *n = exact(forth, last);
    Operation *w = exact(s.words + 1, words * sizeof(Operation));
    mark_operands(words, w, t, m);
    mark_results(words, w, t, n);
    require(!memcmp(m, wanted[0], last), "marks of operands");
    require(!memcmp(n, wanted[1], last), "marks of results");

    void *all[] = {
        (void *) s.rows, (void *) s.kinds, (void *) s.ones, s.places, s.active, table, s.words, s.numbers, t, m, n, w,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

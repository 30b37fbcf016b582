/* Records operations on single numbers in bulk, and propagates marks through a program.
 *
 * gradops.jit.native.records calls these functions. */

#include "exact.h"
#include <stdint.h>

/* How the value of an operation is computed: by Python, here, or by a function of the C library (as in records.py). */
enum { PYTHON, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATIVE, SELECT, COPY, CALL };

/* An operation to record. Operands are numbers that count all values; an unused operand is 0. */
typedef struct {
    int32_t op, x, y, z;
} Row;

/* A recorded operation: its result and operands are slots. */
typedef struct {
    int32_t op, out, x, y, z;
} Operation;

/* What record() reads, and where it resumes. `places` and `active` are indexed by numbers; row k has base + k. */
typedef struct {
    const Row *rows;
    int64_t k, count;
    int32_t *places; /* slots */
    int64_t base;
    uint8_t *active; /* whether a number has a gradient */
    int32_t *table;  /* a hash table of indices in `words`; -1 where it is empty */
    int64_t mask;    /* the table's size, a power of 2, minus 1 */
    Operation *words;
    int64_t used; /* operations in `words` */
    double *numbers;
    int64_t made;         /* slots, and their values in `numbers` */
    const int32_t *kinds; /* for each opcode its number of operands, 4 times how it is computed, 64 times a function */
    const int32_t *ones;  /* slots that are 1 at each call */
    int64_t ones_count;
    double (*const *functions)(double);
} Record;

/* Returns the number of the first entry of the hash table that an operation may have. */
static int64_t first_entry(Operation it)
{
    uint32_t hash = (uint32_t) it.op * 2654435769u;
    hash = (hash + (uint32_t) it.x) * 2246822519u;
    hash = (hash + (uint32_t) it.y) * 3266489917u;
    hash = (hash + (uint32_t) it.z) * 668265263u;
    return hash ^ hash >> 15;
}

static int are_equal(Operation x, Operation y)
{
    /* Without branches, as the comparisons are hard to predict. */
    return (x.op == y.op) & (x.x == y.x) & (x.y == y.y) & (x.z == y.z);
}

/* Returns the factor that a product equals, as the other one is 1 at each call; else -1. */
static int32_t equal_factor(const Record *s, Operation product)
{
    for (int64_t i = 0; i < s->ones_count; i++) {
        if (product.x == s->ones[i]) return product.y;
        if (product.y == s->ones[i]) return product.x;
    }
    return -1;
}

/* Computes the value of an operation; returns 0 if Python must do so. */
static int compute(const Record *s, Operation operation, int32_t kind)
{
    const double x = s->numbers[operation.x], y = s->numbers[operation.y], z = s->numbers[operation.z];
    double *out = s->numbers + operation.out;
    switch (kind >> 2 & 15) {
    case ADD: *out = x + y; return 1;
    case SUBTRACT: *out = x - y; return 1;
    case MULTIPLY: *out = x * y; return 1;
    case DIVIDE:
        if (y == 0) return 0; /* NumPy warns */
        *out = x / y;
        return 1;
    case NEGATIVE: *out = -x; return 1;
    case SELECT: *out = x != 0 ? y : z; return 1;
    case CALL: *out = s->functions[kind >> 6](x); return 1;
    default: return 0;
    }
}

/* Records operations, unless an equal one is recorded; a copy, and a product with 1, has the slot of its operand.
 * Returns 1 at the end, or 0 after an operation whose value Python must compute. */
int64_t record(Record *restrict s)
{
    while (s->k < s->count) {
        const int64_t number = s->base + s->k;
        const Row row = s->rows[s->k++];
        const int32_t kind = s->kinds[row.op], operands = kind & 3, how = kind >> 2 & 15;
        const int32_t y = s->places[row.y], z = s->places[row.z]; /* read in any case, to save branches */
        const uint8_t y_active = s->active[row.y], z_active = s->active[row.z];
        const Operation new = {
            row.op, (int32_t) s->made, s->places[row.x], operands > 1 ? y : 0, operands > 2 ? z : 0,
        };
        s->active[number] = s->active[row.x] | (operands > 1 ? y_active : 0) | (operands > 2 ? z_active : 0);
        const int32_t same = how == COPY ? new.x : how == MULTIPLY ? equal_factor(s, new) : -1;
        if (same >= 0) {
            s->places[number] = same;
            continue;
        }
        int64_t i = first_entry(new) & s->mask;
        while (s->table[i] >= 0 && !are_equal(s->words[s->table[i]], new)) i = (i + 1) & s->mask;
        if (s->table[i] >= 0) {
            s->places[number] = s->words[s->table[i]].out;
            continue;
        }
        s->table[i] = (int32_t) s->used;
        s->words[s->used++] = new;
        s->places[number] = (int32_t) s->made++;
        if (!compute(s, new, kind)) return 0;
    }
    return 1;
}

/* Enters the recorded operations, from number `first` on, in a larger hash table. */
void record_again(int64_t first, int64_t count, const Operation *restrict words, int32_t *restrict table,
                  int64_t mask)
{
    for (int64_t k = first; k < count; k++) {
        int64_t i = first_entry(words[k]) & mask;
        while (table[i] >= 0) i = (i + 1) & mask;
        table[i] = (int32_t) k;
    }
}

/* From the last operation to the first: if the result is marked, marks the operands whose bit of `through` is set. */
void mark_operands(int64_t count, const Operation *restrict words, const uint8_t *restrict through,
                   uint8_t *restrict marks)
{
    for (int64_t k = count - 1; k >= 0; k--) {
        if (!marks[words[k].out]) continue;
        marks[words[k].x] |= through[k] & 1;
        marks[words[k].y] |= through[k] >> 1 & 1;
        marks[words[k].z] |= through[k] >> 2 & 1;
    }
}

/* From the first operation to the last: marks the result if a marked operand's bit of `through` is set. */
void mark_results(int64_t count, const Operation *restrict words, const uint8_t *restrict through,
                  uint8_t *restrict marks)
{
    for (int64_t k = 0; k < count; k++) {
        const int x = marks[words[k].x] & through[k];
        const int y = marks[words[k].y] & through[k] >> 1;
        const int z = marks[words[k].z] & through[k] >> 2;
        marks[words[k].out] |= (x | y | z) & 1;
    }
}

/* Checks plans on arrays of any number of rows, width and tile: out = (x + y) x for each row of x, and its sum, the sum
 * of the tiles' sums. */

#include "bytes.h"
#include "../../../python/gradops/jit/native/runtime/tiles.c"

enum { X, Y, COPY_OF_Y, SUM, OUT, PART, TOTAL, TABLE };
enum { COPY = 1, ADD = 2, MULTIPLY = 4, REDUCE = 8, FULL_TILE = 16, LAST_TILE = 32, OLD = 64 }; /* "exceptions" */

static int raised, copies;

static int clear(int exceptions)
{
    return raised &= ~exceptions;
}

static int test(int exceptions)
{
    return raised & exceptions;
}

/* Raises an exception, and does what a loop may do: clear others, and overwrite its arguments and counts. */
static void end(int exception, void *data, char **arguments, int64_t *counts)
{
    raised = exception | (int) (intptr_t) data | (raised & OLD);
    for (int i = 0; i <= OPERANDS; i++) arguments[i] = NULL;
    for (int i = 0; i < COUNTS; i++) counts[i] = -1;
}

static void copy(char **arguments, int64_t *counts, const int64_t *steps, void *data)
{
    for (int64_t i = 0; i < counts[0]; i++) {
        *(double *) (arguments[1] + i * steps[1]) = *(double *) (arguments[0] + i * steps[0]);
    }
    copies++;
    end(COPY, data, arguments, counts);
}

static void binary(char **arguments, int64_t *counts, const int64_t *steps, int is_sum, void *data)
{
    for (int64_t i = 0; i < counts[0]; i++) {
        const double x = *(double *) (arguments[0] + i * steps[0]), y = *(double *) (arguments[1] + i * steps[1]);
        *(double *) (arguments[2] + i * steps[2]) = is_sum ? x + y : x * y;
    }
    end(is_sum ? ADD : MULTIPLY, data, arguments, counts);
}

static void add(char **arguments, int64_t *counts, const int64_t *steps, void *data)
{
    binary(arguments, counts, steps, 1, data);
}

static void multiply(char **arguments, int64_t *counts, const int64_t *steps, void *data)
{
    binary(arguments, counts, steps, 0, data);
}

static void reduce(char **arguments, int64_t *counts, const int64_t *steps, void *data)
{
    double sum = 0;
    for (int64_t i = 0; i < counts[0] * counts[1]; i++) sum += *(double *) (arguments[0] + i * steps[0]);
    *(double *) arguments[1] = sum;
    end(REDUCE, data, arguments, counts);
}

static void check(Bytes *bytes)
{
    const int64_t rows = next(bytes) % 40, width = 1 + next(bytes) % 10, tile = 1 + next(bytes) % 12;
    const int64_t size = rows * width, tiles_count = (rows + tile - 1) / tile;
    double *x = malloc(8 * size), *y = malloc(8 * width), *out = malloc(8 * size), *parts = malloc(8 * tiles_count);
    double total;
    for (int64_t i = 0; i < size; i++) x[i] = next(bytes);
    for (int64_t i = 0; i < width; i++) y[i] = next(bytes);
    char *room = malloc(8 * TABLE + 8 * width + 8 * tile * width);
    const Operand table[TABLE] = {
        [X] = {(int64_t) x, 0, 8 * width, 0}, [Y] = {(int64_t) y, 0, 0, 0}, [COPY_OF_Y] = {8 * TABLE, 1, 0, 0},
        [SUM] = {8 * TABLE + 8 * width, 1, 0, 0}, [OUT] = {(int64_t) out, 0, 8 * width, 0},
        [PART] = {(int64_t) parts, 0, 0, 8}, [TOTAL] = {(int64_t) &total, 0, 0, 0},
    };
    const Instruction code[] = {
        {copy, NULL, 2, {1, 0}, {{width, 0}}, {Y, COPY_OF_Y}, {8, 8}, {0}},
        {add, NULL, 3, {0, 1}, {{width, 0}}, {X, COPY_OF_Y, SUM}, {8, 8, 8}, {8 * width, 0, 8 * width}},
        {multiply, NULL, 3, {1, 0}, {{0, width}}, {SUM, X, OUT}, {8, 8, 8}, {0}},
        {reduce, NULL, 2, {1, 0}, {{0, width}, {1, 0}}, {OUT, PART}, {8}, {0}},
    };
    const int count = sizeof code / sizeof *code;
    Plan *plan = malloc(sizeof(Plan) + 2 * sizeof code), *closing = malloc(sizeof(Plan) + sizeof *code);
    *plan = (Plan) {rows, tile, TABLE, count, 1, count, 2 * count};
    for (int i = 0; i < 2 * count; i++) {
        plan->code[i] = code[i % count];
        plan->code[i].data = (void *) (intptr_t) (i < count ? FULL_TILE : LAST_TILE);
    }
    *closing = (Plan) {1, 1, TABLE, 1, 0, 0, 1};
    closing->code[0] = (Instruction) {reduce, NULL, 2, {1, 0}, {{tiles_count, 0}, {1, 0}}, {PART, TOTAL}, {8}, {0}};

    const Functions functions = {.clear = clear, .test = test};
    _Atomic int64_t *following = malloc(sizeof *following);
    raised = OLD;
    copies = 0;
    const int32_t found = tiles_alone(plan, table, (char **) (void *) room, following, &functions, 255, closing);
    const int is_short = rows % tile != 0, is_full = rows >= tile;
    const int wanted = (rows ? COPY | ADD | MULTIPLY : 0) | REDUCE | is_short * LAST_TILE | is_full * FULL_TILE;
    require(found == wanted, "the exceptions");
    require(copies == is_short + is_full, "what is executed once");
    double sum = 0;
    for (int64_t i = 0; i < size; i++) {
        require(out[i] == (x[i] + y[i % width]) * x[i], "the results");
        sum += out[i];
    }
    require(total == sum, "the sum");

    *following = tiles_count; /* as another thread may find it: there is no tile left, so nothing is written */
    require(tiles(plan, table, NULL, following, &functions, 255) == 0 && total == sum, "no further tile");
    void *all[] = {x, y, out, parts, room, plan, closing, (void *) following};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

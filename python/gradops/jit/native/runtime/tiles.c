/* Executes the plans of gradops.jit.native.tile_plan on large arrays, tile by tile; gradops.jit.native.tile_run calls
 * these functions. An instruction calls an inner loop of a ufunc, of NumPy, SciPy or this module. */

#include "functions.h"
#include <stdatomic.h>
#include <stddef.h>

enum { OPERANDS = 4, COUNTS = 4, STEPS = 9 }; /* as in tile_source.py */

typedef void Loop(char **arguments, int64_t *counts, const int64_t *steps, void *data);

/* A number that depends on the rows of a tile: fixed + each * rows. */
typedef struct {
    int64_t fixed, each;
} Extent;

typedef struct {
    Loop *loop;
    void *data;
    int64_t operands;
    Extent calls, counts[COUNTS]; /* of a call */
    int64_t own[OPERANDS];        /* the operands' numbers */
    int64_t steps[STEPS];         /* the loop's strides */
    int64_t far[OPERANDS];        /* the strides between calls */
} Instruction;

/* The first `once` instructions, whose results are the same for all tiles, are executed only for a thread's first tile.
 * The very last tile may have fewer rows; it has its own instructions, `last` to `last_end`, as compiled loops are for
 * full tiles. */
typedef struct {
    int64_t rows, tile, operands, count, once, last, last_end;
    Instruction code[];
} Plan;

typedef struct {
    int64_t address, is_in_room, row, tile; /* the last two are strides */
} Operand;

/* Executes an instruction on a tile. `room` starts with the addresses of the tile's operands. */
static void execute(const Instruction *it, int64_t rows, char **room)
{
    const int64_t calls = it->calls.fixed + it->calls.each * rows;
    int64_t call = 0;
    do { /* arguments and counts are set again before each call, as a loop may overwrite them */
        char *arguments[OPERANDS + 1];
        int64_t counts[COUNTS];
        for (int64_t k = 0; k < it->operands; k++) arguments[k] = room[it->own[k]] + it->far[k] * call;
        arguments[OPERANDS] = (char *) room;
        for (int i = 0; i < COUNTS; i++) counts[i] = it->counts[i].fixed + it->counts[i].each * rows;
        it->loop(arguments, counts, it->steps, it->data);
    } while (++call < calls);
}

/* Executes tiles until none is left; returns the floating-point exceptions raised.
 *
 * Several threads execute this function on the same plan. The only memory that they share and write is `next`, which
 * gives each its next tile, so no ordering between them is needed. A tile's results and its parts of sums belong to it
 * alone, and Python reads them after it has waited for all threads. No thread takes a tile after the last one. */
int32_t tiles(const Plan *plan, const Operand *operands, char **room, _Atomic int64_t *next, const Functions *functions,
              int32_t exceptions)
{
    functions->clear(exceptions);
    const Instruction *first = plan->code;
    for (int32_t raised = 0;;) {
        const int64_t number = atomic_fetch_add_explicit(next, 1, memory_order_relaxed), start = number * plan->tile;
        const int64_t left = plan->rows - start;
        if (left <= 0) return raised;
        for (int64_t i = 0; i < plan->operands; i++) {
            const Operand *x = operands + i;
            const int64_t base = x->address + x->is_in_room * (int64_t) room;
            room[i] = (char *) (base + x->row * start + x->tile * number);
        }
        const int is_last = left < plan->tile;
        const Instruction *it = is_last ? plan->code + plan->last : first;
        const Instruction *end = plan->code + (is_last ? plan->last_end : plan->count);
        for (; it < end; it++) {
            execute(it, is_last ? left : plan->tile, room);
            raised |= functions->test(exceptions); /* the next loop may clear the flags */
        }
        first = plan->code + plan->once;
    }
}

/* Executes all tiles in one thread, then the closing instructions, if any. */
int32_t tiles_alone(const Plan *plan, const Operand *operands, char **room, _Atomic int64_t *next,
                    const Functions *functions, int32_t exceptions, const Plan *closing)
{
    *next = 0;
    const int32_t raised = tiles(plan, operands, room, next, functions, exceptions);
    if (closing == NULL) return raised;
    *next = 0;
    return raised | tiles(closing, operands, room, next, functions, exceptions);
}

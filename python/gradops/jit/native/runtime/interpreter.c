/* The interpreter of bytecode; instructions.py describes the instructions.
 *
 * Each instruction ends in a jump to the next one, so the processor predicts each jump separately. Compilers without
 * GNU C's computed jumps use a `switch`. */

#include "operations.h"

/* Moves up to four numbers; all loads come first, as a store might change a number that is still to be loaded. */
INLINE void move(double *to, const double *from, int n)
{
    const double first = from[0], second = n > 1 ? from[1] : 0, third = n > 2 ? from[2] : 0, last = n > 3 ? from[3] : 0;
    to[0] = first;
    if (n > 1) to[1] = second;
    if (n > 2) to[2] = third;
    if (n > 3) to[3] = last;
}

#ifdef __GNUC__
#define WITH_EXTENSIONS __extension__ /* compilers that are asked for standard C do not warn of the jumps */
#define CASE(NAME) at_##NAME
#define VECTOR_CASE(NAME) at_vector_##NAME
#define AT(NAME, ...) &&at_##NAME,
#define UNKNOWN(...) &&unknown,
#define AT_VECTOR(...) &&at_vector,
#define JUMP                     \
    {                            \
        opcode = (uint32_t) *at; \
        goto *targets[opcode];   \
    }
#else
#define WITH_EXTENSIONS
#define CASE(NAME) case OPCODE_##NAME
#define VECTOR_CASE(NAME) case VECTOR + OPCODE_##NAME
#define JUMP goto dispatch;
#endif

#define NEXT(WORDS)    \
    {                  \
        at += (WORDS); \
        JUMP           \
    }

/* The words are loaded first, so that no load waits for an operand. */
#define ON_NUMBERS(NAME, OPERANDS, VALUE)                                                                      \
    CASE(NAME):                                                                                                \
    {                                                                                                          \
        const int64_t out = at[1], a = at[2], b = at[3], c = at[4], number = OPERANDS == 1 ? b : c;            \
        const double x = memory[a], y = OPERANDS > 1 ? memory[b] : 0, z = OPERANDS > 2 ? memory[c] : 0;        \
        (void) y, (void) z, (void) number;                                                                     \
        memory[out] = VALUE;                                                                                   \
        NEXT(SHORT)                                                                                            \
    }

#define LOAD(NAME, N)                                                                 \
    CASE(NAME):                                                                       \
    {                                                                                 \
        const int64_t out = at[1], a = at[2], counter = at[3], stride = at[4];        \
        move(memory + out, memory + (a + whole(memory[counter]) * stride), N);        \
        NEXT(SHORT)                                                                   \
    }

#define STORE(NAME, N)                                                                \
    CASE(NAME):                                                                       \
    {                                                                                 \
        const int64_t out = at[1], a = at[2], counter = at[3], stride = at[4];        \
        move(memory + (out + whole(memory[counter]) * stride), memory + a, N);        \
        NEXT(SHORT)                                                                   \
    }

/* Executes instructions until the end, and returns the floating-point exceptions raised; -1 for an unknown opcode.
 *
 * The code has the size of a line of the cache for each operation on three numbers, so it starts at one, which saves a
 * tenth of their time. */
WITH_EXTENSIONS __attribute__((noinline, aligned(64)))
int32_t run(const int32_t *at, double *memory, const Functions *functions)
{
    uint64_t opcode;
    functions->clear((int) functions->exceptions);
#ifdef __GNUC__
    static const void *const targets[2 * VECTOR] = {
        SIDE_BY_SIDE(AT) PLAIN(AT) FUSED(AT) WHOLE(AT) CALLS(AT) VECTORS(UNKNOWN) UNKNOWN(gather) LOADS(AT)
        STORES(AT) CONTROL(AT)
        [OPCODES ... END - 1] = &&unknown, &&end,
        SIDE_BY_SIDE(AT_VECTOR) PLAIN(AT_VECTOR) FUSED(UNKNOWN) WHOLE(AT_VECTOR) CALLS(AT_VECTOR) VECTORS(AT_VECTOR)
        &&at_vector_gather,
        AT_VECTOR(load) UNKNOWN(load2) UNKNOWN(load3) UNKNOWN(load4)
        AT_VECTOR(store) UNKNOWN(store2) UNKNOWN(store3) UNKNOWN(store4) CONTROL(UNKNOWN)
        [VECTOR + OPCODES ... 2 * VECTOR - 1] = &&unknown,
    };
    JUMP
#else
dispatch:
    opcode = (uint32_t) *at;
    switch (opcode) {
#endif
    SIDE_BY_SIDE(ON_NUMBERS)
    PLAIN(ON_NUMBERS)
    FUSED(ON_NUMBERS)
    WHOLE(ON_NUMBERS)
    CALLS(ON_NUMBERS)
    LOADS(LOAD)
    STORES(STORE)

    CASE(index): /* compared as an unsigned integer, an index that is still negative exceeds every size */
    {
        const int64_t number = whole(memory[at[2]]), position = number < 0 ? number + at[3] : number;
        memory[at[1]] = cell(position);
        if ((uint64_t) position >= (uint64_t) at[3]) return FAILED;
        NEXT(SHORT)
    }
    CASE(again): /* the comparison precedes the step, so a body runs at least once */
    {
        const int64_t number = whole(memory[at[1]]);
        if (number == at[4]) NEXT(SHORT)
        memory[at[1]] = cell(number + at[3]);
        NEXT(-at[2])
    }
    CASE(unless):
        if (memory[at[1]] != 0) NEXT(SHORT)
        NEXT(at[2])
    CASE(require):
        if (!(memory[at[1]] != 0)) return FAILED;
        NEXT(SHORT)
    CASE(outside): /* Python calls a kernel on the memory, and then resumes after this instruction */
        return raised_before(functions) | (int32_t) ((uint32_t) at[1] << 8) | WAITING;
    VECTOR_CASE(gather): /* the operands follow the words */
    {
        double *out = memory + at[1];
        const int32_t *from = at + LONG, n = at[SHORT];
        for (int64_t i = 0; i < n; i++) out[i] = memory[from[i]];
        NEXT(LONG + n)
    }
#ifdef __GNUC__
at_vector:
    functions->vector[opcode - VECTOR]((const Words *) at, memory, functions);
    NEXT(LONG)
end:
    return raised_before(functions);
unknown:
    return -1;
#else
    case END: return raised_before(functions);
    default:
        if (opcode < VECTOR) return -1;
        functions->vector[opcode - VECTOR]((const Words *) at, memory, functions);
        NEXT(LONG)
    }
#endif
}

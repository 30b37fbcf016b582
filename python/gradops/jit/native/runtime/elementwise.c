/* Vector instructions that compute each element by itself. */

#include "operations.h"

/* No iteration reads what another one writes: `Code` allocates new cells for a vector's result, except when it rounds in
 * place, and `move()`, which writes to existing cells, first copies sources that overlap. Loops are vectorized, but
 * neither interleaved nor unrolled, which would take LLVM seconds. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* of loops with calls */
#define EACH _Pragma("clang loop vectorize(assume_safety) interleave_count(1) unroll(disable)")
#else
#define EACH _Pragma("GCC ivdep")
#endif

/* Computes all elements, given the strides of the operands; those that are 0 are loaded once. */
#define LOOP(OPERANDS, SA, SB, SC, VALUE)                                                           \
    EACH for (int64_t i = 0; i < n; i++) {                                                          \
        const double x = a[i * (SA)], y = OPERANDS > 1 ? b[i * (SB)] : 0, z = OPERANDS > 2 ? c[i * (SC)] : 0; \
        (void) y, (void) z;                                                                         \
        out[i] = VALUE;                                                                             \
    }

#define WITH_STRIDES(OPERANDS)                                                                      \
    const int64_t n = at->n, sa = at->sa, sb = at->sb, sc = at->sc;                                 \
    const int64_t number = OPERANDS == 1 ? at->b : at->c;                                           \
    double *out = memory + at->out;                                                                 \
    const double *a = memory + at->a, *b = memory + at->b, *c = memory + at->c;                     \
    (void) sa, (void) sb, (void) sc, (void) number, (void) b, (void) c, (void) functions;

#define ON_VECTORS(NAME, OPERANDS, VALUE) \
    INSTRUCTION(NAME)                     \
    {                                     \
        WITH_STRIDES(OPERANDS)            \
        LOOP(OPERANDS, sa, sb, sc, VALUE) \
    }

PLAIN(ON_VECTORS)
WHOLE(ON_VECTORS)
CALLS(ON_VECTORS)

/* The other loops are in a function of their own, so that they do not use up registers of the first one. */
#define NEAR_AND_FAR(NAME, OPERANDS, VALUE)                                \
    SEPARATE static void NAME##_apart(const Words *at, double *memory, const Functions *functions) \
    {                                                                      \
        WITH_STRIDES(OPERANDS)                                             \
        if (OPERANDS == 2 && sa == 0 && sb == 1) LOOP(2, 0, 1, 0, VALUE)   \
        else if (OPERANDS == 2 && sa == 1 && sb == 0) LOOP(2, 1, 0, 0, VALUE) \
        else LOOP(OPERANDS, sa, sb, sc, VALUE)                             \
    }                                                                      \
    INSTRUCTION(NAME)                                                      \
    {                                                                      \
        WITH_STRIDES(OPERANDS)                                             \
        if (sa == 1 && (OPERANDS == 1 || sb == 1)) LOOP(OPERANDS, 1, 1, 0, VALUE) \
        else NAME##_apart(at, memory, functions);                          \
    }

SIDE_BY_SIDE(NEAR_AND_FAR)

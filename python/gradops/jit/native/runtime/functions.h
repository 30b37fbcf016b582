/* The head of the machine's table of functions, with the order of FUNCTION_NUMBERS in instructions.py. */

#ifndef GRADOPS_FUNCTIONS_H
#define GRADOPS_FUNCTIONS_H

#include "exact.h"
#include <stdint.h>

/* A function that LLVM must not inline: with these inlined, the interpreter accesses its stack twice as often. */
#define SEPARATE __attribute__((noinline))

typedef struct {
    int (*clear)(int exceptions), (*test)(int exceptions); /* of floating point, in the C library */
    void (*dgemm)(const char *turn_a, const char *turn_b, const int *m, const int *n, const int *k, const double *alpha,
                  const double *a, const int *far_a, const double *b, const int *far_b, const double *beta, double *c,
                  const int *far_c);
    void (*dgetrf)(const int *m, const int *n, double *a, const int *far, int *rows, int *info);
    void (*dgetrs)(const char *turn, const int *n, const int *k, const double *a, const int *far, const int *rows,
                   double *b, const int *far_b, int *info);
    void (*dgetri)(const int *n, double *a, const int *far, const int *rows, double *room, const int *room_size,
                   int *info);
    double (*exp)(double), (*log1p)(double), (*fmod)(double, double);
} Functions;

/* A vector instruction; see instructions.py. */
typedef struct {
    int32_t opcode, out, a, b, c, n, sa, sb, sc, exceptions;
} Words;

#define INSTRUCTION(NAME) void vector_##NAME(const Words *at, double *memory, const Functions *functions)

/* Clears the exceptions raised since `before`, as those raised earlier in a run must remain. */
static inline void restore(int before, const Functions *functions, int32_t exceptions)
{
    const int after = functions->test(exceptions);
    if (after != before) functions->clear(after ^ before);
}

#endif

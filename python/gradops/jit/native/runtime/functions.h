/* The head of the machine's table of functions, with the order of FUNCTION_NUMBERS in instructions.py. */

#ifndef GRADOPS_FUNCTIONS_H
#define GRADOPS_FUNCTIONS_H

#include "exact.h"
#include <stdint.h>

/* A function that LLVM must not inline: with these inlined, the interpreter accesses its stack twice as often. */
#define SEPARATE __attribute__((noinline))

/* As in instructions.py. Added to an opcode, VECTOR makes the instruction one on vectors. */
enum { SHORT = 5, LONG = 9, END = 255, VECTOR = 256, WAITING = 1 << 29, FAILED = 1 << 30 };

typedef struct Functions Functions;

/* The words of an instruction; one on numbers ends after c. See instructions.py. */
typedef struct {
    int32_t opcode, out, a, b, c, n, sa, sb, sc;
} Words;

#define INSTRUCTION(NAME) void vector_##NAME(const Words *at, double *memory, const Functions *functions)

struct Functions {
    int (*clear)(int exceptions), (*test)(int exceptions); /* of floating point, in the C library */
    int64_t exceptions;                                    /* those that NumPy warns about */
    void (*vector[VECTOR])(const Words *at, double *memory, const Functions *functions); /* for each opcode */
    void (*dgemm)(const char *turn_a, const char *turn_b, const int *m, const int *n, const int *k, const double *alpha,
                  const double *a, const int *far_a, const double *b, const int *far_b, const double *beta, double *c,
                  const int *far_c);
    void (*dgetrf)(const int *m, const int *n, double *a, const int *far, int *rows, int *info);
    void (*dgetrs)(const char *turn, const int *n, const int *k, const double *a, const int *far, const int *rows,
                   double *b, const int *far_b, int *info);
    void (*dgetri)(const int *n, double *a, const int *far, const int *rows, double *room, const int *room_size,
                   int *info);
    double (*exp)(double), (*log)(double), (*log1p)(double), (*fmod)(double, double);
};

/* Functions of numbers.c. */
double logaddexp(double x, double y, const Functions *functions);
double modulo(double x, double y, const Functions *functions);
double floor_divided(double x, double y, const Functions *functions);
double scipy1(double x, int64_t number, const Functions *functions);
double scipy2(double x, double y, int64_t number, const Functions *functions);

/* Returns the exceptions raised so far. */
INLINE int raised_before(const Functions *functions)
{
    return functions->test((int) functions->exceptions);
}

/* Clears the exceptions raised since `before`, as those raised earlier in a run must remain. */
INLINE void restore(int before, const Functions *functions)
{
    const int after = raised_before(functions);
    if (after != before) functions->clear(after ^ before);
}

#endif

/* Sums, extremes and the order of n numbers at a distance of `stride`, as NumPy computes them. */

#include "operations.h"
#include "sums.h"

/* NumPy adds to the initial result 0.0, so a sum of negative zeros is 0.0. */
static void sum(double *out, const double *a, int64_t n, int64_t stride)
{
    *out = pairwise(a, n, stride) + 0.0;
}

/* A NaN is above and below all numbers. `&` instead of `&&` saves branches, which are hard to predict. */
static int is_above(double x, double y)
{
    return !(x <= y) & (y == y);
}

static int is_below(double x, double y)
{
    return !(x >= y) & (y == y);
}

static int whole_is_above(int64_t x, int64_t y)
{
    return x > y;
}

static int whole_is_below(int64_t x, int64_t y)
{
    return x < y;
}

/* The index of the first extreme, or of the first NaN. The flags in tools/runtime turn off unrolling elsewhere. */
#define EXTREME(NAME, TYPE, IS_BEYOND)                                       \
    static void NAME(int64_t *out, const TYPE *a, int64_t n, int64_t stride) \
    {                                                                        \
        TYPE extreme = a[0];                                                 \
        int64_t at = 0;                                                      \
        _Pragma("GCC unroll 8")                                              \
        for (int64_t i = 1; i < n; i++) {                                    \
            const TYPE x = a[i * stride];                                    \
            const int is_beyond = IS_BEYOND(x, extreme);                     \
            extreme = is_beyond ? x : extreme;                               \
            at = is_beyond ? i : at;                                         \
        }                                                                    \
        *out = at;                                                           \
    }

EXTREME(argmax, double, is_above)
EXTREME(argmin, double, is_below)
EXTREME(whole_argmax, int64_t, whole_is_above)
EXTREME(whole_argmin, int64_t, whole_is_below)

/* The order of numbers by insertion sort: stable, and fast for the few numbers of a row. */
#define ARGSORT(NAME, TYPE, IS_ABOVE)                                                          \
    static void NAME(int64_t *restrict out, const TYPE *restrict a, int64_t n, int64_t stride) \
    {                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                      \
            const TYPE x = a[i * stride];                                                      \
            int64_t j = i;                                                                     \
            for (; j > 0 && IS_ABOVE(a[out[j - 1] * stride], x); j--) out[j] = out[j - 1];     \
            out[j] = i;                                                                        \
        }                                                                                      \
    }

ARGSORT(argsort, double, is_above)
ARGSORT(whole_argsort, int64_t, whole_is_above)

#define OF_VECTOR(NAME, OUT, TYPE)                                                       \
    INSTRUCTION(NAME)                                                                    \
    {                                                                                    \
        (void) functions;                                                                \
        NAME((OUT *) (memory + at->out), (const TYPE *) (memory + at->a), at->n, at->sa); \
    }

OF_VECTOR(sum, double, double)
OF_VECTOR(argmax, int64_t, double)
OF_VECTOR(argmin, int64_t, double)
OF_VECTOR(whole_argmax, int64_t, int64_t)
OF_VECTOR(whole_argmin, int64_t, int64_t)
OF_VECTOR(argsort, int64_t, double)
OF_VECTOR(whole_argsort, int64_t, int64_t)

/* Copies the elements whose indices start at `b`. */
INSTRUCTION(pick)
{
    const double *a = memory + at->a;
    const int64_t *indices = (const int64_t *) (memory + at->b);
    (void) functions;
    for (int64_t i = 0; i < at->n; i++) memory[at->out + i] = a[indices[i] * at->sa];
}

/* Instructions that process one element after the other, from left to right. */

#define UNROLLED _Pragma("GCC unroll 8")

#define FOLD(NAME, VALUE)                                     \
    static double NAME(const double *a, int64_t n, int64_t stride) \
    {                                                         \
        double x = a[0];                                      \
        UNROLLED                                              \
        for (int64_t i = 1; i < n; i++) {                     \
            const double y = a[i * stride];                   \
            x = VALUE;                                        \
        }                                                     \
        return x;                                             \
    }                                                         \
    INSTRUCTION(NAME)                                         \
    {                                                         \
        (void) functions;                                     \
        memory[at->out] = NAME(memory + at->a, at->n, at->sa); \
    }

FOLD(prod, x * y)
FOLD(max, LARGER(x, y))
FOLD(min, SMALLER(x, y))

INSTRUCTION(dot)
{
    const double *a = memory + at->a, *b = memory + at->b;
    const int64_t n = at->n, sa = at->sa, sb = at->sb;
    double total = 0;
    (void) functions;
    UNROLLED for (int64_t i = 0; i < n; i++) total += a[i * sa] * b[i * sb];
    memory[at->out] = total;
}

/* Returns the sum of exp(x - top), and writes the terms if `out` is not NULL. */
INLINE double sum_of_exponentials(double *out, const double *a, int64_t n, int64_t stride, double top,
                                  const Functions *functions)
{
    double (*const f)(double) = functions->exp;
    double total = f(a[0] - top);
    if (out) out[0] = total;
    for (int64_t i = 1; i < n; i++) {
        const double term = f(a[i * stride] - top);
        if (out) out[i] = term;
        total += term;
    }
    return total;
}

/* If the maximum is infinite, the differences would be NaN; the result is the maximum. */
INSTRUCTION(logsumexp)
{
    const double *a = memory + at->a, top = max(a, at->n, at->sa);
    double result = top;
    if (whole(fabs(top)) < whole((double) INFINITY))
        result = functions->log(sum_of_exponentials(NULL, a, at->n, at->sa, top, functions)) + top;
    memory[at->out] = result;
}

INSTRUCTION(softmax)
{
    double *out = memory + at->out;
    const double *a = memory + at->a, top = max(a, at->n, at->sa);
    const int64_t n = at->n;
    const double total = sum_of_exponentials(out, a, n, at->sa, top, functions);
    for (int64_t i = 0; i < n; i++) out[i] /= total;
}

INSTRUCTION(log_softmax)
{
    double *out = memory + at->out;
    const double *a = memory + at->a, top = max(a, at->n, at->sa);
    const int64_t n = at->n, sa = at->sa;
    const double whole = functions->log(sum_of_exponentials(NULL, a, n, sa, top, functions));
    for (int64_t i = 0; i < n; i++) out[i] = (a[i * sa] - top) - whole;
}

/* Rows whose number is in a cell; `sa` is the distance of rows. */
INLINE void move_row(double *to, const double *from, int64_t n)
{
    UNROLLED for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

INSTRUCTION(load)
{
    (void) functions;
    move_row(memory + at->out, memory + (at->a + whole(memory[at->b]) * at->sa), at->n);
}

INSTRUCTION(store)
{
    (void) functions;
    move_row(memory + (at->out + whole(memory[at->b]) * at->sa), memory + at->a, at->n);
}

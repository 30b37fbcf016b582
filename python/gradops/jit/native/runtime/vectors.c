/* Sums, extremes and the order of n numbers at a distance of `stride`, as NumPy computes them. */

#include "functions.h"

/* Adds eight partial sums of at most 128 numbers, then the rest. */
SEPARATE static double few(const double *a, int64_t n, int64_t stride)
{
    const int64_t whole = n & -8;
    double total = -0.0; /* the neutral element */
    if (whole) {
        double s0 = a[0], s1 = a[stride], s2 = a[2 * stride], s3 = a[3 * stride];
        double s4 = a[4 * stride], s5 = a[5 * stride], s6 = a[6 * stride], s7 = a[7 * stride];
        for (int64_t i = 8; i < whole; i += 8) {
            s0 += a[i * stride], s1 += a[(i + 1) * stride], s2 += a[(i + 2) * stride], s3 += a[(i + 3) * stride];
            s4 += a[(i + 4) * stride], s5 += a[(i + 5) * stride], s6 += a[(i + 6) * stride], s7 += a[(i + 7) * stride];
        }
        total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
    }
    for (int64_t i = whole; i < n; i++) total += a[i * stride];
    return total;
}

/* Adds the sums of halves. */
static double pairwise(const double *a, int64_t n, int64_t stride)
{
    if (n <= 128) return few(a, n, stride);
    const int64_t half = n / 2 & -8;
    return pairwise(a, half, stride) + pairwise(a + half * stride, n - half, stride);
}

/* NumPy adds to the initial result 0.0, so a sum of negative zeros is 0.0. */
void sum(double *out, const double *a, int64_t n, int64_t stride)
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
#define EXTREME(NAME, TYPE, IS_BEYOND)                                         \
    SEPARATE void NAME(int64_t *out, const TYPE *a, int64_t n, int64_t stride) \
    {                                                                          \
        TYPE extreme = a[0];                                                   \
        int64_t at = 0;                                                        \
        _Pragma("GCC unroll 8")                                                \
        for (int64_t i = 1; i < n; i++) {                                      \
            const TYPE x = a[i * stride];                                      \
            const int is_beyond = IS_BEYOND(x, extreme);                       \
            extreme = is_beyond ? x : extreme;                                 \
            at = is_beyond ? i : at;                                           \
        }                                                                      \
        *out = at;                                                             \
    }

EXTREME(argmax, double, is_above)
EXTREME(argmin, double, is_below)
EXTREME(whole_argmax, int64_t, whole_is_above)
EXTREME(whole_argmin, int64_t, whole_is_below)

/* The order of numbers by insertion sort: stable, and fast for the few numbers of a row. */
#define ARGSORT(NAME, TYPE, IS_ABOVE)                                                            \
    SEPARATE void NAME(int64_t *restrict out, const TYPE *restrict a, int64_t n, int64_t stride) \
    {                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                        \
            const TYPE x = a[i * stride];                                                        \
            int64_t j = i;                                                                       \
            for (; j > 0 && IS_ABOVE(a[out[j - 1] * stride], x); j--) out[j] = out[j - 1];       \
            out[j] = i;                                                                          \
        }                                                                                        \
    }

ARGSORT(argsort, double, is_above)
ARGSORT(whole_argsort, int64_t, whole_is_above)

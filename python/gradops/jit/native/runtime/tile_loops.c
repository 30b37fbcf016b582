/* Inner loops with the signature of a ufunc's: functions of eight_functions.h, choices, sums, repeated rows, and products
 * of a matrix and a vector. Plans of gradops.jit.native.tile_plan call them. */

#include "eight_functions.h"
#include "sums.h"

typedef void Loop(char **arguments, int64_t *counts, const int64_t *steps, void *data);

/* Any strides; the padding of the last eight numbers raises no exception. The operand and the result may be the same. */
#define APPLY(FUNCTION)                                                                                      \
    {                                                                                                        \
        const char *x = arguments[0];                                                                        \
        char *out = arguments[1];                                                                            \
        int64_t i = 0;                                                                                       \
        if (steps[0] == 8 && steps[1] == 8)                                                                  \
            for (; i + LANES <= *count; i += LANES)                                                          \
                store((double *) out + i, FUNCTION(load((const double *) x + i)));                           \
        for (; i < *count; i += LANES) {                                                                     \
            const int64_t n = *count - i < LANES ? *count - i : LANES;                                       \
            double few[LANES] = {1, 1, 1, 1, 1, 1, 1, 1};                                                    \
            for (int64_t k = 0; k < n; k++) few[k] = *(const double *) (x + (i + k) * steps[0]);             \
            store(few, FUNCTION(load(few)));                                                                 \
            for (int64_t k = 0; k < n; k++) *(double *) (out + (i + k) * steps[1]) = few[k];                 \
        }                                                                                                    \
    }

#define FUNCTION(NAME)                                                                                       \
    void NAME##_tile(char **arguments, int64_t *count, const int64_t *steps, void *data)               \
    {                                                                                                        \
        (void) data;                                                                                         \
        APPLY(eight_##NAME)                                                                                  \
    }

FUNCTION(exp)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log1p)
FUNCTION(tanh)
FUNCTION(power3)
FUNCTION(power4)
FUNCTION(power5)
FUNCTION(power6)
FUNCTION(power7)
FUNCTION(power8)

/* Whether all numbers are so small that sine and cosine are accurate; a NaN is not. */
static int are_small(const double *x, int64_t n)
{
    const double largest = 1e6;
    int64_t limit, found = 0;
    memcpy(&limit, &largest, sizeof limit);
    for (int64_t i = 0; i < n; i++) {
        int64_t size;
        memcpy(&size, x + i, sizeof size);
        found |= (size & INT64_MAX) >= limit;
    }
    return !found;
}

/* `data` is NumPy's loop, for tiles with a large number or a NaN, and for other strides. */
#define WAVE(NAME)                                                                                           \
    void NAME##_tile(char **arguments, int64_t *count, const int64_t *steps, Loop *data)               \
    {                                                                                                        \
        const int is_near = steps[0] == 8 && steps[1] == 8;                                                  \
        if (!is_near || !are_small((const double *) arguments[0], *count))                                   \
            data(arguments, count, steps, NULL);                                                             \
        else APPLY(eight_##NAME)                                                                             \
    }

WAVE(sin)
WAVE(cos)

/* NumPy's `where`, with loops of their own for contiguous operands and single numbers. */
#define CHOICE(NAME, TYPE)                                                                                   \
    INLINE void NAME##_loop(char **arguments, int64_t n, int64_t first, int64_t x, int64_t y, int64_t out)   \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const TYPE a = *(const TYPE *) (arguments[1] + i * x), b = *(const TYPE *) (arguments[2] + i * y); \
            *(TYPE *) (arguments[3] + i * out) = arguments[0][i * first] ? a : b;                            \
        }                                                                                                    \
    }                                                                                                        \
    void NAME(char **arguments, int64_t *count, const int64_t *steps, void *data)                      \
    {                                                                                                        \
        enum { SIZE_OF = sizeof(TYPE) };                                                                     \
        const int is_near = steps[0] == 1 && steps[3] == SIZE_OF;                                            \
        const int64_t n = *count, x = steps[1], y = steps[2];                                                \
        (void) data;                                                                                         \
        if (is_near && x == SIZE_OF && y == SIZE_OF) NAME##_loop(arguments, n, 1, SIZE_OF, SIZE_OF, SIZE_OF); \
        else if (is_near && x == SIZE_OF && y == 0) NAME##_loop(arguments, n, 1, SIZE_OF, 0, SIZE_OF);       \
        else if (is_near && x == 0 && y == SIZE_OF) NAME##_loop(arguments, n, 1, 0, SIZE_OF, SIZE_OF);       \
        else if (is_near && x == 0 && y == 0) NAME##_loop(arguments, n, 1, 0, 0, SIZE_OF);                   \
        else NAME##_loop(arguments, n, steps[0], x, y, steps[3]);                                            \
    }

CHOICE(where8, int64_t)
CHOICE(where4, int32_t)

/* Adds numbers to the result; `data` is NumPy's loop, for other strides. */
void sum_tile(char **arguments, int64_t *count, const int64_t *steps, Loop *data)
{
    if (steps[0] == 0 && steps[1] == 8) *(double *) arguments[0] += pairwise((const double *) arguments[1], *count, 1);
    else data(arguments, count, steps, NULL);
}

/* Repeats a row, or a number for each row, to an array. */
void spread_tile(char **arguments, int64_t *count, const int64_t *steps, void *data)
{
    const int64_t rows = count[0], width = count[1], across = steps[1];
    const double *restrict x = (const double *) arguments[0];
    double *restrict out = (double *) arguments[1];
    (void) data;
    for (int64_t r = 0; r < rows; r++, out += width) {
        if (across) {
            const double number = *(const double *) (arguments[0] + r * across);
            for (int64_t i = 0; i < width; i++) out[i] = number;
        } else {
            for (int64_t i = 0; i < width; i++) out[i] = x[i];
        }
    }
}

/* Products need not have NumPy's bits, as the order of summation in BLAS depends on the processor. But they must not
 * depend on the number of threads, so each row, and each tile's part of a column, has a fixed order.
 *
 * The last numbers of a row may be fewer than eight, and the memory after them may not be readable. So both factors are
 * 0 in the other lanes: 0 times whatever is stored there could be NaN. */

/* Computes products of a vector and some rows: the partial sums of each. */
#define PRODUCTS(SUMS, ROWS)                                                                                 \
    Eight SUMS[ROWS] = {{0}};                                                                                \
    const double *row[ROWS];                                                                                 \
    _Pragma("GCC unroll 8") for (int k = 0; k < ROWS; k++) row[k] = x + k * width;                           \
    for (int64_t j = 0; j < whole; j += LANES) {                                                             \
        const Eight factor = load(v + j);                                                                    \
        _Pragma("GCC unroll 8") for (int k = 0; k < ROWS; k++)                                               \
            SUMS[k] = fused(load(row[k] + j), factor, SUMS[k]);                                              \
    }                                                                                                        \
    _Pragma("GCC unroll 8") for (int k = 0; k < ROWS; k++)                                                   \
        SUMS[k] = fused(load_first(row[k] + whole, width - whole), end, SUMS[k]);

/* Adds pairs of lanes of two vectors. */
INLINE Eight pairs(Eight x, Eight y)
{
#if __has_builtin(__builtin_shufflevector)
    return __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14)
         + __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    Eight sums;
    for (int i = 0; i < LANES; i++) sums[i] = i < 4 ? x[2 * i] + x[2 * i + 1] : y[2 * i - 8] + y[2 * i - 7];
    return sums;
#endif
}

/* A matrix times a vector: eight rows at a time, then the rest one by one. */
void matvec_tile(char **arguments, int64_t *count, const int64_t *steps, void *data)
{
    const double *x = (const double *) arguments[0], *v = (const double *) arguments[1];
    double *out = (double *) arguments[2];
    const int64_t rows = count[1], width = count[2], whole = width & -LANES;
    const Eight end = load_first(v + whole, width - whole);
    int64_t r = 0;
    (void) steps, (void) data;
    for (; r + LANES <= rows; r += LANES, x += LANES * width) {
        PRODUCTS(s, LANES)
        store(out + r, pairs(pairs(pairs(s[0], s[1]), pairs(s[2], s[3])), pairs(pairs(s[4], s[5]), pairs(s[6], s[7]))));
    }
    for (; r < rows; r++, x += width) {
        PRODUCTS(s, 1)
        out[r] = lane_sum(s[0]);
    }
}

/* A vector times a matrix: 32 columns at a time, then up to eight with four sums each. */
void vecmat_tile(char **arguments, int64_t *count, const int64_t *steps, void *data)
{
    enum { WIDE = 4 };
    const double *x = (const double *) arguments[0], *v = (const double *) arguments[1];
    double *out = (double *) arguments[2];
    const int64_t width = count[1], rows = count[2];
    int64_t j = 0;
    (void) steps, (void) data;
    for (; j + WIDE * LANES <= width; j += WIDE * LANES) {
        Eight sums[WIDE] = {{0}};
        for (int64_t i = 0; i < rows; i++) {
            const double *row = x + i * width + j;
            const Eight factor = spread(v[i]);
            /* This tile is in the cache, as the product with the matrix has just read it. Prefetch the next tile from
             * memory during the arithmetic. */
            _Pragma("GCC unroll 4") for (int k = 0; k < WIDE; k++) {
                __builtin_prefetch(row + k * LANES + rows * width, 0, 2);
                sums[k] = fused(load(row + k * LANES), factor, sums[k]);
            }
        }
        for (int k = 0; k < WIDE; k++) store(out + j + k * LANES, sums[k]);
    }
    for (; j < width; j += LANES) {
        const int64_t n = width - j < LANES ? width - j : LANES, fours = rows & -4;
        Eight sums[4] = {{0}};
        int64_t i = 0;
        for (; i < fours; i += 4)
            _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)
                sums[k] = fused(load_first(x + (i + k) * width + j, n), spread(v[i + k]), sums[k]);
        Eight total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        for (; i < rows; i++) total = fused(load_first(x + i * width + j, n), spread(v[i]), total);
        store_first(out + j, total, n);
    }
}

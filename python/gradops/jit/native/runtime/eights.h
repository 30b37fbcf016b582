/* Vectors of eight numbers, for any processor: LLVM splits them to the widths that it has. */

#ifndef GRADOPS_EIGHTS_H
#define GRADOPS_EIGHTS_H

#include "exact.h"
#include <stdint.h>
#include <string.h>

#ifndef __has_builtin /* GCC before version 10 */
#define __has_builtin(NAME) 0
#endif

enum { LANES = 8 };

typedef double Eight __attribute__((vector_size(64)));
typedef uint64_t Bits __attribute__((vector_size(64)));
typedef int64_t Mask __attribute__((vector_size(64))); /* -1 in lanes where a condition holds, else 0 */

/* A function that LLVM copies to the loops that Python writes (tile_compiler.py). */
#ifdef __clang__
#define COPIED __attribute__((always_inline))
#else
#define COPIED INLINE
#pragma GCC diagnostic ignored "-Wpsabi" /* how a processor without wide registers passes vectors */
#endif

INLINE Eight spread(double x)
{
    return (Eight) {x, x, x, x, x, x, x, x};
}

/* Memory is aligned to one number, not to eight. */
INLINE Eight load(const double *from)
{
    Eight x;
    memcpy(&x, from, sizeof x);
    return x;
}

INLINE void store(double *to, Eight x)
{
    memcpy(to, &x, sizeof x);
}

/* Loads the first n numbers, at most eight, and 0 in the other lanes, whose memory may not be readable. */
#ifdef __AVX512F__ /* clang writes LLVM's masked load and store, which LLVM compiles for any processor */
#define FIRST(n) __builtin_ia32_cmpq512_mask((Mask) {0, 1, 2, 3, 4, 5, 6, 7}, (Mask) {0} + (n), 1, (uint8_t) -1)

INLINE Eight load_first(const double *from, int64_t n)
{
    return __builtin_ia32_loadupd512_mask(from, (Eight) {0}, FIRST(n));
}

INLINE void store_first(double *to, Eight x, int64_t n)
{
    __builtin_ia32_storeupd512_mask(to, x, FIRST(n));
}
#else
INLINE Eight load_first(const double *from, int64_t n)
{
    Eight x = {0};
    memcpy(&x, from, (size_t) n * sizeof *from);
    return x;
}

INLINE void store_first(double *to, Eight x, int64_t n)
{
    memcpy(to, &x, (size_t) n * sizeof *to);
}
#endif

/* Returns x * y + z, rounded once. */
INLINE Eight fused(Eight x, Eight y, Eight z)
{
#if __has_builtin(__builtin_elementwise_fma)
    return __builtin_elementwise_fma(x, y, z);
#else
    for (int i = 0; i < LANES; i++) x[i] = __builtin_fma(x[i], y[i], z[i]);
    return x;
#endif
}

INLINE Eight choose(Mask holds, Eight x, Eight y)
{
    return (Eight) (((Bits) holds & (Bits) x) | (~(Bits) holds & (Bits) y));
}

/* Adds eight numbers in the order in which NumPy adds its eight partial sums. */
COPIED double lane_sum(Eight x)
{
#if __has_builtin(__builtin_shufflevector)
    typedef double Four __attribute__((vector_size(32)));
    typedef double Two __attribute__((vector_size(16)));
    const Four fours = __builtin_shufflevector(x, x, 0, 2, 4, 6) + __builtin_shufflevector(x, x, 1, 3, 5, 7);
    const Two twos = __builtin_shufflevector(fours, fours, 0, 2) + __builtin_shufflevector(fours, fours, 1, 3);
    return twos[0] + twos[1];
#else /* GCC before version 12 */
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
#endif
}

#endif

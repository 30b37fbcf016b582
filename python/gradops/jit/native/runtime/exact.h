/* Makes results independent of the compiler and its flags: each sum and product is rounded, in the order of the source.
 * Each file here includes this one first. */

#ifndef GRADOPS_EXACT_H
#define GRADOPS_EXACT_H

#if defined(__clang__)
#ifdef __FAST_MATH__
#error "compile without -ffast-math, as results must not depend on the compiler"
#endif
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("no-fast-math", "no-finite-math-only", "trapping-math", "fp-contract=off")
#endif

#define INLINE static inline __attribute__((always_inline))

#endif

/* Makes results independent of the compiler and its flags: each sum and product is rounded, in the order of the source.
 * Each file here includes this one first. */

#if defined(__clang__)
#ifdef __FAST_MATH__
#error "compile without -ffast-math, as results must not depend on the compiler"
#endif
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("no-fast-math", "fp-contract=off")
#endif

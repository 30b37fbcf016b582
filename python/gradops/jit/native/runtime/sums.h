/* The sum of n numbers at a distance of `stride`, in the order in which NumPy adds them. */

#ifndef GRADOPS_SUMS_H
#define GRADOPS_SUMS_H

#include "eights.h"

/* Adds eight partial sums of at most 128 numbers, then the rest. */
__attribute__((noinline)) static double few(const double *a, int64_t n, int64_t stride)
{
    const int64_t whole = n & -LANES;
    double total = -0.0; /* the neutral element */
    if (whole && stride == 1) {
        Eight sums = load(a);
        for (int64_t i = LANES; i < whole; i += LANES) sums += load(a + i);
        total = lane_sum(sums);
    } else if (whole) {
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
    const int64_t half = n / 2 & -LANES;
    return pairwise(a, half, stride) + pairwise(a + half * stride, n - half, stride);
}

#endif

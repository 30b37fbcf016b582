/* Sparse Cholesky factorization, triangular solves and the inverse on the factor's pattern.
 *
 * gradops.scipy.sparse._columns calls these functions. A factor of n rows is stored in compressed columns, each with
 * its diagonal element first: column k consists of the elements starts[k] to starts[k + 1] - 1 of `rows` and of the
 * values `l`. No two arrays overlap. */

#include "exact.h"
#include <math.h>
#include <stdint.h>

/* Computes a factor column by column, each from the columns to its left (George & Liu 1981).
 *
 * before[k] to before[k + 1] - 1: the elements of `lefts`, the positions in `l` of row k's elements left of the
 *     diagonal, and of `ends`, the ends of their columns;
 * given[k] to given[k + 1] - 1: the elements of `from`, the positions in `a` of the elements of the matrix's column k,
 *     and of `into`, their rows;
 * w: n zeros, and again zeros afterwards.
 *
 * Returns 0 if a pivot is not positive, else 1. */
int64_t sparse_factor(int64_t n, const int64_t *restrict starts, const int64_t *restrict rows,
                      const int64_t *restrict before, const int64_t *restrict lefts, const int64_t *restrict ends,
                      const int64_t *restrict given, const int64_t *restrict into, const int64_t *restrict from,
                      const double *restrict a, double *restrict l, double *restrict w)
{
    for (int64_t k = 0; k < n; k++) {
        for (int64_t g = given[k]; g < given[k + 1]; g++) w[into[g]] = a[from[g]];
        for (int64_t q = before[k]; q < before[k + 1]; q++) {
            const double factor = l[lefts[q]];
            for (int64_t p = lefts[q]; p < ends[q]; p++) w[rows[p]] -= factor * l[p];
        }
        if (!(w[k] > 0)) return 0; /* a NaN is not positive either */
        const double root = sqrt(w[k]), inverse = 1 / root;
        l[starts[k]] = root;
        w[k] = 0;
        for (int64_t s = starts[k] + 1; s < starts[k + 1]; s++) {
            l[s] = w[rows[s]] * inverse;
            w[rows[s]] = 0;
        }
    }
    return 1;
}

/* Solves L y = x in place. */
void sparse_forward(int64_t n, const int64_t *restrict starts, const int64_t *restrict rows, const double *restrict l,
                    double *restrict x)
{
    for (int64_t k = 0; k < n; k++) {
        const double y = x[k] / l[starts[k]];
        x[k] = y;
        for (int64_t s = starts[k] + 1; s < starts[k + 1]; s++) x[rows[s]] -= l[s] * y;
    }
}

/* Solves L' y = x in place. */
void sparse_backward(int64_t n, const int64_t *restrict starts, const int64_t *restrict rows, const double *restrict l,
                     double *restrict x)
{
    for (int64_t k = n - 1; k >= 0; k--) {
        double y = x[k];
        for (int64_t s = starts[k] + 1; s < starts[k + 1]; s++) y -= l[s] * x[rows[s]];
        x[k] = y / l[starts[k]];
    }
}

/* Computes the elements `z` of (L L')^-1 on the factor's pattern, from the last column to the first (Takahashi, Fagan &
 * Chen 1973).
 *
 * w: n zeros, and zeros again afterwards; meanwhile the column's elements below the diagonal, over its diagonal;
 * v: n numbers, where the products of `w` with later columns of the inverse accumulate. */
void sparse_inverse(int64_t n, const int64_t *restrict starts, const int64_t *restrict rows, const double *restrict l,
                    double *restrict z, double *restrict w, double *restrict v)
{
    for (int64_t k = n - 1; k >= 0; k--) {
        const int64_t first = starts[k] + 1, end = starts[k + 1];
        const double inverse = 1 / l[starts[k]];
        for (int64_t s = first; s < end; s++) {
            w[rows[s]] = l[s] * inverse;
            v[rows[s]] = 0;
        }
        for (int64_t s = first; s < end; s++) {
            const int64_t c = rows[s];
            const double own = w[c];
            double sum = z[starts[c]] * own;
            for (int64_t p = starts[c] + 1; p < starts[c + 1]; p++) {
                sum += z[p] * w[rows[p]];
                v[rows[p]] += z[p] * own;
            }
            v[c] += sum;
        }
        double diagonal = inverse * inverse;
        for (int64_t s = first; s < end; s++) {
            z[s] = -v[rows[s]];
            diagonal += v[rows[s]] * w[rows[s]];
            w[rows[s]] = 0;
        }
        z[starts[k]] = diagonal;
    }
}

/* Checks the sparse kernels on small patterns. */

#include <math.h>
#include "bytes.h"
#include "../../../python/gradops/jit/native/runtime/sparse.c"

enum { LARGEST = 12 };

static int is_near(double x, double y, double scale)
{
    return fabs(x - y) <= 1e-9 * (1 + scale);
}

static void check(Bytes *bytes)
{
    const int64_t n = next(bytes) % (LARGEST + 1);
    int below[LARGEST][LARGEST] = {{0}}; /* of the matrix: below[row][column] */
    double A[LARGEST][LARGEST] = {{0}}, sizes[LARGEST] = {0};
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            const int byte = next(bytes);
            if (byte < 170) continue;
            below[i][j] = 1;
            A[i][j] = A[j][i] = (byte - 212) / 16.0;
            sizes[i] += fabs(A[i][j]);
            sizes[j] += fabs(A[i][j]);
        }
    }
    /* Most matrices have a dominant diagonal, so are positive definite; the others have a wrong pivot. */
    const int kind = next(bytes);
    const int64_t wrong = n && kind < 80 ? kind % n : -1;
    for (int64_t i = 0; i < n; i++) A[i][i] = sizes[i] + 0.5 + next(bytes) / 64.0;
    if (wrong >= 0) A[wrong][wrong] = kind < 40 ? NAN : kind < 60 ? 0 : -1;

    /* The matrix's lower triangle by columns. */
    int64_t given[LARGEST + 1], into[LARGEST * LARGEST], from[LARGEST * LARGEST], elements = 0;
    double a[LARGEST * LARGEST];
    for (int64_t j = 0; j < n; j++) {
        given[j] = elements;
        for (int64_t i = j; i < n; i++) {
            if (i > j && !below[i][j]) continue;
            into[elements] = i;
            from[elements] = elements;
            a[elements++] = A[i][j];
        }
    }
    given[n] = elements;

    /* The factor's pattern: eliminating a row connects all rows below it. */
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = k + 1; i < n; i++) {
            for (int64_t j = k + 1; j < i; j++) below[i][j] |= below[i][k] && below[j][k];
        }
    }
    int64_t starts[LARGEST + 1], rows[LARGEST * LARGEST], place[LARGEST][LARGEST], size = 0;
    for (int64_t j = 0; j < n; j++) {
        starts[j] = size;
        for (int64_t i = j; i < n; i++) {
            if (i > j && !below[i][j]) continue;
            place[i][j] = size;
            rows[size++] = i;
        }
    }
    starts[n] = size;
    int64_t before[LARGEST + 1], lefts[LARGEST * LARGEST], ends[LARGEST * LARGEST], count = 0;
    for (int64_t i = 0; i < n; i++) {
        before[i] = count;
        for (int64_t j = 0; j < i; j++) {
            if (!below[i][j]) continue;
            lefts[count] = place[i][j];
            ends[count++] = starts[j + 1];
        }
    }
    before[n] = count;

    int64_t *s = exact(starts, 8 * (n + 1)), *r = exact(rows, 8 * size), *b = exact(before, 8 * (n + 1));
    int64_t *f = exact(lefts, 8 * count), *e = exact(ends, 8 * count), *g = exact(given, 8 * (n + 1));
    int64_t *t = exact(into, 8 * elements), *o = exact(from, 8 * elements);
    double *x = exact(a, 8 * elements), *l = malloc(8 * size), *z = malloc(8 * size);
    double *w = calloc(n, 8), *v = malloc(8 * n), *y = malloc(8 * n);
    const int64_t is_good = sparse_factor(n, s, r, b, f, e, g, t, o, x, l, w);
    require(is_good == (wrong < 0), "whether the pivots are positive");
    if (is_good) {
        for (int64_t i = 0; i < n; i++) {
            require(w[i] == 0, "zeros after the factorization");
            for (int64_t j = 0; j <= i; j++) {
                double sum = 0;
                for (int64_t k = 0; k <= j; k++) {
                    if ((k == i || below[i][k]) && (k == j || below[j][k])) sum += l[place[i][k]] * l[place[j][k]];
                }
                require(is_near(sum, A[i][j], A[i][i] + A[j][j]), "the factor");
            }
        }
        sparse_inverse(n, s, r, l, z, w, v);
        for (int64_t j = 0; j < n; j++) {
            for (int64_t i = 0; i < n; i++) y[i] = i == j;
            sparse_forward(n, s, r, l, y);
            sparse_backward(n, s, r, l, y);
            double largest = 0;
            for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(y[i]));
            for (int64_t i = 0; i < n; i++) {
                double sum = 0;
                for (int64_t k = 0; k < n; k++) sum += A[i][k] * y[k];
                require(is_near(sum, i == j, largest * 20), "the solution");
            }
            for (int64_t i = j; i < n; i++) {
                if (i == j || below[i][j]) require(is_near(z[place[i][j]], y[i], largest), "the inverse");
            }
            require(w[j] == 0, "zeros after the inverse");
        }
    }
    void *all[] = {s, r, b, f, e, g, t, o, x, l, z, w, v, y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

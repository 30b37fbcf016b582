/* Products of matrices by BLAS, and factors, solutions and inverses by LAPACK; see MATRICES in instructions.py.
 *
 * LAPACK's floating-point exceptions are cleared, as NumPy ignores them. */

#include "functions.h"

/* BLAS is column-major: it computes the transposed product from the transposed factors in reverse order. */
static void product(const double *x, const double *y, double *out, int64_t m, int64_t k, int64_t n, int64_t sx,
                    int64_t sy, const Functions *functions)
{
    const char turn_x = sx < 0 ? 'T' : 'N', turn_y = sy < 0 ? 'T' : 'N';
    const int far_x = (int) (sx < 0 ? -sx : sx), far_y = (int) (sy < 0 ? -sy : sy);
    const int rows = (int) m, middle = (int) k, columns = (int) n;
    const double one = 1, zero = 0;
    functions->dgemm(&turn_y, &turn_x, &columns, &rows, &middle, &one, y, &far_y, x, &far_x, &zero, out, &columns);
}

/* Factors a matrix in place, with row exchanges in `rows` and their sign. LAPACK reports by `info` that a pivot is
 * exactly 0; `is_regular` is then 0, execution ends (`require`), and NumPy raises its error. */
static void factor(double *matrix, int *rows, double *is_regular, double *sign, int64_t n,
                   const Functions *functions)
{
    const int size = (int) n, before = raised_before(functions);
    int info;
    functions->dgetrf(&size, &size, matrix, &size, rows, &info);
    restore(before, functions);
    *is_regular = info == 0;
    double product = 1;
    for (int i = 0; i < size; i++) product = rows[i] == i + 1 ? product : -product;
    *sign = product;
}

/* Solves for k right-hand sides in place, given a factored matrix; for its transpose if `turned` is not 0. */
static void solved(double *right, const double *matrix, const int *rows, int64_t k, int64_t n, int64_t turned,
                   const Functions *functions)
{
    const char turn = turned ? 'T' : 'N';
    const int size = (int) n, count = (int) k, before = raised_before(functions);
    int info;
    functions->dgetrs(&turn, &size, &count, matrix, &size, rows, right, &size, &info);
    restore(before, functions);
}

/* Inverts a factored matrix in place, with room for n numbers. */
static void inverse(double *matrix, const int *rows, double *room, int64_t n, const Functions *functions)
{
    const int size = (int) n, before = raised_before(functions);
    int info;
    functions->dgetri(&size, matrix, &size, rows, room, &size, &info);
    restore(before, functions);
}

INSTRUCTION(product)
{
    product(memory + at->a, memory + at->b, memory + at->out, at->n, at->c, at->sc, at->sa, at->sb, functions);
}

INSTRUCTION(factor)
{
    factor(memory + at->out, (int *) (memory + at->a), memory + at->b, memory + at->c, at->n, functions);
}

INSTRUCTION(solved)
{
    solved(memory + at->out, memory + at->a, (int *) (memory + at->b), at->c, at->n, at->sa, functions);
}

INSTRUCTION(inverse)
{
    inverse(memory + at->out, (int *) (memory + at->a), memory + at->b, at->n, functions);
}

/* Checks functions of numbers, products of matrices, and that exceptions of SciPy and LAPACK are cleared, but no
 * others. */

#include "bytes.h"
#include <math.h>
#include "../../../python/gradops/jit/native/runtime/matrices.c"
#include "../../../python/gradops/jit/native/runtime/numbers.c"
#include "../../../python/gradops/jit/native/runtime/parts.c"

enum { LARGEST = 9, OLD = 1, NEW = 2, OTHER = 4 }; /* "exceptions" */

static int raised, info, called;

static int clear(int exceptions)
{
    return raised &= ~exceptions;
}

static int test(int exceptions)
{
    return raised & exceptions;
}

static void dgemm(const char *turn_a, const char *turn_b, const int *m, const int *n, const int *k, const double *alpha,
                  const double *a, const int *far_a, const double *b, const int *far_b, const double *beta, double *c,
                  const int *far_c)
{
    require(*alpha == 1 && *beta == 0, "the factors");
    for (int i = 0; i < *m; i++) {
        for (int j = 0; j < *n; j++) {
            double sum = 0;
            for (int l = 0; l < *k; l++) {
                const double x = *turn_a == 'T' ? a[l + i * *far_a] : a[i + l * *far_a];
                sum += x * (*turn_b == 'T' ? b[j + l * *far_b] : b[l + j * *far_b]);
            }
            c[i + j * *far_c] = sum;
        }
    }
}

static void dgetrf(const int *m, const int *n, double *a, const int *far, int *rows, int *status)
{
    require(*m == *n && *n == *far, "the sizes of a factor");
    for (int i = 0; i < *n; i++) rows[i] = 1 + i + (a[i] > 0);
    *status = info;
    raised |= NEW;
}

static void dgetrs(const char *turn, const int *n, const int *k, const double *a, const int *far, const int *rows,
                   double *b, const int *far_b, int *status)
{
    require(*n == *far && *n == *far_b && (*turn == 'T' || *turn == 'N'), "the sizes of a system");
    for (int i = 0; i < *n * *k; i++) b[i] = *turn == 'T' ? a[0] : rows[0];
    *status = 0;
    raised |= NEW;
}

static void dgetri(const int *n, double *a, const int *far, const int *rows, double *room, const int *size, int *status)
{
    require(*n == *far && *n == *size, "the sizes of an inverse");
    for (int i = 0; i < *n; i++) a[i] = room[i] = rows[i];
    *status = 0;
    raised |= NEW;
}

static double one(double x, int skip)
{
    require(skip == 0, "Cython's argument");
    raised |= NEW | OTHER;
    return x + 1;
}

static double two(double x, double y, int skip)
{
    return one(x, skip) * y;
}

static int32_t run(const int32_t *code, double *memory, const Functions *functions)
{
    require(functions->clear == clear, "the functions");
    return *memory += 1, called++, *code;
}

static const struct {
    Functions head;
    double (*of_one)(double, int), (*of_two)(double, double, int);
} table = {
    {.clear = clear, .test = test, .exceptions = NEW | OLD, .dgemm = dgemm, .dgetrf = dgetrf, .dgetrs = dgetrs,
     .dgetri = dgetri, .exp = exp, .log1p = log1p, .fmod = fmod},
    one, two,
};

static const Functions *const functions = &table.head;

static double number(Bytes *bytes)
{
    static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 5e-324, 1.7e308};
    const int byte = next(bytes);
    return byte < 7 ? special[byte] : (byte - 128) / (1.0 + next(bytes) % 16);
}

static void check_numbers(Bytes *bytes)
{
    const double x = number(bytes), y = number(bytes), rest = modulo(x, y, functions);
    const double whole = floor_divided(x, y, functions);
    if (isfinite(x) && isfinite(y) && y != 0) {
        require(rest == 0 ? signbit(rest) == signbit(y) : (rest < 0) == (y < 0), "the remainder's sign");
        require(fabs(rest) <= fabs(y), "the remainder's size"); /* equal if the dividend is tiny */
        require(isinf(whole) || whole == floor(whole), "the floored quotient");
        const int is_usual = fabs(x) < 1e3 && fabs(y) < 1e3 && fabs(y) > 1e-3;
        if (is_usual) require(fabs(whole * y + rest - x) <= 1e-9, "the division");
    } else if (y != 0 || isnan(x)) {
        require(isnan(rest) == (isnan(x) || isnan(y) || isinf(x)), "which remainders are NaN");
    }
    const double both = logaddexp(x, y, functions);
    require(isnan(both) == (isnan(x) || isnan(y)), "which logarithms are NaN");
    if (!isnan(both)) require(both >= fmax(x, y) && both <= fmax(x, y) + 0.7, "the logarithm of a sum");

    const int64_t last = sizeof *functions / sizeof(void *);
    raised = OLD;
    const double a = scipy1(x, last, functions), b = scipy2(x, y, last + 1, functions);
    require(raised == (OLD | OTHER), "the exceptions of SciPy");
    require((a == x + 1 && (b == a * y || isnan(b))) || isnan(a), "the results of SciPy");
}

static void check_matrices(Bytes *bytes)
{
    const int m = 1 + next(bytes) % LARGEST, k = 1 + next(bytes) % LARGEST, n = 1 + next(bytes) % LARGEST;
    const int turned = next(bytes) & 3, turn_x = turned & 1, turn_y = turned >> 1;
    double *x = malloc(8 * m * k), *y = malloc(8 * k * n), *out = malloc(8 * m * n);
    for (int i = 0; i < m * k; i++) x[i] = next(bytes) - 128;
    for (int i = 0; i < k * n; i++) y[i] = next(bytes) - 128;
    product(x, y, out, m, k, n, turn_x ? -m : k, turn_y ? -k : n, functions);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++) sum += x[turn_x ? l * m + i : i * k + l] * y[turn_y ? j * k + l : l * n + j];
            require(out[i * n + j] == sum, "the product");
        }
    }
    double *matrix = malloc(8 * n * n), *right = malloc(8 * n * k), *room = malloc(8 * n), is_regular, sign, wanted = 1;
    int *rows = malloc(4 * n);
    for (int i = 0; i < n * n; i++) matrix[i] = next(bytes) - 128;
    for (int i = 0; i < n; i++) wanted = matrix[i] > 0 ? -wanted : wanted;
    info = next(bytes) % 3;
    raised = OLD;
    factor(matrix, rows, &is_regular, &sign, n, functions);
    require(is_regular == (info == 0) && sign == wanted, "what a factor tells");
    solved(right, matrix, rows, k, n, turn_x, functions);
    require(right[n * k - 1] == (turn_x ? matrix[0] : rows[0]), "the solution");
    inverse(matrix, rows, room, n, functions);
    require(raised == OLD && matrix[n - 1] == rows[n - 1], "the exceptions of LAPACK");
    void *all[] = {x, y, out, matrix, right, room, rows};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void check_parts(Bytes *bytes)
{
    const int count = next(bytes) % LARGEST;
    int32_t results[LARGEST], wanted = 0, last = 0;
    Part table[LARGEST];
    for (int i = 0; i < count; i++) {
        const int byte = next(bytes);
        results[i] = byte < 20 ? FAILED | byte : byte;
        table[i] = (Part) {run, results + i};
    }
    for (int i = 0; i < count && !(wanted & FAILED); i++, last++) wanted |= results[i];
    double memory = 0;
    called = 0;
    require(parts(table, count, functions, &memory) == (wanted & FAILED ? FAILED : wanted), "the parts' exceptions");
    require(called == last && memory == last, "which parts are executed");
}

static void check(Bytes *bytes)
{
    for (int i = 0; i < 5; i++) check_numbers(bytes);
    check_parts(bytes);
    check_matrices(bytes);
}

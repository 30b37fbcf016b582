/* Checks inner loops for large arrays: functions of any numbers against the C library, choices, sums, repeated rows, and
 * products of a matrix and a vector; sizes around each vector width, all strides, memory of exact sizes. */

#include "bytes.h"
#include <math.h>
#include "../../../python/gradops/jit/native/runtime/tile_loops.c"

enum { LARGEST = 40 };

static int called; /* NumPy's loop */

static void of_numpy(char **arguments, int64_t *counts, const int64_t *steps, void *data)
{
    require(arguments && *counts >= 0 && steps && data == NULL, "what NumPy's loop gets");
    called++;
}

static double number(Bytes *bytes)
{
    static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 5e-324, -1e-310, 1e308, 1, -1, 709.9, -745.5};
    const int byte = next(bytes);
    if (byte < 12) return special[byte];
    if (byte < 200) return (byte - 100) / (1.0 + next(bytes) % 32);
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) bits = bits << 8 | (uint64_t) next(bytes);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double cube(double x)
{
    return x * x * x;
}

static double fourth(double x)
{
    return (x * x) * (x * x);
}

static double eighth(double x)
{
    return fourth(x) * fourth(x);
}

static double fifth(double x)
{
    return fourth(x) * x;
}

static double sixth(double x)
{
    return cube(x) * cube(x);
}

static double seventh(double x)
{
    return sixth(x) * x;
}

#define PLAIN(NAME)                                                                   \
    static void NAME##_check(char **a, int64_t *n, const int64_t *s, Loop *data)      \
    {                                                                                 \
        NAME##_tile(a, n, s, (void *) data);                                          \
    }
PLAIN(exp)
PLAIN(expm1)
PLAIN(log)
PLAIN(log1p)
PLAIN(tanh)
PLAIN(power3)
PLAIN(power4)
PLAIN(power5)
PLAIN(power6)
PLAIN(power7)
PLAIN(power8)

static const struct {
    void (*loop)(char **, int64_t *, const int64_t *, Loop *);
    double (*wanted)(double);
    int is_wave;
} functions[] = {
    {exp_check, exp, 0}, {expm1_check, expm1, 0}, {log_check, log, 0}, {log1p_check, log1p, 0}, {tanh_check, tanh, 0},
    {sin_tile, sin, 1}, {cos_tile, cos, 1}, {power3_check, cube, 0}, {power4_check, fourth, 0},
    {power5_check, fifth, 0}, {power6_check, sixth, 0}, {power7_check, seventh, 0}, {power8_check, eighth, 0}};

static int is_close(double x, double y)
{
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
    return x == y || fabs(x - y) <= 4e-15 * fmax(fabs(x), fabs(y)) + 1e-320;
}

static void check_function(Bytes *bytes)
{
    const int which = next(bytes) % (int) (sizeof functions / sizeof *functions);
    const int64_t n = next(bytes) % LARGEST, near = next(bytes) % 3, far = near ? 1 : 2, in_place = near == 2;
    int64_t count = n, steps[] = {8 * far, 8};
    int is_large = 0;
    double *x = malloc((size_t) (8 * n * far)), *out = in_place ? x : malloc((size_t) (8 * n));
    double *wanted = malloc((size_t) (8 * n));
    for (int64_t i = 0; i < n * far; i++) x[i] = number(bytes);
    for (int64_t i = 0; i < n; i++) {
        wanted[i] = functions[which].wanted(x[i * far]);
        is_large |= !(fabs(x[i * far]) < 1e6);
    }
    char *arguments[] = {(char *) x, (char *) out};
    called = 0;
    functions[which].loop(arguments, &count, steps, functions[which].is_wave ? (Loop *) of_numpy : NULL);
    require(called == (functions[which].is_wave && (is_large || far > 1)), "who computes");
    if (!called)
        for (int64_t i = 0; i < n; i++) require(is_close(out[i], wanted[i]), "the function");
    if (!in_place) free(out);
    free(x), free(wanted);
}

static void check_choice(Bytes *bytes)
{
    const int is_wide = next(bytes) & 1, size = is_wide ? 8 : 4, near_x = next(bytes) % 3, near_y = next(bytes) % 3;
    const int64_t n = next(bytes) % LARGEST, across = 1 + next(bytes) % 2;
    int64_t count = n, steps[] = {across, near_x * size, near_y * size, size};
    const size_t ends[] = {(size_t) (n * across), near_x ? (size_t) (n * near_x * size) : (size_t) size,
                           near_y ? (size_t) (n * near_y * size) : (size_t) size, (size_t) (n * size)};
    char *arguments[4];
    for (int k = 0; k < 4; k++) {
        arguments[k] = malloc(ends[k]);
        for (size_t i = 0; i < ends[k]; i++) arguments[k][i] = (char) (k ? next(bytes) : next(bytes) & 1);
    }
    (is_wide ? where8 : where4)(arguments, &count, steps, NULL);
    for (int64_t i = 0; i < n; i++) {
        const char *from = arguments[0][i * across] ? arguments[1] + i * steps[1] : arguments[2] + i * steps[2];
        require(!memcmp(arguments[3] + i * size, from, (size_t) size), "the choice");
    }
    for (int k = 0; k < 4; k++) free(arguments[k]);
}

/* Small integers, so that sums and products are exact in any order. */
static double *integers(Bytes *bytes, int64_t n)
{
    double *x = malloc((size_t) (8 * n));
    for (int64_t i = 0; i < n; i++) x[i] = next(bytes) - 128;
    return x;
}

static void check_sums(Bytes *bytes)
{
    int64_t rows = next(bytes) % LARGEST, width = next(bytes) % LARGEST, across = next(bytes) & 1;
    int64_t n = (next(bytes) & 3) == 0 ? 8 * (rows + width) : rows, steps[] = {0, 8 + 8 * across}, counts[] = {rows, width};
    double *x = integers(bytes, n), total = 3, wanted = 3;
    char *arguments[] = {(char *) &total, (char *) x};
    for (int64_t i = 0; i < n; i++) wanted += x[i];
    called = 0;
    sum_tile(arguments, &n, steps, of_numpy);
    require(across ? called == 1 && total == 3 : total == wanted, "the sum");

    double *row = integers(bytes, across ? rows : width), *out = malloc((size_t) (8 * rows * width));
    char *given[] = {(char *) row, (char *) out};
    steps[1] = 8 * across;
    spread_tile(given, counts, steps, NULL);
    for (int64_t i = 0; i < rows * width; i++) require(out[i] == row[across ? i / width : i % width], "the repeated row");
    free(x), free(row), free(out);
}

static void check_products(Bytes *bytes)
{
    const int is_turned = next(bytes) & 1;
    const int64_t rows = next(bytes) % LARGEST, width = next(bytes) % (2 * LARGEST), size = is_turned ? width : rows;
    double *x = integers(bytes, rows * width), *v = integers(bytes, is_turned ? rows : width);
    double *out = malloc((size_t) (8 * size)), *wanted = calloc((size_t) size + 1, 8);
    int64_t counts[] = {1, is_turned ? width : rows, is_turned ? rows : width};
    char *arguments[] = {(char *) x, (char *) v, (char *) out};
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++) wanted[is_turned ? j : i] += x[i * width + j] * v[is_turned ? i : j];
    (is_turned ? vecmat_tile : matvec_tile)(arguments, counts, NULL, NULL);
    for (int64_t i = 0; i < size; i++) require(out[i] == wanted[i], "the product");
    free(x), free(v), free(out), free(wanted);
}

static void check(Bytes *bytes)
{
    switch (next(bytes) % 4) {
    case 0: check_function(bytes); break;
    case 1: check_choice(bytes); break;
    case 2: check_sums(bytes); break;
    default: check_products(bytes);
    }
}

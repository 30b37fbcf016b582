/* Checks sums, extremes and orders of numbers at any distance, and instructions that read their words. */

#include "bytes.h"
#include <math.h>
#include "../../../python/gradops/jit/native/runtime/vectors.c"

enum { LARGEST = 300 };

static int is_first(double x, double y) /* in ascending order */
{
    return x < y || (isnan(y) && !isnan(x));
}

static void check_instructions(Bytes *bytes)
{
    enum { FROM = 3, INDICES = 40, OUT = 80 };
    const int stride = 1 + next(bytes) % 3, n = 1 + next(bytes) % 12;
    double *memory = malloc((size_t) (8 * (OUT + n))), total = 0;
    int64_t *indices = (int64_t *) memory + INDICES;
    for (int i = 0; i < INDICES; i++) memory[i] = i;
    for (int i = 0; i < n; i++) indices[i] = next(bytes) % n, total += FROM + stride * i;
    vector_pick(&(Words) {.out = OUT, .a = FROM, .b = INDICES, .n = n, .sa = stride}, memory, NULL);
    for (int i = 0; i < n; i++) require(memory[OUT + i] == FROM + (double) (stride * indices[i]), "the elements picked");
    vector_sum(&(Words) {.out = OUT, .a = FROM, .n = n, .sa = stride}, memory, NULL);
    require(memory[OUT] == total, "the sum of an instruction");
    free(memory);
}

static void check(Bytes *bytes)
{
    if (next(bytes) % 8 == 0) {
        check_instructions(bytes);
        return;
    }
    const int64_t n = 1 + (next(bytes) + 256 * (next(bytes) % 4 == 0)) % LARGEST, stride = next(bytes) % 7 - 3;
    const int64_t size = stride ? (n - 1) * llabs(stride) + 1 : 1, first = stride < 0 ? size - 1 : 0;
    const int largest = 1 + next(bytes), is_some_nan = next(bytes) % 3 == 0;
    double *x = malloc(8 * size), total = 0;
    int64_t *whole = malloc(8 * size);
    for (int64_t i = 0; i < size; i++) {
        whole[i] = (next(bytes) + 37 * i) % largest - 5;
        x[i] = is_some_nan && whole[i] % 7 == 3 ? NAN : (double) whole[i];
    }
    for (int64_t i = 0; i < n; i++) total += x[first + i * stride]; /* exact in any order */
    double result;
    sum(&result, x + first, n, stride);
    require(result == total || (isnan(result) && isnan(total)), "the sum");

    int64_t *order = malloc(8 * n), *at = malloc(8);
    for (int is_whole = 0; is_whole < 2; is_whole++) {
#define NUMBER(i) (is_whole ? (double) whole[first + (i) * stride] : x[first + (i) * stride])
        if (is_whole) whole_argsort(order, whole + first, n, stride);
        else argsort(order, x + first, n, stride);
        for (int64_t i = 0; i < n; i++) require(order[i] >= 0 && order[i] < n, "the order's indices");
        for (int64_t i = 1; i < n; i++) {
            const double before = NUMBER(order[i - 1]), after = NUMBER(order[i]);
            require(!is_first(after, before), "the order");
            require(is_first(before, after) || order[i - 1] < order[i], "the order of equal numbers");
        }
        for (int is_least = 0; is_least < 2; is_least++) {
            int64_t wanted = 0;
            for (int64_t i = 1; i < n; i++) {
                const double best = NUMBER(wanted), y = NUMBER(i);
                if (!isnan(best) && (isnan(y) || (is_least ? y < best : y > best))) wanted = i;
            }
            if (is_whole) (is_least ? whole_argmin : whole_argmax)(at, whole + first, n, stride);
            else (is_least ? argmin : argmax)(at, x + first, n, stride);
            require(*at == wanted, "the extreme");
        }
    }
    void *all[] = {x, whole, order, at};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

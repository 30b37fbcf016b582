/* What the drivers share: numbers from bytes, requirements, memory of exact sizes, and a program that makes bytes.
 *
 * tests/python/test_runtime.py compiles each driver with address and undefined-behaviour sanitizers, as a program that
 * checks COUNT random inputs,
 *
 *     DRIVER COUNT SEED
 *
 * or, with FUZZ defined, as the function that libFuzzer calls. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const uint8_t *at;
    size_t left;
} Bytes;

static void check(Bytes *bytes); /* of the driver */

static int next(Bytes *bytes)
{
    if (bytes->left == 0) return 0;
    bytes->left--;
    return *bytes->at++;
}

static void require(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "wrong: %s\n", what);
    abort();
}

/* Copies bytes to memory of exactly their size, where sanitizers see each access beyond. */
static inline void *exact(const void *from, size_t size)
{
    void *copy = malloc(size);
    if (size) memcpy(copy, from, size);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(&(Bytes) {data, size});
    return 0;
}

#ifndef FUZZ
int main(int count, char **arguments)
{
    uint64_t state = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    for (long i = count > 1 ? atol(arguments[1]) : 1000; i > 0; i--) {
        uint8_t data[200];
        for (size_t k = 0; k < sizeof data; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            data[k] = (uint8_t) (state >> 56);
        }
        LLVMFuzzerTestOneInput(data, sizeof data);
    }
    return 0;
}
#endif

/* The meaning of each instruction on numbers: one line of C, from which the interpreter's case (interpreter.c), a vector
 * instruction (elementwise.c), and the LLVM IR of compiled loops and groups (meanings.c) are made.
 *
 * The lists have the order of the opcodes in instructions.py. `_` is a macro that takes an operation's name, the number
 * of its operands, and its result, given the operands x, y and z and the table `functions`. Results have NumPy's bits.
 * Comparisons are quiet, like NumPy's: `x < y` may raise an exception for NaN, where isless(x, y) does not. */

#ifndef GRADOPS_OPERATIONS_H
#define GRADOPS_OPERATIONS_H

#include "functions.h"
#include <math.h>
#include <string.h>

/* An integer is stored as the bits of a number. */
INLINE int64_t whole(double cell)
{
    int64_t found;
    memcpy(&found, &cell, sizeof found);
    return found;
}

INLINE double cell(int64_t whole)
{
    double found;
    memcpy(&found, &whole, sizeof found);
    return found;
}

/* Integers wrap, as in NumPy; overflow of signed integers would be undefined. */
INLINE uint64_t wrapping(double cell)
{
    return (uint64_t) whole(cell);
}

INLINE double wrapped(uint64_t whole)
{
    return cell((int64_t) whole);
}

INLINE int64_t is_wrong_remainder(int64_t remainder, int64_t divisor)
{
    return (remainder != 0) & ((remainder ^ divisor) < 0); /* C's remainder has the sign of the dividend */
}

INLINE int64_t remainder_like_divisor(int64_t x, int64_t y)
{
    return x % y + (is_wrong_remainder(x % y, y) ? y : 0);
}

/* Operations whose vector instructions have loops for contiguous operands, and are compiled with the interpreter. */
#define SIDE_BY_SIDE(_)                                                           \
    _(add, 2, x + y)                                                              \
    _(subtract, 2, x - y)                                                         \
    _(multiply, 2, x * y)                                                         \
    _(divide, 2, x / y)                                                           \
    _(negative, 1, -x)                                                            \
    _(copy, 1, x)                                                                 \
    _(absolute, 1, fabs(x))                                                       \
    _(sqrt, 1, sqrt(x))

/* For 0.0 and -0.0 the second operand is selected, as NumPy does on x86. A NaN among the operands is the result. */
#define LARGER(x, y) (isgreater(x, y) | isnan(x) ? x : y)
#define SMALLER(x, y) (isless(x, y) | isnan(x) ? x : y)

#define PLAIN(_)                                                                  \
    _(single, 1, (double) (float) x)                                              \
    _(floor, 1, floor(x))                                                         \
    _(ceil, 1, ceil(x))                                                           \
    _(trunc, 1, trunc(x))                                                         \
    _(rint, 1, rint(x))                                                           \
    _(sign, 1, isgreater(x, 0.0) ? 1.0 : isless(x, 0.0) ? -1.0 : x + 0.0)         \
    _(maximum, 2, LARGER(x, y))                                                   \
    _(minimum, 2, SMALLER(x, y))                                                  \
    _(fmax, 2, isgreater(x, y) | isnan(y) ? x : y)                                \
    _(fmin, 2, isless(x, y) | isnan(y) ? x : y)                                   \
    _(mod, 2, modulo(x, y, functions))                                            \
    _(floor_divide, 2, floor_divided(x, y, functions))                            \
    _(signbit, 1, whole(x) < 0 ? 1.0 : 0.0)                                       \
    _(equal, 2, x == y)                                                           \
    _(not_equal, 2, x != y)                                                       \
    _(less, 2, isless(x, y))                                                      \
    _(less_equal, 2, islessequal(x, y))                                           \
    _(greater, 2, isgreater(x, y))                                                \
    _(greater_equal, 2, isgreaterequal(x, y))                                     \
    _(logical_and, 2, (x != 0.0) & (y != 0.0))                                    \
    _(logical_or, 2, (x != 0.0) | (y != 0.0))                                     \
    _(logical_xor, 2, (x != 0.0) ^ (y != 0.0))                                    \
    _(logical_not, 1, x == 0.0)                                                   \
    _(isnan, 1, x != x)                                                           \
    _(isinf, 1, fabs(x) == (double) INFINITY)                                     \
    _(isfinite, 1, whole(fabs(x)) < whole((double) INFINITY))                      \
    _(where, 3, x != 0.0 ? y : z)                                                 \
    _(logaddexp, 2, logaddexp(x, y, functions))

/* Pairs of operations as one instruction; both results are rounded. */
#define FUSED_WITH(_, NAME, FIRST)                 \
    _(NAME##_add_left, 3, (x FIRST y) + z)         \
    _(NAME##_subtract_left, 3, (x FIRST y) - z)    \
    _(NAME##_subtract_right, 3, z - (x FIRST y))   \
    _(NAME##_multiply_left, 3, (x FIRST y) * z)    \
    _(NAME##_divide_left, 3, (x FIRST y) / z)      \
    _(NAME##_divide_right, 3, z / (x FIRST y))

#define FUSED(_) FUSED_WITH(_, add, +) FUSED_WITH(_, subtract, -) FUSED_WITH(_, multiply, *) FUSED_WITH(_, divide, /)

/* Divisors are neither 0 nor -1; the lowering rules ensure that. */
#define WHOLE(_)                                                                                             \
    _(whole_add, 2, wrapped(wrapping(x) + wrapping(y)))                                                      \
    _(whole_subtract, 2, wrapped(wrapping(x) - wrapping(y)))                                                 \
    _(whole_multiply, 2, wrapped(wrapping(x) * wrapping(y)))                                                 \
    _(whole_negative, 1, wrapped(0 - wrapping(x)))                                                           \
    _(whole_absolute, 1, wrapped(whole(x) < 0 ? 0 - wrapping(x) : wrapping(x)))                              \
    _(whole_sign, 1, cell((whole(x) > 0) - (whole(x) < 0)))                                                  \
    _(whole_maximum, 2, cell(whole(x) > whole(y) ? whole(x) : whole(y)))                                     \
    _(whole_minimum, 2, cell(whole(x) < whole(y) ? whole(x) : whole(y)))                                     \
    _(whole_fmax, 2, cell(whole(x) > whole(y) ? whole(x) : whole(y)))                                        \
    _(whole_fmin, 2, cell(whole(x) < whole(y) ? whole(x) : whole(y)))                                        \
    _(whole_bitwise_and, 2, cell(whole(x) & whole(y)))                                                       \
    _(whole_bitwise_or, 2, cell(whole(x) | whole(y)))                                                        \
    _(whole_bitwise_xor, 2, cell(whole(x) ^ whole(y)))                                                       \
    _(whole_bitwise_not, 1, cell(~whole(x)))                                                                 \
    _(whole_left_shift, 2, wrapped(wrapping(y) < 64 ? wrapping(x) << (wrapping(y) & 63) : 0))                \
    _(whole_right_shift, 2, cell(whole(x) >> (wrapping(y) < 64 ? wrapping(y) : 63)))                         \
    _(whole_fmod, 2, cell(whole(x) % whole(y)))                                                              \
    _(whole_floor_divide, 2, cell(whole(x) / whole(y) - is_wrong_remainder(whole(x) % whole(y), whole(y))))  \
    _(whole_mod, 2, cell(remainder_like_divisor(whole(x), whole(y))))                                        \
    _(whole_equal, 2, whole(x) == whole(y))                                                                  \
    _(whole_not_equal, 2, whole(x) != whole(y))                                                              \
    _(whole_less, 2, whole(x) < whole(y))                                                                    \
    _(whole_less_equal, 2, whole(x) <= whole(y))                                                             \
    _(whole_greater, 2, whole(x) > whole(y))                                                                 \
    _(whole_greater_equal, 2, whole(x) >= whole(y))                                                          \
    _(narrow, 1, cell((int32_t) whole(x)))                                                                   \
    _(float64_of_whole, 1, (double) whole(x))                                                                \
    _(float32_of_whole, 1, (float) whole(x))                                                                 \
    _(int64_of_float, 1, cell((int64_t) x))                                                                  \
    _(int32_of_float, 1, cell((int32_t) x))

/* Calls of the function whose number in the table follows the operands. */
#define CALLS(_)                                             \
    _(c1, 1, FUNCTION1(functions, number)(x))                \
    _(c2, 2, FUNCTION2(functions, number)(x, y))             \
    _(scipy1, 1, scipy1(x, number, functions))               \
    _(scipy2, 2, scipy2(x, y, number, functions))

#define FUNCTION1(FUNCTIONS, NUMBER) ((double (*const *)(double)) (FUNCTIONS))[NUMBER]
#define FUNCTION2(FUNCTIONS, NUMBER) ((double (*const *)(double, double)) (FUNCTIONS))[NUMBER]

/* Vector instructions without a form on numbers: of vectors.c, and of matrices.c. */
#define ELEMENTS(_)                                                                                          \
    _(prod) _(max) _(min) _(sum) _(logsumexp) _(argmax) _(argmin) _(whole_argmax) _(whole_argmin)            \
    _(dot) _(softmax) _(log_softmax) _(argsort) _(whole_argsort) _(pick)
#define MATRICES(_) _(product) _(factor) _(solved) _(inverse)
#define VECTORS(_) ELEMENTS(_) MATRICES(_)

/* Loads and stores of rows, and how many numbers they move; the first load and store are also vector instructions. */
#define LOADS(_) _(load, 1) _(load2, 2) _(load3, 3) _(load4, 4)
#define STORES(_) _(store, 1) _(store2, 2) _(store3, 3) _(store4, 4)

#define CONTROL(_) _(again) _(unless) _(index) _(require) _(outside)

#define OPCODE(NAME, ...) OPCODE_##NAME,
enum {
    SIDE_BY_SIDE(OPCODE) PLAIN(OPCODE) FUSED(OPCODE) WHOLE(OPCODE) CALLS(OPCODE) VECTORS(OPCODE)
        OPCODE(gather) LOADS(OPCODE) STORES(OPCODE) CONTROL(OPCODE) OPCODES
};

#endif

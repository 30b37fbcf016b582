/* Functions of numbers that are more than an instruction or a call of the C library, with NumPy's bits. */

#include "functions.h"
#include <math.h>

SEPARATE double logaddexp(double x, double y, const Functions *functions)
{
    if (x == y) return x + 0x1.62e42fefa39efp-1; /* log(2); the difference of infinities would be NaN */
    const double difference = x - y;
    if (isnan(difference)) return difference;
    return (difference > 0 ? x : y) + functions->log1p(functions->exp(-fabs(difference)));
}

/* C's remainder has the sign of the dividend; Python's and NumPy's has that of the divisor. */
static int has_other_sign(double remainder, double divisor)
{
    return remainder != 0 && (remainder < 0) != (divisor < 0);
}

/* Returns the remainder as in Python; its sign is that of the divisor, even if it is 0. */
SEPARATE double modulo(double x, double y, const Functions *functions)
{
    const double rest = functions->fmod(x, y);
    if (rest == 0) return copysign(0, y);
    return has_other_sign(rest, y) ? rest + y : rest;
}

/* NumPy's algorithm: subtracts the remainder, divides, and rounds to the nearest integer, as the quotient may have been
 * rounded to just below an integer. */
SEPARATE double floor_divided(double x, double y, const Functions *functions)
{
    const double quotient = x / y;
    if (y == 0) return quotient;
    const double rest = functions->fmod(x, y), exact = (x - rest) / y - has_other_sign(rest, y);
    if (exact == 0) return copysign(0, quotient);
    const double whole = floor(exact);
    return exact - whole > 0.5 ? whole + 1 : whole;
}

/* SciPy's ufuncs never warn, so the exceptions of its functions are cleared. Their last argument is for Cython. */

SEPARATE double scipy1(double x, int64_t number, const Functions *functions)
{
    const int before = raised_before(functions);
    const double result = ((double (*const *)(double, int)) functions)[number](x, 0);
    restore(before, functions);
    return result;
}

SEPARATE double scipy2(double x, double y, int64_t number, const Functions *functions)
{
    const int before = raised_before(functions);
    const double result = ((double (*const *)(double, double, int)) functions)[number](x, y, 0);
    restore(before, functions);
    return result;
}

/* Exponentials, logarithms, tanh, sine, cosine and small powers of eight numbers, without branches.
 *
 * NumPy's own loops are vectorized only on processors with 512-bit registers; elsewhere they call the C library for each
 * element. Results are within 1.1 units in the last place; hyperbolic tangents near 1 are within 1.5.
 *
 * Floating-point exceptions are those of the C library, except for "inexact", and for the overflow of an infinite
 * exponent. Operands are classified by their bits, as a comparison with NaN may raise an exception. For positive numbers
 * the order of the bits is that of the numbers. */

#ifndef GRADOPS_EIGHT_FUNCTIONS_H
#define GRADOPS_EIGHT_FUNCTIONS_H

#include "eights.h"

INLINE uint64_t bits(double x)
{
    uint64_t found;
    memcpy(&found, &x, sizeof found);
    return found;
}

/* The size of a number and its sign, as bits. */
#define SIZE(x) ((Bits) (x) & (uint64_t) INT64_MAX)
#define SIGN(x) ((Bits) (x) ^ SIZE(x))

static const uint64_t infinite = 0x7FF0000000000000;

/* Whether the size of a number is above a limit; false for NaN. */
INLINE Mask is_beyond(Eight x, Eight limit)
{
    const uint64_t after = INT64_MAX - infinite; /* makes the bits of NaN negative */
    return (Mask) (SIZE(x) + after) > (Mask) ((Bits) limit + after);
}

/* Sums of coefficients times powers of z. */
#define SUM2(z, a, b) fused(z, spread(b), spread(a))
#define SUM3(z, a, ...) fused(z, SUM2(z, __VA_ARGS__), spread(a))
#define SUM4(z, a, ...) fused(z, SUM3(z, __VA_ARGS__), spread(a))
#define SUM5(z, a, ...) fused(z, SUM4(z, __VA_ARGS__), spread(a))
#define SUM6(z, a, ...) fused(z, SUM5(z, __VA_ARGS__), spread(a))

/* Added to a number, it rounds the number to an integer, which is then in the last bits of the sum. */
static const double magic = 0x1.8p52;

/* log(2) as a sum of two numbers; the product of the first with an integer below 2048 is exact. */
static const double high = 0x1.62e42fee00000p-1, low = 0x1.a39ef35793c76p-33;

/* (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2 (Chebyshev). */
INLINE Eight exponential(Eight x)
{
    const Eight z = x * x; /* even and odd powers are summed in two independent chains */
    const Eight even = SUM6(z, 0.5, 0.04166666666666667, 0.001388888888888373, 2.4801587325605324e-05,
        2.755727357010214e-07, 2.0914717341716378e-09);
    const Eight odd = SUM5(z, 0.1666666666666667, 0.008333333333326112, 0.0001984126987490126,
        2.7557255297969643e-06, 2.5105259538448494e-08);
    return fused(x, odd, even);
}

/* (log((1 + s) / (1 - s)) / s - 2) / s^2 in powers of s^2, from Sun's fdlibm. */
INLINE Eight logarithmic(Eight x)
{
    const Eight z = x * x; /* even and odd powers are summed in two independent chains */
    const Eight even = SUM4(z, 0.6666666666666735130, 0.2857142874366239149, 0.1818357216161805012,
        0.1479819860511658591);
    const Eight odd = SUM3(z, 0.3999999999940941908, 0.2222219843214978396, 0.1531383769920937332);
    return fused(x, odd, even);
}

/* A number v as n log(2) + rest, with only the high part of log(2); `whole` ends with n. */
typedef struct {
    Bits whole;
    Eight n, rest;
} Multiple;

INLINE Multiple multiple(Eight v)
{
    const Eight turned = fused(v, spread(0x1.71547652b82fep+0), spread(magic)), n = turned - magic;
    return (Multiple) {(Bits) turned, n, fused(-n, spread(high), v)};
}

/* Beyond the edges the result is infinite or 0. The power of 2 is applied as two factors, as it may overflow or
 * underflow where the result does not. */
COPIED Eight eight_exp(Eight x)
{
    const Eight edge = (Eight) (SIGN(x) | bits(750));
    const Multiple it = multiple(choose(is_beyond(x, spread(750)), edge, x));
    const Eight rest = fused(-it.n, spread(low), it.rest);
    const Eight sum = fused(rest * rest, exponential(rest), rest);
    const Bits both = it.whole - (bits(magic) - 2046), half = both >> 1;
    return (1.0 + sum) * (Eight) (half << 52) * (Eight) ((both - half) << 52);
}

/* exp(v) - 1 as a sum of two numbers, and that sum. */
typedef struct {
    Eight main, further, sum;
} Less;

/* exp(v) - 1 is twice (h - 1/2) + h rest + h tail, where h is half the power of 2. The rounding error of the first sum is
 * computed and added. */
INLINE Less less_one(Eight v)
{
    const Multiple it = multiple(v);
    const Eight second = it.n * low, rest = it.rest - second, lost = (it.rest - rest) - second;
    const Eight tail = fused(rest * rest, exponential(rest), lost);
    const Eight h = (Eight) ((it.whole - (bits(magic) - 1022)) << 52), a = h - 0.5, b = h * rest, s = a + b;
    const Eight small = fused(h, tail, (a - s) + b);
    const Mask is_same = it.whole == bits(magic);
    const Eight main = choose(is_same, rest, s + s), further = choose(is_same, tail, small + small);
    return (Less) {main, further, main + further};
}

COPIED Eight eight_expm1(Eight x)
{
    const Eight limit = choose((Mask) x < 0, spread(60), spread(710)), edge = (Eight) ((Bits) limit | SIGN(x));
    const Less found = less_one(choose(is_beyond(x, limit), edge, x));
    return (Eight) ((Bits) found.sum | SIGN(x));
}

/* tanh |x| is -t / (2 + t), where t = expm1(-2 |x|). The quotient is a product with the reciprocal of the divisor,
 * corrected by the rounding errors of all steps. */
COPIED Eight eight_tanh(Eight x)
{
    const Less t = less_one(choose(is_beyond(x, spread(22)), spread(22), (Eight) SIZE(x)) * -2.0);
    const Eight t_low = (t.main - t.sum) + t.further, d = 2.0 + t.sum, d_low = ((2.0 - d) + t.sum) + t_low;
    const Eight over = -1.0 / d, ratio = t.sum * over;
    const Eight lost = fused(ratio, d, t.sum) + fused(ratio, d_low, t_low);
    return (Eight) (SIZE(fused(lost, over, ratio)) | SIGN(x));
}

/* A positive number as 2^(whole - 1023) (1 + f) with 1 + f from 2^-0.5 to 2^0.5. */
typedef struct {
    Bits whole;
    Eight f;
} Split;

INLINE Split split(Eight v)
{
    const uint64_t root = bits(0x1.6a09e667f3bcdp-1);
    const Bits moved = (Bits) v + (bits(1) - root);
    return (Split) {moved >> 52, (Eight) ((moved & (bits(0x1p-1022) - 1)) + root) - 1.0};
}

/* Returns (whole - bias) log(2) + log(1 + f) + more; where `is_bad`, `bad` / 0, which raises the right exception. */
INLINE Eight logarithm(Split it, Eight bias, Eight more, Mask is_bad, Eight bad)
{
    const Eight f = it.f, minus = bias - (Eight) (it.whole | bits(0x1p52));
    const Eight s = choose(is_bad, bad, f) / choose(is_bad, spread(0), f + 2.0), z = s * s;
    const Eight h = (f * 0.5) * f, hp = fused(z, logarithmic(z), h);
    const Eight sum = f - (h - fused(s, hp, fused(minus, spread(-low), more)));
    return choose(is_bad, s, fused(minus, spread(-high), sum));
}

static const double bias = 0x1p52 + 1023;

COPIED Eight eight_log(Eight x)
{
    const Mask is_small = (Mask) SIZE(x) < (int64_t) bits(0x1p-1022); /* multiplied by 2^54 first */
    const Eight v = x * choose(is_small, spread(0x1p54), spread(1));
    const Eight bad = choose(SIZE(x) == 0, spread(-1), choose(x != x, x, spread(0)));
    const Eight biases = choose(is_small, spread(bias + 54), spread(bias));
    const Eight found = logarithm(split(v), biases, spread(0), (Mask) x < 1, bad);
    return choose((Mask) x >= (int64_t) infinite, x, found);
}

/* The rounding error of 1 + x, divided by an approximation of 1 + x, corrects the logarithm. An approximation suffices,
 * as the error is at most half a unit. The quotient is scaled by 2^64 so that it is normal for the largest numbers too.
 * If the power of 2 is 1, f is x itself, and there is no error. */
COPIED Eight eight_log1p(Eight x)
{
    const Mask is_bad = (Mask) -x >= (int64_t) bits(1); /* at most -1 */
    const Eight y = choose(is_bad | ((Mask) SIZE(x) >= (int64_t) infinite), spread(1), x), v = y + 1.0;
    const Eight bad = choose(SIZE(x) == bits(1), spread(-1), choose(x != x, x, spread(0)));
    Split it = split(v);
    const Mask is_near = it.whole == 1023;
    const Eight back = v - 1.0, lost = (y - back) + (1.0 - (v - back));
    /* Minus the bits of a number, this gives the bits of the reciprocal, with a relative error below 0.055. */
    const Eight over = (Eight) (9213872256390791168u + (64ull << 52) - (Bits) v);
    it.f = choose(is_near, y, it.f);
    const Eight more = choose(is_near, spread(0), lost * over * 0x1p-64);
    return choose((Mask) x >= (int64_t) infinite, x, logarithm(it, spread(bias), more, is_bad, bad));
}

/* pi / 2 as a sum of three numbers. */
static const double quarter[] = {1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21};

/* (sin(x) / x - 1) / x^2 in powers of x^2, for |x| <= pi / 4 (Chebyshev). */
INLINE Eight sine(Eight x)
{
    const Eight z = x * x; /* even and odd powers are summed in two independent chains */
    const Eight even = SUM4(z, -0.16666666666666666, -0.0001984126984126457, -2.5052106100926675e-08,
        -7.58549250782124e-13);
    const Eight odd = SUM3(z, 0.008333333333333331, 2.755731921895673e-06, 1.605851097953535e-10);
    return fused(x, odd, even);
}

/* (cos(x) - 1 + x^2 / 2) / x^4 in powers of x^2, for |x| <= pi / 4 (Chebyshev). */
INLINE Eight cosine(Eight x)
{
    const Eight z = x * x; /* even and odd powers are summed in two independent chains */
    const Eight even = SUM3(z, 0.041666666666666664, 2.4801587298533456e-05, 2.087612165887116e-09);
    const Eight odd = SUM3(z, -0.0013888888888887241, -2.755731715246704e-07, -1.1380876948169717e-11);
    return fused(x, odd, even);
}

/* Returns the sine, shifted by quarter turns, of numbers below `largest` in tile_loops.c.
 *
 * The nearest multiple of pi / 2 is subtracted in three parts; the first two have 33 bits, so their products are exact.
 * The remainder is y with rounding error e; let z = y^2. Then both the sine, y + (z y s + e (1 - z / 2)), and the cosine,
 * 1 - z / 2 plus its rounding error and the rest, are computed, and each element selects one of them. */
INLINE Eight wave(Eight x, uint64_t shift)
{
    const Eight shifted = x * 0x1.45f306dc9c883p-1 + magic, n = shifted - magic;
    const Bits turn = (Bits) shifted + shift;
    const Eight t = x - n * quarter[0], w = n * quarter[1], r = t - w;
    const Eight last = fused(-n, spread(quarter[2]), (t - r) - w);
    const Eight y = r + last, e = (r - y) + last, z = y * y, half = z * 0.5;
    const Eight s = y + fused(z * y, sine(z), fused(-half, e, e));
    const Eight one = 1.0 - half, rest = fused(-y, e, (1.0 - one) - half);
    const Eight c = one + fused(z * z, cosine(z), rest);
    const Mask is_cosine = (turn & 1) != 0;
    return (Eight) ((Bits) choose(is_cosine, c, s) ^ (turn << 62 & (uint64_t) INT64_MIN));
}

INLINE Eight eight_sin(Eight x)
{
    return choose(SIZE(x) == 0, x, wave(x, 0)); /* the sine of -0.0 is -0.0 */
}

INLINE Eight eight_cos(Eight x)
{
    return wave(x, 1) + 0.0;
}

/* A product as the sum of a number and its rounding error, so that only the last sum rounds a power. */
typedef struct {
    Eight high, low;
} Product;

INLINE Product start(Eight x)
{
    const Eight high = x * x;
    return (Product) {high, fused(x, x, -high) + 0.0};
}

INLINE Product squared(Product p)
{
    const Eight high = p.high * p.high;
    return (Product) {high, fused(p.low, p.high * 2.0, fused(p.high, p.high, -high))};
}

INLINE Product times(Product p, Eight x)
{
    const Eight high = p.high * x;
    return (Product) {high, fused(p.low, x, fused(p.high, x, -high))};
}

/* If a product overflows, its rounding error is infinite or NaN. The high part alone is then the power, infinite like
 * NumPy's. */
INLINE Eight rounded(Product p)
{
    return p.high + choose((Mask) SIZE(p.low) < (int64_t) infinite, p.low, spread(-0.0));
}

#define POWER(N, PRODUCT)               \
    COPIED Eight eight_power##N(Eight x) \
    {                                   \
        return rounded(PRODUCT);        \
    }

POWER(3, times(start(x), x))
POWER(4, squared(start(x)))
POWER(5, times(squared(start(x)), x))
POWER(6, squared(times(start(x), x)))
POWER(7, times(squared(times(start(x), x)), x))
POWER(8, squared(squared(start(x))))

#endif

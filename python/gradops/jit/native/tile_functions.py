"""LLVM IR of exponentials, logarithms, tanh, sine, cosine and small powers, without branches so that it vectorizes.

:mod:`.tile_source` makes loops over large arrays of these sources, and :mod:`.tile_compiler` fuses several of them.
They are strings as in :class:`.Operation`. NumPy's own loops are vectorized only on processors with 512-bit registers;
elsewhere they call the C library for each element. Results are within 1.1 units in the last place; hyperbolic tangents
near 1 are within 1.5.

Floating-point exceptions are those of the C library, except for "inexact", and for the overflow of an infinite
exponent. Operands are classified by their bits, as a comparison with NaN may raise an exception.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence


def _bits(number: float) -> int:
    """Return the bits of a number as an integer; for positive numbers, the order of the bits is that of the numbers."""
    return struct.unpack("<q", struct.pack("<d", number))[0]


def _literal(number: float) -> str:
    return f"0x{struct.pack('>d', number).hex().upper()}"


def _fused(out: str, x: str, y: str, z: str) -> str:
    return f"{{t}}{out} = call double @llvm.fma.f64(double {x}, double {y}, double {z})"


def _polynomial(out: str, x: str, coefficients: Sequence[float]) -> str:
    """Return IR of a polynomial in ``x``; even and odd powers are summed in two independent chains.

    Args:
        out: the name of the result, without the prefix of temporaries.
        coefficients: the coefficients, from the constant term up.
    """
    lines = [f"{{t}}{out}.xx = fmul double {x}, {x}"]
    sums = []
    for first, name in enumerate(("even", "odd")):
        last, *rest = [_literal(c) for c in coefficients[first::2]][::-1]
        for i, c in enumerate(rest):
            lines.append(_fused(f"{out}.{name}{i}", f"{{t}}{out}.xx", last, c))
            last = f"{{t}}{out}.{name}{i}"
        sums.append(last)
    return "\n".join([*lines, _fused(out, x, sums[1], sums[0])])


_INFINITY = _bits(math.inf)
_MAGIC = 1.5 * 2.0**52
"""Added to a number, it rounds the number to an integer, which is then in the last bits of the sum."""

_HIGH, _LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
"""log(2) as a sum of two numbers; the product of the first with an integer below 2048 is exact."""

_EXPONENTIAL = (
    0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326112, 0.001388888888888373, 0.0001984126987490126,
    2.4801587325605324e-05, 2.7557255297969643e-06, 2.755727357010214e-07, 2.5105259538448494e-08,
    2.0914717341716378e-09,
)  # fmt: skip
"""Coefficients of ``(exp(r) - 1 - r) / r^2`` for ``|r| <= log(2) / 2`` (Chebyshev)."""

_LOGARITHM = (
    0.6666666666666735130, 0.3999999999940941908, 0.2857142874366239149, 0.2222219843214978396,
    0.1818357216161805012, 0.1531383769920937332, 0.1479819860511658591,
)  # fmt: skip
"""Coefficients of ``(log((1 + s) / (1 - s)) / s - 2) / s^2`` in powers of ``s^2``, from Sun's fdlibm."""

_SIZE = f"""{{t}}bits = bitcast double {{x}} to i64
{{t}}size = and i64 {{t}}bits, {2**63 - 1}
{{t}}sign = xor i64 {{t}}bits, {{t}}size
{{t}}is.nan = fcmp uno double {{x}}, {{x}}"""

_AFTER = 2**63 - 1 - _INFINITY
"""Added to the bits of a nonnegative number; it makes those of NaN negative, so NaN fails a signed comparison."""

_MOVED = f"{{t}}moved.size = add i64 {{t}}size, {_AFTER}"

_MULTIPLE = f"""{_fused("turned", "{t}v", _literal(1 / math.log(2)), _literal(_MAGIC))}
{{t}}whole = bitcast double {{t}}turned to i64
{{t}}n = fsub double {{t}}turned, {_literal(_MAGIC)}
{{t}}minus = fneg double {{t}}n
{_fused("first", "{t}minus", _literal(_HIGH), "{t}v")}"""
"""IR that splits ``v`` into ``n log(2) + first``, with only the high part of log(2); ``whole`` ends with ``n``."""

_SERIES = f"""{_polynomial("q", "{t}rest", _EXPONENTIAL)}
{{t}}square = fmul double {{t}}rest, {{t}}rest"""

# Beyond the edges the result is infinite or 0; NaN is not beyond them. The power of 2 is applied as two factors, as it
# may overflow or underflow where the result does not.
_EXP = f"""{_SIZE}
{_MOVED}
{{t}}is.beyond = icmp sgt i64 {{t}}moved.size, {_bits(750.0) + _AFTER}
{{t}}edge.bits = or i64 {{t}}sign, {_bits(750.0)}
{{t}}edge = bitcast i64 {{t}}edge.bits to double
{{t}}v = select i1 {{t}}is.beyond, double {{t}}edge, double {{x}}
{_MULTIPLE}
{_fused("rest", "{t}minus", _literal(_LOW), "{t}first")}
{_SERIES}
{_fused("sum", "{t}square", "{t}q", "{t}rest")}
{{t}}p = fadd double 1.0, {{t}}sum
{{t}}both = sub i64 {{t}}whole, {_bits(_MAGIC) - 2046}
{{t}}half = lshr i64 {{t}}both, 1
{{t}}other = sub i64 {{t}}both, {{t}}half
{{t}}half.bits = shl i64 {{t}}half, 52
{{t}}other.bits = shl i64 {{t}}other, 52
{{t}}half.d = bitcast i64 {{t}}half.bits to double
{{t}}other.d = bitcast i64 {{t}}other.bits to double
{{t}}scaled.a = fmul double {{t}}p, {{t}}half.d
{{r}} = fmul double {{t}}scaled.a, {{t}}other.d"""

# expm1 is twice (h - 1/2) + h rest + h tail, where h is half the power of 2. The rounding error of the first sum is
# computed and added.
_LESS_ONE = f"""{_MULTIPLE}
{{t}}second = fmul double {{t}}n, {_literal(_LOW)}
{{t}}rest = fsub double {{t}}first, {{t}}second
{{t}}lost.a = fsub double {{t}}first, {{t}}rest
{{t}}lost = fsub double {{t}}lost.a, {{t}}second
{_SERIES}
{_fused("tail", "{t}square", "{t}q", "{t}lost")}
{{t}}half = sub i64 {{t}}whole, {_bits(_MAGIC) - 1022}
{{t}}half.bits = shl i64 {{t}}half, 52
{{t}}h = bitcast i64 {{t}}half.bits to double
{{t}}a = fsub double {{t}}h, 0.5
{{t}}b = fmul double {{t}}h, {{t}}rest
{{t}}s = fadd double {{t}}a, {{t}}b
{{t}}e.a = fsub double {{t}}a, {{t}}s
{{t}}e = fadd double {{t}}e.a, {{t}}b
{_fused("small", "{t}h", "{t}tail", "{t}e")}
{{t}}s.twice = fadd double {{t}}s, {{t}}s
{{t}}small.twice = fadd double {{t}}small, {{t}}small
{{t}}is.same = icmp eq i64 {{t}}whole, {_bits(_MAGIC)}
{{t}}main = select i1 {{t}}is.same, double {{t}}rest, double {{t}}s.twice
{{t}}further = select i1 {{t}}is.same, double {{t}}tail, double {{t}}small.twice
{{t}}less = fadd double {{t}}main, {{t}}further"""

_EXPM1 = f"""{_SIZE}
{_MOVED}
{{t}}is.negative = icmp slt i64 {{t}}bits, 0
{{t}}most = select i1 {{t}}is.negative, i64 {_bits(60.0) + _AFTER}, i64 {_bits(710.0) + _AFTER}
{{t}}edge = select i1 {{t}}is.negative, double -60.0, double 710.0
{{t}}is.beyond = icmp sgt i64 {{t}}moved.size, {{t}}most
{{t}}v = select i1 {{t}}is.beyond, double {{t}}edge, double {{x}}
{_LESS_ONE}
{{t}}less.bits = bitcast double {{t}}less to i64
{{t}}signed.bits = or i64 {{t}}less.bits, {{t}}sign
{{r}} = bitcast i64 {{t}}signed.bits to double"""

# tanh |x| is -t / (2 + t), where t = expm1(-2 |x|). The quotient is a product with the reciprocal of the divisor,
# corrected by the rounding errors of all steps.
_TANH = f"""{_SIZE}
{{t}}magnitude = bitcast i64 {{t}}size to double
{_MOVED}
{{t}}is.far = icmp sgt i64 {{t}}moved.size, {_bits(22.0) + _AFTER}
{{t}}near = select i1 {{t}}is.far, double 22.0, double {{t}}magnitude
{{t}}v = fmul double {{t}}near, -2.0
{_LESS_ONE}
{{t}}further.a = fsub double {{t}}main, {{t}}less
{{t}}less.low = fadd double {{t}}further.a, {{t}}further
{{t}}d = fadd double 2.0, {{t}}less
{{t}}d.a = fsub double 2.0, {{t}}d
{{t}}d.b = fadd double {{t}}d.a, {{t}}less
{{t}}d.low = fadd double {{t}}d.b, {{t}}less.low
{{t}}over = fdiv double -1.0, {{t}}d
{{t}}ratio = fmul double {{t}}less, {{t}}over
{_fused("lost.1", "{t}ratio", "{t}d", "{t}less")}
{_fused("lost.2", "{t}ratio", "{t}d.low", "{t}less.low")}
{{t}}lost.12 = fadd double {{t}}lost.1, {{t}}lost.2
{_fused("unsigned", "{t}lost.12", "{t}over", "{t}ratio")}
{{t}}unsigned.bits = bitcast double {{t}}unsigned to i64
{{t}}positive.bits = and i64 {{t}}unsigned.bits, {2**63 - 1}
{{t}}signed.bits = or i64 {{t}}positive.bits, {{t}}sign
{{r}} = bitcast i64 {{t}}signed.bits to double"""


def _logarithm(more: str, f: str, low: str, bias: str) -> str:
    """Return IR of the logarithm of a positive ``v``, as ``n log(2) + log(m)`` with ``m`` from ``2^-0.5`` to ``2^0.5``.

    If ``is.bad`` is true, the result is ``bad / 0``, which raises the right exception.

    Args:
        more: IR to insert after the computation of ``f.a = m - 1``.
        f: the value to use instead of ``f.a``.
        low: a number to add last.
        bias: 2^52 plus the exponent's bias over ``n``.
    """
    root = _bits(math.sqrt(0.5))
    return f"""{{t}}v.bits = bitcast double {{t}}v to i64
{{t}}moved = add i64 {{t}}v.bits, {_bits(1.0) - root}
{{t}}whole = lshr i64 {{t}}moved, 52
{{t}}n.bits = or i64 {{t}}whole, {_bits(2.0**52)}
{{t}}n.above = bitcast i64 {{t}}n.bits to double
{{t}}minus = fsub double {bias}, {{t}}n.above
{{t}}last = and i64 {{t}}moved, {2**52 - 1}
{{t}}m.bits = add i64 {{t}}last, {root}
{{t}}m = bitcast i64 {{t}}m.bits to double
{{t}}f.a = fsub double {{t}}m, 1.0
{more}
{{t}}d.a = fadd double {f}, 2.0
{{t}}d = select i1 {{t}}is.bad, double 0.0, double {{t}}d.a
{{t}}f.or = select i1 {{t}}is.bad, double {{t}}bad, double {f}
{{t}}s = fdiv double {{t}}f.or, {{t}}d
{{t}}z = fmul double {{t}}s, {{t}}s
{_polynomial("p", "{t}z", _LOGARITHM)}
{{t}}f.half = fmul double {f}, 0.5
{{t}}h = fmul double {{t}}f.half, {f}
{_fused("hp", "{t}z", "{t}p", "{t}h")}
{_fused("low.n", "{t}minus", _literal(-_LOW), low)}
{_fused("shp", "{t}s", "{t}hp", "{t}low.n")}
{{t}}less = fsub double {{t}}h, {{t}}shp
{{t}}sum = fsub double {f}, {{t}}less
{_fused("finite", "{t}minus", _literal(-_HIGH), "{t}sum")}
{{t}}of.bad = select i1 {{t}}is.bad, double {{t}}s, double {{t}}finite"""


_BIAS = 2.0**52 + 1023

# A subnormal operand is multiplied by 2^54 first.
_LOG = f"""{_SIZE}
{{t}}is.small = icmp slt i64 {{t}}size, {_bits(2.0**-1022)}
{{t}}scale = select i1 {{t}}is.small, double {_literal(2.0**54)}, double 1.0
{{t}}bias = select i1 {{t}}is.small, double {_literal(_BIAS + 54)}, double {_literal(_BIAS)}
{{t}}v = fmul double {{x}}, {{t}}scale
{{t}}is.bad = icmp slt i64 {{t}}bits, 1
{{t}}is.zero = icmp eq i64 {{t}}size, 0
{{t}}bad.a = select i1 {{t}}is.nan, double {{x}}, double 0.0
{{t}}bad = select i1 {{t}}is.zero, double -1.0, double {{t}}bad.a
{_logarithm("", f="{t}f.a", low="0.0", bias="{t}bias")}
{{t}}is.itself = icmp sge i64 {{t}}bits, {_INFINITY}
{{r}} = select i1 {{t}}is.itself, double {{x}}, double {{t}}of.bad"""

_OVER = 9213872256390791168
"""Subtracting the bits of a number from this gives the bits of the reciprocal, with a relative error below 0.055."""

# The rounding error of 1 + x, divided by an approximation of 1 + x, corrects the logarithm. An approximation suffices,
# as the error is at most half a unit. The quotient is scaled by 2^64 so that it is normal for the largest numbers too.
# If n is 0, m - 1 is x itself, and there is no error.
_LOG1P_REST = f"""{{t}}is.near = icmp eq i64 {{t}}whole, 1023
{{t}}f = select i1 {{t}}is.near, double {{t}}y, double {{t}}f.a
{{t}}back = fsub double {{t}}v, 1.0
{{t}}lost.x = fsub double {{t}}y, {{t}}back
{{t}}lost.b = fsub double {{t}}v, {{t}}back
{{t}}lost.1 = fsub double 1.0, {{t}}lost.b
{{t}}lost = fadd double {{t}}lost.x, {{t}}lost.1
{{t}}over.bits = sub i64 {_OVER + (64 << 52)}, {{t}}v.bits
{{t}}over = bitcast i64 {{t}}over.bits to double
{{t}}low.b = fmul double {{t}}lost, {{t}}over
{{t}}low.a = fmul double {{t}}low.b, {_literal(2.0**-64)}
{{t}}low = select i1 {{t}}is.near, double 0.0, double {{t}}low.a"""

_LOG1P = f"""{_SIZE}
{{t}}is.negative = icmp slt i64 {{t}}bits, 0
{{t}}is.large = icmp sge i64 {{t}}size, {_bits(1.0)}
{{t}}is.bad = and i1 {{t}}is.negative, {{t}}is.large
{{t}}is.special = icmp sge i64 {{t}}size, {_INFINITY}
{{t}}is.odd = or i1 {{t}}is.bad, {{t}}is.special
{{t}}y = select i1 {{t}}is.odd, double 1.0, double {{x}}
{{t}}v = fadd double {{t}}y, 1.0
{{t}}is.one = icmp eq i64 {{t}}size, {_bits(1.0)}
{{t}}bad.a = select i1 {{t}}is.nan, double {{x}}, double 0.0
{{t}}bad = select i1 {{t}}is.one, double -1.0, double {{t}}bad.a
{_logarithm(_LOG1P_REST, f="{t}f", low="{t}low", bias=_literal(_BIAS))}
{{t}}is.itself = icmp sge i64 {{t}}bits, {_INFINITY}
{{r}} = select i1 {{t}}is.itself, double {{x}}, double {{t}}of.bad"""

FUNCTIONS = {"exp": _EXP, "expm1": _EXPM1, "log": _LOG, "log1p": _LOG1P, "tanh": _TANH}
"""LLVM IR of functions of ``{x}``, as in :class:`.Operation`, by the ufuncs' names."""


# Sine and cosine. The nearest multiple of pi/2 is subtracted in three parts; the first two have 33 bits, so their
# products are exact up to LARGEST. The remainder is y0 with rounding error y1; let z = y0^2. Then both the sine,
# y0 + (z y0 s + y1 (1 - z / 2)), and the cosine, 1 - z / 2 plus its rounding error and the rest, are computed, and each
# element selects one of them.

LARGEST = 1e6
"""The largest operand for which the sine and cosine here are accurate."""

_QUARTER = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21
"""``pi / 2`` as a sum of three numbers."""

_SINE = (
    -0.16666666666666666, 0.008333333333333331, -0.0001984126984126457, 2.755731921895673e-06,
    -2.5052106100926675e-08, 1.605851097953535e-10, -7.58549250782124e-13,
)  # fmt: skip
"""Coefficients of ``(sin(x) / x - 1) / x^2`` in powers of ``x^2``, for ``|x| <= pi / 4`` (Chebyshev)."""

_COSINE = (
    0.041666666666666664, -0.0013888888888887241, 2.4801587298533456e-05, -2.755731715246704e-07,
    2.087612165887116e-09, -1.1380876948169717e-11,
)  # fmt: skip
"""Coefficients of ``(cos(x) - 1 + x^2 / 2) / x^4`` in powers of ``x^2``."""


def _sine(first: int, last: str) -> str:
    """Return IR of a sine, shifted by ``first`` quarter turns; ``last`` computes the result from ``signed.d``."""
    return f"""{{t}}turned = fmul double {{x}}, {_literal(2 / math.pi)}
{{t}}shifted = fadd double {{t}}turned, {_literal(_MAGIC)}
{{t}}f = fsub double {{t}}shifted, {_literal(_MAGIC)}
{{t}}quarter.i = bitcast double {{t}}shifted to i64
{{t}}quarter = add i64 {{t}}quarter.i, {first}
{{t}}f1 = fmul double {{t}}f, {_literal(_QUARTER[0])}
{{t}}t = fsub double {{x}}, {{t}}f1
{{t}}w = fmul double {{t}}f, {_literal(_QUARTER[1])}
{{t}}r = fsub double {{t}}t, {{t}}w
{{t}}e1 = fsub double {{t}}t, {{t}}r
{{t}}e2 = fsub double {{t}}e1, {{t}}w
{{t}}minus = fneg double {{t}}f
{_fused("low", "{t}minus", _literal(_QUARTER[2]), "{t}e2")}
{{t}}y0 = fadd double {{t}}r, {{t}}low
{{t}}y1.a = fsub double {{t}}r, {{t}}y0
{{t}}y1 = fadd double {{t}}y1.a, {{t}}low
{{t}}z = fmul double {{t}}y0, {{t}}y0
{_polynomial("sp", "{t}z", _SINE)}
{_polynomial("cp", "{t}z", _COSINE)}
{{t}}s.v = fmul double {{t}}z, {{t}}y0
{{t}}half = fmul double {{t}}z, 0.5
{{t}}s.m = fneg double {{t}}half
{_fused("s.y", "{t}s.m", "{t}y1", "{t}y1")}
{_fused("s.c", "{t}s.v", "{t}sp", "{t}s.y")}
{{t}}s = fadd double {{t}}y0, {{t}}s.c
{{t}}w1 = fsub double 1.0, {{t}}half
{{t}}c.e = fsub double 1.0, {{t}}w1
{{t}}c.e1 = fsub double {{t}}c.e, {{t}}half
{{t}}zz = fmul double {{t}}z, {{t}}z
{{t}}y.m = fneg double {{t}}y0
{_fused("c.y", "{t}y.m", "{t}y1", "{t}c.e1")}
{_fused("c.c", "{t}zz", "{t}cp", "{t}c.y")}
{{t}}c = fadd double {{t}}w1, {{t}}c.c
{{t}}odd.i = and i64 {{t}}quarter, 1
{{t}}odd = icmp ne i64 {{t}}odd.i, 0
{{t}}chosen = select i1 {{t}}odd, double {{t}}c, double {{t}}s
{{t}}sign = shl i64 {{t}}quarter, 62
{{t}}sign.top = and i64 {{t}}sign, -9223372036854775808
{{t}}bits = bitcast double {{t}}chosen to i64
{{t}}signed = xor i64 {{t}}bits, {{t}}sign.top
{{t}}signed.d = bitcast i64 {{t}}signed to double
{last}"""


# The sine of -0.0 is -0.0.
WAVES = {
    "sin": _sine(0, "{t}same = fcmp oeq double {x}, 0.0\n{r} = select i1 {t}same, double {x}, double {t}signed.d"),
    "cos": _sine(1, "{r} = fadd double {t}signed.d, 0.0"),
}
"""LLVM IR of functions that are accurate for operands up to :data:`LARGEST`, by the ufuncs' names."""


def _power(exponent: int) -> str:
    """Return IR of an integer power of ``{x}``, by repeated squaring."""
    # Products are computed with their rounding errors, so only the last sum rounds the power.
    lines, last = [], 0
    for digit in bin(exponent)[3:]:
        for of_x in (False, True)[: 1 + int(digit)]:
            h, low = f"{{t}}h{last}" if last else "{x}", f"{{t}}l{last}"
            other, last = "{x}" if of_x else h, last + 1
            p, q, out = f"{{t}}h{last}", f"{{t}}q{last}", f"{{t}}l{last}"
            lines += [f"{p} = fmul double {h}, {other}", f"{q}.n = fneg double {p}"]
            lines.append(f"{q} = call double @llvm.fma.f64(double {h}, double {other}, double {q}.n)")
            if last == 1:
                lines.append(f"{out} = fadd double {q}, 0.0")
            else:
                lines.append(f"{q}.c = fmul double {other}, {'1.0' if of_x else '2.0'}")
                lines.append(f"{out} = call double @llvm.fma.f64(double {low}, double {q}.c, double {q})")
    # If a product overflows, its rounding error is inf - inf, a NaN. The low part is then ignored, and the high part
    # alone is the power, infinite like NumPy's.
    lines.append(f"{{t}}s = fadd double {{t}}h{last}, {{t}}l{last}")
    lines.append(f"{{t}}size = call double @llvm.fabs.f64(double {{t}}l{last})")
    lines.append("{t}finite = fcmp olt double {t}size, 0x7FF0000000000000")
    lines.append(f"{{r}} = select i1 {{t}}finite, double {{t}}s, double {{t}}h{last}")
    return "\n".join(lines)


POWERS = {n: _power(n) for n in range(3, 9)}
"""LLVM IR of powers of ``{x}``, by the exponent."""

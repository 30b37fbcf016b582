"""Instructions on whole numbers, which stand in memory as the 64 bits of an int64.

Those of int32 are int64's that ``narrow`` has wrapped to 32 bits, as NumPy's wrap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

WHOLES = (np.dtype("int64"), np.dtype("int32"))

_LIKE: dict[str, tuple[Callable, str]] = {
    "add": (np.add, "{t}r = add i64 {t}x, {t}y"),
    "subtract": (np.subtract, "{t}r = sub i64 {t}x, {t}y"),
    "multiply": (np.multiply, "{t}r = mul i64 {t}x, {t}y"),
    "negative": (np.negative, "{t}r = sub i64 0, {t}x"),
    "absolute": (
        np.absolute,
        "{t}m = sub i64 0, {t}x\n{t}c = icmp slt i64 {t}x, 0\n{t}r = select i1 {t}c, i64 {t}m, i64 {t}x",
    ),
    "sign": (
        np.sign,
        "{t}p = icmp sgt i64 {t}x, 0\n{t}a = zext i1 {t}p to i64\n{t}m = ashr i64 {t}x, 63\n{t}r = or i64 {t}a, {t}m",
    ),
    "maximum": (np.maximum, "{t}c = icmp sgt i64 {t}x, {t}y\n{t}r = select i1 {t}c, i64 {t}x, i64 {t}y"),
    "minimum": (np.minimum, "{t}c = icmp slt i64 {t}x, {t}y\n{t}r = select i1 {t}c, i64 {t}x, i64 {t}y"),
    # by divisors other than 0 and -1, which the rules see to
    "floor_divide": (
        np.floor_divide,
        """{t}q = sdiv i64 {t}x, {t}y
{t}l = srem i64 {t}x, {t}y
{t}s = xor i64 {t}l, {t}y
{t}o = icmp slt i64 {t}s, 0
{t}n = icmp ne i64 {t}l, 0
{t}b = and i1 {t}o, {t}n
{t}d = sext i1 {t}b to i64
{t}r = add i64 {t}q, {t}d""",
    ),
    "mod": (
        np.mod,
        """{t}l = srem i64 {t}x, {t}y
{t}s = xor i64 {t}l, {t}y
{t}o = icmp slt i64 {t}s, 0
{t}n = icmp ne i64 {t}l, 0
{t}b = and i1 {t}o, {t}n
{t}d = select i1 {t}b, i64 {t}y, i64 0
{t}r = add i64 {t}l, {t}d""",
    ),
}
_COMPARED = {
    "equal": (np.equal, "eq"),
    "not_equal": (np.not_equal, "ne"),
    "less": (np.less, "slt"),
    "less_equal": (np.less_equal, "sle"),
    "greater": (np.greater, "sgt"),
    "greater_equal": (np.greater_equal, "sge"),
}
_UNCHANGED = ("floor", "ceil", "trunc", "rint", "copy", "where")
"""What is for whole numbers what it is for others."""


def named(name: str) -> str | None:
    """The instruction for whole numbers that does what another does for floats; None where there is none."""
    if name in _LIKE or name in _COMPARED:
        return f"whole_{name}"
    return name if name in ("copy", "where") else "copy" if name in _UNCHANGED else None


def whole(x):
    """Numbers of the memory as the int64 that they are."""
    return x.view(np.int64)


def _bits(x):
    return np.asarray(x, np.int64).view(np.float64)


def _of_wholes(ufunc: Callable, gives_wholes: bool) -> Callable:
    def meaning(*operands):
        result = ufunc(*map(whole, operands))
        return _bits(result) if gives_wholes else result

    return meaning


_X = "{t}x = bitcast double {x} to i64\n"
_Y = "{t}y = bitcast double {y} to i64\n"
_R = "\n{r} = bitcast i64 {t}r to double"


def operations(make: Callable) -> dict:
    """The operations by their names; ``make`` makes one of its meaning, LLVM's source and the number of operands."""
    found = {}
    for name, (meaning, source) in _LIKE.items():
        count = 2 if "{t}y" in source else 1
        found[f"whole_{name}"] = make(_of_wholes(meaning, True), _X + _Y * (count - 1) + source + _R, count)
    for name, (meaning, predicate) in _COMPARED.items():
        source = f"{_X}{_Y}{{t}}c = icmp {predicate} i64 {{t}}x, {{t}}y\n{{r}} = uitofp i1 {{t}}c to double"
        found[f"whole_{name}"] = make(_of_wholes(meaning, False), source, 2)
    found["narrow"] = make(
        lambda x: _bits(whole(x).astype(np.int32)),
        _X + "{t}n = trunc i64 {t}x to i32\n{t}r = sext i32 {t}n to i64" + _R,
        1,
    )
    found["float64_of_whole"] = make(lambda x: whole(x).astype(np.float64), _X + "{r} = sitofp i64 {t}x to double", 1)
    found["float32_of_whole"] = make(
        lambda x: whole(x).astype(np.float32).astype(np.float64),
        _X + "{t}s = sitofp i64 {t}x to float\n{r} = fpext float {t}s to double",
        1,
    )
    found["int64_of_float"] = make(lambda x: _bits(x.astype(np.int64)), "{t}r = fptosi double {x} to i64" + _R, 1)
    found["int32_of_float"] = make(
        lambda x: _bits(x.astype(np.int32)),
        "{t}n = fptosi double {x} to i32\n{t}r = sext i32 {t}n to i64" + _R,
        1,
    )
    return found

"""Mathieu, parabolic cylinder and spheroidal functions, which SciPy computes together with their derivatives.

The second derivative follows from the differential equation, so there are derivatives by the argument of all orders
(NIST's Digital Library of Mathematical Functions, 12.2, 28.2, 28.20, 30.2). Parameters have no derivatives.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable

import numpy as np

from ... import _scipy, ops
from ...annotations import Operand, Tensor
from ...extend import derivative
from .._define import composed, refused, ufunc
from .._tensors import constant, floating

__all__ = """
    mathieu_a mathieu_b mathieu_cem mathieu_even_coef mathieu_modcem1 mathieu_modcem2 mathieu_modsem1
    mathieu_modsem2 mathieu_odd_coef mathieu_sem obl_ang1 obl_ang1_cv obl_cv obl_cv_seq obl_rad1 obl_rad1_cv
    obl_rad2 obl_rad2_cv pbdv pbvv pbwa pro_ang1 pro_ang1_cv pro_cv pro_cv_seq pro_rad1 pro_rad1_cv pro_rad2
    pro_rad2_cv
""".split()

mathieu_even_coef, mathieu_odd_coef = constant("special.mathieu_even_coef"), constant("special.mathieu_odd_coef")
pro_cv_seq, obl_cv_seq = constant("special.pro_cv_seq"), constant("special.obl_cv_seq")


MAX_PARAMETER = 1e6
"""The magnitude of a parameter from which SciPy's code reads out of bounds or does not terminate."""


def guarded_results(name: str, *xs) -> tuple:
    """Return SciPy's results; NaN for arguments for which its code reads out of bounds or does not terminate."""
    valid = np.ones((), bool)
    if name.startswith(("mathieu", "pro", "obl")):
        for x in xs:
            valid = valid & (np.abs(x) < MAX_PARAMETER)
    if not name.startswith(("mathieu", "pb")):
        for x in xs[:3]:
            valid = valid & (np.abs(x) <= 200)
    if name.startswith("mathieu"):
        m, q = xs[0], np.abs(np.where(np.abs(xs[1]) < MAX_PARAMETER, xs[1], 0.0))
        root = np.sqrt(q)
        few = 7.5 + root * (56.1 + root * (-134.7 + 90.7 * root))
        many = 17.0 + root * (3.1 + root * (-0.126 + 0.0037 * root))
        valid = valid & (m >= 0) & (np.where(q <= 1, few, many) + m / 2 < 250)
    safe = valid.all()
    results = getattr(_scipy.special, name)(*(xs if safe else [np.where(valid, x, np.ones((), x.dtype)) for x in xs]))
    several = results if isinstance(results, tuple) else (results,)
    return several if safe else tuple([np.where(valid, y, np.nan).astype(y.dtype) for y in several])


# Characteristic values -----------------------------------------------------------------------------------------------

POINTS = 512


def _mathieu_slope(name: str) -> Callable:
    """Return the derivative by ``q``, the mean of ``2 * cos(2 * x) * y**2``, by the trapezoidal rule."""

    def function(m, q):
        places = np.arange(POINTS) * (360 / POINTS)
        m, q = np.broadcast_arrays(m, q)
        y = guarded_results(name, m[..., None], q[..., None], places)[0]
        return np.asarray(np.sum(np.cos(places * (math.pi / 90)) * y * y, -1) * (4 / POINTS)).astype(q.dtype)

    return function


@ufunc(
    lambda m, q: guarded_results("mathieu_a", m, q)[0],
    m=refused("mathieu_a", "m", "an order"),
    q=lambda g, m, q: g * _a_slope(m, q),
)
def mathieu_a(m: Operand, q: Operand) -> Tensor:
    """Characteristic value of the even Mathieu function of order ``m``.

    Gradient:
        By ``q`` an integral of the function's square (perturbation theory), to order 1; an error by ``m``.
    """


@ufunc(
    lambda m, q: guarded_results("mathieu_b", m, q)[0],
    m=refused("mathieu_b", "m", "an order"),
    q=lambda g, m, q: g * _b_slope(m, q),
)
def mathieu_b(m: Operand, q: Operand) -> Tensor:
    """Characteristic value of the odd Mathieu function of order ``m``.

    Gradient:
        By ``q`` an integral of the function's square (perturbation theory), to order 1; an error by ``m``.
    """


@ufunc(_mathieu_slope("mathieu_cem"))
def _a_slope(m: Operand, q: Operand) -> Tensor:
    """The derivative of ``mathieu_a`` by ``q``."""


@ufunc(_mathieu_slope("mathieu_sem"))
def _b_slope(m: Operand, q: Operand) -> Tensor:
    """The derivative of ``mathieu_b`` by ``q``."""


for _slope, _name in ((_a_slope, "mathieu_a"), (_b_slope, "mathieu_b")):
    derivative(_slope, m=refused(_name, "m", "an order"), q=refused(_name, "q", "beyond order 1"))


@ufunc(lambda *xs: guarded_results("pro_cv", *xs)[0])
def pro_cv(m: Operand, n: Operand, c: Operand) -> Tensor:
    """Characteristic value of a prolate spheroidal function.

    Gradient:
        An error.
    """


@ufunc(lambda *xs: guarded_results("obl_cv", *xs)[0])
def obl_cv(m: Operand, n: Operand, c: Operand) -> Tensor:
    """Characteristic value of an oblate spheroidal function.

    Gradient:
        An error.
    """


for _value, _name in ((pro_cv, "pro_cv"), (obl_cv, "obl_cv")):
    derivative(_value, m=refused(_name, "m"), n=refused(_name, "n"), c=refused(_name, "c"))


# Functions -----------------------------------------------------------------------------------------------------------


def _op(name: str, i: int, count: int) -> Callable:
    """Return an op of the parameters and ``x`` for the value, or for the derivative."""

    def of_scipy(*xs):
        return guarded_results(name, *xs)[i]

    def one(a: Operand, x: Operand) -> Tensor:
        """A solution of a differential equation."""

    def two(a: Operand, b: Operand, x: Operand) -> Tensor:
        """A solution of a differential equation."""

    def three(a: Operand, b: Operand, c: Operand, x: Operand) -> Tensor:
        """A solution of a differential equation."""

    def four(a: Operand, b: Operand, c: Operand, d: Operand, x: Operand) -> Tensor:
        """A solution of a differential equation."""

    function = (one, two, three, four)[count - 1]
    function.__name__ = function.__qualname__ = f"{name}_{i}"
    return ufunc(of_scipy)(function)


def _solution(name: str, title: str, parameters: str, argument: str, second: Callable, unit: float = 1.0) -> Callable:
    """Return the public function for a pair of value and derivative.

    Args:
        second: the second derivative as a function of ``x``, the value, the derivative and the parameters.
        unit: the length of ``x``'s unit; SciPy differentiates by a unit of 1.
    """
    known = parameters.split()
    value, slope = _op(name, 0, len(known)), _op(name, 1, len(known))
    letters = "abcd"[: len(known)]

    def bend(x, *given):
        return unit * second(x, value(*given, x), slope(*given, x), *given)

    rules: list[tuple[Callable, Callable]] = [
        (value, lambda x, *given: unit * slope(*given, x)),
        (slope, bend),
    ]
    for op, rule in rules:
        refusals: dict = {letter: refused(name, one) for letter, one in zip(letters, known)}
        derivative(op, **refusals, x=_argument_rule(len(known), rule))
    names = [*known, argument]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters_of = [inspect.Parameter(one, kind, annotation="Operand") for one in names]
    signature = inspect.Signature(parameters_of, return_annotation="tuple")

    def function(*args, **kwargs):
        given = floating(*signature.bind(*args, **kwargs).arguments.values())
        return value(*given), slope(*given)

    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__doc__ = f"""{title}, and its derivative{" by the angle in radians" if unit != 1 else ""}.

    Returns:
        Two tensors of the broadcast shape.

    Gradient:
        By ``{argument}`` the derivative, and that of the differential equation; an error by all else.
    """
    return composed(function)


def _argument_rule(count: int, rule: Callable) -> Callable:
    """Return a rule by ``x`` whose signature names the parameters."""
    return (
        lambda g, a, x: g * rule(x, a),
        lambda g, a, b, x: g * rule(x, a, b),
        lambda g, a, b, c, x: g * rule(x, a, b, c),
        lambda g, a, b, c, d, x: g * rule(x, a, b, c, d),
    )[count - 1]


DEGREE = math.pi / 180


def _mathieu(characteristic: Callable) -> Callable:
    return lambda x, y, _, m, q: (2 * q * ops.cos(2 * DEGREE * x) - characteristic(m, q)) * y


def _modified_mathieu(characteristic: Callable) -> Callable:
    return lambda x, y, _, m, q: (characteristic(m, q) - 2 * q * ops.cosh(2 * x)) * y


def _spheroidal(sign: int, characteristic: Callable | None, radial: bool) -> Callable:
    """Return ``y''`` from ``(1 - s * x**2) * y'' - 2 * s * x * y' + (...) * y = 0``; ``s`` is ``sign``."""

    def second(x, y, slope, m, n, c, value=None):
        value = characteristic(m, n, c) if characteristic is not None else value
        square = x * x
        if not radial:
            rest = value - sign * (c * c) * square - m * m / (1 - square)
            return (2 * x * slope - rest * y) / (1 - square)
        room = square - sign
        rest = value - c * c * square + sign * m * m / room
        return (rest * y - 2 * x * slope) / room

    return second


_MODIFIED = "{} modified Mathieu function of kind {}"
mathieu_cem = _solution("mathieu_cem", "Even Mathieu function", "m q", "x", _mathieu(mathieu_a), DEGREE)
mathieu_sem = _solution("mathieu_sem", "Odd Mathieu function", "m q", "x", _mathieu(mathieu_b), DEGREE)
mathieu_modcem1, mathieu_modcem2 = (
    _solution(
        f"mathieu_modcem{kind}",
        _MODIFIED.format("Even", kind),
        "m q",
        "x",
        _modified_mathieu(mathieu_a),
    )
    for kind in (1, 2)
)
mathieu_modsem1, mathieu_modsem2 = (
    _solution(
        f"mathieu_modsem{kind}",
        _MODIFIED.format("Odd", kind),
        "m q",
        "x",
        _modified_mathieu(mathieu_b),
    )
    for kind in (1, 2)
)
pbdv = _solution("pbdv", "Parabolic cylinder function D", "v", "x", lambda x, y, _, v: (x * x / 4 - v - 0.5) * y)
pbvv = _solution("pbvv", "Parabolic cylinder function V", "v", "x", lambda x, y, _, v: (x * x / 4 - v - 0.5) * y)
pbwa = _solution("pbwa", "Parabolic cylinder function W", "a", "x", lambda x, y, _, a: (a - x * x / 4) * y)


def _spheroidals(kind: str, radial: bool, title: str) -> tuple[Callable, ...]:
    made = []
    for prefix, sign, shape, value in (("pro", 1, "Prolate", pro_cv), ("obl", -1, "Oblate", obl_cv)):
        name = f"{prefix}_{kind}"
        made.append(_solution(name, f"{shape} {title}", "m n c", "x", _spheroidal(sign, value, radial)))
        made.append(
            _solution(
                f"{name}_cv",
                f"{shape} {title} of known characteristic value",
                "m n c cv",
                "x",
                _spheroidal(sign, None, radial),
            )
        )
    return tuple(made)


pro_ang1, pro_ang1_cv, obl_ang1, obl_ang1_cv = _spheroidals("ang1", False, "angular spheroidal function")
pro_rad1, pro_rad1_cv, obl_rad1, obl_rad1_cv = _spheroidals("rad1", True, "radial spheroidal function of kind 1")
pro_rad2, pro_rad2_cv, obl_rad2, obl_rad2_cv = _spheroidals("rad2", True, "radial spheroidal function of kind 2")

"""The facts of an op as laws, which :func:`check` tests on calls of the op with arrays.

A law returns True or False, or None if a call cannot tell: one with a single element, or with integers for a law about
linearity.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _tree, autodiff, backends, config, ops
from ..errors import ArgumentError, BackendError, GradientError
from ..functional import grad
from ..ops._dispatch import Op
from .definition import entry_of


def results(entry: Op, arguments: dict) -> list[np.ndarray]:
    return [np.asarray(y) for y in _tree.flatten(entry.call(**arguments))[0]]


def tensors(entry: Op, arguments: dict) -> dict:
    return {name: arguments[name] for name in entry.tensors if arguments.get(name) is not None}


def floating(entry: Op, arguments: dict, kinds: str = "fc") -> dict[str, np.ndarray]:
    """The tensors that are arrays of floating numbers."""
    given = tensors(entry, arguments)
    return {name: x for name, x in given.items() if isinstance(x, np.ndarray) and x.dtype.kind in kinds}


def alike(found, expected) -> bool:
    return all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True) for a, b in zip(found, expected)
    )


def first(entry: Op, arguments: dict):
    """The first argument, if it is an array of numbers or bools."""
    x = arguments.get(entry.parameters[0])
    return x if entry.parameters[0] in entry.tensors and isinstance(x, np.ndarray) else None


def elementwise(entry: Op, arguments: dict):
    """If all elements of the arguments equal those at one position, all results equal the result at that position."""
    given, ys = tensors(entry, arguments), results(entry, arguments)
    if (
        not given
        or not all(isinstance(x, (np.ndarray, np.generic, int, float, complex)) for x in given.values())
        or len(ys) != 1
    ):
        return False if given else None
    try:
        shape = np.broadcast_shapes(*map(np.shape, given.values()))
    except ValueError:
        return False
    if ys[0].shape != shape:
        return False
    size = ys[0].size
    if size < 2 or (ys[0] == ys[0].flat[0]).all():
        return None
    for k in (0, size // 2, size - 1):
        same = {name: np.broadcast_to(np.broadcast_to(x, shape).flat[k], shape) for name, x in given.items()}
        if not alike(results(entry, {**arguments, **same}), [np.broadcast_to(ys[0].flat[k], shape)]):
            return False
    return True


def moves(entry: Op, arguments: dict):
    """If the first argument's elements are replaced by positions, the positions end up where the elements do."""
    x = first(entry, arguments)
    if x is None or not x.size:
        return None
    expected = results(entry, arguments)
    positions = results(entry, {**arguments, entry.parameters[0]: np.arange(float(x.size)).reshape(x.shape)})
    whole = [np.isreal(p) & np.isfinite(p) & (p == np.floor(p.real)) for p in positions if p.dtype.kind in "fciu"]
    if len(whole) != len(expected) or not all(map(np.all, whole)):
        return False
    places = [p.real.astype(int) for p in positions]
    if any(((p < 0) | (p >= x.size)).any() for p in places):
        return False
    return alike([x.reshape(-1)[p] for p in places], expected) if x.size > 1 else None


def reduces(entry: Op, arguments: dict):
    """Results have the shape of a sum, and are equal if all reduced lines are equal."""
    x = first(entry, arguments)
    if x is None or entry.parameters[1:2] != ("axis",):
        return False
    axis, ys = arguments.get("axis"), results(entry, arguments)
    axis = tuple(axis) if isinstance(axis, list) else axis
    if len(ys) != 1 or ys[0].shape != np.sum(x, axis, keepdims=arguments.get("keepdims", False)).shape:
        return False
    if axis is None or x.ndim < 2 or not x.size:
        return None
    axes = [a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))]
    line = tuple(slice(None) if a in axes else slice(0, 1) for a in range(x.ndim))
    if ys[0].size < 2:
        return None
    y = results(entry, {**arguments, entry.parameters[0]: np.ascontiguousarray(np.broadcast_to(x[line], x.shape))})[0]
    return alike([y], [np.full_like(y, ys[0].flat[0])])


def linear_in(entry: Op, arguments: dict, names: tuple):
    """True if ``op(a x + b z) == a op(x) + b op(z)``, jointly for all of ``names``; None if the call cannot tell."""
    x: dict[str, Any] = {name: arguments.get(name) for name in names}
    parts = [v for value in x.values() for v in (value if isinstance(value, (list, tuple)) else [value])]
    if not parts or any(np.asarray(v).dtype.kind not in "fc" for v in parts) or not sum(map(np.size, parts)):
        return None
    numbers = np.random.default_rng(5)
    z = {
        name: [numbers.uniform(0.3, 0.9, np.shape(v)) for v in value]
        if isinstance(value, (list, tuple))
        else numbers.uniform(0.3, 0.9, np.shape(value))
        for name, value in x.items()
    }

    def joined(a, b, one, other):
        if isinstance(one, (list, tuple)):
            return [a * np.asarray(v) + b * w for v, w in zip(one, other)]
        return a * np.asarray(one) + b * other

    if any(map(np.any, results(entry, {**arguments, **{name: joined(0, 0, x[name], z[name]) for name in names}}))):
        return False
    both = {name: joined(1.25, -0.5, x[name], z[name]) for name in names}
    ys = [results(entry, {**arguments, **values}) for values in (x, z, both)]
    if not all(y.dtype.kind in "fc" and np.isfinite(y).all() for y in ys[0]):
        return None
    if [y.shape for y in ys[0]] != [y.shape for y in ys[1]]:
        return False
    if not any(map(np.any, ys[0])):
        return None
    tolerance = 1e-4 if any(y.real.itemsize <= 4 for y in ys[0]) else 1e-8
    return all(np.allclose(c, 1.25 * a - 0.5 * b, tolerance, tolerance) for a, b, c in zip(*ys))


MAGNITUDES = [1e-300, 1e-160, 1e-30, 1e-8, 1e-3, 0.03, 0.5, 1.0, 2.0, 3.0, 6.0, 10.0, 30.0, 100.0, 700.0, 740.0]
MAGNITUDES += [1e4, 1e9, 1e155, 1e300]
REALS = np.array([0.0, *MAGNITUDES, *(-x for x in MAGNITUDES), -2.5, -8.6, -37.5])
"""Numbers at which formulas fail: tiny, at the edge of a branch, where ``exp`` and squares overflow."""


def domain(entry: Op, arguments: dict):
    """Results are NaN outside of the domain and nowhere else."""
    x = first(entry, arguments)
    limits = entry.facts.domain
    if x is None or len(entry.tensors) != 1 or x.dtype.kind != "f" or not entry.facts.elementwise or limits is None:
        return None
    (y,) = results(entry, {**arguments, entry.parameters[0]: REALS.astype(x.dtype)})
    low, high = limits
    return y.dtype.kind != "f" or bool((np.isnan(y) == (REALS < low) | (REALS > high)).all())


def folds(entry: Op, arguments: dict):
    """The op of two on one element after the other gives the result for all of them."""
    x, found = first(entry, arguments), entry.facts.folds
    if x is None or x.size < 2 or x.dtype.kind not in "fiu" or not entry.facts.reduces:
        return None
    x = x.reshape(-1).astype(float)
    (y,) = results(entry, {entry.parameters[0]: x})
    return any(
        alike([y], [np.asarray(functools.reduce(getattr(np, name), x))]) for name in ([found] if found else FOLDS)
    )


FOLDS = ("add", "multiply", "maximum", "minimum", "logical_or", "logical_and")


def steps(entry: Op, arguments: dict):
    """A small move of numbers that are not near a step changes nothing."""
    xs = floating(entry, arguments)
    if not xs or not entry.facts.elementwise or not entry.differentiable:
        return None
    near = {
        name: np.floor(x) + 0.3137 / (i + 1.37) if x.dtype.kind == "f" else x for i, (name, x) in enumerate(xs.items())
    }
    moved = {name: x + 1e-4 * (i + 1) * (1j if x.dtype.kind == "c" else 1) for i, (name, x) in enumerate(near.items())}
    return alike(results(entry, {**arguments, **near}), results(entry, {**arguments, **moved}))


def shape_only(entry: Op, arguments: dict):
    """Other elements give the same result."""
    xs = floating(entry, arguments)
    if not any(x.size > 1 for x in xs.values()):
        return None
    others = {name: np.resize([np.nan, np.inf, 0.0, -1.5 - i, 0.5], x.shape) for i, (name, x) in enumerate(xs.items())}
    try:
        return alike(results(entry, arguments), results(entry, {**arguments, **others}))
    except Exception:  # these are outside the domain
        return False


def exact(entry: Op, arguments: dict):
    """The result in float32 is the result in float64, rounded."""
    xs = floating(entry, arguments, "f")
    if not xs or any(isinstance(x, float) for x in arguments.values()):  # a number has another value in float32
        return None
    single = {name: x.astype(np.float32) for name, x in xs.items()}
    ys = results(entry, {**arguments, **single})
    zs = results(entry, {**arguments, **{name: x.astype(float) for name, x in single.items()}})
    return all(np.array_equal(y, z.astype(y.dtype), equal_nan=y.dtype.kind == "f") for y, z in zip(ys, zs))


def conditions(entry: Op, arguments: dict):
    """The truth values of the numbers give the same result."""
    xs = {name: arguments.get(name) for name in entry.facts.conditions}
    truths = {name: np.asarray(x) != 0 for name, x in xs.items() if x is not None and not isinstance(x, (list, tuple))}
    return alike(results(entry, arguments), results(entry, {**arguments, **truths})) if truths else None


def whole(entry: Op, arguments: dict):
    """Numbers with a fraction are an error."""
    for name in entry.facts.whole:
        try:
            results(entry, {**arguments, name: arguments[name] + 0.5})
        except Exception:
            continue
        return False
    return True if entry.facts.whole else None


LAWS = {
    "elementwise": elementwise,
    "moves": moves,
    "reduces": reduces,
    "domain": domain,
    "folds": folds,
    "steps": steps,
    "shape_only": shape_only,
    "exact": exact,
    "conditions": conditions,
    "whole": whole,
}


def check(op: Callable, *arguments, natural: bool = True, tolerance: float = 1e-6, **settings) -> None:
    """Check an op's declarations against the op itself, at some arguments: facts, rules, kernels.

    Each fact is a law (``elementwise``: if all elements equal those at one position, so do all results). The values and
    gradients on each loaded library are compared with those on NumPy arrays, and the rules, to second
    order, with finite differences.

    Args:
        op: an op made by :func:`op`.
        arguments, settings: the arguments of a call, with tensors as NumPy arrays of several unequal elements.
        natural: True if the rules are the derivatives of the values. False for rules that are meant to differ; then
            only the agreement of the libraries is checked.
        tolerance: the largest relative and absolute difference between libraries.

    Raises:
        GradientError: gradients differ between libraries, or from finite differences.
        BackendError: values differ between libraries.
        ArgumentError: a fact does not hold; the message names it.

    Gradient:
        None.

    Examples:
        >>> import numpy as np
        >>> from gradops import errors, extend, grad
        >>> @extend.op(elementwise=True)
        ... def doubled(x):
        ...     return 2 * x
        >>> extend.derivative(doubled, x=lambda g: 3 * g)
        >>> try:
        ...     extend.check(doubled, np.array([0.5, 2.0]))
        ... except errors.GradientError:
        ...     print("3, not 2:", grad(doubled)(1.0))
        3, not 2: 3.0

    See Also:
        :func:`derivative`, :func:`gradops.autodiff.gradcheck`.
    """
    entry = entry_of(op)
    given = entry.signature.bind(*arguments, **settings)
    given.apply_defaults()
    with config.backend_scope("numpy"), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _hold_facts(entry, given.arguments)
        places = [
            (name, i)
            for name in entry.tensors
            for i, x in enumerate(given.arguments[name] if name in entry.many else [given.arguments[name]])
            if np.asarray(x).dtype.kind in "fc"
        ]
        _compare_libraries(entry, given.arguments, places, tolerance)
        if natural and places and entry.differentiable:
            leaves = [np.array(_argument(given.arguments, entry, place)) for place in places]
            call = _function(entry, given.arguments, places)
            for checked in (autodiff.gradcheck, autodiff.gradgradcheck):
                checked(lambda *xs: tuple(_tree.flatten(call(*xs))[0]), tuple(leaves), rtol=1e-3)


def _hold_facts(entry: Op, arguments: dict[str, Any]) -> None:
    hint = "leave the fact out of `extend.op()`"
    for fact, law in LAWS.items():
        if getattr(entry.facts, fact) and law(entry, arguments) is False:
            said = f"is not `{fact}`"
            if fact == "domain":
                said = f"is NaN inside its domain, {entry.facts.domain}, or is not NaN outside of it"
                hint = "declare it: `domain=(low, high)`, or `domain=None` if it is not an interval"
            raise ArgumentError(f"`{entry.name}` {said}.", argument=fact, hint=hint)
    for names in linear_claims(entry):
        if linear_in(entry, arguments, names) is False:
            words = " and ".join(f"`{name}`" for name in names)
            raise ArgumentError(f"`{entry.name}` is not linear in {words}.", argument="linear", hint=hint)


def linear_claims(entry: Op) -> list[tuple[str, ...]]:
    """The groups of arguments that an op declares to be jointly linear in."""
    facts = entry.facts
    moved = [entry.parameters[:1]] if facts.moves else []
    return [*filter(None, [facts.linear]), *[(name,) for name in facts.multilinear], *moved]


def _argument(arguments: dict[str, Any], entry: Op, place: tuple[str, int]):
    name, i = place
    return arguments[name][i] if name in entry.many else arguments[name]


def _function(entry: Op, arguments: dict[str, Any], places: list[tuple[str, int]]) -> Callable:
    """The op as a function of the tensors at ``places``."""

    def call(*xs):
        given = {name: list(x) if name in entry.many else x for name, x in arguments.items()}
        for (name, i), x in zip(places, xs):
            if name in entry.many:
                given[name][i] = x
            else:
                given[name] = x
        return entry.call(*entry._public_arguments([given[name] for name in entry.parameters])[0])

    return call


def _compare_libraries(entry: Op, arguments: dict[str, Any], places: list, tolerance: float) -> None:
    call = _function(entry, arguments, places)
    ws: list = []

    def loss(*xs):
        ys = [y for y in _tree.flatten(call(*xs))[0] if ops.dtype(y)[:5] in ("float", "bfloa")]
        if not ws:
            ws.extend(np.random.default_rng(3).uniform(0.5, 1.5, y.shape) for y in ys)
        return sum(ops.sum(ops.multiply(y, w)) for y, w in zip(ys, ws))

    def outcome(backend: backends.Backend) -> tuple[list, list]:
        xs = [backend.convert(np.asarray(_argument(arguments, entry, place)), "float64") for place in places]
        values = [backends.backend_of(y).to_numpy(y) for y in _tree.flatten(call(*xs))[0]]
        if not xs or not entry.differentiable:
            return values, []
        return values, [ops.convert_to_numpy(g) for g in grad(loss, argnums=tuple(range(len(xs))))(*xs)]

    wanted = outcome(backends.embedded())
    for backend in backends.loaded_backends():
        if backend.name not in backends.NAMES or backend.kernel(entry.name) is None is entry.body:
            continue
        with config.backend_scope(backend.name):
            found = outcome(backend)
        for what, error, mine, theirs in zip(("values", "gradients"), (BackendError, GradientError), found, wanted):
            for a, b in zip(mine, theirs):
                if not np.allclose(a, b, tolerance, tolerance, equal_nan=True):
                    raise error(f"`{entry.name}`: the {what} on {backend.name} are {a}; on NumPy they are {b}.")

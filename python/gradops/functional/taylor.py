"""Taylor mode: a tensor along a curve, represented by the coefficients of its series, and the ops on such series.

Linear ops act on each coefficient; ops that are linear in each argument are convolutions. For any other op with a
derivative, ``y = y0 + integral of y'``, where ``y'`` is the op's backward rule applied to series of one order less.
Coefficients are computed lazily, so a rule may read the ``y`` that it defines. The results of a rule's ops are cached
while an op is computed, so that the rules of ``sin`` and ``cos`` share theirs. In this way the recurrences of Griewank
and Walther (2008, chapter 13), with quadratic cost, follow from the rules of the backward pass.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import _tree, backends, dtypes
from .._scopes import changed
from ..autodiff import cotangents, gradients, record
from ..autodiff.modes import ensured_recording, recording, series_depth, series_end, set_recording
from ..autodiff.variable import Variable, data_of, wrap
from ..errors import ArgumentError, ArgumentTypeError, GradientError, TypeOf
from ..flow.elementary import stop_gradient
from ..ops import (
    _dispatch,
    conversion,
    creation,
    elementwise,
    indexing,
    numpy_functions,
    operators,
    reductions,
    shaping,
)
from ..ops._registry import rule
from .batched import Batched, deeper
from .transformations import _Run, jvp


class Series:
    """A tensor along a curve ``t``: the coefficients of 1, ``t``, ``t**2``, ... up to ``order``.

    Args:
        first: the value, which is coefficient 0.
        more: a function that computes coefficient ``k``; called once for each.
        level: the number of enclosing :func:`jet` calls and batches.
    """

    __slots__ = ("level", "order", "_known", "_more", "__weakref__")
    __array_priority__ = 500

    def __init__(self, first, more: Callable[[int], Any], level: int, order: int):
        self._known, self._more = [first], more
        self.level, self.order = level, order

    def coefficient(self, k: int) -> Any:
        """Coefficient ``k``."""
        while len(self._known) <= k:
            self._known.append(self._more(len(self._known)))
        return self._known[k]

    def mapped(self, f: Callable) -> Series:
        """Return the series with ``f`` of each coefficient."""
        return Series(f(self.coefficient(0)), lambda k: f(self.coefficient(k)), self.level, self.order)

    shape = property(lambda self: self.coefficient(0).shape)
    dtype = property(lambda self: self.coefficient(0).dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: conversion.size(self.coefficient(0)))

    def __len__(self) -> int:
        return len(self.coefficient(0))

    def __iter__(self):
        return (operators.OPERATORS["getitem"](self, i) for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.coefficient(0))

    def _leaving(self, *_, **__):
        raise ArgumentTypeError("a Python number or a NumPy array made from a tensor has no series.", hint=_STOP)

    __float__ = __int__ = __complex__ = __index__ = __array__ = item = tolist = numpy = _leaving

    def __setitem__(self, *_):
        raise GradientError("in-place writes have no series in `jet`.", hint="use `ops.slice_update` or `ops.where`")

    _described = _constant = _write = __setitem__


_STOP = "use ops, or cut the dependence with `stop_gradient()`"

# The backend ----------------------------------------------------------------------------------------------------------

wraps = True


def is_tensor_type(kind: type) -> bool:
    return issubclass(kind, Series)


def dtype_name(x: Series) -> str:
    return conversion.dtype(x.coefficient(0))


def to_numpy(x: Series):
    x._leaving()


def convert(value, dtype=None, like=None):
    """Constants stay tensors of their library; numbers become NumPy's."""
    if backends.backend_of(value) in (None, backends.embedded()):
        return backends.embedded().convert(value, dtype)
    return value if dtype is None else conversion.cast(value, dtype)


def zeros(shape, dtype=None):
    return backends.embedded().kernel("zeros")(shape, dtype)


@functools.cache
def _register() -> None:
    """Register series as a backend and give them operators."""
    backend = backends.register("series", sys.modules[__name__], root=__name__, partial=True)
    backend.derivatives.adopt(
        SimpleNamespace(
            stop=lambda x: stop_gradient(x.coefficient(0)),
            stopped=nullcontext,  # `modes.series_end` stops series
            custom=lambda run, inputs: run(*inputs)[0],
            checkpoint=lambda run, inputs, *_: run(*inputs),
            compile=lambda f: f,
            records=lambda x: True,
        )
    )
    operators.give(Series)
    numpy_functions.give(Series)
    _dispatch.trace_with(Series, _make)


# Ops ------------------------------------------------------------------------------------------------------------------

_within: ContextVar[tuple[int, dict]] = ContextVar("gradops_within_series", default=(0, {}))
"""The level of the op whose rule is running, and the cached results of the rule's ops, of which some are partial."""


def _level(x) -> float:
    """Return the nesting level of a value among derivatives and batches; ops of the innermost level apply first."""
    if isinstance(x, Variable):
        inside = _level(x.data)
        return inside and inside + 0.5
    return x.level if isinstance(x, (Series, Batched)) else 0


def _make(op: _dispatch.Op, kinds: tuple) -> Callable:
    """Return the implementation of an op for calls with a series among the arguments."""
    flat = [kind for part in kinds for kind in (part if type(part) is frozenset else (part,))]
    recorder = record.make_recorder(op, kinds) if any(issubclass(kind, Variable) for kind in flat) else None

    def implementation(*arguments):
        top = max(_tree.items([arguments[p] for p in op.positions]), key=_level)
        if isinstance(top, Variable) and recorder is not None:
            return recorder(*arguments)
        if isinstance(top, Batched):
            return op.native(backends.backend_of(top))(*arguments)
        return _applied(op, arguments, top)

    return implementation


def _applied(op: _dispatch.Op, arguments: tuple, top: Series):
    level, results = _within.get()
    postponed = level == top.level
    if not postponed:
        results = {}
    parts = [_key(x, top) for x in arguments]
    key = (op.name, id(top), *parts) if None not in parts else ()
    if key in results:
        return results[key][0]
    y = _Call(op, arguments, top, results).result()
    if key:
        results[key] = y, top
    if not postponed:
        for part in _tree.items(y):
            if isinstance(part, Series) and part.level == top.level:
                part.coefficient(part.order)
    return y


def _key(x, top: Series) -> Any:
    """Return an argument's part of the cache key: the series itself, a number or a name; None if it has no key."""
    if x is top:
        return Series
    if isinstance(x, (np.ndarray, np.generic)) and not x.ndim:
        return x.dtype, x.item()
    return (type(x), x) if x is None or isinstance(x, (str, int, float, complex)) else None


class _Call:
    """An op applied to arguments; some of them are series of one level."""

    def __init__(self, op: _dispatch.Op, arguments: tuple, top: Series, results: dict):
        self.op, self.level, self.order, self.results = op, top.level, top.order, results
        given = list(arguments)
        for name, p in zip(op.tensors, op.positions):
            plain = isinstance(given[p], (list, tuple)) or type(given[p]) in _dispatch.NUMBERS and name not in op.weak
            if plain and name not in op.many and given[p] is not None:
                given[p] = backends.embedded().convert(given[p])
            if record.has_derivative(op.name) and record.rule_of(op, name) is None:
                given[p] = _tree.map_items(lambda x: x.coefficient(0) if self._is_own(x) else x, given[p])
        self.arguments = tuple(given)
        self.moving = {n for n, p in zip(op.tensors, op.positions) if any(map(self._is_own, _tree.items(given[p])))}

    def _is_own(self, x) -> bool:
        return isinstance(x, Series) and x.level == self.level

    def apply(self, coefficient: Callable) -> Any:
        """Return the op's result for one coefficient of each series."""
        return self.op.call(*_tree.map_items(lambda x: coefficient(x) if self._is_own(x) else x, self.arguments))

    def result(self):
        op, facts = self.op, self.op.facts
        if not self.moving or not op.differentiable or facts.steps or self._ends():
            return self._value()
        if "series" in op.rules:  # where facts and derivatives give none, or at a cost that doubles with each order
            return op.rules["series"](self)
        if self.moving <= set(facts.linear):
            return self._several(lambda k: self._linear(k, facts.linear))
        if facts.moves and self.moving == {op.parameters[0]}:
            return self._several(lambda k: self._linear(k, ()))
        if self.moving <= set(facts.multilinear):
            return self._several(self._convolved)
        if facts.elementwise and record.has_derivative(op.name):
            return self._integrated(self._slope)
        if op.body is not None:
            return op.body(*self.arguments)
        if record.has_derivative(op.name):
            return self._integrated(self._transposed)
        raise GradientError(f"`{op.name}` has no derivative, and so no series in `jet`.", hint=_STOP)

    def _ends(self) -> bool:
        """True if a mode or scope makes results constants."""
        return self.level <= series_end.get()

    def _value(self):
        return self.apply(lambda x: x.coefficient(0))

    def _series(self, first, more: Callable) -> Any:
        if not _moves(first):
            return first
        if not _derivatives_below(first).records_now():
            raise GradientError(
                "the library of the tensors records nothing here, which `jet` cannot see.",
                hint="use `gradops.autodiff.inference_mode()` for `torch.inference_mode()`",
            )
        return Series(first, more, self.level, self.order)

    def _several(self, coefficient: Callable):
        """Return the series of each of the op's results; ``coefficient(k)`` computes their coefficients ``k``."""
        known = functools.cache(coefficient)
        first = known(0)
        if not isinstance(first, (list, tuple)):
            return self._series(first, known)
        return _tree.alike(first, [self._series(y, lambda k, i=i: known(k)[i]) for i, y in enumerate(first)])

    def _linear(self, k: int, places):
        """Return the op applied to coefficient ``k`` of each series, with zeros for constants that enter linearly."""
        if not k:
            return self._value()
        given = list(self.arguments)
        for name, p in zip(self.op.tensors, self.op.positions):
            if name in self.moving or name in places:
                given[p] = _tree.map_items(lambda x: x.coefficient(k) if self._is_own(x) else _zeros(x), given[p])
        return self.op.call(*given)

    def _convolved(self, k: int):
        """Return the sum over all ways of distributing ``k`` among the series."""
        own = [x for x in _tree.items(self.arguments) if self._is_own(x)]
        total = None
        for parts in _divisions(k, len(own)):
            term = self.apply(lambda x, left=list(parts): x.coefficient(left.pop(0)))
            total = term if total is None else elementwise.add(total, term)
        return total

    def _integrated(self, slope: Callable):
        """Return the series, of one or all results, whose derivatives are ``slope(y)``."""

        @functools.cache
        def slopes():
            with changed(_within, (self.level, self.results)), changed(recording, True):
                return slope(y)

        def made(i: int, first):
            def more(k: int):
                slope = slopes()[i]
                if not self._is_own(slope):
                    return creation.zeros_like(first)
                part, dtype = elementwise.multiply(slope.coefficient(k - 1), 1 / k), conversion.dtype(first)
                return part if conversion.dtype(part) == dtype else conversion.cast(part, dtype)

            return self._series(first, more)

        first = self._value()
        parts = [made(i, part) for i, part in enumerate(_tree.items(first))]
        y = _tree.alike(first, parts) if isinstance(first, (list, tuple)) else parts[0]  # `slopes` reads `y` lazily
        return y

    def _rules(self, y) -> list[tuple]:
        """Return each series among the arguments with the function from the upstream gradient to its gradient."""
        saved = (*self.arguments, y)

        def bound(name: str, x):
            pull: Any = record.rule_of(self.op, name)
            return x, lambda g: pull(g, saved, x)

        places = zip(self.op.tensors, self.op.positions)
        return [bound(name, self.arguments[p]) for name, p in places if name in self.moving]

    def _slope(self, y) -> list:
        """Return the sum of an elementwise op's rules, applied to the derivatives of its arguments."""
        if not self.op.rules["vjp"].holomorphic:
            self._check_analytic(x for x, _ in self._rules(y))
        parts = []
        for x, pull in self._rules(y):
            found = pull(_fitted(_derivative(x), y.shape))
            if found is not None:
                parts.append(found)
        return [functools.reduce(elementwise.add, parts) if parts else None]

    def _transposed(self, y) -> list:
        """Return the products of the Jacobian with the derivatives; the rules are linear in ``g`` and transposed."""
        self._check_analytic([*_tree.items(y), *(x for x, _ in self._rules(y))])
        g = [wrap(self._nothing(part)) if self._is_own(part) else creation.zeros_like(part) for part in _tree.items(y)]
        points = [point.requires_grad_() for point in g if isinstance(point, Variable)]
        pairs = [(pull(g if isinstance(y, (list, tuple)) else g[0]), x) for x, pull in self._rules(y)]
        pairs = [(cotangents.fit(p, x), _derivative(x)) for p, x in pairs if isinstance(p, Variable) and p._active]
        pulled, tangents = [p for p, _ in pairs], [wrap(t) for _, t in pairs]
        found = gradients.grad(pulled, points, tangents, create_graph=True, materialize_grads=True)
        return [data_of(next(left)) if isinstance(x, Variable) else None for left in [iter(found)] for x in g]

    def _check_analytic(self, xs) -> None:
        if any(cotangents.is_complex(x.dtype) for x in xs):
            raise GradientError(f"`{self.op.name}` of complex numbers has no series in `jet`.", hint=_STOP)

    def _nothing(self, like: Series) -> Series:
        zeros = creation.zeros_like(like.coefficient(0))
        return Series(zeros, lambda k: zeros, self.level, self.order)


def _derivatives_below(x):
    """Return the derivatives of the library whose numbers a tensor holds below all wrappers."""
    while isinstance(x, (Series, Batched, Variable)):
        x = x.coefficient(0) if isinstance(x, Series) else x.value if isinstance(x, Batched) else x.data
    return backends.backend_of(x).derivatives


def _end_series(before: int) -> Callable:
    """Stop series and recording; return a function that resumes them, except series stopped ``before``."""
    if series_end.get() == series_depth.get():  # a mode of gradops stopped them, and will resume them
        return lambda: None
    was = recording.get()
    set_recording(False)

    def go_on():
        recording.set(was)
        series_end.set(before)

    return go_on


def _adapt_to_mode(x):
    """Return a result, recorded in any mode, adapted to the current mode."""
    if isinstance(x, Variable):
        return x if recording.get() else x.detach()
    return x if _derivatives_below(x).records_now() else stop_gradient(x)


def _moves(x) -> bool:
    return dtypes.is_floating(conversion.dtype(x))


def _zeros(x):
    """Return a zero in place of a constant, which is a tensor, a number, or None."""
    return x if x is None else type(x)(0) if type(x) in _dispatch.NUMBERS else creation.zeros_like(x)


def _divisions(k: int, count: int) -> Iterator[tuple[int, ...]]:
    """Return all tuples of ``count`` non-negative integers whose sum is ``k``."""
    if count == 1:
        yield (k,)
        return
    for first in range(k + 1):
        for rest in _divisions(k - first, count - 1):
            yield (first, *rest)


def _derivative(x: Series) -> Series:
    """Return the series of ``dx/dt``."""

    def more(k: int):
        return elementwise.multiply(x.coefficient(k + 1), k + 1)

    return Series(x.coefficient(1), more, x.level, x.order)


def _fitted(x: Series, shape) -> Any:
    return x if tuple(x.shape) == tuple(shape) else shaping.broadcast_to(x, tuple(shape))


@rule("series", "divide")
def _divide(call: _Call):
    a, b = call.arguments
    if not call._is_own(b):
        return call._several(lambda k: call._linear(k, ()))
    first = call._value()

    def more(k: int):
        rest = [elementwise.multiply(b.coefficient(j), y.coefficient(k - j)) for j in range(1, k + 1)]
        total = functools.reduce(elementwise.add, rest)
        over = elementwise.subtract(a.coefficient(k), total) if call._is_own(a) else elementwise.negative(total)
        return elementwise.divide(over, b.coefficient(0))

    y = call._series(first, more)  # `more` reads `y` lazily
    return y


@rule("series", "max", "min", "sort", "segment_max", "segment_min", "window_max", "sparsemax")
def _locally_linear(call: _Call):
    """An op that selects elements by order; its derivative is constant in a neighbourhood of the point."""
    x, *settings = call.arguments

    def coefficient(k: int):
        if not k:
            return call._value()
        return jvp(lambda x: call.op.call(x, *settings), (x.coefficient(0),), (x.coefficient(k),))[1]

    return call._several(coefficient)


@rule("series", "abs")
def _abs(call: _Call):
    """``abs``; for complex numbers, where it is not analytic, from the real and imaginary parts."""
    (x,) = call.arguments
    if not cotangents.is_complex(x.dtype):
        return call._integrated(call._slope)
    return elementwise.sqrt(elementwise.add(*(elementwise.square(part) for part in (x.real, x.imag))))


def _kinked(order: int):
    """The rule of an op whose coefficients are 0 below ``order``, and NaN from ``order`` on if ``x`` has moved."""

    def kinked(call: _Call):
        arguments = dict(zip(call.op.parameters, call.arguments))
        x, zero, value = arguments["x"], arguments["zero"], call._value()

        def coefficient(k: int):
            steps = range(1, k + 1) if k >= order and call._is_own(x) else ()
            moved = [reductions.moved(x.coefficient(j), zero) for j in steps]
            still = creation.zeros_like(value)
            return indexing.where(functools.reduce(elementwise.logical_or, moved), math.nan, still) if moved else still

        return call._several(coefficient)

    return kinked


rule("series", "kink")(_kinked(2))
rule("series", "kink_pulled", "kink_pushed")(_kinked(1))


def jet(f: Callable, primals, series) -> tuple[Any, Any]:
    """Return the value of ``f`` and its derivatives along a curve through ``primals``, to any order: Taylor mode.

    The curve is ``t -> primals + series[0] * t + series[1] * t**2 / 2 + ...``. If ``primals`` is a number and its
    series is 1 followed by zeros, the results are the derivatives of ``f`` with respect to it. The cost grows with the
    square of the order for most functions, whereas nested forward mode doubles it with each order.

    Args:
        f: see :func:`gradops.vjp`.
        primals: a tuple or list of the arguments of ``f``.
        series: a tuple or list with a list for each of ``primals``: its first derivative along the curve, its second,
            ..., each of the argument's structure and shape. All lists have the same length, the order.

    Returns:
        ``(value, derivatives)``, in the structure of the value; ``derivatives`` has a list of ``order`` derivatives for
        each tensor.

    Raises:
        GradientError: a value that is not a floating tensor; in ``f``, an op without a derivative, a complex op that is
            not analytic, or a write in place.
        ArgumentTypeError: in ``f``, a Python number or a NumPy array made from a tensor.
        ArgumentError, ArgumentTypeError, ShapeError: ``primals`` or ``series`` of another form.

    Gradient:
        Differentiable again, forward and reverse, because the computation consists of ops. For a function with a custom
        derivative (``custom_gradient``, ``custom_jvp``, ``scaled_gradient``) the series are those of the ops that
        compute its value, because a first derivative does not determine the higher ones. ``stop_gradient`` and
        ``no_grad`` end series. If elements are selected by order (``max``, ``sort``), the selection at ``primals``
        holds. After ``jax.experimental.jet``; Griewank & Walther (2008), chapter 13.

    Examples:
        The derivatives of the sine at 0, and the derivatives of a loss along a direction:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import jet
        >>> value, derivatives = jet(ops.sin, (0.0,), ([1.0, 0.0, 0.0],))
        >>> print(value, *derivatives)
        0.0 1.0 0.0 -1.0
        >>> w, v = np.array([1.0, 2.0]), np.array([1.0, -1.0])
        >>> print(*jet(lambda w: ops.sum(w**3), (w,), ([v, np.zeros(2)],))[1])
        -9.0 18.0
        >>> print(gradops.grad(lambda x: jet(ops.sin, (x,), ([1.0, 0.0],))[1][1])(0.0))
        -1.0

    See Also:
        :func:`gradops.jvp` for the first order, :func:`hessian`.
    """
    for name, given in (("primals", primals), ("series", series)):
        if not isinstance(given, (tuple, list)) or len(given) != len(primals) or not len(given):
            raise ArgumentTypeError(
                f"`jet`: `{name}` must be a tuple, one for each argument of `f`; got {{given}}.",
                argument=name,
                given=TypeOf(given),
            )
    orders = {len(terms) if isinstance(terms, (tuple, list)) else 0 for terms in series}
    if len(orders) > 1 or 0 in orders:
        raise ArgumentError(
            "`jet`: `series` must have a list of derivatives for each of `primals`, all of one length, 1 or more.",
            argument="series",
        )
    run, order = _Run("jet", f, tuple(primals), beside=series), orders.pop()
    terms = [run.tangents("series", tuple(part[k] for part in series)) for k in range(order)]
    _register()
    followed = _derivatives_below(run.at.leaves[0]).followed
    with ensured_recording(), deeper() as level, changed(series_depth, level):

        def curve(i: int, x) -> Series:
            return Series(x, lambda k: elementwise.multiply(terms[k - 1][i], 1 / math.factorial(k)), level, order)

        with followed(functools.partial(_end_series, series_end.get())):
            outputs = run._flat(*[curve(i, x) for i, x in enumerate(run.at.leaves)])

    def derivatives(y) -> list:
        y = data_of(y) if isinstance(data_of(y), Series) else y  # `f` wrapped it in a variable
        if not isinstance(y, Series) or y.level != level:
            y = run.at._tensor(y)
            return [y, *[creation.zeros_like(y)] * order]
        return [
            y.coefficient(0),
            *[elementwise.multiply(y.coefficient(k), math.factorial(k)) for k in range(1, order + 1)],
        ]

    found = [[_adapt_to_mode(part) for part in derivatives(y)] for y in outputs]
    return tuple(_tree.unflatten(run.value_form, part) for part in ([y[0] for y in found], [y[1:] for y in found]))

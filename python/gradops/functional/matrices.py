"""Jacobians, Hessians and their products with vectors, with the arguments of ``torch.autograd.functional``.

``inputs`` is a tensor (variable, number, list) or a tuple of them; ``func`` gives a tensor or a tuple.
Where both are single, so is the result; several give tuples, outputs before inputs. PyTorch, JAX and
TensorFlow tensors go to the library's own machinery, NumPy arrays and variables to the tape.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from .. import backends
from .._progress import track
from ..autodiff import gradients, record, state
from ..autodiff.modes import enable_grad
from ..autodiff.variable import Variable, wrap
from ..errors import ArgumentError, GradientError, ShapeError
from ..ops import _checks, conversion, creation, elementwise, joining, shaping
from . import batched, forward
from .reverse import _prepare, fresh, linked

STRATEGIES = ("reverse-mode", "forward-mode")


def jacobian(
    func: Callable,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str | None = None,
):
    """All first derivatives of ``func`` at ``inputs``.

    For complex numbers an element is the gradient ``d/dRe x + i d/dIm x`` of the real part of an output, so
    that the rows are gradients as :func:`grad` gives them: of a holomorphic function the conjugate of its
    derivative, as in PyTorch. :func:`jvp` has all of the derivative of any function.

    Args:
        func: of as many tensors as ``inputs`` holds, to a tensor or a tuple of them, of any shape.
        create_graph: make the result differentiable (on the tape and PyTorch; JAX and TensorFlow
            results always are, under their own transforms and tapes).
        strict: raise where an output does not depend on an input, instead of giving zeros.
        vectorize: let PyTorch and TensorFlow batch the passes; JAX always does, and the tape where it can:
            where nothing on the way has a derivative of the user's own and ``create_graph`` is not asked for.
        strategy: ``"reverse-mode"``, a pass for each element of the outputs, or ``"forward-mode"``, one
            for each element of the inputs. By default the one with fewer passes, but on PyTorch and
            TensorFlow reverse mode.

    Returns:
        A tensor of the shape of the output followed by the input's; tuples of them for several.

    Raises:
        GradientError: an independent output with ``strict``.
        ArgumentTypeError: an input of an integer or bool dtype.
        ArgumentError: an unknown ``strategy``.

    Gradient:
        Differentiable as said at ``create_graph``.
    """
    if strategy is not None:
        _checks.choice("jacobian", strategy, STRATEGIES, "strategy")
    point = _Point(func, inputs, "jacobian", real=True)
    if any(map(_is_complex, point.leaves)):
        strategy, vectorize = "reverse-mode", False
    if point.native == "torch":
        how = {"vectorize": vectorize or strategy == "forward-mode", "strategy": strategy or "reverse-mode"}
        return point.library().functional("jacobian", point.call, point.argument(), (), create_graph, strict, **how)
    if point.native == "jax":
        result = point.library().jacobian(point.run, point.leaves, strategy, point.shape_of_result)
        return point.checked(result, strict)
    if point.native == "tensorflow":
        result = point.library().jacobian(point.run, point.leaves, strategy, vectorize, point.shape_of_result)
        return point.checked(result, strict)
    return point.finish(_tape_jacobian(point, create_graph, strict, strategy), create_graph)


def hessian(
    func: Callable,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
):
    """All second derivatives of a scalar ``func`` at ``inputs``.

    Args:
        outer_jacobian_strategy: how the gradient is differentiated: ``"reverse-mode"`` or ``"forward-mode"``.
        create_graph, strict, vectorize: as of :func:`jacobian`.

    Returns:
        A tensor of the input's shape twice; for several inputs a tuple of tuples of them.

    Raises:
        GradientError: an output that is not a scalar.

    Gradient:
        As of :func:`jacobian`.
    """
    _checks.choice("hessian", outer_jacobian_strategy, STRATEGIES, "outer_jacobian_strategy")
    point = _Point(func, inputs, "hessian")
    if point.native == "torch" and not any(x.is_complex() for x in point.leaves):  # PyTorch's has none of those
        forwards = outer_jacobian_strategy == "forward-mode"
        how = {"vectorize": vectorize or forwards, "outer_jacobian_strategy": outer_jacobian_strategy}
        return point.library().functional("hessian", func, point.argument(), (), create_graph, strict, **how)
    from .reverse import grad

    count = len(point.leaves)
    gradient = grad(point.call, tuple(range(count)))
    rows = jacobian(
        lambda *xs: tuple(gradient(*xs)), tuple(point.leaves), create_graph, strict, vectorize, outer_jacobian_strategy
    )
    return rows if point.several else rows[0][0]


def vjp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of ``func`` and the product of ``v`` with its Jacobian.

    Args:
        v: of the shape of the output (a tuple for several); may be left out for a scalar.
        create_graph, strict: as of :func:`jacobian`.

    Returns:
        ``(value, product)``, the product in the form of ``inputs``.

    Raises:
        ShapeError: ``v`` of another shape than the output.
        ArgumentError: no ``v`` for an output that is not a scalar.
    """
    point = _Point(func, inputs, "vjp")
    if point.native == "torch":
        vectors = (point.vectors(v),)
        return point.library().functional("vjp", func, point.argument(), vectors, create_graph, strict)
    if point.native != "tape":
        outputs, pull = point.library().vjp(point.run, point.leaves)
        weights = _vectors(v, outputs, "output", point.backend)
        return point.checked((point.outputs(outputs), point.inputs(pull(weights))), strict)
    variables, outputs = point.record()
    weights = _vectors(v, outputs, "output", point.backend)
    result = _pull(point, outputs, variables, weights, point.keeps(create_graph), strict)
    return point.finish((point.outputs(outputs), point.inputs(result)), create_graph)


def jvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of ``func`` and the product of its Jacobian with ``v``, by forward mode.

    Args:
        v: in the form of ``inputs``; may be left out for an input of one element.
        create_graph, strict: as of :func:`jacobian`.

    Returns:
        ``(value, product)``, the product in the form of the output. On the tape it costs about one more
        forward pass for elementwise operations and about three for others.

    Raises:
        ShapeError: ``v`` of another shape than the inputs.
        ArgumentError: no ``v`` for an input of more than one element.
    """
    point = _Point(func, inputs, "jvp")
    tangents = _vectors(v, point.leaves, "input", point.backend)
    if point.native == "torch":
        vectors = (point.form(tangents),)
        return point.library().functional("jvp", func, point.argument(), vectors, create_graph, strict)
    if point.native != "tape":
        outputs, products = point.library().jvp(point.run, point.leaves, tangents)
        return point.checked((point.outputs(outputs), point.outputs(products)), strict)
    variables, outputs = point.record()
    products = _push(point, outputs, variables, tangents, point.keeps(create_graph), strict)
    return point.finish((point.outputs(outputs), point.outputs(products)), create_graph)


def hvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of a scalar ``func`` and the product of its Hessian with ``v``: forward over reverse.

    Args, errors: as of :func:`jvp`; the output must be a scalar.

    Returns:
        ``(value, product)``, the product in the form of ``inputs``. It costs a few gradients, whatever
        the number of inputs.
    """
    point = _Point(func, inputs, "hvp")
    if point.native == "torch":
        vectors = (point.form(_vectors(v, point.leaves, "input", point.backend)),)
        return point.library().functional("hvp", func, point.argument(), vectors, create_graph, strict)
    return _second_order(jvp, point, _tuple(v), create_graph, strict)


def vhp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """The value of a scalar ``func`` and the product of ``v`` with its Hessian: reverse over reverse.

    Args, errors and results: as of :func:`hvp`, which has the same numbers.
    """
    point = _Point(func, inputs, "vhp")
    vectors = _vectors(v, point.leaves, "input", point.backend)
    if point.native == "torch":
        v = (point.form(vectors),)
        return point.library().functional("vhp", func, point.argument(), v, create_graph, strict)
    return _second_order(vjp, point, tuple(vectors), create_graph, strict)


def _second_order(product: Callable, point: _Point, v, create_graph: bool, strict: bool):
    """The value, and the product (``jvp`` or ``vjp``) of the gradient's Jacobian with ``v``."""
    from .reverse import value_and_grad

    both = value_and_grad(point.call, tuple(range(len(point.leaves))))
    values: list = []

    def gradient(*xs):
        value, gradients = both(*xs)
        values.append(value)
        return tuple(gradients)

    result = product(gradient, tuple(point.leaves), v, create_graph, strict)[1]
    value = point.finish(values[-1], create_graph) if point.native == "tape" else point.call(*point.leaves)
    return value, result if point.several else result[0]


class _Point:
    """A function and the inputs at which it is to be differentiated."""

    def __init__(self, func: Callable, inputs, name: str, real: bool = False):
        if not callable(func):
            raise ArgumentError(f"`func` must be a function; got {type(func).__name__}.", argument="func")
        self.func, self.name, self.real = func, name, real
        self.several = isinstance(inputs, tuple)
        given = list(inputs) if self.several else [inputs]
        self.backend, self.leaves = _prepare(given, tuple(range(len(given))), None)
        self.variables = any(isinstance(x, Variable) for x in self.leaves)
        on_tape = self.variables or self.backend.name in ("numpy", "traced")
        self.native = "tape" if on_tape else self.backend.name
        self.several_outputs = False
        self.nested = any(isinstance(x, Variable) and x.requires_grad for x in self.leaves)
        self.recorded: list[Variable] = []

    def library(self):
        return self.backend.module.derivatives

    def argument(self):
        return self.form(self.leaves)

    def form(self, values):
        return tuple(values) if self.several else values[0]

    def vectors(self, v):
        if v is None:
            return None
        given = v if isinstance(v, tuple) else (v,)
        converted = tuple(x if backends.of(x) is self.backend else self.backend.convert(x) for x in given)
        return converted if isinstance(v, tuple) else converted[0]

    def call(self, *xs):
        """The value, or its real part where that is to be differentiated."""
        y = self.func(*xs)
        if not self.real:
            return y
        if isinstance(y, (tuple, list)):
            return type(y)(_real_part(part) for part in y)
        return _real_part(y)

    def run(self, *xs) -> list:
        """The outputs as a list of tensors."""
        y = self.call(*xs)
        self.several_outputs = isinstance(y, (tuple, list))
        outputs = list(y) if self.several_outputs else [y]
        return [
            x if isinstance(x, Variable) or backends.of(x) is not None else self.backend.convert(x) for x in outputs
        ]

    def record(self) -> tuple[list, list]:
        """Variables for the inputs, and the outputs recorded from them."""
        with enable_grad():
            variables = [linked(x) if isinstance(x, Variable) and x.requires_grad else fresh(x) for x in self.leaves]
            outputs = self.run(*variables)
        self.recorded = variables
        outputs = [y if isinstance(y, Variable) else wrap(y) for y in outputs]
        self.nested = self.nested or _reaches(outputs, variables)
        return variables, outputs

    def keeps(self, create_graph: bool) -> bool:
        """Whether the derivative must itself be recorded."""
        return create_graph or self.nested

    def outputs(self, values):
        return tuple(values) if self.several_outputs else values[0]

    def inputs(self, values):
        return tuple(values) if self.several else values[0]

    def shape_of_result(self, rows: list[list]):
        """Derivatives by output and input, in the form of the two."""
        shaped = [tuple(row) if self.several else row[0] for row in rows]
        return tuple(shaped) if self.several_outputs else shaped[0]

    def checked(self, result, strict: bool):
        """``result``, unless an output is independent of an input and that is an error."""
        if strict:
            for j, row in enumerate(self.library().dependence(self.run, self.leaves)):
                for i, depends in enumerate(row):
                    if not depends:
                        raise GradientError(f"`{self.name}`: output {j} does not depend on input {i}.", argument="func")
        return result

    def finish(self, value, create_graph: bool):
        """Variables for callers who gave variables or want a graph, arrays for the others."""
        for x in self.recorded:
            x.gradops_done = True  # type: ignore[attr-defined]  # constant for outer derivatives
        if isinstance(value, (tuple, list)):
            return type(value)(self.finish(v, create_graph) for v in value)
        connected = isinstance(value, Variable) and value.requires_grad and self.keeps(create_graph)
        if self.variables or connected:
            if isinstance(value, Variable) and not connected:
                return wrap(value.data)
            return value if isinstance(value, Variable) else wrap(value)
        return value.data if isinstance(value, Variable) else value


def _reaches(outputs: list, variables: list) -> bool:
    from .reverse import _reaches_others

    return any(y._node is not None and _reaches_others(y, variables) for y in outputs)


def _real_part(y):
    if not isinstance(y, Variable) and backends.of(y) is None:
        return y.real if isinstance(y, complex) else y
    # times 1, as PyTorch's forward mode does not take the real part of a conjugate that is not yet computed
    return elementwise.real(elementwise.multiply(y, 1)) if _is_complex(y) else y


def _is_complex(x) -> bool:
    return "complex" in conversion.dtype(x)


def _tuple(v):
    return v if v is None or isinstance(v, tuple) else (v,)


def _vectors(v, like: list, what: str, backend) -> list:
    """``v`` as tensors of the shapes of ``like``; ones where it was left out and there is one element."""
    if v is None:
        if len(like) != 1 or conversion.size(like[0]) != 1:
            raise ArgumentError(f"`v` is needed for {what}s of more than one element.", argument="v")
        data = like[0].data if isinstance(like[0], Variable) else like[0]
        return [creation.ones_like(data)]
    given = list(v) if isinstance(v, (tuple, list)) and (len(like) > 1 or isinstance(v, tuple)) else [v]
    if len(given) != len(like):
        raise ArgumentError(f"`v` must hold {len(like)} tensors, one for each {what}; got {len(given)}.", argument="v")
    vectors = []
    for x, reference in zip(given, like):
        if not isinstance(x, Variable) and backends.of(x) is not backend:
            x = backend.convert(x)
        if tuple(x.shape) != tuple(reference.shape):
            raise ShapeError(
                f"`v` must have the shape {tuple(reference.shape)} of the {what}; got {tuple(x.shape)}.", argument="v"
            )
        vectors.append(x)
    return vectors


def _pull(point: _Point, outputs, variables, weights, keep: bool, strict: bool) -> list:
    pairs = [(y, w) for y, w in zip(outputs, weights) if y.requires_grad]
    if not pairs:
        if strict:
            raise GradientError(f"`{point.name}`: the output does not depend on the inputs.", argument="func")
        return [creation.zeros_like(x.data) for x in variables]
    found = gradients.grad(
        [y for y, _ in pairs],
        variables,
        [w for _, w in pairs],
        retain_graph=True,
        create_graph=keep,
        allow_unused=True,
    )
    for i, g in enumerate(found):
        if g is None and strict:
            raise GradientError(f"`{point.name}`: the output does not depend on input {i}.", argument="func")
    return [creation.zeros_like(x.data) if g is None else g for g, x in zip(found, variables)]


def _push(point: _Point, outputs, variables, tangents, keep: bool, strict: bool) -> list:
    products = forward.push(outputs, variables, tangents, keep)
    for i, t in enumerate(products):
        if t is None and strict:
            raise GradientError(f"`{point.name}`: output {i} does not depend on the inputs.", argument="func")
    return [creation.zeros_like(y.data) if t is None else t for t, y in zip(products, outputs)]


def _tape_jacobian(point: _Point, create_graph: bool, strict: bool, strategy: str | None):
    variables, outputs = point.record()
    if strategy is None:
        fewer_inputs = 2 * sum(map(conversion.size, variables)) <= sum(map(conversion.size, outputs))
        strategy = "forward-mode" if fewer_inputs else "reverse-mode"
    forwards = strategy == "forward-mode"
    keep, nodes = point.keeps(create_graph), forward.nodes_of(outputs)
    largest = max((math.prod(n.shape) for n in nodes if n.shape is not None), default=1)
    chunk = max(1, _TOGETHER // max(largest, 1)) if not keep and _batchable(nodes, variables) else 1
    sources, others = (variables, outputs) if forwards else (outputs, variables)

    def move(source, weights):
        if forwards:
            return _push(point, outputs, [source], [weights], keep, strict)
        return _pull(point, [source], variables, [weights], keep, strict)

    with track(sum(map(conversion.size, sources)), point.name) as advance:
        moved = [_by_element(x, others, functools.partial(move, x), chunk, advance) for x in sources]
    if forwards:
        rows = [
            [_block(shaping.moveaxis(part[j], 0, -1), y, x) for part, x in zip(moved, variables)]
            for j, y in enumerate(outputs)
        ]
    else:
        rows = [[_block(part[i], y, x) for i, x in enumerate(variables)] for part, y in zip(moved, outputs)]
    return point.shape_of_result(rows)


_TOGETHER = 2**22
"""How many numbers the largest array of a batch may hold: 32 MB."""


def _batchable(nodes: list, variables: list) -> bool:
    """Whether unit vectors may pass together: every rule is gradops' own, and nobody watches."""
    if state.hooks or state.observers or any(type(x.data) is not np.ndarray for x in variables):
        return False
    return all(n.rule.vjp is None or n.rule.vjp.__module__ == record.__name__ for n in nodes)


def _by_element(source, others: list, move: Callable, chunk: int, advance: Callable) -> list:
    """For each of ``others``, what ``move`` makes of a unit vector for each element of ``source``, stacked."""
    count = conversion.size(source)
    if not count:
        return [creation.zeros((0, *x.shape), conversion.dtype(x.data)) for x in others]
    if chunk > 1 and count > 1:
        try:
            return _together(source, move, min(chunk, count), advance)
        except Exception:  # what a batch cannot do is done one by one, or raises its own error
            pass
    parts = []
    for k in range(count):
        parts.append(move(_units(source, k, k + 1, lambda rows: rows[0])))
        advance(1)
    return [joining.stack(column) for column in zip(*parts)]


def _together(source, move: Callable, chunk: int, advance: Callable) -> list:
    batched.register()
    count = conversion.size(source)
    parts = []
    for start in range(0, count, chunk):
        stop = min(start + chunk, count)
        found = [x.data if isinstance(x, Variable) else x for x in move(_units(source, start, stop, batched.Batched))]
        parts.append([batched.members(x, stop - start) for x in found])
        advance(stop - start)
    return [column[0] if len(column) == 1 else np.concatenate(column) for column in zip(*parts)]


def _units(source, start: int, stop: int, form: Callable):
    """Rows of the unit matrix, of the shape and dtype of ``source``."""
    rows = np.eye(stop - start, conversion.size(source), start).reshape(stop - start, *source.shape)
    name = conversion.dtype(source.data)
    if type(source.data) is np.ndarray:
        return form(rows.astype(source.data.dtype, copy=False))
    return backends.of(source.data).module.convert(form(rows), name, source.data)


def _block(moved, y, x):
    return shaping.reshape(moved, (*y.shape, *x.shape))

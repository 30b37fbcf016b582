"""TensorFlow: derivatives, with custom gradients as ``tf.custom_gradient``, eager and in graphs.

In eager code a custom gradient is recorded on the active tapes (:func:`_attached`) and its own derivative comes from a
persistent tape of its run (:func:`_linked`). Forward mode uses the transpose of the gradient function. Tensors that a
function closes over, whose gradient would be lost, raise an error (:mod:`.tapes`).
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import tensorflow as tf

from ...errors import BackendError, GradientError
from ..interface import looked_at_a_value
from . import _private, tapes
from .checkpointing import checkpoint, checkpointed  # noqa: F401
from .tapes import carried, gradient, stopped  # noqa: F401
from .tapes import watch as require  # noqa: F401

stop = tf.stop_gradient


def custom(run, inputs: list) -> list:
    """The values of ``run(*inputs) -> (values, pull)`` with ``pull`` as their derivative."""
    inputs = list(map(tf.convert_to_tensor, inputs))  # reads of a tf.Variable are recorded by active tapes
    eager = tf.executing_eagerly()
    if eager and not tapes.may_record():  # an input returned as a value becomes a constant as well
        return [tf.identity(v) if any(v is x for x in inputs) else v for v in run(*inputs)[0]]
    accumulators = tapes.forward_mode()
    with tapes.forward_mode_paused():
        results, closure = (_custom_eagerly if eager else _custom_in_graph)(run, inputs, bool(accumulators))
    for i, accumulator in enumerate(accumulators):
        if any(accumulator.jvp(x) is not None for x in closure.others):
            raise tapes.error()
        tangents = [accumulator.jvp(x) for x in [*inputs, *closure.variables]]
        if any(t is not None for t in tangents):
            with tapes.forward_mode_paused(i):
                moved = _transposed(run, inputs, closure.variables, tangents, results)
            _private.set_tangents(accumulator, results, moved)
    return results


class _Closure:
    """The values that a function with a custom gradient reads but does not take as arguments.

    Attributes:
        variables: the trainable variables that it reads, if its gradient function returns their gradients.
        others: variables and tensors whose tangents would be lost; noted in forward mode only.
    """

    def __init__(self, takes_variables: bool, read, others):
        self.variables = list(read) if takes_variables else []
        self.others = [x for x in others if tapes.differentiable(x)] + ([] if takes_variables else list(read))


def _takes_variables(function) -> bool:
    """True if a gradient function takes ``variables``, as far as the calls before this one have shown."""
    return getattr(function, "takes_variables", bool)()


def _transposed(run, inputs: list, variables: list, tangents: list, results: list) -> list:
    """The tangents of the results: ``d/du <pull(u), tangents>``, taken at 0 as ``pull`` is linear."""
    points = [tf.zeros_like(y) for y in results]
    with tf.GradientTape() as tape:
        tape.watch([u for u in points if tapes.differentiable(u)])
        pulled = _again(run, inputs, variables, points)
    pairs = [(tf.convert_to_tensor(g), t) for g, t in zip(pulled, tangents) if g is not None and t is not None]
    with tapes.quietly():
        return tape.gradient(
            [g for g, _ in pairs], points, [t for _, t in pairs], unconnected_gradients=tf.UnconnectedGradients.ZERO
        )


def _again(run, inputs: list, variables: list, upstreams) -> list:
    """The gradients from a second run of ``run``, on ``inputs`` that have tangents or are recorded."""
    drawn: list = []
    with tapes.noting(drawn, {}):
        pull = run(*inputs)[1]
    if drawn:
        raise GradientError(
            "a function with a custom gradient draws random numbers; forward mode, or a recorded pass in a "
            "graph, would draw different ones.",
            argument="f",
            hint="draw them outside and pass them as an argument, or use reverse mode",
        )
    return _pulled(pull, upstreams, variables)


def _pulled(pull, upstreams, variables) -> list:
    """Call ``pull``; if there are variables, their gradients follow the inputs' gradients."""
    return pull(_dense(upstreams), variables) if variables else pull(_dense(upstreams))


def _custom_eagerly(run, inputs: list, forward: bool) -> tuple[list, _Closure]:
    inner = [tf.stop_gradient(x) for x in inputs]
    # A tape of its own records `run`; if the active tapes still watch a value, it depends on tensors other than the
    # inputs. With variables, which the active tapes watch, they do not record `run`.
    alone, used = _takes_variables(run), {}
    tape = tf.GradientTape(persistent=True, watch_accessed_variables=alone or forward)
    noting = tapes.noting([], used) if forward and not alone else contextlib.nullcontext()
    with tapes.alone(used) if alone else noting, tape:
        tape.watch([x for x in inner if tapes.differentiable(x)])
        values, pull = run(*inner)
    takes_variables = _takes_variables(pull)
    read = tape.watched_variables() if alone or forward else ()
    if takes_variables and not alone and (tapes.watched(values) or read):
        return _custom_eagerly(run, inputs, forward)  # its first call showed that it takes variables
    if tapes.watched(values if takes_variables or not alone else [*map(tf.convert_to_tensor, read)]):
        raise tapes.error()
    closure = _Closure(takes_variables, read, used.values())
    variables = closure.variables
    inner, outer = [*inner, *variables], [*inputs, *map(tf.convert_to_tensor, variables)]

    def rule(*upstreams):
        # A pass in a graph, such as one of a vectorized Jacobian, is differentiated by the graph's own operations.
        if tapes.forward_mode() or not tf.executing_eagerly() and tapes.may_record():
            return _again(run, inputs, variables, upstreams)
        compute = functools.partial(_pulled, pull, variables=variables)
        return _linked(tape, inner, outer, compute, _dense(upstreams), tapes.alone if variables else None)

    return _attached(values, outer, rule), closure


def _attached(values: list, inputs: list, rule) -> list:
    """``values`` as a function of ``inputs`` for the active tapes, with ``rule`` as its derivative; eager only."""
    results = [tf.stop_gradient(v) for v in values]  # also for tapes that watch none of the inputs
    if tapes.sees_tapes:  # does what tf.custom_gradient does, much faster
        _private.record_operation("custom_gradient", results, inputs, rule)
        return results
    return list(tf.custom_gradient(lambda *xs: (results, rule))(*inputs))


def _linked(tape, inner: list, outer, compute, upstreams, alone=None):
    """``compute(upstreams)``, linked to ``outer`` on the active tapes as it depends on ``inner`` on ``tape``.

    Args:
        alone: the scope that keeps the active tapes from recording ``compute`` as well.
    """
    if not tapes.watched([*outer, *upstreams]):
        return compute(list(upstreams))
    cut = [tf.stop_gradient(u) for u in upstreams]
    with alone() if alone else contextlib.nullcontext(), tape:
        tape.watch([u for u in cut if tapes.differentiable(u)])
        results = compute(cut)
    given = [tf.convert_to_tensor(r) for r in results if r is not None]
    if not given:
        return results
    inner, outer = [*inner, *cut], [*outer, *upstreams]
    sources = [x for x in inner if tapes.differentiable(x)]

    def derive(gradients):
        with tapes.quietly():
            found = iter(tape.gradient(given, sources, output_gradients=gradients))
        return [next(found) if tapes.differentiable(x) else None for x in inner]

    linked = _attached(given, outer, lambda *ups: _linked(tape, inner, outer, derive, ups, alone))
    if tapes.watched(given):  # the gradient function closes over watched tensors
        linked = [x + (r - tf.stop_gradient(r)) for x, r in zip(linked, given)]
    found = iter(linked)
    return [None if r is None else next(found) for r in results]


def _custom_in_graph(run, inputs: list, forward: bool) -> tuple[list, _Closure]:
    tapes.refuse_rows()
    closure: Any = None

    @_private.custom_gradient
    def call(*xs):
        nonlocal closure
        graph = tf.compat.v1.get_default_graph()
        own = [tf.identity(x) for x in xs]
        start = len(graph.get_operations())
        with tf.GradientTape() if forward else contextlib.nullcontext() as tape:
            values, pull = run(*own)
        outside = tapes.outside(graph, start, values, own)
        if any(map(tapes.may_need_gradient, outside)):
            raise tapes.error()
        takes_variables = _takes_variables(pull)
        closure = _Closure(takes_variables, tape.watched_variables() if tape else (), outside if forward else ())

        def rule(*upstreams, variables=()):
            if variables and not takes_variables:
                raise tapes.error()
            forward = tapes.forward_mode()
            found = _again(run, inputs, variables, upstreams) if forward else _pulled(pull, upstreams, variables)
            return (tuple(found[: len(xs)]), list(found[len(xs) :])) if variables else tuple(found)

        return [tapes.guarded(v) for v in values], rule

    results = call(*inputs)
    return list(results), closure


def records(x) -> bool:
    x = tf.convert_to_tensor(x)  # tapes watch the value read from a `tf.Variable`
    return tapes.watched([x]) or any(a.jvp(x) is not None for a in tapes.forward_mode())


def value_and_grad(run, leaves: list) -> tuple:
    """The value of a scalar function and its gradients, recorded by outer tapes."""
    inputs = [tf.identity(x) for x in leaves]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = tf.convert_to_tensor(run(*inputs))
    return y, _gradients(tape, y, inputs)


def _gradients(tape, outputs, inputs: list, weights=None) -> list:
    """The gradients on a tape, as tensors; zeros for unconnected inputs.

    Raises:
        BackendError: in forward mode, for the gradient of gathered elements, which TensorFlow represents as slices.
    """
    zero = tf.UnconnectedGradients.ZERO
    try:
        return _dense(tape.gradient(outputs, inputs, weights, unconnected_gradients=zero))
    except AttributeError as error:
        if "IndexedSlices" not in str(error):
            raise
        raise BackendError(
            "TensorFlow's forward mode cannot differentiate the gradient of elements taken from a result.",
            hint="take this derivative on another backend",
        ) from error


def _dense(gradients) -> list:
    """Gradients as dense tensors, also for tensors that were gathered from; None stays None."""
    return [None if g is None else tf.convert_to_tensor(g) for g in gradients]


def pulling(at):
    return _pulling(at.run, at.leaves)


def _pulling(run, leaves: list):
    inputs = [tf.identity(x) for x in leaves]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        outputs = run(*inputs)
    return outputs, lambda weights: _gradients(tape, outputs, inputs, weights)


def pushing(at):
    """``push`` is the transpose of ``pull``; ``ForwardAccumulator`` would run the function again for each tangent."""
    return _pushing(at.run, at.leaves)


def _pushing(run, leaves: list):
    outputs, pull = _pulling(run, leaves)
    points = [tf.zeros_like(y) for y in outputs]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(points)
        pulled = pull(points)
    return outputs, lambda tangents: _gradients(tape, pulled, points, tangents)


def vjp(at, v, create_graph: bool, strict: bool):
    outputs, pull = pulling(at)
    products = pull(at.weights(v, outputs))
    check_dependence(at, strict)
    return at.outputs(outputs), at.inputs(products)


def jvp(at, v, create_graph: bool, strict: bool):
    outputs, products = _push(at.run, at.leaves, at.tangents(v))
    check_dependence(at, strict)
    return at.outputs(outputs), at.outputs(products)


def _push(run, leaves: list, tangents: list) -> tuple:
    """The outputs and their tangents."""
    if tapes.forward_mode():
        # Nested accumulators lose terms of third derivatives: for `x**4` at 3, TensorFlow 2.21 gives 61 instead of 72.
        outputs, push = _pushing(run, leaves)
        return outputs, push(tangents)
    inputs = [tf.identity(x) for x in leaves]
    with tf.autodiff.ForwardAccumulator(inputs, tangents) as accumulator:
        outputs = run(*inputs)
    products = [accumulator.jvp(y, unconnected_gradients=tf.UnconnectedGradients.ZERO) for y in outputs]
    return outputs, _dense(products)


def check_dependence(at, strict: bool) -> None:
    if strict:
        inputs = [tf.identity(x) for x in at.leaves]
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(inputs)
            outputs = at.run(*inputs)
        at.check_dependence([[g is not None for g in tape.gradient(y, inputs)] for y in outputs])


def jacobian(at, create_graph: bool, strict: bool, vectorize: bool, strategy: str | None):
    rows = _rows(at, vectorize, strategy)
    check_dependence(at, strict)
    return at.rows(rows)


def _rows(at, vectorize: bool, strategy: str | None) -> list:
    inputs = [tf.identity(x) for x in at.leaves]
    if strategy == "forward-mode":
        return _forward_jacobian(at.run, inputs)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        outputs = at.run(*inputs)
    return [_rows_of(tape, y, inputs, vectorize) for y in outputs]


def _rows_of(tape, y, inputs: list, vectorize: bool) -> list:
    """``tape.jacobian``; row by row where it fails: complex inputs, and other dtypes unless vectorized."""
    if any(x.dtype.is_complex or not vectorize and x.dtype != y.dtype for x in inputs):
        return _rows_one_by_one(tape, y, inputs)
    zero = tf.UnconnectedGradients.ZERO
    return tape.jacobian(y, inputs, unconnected_gradients=zero, experimental_use_pfor=vectorize)


def _rows_one_by_one(tape, y, inputs: list) -> list:
    """The gradients of each element of ``y``, stacked."""
    count = y.shape.num_elements()
    units = tf.reshape(tf.eye(count, dtype=y.dtype), [count, *y.shape])
    rows = [_gradients(tape, y, inputs, unit) for unit in tf.unstack(units)]
    return [tf.reshape(tf.stack(column), [*y.shape, *x.shape]) for column, x in zip(zip(*rows), inputs)]


def _forward_jacobian(run, inputs: list) -> list:
    columns: list = []
    outputs: list = []
    for i, x in enumerate(inputs):
        count = x.shape.num_elements()
        units = tf.reshape(tf.eye(count, dtype=x.dtype), [count, *x.shape])
        for k in range(count):
            tangents = [units[k] if j == i else tf.zeros_like(z) for j, z in enumerate(inputs)]
            outputs, products = _push(run, inputs, tangents)
            columns.append((i, products))
    return [
        [
            tf.reshape(tf.stack([p[j] for at, p in columns if at == i], -1), [*y.shape, *x.shape])
            for i, x in enumerate(inputs)
        ]
        for j, y in enumerate(outputs)
    ]


def compile(f):
    """``tf.function`` without AutoGraph, with gradops' errors in place of TensorFlow's."""
    # TensorFlow warns of many traces, counted for all functions with the same code; a `partial` object has none.
    compiled = tf.function(functools.partial(f), autograph=False)

    def call(*tensors):
        try:
            return compiled(*tensors)
        except tf.errors.OperatorNotAllowedInGraphError as error:
            raise looked_at_a_value() from error
        except (TypeError, NotImplementedError) as error:  # from `float()`, `math`, NumPy and string formats
            if "SymbolicTensor" in str(error) or "symbolic tf.Tensor" in str(error):
                raise looked_at_a_value() from error
            raise

    return call

"""TensorFlow: the tensors that a function uses beside its arguments, and the random numbers that it draws.

Where a version of TensorFlow lacks a name that a check needs, the check is left out.
"""

from __future__ import annotations

import contextlib
import re
import threading

import tensorflow as tf

from ...errors import GradientError
from . import _private

sees_operations = _private.private.supported(_private.OPERATIONS)
sees_tapes = _private.private.supported(_private.CLOSURES)

_RANDOM = re.compile("Random|TruncatedNormal|Multinomial|^StatefulUniform|^StatefulStandardNormal|^Rng")


def may_record() -> bool:
    """True if any tape or accumulator is active."""
    return not sees_tapes or _private.could_record()


def watched(tensors) -> bool:
    """True if an active tape watches any of ``tensors``."""
    return sees_tapes and _private.is_watched([t for t in tensors if t is not None])


def differentiable(x) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex


def error() -> GradientError:
    return GradientError(
        "a function with a custom gradient uses a tensor or tf.Variable that may need a gradient but is not an "
        "argument; its gradient would be lost.",
        argument="f",
        hint="pass it as an argument, or use `stop_gradient()` on it",
    )


def outside(graph, start: int, results: list, own: list) -> list:
    """Tensors that were in ``graph`` before its operation ``start``, or outside it, and that ``results`` use."""
    new = {op.name for op in graph.get_operations()[start:]}
    mine, seen = {id(x) for x in own}, set()
    found, stack = [], [r for r in results if isinstance(r, tf.Tensor)]
    while stack:
        x = stack.pop()
        if id(x) in mine or id(x) in seen or not differentiable(x):
            continue
        seen.add(id(x))
        if not hasattr(x, "graph") or x.graph is not graph or x.op.name not in new:
            found.append(x)
        elif x.op.type in ("Placeholder", "Const"):  # captured since; small tensors as constants
            found.extend(_captured(graph, x))
        elif x.op.type not in ("StopGradient", "PreventGradient"):
            stack.extend(x.op.inputs)
    return found


def _captured(graph, x) -> list:
    return [outer for outer, inner in getattr(graph, "captures", ()) if inner is x]


def may_need_gradient(x, seen: set | None = None) -> bool:
    """True if a gradient could be asked for something that ``x`` was computed from."""
    seen = set() if seen is None else seen
    if not hasattr(x, "graph"):
        return watched([x])
    stack = [x]
    while stack:
        x = stack.pop()
        if id(x) in seen or not (differentiable(x) or x.dtype == tf.resource):
            continue
        seen.add(id(x))
        if x.op.type in ("StopGradient", "PreventGradient"):
            continue
        if x.op.type in ("Placeholder", "Const"):
            outer = _captured(x.graph, x)
            if x.dtype == tf.resource or not outer and x.op.type == "Placeholder":
                return True
            if any(may_need_gradient(o, seen) for o in outer):
                return True
        stack.extend(x.op.inputs)
    return False


class Row(threading.local):
    """A flag of each thread: True if it computes the rows of an ``ops.vectorized_map`` that may be differentiated."""

    differentiable = False


rows = Row()


class RuleWouldBeLost(Exception):
    """A row has a rule of its own, which ``tf.vectorized_map`` loses: the rows are taken one after the other."""


def refuse_rows() -> None:
    if rows.differentiable:
        raise RuleWouldBeLost


def guarded(value):
    """``value``, whose own derivative is an error: its rule is on the way to who uses it, or was lost on it."""
    if not differentiable(value):
        return tf.identity(value)
    return tf.raw_ops.PreventGradient(input=value, message=_LOST)


_LOST = (
    "gradops: TensorFlow has lost a custom or scaled gradient here, by tf.vectorized_map or by importing a graph. "
    "Use `gradops.ops.vectorized_map` or `gradops.ops.map`, or differentiate inside the function that is vectorized."
)


def _guarded_rows(pfor_input):
    return _private.stacked(tf.raw_ops.PreventGradient(input=pfor_input.stacked_input(0), message=_LOST), True)


if _private.private.supported(_private.VECTORIZED):
    try:
        _private.register_rows("PreventGradient")(_guarded_rows)
    except Exception:  # somebody else registered one
        pass


def _is_random(op_type) -> bool:
    return _RANDOM.search(op_type.decode() if isinstance(op_type, bytes) else op_type) is not None


@contextlib.contextmanager
def noting(drawn: list, used: dict):
    """Note the random numbers drawn, and in eager mode the tensors that operations use and did not make."""
    made: dict[int, object] = {}

    def note(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if graph is None:
            for x in inputs:
                if id(x) not in made:
                    used[id(x)] = x
            for y in outputs:
                made[id(y)] = y
        if _is_random(op_type):
            drawn.append(tuple(outputs))
        return None

    with seeing(note):
        yield


@contextlib.contextmanager
def replaying(drawn: list):
    """Give the random operations of a graph being built the numbers that were noted."""
    left = iter(drawn)

    def replace(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if _is_random(op_type):
            return list(next(left, outputs))
        return None

    with seeing(replace):
        yield


@contextlib.contextmanager
def seeing(function):
    """A scope in which ``function`` is called with each operation, and may give other results."""
    if not sees_operations:
        yield
        return
    _private.add_callback(function)
    try:
        yield
    finally:
        _private.remove_callback(function)

"""TensorFlow: the tapes and accumulators that record in this thread, and the tensors that a function closes over.

A check whose private names are missing in a version of TensorFlow is skipped.
"""

from __future__ import annotations

import contextlib
import re
import threading

import tensorflow as tf

from ...errors import GRAD, VARIABLE, Code, GradientError
from . import _private


def _recording(kind) -> list:
    return [r for r in _private.opened() if isinstance(r, kind) and _private.is_recording(r)]


def active() -> list[tf.GradientTape]:
    """The tapes that record in this thread, outermost first."""
    return _recording(tf.GradientTape)


def carried():
    """A function that returns a scope for another thread, to record as this thread does now."""
    tapes = [tape for tape in active() if _private.own_tape(tape) is not None]
    accumulators = forward_mode()
    recorders = [r for r in _private.opened() if r in tapes or r in accumulators]
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()

    @contextlib.contextmanager
    def scope():
        before, here, followed = _private.opened(), active(), forward_mode()
        with contextlib.ExitStack() as stack:
            stack.callback(_private.set_opened, before)
            for tape in here:
                if tape not in recorders:
                    stack.enter_context(tape.stop_recording())
            for tape in tapes:
                if tape not in here:
                    _private.push_tape(_private.own_tape(tape))
                    stack.callback(_private.pop_tape, _private.own_tape(tape))
            for accumulator in reversed(followed):
                if accumulator not in accumulators:
                    stack.enter_context(_private.paused(accumulator))
            for accumulator in accumulators:
                if accumulator not in followed:
                    stack.enter_context(_private.followed_here(accumulator))
            _private.set_opened(recorders)
            if graph is not None:
                stack.enter_context(graph.as_default())
            elif not tf.executing_eagerly():
                stack.enter_context(tf.init_scope())
            yield

    return scope


def forward_mode() -> list:
    """The forward accumulators that are active in this thread."""
    return _recording(tf.autodiff.ForwardAccumulator)


@contextlib.contextmanager
def forward_mode_paused(start: int = 0):
    """A scope that active accumulators ignore, from the one at index ``start`` to the innermost."""
    with contextlib.ExitStack() as stack:
        for accumulator in reversed(forward_mode()[start:]):
            stack.enter_context(_private.paused(accumulator))
        yield


@contextlib.contextmanager
def stopped():
    """A scope whose operations pass no gradient to active tapes, accumulators, or a graph being built."""
    with unrecorded():
        _stopped.depth += 1  # not a ContextVar: scopes of overlapping tasks may close in another order and context
        try:
            yield
        finally:
            _stopped.depth -= 1


class _Stopped(threading.local):
    """The number of :func:`stopped` scopes that are open in this thread."""

    depth = 0


_stopped = _Stopped()


@contextlib.contextmanager
def unrecorded():
    """A scope whose operations no active tape, accumulator or graph records."""
    with contextlib.ExitStack() as stack:
        for recorder in reversed(_recording((tf.GradientTape, tf.autodiff.ForwardAccumulator))):
            # from the innermost, so that they resume in the order in which they were opened, which is the order of
            # derivatives
            stopped = isinstance(recorder, tf.GradientTape)
            stack.enter_context(recorder.stop_recording() if stopped else _private.paused(recorder))
        if not tf.executing_eagerly():
            stack.enter_context(_cut_in_graph(tf.compat.v1.get_default_graph()))
        yield


@contextlib.contextmanager
def alone(used: dict | None = None):
    """A scope whose operations are recorded only by tapes that are opened inside it.

    Args:
        used: receives the tensors that the operations use but did not make.

    Raises:
        GradientError: at the end, if an active tape watches one of these tensors.
    """
    used = {} if used is None else used
    with unrecorded(), noting([], used):
        yield
    if watched([x for x in used.values() if differentiable(x)]):
        raise error()


@contextlib.contextmanager
def _cut_in_graph(graph):
    """A scope that gives operations added to ``graph`` no derivative.

    Their inputs from outside go through ``tf.stop_gradient``, which survives vectorizing, saving and importing the
    graph; operations that read a variable get a derivative of None. Tensors that the graph captures inside the scope
    also count as coming from outside.
    """
    start = len(graph.get_operations())
    try:
        yield
    finally:
        inside = graph.get_operations()[start:]
        captured = {x.op.name for _, x in getattr(graph, "captures", ())}
        names = {operation.name for operation in inside if not _reads(operation)} - captured
        cut: dict = {}
        for operation in inside:
            for i, x in enumerate(operation.inputs):
                if x.op.name not in names and (x.dtype.is_floating or x.dtype.is_complex):
                    if x.name not in cut:
                        with graph.as_default(), tf.control_dependencies(None):
                            cut[x.name] = tf.stop_gradient(x)
                    _private.set_input(operation, i, cut[x.name])
            if _reads(operation):
                _private.set_gradient(operation, _nothing)


def _reads(operation) -> bool:
    return any(x.dtype in (tf.resource, tf.variant) for x in operation.inputs)


def _nothing(operation, *upstreams):
    return [None] * len(operation.inputs)


def watch(x) -> None:
    """Let every active tape watch ``x``."""
    tapes = active()
    if not tapes:
        raise GradientError(
            "`x` is a TensorFlow tensor and no `tf.GradientTape` is active to watch it.",
            argument="x",
            hint="{tape}, or use {grad}, or make it a variable: {variable}",
            tape=Code("call it inside `with tf.GradientTape(persistent=True):`", "call it inside such a tape"),
            grad=GRAD,
            variable=VARIABLE,
        )
    for tape in tapes:
        tape.watch(x)


def gradient(y, xs: list) -> list:
    """Gradients of ``y`` from the active tapes, which also record them; in graphs from ``tf.gradients``."""
    if not tf.executing_eagerly():
        return tf.gradients(y, xs)
    tapes = [r for r in _private.opened() if isinstance(r, tf.GradientTape)]  # including tapes that a scope has stopped
    lasting = [tape for tape in tapes if _private.is_persistent(tape)]
    if not lasting:
        raise GradientError(
            "an eager TensorFlow tensor needs an active persistent `tf.GradientTape` to know what it was computed "
            f"from; there {'is one that is not persistent' if tapes else 'is none'}.",
            argument="y",
            hint="{tape}use {grad}, or make `x` a variable: {variable}",
            tape=Code(
                "compute `y` inside `with tf.GradientTape(persistent=True) as tape:` with `tape.watch(x)`, or ", ""
            ),
            grad=GRAD,
            variable=VARIABLE,
        )
    with quietly():
        for tape in reversed(lasting):
            found = tape.gradient(y, xs)
            if any(g is not None for g in found):
                return [None if g is None else tf.convert_to_tensor(g) for g in found]
        recording = [tape for tape in active() if tape in lasting]
        for x in xs:
            if recording and not any(tape.gradient(tf.identity(x), x) is not None for tape in recording):
                raise GradientError(
                    "no active tape watches `x`.",
                    argument="x",
                    hint="call `gradops.set_requires_gradient(x)` or `tape.watch(x)` before computing `y`",
                )
    return [None] * len(xs)


@contextlib.contextmanager
def quietly():
    """A scope without TensorFlow's warning about a gradient taken inside its tape, which is intended here."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


# The tensors that a function uses in addition to its arguments, and the random numbers that it draws ------------------


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
        hint="pass it as an argument, or use `stop_gradient()` on it; the gradients of variables may also be returned "
        "by a gradient function with an argument `variables`",
    )


def outside(graph, start: int, results: list, own: list) -> list:
    """Tensors that ``results`` use and that were in ``graph`` before its operation ``start``, or are outside of it."""
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
        elif x.op.type in ("Placeholder", "Const"):  # captured inside; small tensors become constants
            found.extend(_captured(graph, x))
        elif x.op.type not in ("StopGradient", "PreventGradient"):
            stack.extend(x.op.inputs)
    return found


def _captured(graph, x) -> list:
    return [outer for outer, inner in getattr(graph, "captures", ()) if inner is x]


def may_need_gradient(x, seen: set | None = None) -> bool:
    """True if ``x`` was computed from something whose gradient may be requested."""
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
    """Per-thread flags of ``ops.vectorized_map``.

    Attributes:
        differentiable: True while rows are computed that may be differentiated.
        in_own_graph: True while the graph of a map that no tape records is made.
    """

    differentiable = in_own_graph = False


rows = Row()


class RuleWouldBeLost(Exception):
    """Raised if a row has a custom rule, which ``tf.vectorized_map`` would lose; the map then runs row by row."""


def refuse_rows() -> None:
    if rows.differentiable:
        raise RuleWouldBeLost


def guarded(value):
    """``value`` with a gradient that raises an error: it marks values whose rule is attached later, or was lost."""
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
    except Exception:  # another library registered one
        pass


def _is_random(op_type) -> bool:
    return _RANDOM.search(op_type.decode() if isinstance(op_type, bytes) else op_type) is not None


@contextlib.contextmanager
def noting(drawn: list, used: dict):
    """Record the random numbers drawn and, in eager mode, the tensors that operations use but did not make.

    Operations in a :func:`stopped` scope use constants.
    """
    made: dict[int, object] = {}

    def note(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if graph is None:
            for x in inputs:
                if id(x) not in made and not _stopped.depth:
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
    """Replay the recorded random numbers in the operations of a graph being built."""
    left = iter(drawn)

    def replace(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if _is_random(op_type):
            return list(next(left, outputs))
        return None

    with seeing(replace):
        yield


@contextlib.contextmanager
def seeing(function):
    """A scope that calls ``function`` with each operation; it may replace the results."""
    if not sees_operations:
        yield
        return
    _private.add_callback(function)
    try:
        yield
    finally:
        _private.remove_callback(function)

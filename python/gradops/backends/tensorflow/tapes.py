"""TensorFlow: the tapes and accumulators that record in this thread, and the tensors that a function closes over.

Where a version of TensorFlow lacks a name that a check needs, the check is left out.
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
    """A function that gives a scope in which another thread records as this one does now."""
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
    """A scope whose operations no active accumulator follows, from the one at ``start`` to the innermost."""
    with contextlib.ExitStack() as stack:
        for accumulator in reversed(forward_mode()[start:]):
            stack.enter_context(_private.paused(accumulator))
        yield


@contextlib.contextmanager
def stopped():
    """A scope whose operations give no gradient to any active tape, accumulator, or graph being built."""
    with contextlib.ExitStack() as stack:
        for recorder in reversed(_recording((tf.GradientTape, tf.autodiff.ForwardAccumulator))):
            # from the innermost, so that they go on in the order in which they were opened: it is that of derivatives
            stopped = isinstance(recorder, tf.GradientTape)
            stack.enter_context(recorder.stop_recording() if stopped else _private.paused(recorder))
        if not tf.executing_eagerly():
            stack.enter_context(_cut_in_graph(tf.compat.v1.get_default_graph()))
        yield


@contextlib.contextmanager
def _cut_in_graph(graph):
    """A scope in which operations added to ``graph`` have no derivative, for gradients taken through the function.

    The operations take tensors from outside through ``tf.stop_gradient``, which vectorising, saving and importing the
    graph keep; operations that read a variable have no derivative of their own. Tensors that the graph captures
    inside, by an operation of its own, come from outside too.
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
    """Gradients of ``y`` from the active tapes, which record them; in graphs from ``tf.gradients``."""
    if not tf.executing_eagerly():
        return tf.gradients(y, xs)
    tapes = [r for r in _private.opened() if isinstance(r, tf.GradientTape)]  # those a scope stopped too
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
    """TensorFlow warns that a gradient taken inside its tape is recorded; here it is meant to be."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


# The tensors that a function uses beside its arguments, and the random numbers that it draws --------------------------


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

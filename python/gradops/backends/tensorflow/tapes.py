"""TensorFlow: which gradient tapes and forward accumulators are recording in this thread.

TensorFlow keeps that to itself, so the scopes of ``tf.GradientTape`` and ``tf.autodiff.ForwardAccumulator``
are observed: entering one puts it on a list here. Those already open when gradops is first used with
TensorFlow are found among the live objects. What is not public of TensorFlow is used in this file alone;
tests/python/test_stop_gradient_scope.py fails on a version that has changed it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
import weakref

import tensorflow as tf

from ...errors import BackendError, GradientError

_KINDS = (tf.GradientTape, tf.autodiff.ForwardAccumulator)


class _Opened(threading.local):
    def __init__(self):
        self.recorders: list[weakref.ref] = []


_opened = _Opened()


def _observe(kind: type) -> None:
    enter, leave = kind.__enter__, kind.__exit__
    if hasattr(enter, "gradops_observes"):
        return

    @functools.wraps(enter)
    def __enter__(self):
        result = enter(self)
        _opened.recorders.append(weakref.ref(self))
        return result

    @functools.wraps(leave)
    def __exit__(self, *error):
        for i in range(len(_opened.recorders) - 1, -1, -1):
            if _opened.recorders[i]() is self:
                del _opened.recorders[i]
        return leave(self, *error)

    __enter__.gradops_observes = True
    kind.__enter__, kind.__exit__ = __enter__, __exit__
    for found in gc.get_referrers(kind):
        if type(found) is kind and getattr(found, "_recording", False):
            _opened.recorders.append(weakref.ref(found))


for _kind in _KINDS:
    _observe(_kind)


def _recording(kind: type) -> list:
    found = [ref() for ref in _opened.recorders]
    _opened.recorders = [ref for ref in _opened.recorders if ref() is not None]
    return [r for r in found if isinstance(r, kind) and getattr(r, "_recording", True)]


def active() -> list[tf.GradientTape]:
    """The tapes that record in this thread, outermost first."""
    return _recording(tf.GradientTape)


def carried():
    """A function that gives a scope in which another thread records as this one does now."""
    recorders = [tape for tape in active() if getattr(tape, "_tape", None) is not None]
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()

    @contextlib.contextmanager
    def scope():
        from tensorflow.python.eager import tape as inner

        before, here = _opened.recorders, active()
        with contextlib.ExitStack() as stack:
            stack.callback(setattr, _opened, "recorders", before)
            for tape in here:
                if tape not in recorders:
                    stack.enter_context(tape.stop_recording())
            for tape in recorders:
                if tape not in here:
                    inner.push_tape(tape._tape)
                    stack.callback(inner.pop_tape, tape._tape)
            _opened.recorders = [weakref.ref(tape) for tape in recorders]
            if graph is not None:
                stack.enter_context(graph.as_default())
            elif not tf.executing_eagerly():
                stack.enter_context(tf.init_scope())
            yield

    return scope


@contextlib.contextmanager
def tapes_stopped():
    """A scope whose operations no active tape records."""
    with contextlib.ExitStack() as stack:
        for tape in active():
            stack.enter_context(tape.stop_recording())
        yield


def forward_mode() -> list:
    """The forward accumulators that are active in this thread."""
    return _recording(tf.autodiff.ForwardAccumulator)


@contextlib.contextmanager
def forward_mode_paused(start: int = 0):
    """A scope whose operations no active accumulator follows, from the one at ``start`` to the innermost."""
    with contextlib.ExitStack() as stack:
        for accumulator in reversed(forward_mode()[start:]):
            stack.enter_context(_paused(accumulator))
        yield


def set_tangents(accumulator, tensors: list, tangents: list) -> None:
    if not hasattr(accumulator, "_watch"):
        raise BackendError(f"TensorFlow {tf.__version__} has no forward mode for custom gradients.")
    accumulator._watch(tensors, tangents)


@contextlib.contextmanager
def stopped():
    """A scope whose operations give no gradient to any active tape, accumulator, or graph being built."""
    with tapes_stopped(), forward_mode_paused(), contextlib.ExitStack() as stack:
        if not tf.executing_eagerly():
            stack.enter_context(_cut_in_graph(tf.compat.v1.get_default_graph()))
        yield


@contextlib.contextmanager
def _paused(accumulator):
    if not (hasattr(accumulator, "_pop_accumulator") and hasattr(accumulator, "_push_accumulator")):
        raise BackendError(
            f"TensorFlow {tf.__version__} does not let a ForwardAccumulator pause for a scope or a custom gradient.",
            hint="use reverse mode, and `stop_gradient()` on what is made in a scope",
        )
    accumulator._pop_accumulator()
    try:
        yield
    finally:
        accumulator._push_accumulator()


@contextlib.contextmanager
def _cut_in_graph(graph):
    """What is added to ``graph`` inside has no derivative, for gradients taken through the function.

    The operations take what comes from outside through ``tf.stop_gradient``, which vectorising, saving and
    importing the graph keep; what reads a variable has no derivative of its own.
    """
    start = len(graph.get_operations())
    try:
        yield
    finally:
        inside = graph.get_operations()[start:]
        names = {operation.name for operation in inside if not _reads(operation)}
        cut: dict = {}
        for operation in inside:
            if not (hasattr(operation, "_gradient_function") and hasattr(operation, "_update_input")):
                raise BackendError(
                    f"stop_gradient_scope: TensorFlow {tf.__version__} does not let a graph be cut.",
                    hint="use `stop_gradient()` on what is made in the scope",
                )
            for i, x in enumerate(operation.inputs):
                if x.op.name not in names and (x.dtype.is_floating or x.dtype.is_complex):
                    if x.name not in cut:
                        with graph.as_default(), tf.control_dependencies(None):
                            cut[x.name] = tf.stop_gradient(x)
                    operation._update_input(i, cut[x.name])
            if _reads(operation):
                operation._gradient_function = _nothing


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
            hint="call it inside `with tf.GradientTape(persistent=True):`, or use `gradops.grad(f)`, or make it a "
            "variable: `x = gradops.Variable(x, requires_grad=True)`",
        )
    for tape in tapes:
        tape.watch(x)


def gradient(y, xs: list) -> list:
    """Gradients of ``y`` from the active tapes, which record them; in graphs from ``tf.gradients``."""
    if not tf.executing_eagerly():
        return tf.gradients(y, xs)
    tapes = [ref() for ref in _opened.recorders if isinstance(ref(), tf.GradientTape)]  # those a scope stopped too
    lasting = [tape for tape in tapes if getattr(tape, "_persistent", True)]
    if not lasting:
        raise GradientError(
            "an eager TensorFlow tensor needs an active persistent `tf.GradientTape` to know what it was computed "
            f"from; there {'is one that is not persistent' if tapes else 'is none'}.",
            argument="y",
            hint="compute `y` inside `with tf.GradientTape(persistent=True) as tape:` with `tape.watch(x)`, or use "
            "`gradops.grad(f)`, or make `x` a variable: `x = gradops.Variable(x, requires_grad=True)`",
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

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
def stopped():
    """A scope whose operations give no gradient to any active tape, accumulator, or graph being built."""
    with contextlib.ExitStack() as stack:
        for tape in active():
            stack.enter_context(tape.stop_recording())
        for accumulator in _recording(tf.autodiff.ForwardAccumulator):
            stack.enter_context(_paused(accumulator))
        if not tf.executing_eagerly():
            stack.enter_context(_cut_in_graph(tf.compat.v1.get_default_graph()))
        yield


@contextlib.contextmanager
def _paused(accumulator):
    if not (hasattr(accumulator, "_pop_accumulator") and hasattr(accumulator, "_push_accumulator")):
        raise BackendError(
            f"stop_gradient_scope: TensorFlow {tf.__version__} does not let a ForwardAccumulator pause.",
            hint="use `stop_gradient()` on what is made in the scope",
        )
    accumulator._pop_accumulator()
    try:
        yield
    finally:
        accumulator._push_accumulator()


@contextlib.contextmanager
def _cut_in_graph(graph):
    """What is added to ``graph`` inside has no derivative, for gradients taken through the function."""
    start = len(graph.get_operations())
    try:
        yield
    finally:
        for operation in graph.get_operations()[start:]:
            if operation.inputs:
                if not hasattr(operation, "_gradient_function"):
                    raise BackendError(
                        f"stop_gradient_scope: TensorFlow {tf.__version__} does not let a graph be cut.",
                        hint="use `stop_gradient()` on what is made in the scope",
                    )
                operation._gradient_function = _nothing


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

"""All names of TensorFlow that gradops uses and that are not public, by feature.

TensorFlow does not tell Python which tapes and forward accumulators record in a thread. So their scopes are observed:
``__enter__`` and ``__exit__`` of ``tf.GradientTape`` and ``tf.autodiff.ForwardAccumulator`` are wrapped once, for the
whole process, and keep a list of the open ones.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
import weakref

import tensorflow as tf

from .._names import PrivateNames

private = PrivateNames("TensorFlow", tf.__version__)

CLOSURES = "a custom gradient's check of what its function closes over"
could_record = private.find(CLOSURES, "tensorflow.python.eager.record.could_possibly_record")
"""True if any tape or accumulator is active."""
is_watched = private.find(CLOSURES, "tensorflow.python.eager.record.should_record_backprop")
"""True if an active tape watches any of a list of tensors."""
record_operation = private.find(CLOSURES, "tensorflow.python.eager.record.record_operation")
"""Record an operation with a custom derivative on the active tapes."""

OPERATIONS = "a checkpoint's view of operations"
add_callback = private.find(OPERATIONS, "tensorflow.python.framework.op_callbacks.add_op_callback")
remove_callback = private.find(OPERATIONS, "tensorflow.python.framework.op_callbacks.remove_op_callback")
"""Start and stop calling a function with each operation."""

VECTORIZED = "a custom gradient in tf.vectorized_map"
register_rows = private.find(VECTORIZED, "tensorflow.python.ops.parallel_for.pfor.RegisterPFor")
stacked = private.find(VECTORIZED, "tensorflow.python.ops.parallel_for.pfor.wrap")
"""The registry of batching rules for operations, and the wrapper of a result that holds all rows."""

THREADS = "derivatives in another thread"
push_tape = private.find(THREADS, "tensorflow.python.eager.tape.push_tape")
pop_tape = private.find(THREADS, "tensorflow.python.eager.tape.pop_tape")
own_tape = private.attribute(THREADS, "tensorflow.GradientTape._tape", of_objects=True)
"""The tape inside a ``tf.GradientTape``; None before it has recorded."""

FORWARD = "a scope or custom gradient in forward mode"
_ACCUMULATOR = "tensorflow.autodiff.ForwardAccumulator"
set_tangents = private.find(FORWARD, f"{_ACCUMULATOR}._watch")
"""Give an accumulator the tangents of tensors."""
_pop = private.find(FORWARD, f"{_ACCUMULATOR}._pop_accumulator")
_push = private.find(FORWARD, f"{_ACCUMULATOR}._push_accumulator")


@contextlib.contextmanager
def paused(accumulator):
    """A scope that makes an accumulator ignore operations."""
    private.need(FORWARD, hint="use reverse mode, and `stop_gradient()` on what is made in a scope")
    _pop(accumulator)
    try:
        yield
    finally:
        _push(accumulator)


@contextlib.contextmanager
def followed_here(accumulator):
    """A scope that makes a waiting thread's accumulator follow this thread's operations."""
    private.need(FORWARD, hint="use reverse mode where functions run on other threads")
    accumulator._recording = False  # otherwise it could not be pushed a second time
    _push(accumulator)
    try:
        yield
    finally:
        _pop(accumulator)
        accumulator._recording = True


RELEASE = "the release of graphs with custom gradients"
_rules = private.find(RELEASE, "tensorflow.python.framework.ops.gradient_registry._registry", otherwise={})
"""TensorFlow's registry of derivatives by name; each custom gradient of each graph has an entry."""


def custom_gradient(f):
    """``tf.custom_gradient`` whose rule lives as long as its graph.

    TensorFlow's registry would keep the graph alive.
    """
    call = tf.custom_gradient(f)

    @functools.wraps(f)
    def custom(*inputs):
        results = call(*inputs)
        if not tf.executing_eagerly():
            _belongs_to_graph(tf.nest.flatten(results)[0].op)
        return results

    return custom


def _belongs_to_graph(operation) -> None:
    """Move the rule of an operation from TensorFlow's registry to the outermost graph that contains the operation."""
    name = operation.get_attr("_gradient_op_type").decode()
    entry = _rules.get(name)
    if entry is None:
        return
    graph = operation.graph
    while hasattr(outer := getattr(graph, "outer_graph", None), "outer_graph"):
        graph = outer
    if outer is not None and not tf.compat.v1.executing_eagerly_outside_functions():
        graph = outer
    rule = entry["type"]
    if not hasattr(graph, "gradops_rules"):
        graph.gradops_rules = []
    graph.gradops_rules.append(rule)
    reference = weakref.ref(rule)
    entry["type"] = lambda *gradients: reference()(*gradients)
    weakref.finalize(graph, _rules.pop, name, None).atexit = False


GRAPHS = "stop_gradient_scope in a graph"
_OPERATION = "tensorflow.Operation"
_update_input = private.find(GRAPHS, f"{_OPERATION}._update_input")
_gradient = private.attribute(GRAPHS, f"{_OPERATION}._gradient_function", of_objects=True)


def set_input(operation, i: int, tensor) -> None:
    """Replace an input of a graph's operation."""
    private.need(GRAPHS, hint="use `stop_gradient()` on what is made in the scope")
    _update_input(operation, i, tensor)


def set_gradient(operation, function) -> None:
    """Replace the derivative of a graph's operation."""
    _gradient(operation)
    operation._gradient_function = function


Tensor = private.find("tensors of every kind", "tensorflow.__internal__.types.Tensor", tf.Tensor)
"""The base class of all tensors, including those of other runtimes."""

# Which tapes record ---------------------------------------------------------------------------------------------------


class _Opened(threading.local):
    def __init__(self):
        self.recorders: list[weakref.ref] = []


_opened = _Opened()


def opened() -> list:
    """The tapes and accumulators whose scopes are open in this thread, outermost first."""
    found = [ref() for ref in _opened.recorders]
    _opened.recorders = [ref for ref, recorder in zip(_opened.recorders, found) if recorder is not None]
    return [recorder for recorder in found if recorder is not None]


def set_opened(recorders: list) -> None:
    """Set the tapes and accumulators whose scopes count as open in this thread."""
    _opened.recorders = [weakref.ref(recorder) for recorder in recorders]


def is_recording(recorder) -> bool:
    """True if a tape with an open scope has not been stopped; accumulators are never stopped."""
    return getattr(recorder, "_recording", True)


def is_persistent(tape) -> bool:
    """True if a tape can compute several gradients."""
    return getattr(tape, "_persistent", True)


def _observe(kind: type) -> None:
    """Wrap a class's scope so that it maintains the list; scopes that are already open are found among live objects."""
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
        _opened.recorders[:] = [ref for ref in _opened.recorders if ref() is not self]
        return leave(self, *error)

    __enter__.gradops_observes = True
    kind.__enter__, kind.__exit__ = __enter__, __exit__
    for found in gc.get_referrers(kind):
        if type(found) is kind and getattr(found, "_recording", False):
            _opened.recorders.append(weakref.ref(found))


_observe(tf.GradientTape)
_observe(tf.autodiff.ForwardAccumulator)

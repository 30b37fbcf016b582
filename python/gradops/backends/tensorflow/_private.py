"""TensorFlow: every private name of it that gradops uses; no other file has one.

Which tapes and forward accumulators record in a thread TensorFlow keeps to itself: Python cannot have its own list of
them. So the scopes of ``tf.GradientTape`` and ``tf.autodiff.ForwardAccumulator`` are observed: entering one puts
it on a list here. Their methods are replaced for the whole process, once, and call what they replace.
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
"""Write an operation with a derivative of its own on the active tapes."""

OPERATIONS = "a checkpoint's view of operations"
add_callback = private.find(OPERATIONS, "tensorflow.python.framework.op_callbacks.add_op_callback")
remove_callback = private.find(OPERATIONS, "tensorflow.python.framework.op_callbacks.remove_op_callback")
"""Have a function called with each operation, and no more."""

VECTORIZED = "a custom gradient in tf.vectorized_map"
register_rows = private.find(VECTORIZED, "tensorflow.python.ops.parallel_for.pfor.RegisterPFor")
stacked = private.find(VECTORIZED, "tensorflow.python.ops.parallel_for.pfor.wrap")
"""How an operation's rows are computed together, and a result as all rows at once."""

THREADS = "derivatives in another thread"
push_tape = private.find(THREADS, "tensorflow.python.eager.tape.push_tape")
pop_tape = private.find(THREADS, "tensorflow.python.eager.tape.pop_tape")
own_tape = private.attribute(THREADS, "tensorflow.GradientTape._tape", of_objects=True)
"""The tape inside a ``tf.GradientTape``; None where it has not recorded."""

FORWARD = "a scope or custom gradient in forward mode"
_ACCUMULATOR = "tensorflow.autodiff.ForwardAccumulator"
set_tangents = private.find(FORWARD, f"{_ACCUMULATOR}._watch")
"""Give an accumulator the tangents of tensors."""
_pop = private.find(FORWARD, f"{_ACCUMULATOR}._pop_accumulator")
_push = private.find(FORWARD, f"{_ACCUMULATOR}._push_accumulator")


@contextlib.contextmanager
def paused(accumulator):
    """A scope in which an accumulator follows no operations."""
    private.need(FORWARD, hint="use reverse mode, and `stop_gradient()` on what is made in a scope")
    _pop(accumulator)
    try:
        yield
    finally:
        _push(accumulator)


@contextlib.contextmanager
def followed_here(accumulator):
    """A scope in which an accumulator of another thread, which waits, follows this one's operations."""
    private.need(FORWARD, hint="use reverse mode where functions run on other threads")
    accumulator._recording = False  # else it would not be pushed a second time
    _push(accumulator)
    try:
        yield
    finally:
        _pop(accumulator)
        accumulator._recording = True


RELEASE = "the release of graphs with custom gradients"
_rules = private.find(RELEASE, "tensorflow.python.framework.ops.gradient_registry._registry", otherwise={})
"""TensorFlow's table of derivatives by name, in which each custom gradient of each graph has an entry."""


def custom_gradient(f):
    """``tf.custom_gradient``, whose rule lives as long as the graph: in TensorFlow's table it keeps the graph alive."""
    call = tf.custom_gradient(f)

    @functools.wraps(f)
    def custom(*inputs):
        results = call(*inputs)
        if not tf.executing_eagerly():
            _belongs_to_graph(tf.nest.flatten(results)[0].op)
        return results

    return custom


def _belongs_to_graph(operation) -> None:
    """Move the rule of an operation from TensorFlow's table to the outermost graph that it is traced in."""
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
    """Have an operation of a graph take another input."""
    private.need(GRAPHS, hint="use `stop_gradient()` on what is made in the scope")
    _update_input(operation, i, tensor)


def set_gradient(operation, function) -> None:
    """Give an operation of a graph another derivative."""
    _gradient(operation)
    operation._gradient_function = function


Tensor = private.find("tensors of every kind", "tensorflow.__internal__.types.Tensor", tf.Tensor)
"""The class of all tensors, also of those of other runtimes."""

# Which tapes record ---------------------------------------------------------------------------------------------------


class _Opened(threading.local):
    def __init__(self):
        self.recorders: list[weakref.ref] = []


_opened = _Opened()


def opened() -> list:
    """The tapes and accumulators whose scope is open in this thread, outermost first."""
    found = [ref() for ref in _opened.recorders]
    _opened.recorders = [ref for ref, recorder in zip(_opened.recorders, found) if recorder is not None]
    return [recorder for recorder in found if recorder is not None]


def set_opened(recorders: list) -> None:
    """Take ``recorders`` for those whose scope is open in this thread."""
    _opened.recorders = [weakref.ref(recorder) for recorder in recorders]


def is_recording(recorder) -> bool:
    """True if a tape whose scope is open has not been stopped; accumulators do not tell, and are never stopped."""
    return getattr(recorder, "_recording", True)


def is_persistent(tape) -> bool:
    """True if a tape gives several gradients."""
    return getattr(tape, "_persistent", True)


def _observe(kind: type) -> None:
    """Have a class's scopes put their objects on the list. Those that are open already are among the live objects."""
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

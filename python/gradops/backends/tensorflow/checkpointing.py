"""Checkpointing on TensorFlow, whose tape saves values: a scope rejects operations that the tape would record."""

from __future__ import annotations

import contextlib

import tensorflow as tf

from ... import _tree
from ...errors import BackendError
from ..checkpoint_policies import NOTHING, Policy
from . import tapes
from ._private import custom_gradient
from .tapes import active, unrecorded


@contextlib.contextmanager
def checkpointed():
    """A scope that raises at the first TensorFlow operation that a tape or graph records."""
    eager = tf.executing_eagerly()
    if not tapes.sees_operations and (not eager or active()):
        raise _refusal(eager)

    def refuse(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if not eager or graph is None and active():
            raise _refusal(eager)

    with tapes.seeing(refuse):
        yield


def _refusal(eager: bool) -> BackendError:
    where = "under an active `tf.GradientTape`" if eager else "in a TensorFlow graph"
    return BackendError(
        f"gradient_checkpoint_scope does not work {where}: TensorFlow stores what it records.",
        hint="use `gradops.checkpoint(f)`, or make the inputs variables: `gradops.Variable(x, requires_grad=True)`",
    )


def checkpoint(run, inputs: list, policy: Policy, in_scope):
    if policy != NOTHING:
        raise BackendError(
            "`checkpoint`: a policy does not work on TensorFlow, whose tape stores all or nothing of a function.",
            argument="policy",
            hint="checkpoint parts of the function without one, or make the inputs variables: "
            "`gradops.Variable(x, requires_grad=True)`",
        )
    return _tree.call_flat(_checkpoint, run, inputs)


def _checkpoint(run, inputs: list) -> list:
    """``run(*inputs)``, saving only its inputs, the values it closes over, and its random numbers."""
    if tapes.forward_mode():
        return run(*inputs)
    drawn: list = []
    used: dict = {}
    inputs = [tf.identity(x) for x in inputs]  # distinguishes an input from the same tensor in the closure of ``run``
    if tf.executing_eagerly():
        with unrecorded(), tf.GradientTape() as probe, tapes.noting(drawn, used):
            values = run(*inputs)
        if not tapes.may_record():
            return values
        variables = list(probe.watched_variables())
        mine = {id(x) for x in inputs}
        found = [x for x in used.values() if id(x) not in mine and tapes.differentiable(x)]  # not handles of variables
        others = [x for x in found if tapes.watched([x])]
    else:
        graph = tf.compat.v1.get_default_graph()
        start = len(graph.get_operations())
        with tf.GradientTape() as probe, tapes.noting(drawn, used):
            values = run(*inputs)
        variables = list(probe.watched_variables())
        others = tapes.outside(graph, start, values, inputs)
    reads = [tf.convert_to_tensor(v) for v in variables]
    count = len(inputs)

    @custom_gradient
    def call(*everything):
        def rule(*upstreams):
            def again(*tensors):
                xs, ups = list(tensors[:count]), list(tensors[count:])
                with tf.GradientTape() as tape:
                    tape.watch([x for x in (*xs, *others) if tapes.differentiable(x)])
                    with tapes.replaying(drawn):
                        results = run(*xs)
                return tape.gradient(results, [*xs, *others, *variables], output_gradients=ups)

            if drawn and tf.executing_eagerly():
                again = tf.function(again, autograph=False)
            with tf.control_dependencies(list(upstreams)):
                return again(*map(tf.identity, everything[:count]), *upstreams)

        return [tf.identity(v) for v in values], rule

    return list(call(*inputs, *others, *reads))


_checkpoint.autograph_info__ = None  # AutoGraph could not convert it

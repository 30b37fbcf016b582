"""Checkpointing on TensorFlow: its tape stores what it records, so a scope refuses what the tape would see."""

from __future__ import annotations

import contextlib

import tensorflow as tf

from ...backends.tensorflow import closures
from ...backends.tensorflow.tapes import active
from ...errors import BackendError


@contextlib.contextmanager
def scope():
    """A scope that raises at the first TensorFlow operation that a tape records, or a graph."""
    eager = tf.executing_eagerly()
    if not closures.sees_operations and (not eager or active()):
        raise _refusal(eager)

    def refuse(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if not eager or graph is None and active():
            raise _refusal(eager)

    with closures.seeing(refuse):
        yield


def _refusal(eager: bool) -> BackendError:
    where = "under an active `tf.GradientTape`" if eager else "in a TensorFlow graph"
    return BackendError(
        f"gradient_checkpoint_scope does not work {where}: TensorFlow stores what it records.",
        hint="use `gradops.checkpoint(f)`, or make the inputs variables: `gradops.Variable(x, requires_grad=True)`",
    )

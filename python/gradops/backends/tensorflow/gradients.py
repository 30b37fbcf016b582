"""TensorFlow: gradient flow, as TensorFlow's own custom gradients, eager and in graphs."""

from __future__ import annotations

import tensorflow as tf

from ...errors import GradientError

stop = tf.stop_gradient


def custom(run, inputs: list) -> list:
    """The values of ``run(*inputs) -> (values, pull)`` with ``pull`` as their derivative."""

    @tf.custom_gradient
    def call(*xs):
        values, pull = run(*xs)

        def rule(*upstreams, variables=None):
            if variables:
                raise GradientError(
                    f"a function with a custom gradient uses the tf.Variable {variables[0].name!r}, which is not an "
                    "argument; its gradient would be lost.",
                    argument="f",
                    hint="pass the variable as an argument, or use `stop_gradient()` on it",
                )
            return tuple(pull(list(upstreams)))

        return [tf.identity(v) for v in values], rule

    return list(call(*inputs))


def require(x) -> None:
    raise GradientError(
        "TensorFlow tensors are watched by a tape.", argument="x", hint="call `tape.watch(x)` on your `tf.GradientTape`"
    )


def gradient(y, xs: list):
    if tf.executing_eagerly():
        raise GradientError(
            "an eager TensorFlow tensor does not know what it was computed from.",
            argument="y",
            hint="use `tape.gradient(y, x)`, `gradops.grad(f)`, or a `gradops.Variable`",
        )
    return tf.gradients(y, xs)


def value_and_grad(run, leaves: list) -> tuple:
    """The value of a scalar function and its gradients, recorded by outer tapes."""
    inputs = [tf.identity(x) for x in leaves]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = tf.convert_to_tensor(run(*inputs))
    return y, tape.gradient(y, inputs, unconnected_gradients=tf.UnconnectedGradients.ZERO)

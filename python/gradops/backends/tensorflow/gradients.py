"""TensorFlow: gradient flow, as TensorFlow's own custom gradients, eager and in graphs."""

from __future__ import annotations

import tensorflow as tf

from ...errors import BackendError, GradientError, JitError
from .tapes import active, gradient, stopped  # noqa: F401
from .tapes import watch as require  # noqa: F401

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


def check_checkpoint() -> None:
    """Refuse a checkpoint scope where TensorFlow stores what it records."""
    if tf.executing_eagerly() and not active():
        return
    where = "under an active `tf.GradientTape`" if tf.executing_eagerly() else "in a TensorFlow graph"
    raise BackendError(
        f"gradient_checkpoint_scope does not work {where}: TensorFlow stores what it records.",
        hint="use `gradops.checkpoint(f)`, or make the inputs variables: `gradops.Variable(x, requires_grad=True)`",
    )


def value_and_grad(run, leaves: list) -> tuple:
    """The value of a scalar function and its gradients, recorded by outer tapes."""
    inputs = [tf.identity(x) for x in leaves]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = tf.convert_to_tensor(run(*inputs))
    return y, tape.gradient(y, inputs, unconnected_gradients=tf.UnconnectedGradients.ZERO)


def vjp(run, leaves: list) -> tuple:
    """The outputs and a function from their gradients to the inputs'."""
    inputs = [tf.identity(x) for x in leaves]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = run(*inputs)

    def pull(weights):
        return tape.gradient(outputs, inputs, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    return outputs, pull


def jvp(run, leaves: list, tangents: list) -> tuple:
    """The outputs and their tangents."""
    inputs = [tf.identity(x) for x in leaves]
    with tf.autodiff.ForwardAccumulator(inputs, tangents) as accumulator:
        outputs = run(*inputs)
    products = [accumulator.jvp(y, unconnected_gradients=tf.UnconnectedGradients.ZERO) for y in outputs]
    return outputs, products


def jacobian(run, leaves: list, strategy: str, vectorize: bool, form):
    """Derivatives by output and input."""
    inputs = [tf.identity(x) for x in leaves]
    if strategy == "forward-mode":
        return form(_forward_jacobian(run, inputs))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        outputs = run(*inputs)
    rows = [
        tape.jacobian(
            y, inputs, unconnected_gradients=tf.UnconnectedGradients.ZERO, experimental_use_pfor=vectorize
        )
        for y in outputs
    ]
    return form(rows)


def _forward_jacobian(run, inputs: list) -> list:
    columns: list = []
    outputs: list = []
    for i, x in enumerate(inputs):
        count = x.shape.num_elements()
        units = tf.reshape(tf.eye(count, dtype=x.dtype), [count, *x.shape])
        for k in range(count):
            tangents = [units[k] if j == i else tf.zeros_like(z) for j, z in enumerate(inputs)]
            outputs, products = jvp(run, inputs, tangents)
            columns.append((i, products))
    return [
        [
            tf.reshape(tf.stack([p[j] for at, p in columns if at == i], -1), [*y.shape, *x.shape])
            for i, x in enumerate(inputs)
        ]
        for j, y in enumerate(outputs)
    ]


def compile(f):
    """``tf.function`` without AutoGraph, with its errors in gradops' words."""
    compiled = tf.function(f, autograph=False)

    def call(*tensors):
        try:
            return compiled(*tensors)
        except tf.errors.OperatorNotAllowedInGraphError as error:
            raise JitError(
                "a compiled function looked at a value: a branch or a Python number made of a tensor.",
                hint="use `ops.where()` or `ops.cond()`, or make the argument static",
            ) from error

    return call

"""JAX: gradient flow, as JAX's own custom derivatives."""

from __future__ import annotations

import contextlib
import functools
from contextvars import ContextVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

from ...errors import GradientError, JitError
from ..policy import BEGIN, END, checkpoint_policy
from . import traces

stop = jax.lax.stop_gradient

cuts_results = not traces.supported
"""Whether a scope cannot see operations, so that only the results of a decorated function can be cut."""


def stopped():
    """A scope in which every operation's result is a constant for the transformations around it."""
    return traces.watching(_cut)


def _cut(apply, xs):
    out = apply([stop(x) if traces.is_tracer(x) else x for x in xs])
    return [stop(y) for y in out] if isinstance(out, (list, tuple)) else stop(out)


class _NeedsPolicy(BaseException):
    """Raised by a checkpoint scope to the derivative being taken: to take it under the policy."""


_policy: ContextVar[str] = ContextVar("gradops_policy", default="off")
"""``"ask"`` while a derivative could be taken again under the policy, ``"on"`` while it is."""


@contextlib.contextmanager
def checkpointed():
    """A scope whose operations are marked for ``gradops.checkpoint_policy``."""
    if not traces.tracing():
        yield
        return
    if _policy.get() == "ask":
        raise _NeedsPolicy
    with traces.watching(_mark):
        yield


def _mark(apply, xs):
    xs = list(xs)
    for i, x in enumerate(xs):
        if isinstance(x, jax.Array) and not jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
            xs[i] = checkpoint_name(x, BEGIN)
            break
    out = apply(xs)
    if isinstance(out, (list, tuple)):
        return [_name_end(y) for y in out]
    return _name_end(out)


def _name_end(y):
    return checkpoint_name(y, END) if isinstance(y, jax.Array) else y


def checkpoint(run, inputs: list) -> list:
    """``run(*inputs)``, stored as its inputs."""
    return jax.checkpoint(run)(*inputs)


def custom(run, inputs: list) -> list:
    """The values of ``run(*inputs) -> (values, pull)`` with ``pull`` as their derivative.

    JAX's cotangents of complex values are the conjugates of gradops' gradients.
    """

    @jax.custom_gradient
    def call(*xs):
        values, pull = run(*xs)

        def rule(upstreams):
            filled = [_gradient_of(u, v) for u, v in zip(upstreams, values)]
            return tuple(_cotangent(g, x) for g, x in zip(pull(filled), xs))

        return values, rule

    try:
        return call(*inputs)
    except jax.errors.UnexpectedTracerError as error:
        raise GradientError(
            "a function with a custom gradient uses an array that is being differentiated but is not an argument.",
            argument="f",
            hint="pass the array as an argument, or use `stop_gradient()` on it",
        ) from error


def _gradient_of(upstream, value):
    if upstream.dtype == jax.dtypes.float0:
        return jnp.zeros(value.shape)
    return jnp.conj(upstream) if jnp.iscomplexobj(upstream) else upstream


def _cotangent(g, x):
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return np.zeros(x.shape, jax.dtypes.float0)
    if g is None:
        return jnp.zeros(x.shape, x.dtype)
    return jnp.conj(g) if jnp.iscomplexobj(g) else g


def value_and_grad(run, leaves: list) -> tuple:
    """The value of a scalar function and its gradients."""

    def scalar(*xs):
        y = jnp.asarray(run(*xs))
        return y.reshape(()), y

    both = functools.partial(jax.value_and_grad, argnums=tuple(range(len(leaves))), has_aux=True)
    if _policy.get() == "on":
        (_, value), gradients = both(scalar)(*leaves)
    else:
        token = _policy.set("ask")
        try:
            (_, value), gradients = both(scalar)(*leaves)
        except _NeedsPolicy:
            _policy.set("on")
            (_, value), gradients = both(jax.checkpoint(scalar, policy=checkpoint_policy))(*leaves)
        finally:
            _policy.reset(token)
    return value, [jnp.conj(g) if jnp.iscomplexobj(g) else g for g in gradients]


def vjp(run, leaves: list) -> tuple:
    """The outputs and a function from their gradients to the inputs'."""
    outputs, pull = jax.vjp(lambda *xs: run(*xs), *leaves)
    return outputs, lambda weights: [jnp.conj(g) for g in pull([jnp.conj(w) for w in weights])]


def jvp(run, leaves: list, tangents: list) -> tuple:
    """The outputs and their tangents."""
    return jax.jvp(lambda *xs: run(*xs), tuple(leaves), tuple(tangents))


def jacobian(run, leaves: list, strategy: str, form):
    """Derivatives by output and input."""
    transform = jax.jacfwd if strategy == "forward-mode" else jax.jacrev
    rows = transform(lambda *xs: run(*xs), argnums=tuple(range(len(leaves))))(*leaves)
    return form([list(row) for row in rows])


def compile(f):
    """``jax.jit``, with its tracer errors in gradops' words."""
    compiled = jax.jit(f)

    def call(*arrays):
        try:
            return compiled(*arrays)
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
            raise JitError(
                "a compiled function looked at a value: a branch or a Python number made of an array.",
                hint="use `ops.where()` or `ops.cond()`, or make the argument static",
            ) from error

    return call

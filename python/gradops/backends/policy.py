"""A policy for ``jax.checkpoint`` that respects gradops' checkpoint scopes; does not import JAX."""

from __future__ import annotations

import threading
from contextvars import ContextVar

from ..errors import ArgumentTypeError, TypeOf

BEGIN, END = "gradops_checkpoint_begin", "gradops_checkpoint_end"
"""The names that bracket, in the order of a traced program, the operations that are not saved."""


derivative: ContextVar[str] = ContextVar("gradops_policy", default="off")
"""``"ask"`` while a derivative can still be restarted under the policy, ``"on"`` while it runs under the policy."""


class NeedsPolicy(BaseException):
    """Raised by a checkpoint scope to have the current derivative taken again under the policy."""


def checkpoint_policy(primitive, *avals, **params) -> bool:
    """Return True for operations to save: all but those of a :func:`gradient_checkpoint_scope`.

    Use it as ``jax.checkpoint(f, policy=gradops.checkpoint_policy)``.

    Raises:
        ArgumentTypeError: ``primitive`` is not a JAX primitive; JAX calls the policy, not you.

    Examples:
        This needs ``gradops[jax]``:

        >>> import gradops
        >>> import jax
        >>> import jax.numpy as jnp
        >>> def loss(x):
        ...     with gradops.gradient_checkpoint_scope():
        ...         y = jnp.sin(x)
        ...     return y * x
        >>> f = jax.checkpoint(loss, policy=gradops.checkpoint_policy)
        >>> print(jax.grad(f)(0.0))
        0.0

    See Also:
        :func:`gradops.gradient_checkpoint_scope`, :func:`gradops.checkpoint`.
    """
    if not hasattr(primitive, "name"):
        raise ArgumentTypeError(
            "`primitive` must be one of JAX's operations; got {primitive}.",
            argument="primitive",
            hint="JAX calls the policy: `jax.checkpoint(f, policy=gradops.checkpoint_policy)`",
            primitive=TypeOf(primitive),
        )
    if primitive.name == "name":
        if params["name"] == BEGIN:
            _policy.inside = True
            return False
        if params["name"] == END:
            _policy.inside = False
            return False
    return not _policy.inside


class _Policy(threading.local):
    inside = False


_policy = _Policy()

"""The policy for ``jax.checkpoint`` that knows gradops' scopes; needs no JAX itself."""

from __future__ import annotations

import threading
from contextvars import ContextVar

from ..errors import ArgumentTypeError, TypeOf

BEGIN, END = "gradops_checkpoint_begin", "gradops_checkpoint_end"
"""The names between which, in the order of a traced program, an operation is not saved."""


derivative: ContextVar[str] = ContextVar("gradops_policy", default="off")
"""``"ask"`` while a derivative could be taken again under the policy, ``"on"`` while it is."""


class NeedsPolicy(BaseException):
    """Raised by a checkpoint scope to the derivative being taken: to take it again under the policy."""


def checkpoint_policy(primitive, *avals, **params) -> bool:
    """The policy for ``jax.checkpoint`` under which what was made in a :func:`gradient_checkpoint_scope` is not saved.

    ``jax.checkpoint(f, policy=gradops.checkpoint_policy)`` saves everything else.

    Raises:
        ArgumentTypeError: a primitive that is none of JAX's: it is given to ``jax.checkpoint`` itself.

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

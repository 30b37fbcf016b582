"""Policies of checkpoints: which results are saved although the function is run again."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from ..errors import ArgumentError, ArgumentTypeError, Given, TypeOf, meant


@dataclass(frozen=True)
class Policy:
    """A selection of results to save.

    Attributes:
        products: True to save matrix products and convolutions.
        names: names given by :func:`checkpoint_name` to save or, with ``others``, not to save.
        others: True to save everything that has none of the names.
    """

    products: bool = False
    names: frozenset[str] = frozenset()
    others: bool = False

    def __repr__(self) -> str:
        function = "save_anything_except_these_names" if self.others else "save_only_these_names"
        return f"{function}({', '.join(map(repr, sorted(self.names)))})" if self.names else repr(_words[self])


NOTHING = Policy()
EVERYTHING = Policy(others=True)
PRODUCTS = Policy(products=True)
_named = {"nothing": NOTHING, "products": PRODUCTS, "everything": EVERYTHING}
_words = {policy: word for word, policy in _named.items()}

current: ContextVar[Policy] = ContextVar("gradops_checkpoint_policy", default=NOTHING)
"""The policy of the function that is being checkpointed."""


def policy_of(policy) -> Policy:
    """The policy that an argument ``policy`` stands for."""
    if policy is None:
        return NOTHING
    if isinstance(policy, Policy):
        return policy
    choices = "'nothing', 'products', 'everything', or that of `save_only_these_names`"
    hint = "`save_only_these_names('a')` stores what `checkpoint_name(x, 'a')` named"
    if not isinstance(policy, str):
        raise ArgumentTypeError(
            f"`policy` must be {choices}; got {{policy}}.", argument="policy", hint=hint, policy=TypeOf(policy)
        )
    if policy not in _named:
        raise ArgumentError(
            f"`policy` must be {choices}; got {{policy}}.",
            argument="policy",
            hint=meant(policy, _named) or hint,
            policy=Given(repr(policy)),
        )
    return _named[policy]


def save_only_these_names(*names: str) -> Policy:
    """A policy for :func:`gradops.checkpoint` that saves only the values with these names.

    Args:
        names: strings that :func:`gradops.checkpoint_name` gave to values.

    Returns:
        A policy, for ``checkpoint(f, policy=...)``.

    Raises:
        ArgumentTypeError: a name is not a string.

    Gradient:
        Unchanged; after JAX's ``checkpoint_policies.save_only_these_names``.

    Examples:
        The hidden layer is saved; its sine is recomputed for the gradient:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> def model(x):
        ...     hidden = gradops.checkpoint_name(ops.exp(x), "hidden")
        ...     return ops.sum(ops.sin(hidden))
        >>> stored = gradops.checkpoint(model, policy=gradops.save_only_these_names("hidden"))
        >>> print(gradops.grad(stored)(np.array([0.0, 1.0])).round(4))
        [ 0.5403 -2.4783]

    See Also:
        :func:`gradops.save_anything_except_these_names`.
    """
    return Policy(names=_names(names))


def save_anything_except_these_names(*names: str) -> Policy:
    """A policy for :func:`gradops.checkpoint` that saves everything but the values with these names.

    Args:
        names: strings that :func:`gradops.checkpoint_name` gave to values, right where they were made.

    Returns:
        A policy, for ``checkpoint(f, policy=...)``. Values that are not saved are recomputed from the nearest saved
        values. JAX's policy of this name saves the value for operations that used it before it was named; this one
        does not.

    Raises:
        ArgumentTypeError: a name is not a string.

    Gradient:
        Unchanged; after JAX's ``checkpoint_policies.save_anything_except_these_names``.

    Examples:
        Only the wide value is recomputed:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> def model(x):
        ...     wide = gradops.checkpoint_name(ops.exp(ops.reshape(x, (2, 1)) * np.ones(1000)), "wide")
        ...     return ops.sum(wide**2) / 1000
        >>> light = gradops.checkpoint(model, policy=gradops.save_anything_except_these_names("wide"))
        >>> print(gradops.grad(light)(np.array([0.0, 1.0])).round(4))
        [ 2.     14.7781]

    See Also:
        :func:`gradops.save_only_these_names`.
    """
    return Policy(names=_names(names), others=True)


def _names(names: tuple) -> frozenset[str]:
    for name in names:
        named(name, "names")
    return frozenset(names)


def named(name, argument: str) -> str:
    """Return ``name``; raises if it is not a string."""
    if not isinstance(name, str):
        raise ArgumentTypeError(f"`{argument}` must be a string; got {{name}}.", argument=argument, name=TypeOf(name))
    return name

"""Policies of checkpoints: which results are saved although the function is run again."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

from ..errors import ArgumentError, ArgumentTypeError, Given, TypeOf, meant


@dataclass(frozen=True)
class Policy:
    """A selection of results to save.

    Attributes:
        products: True to save matrix products and convolutions.
        names: names given by :func:`checkpoint_name` to save or, with ``others``, not to save.
        others: True to save everything that has none of the names.
        offloaded: names to save in the memory of the CPU.
        places: JAX's names of the memories that offloaded values move from and to.
        text: the call that made the policy, if it is not that of names alone.
    """

    products: bool = False
    names: frozenset[str] = frozenset()
    others: bool = False
    offloaded: frozenset[str] = frozenset()
    places: tuple[str, str] = ("device", "pinned_host")
    text: str = field(default="", compare=False)

    @property
    def named(self) -> frozenset[str]:
        """The names that decide something."""
        return self.names | self.offloaded

    def saves(self, name: str) -> str:
        """Return ``"offload"`` or ``"save"`` for a value with this name, or ``""`` if it is recomputed."""
        if name in self.offloaded:
            return "offload"
        return "save" if (name in self.names) is not self.others else ""

    def __repr__(self) -> str:
        function = "save_anything_except_these_names" if self.others else "save_only_these_names"
        names = f"{function}({', '.join(map(repr, sorted(self.names)))})"
        return self.text or (names if self.names else repr(_words[self]))


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


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved,
    names_which_can_be_offloaded,
    offload_src: str = "device",
    offload_dst: str = "pinned_host",
) -> Policy:
    """A policy for :func:`gradops.checkpoint` that saves values with some names, and others in the CPU's memory.

    Args:
        names_which_can_be_saved, names_which_can_be_offloaded: lists of names that :func:`gradops.checkpoint_name` gave
            to values.
        offload_src, offload_dst: JAX's names of the memories to move from and to. On other libraries values move to the
            memory of the CPU, and back to their device in the backward pass.

    Returns:
        A policy, for ``checkpoint(f, policy=...)``.

    Raises:
        ArgumentTypeError: the names are not a list of strings. ArgumentError: a name is in both lists.

    Gradient:
        Unchanged; after JAX's ``checkpoint_policies.save_and_offload_only_these_names``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> def model(x):
        ...     hidden = gradops.checkpoint_name(ops.exp(x), "hidden")
        ...     return ops.sum(ops.sin(hidden))
        >>> policy = gradops.save_and_offload_only_these_names(
        ...     names_which_can_be_saved=[], names_which_can_be_offloaded=["hidden"]
        ... )
        >>> print(gradops.grad(gradops.checkpoint(model, policy=policy))(np.array([0.0, 1.0])).round(4))
        [ 0.5403 -2.4783]

    See Also:
        :func:`gradops.save_only_these_names`; :class:`gradops.autodiff.save_on_cpu`, for all values of a block.
    """
    lists = {
        "names_which_can_be_saved": names_which_can_be_saved,
        "names_which_can_be_offloaded": names_which_can_be_offloaded,
    }
    for argument, given in lists.items():
        if not isinstance(given, (list, tuple, set, frozenset)):
            raise ArgumentTypeError(
                f"`{argument}` must be a list of strings; got {{given}}.", argument=argument, given=TypeOf(given)
            )
        for name in given:
            named(name, argument)
    for argument, place in (("offload_src", offload_src), ("offload_dst", offload_dst)):
        named(place, argument)
    saved, offloaded = map(frozenset, lists.values())
    if saved & offloaded:
        raise ArgumentError(
            "`save_and_offload_only_these_names`: a name must be in one list only; both have "
            f"{', '.join(map(repr, sorted(saved & offloaded)))}.",
            argument="names_which_can_be_offloaded",
        )
    shown = ", ".join(f"{argument}={sorted(given)!r}" for argument, given in lists.items())
    text = f"save_and_offload_only_these_names({shown})"
    return Policy(names=saved, offloaded=offloaded, places=(offload_src, offload_dst), text=text)


def save_from_both_policies(policy_1, policy_2) -> Policy:
    """A policy for :func:`gradops.checkpoint` that saves what at least one of two policies saves.

    Args:
        policy_1, policy_2: policies, or the words that :func:`gradops.checkpoint` takes. If one offloads a value that
            the other saves, ``policy_1`` decides.

    Returns:
        A policy, for ``checkpoint(f, policy=...)``.

    Raises:
        ArgumentError, ArgumentTypeError: not a policy.

    Gradient:
        Unchanged; after JAX's ``checkpoint_policies.save_from_both_policies``.

    Examples:
        Matrix products are saved, and one value by its name:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> policy = gradops.save_from_both_policies("products", gradops.save_only_these_names("hidden"))
        >>> def model(x, w):
        ...     hidden = gradops.checkpoint_name(ops.exp(x @ w), "hidden")
        ...     return ops.sum(ops.sin(hidden))
        >>> light = gradops.checkpoint(model, policy=policy)
        >>> print(gradops.grad(light)(np.array([0.0, 0.5]), np.eye(2)).round(4))
        [ 0.5403 -0.1283]

    See Also:
        :func:`gradops.save_only_these_names`.
    """
    first, second = policy_of(policy_1), policy_of(policy_2)
    others = first.others or second.others
    found = {name: first.saves(name) or second.saves(name) for name in first.named | second.named}
    names = frozenset(name for name, how in found.items() if how != "offload" and (how == "save") is not others)
    offloaded = frozenset(name for name, how in found.items() if how == "offload")
    if others and not (names or offloaded):
        return EVERYTHING
    places = first.places if first.offloaded else second.places
    text = f"save_from_both_policies({first!r}, {second!r})"
    return Policy(first.products or second.products, names, others, offloaded, places, text)


def _names(names: tuple) -> frozenset[str]:
    for name in names:
        named(name, "names")
    return frozenset(names)


def named(name, argument: str) -> str:
    """Return ``name``; raises if it is not a string."""
    if not isinstance(name, str):
        raise ArgumentTypeError(f"`{argument}` must be a string; got {{name}}.", argument=argument, name=TypeOf(name))
    return name

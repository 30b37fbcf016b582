"""Hooks: functions that see a gradient during the backward pass, and may replace it.

A leaf stores its own hooks; a result's hooks are stored by the node of its operation, and are freed with it.
No hook keeps a graph alive: a hook that refers to its own variable is a cycle, which Python collects.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count

from .. import backends, dtypes
from ..errors import ArgumentTypeError, GradientError, ShapeError, TypeOf
from ..ops import conversion
from . import state
from .cotangents import given_in
from .graph import Node, asked
from .variable import Variable, method, wrap

_ids = count()


class Handle:
    """The handle of a registered hook: ``remove()`` removes the hook; also a context manager that removes it."""

    def __init__(self, registered: dict, key: int):
        self._registered = registered
        self._key = key

    def remove(self) -> None:
        """Remove the hook; does nothing if it is already removed."""
        self._registered.pop(self._key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *error) -> None:
        self.remove()


@method("register_hook")
def register(variable: Variable, hook: Callable) -> Handle:
    """Call ``hook(gradient)`` whenever a backward pass has computed the gradient of ``variable``.

    Args:
        variable: a leaf or a result that requires a gradient.
        hook: gets the gradient, a variable that it must not write to, before it is used; returns None, or
            a gradient of the same shape to use instead. Hooks run in the order of registration.

    Returns:
        A handle whose ``remove()`` removes the hook.

    Raises:
        GradientError: the variable requires no gradient.
        ArgumentTypeError: the hook cannot be called.

    Gradient:
        The value that the hook returns, if any; like ``torch.Tensor.register_hook``.
    """
    _check(variable, hook)
    shape = variable.shape
    special = state.special.get(variable.dtype)
    dtype = "" if special is not None else dtypes.canonical(variable.dtype)

    def checked(gradient):
        replaced = hook(gradient)
        if replaced is None:
            return None
        if special is not None:
            return wrap(special.convert(replaced))
        if not isinstance(replaced, Variable):
            if backends.backend_of(replaced) is None:
                raise ArgumentTypeError(
                    "a hook must return a gradient or {None}; got {replaced}.", replaced=TypeOf(replaced)
                )
            replaced = wrap(replaced)
        if tuple(replaced.shape) != shape:
            raise ShapeError(f"a hook must return a gradient of shape {shape}; got {tuple(replaced.shape)}.")
        return given_in(replaced, dtype, "a hook") if conversion.dtype(replaced) in dtypes.COMPLEX else replaced

    return _add(_place(variable), checked)


@method("register_post_accumulate_grad_hook")
def register_after(leaf: Variable, hook: Callable) -> Handle:
    """Call ``hook(leaf)`` after a backward pass has added to its ``grad``, e.g. to make a step and drop the gradient.

    As in other hooks nothing is recorded, so the leaf can be written to, unless the pass uses ``create_graph``.

    Raises:
        GradientError: the variable is not a leaf or requires no gradient.

    Gradient:
        None; like ``torch.Tensor.register_post_accumulate_grad_hook``.
    """
    _check(leaf, hook)
    if leaf._node is not None:
        raise GradientError(
            "a hook after accumulation needs a leaf; results of operations do not accumulate gradients."
        )
    if leaf._after is None:
        leaf._after = {}
    return _add(leaf._after, hook)


@method("retain_grad")
def retain(variable: Variable) -> None:
    """Keep the gradient of a result in its ``grad``, after its other hooks; see ``Variable.retain_grad``."""
    if not variable.requires_grad:
        raise GradientError("`retain_grad()` of a variable that requires no gradient.")
    asked(variable)
    if variable._node is None or variable.retains_grad:
        return
    keep = weakref.ref(variable)

    def store(gradient):
        target = keep()
        if target is None:
            return
        with state.accumulating:
            old = target._grad
            if old is not None:
                gradient = old + gradient
            elif gradient._node is None:
                gradient = wrap(gradient.data)
            target._grad = gradient

    variable.retains_grad = True
    _place(variable)[_LAST] = store


def moved(variable: Variable, before) -> None:
    """After an in-place operation, retain the gradient of the new value."""
    if variable.retains_grad and variable._node is not before:
        if before is not None and before.seq in state.hooks:
            before.hooks.pop(_LAST, None)
        variable.retains_grad = False
        retain(variable)


_LAST = "retain"


def _check(variable: Variable, hook) -> None:
    if not callable(hook):
        raise ArgumentTypeError("`hook` must be a function; got {hook}.", argument="hook", hook=TypeOf(hook))
    if not variable.requires_grad:
        raise GradientError("a hook on a variable that requires no gradient would never be called.")
    asked(variable)


def _place(variable: Variable) -> dict:
    node = variable._node
    if node is None:
        if variable._hooks is None:
            variable._hooks = {}
        return variable._hooks
    return result_hooks(node)


def result_hooks(node: Node) -> dict:
    """The hooks of a node's result."""
    # A hook often closes over its variable and so leads to the node. A table of this module would therefore keep the
    # graph alive for ever; as an attribute of the node the hook is a cycle, which Python collects. The table only has
    # the node's number.
    if node.seq not in state.hooks:
        node.hooks = {}
        state.hooks.add(node.seq)
        weakref.finalize(node, state.hooks.discard, node.seq).atexit = False
    return node.hooks


def _add(registered: dict, hook: Callable) -> Handle:
    key = next(_ids)
    registered[key] = hook
    last = registered.pop(_LAST, None)
    if last is not None:
        registered[_LAST] = last
    return Handle(registered, key)

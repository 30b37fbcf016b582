"""Hooks of nodes, of several tensors together, and scopes for saved tensors; after ``torch.autograd.graph``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .. import backends
from .._scopes import PlainScope
from ..errors import ArgumentError, ArgumentTypeError, GradientError, TypeOf
from ..ops import _checks
from . import engine, state, torch_tape
from .graph import Node
from .hooks import Handle, _add, register, result_hooks
from .state import Packed
from .variable import Variable, data_of, wrap


def _node_hook(node: Node, which: str, fn: Callable) -> Handle:
    if not callable(fn):
        raise ArgumentTypeError("`fn` must be a function; got {fn}.", argument="fn", fn=TypeOf(fn))
    if node.saved is None:
        raise GradientError(f"the graph of `{node.name}` was freed by an earlier backward pass.")
    if not hasattr(node, "around"):
        result_hooks(node)  # enters the node into `state.hooks`: a user's function takes part in passes
        node.around = {"before": {}, "after": {}}
        if node.saved.__class__ is tuple:
            node.saved = Packed(node.saved)  # takes the pass to the general step, which calls hooks
    return _add(node.around[which], fn)


def register_hook(self: Node, fn: Callable) -> Handle:
    """Call ``fn(grad_inputs, grad_outputs)`` after the node's step in a backward pass.

    Args:
        fn: gets a tuple with a gradient, or None, for each edge of ``next_functions``, and one for each result. It
            returns None, or a tuple to use in place of ``grad_inputs``.

    Returns:
        A handle whose ``remove()`` removes the hook.
    """
    return _node_hook(self, "after", fn)


def register_prehook(self: Node, fn: Callable) -> Handle:
    """Call ``fn(grad_outputs)`` before the node's step in a backward pass.

    Args:
        fn: gets a tuple with the gradient of each result. It returns None, or a tuple to use instead.

    Returns:
        A handle whose ``remove()`` removes the hook.
    """
    return _node_hook(self, "before", fn)


Node.register_hook = register_hook
Node.register_prehook = register_prehook


def _shown(g):
    if g is None:
        return None
    own = engine.given(g)
    return own if isinstance(own, Variable) else wrap(own)


def _replaced(found, before: list, create_graph: bool, name: str) -> list:
    """The gradients that a hook returned in place of ``before``."""
    if found is None:
        return before
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    if len(found) != len(before):
        raise GradientError(f"a hook of a node must return {len(before)} gradients, as `{name}`; got {len(found)}.")
    return [None if g is None else engine.lent(g if create_graph else data_of(g)) for g in found]


@engine.around
def step_with_hooks(node: Node, g, create_graph: bool, step: Callable) -> list:
    """``step(g)``, the gradients for the node's edges, with the node's hooks around it."""
    several = isinstance(g, list)
    outputs = g if several else [g]
    for fn in list(node.around["before"].values()):
        outputs = _replaced(fn(tuple(map(_shown, outputs))), outputs, create_graph, "grad_outputs")
    gradients = [None if x is None else engine.whole(x) for x in step(outputs if several else outputs[0])]
    for fn in list(node.around["after"].values()):
        found = fn(tuple(map(_shown, gradients)), tuple(map(_shown, outputs)))
        gradients = _replaced(found, gradients, create_graph, "grad_inputs")
    return gradients


class _Handles:
    """The handle of a hook of several tensors; also a context manager that removes it."""

    def __init__(self, handles: list[Handle]):
        self._handles = handles

    def remove(self) -> None:
        """Remove the hook; does nothing if it is already removed."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *error) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence, fn: Callable, *, mode: str = "all"):
    """Call ``fn`` once in each backward pass that computes gradients of some of several tensors.

    Args:
        tensors: variables that require a gradient, or torch tensors, for which this is PyTorch's own function.
        fn: with mode ``"all"``, gets a list with the gradient of each of ``tensors``, or None if the pass does not
            compute it, at the end of the pass; with ``"any"``, the first gradient that is computed.
        mode: ``"all"`` or ``"any"``.

    Returns:
        A handle whose ``remove()`` removes the hook.

    Raises:
        ArgumentError: an unknown ``mode``, or no tensors.
        ArgumentTypeError: a hook that is not a function, or tensors that are not a sequence of variables.
        GradientError: a tensor that requires no gradient.

    Gradient:
        None; the hook cannot replace gradients. After ``torch.autograd.graph.register_multi_grad_hook``.

    Examples:
        >>> import gradops
        >>> from gradops import autodiff
        >>> a, b = gradops.Variable(2.0, requires_grad=True), gradops.Variable(3.0, requires_grad=True)
        >>> handle = autodiff.register_multi_grad_hook([a, b], lambda found: print([g.item() for g in found]))
        >>> (a * b).backward()
        [3.0, 2.0]
        >>> handle.remove()

    See Also:
        ``Variable.register_hook`` for one variable.
    """
    if not callable(fn):
        raise ArgumentTypeError("`fn` must be a function; got {fn}.", argument="fn", fn=TypeOf(fn))
    _checks.choice("register_multi_grad_hook", mode, ("all", "any"), "mode")
    if isinstance(tensors, Variable) or not isinstance(tensors, Iterable):
        raise ArgumentTypeError("`tensors` must be a list; got {tensors}.", argument="tensors", tensors=TypeOf(tensors))
    tensors = list(tensors)
    if not tensors:
        raise ArgumentError("`tensors` must not be empty.", argument="tensors")
    if not any(isinstance(x, Variable) for x in tensors) and any(_own_tape(x) for x in tensors):
        from torch.autograd.graph import register_multi_grad_hook

        return register_multi_grad_hook(tensors, fn, mode=mode)
    for x in tensors:
        if not isinstance(x, Variable):
            raise ArgumentTypeError(
                "`tensors` must be variables or torch tensors; got {x}.", argument="tensors", x=TypeOf(x)
            )
    this = object()

    def hook_of(i: int) -> Callable:
        def hook(gradient) -> None:
            running = state.running.get()
            if running is None:
                return
            if id(this) not in running.notes:
                running.notes[id(this)] = found = [None] * len(tensors)
                if mode == "any":
                    fn(gradient)
                else:
                    running.ends.append(lambda: fn(found))
            running.notes[id(this)][i] = gradient

        return hook

    return _Handles([register(x, hook_of(i)) for i, x in enumerate(tensors)])


def _own_tape(x) -> bool:
    owner = backends.backend_of(x)
    return owner is not None and owner.derivatives.own_tape


class allow_mutation_on_saved_tensors(PlainScope):
    """A scope that lets tensors be written in place after they were saved for the backward pass.

    The pass uses the values that the operations had. On the tape, operations save copies of the arrays that can be
    written, which takes time and memory; PyTorch's own scope, which is entered for its tensors, copies when they are
    written. A gradient function of a custom gradient that reads a tensor written since still raises an error. After
    ``torch.autograd.graph.allow_mutation_on_saved_tensors``.

    Examples:
        >>> import gradops
        >>> from gradops import autodiff
        >>> w = gradops.Variable([1.0, 2.0], requires_grad=True)
        >>> with autodiff.allow_mutation_on_saved_tensors():
        ...     x = w * 3.0
        ...     y = (x**2).sum()
        ...     x[0] = 100.0
        ...     y.backward()
        >>> print(w.grad.numpy())
        [18. 36.]

    See Also:
        ``Variable.clone``, for one tensor.
    """

    def __enter__(self):
        self._watch = _Watch()
        state.watchers.append(self._watch)
        torch, self._torch = torch_tape.loaded(), None
        if torch is not None:
            from torch.autograd.graph import allow_mutation_on_saved_tensors

            self._torch = allow_mutation_on_saved_tensors()
            self._torch.__enter__()
        return self

    def __exit__(self, *error) -> None:
        state.watchers.remove(self._watch)
        if self._torch is not None:
            self._torch.__exit__(None, None, None)


class _Watch:
    """Gives nodes copies of the arrays that they save; an object of its own for each scope."""

    def __call__(self, node: Node) -> None:
        node.saved = type(node.saved)(map(_own, node.saved))


def _own(value) -> Any:
    if value.__class__ is np.ndarray:
        return value.copy("K") if value.flags.writeable else value
    return [_own(x) for x in value] if value.__class__ is list else value

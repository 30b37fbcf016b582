"""PyTorch: a test for derivatives inside of others, which depend on tensors beside their inputs.

The graph of a value shows its dependences. A gradient function may read tensors that the value does not depend on, as
``lambda u: u * torch.cos(y)`` reads ``y``: while a pass runs that is not recorded, a mode sees the tensors that
Python's functions read.
"""

from __future__ import annotations

from operator import attrgetter

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import get_gradient_edge
from torch.overrides import TorchFunctionMode

from . import _private

_node = attrgetter("grad_fn")


def reaches_others(ys, inputs) -> bool:
    """True if ``ys`` also depend on tensors that require gradients and are not inputs."""
    return _reaches_others(ys, inputs, set(map(_node, inputs)))


def _reaches_others(ys, inputs, seen: set) -> bool:
    """The same, without the nodes already ``seen``, to which those found now are added."""
    found = []  # it grows as it is gone through
    for y in ys:
        node = y.grad_fn
        if node is None:
            if y.requires_grad and _another(y, inputs):
                return True
        elif node not in seen:
            seen.add(node)
            found.append(node)
    for node in found:
        further = node.next_functions
        for next_node, _ in further:
            if next_node is not None and next_node not in seen:
                seen.add(next_node)
                found.append(next_node)
        if not further and (leaf := getattr(node, "variable", None)) is not None and _another(leaf, inputs):
            return True
    return False


def _another(leaf, inputs) -> bool:
    """True if a leaf is neither an input nor a constant of a derivative that is over."""
    base = _private.base(leaf)
    leaf = leaf if base is None else base  # of a view that was made while nothing is recorded
    for x in inputs:
        if leaf is x:
            return False
    return not (hasattr(leaf, "gradops_done") or _same_place(leaf, inputs))


def _same_place(leaf, inputs) -> bool:
    """True if a leaf's gradient goes where an input's does: hooks for saved tensors make another tensor of a leaf."""
    leaves = [] if _private.transforming() else [x for x in inputs if x.requires_grad and x.grad_fn is None]
    place = get_gradient_edge(leaf).node if leaves else None
    return any(get_gradient_edge(x).node is place for x in leaves)


class Others(TorchFunctionMode):
    """A search for tensors other than inputs on which given tensors, or the backward passes from them, depend.

    A pass depends on the tensors that functions in Python read in it. As a scope this watches the passes that
    ``torch.autograd.grad`` does in it.

    Attributes:
        found: True if there are such tensors.
        watched: True if functions in Python are known to take part in a pass.
    """

    def __init__(self, ys, inputs):
        super().__init__()
        self.inputs, self._seen = inputs, set(map(_node, inputs))
        self._passing, self._hooks = False, None
        self.found = _reaches_others(ys, inputs, self._seen)
        self.watched = any(isinstance(node, BackwardCFunction) for node in self._seen)

    def read(self, values) -> None:
        """Search the tensors among these values, too."""
        if not (self.found or _private.below_autograd() or self._recomputing()):
            tensors = [x for x in values if isinstance(x, torch.Tensor) and x.requires_grad]
            tensors = [x for x in tensors if not _private.keeps_an_input(x)]  # which the value depends on
            self.found = bool(tensors) and _reaches_others(tensors, self.inputs, self._seen)

    def _recomputing(self) -> bool:
        """True if a checkpoint runs its function again, from leaves of its own: the value has read the same."""
        return self._passing and _private.top_saved_hooks(True) != self._hooks

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is not torch.autograd.grad or self._passing:
            for value in (*args, *kwargs.values()):
                self.read(value if isinstance(value, (list, tuple)) else (value,))
            return func(*args, **kwargs)
        if kwargs.get("create_graph") or kwargs.get("is_grads_batched"):
            found = func(*args, **kwargs)
            self.read(found)
            return found
        return self._pass(*args, **kwargs)

    def _pass(self, outputs, inputs, grad_outputs=None, retain_graph=None, materialize_grads=False, **_):
        """``torch.autograd.grad(allow_unused=True)`` with the mode on, which PyTorch turns off in what a mode calls."""
        outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
        weights = [None] * len(outputs) if grad_outputs is None else _as_tuple(grad_outputs)
        weights = [torch.ones_like(y) if w is None else w for w, y in zip(weights, outputs)]
        self._passing, self._hooks = True, _private.top_saved_hooks(True)
        try:
            with self:
                found = _private.pass_of_engine(outputs, tuple(weights), bool(retain_graph), False, inputs, True, False)
        finally:
            self._passing = False
        return tuple(torch.zeros_like(x) if g is None and materialize_grads else g for g, x in zip(found, inputs))


def _as_tuple(values) -> tuple:
    return (values,) if isinstance(values, torch.Tensor) else tuple(values)

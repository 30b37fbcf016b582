"""Residuals of a derivative: its saved tensors with their sizes and origins."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from .. import _call_sites, _tree, backends
from ..autodiff import state
from ..autodiff.graph import RESULT, Node, nodes_of
from ..autodiff.variable import Variable, data_of
from ..backends.checkpoint_plan import Handle, arrays_held
from ..backends.interface import Residual, register_on_tape
from ..ops import conversion
from .on_tape import Recording
from .point import Point
from .transformations import _Run


def print_saved_residuals(f: Callable, *args, **kwargs) -> None:
    """Print the tensors that a reverse-mode derivative of ``f`` saves: dtype, shape, bytes, and where they were made.

    The last line is the total. A tensor that several operations save is listed once.

    Args:
        f: a function of tensors, or structures of tensors, that returns tensors; ``checkpoint(f, policy)`` shows what a
            policy saves.
        args: the arguments to differentiate.
        kwargs: more arguments, which are constants.

    Returns:
        None.

    Raises:
        BackendError: TensorFlow tensors, whose tapes do not say what they save.
        ArgumentTypeError: an argument of an integer or bool dtype among ``args``.
        GradientError: a value that is not a floating tensor; inside ``torch.func``'s transforms.

    Gradient:
        None. On the tape ``f`` is recorded, on PyTorch its hooks for saved tensors are read, on JAX this is
        ``jax.ad_checkpoint.print_saved_residuals``. Tensors that only a gradient function closes over are not listed.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> def f(x, w):
        ...     return ops.sum(ops.tanh(ops.matmul(x, w)))
        >>> gradops.print_saved_residuals(gradops.checkpoint(f), np.ones((2, 3)), np.ones((3, 4)))
        float64[2,3]  48 B  argument x
        float64[3,4]  96 B  argument w
        total: 144 B in 2 tensors
        >>> print(gradops.grad(gradops.checkpoint(f))(np.zeros((2, 3)), np.ones((3, 4)))[0])
        [4. 4. 4.]

    See Also:
        :func:`gradops.checkpoint`; :class:`gradops.autodiff.saved_tensors_hooks`.
    """
    for line in lines_of(saved_residuals(f, *args, **kwargs)):
        print(line)


def saved_residuals(f: Callable, *args, parameters: list[str] | None = None, **kwargs) -> list[Residual]:
    """Return the residuals of :func:`print_saved_residuals`.

    Args:
        parameters: names of the arguments; None takes the names of the function's parameters.
    """
    run = _Run("print_saved_residuals", (lambda *xs: f(*xs, **kwargs)) if callable(f) else f, args)
    return run.derivatives.residuals(
        run.at, _names(_parameters(f, args) if parameters is None else parameters, run.form)
    )


def lines_of(found: list[Residual]) -> list[str]:
    """Return a line for each tensor, and one for all."""
    kinds = [f"{x.dtype}[{','.join(map(str, x.shape))}]" for x in found]
    sizes = [f"{x.bytes:,} B" for x in found]
    width, size = (max(map(len, words), default=0) for words in (kinds, sizes))
    total = f"total: {sum(x.bytes for x in found):,} B in {len(found)} tensor{'' if len(found) == 1 else 's'}"
    return [*(f"{a:{width}}  {b:>{size}}  {x.where}" for a, b, x in zip(kinds, sizes, found)), total]


def _parameters(f: Callable, args: tuple) -> list[str]:
    """The names of the parameters that ``args`` are passed to."""
    names = [f"args[{i}]" for i in range(len(args))]
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except ValueError:  # a C function without a signature
        return names
    for i, parameter in enumerate(parameters[: len(args)]):
        if parameter.kind is parameter.VAR_POSITIONAL:
            return [*names[:i], *(f"{parameter.name}[{k}]" for k in range(len(args) - i))]
        names[i] = parameter.name
    return names


def _names(parameters: list[str], form: _tree.Structure) -> list[str]:
    """The names of the tensors in the arguments: the parameter's, with the path in a structure."""
    return [f"argument {name}{path}" for name, part in zip(parameters, form.parts) for path in _tree.paths(part)]


@register_on_tape
def residuals(at: Point, names: list[str]) -> list[Residual]:
    lines: dict[Node, str] = {}

    def watch(node: Node) -> None:
        lines[node] = _call_sites.users_line()

    state.watchers.append(watch)
    try:
        recorded = Recording(at, False)
    finally:
        state.watchers.remove(watch)
    found = _Found()
    arguments = {_memory(v.data): name for v, name in zip(recorded.variables, names)}
    handles: list[Handle] = []

    def origin(node: Node, slot) -> str:
        if slot == RESULT:
            return f"output of {node.name}{_at(lines.get(node))}"
        edge = node.edges[slot] if type(slot) is int else None
        if isinstance(edge, Node):
            return f"output of {edge.name}{_at(lines.get(edge))}"
        return f"constant of {node.name}{_at(lines.get(node))}"

    def add(value, node: Node, slot) -> None:
        if isinstance(value, list):
            for part, own in zip(value, slot if isinstance(slot, tuple) else [None] * len(value)):
                add(part, node, own)
        elif isinstance(value, Handle):
            handles.append(value)
        elif backends.backend_of(value) is not None:
            found.add(value, arguments.get(_memory(value)) or origin(node, slot))

    for node in nodes_of([y for y in recorded.outputs if isinstance(y, Variable)]):
        slots = (*node.rule.slots, *[None] * len(node.saved))
        for value, slot in zip(node.saved, slots):
            add(value, node, slot)
    for array in arrays_held(handles):
        found.add(array, arguments.get(_memory(array)) or "saved by a checkpoint")
    return found.residuals


class _Found:
    """Residuals, without a second one on the same memory."""

    def __init__(self):
        self.residuals: list[Residual] = []
        self._seen: dict = {}

    def add(self, array, where: str) -> None:
        key = _memory(array)
        if key not in self._seen:
            self._seen[key] = array  # keeps its `id`
            self.residuals.append(Residual(conversion.dtype(array), tuple(array.shape), where))


def _memory(array) -> int:
    return id(state.buffer(data_of(array)))


def _at(line: str | None) -> str:
    return f" at {line}" if line else ""

"""Forward mode by PyTorch's names: tensors with tangents in a :class:`dual_level`; after ``torch.autograd.forward_ad``.

On PyTorch's tensors these are PyTorch's functions. On the tape a dual is a recorded variable that the level knows the
tangent of; :func:`unpack_dual` propagates the tangents through the graph that was recorded since.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

from .. import backends, config
from .._names import namespace
from .._scopes import PlainScope
from ..errors import ArgumentTypeError, GradientError, ShapeError, TypeOf
from ..ops import _checks, conversion
from .derivatives import Others, fresh, linked
from .graph import key
from .modes import ensured_recording
from .pushforward import pushed
from .variable import Variable, differentiable, is_active, wrap

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class _Level:
    """An open level: the duals made in it, and their tangents by :func:`.graph.key`; and PyTorch's level, if open."""

    def __init__(self) -> None:
        self.duals: list[Variable] = []
        self.tangents: dict[int, Any] = {}
        self.torch: int | None = None

    def torch_level(self) -> int:
        """PyTorch's level that belongs to this one."""
        if self.torch is None:
            self.torch = _torch().enter_dual_level()
        return self.torch

    def close(self) -> None:
        for x in self.duals:
            x.gradops_done = True  # type: ignore[attr-defined]  # a constant for enclosing derivatives
        if self.torch is not None:
            _torch().exit_dual_level(level=self.torch)


def _torch() -> Any:
    from torch.autograd import forward_ad

    return forward_ad


_levels: ContextVar[tuple[_Level, ...]] = ContextVar("gradops_dual_levels", default=())


class UnpackedDualTensor(NamedTuple):
    """The result of :func:`unpack_dual`: ``primal``, and ``tangent``, which is None for a tensor without one.

    Examples:
        >>> import gradops
        >>> from gradops.autodiff import forward_ad
        >>> with forward_ad.dual_level():
        ...     y = gradops.ops.exp(forward_ad.make_dual(0.0, 2.0))
        ...     value, tangent = forward_ad.unpack_dual(y)
        >>> print(value.item(), tangent.item(), gradops.grad(gradops.ops.exp)(0.0))
        1.0 2.0 1.0

    See Also:
        :func:`unpack_dual`.
    """

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Open a level for duals until :func:`exit_dual_level`; better use :class:`dual_level`.

    Returns:
        The number of the level, from 0. On the tape levels may be nested; PyTorch has one.

    Examples:
        >>> import gradops
        >>> from gradops.autodiff import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> print(forward_ad.unpack_dual(forward_ad.make_dual(3.0, 1.0) ** 2).tangent.item())
        6.0
        >>> forward_ad.exit_dual_level(level=level)
        >>> print(gradops.grad(lambda x: x**2)(3.0))
        6.0

    See Also:
        :class:`dual_level`.
    """
    _levels.set((*_levels.get(), _Level()))
    return len(_levels.get()) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the innermost level; the tangents of its duals are gone.

    Args:
        level: its number.

    Raises:
        GradientError: no level is open, or ``level`` is not the innermost.

    Examples:
        >>> import gradops
        >>> from gradops.autodiff import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> x = forward_ad.make_dual(3.0, 1.0)
        >>> forward_ad.exit_dual_level()
        >>> print(forward_ad.unpack_dual(x).tangent, gradops.grad(lambda x: x**2)(3.0))
        None 6.0

    See Also:
        :func:`enter_dual_level`.
    """
    open_levels = _levels.get()
    if not open_levels or level not in (None, len(open_levels) - 1):
        raise GradientError(
            "`exit_dual_level` closes the innermost level, "
            + (f"{len(open_levels) - 1}; got {level}." if open_levels else "and no level is open."),
            argument="level",
        )
    _levels.set(open_levels[:-1])
    open_levels[-1].close()


class dual_level(PlainScope):
    """A scope where :func:`make_dual` gives tensors tangents. After ``torch.autograd.forward_ad.dual_level``.

    Use it as ``with dual_level():`` or as a decorator.

    Examples:
        A function and its derivative along a direction, computed together:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.autodiff import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
        ...     y = forward_ad.unpack_dual(ops.sum(x**3))
        >>> print(y.primal.item(), y.tangent.item())
        9.0 3.0
        >>> print(gradops.jvp(lambda x: ops.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))[1])
        3.0

    See Also:
        :func:`make_dual`, :func:`unpack_dual`; :func:`gradops.jvp` for functions.
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error) -> None:
        exit_dual_level()


def make_dual(tensor, tangent, *, level: int | None = None):
    """``tensor`` with a tangent, which operations on it propagate.

    Args:
        tensor: a variable, an array or a number (a variable is made of it); or a torch tensor.
        tangent: a tensor of its shape and dtype.
        level: the number of an open level; by default the innermost.

    Returns:
        A variable that records what is computed from it; PyTorch's dual tensor for a torch tensor.

    Raises:
        GradientError: no level is open.
        ArgumentTypeError: ``tensor`` is not floating, or ``tangent`` of another dtype.
        ShapeError: ``tangent`` has another shape.

    Gradient:
        To ``tensor``, if it is a variable that requires a gradient, and to ``tangent``.

    Examples:
        >>> import gradops
        >>> from gradops.autodiff import forward_ad
        >>> x = gradops.Variable(3.0, requires_grad=True)
        >>> with forward_ad.dual_level():
        ...     slope = forward_ad.unpack_dual(forward_ad.make_dual(x, 1.0) ** 3).tangent
        >>> slope.backward()
        >>> print(slope.item(), x.grad.item())
        27.0 18.0

    See Also:
        :func:`unpack_dual`, :class:`dual_level`.
    """
    opened = _level("make_dual", level)
    if opened is None:
        raise GradientError("`make_dual` is called in a level.", hint="put it in `with dual_level():`")
    owner = backends.backend_of(tensor)
    if owner is not None and owner.derivatives.own_tape:
        return _torch().make_dual(tensor, tangent, level=opened.torch_level())
    x = tensor if isinstance(tensor, Variable) else wrap(_array("tensor", tensor))
    t = tangent if isinstance(tangent, Variable) else _array("tangent", tangent, x.data)
    if not differentiable(x.data):
        raise ArgumentTypeError(
            f"`make_dual`: `tensor` must be floating; got dtype {conversion.dtype(x)}.", argument="tensor"
        )
    if tuple(t.shape) != tuple(x.shape):
        raise ShapeError(
            f"`make_dual`: `tangent` must have the shape {tuple(x.shape)} of `tensor`; got {tuple(t.shape)}.",
            argument="tangent",
        )
    if conversion.dtype(t) != conversion.dtype(x):
        raise ArgumentTypeError(
            f"`make_dual`: `tangent` must have the dtype {conversion.dtype(x)} of `tensor`; got {conversion.dtype(t)}.",
            argument="tangent",
        )
    with ensured_recording():
        dual = linked(x) if is_active(x) else fresh(x)
    opened.duals.append(dual)
    opened.tangents[key(dual._node or dual)] = t
    return dual


def unpack_dual(tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor that was computed from duals.

    Args:
        tensor: a variable, a torch tensor, or anything else, which has no tangent.
        level: the number of an open level; by default the innermost.

    Returns:
        ``(primal, tangent)``; ``tangent`` is None if the tensor depends on no dual of the level, or if none is open.

    Gradient:
        To variables outside of the level, of both; see :func:`make_dual`.

    Examples:
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.autodiff import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(0.5, 1.0)
        ...     primal, tangent = forward_ad.unpack_dual(ops.sin(x))
        ...     print(forward_ad.unpack_dual(ops.array(2.0)).tangent)
        None
        >>> print(tangent.item() == gradops.grad(ops.sin)(0.5))
        True

    See Also:
        :func:`make_dual`.
    """
    opened = _level("unpack_dual", level)
    owner = backends.backend_of(tensor)
    if owner is not None and owner.derivatives.own_tape:
        return UnpackedDualTensor(*_torch().unpack_dual(tensor, level=-1 if opened is None else opened.torch_level()))
    if opened is None or not isinstance(tensor, Variable) or not is_active(tensor):
        return UnpackedDualTensor(tensor, None)
    keep = Others([tensor], opened.duals).active() or any(map(is_active, opened.tangents.values()))
    keep = keep or any(x._node is not None for x in opened.duals)
    (tangent,) = pushed([tensor], opened.tangents, keep)
    if tangent is not None and not isinstance(tangent, Variable):
        tangent = wrap(tangent)
    return UnpackedDualTensor(tensor if keep or tangent is None else wrap(tensor.data), tangent)


def _level(name: str, number: int | None) -> _Level | None:
    """The open level of that number, by default the innermost; None if none is open."""
    open_levels = _levels.get()
    if number is None:
        return open_levels[-1] if open_levels else None
    number = _checks.integer(name, number, "level", 0)
    if not 0 <= number < len(open_levels):
        raise GradientError(f"no dual level has the number {number}; {len(open_levels)} are open.", argument="level")
    return open_levels[number]


def _array(name: str, value, like=None):
    """A number, list or array as a tensor; numbers in the dtype and library of ``like``."""
    if backends.backend_of(value) is not None:
        return value
    if not _checks.is_numeric(value):
        raise ArgumentTypeError(
            f"`make_dual`: `{name}` must be a tensor; got {{value}}.", argument=name, value=TypeOf(value)
        )
    owner = config.default_backend() if like is None else backends.backend_of(like)
    value = float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return owner.convert(value, None if like is None else conversion.dtype(like), like=like)


__dir__, __getattr__ = namespace(__name__)

"""Tangents and cotangents that are known to be zero, for rules that ask for them (``symbolic_zeros=True``)."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _tree, backends, dtypes
from ..autodiff.variable import Variable, is_active
from ..flow.gradient_functions import is_tensor
from ..ops import conversion, creation
from .shapes import ShapeDtypeStruct


class SymbolicZero(ShapeDtypeStruct):
    """A tangent or cotangent that is known to be zero, without an array; after ``jax.custom_derivatives.SymbolicZero``.

    Rules of :class:`gradops.custom_jvp` and :class:`gradops.custom_vjp` that are set with ``symbolic_zeros=True`` get
    it, and may return it.

    Args:
        shape, dtype: of the zeros that it stands for.

    Examples:
        The tangent of an argument that is not differentiated:

        >>> import gradops
        >>> from gradops.functional import SymbolicZero
        >>> scaled = gradops.custom_jvp(lambda x, k: k * x)
        >>> def rule(primals, tangents):
        ...     (x, k), (t, _) = primals, tangents
        ...     print([isinstance(t, SymbolicZero) for t in tangents])
        ...     return k * x, k * t
        >>> _ = scaled.defjvp(rule, symbolic_zeros=True)
        >>> print(gradops.grad(scaled)(2.0, 3.0))
        [False, True]
        3.0

    See Also:
        :class:`CustomVJPPrimal`; :class:`gradops.custom_jvp`.
    """

    __slots__ = ()


class CustomVJPPrimal(NamedTuple):
    """A tensor or number among the arguments of a rule ``fwd`` that is set with ``symbolic_zeros=True``.

    Args:
        value: the tensor or number.
        perturbed: True if it may be differentiated; False only if its gradient is not needed.

    Examples:
        >>> import gradops
        >>> power = gradops.custom_vjp(lambda x, n: x**n)
        >>> def forward(x, n):
        ...     print(x.perturbed, n.perturbed)
        ...     return x.value**n.value, (x.value, n.value)
        >>> def backward(saved, g):
        ...     x, n = saved
        ...     return g * n * x ** (n - 1), None
        >>> power.defvjp(forward, backward, symbolic_zeros=True)
        >>> print(gradops.grad(power)(3.0, 2.0))
        True False
        6.0

    See Also:
        :class:`SymbolicZero`; :class:`gradops.custom_vjp`.
    """

    value: Any
    perturbed: bool


def moves(x) -> bool:
    """True if an argument, or a part of one, has tangents."""
    return is_tensor(x) and dtypes.is_floating(conversion.dtype(x))


def connected(y) -> bool:
    """True if a value may have a gradient."""
    if isinstance(y, Variable):
        return is_active(y)
    owner = backends.backend_of(y)
    return owner is not None and owner.derivatives.records(y)


def symbolic_zero(x) -> SymbolicZero | None:
    """The zero tangent of a tensor or number; None for other values."""
    return SymbolicZero(conversion.shape(x), conversion.dtype(x)) if is_tensor(x) or type(x) is float else None


def filled_zeros(tangents, value):
    """Tangents in the structure of ``value`` with zeros in place of each :class:`SymbolicZero`."""
    leaves, form = _tree.flatten(tangents)
    if not any(isinstance(t, SymbolicZero) for t in leaves):
        return tangents
    like = _tree.leaves_of(value)
    return _tree.unflatten(
        form, [creation.zeros_like(y) if isinstance(t, SymbolicZero) else t for t, y in zip(leaves, like)]
    )

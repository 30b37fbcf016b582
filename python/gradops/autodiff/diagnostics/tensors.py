"""What gradcheck does to tensors of any library: reading, moving, counting their real elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import backends, dtypes
from ...errors import ArgumentError
from ...ops import conversion
from ..modes import no_grad
from ..variable import Variable, data_of, wrap


class Kind:
    """What inputs are differentiated by: their library, ``derivatives``, or the tape.

    Attributes:
        says: whether the inputs say themselves which of them require a gradient.
        wrapped: whether they are arrays that the tape records as variables.
    """

    def __init__(self, values):
        self.variables = any(isinstance(v, Variable) for v in values)
        owner: Any = None if self.variables else backends.common([type(v) for v in values], "gradcheck")
        if owner is None and not self.variables:
            raise ArgumentError("gradcheck: no input is a tensor.", argument="inputs")
        derivatives: Any = getattr(owner, "derivatives", None)
        self.derivatives = derivatives
        self.says = self.variables or derivatives.own_tape
        self.wrapped = not self.says and not derivatives.native
        self.on_tape = self.says or self.wrapped


def checked_places(values, kind: Kind) -> list[int]:
    tensors = [i for i, v in enumerate(values) if isinstance(v, Variable) or backends.of(v) is not None]
    if kind.says:
        places = [i for i in tensors if getattr(values[i], "requires_grad", False)]
    else:
        places = [i for i in tensors if is_differentiable(values[i])]
    if not places:
        raise ArgumentError("gradcheck: no input requires a gradient.", argument="inputs")
    return places


def is_differentiable(y) -> bool:
    return (isinstance(y, Variable) or backends.of(y) is not None) and dtypes.is_floating(conversion.dtype(y))


def evaluate(func, values):
    with no_grad():
        return func(*values)


def leaf(x):
    if isinstance(x, Variable):
        leaf = wrap(x.data)
        leaf.requires_grad = True
        return leaf
    return x.detach().requires_grad_()


def like(array: np.ndarray, x):
    """A NumPy array as a tensor of ``x``'s library and dtype."""
    data = data_of(x)
    owner: Any = backends.of(data)
    return owner.convert(array, conversion.dtype(data), like=data)


def changed(x, array: np.ndarray):
    """``x`` with other values."""
    changed = like(array.reshape(tuple(x.shape)), x)
    if isinstance(x, Variable):
        changed = wrap(changed)
    if getattr(x, "requires_grad", False):
        changed.requires_grad = True
    return changed


def to_numpy(x) -> np.ndarray:
    data = data_of(x)
    owner = backends.of(data)
    if owner is None:
        return np.asarray(data)
    array = owner.to_numpy(data)
    return array.astype(complex if array.dtype.kind == "c" else float)


def random_array(rng, shape, is_complex: bool) -> np.ndarray:
    g = np.asarray(rng.standard_normal(shape))
    return g + 1j * rng.standard_normal(shape) if is_complex else g


def random_like(rng, y, kind: Kind, gaps: bool):
    g = random_array(rng, tuple(y.shape), "complex" in conversion.dtype(y))
    if (kind.variables or kind.wrapped) and gaps and g.ndim:
        wide = np.zeros((*g.shape[:-1], 2 * g.shape[-1]), g.dtype)
        wide[..., ::2] = g
        g = wide[..., ::2]
    upstream = like(g, y)
    if kind.says:
        upstream = wrap(upstream) if kind.variables else upstream
        upstream.requires_grad = True
    return upstream


def reals(array) -> np.ndarray:
    """The elements in a row, a complex one as its two parts."""
    array = np.ascontiguousarray(array).reshape(-1)
    return array.view(float) if array.dtype.kind == "c" else array.astype(float)


def real_count(array: np.ndarray) -> int:
    return array.size * (2 if np.iscomplexobj(array) else 1)


def real_size(x) -> int:
    return conversion.size(x) * (2 if "complex" in conversion.dtype(x) else 1)


def overlaps(x) -> bool:
    data = data_of(x)
    strides = data.stride() if hasattr(data, "stride") else getattr(data, "strides", ())
    return any(s == 0 and n > 1 for s, n in zip(strides, data.shape))


def as_tuple(value) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)

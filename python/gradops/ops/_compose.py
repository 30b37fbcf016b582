"""Shared by composed ops: the dtype rule applied by hand."""

from __future__ import annotations

import numpy as np

from .. import backends, config, dtypes
from .conversion import cast, dtype

NUMBERS = (bool, int, float, complex)
_CONSTANTS = (*NUMBERS, np.ndarray, np.generic)


def as_float(x):
    """``x`` if floating or complex, else cast to ``floatx``."""
    return x if dtypes.is_floating(dtype(x)) else cast(x, config.floatx())


def promoted(*xs, floating: bool = False) -> list:
    """Operands as tensors of their promoted dtype, of a floating one with ``floating``.

    Python numbers stay weak.
    """
    found = None
    for x in xs:
        if type(x) not in NUMBERS:
            found = dtype(x) if found is None else dtypes.promote(found, dtype(x))
    for x in xs:
        if type(x) in NUMBERS:
            found = dtypes.promote_number(found or "bool", type(x), config.floatx())
    if floating and not dtypes.is_floating(found):
        found = config.floatx()
    tensors = [x for x in xs if type(x) not in NUMBERS]
    like = next((x for x in tensors if not isinstance(x, _CONSTANTS)), tensors[0] if tensors else None)
    return [beside(x, like, found) if dtype(x) != found or type(x) in NUMBERS else x for x in xs]


def beside(value, like, name: str | None = None):
    """A number, or NumPy's array, as a tensor of ``like``'s library, on its device and, without a name, of its dtype.

    A dtype that NumPy lacks could not be had otherwise. Tensors are cast.
    """
    if isinstance(value, _CONSTANTS):
        data = like.data if hasattr(like, "_node") else like
        owner = backends.of(data)
        if owner is not None:
            value = owner.convert(value, like=data)
    return cast(value, name or dtype(like))


def is_complex(x) -> bool:
    """True for a complex dtype."""
    return dtype(x) in dtypes.COMPLEX

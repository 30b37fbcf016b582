"""Helpers of composed ops: dtype promotion, and the dtype to compute in.

Half precision is computed in single precision and rounded once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from .. import backends, config, dtypes
from ..errors import ArgumentTypeError
from ._checks import check_held, describe
from .conversion import cast, dtype

NUMBERS = (bool, int, float, complex)
_CONSTANTS = (*NUMBERS, np.ndarray, np.generic)


def as_float(x):
    """``x`` if floating or complex, else cast to ``floatx``."""
    return x if dtypes.is_floating(dtype(x)) else cast(x, config.floatx())


def promoted(*xs, floating: bool = False) -> list:
    """Return operands as tensors of their promoted dtype, a floating one if ``floating``.

    Python numbers do not widen the dtype.
    """
    found = None
    names = [None if type(x) in NUMBERS else dtype(x) for x in xs]
    for name in names:
        if name is not None and name != found:
            found = name if found is None else dtypes.promote(found, name)
    for x, name in zip(xs, names):
        if name is None:
            found = dtypes.promote_number(found or "bool", type(x), config.floatx())
    if floating and not dtypes.is_floating(found):
        found = config.floatx()
    tensors = [x for x in xs if type(x) not in NUMBERS]
    like = next((x for x in tensors if not isinstance(x, _CONSTANTS)), tensors[0] if tensors else None)
    return [
        x if name == found and not _has_extended_precision(x) else constant_like(x, like, found)
        for x, name in zip(xs, names)
    ]


def _has_extended_precision(x) -> bool:
    """True for NumPy's ``longdouble``, whose name is that of double precision here; SciPy's functions lack it."""
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype.char in "gG"


def constant_like(value, like, name: str | None = None):
    """Return a number or NumPy array as a tensor of ``like``'s library and device, in dtype ``name`` or ``like``'s.

    This also makes tensors of dtypes that NumPy lacks. Tensors are cast.
    """
    if isinstance(value, _CONSTANTS):
        data = like.data if hasattr(like, "_node") else like
        owner = backends.backend_of(data)
        if owner is not None:
            value = owner.convert(value, like=data)
    return cast(value, name or dtype(like))


def is_complex(x) -> bool:
    """True for a complex dtype."""
    return dtype(x) in dtypes.COMPLEX


# The dtype to compute in: half precision is computed in single precision and rounded once.


def floats(x):
    """``x`` if floating or complex, else cast to ``floatx``."""
    return x if dtypes.is_floating(dtype(x)) else cast(x, config.floatx())


def counted(x):
    """Return ``x`` with bools cast to int64."""
    return x if dtype(x) != "bool" else cast(x, "int64")


def wide(x):
    """Return ``x`` in at least single precision, and the dtype to round the result to (None: no rounding)."""
    name = dtype(x)
    return (cast(x, "float32"), name) if name in ("float16", "bfloat16") else (floats(x), None)


def rounded(y, name):
    """Return a result in the dtype that :func:`wide` returned with the argument."""
    return y if name is None else cast(y, name)


def compute_in_single(body: Callable) -> Callable:
    """Decorate the body of an op so that half precision is computed in single precision and rounded once."""

    @functools.wraps(body)
    def computed(x, *args, **kwargs):
        x, final = wide(x)
        return rounded(body(x, *args, **kwargs), final)

    return computed


def check_fits(op: str, value, target: str, name: str) -> None:
    """Raise if writing a value to a tensor would drop imaginary parts, or wrap a number that the dtype cannot hold.

    Raises:
        ArgumentTypeError: a complex ``value`` for a real dtype ``target``.
        ArgumentError: a Python number does not fit an integer dtype.
    """
    check_held(op, name, value, target)
    if target not in dtypes.COMPLEX and dtype(value) in dtypes.COMPLEX:
        raise ArgumentTypeError(
            f"`{op}`: `{name}` must be real for a tensor of {target}; got {{value}}.",
            argument=name,
            hint=f"make the tensor complex, or take `ops.real({name})`",
            value=describe(value),
        )

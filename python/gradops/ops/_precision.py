"""The dtype in which an op computes: half precision in single, rounded once."""

from __future__ import annotations

import functools
from collections.abc import Callable

from .. import config, dtypes
from ..errors import ArgumentTypeError
from ._checks import check_held, describe
from .conversion import cast, dtype


def floats(x):
    """``x`` if floating or complex, else cast to ``floatx``."""
    return x if dtypes.is_floating(dtype(x)) else cast(x, config.floatx())


def counted(x):
    """``x``; bools as int64."""
    return x if dtype(x) != "bool" else cast(x, "int64")


def wide(x):
    """``x`` in a dtype of at least single precision, and the dtype to round the result to (None: as it is)."""
    name = dtype(x)
    return (cast(x, "float32"), name) if name in ("float16", "bfloat16") else (floats(x), None)


def rounded(y, name):
    """A result in the dtype that :func:`wide` gave with its argument."""
    return y if name is None else cast(y, name)


def in_single(body: Callable) -> Callable:
    """The body of an op that works on a tensor of half precision in single, and rounds the result once."""

    @functools.wraps(body)
    def computed(x, *args, **kwargs):
        x, final = wide(x)
        return rounded(body(x, *args, **kwargs), final)

    return computed


def check_fits(op: str, value, target: str, name: str) -> None:
    """Raise where complex numbers would go into a real tensor and lose their imaginary parts, or numbers wrap round.

    Raises:
        ArgumentTypeError: a complex ``value`` for a real dtype ``target``.
        ArgumentError: a written number beyond an integer dtype.
    """
    check_held(op, name, value, target)
    if target not in dtypes.COMPLEX and dtype(value) in dtypes.COMPLEX:
        raise ArgumentTypeError(
            f"`{op}`: `{name}` must be real for a tensor of {target}; got {{value}}.",
            argument=name,
            hint=f"make the tensor complex, or take `ops.real({name})`",
            value=describe(value),
        )

"""PyTorch: conversion, dtype names, and the adaptors that make kernels of torch functions by gradops' dtype rule."""

from __future__ import annotations

import numpy as np
import torch

from ... import dtypes
from ...errors import BackendError
from ..array.base import NUMBERS as NUMBERS
from ..array.base import holds
from ..interface import looked_at_a_value
from ..numpy import base as _numpy
from ..tracing import compiling, constant, read_as, reading
from . import _private

DTYPES = {name: getattr(torch, name) for name in dtypes.ALL if hasattr(torch, name)}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def is_tensor_type(kind: type) -> bool:
    return issubclass(kind, torch.Tensor)


def components(x):
    layout = getattr(x, "layout", torch.strided)
    if layout is torch.sparse_coo:
        x = x.coalesce()
        return [x.values()], lambda given: torch.sparse_coo_tensor(
            x.indices(), *given, x.shape, check_invariants=False, is_coalesced=True
        )
    if layout not in _COMPRESSED:
        return None
    rows = layout in (torch.sparse_csr, torch.sparse_bsr)
    indices = (x.crow_indices(), x.col_indices()) if rows else (x.ccol_indices(), x.row_indices())
    return [x.values()], lambda given: torch.sparse_compressed_tensor(*indices, *given, x.shape, layout=layout)


_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def native_dtype(dtype) -> torch.dtype:
    return dtype if isinstance(dtype, torch.dtype) else DTYPES[dtypes.canonical(dtype)]


def convert(value, dtype=None, like=None) -> torch.Tensor:
    """A tensor of ``value`` on the device of ``like``; arrays are copied."""
    if isinstance(value, torch.Tensor):
        return value if dtype is None else value.to(native_dtype(dtype))
    if holds(value, torch.Tensor):
        stacked = torch.stack([convert(v) for v in value])
        return stacked if dtype is None else stacked.to(native_dtype(dtype))
    device = None if like is None else like.device
    if reading():
        return _convert_in_trace(value, dtype, device)
    if dtype is not None and dtypes.canonical(dtype) == "bfloat16":
        return torch.tensor(_numpy.convert(value), device=device).to(torch.bfloat16)
    array = _numpy.aligned(_numpy.convert(value, dtype))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return torch.tensor(np.ascontiguousarray(array).reshape(array.shape), device=device)


def _convert_in_trace(value, dtype, device) -> torch.Tensor:
    """``convert`` in terms that Dynamo can read; for Dynamo, NumPy arrays are tensors."""
    if isinstance(value, np.ndarray):
        tensor = torch.as_tensor(value, device=device)
        return tensor if dtype is None else tensor.to(native_dtype(dtype))
    if dtype is None:
        dtype = _dtype_of_number(type(value)) if isinstance(value, (int, float, complex)) else _dtype_of(value)
    if isinstance(value, (int, float, complex)):
        return torch.full((), value, dtype=native_dtype(dtype), device=device)
    return torch.tensor(value, dtype=native_dtype(dtype), device=device)


def _dtype_of_number(kind: type) -> str:
    if kind in (bool, int):
        return "bool" if kind is bool else "int64"
    return dtypes.floatx() if kind is float else dtypes.complex_of(dtypes.floatx())


@constant
def _dtype_of(value) -> str:
    return _numpy.dtype_name(_numpy.convert(value))


def dtype_name(x) -> str:
    return NAMES[x.dtype]


def handed_over(x) -> torch.Tensor:
    """A tensor that DLPack can describe: it has no lazy conjugation or negation, and no zero tensors without memory."""
    return _materialize(x.resolve_conj().resolve_neg())


def _materialize(x) -> torch.Tensor:
    return x.clone() if _private.is_zeros(x) else x


def from_dlpack(x) -> torch.Tensor | None:
    """A tensor on the same memory; None for read-only memory, because a tensor could write to it."""
    return None if isinstance(x, np.ndarray) and not x.flags.writeable else torch.from_dlpack(x)


def eval_shape(run, looks: list) -> list:
    with _private.fake_tensors(allow_non_fake_inputs=True):
        return run(*[torch.empty(shape, dtype=native_dtype(dtype)) for shape, dtype in looks])


def place(x, device) -> torch.Tensor:
    where = torch.device(device)
    if where.type == "cpu" and where.index:
        raise BackendError(f"`to_backend`: PyTorch has no device {device!r}.", argument="device")
    return x.to(where)


def to_numpy(x) -> np.ndarray:
    if _private.transforms_active() and not compiling():
        # inside torch.func's transforms NumPy cannot share a tensor's memory
        while _private.is_wrapped(x):
            if _private.is_batched(x):
                raise looked_at_a_value()
            x = _private.unwrapped(x)
        array = np.array(_materialize(x).tolist(), "float32" if x.dtype is torch.bfloat16 else NAMES[x.dtype])
        return array.reshape(tuple(x.shape))
    if reading():
        return x.detach().numpy()
    if _private.is_traced(x):
        raise looked_at_a_value()
    x = _materialize(x.detach())  # `detach()` is recorded in a graph being traced, even for a constant
    if x.dtype is torch.bfloat16:
        x = x.float()
    return x.numpy(force=True)


def has_values(x) -> bool:
    """True if a tensor's values can be read: it is not in a trace or a transform."""
    return not (compiling() or _private.is_wrapped(x) or _private.is_traced(x))


def cast(x, dtype):
    target = native_dtype(dtype)
    if x.is_complex() and not target.is_complex:
        x = x.real if target is not torch.bool else x != 0
    return x.to(target)


def copy(x):
    return x.clone()


_promoted = {(a, b): DTYPES[dtypes.promote(NAMES[a], NAMES[b])] for a in NAMES for b in NAMES}
_promoted_number = {
    (dtype, number, floatx): DTYPES[dtypes.promote_number(NAMES[dtype], number, floatx)]
    for dtype in NAMES
    for number in (bool, int, float, complex)
    for floatx in dtypes.FLOATS
}
"""Promoted dtypes of two tensors, or of a tensor and a number; tables, because Dynamo cannot follow a cached call."""


def promoted(x1, x2):
    """Both operands as tensors in their promoted dtype."""
    d1, d2 = None if type(x1) in NUMBERS else x1.dtype, None if type(x2) in NUMBERS else x2.dtype
    if d1 is None:
        promoted = _promoted_number[d2, type(x1), dtypes.floatx()]
        return torch.tensor(_clamp_number(x1, promoted), dtype=promoted, device=x2.device), x2.to(promoted)
    if d2 is None:
        promoted = _promoted_number[d1, type(x2), dtypes.floatx()]
        return x1.to(promoted), torch.tensor(_clamp_number(x2, promoted), dtype=promoted, device=x1.device)
    promoted = _promoted[d1, d2]
    return x1.to(promoted), x2.to(promoted)


def together(xs):
    """Tensors in their promoted dtype."""
    promoted = xs[0].dtype
    for x in xs[1:]:
        promoted = _promoted[promoted, x.dtype]
    return [x.to(promoted) for x in xs]


def floats(x):
    """``x`` if floating or complex, else cast to ``floatx``."""
    return x if x.is_floating_point() or x.is_complex() else x.to(DTYPES[dtypes.floatx()])


def floating(function):
    """A unary function whose result is floating: integers and bools count as ``floatx``."""

    def kernel(x):
        return function(x if x.is_floating_point() or x.is_complex() else x.to(DTYPES[dtypes.floatx()]))

    return kernel


def arithmetic(function, numbers: bool = False):
    """A kernel of a binary function in the operands' promoted dtype; ``numbers``: the function takes Python numbers.

    The kernel checks the operands' types, because Dynamo cannot read the dtype of a number whose value it does not
    know.
    """

    def kernel(x1, x2):
        d1, d2 = None if type(x1) in NUMBERS else x1.dtype, None if type(x2) in NUMBERS else x2.dtype
        try:
            if d1 is d2:
                return function(x1, x2)
            if numbers:
                if d2 is None and _promoted_number[d1, type(x2), dtypes.floatx()] is d1:
                    return function(x1, _clamp_number(x2, d1))
                if d1 is None and _promoted_number[d2, type(x1), dtypes.floatx()] is d2:
                    return function(_clamp_number(x1, d2), x2)
            return function(*promoted(x1, x2))
        except NotImplementedError:
            return _compute_in_int64(function, x1, x2)

    return kernel


def counting(function, numbers: bool = False):
    """``arithmetic`` for functions that are not defined for bools: two bools become integers."""

    def counted(x1, x2):
        if _is_truth(x1) and _is_truth(x2):
            x1, x2 = (int(x) if type(x) in NUMBERS else x.to(torch.int64) for x in (x1, x2))
        return function(x1, x2)

    return arithmetic(counted, numbers)


def _is_truth(x) -> bool:
    return type(x) in NUMBERS or x.dtype is torch.bool  # a number that arrives here with a bool operand is a bool


def _clamp_number(number, dtype):
    """A number that ``dtype`` can hold; PyTorch would wrap an integer around, or reject it together with floats."""
    if type(number) is not int:
        return number
    low, high = _HELD.get(dtype, _HELD[torch.int64])
    if low <= number <= high:
        return number
    if dtype in _HELD:
        raise OverflowError(f"{dtype} does not hold {number}")
    return float(number)


_HELD = {
    dtype: (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    for dtype in DTYPES.values()
    if not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool
}


def _compute_in_int64(function, x1, x2):
    """Compute with ``int64`` for ``uint16``, ``uint32`` and ``uint64``, for which PyTorch lacks many functions."""
    x1, x2 = promoted(x1, x2)
    if x1.dtype not in (torch.uint16, torch.uint32, torch.uint64):
        return function(x1, x2)
    y = function(x1.to(torch.int64), x2.to(torch.int64))
    return y if y.dtype is torch.bool else y.to(x1.dtype)


def floating_arithmetic(function, numbers: bool = False):
    """``arithmetic`` on floats: two integers become ``floatx``."""

    def kernel(x1, x2):
        d1, d2 = None if type(x1) in NUMBERS else x1.dtype, None if type(x2) in NUMBERS else x2.dtype
        if d1 is d2 and (d1.is_floating_point or d1.is_complex):
            return function(x1, x2)
        x1, x2 = promoted(x1, x2)
        return function(floats(x1), floats(x2))

    return kernel


def is_bool(x) -> bool:
    return x.dtype is torch.bool


def sized(shape):
    """A shape in the form that torch's functions take."""
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def nonzero(x):
    return torch.nonzero(x, as_tuple=True)


def axes_of(x, axis):
    """``axis`` as a tuple of distinct non-negative ints; None means all axes."""
    rank = x.ndim
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    bound = rank or 1
    found = tuple(a % bound for a in axes)
    if len(set(found)) != len(found) or not all(-bound <= a < bound for a in axes):
        raise IndexError(f"axis {axis} is out of range or named twice for {rank} dimensions")
    return found if rank else ()


def _dtype_name_as_read(x) -> str:
    return dtype_name(torch.as_tensor(x))


read_as(_dtype_name_as_read)(_numpy.dtype_name)

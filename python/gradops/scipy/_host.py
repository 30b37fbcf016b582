"""Ops on matrices whose kernels are SciPy's, on the host for the other libraries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import backends, dtypes
from ..ops._compose import promoted
from ._define import LIBRARIES


def hosted(op: Any, function: Callable, like: int = 0) -> None:
    """Make ``function`` of NumPy's arrays the kernel of an op on matrices, on each library.

    The tensors come first among the op's parameters, with matrices in the last two dimensions; others broadcast.

    Args:
        function: takes the arrays, and the op's settings, whole numbers.
        like: the position of the tensor of whose last two sizes the result is.
    """
    entry = op.op
    count = len(entry.tensors)
    backends.add_kernel("numpy", entry.name, functools.partial(_of_numpy, function, count, like))
    for library in LIBRARIES:
        backends.add_kernel(library, entry.name, functools.partial(_of_library, entry.name, function, count, like))


def _called(function: Callable, count: int, like: int, *arguments) -> np.ndarray:
    """The result in the dtype that came, half precision worked on in single; empty where there is nothing to do."""
    settings, arrays = arguments[:-count], arguments[-count:]
    lead = np.broadcast_shapes(*[x.shape[:-2] for x in arrays])
    sizes = (*lead, *arrays[like].shape[-2:])
    if 0 in sizes:
        return np.zeros(sizes, arrays[0].dtype)
    half = dtypes.bits(str(arrays[0].dtype)) < 32
    y = np.asarray(function(*[x.astype("float32") for x in arrays] if half else arrays, *settings))
    return y if y.dtype == arrays[0].dtype else y.astype(arrays[0].dtype)


def _of_numpy(function: Callable, count: int, like: int, _):
    def kernel(*arguments):
        return _called(function, count, like, *arguments[count:], *promoted(*arguments[:count], floating=True))

    return kernel


def _of_library(name: str, function: Callable, count: int, like: int, backend):
    called = functools.partial(_called, function, count, like)
    foresee, on_host = backend.kernel("foresee"), backend.on_host
    if foresee is not None:
        foresee(name, called)

    def kernel(*arguments):
        tensors, settings = promoted(*arguments[:count], floating=True), arguments[count:]
        if not settings:
            return on_host(name, called, tensors, like)
        numbers = [int(x) for x in settings]
        return on_host(f"{name} {' '.join(map(str, numbers))}", functools.partial(called, *numbers), tensors, like)

    return kernel

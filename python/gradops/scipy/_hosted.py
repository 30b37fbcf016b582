"""Ops on every library that run a function of NumPy arrays on the host, elementwise or on matrices.

The derivatives of such ops may run on the host as well.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import backends, dtypes, ops
from ..annotations import Operand, Tensor
from ..extend import derivative
from ..ops._compose import promoted
from ._define import LIBRARIES, refused, ufunc

MAX_CHUNK_TERMS = 1 << 20
"""The number of terms of sums that are computed at once."""
MIN_CHUNK_TERMS = 1 << 12
"""The number of terms that are computed at once even if the lengths of their sums differ widely."""


def hosted(
    name: str,
    parameters: Sequence[str],
    function: Callable,
    text: str,
    dtype: str | None = "float64",
    **rules: Callable,
) -> Callable:
    """Return an elementwise op that calls ``function`` on the host.

    Args:
        parameters: the names of the op's arguments.
        function: takes the arguments as flat arrays of one size and returns an array of that size.
        dtype: the dtype of these arrays; None keeps the arguments' own.
        rules: derivatives as for :func:`.extend.derivative`; by the other arguments they are 0.
    """

    def op(*arguments): ...

    def on_arrays(*arrays):
        given = [np.asarray(x, dtype).ravel() for x in np.broadcast_arrays(*arrays)]
        with np.errstate(all="ignore"):
            found = function(*given) if given[0].size else given[0]
        return found.reshape(np.broadcast_shapes(*[np.shape(x) for x in arrays])).astype(np.result_type(*arrays))

    op.__signature__ = _signature(parameters)  # type: ignore[attr-defined]
    op.__name__ = op.__qualname__ = name
    op.__module__ = "gradops.scipy.stats"
    op.__doc__ = text
    made = ufunc(on_arrays)(op)
    of_all: Any = {x: rules.get(x, _none) for x in parameters}
    derivative(made, **of_all)
    return made


def _none(g):
    return ops.zeros_like(g)


def hosted_op(
    name: str, parameters: Sequence[str], by: Sequence[str], function: Callable, text: str, most: int = 2
) -> Callable:
    """Return an op whose derivatives are computed on the host as well; arguments as for :func:`orders`."""
    return orders(name, parameters, by, function, text, most)((0,) * len(by))


def orders(
    name: str, parameters: Sequence[str], by: Sequence[str], function: Callable, text: str, most: int = 2
) -> Callable:
    """Return a function from orders of derivatives, one for each argument in ``by``, to the op of that derivative.

    Args:
        by: the names of the arguments to differentiate by.
        function: takes the orders and the arrays and returns the derivative.
        most: the highest total order.
    """
    made: dict[tuple[int, ...], Callable] = {}

    def of(order: tuple[int, ...]) -> Callable:
        if order not in made:
            rules: dict[str, Any] = {}
            for i, x in enumerate(by):
                if sum(order) < most:
                    higher = of(tuple(n + (i == j) for j, n in enumerate(order)))
                    rules[x] = rule(parameters, lambda g, *given, higher=higher: g * higher(*given))
                else:
                    rules[x] = refused(name.strip("_").replace("_", "."), x, f"beyond order {most}")
            suffix = "_".join(map(str, order)) if any(order) else ""
            made[order] = hosted(f"{name}{suffix}", parameters, functools.partial(function, order), text, **rules)
        return made[order]

    return of


def rule(parameters: Sequence[str], function: Callable) -> Callable:
    """Return ``function``, of a gradient and of ``parameters``, as a rule whose signature names these."""

    def named(*arguments):
        return function(*arguments)

    named.__signature__ = _signature(("g", *parameters))  # type: ignore[attr-defined]
    return named


def _signature(parameters: Sequence[str]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    given = [inspect.Parameter(x, kind, annotation=Operand) for x in parameters]
    return inspect.Signature(given, return_annotation=Tensor)


def apply_in_chunks(
    function: Callable, lengths: np.ndarray, *arrays: np.ndarray, terms: int = MAX_CHUNK_TERMS
) -> np.ndarray:
    """Apply ``function`` to chunks of arrays whose sums have similar lengths.

    A chunk has at most ``terms`` terms in all, or a single element.
    """
    found = np.empty(len(lengths))
    order = np.argsort(lengths)
    ends = np.cumsum(lengths[order])
    start = 0
    while start < len(order):
        stop = len(order)
        before = ends[start] - lengths[order[start]]
        # Every sum in a chunk costs as many terms as the longest. In large chunks at most 3 of 4 terms may be wasted.
        while stop > start + 1 and (stop - start) * lengths[order[stop - 1]] > min(
            terms, max(4 * (ends[stop - 1] - before), MIN_CHUNK_TERMS)
        ):
            stop = start + max(1, (stop - start) // 2)
        part = order[start:stop]
        found[part] = function(int(lengths[part].max()), *[x[part] for x in arrays])
        start = stop
    return found


# Ops on matrices ------------------------------------------------------------------------------------------------------


def register_matrix_kernel(op: Any, function: Callable, like: int = 0) -> None:
    """Make ``function``, of NumPy arrays, the kernel of an op on matrices on every library.

    The op's tensors come first among its parameters, with matrices in the last two dimensions; the others broadcast.

    Args:
        function: takes the arrays and the op's settings, which are integers.
        like: the position of the tensor whose last two sizes the result has.
    """
    entry = op.op
    count = len(entry.tensors)
    backends.add_kernel("numpy", entry.name, functools.partial(_numpy_kernel, function, count, like))
    for library in LIBRARIES:
        backends.add_kernel(library, entry.name, functools.partial(_library_kernel, entry.name, function, count, like))


def _called(function: Callable, count: int, like: int, *arguments) -> np.ndarray:
    """Return the result in the arguments' dtype (half precision is computed in single); empty for empty arguments."""
    settings, arrays = arguments[:-count], arguments[-count:]
    lead = np.broadcast_shapes(*[x.shape[:-2] for x in arrays])
    sizes = (*lead, *arrays[like].shape[-2:])
    if 0 in sizes:
        return np.zeros(sizes, arrays[0].dtype)
    half = dtypes.bits(str(arrays[0].dtype)) < 32
    y = np.asarray(function(*[x.astype("float32") for x in arrays] if half else arrays, *settings))
    return y if y.dtype == arrays[0].dtype else y.astype(arrays[0].dtype)


def _numpy_kernel(function: Callable, count: int, like: int, _):
    def kernel(*arguments):
        return _called(function, count, like, *arguments[count:], *promoted(*arguments[:count], floating=True))

    return kernel


def _library_kernel(name: str, function: Callable, count: int, like: int, backend):
    called = functools.partial(_called, function, count, like)
    foresee, on_host = backend.kernel("foresee"), backend.call_on_host
    if foresee is not None:
        foresee(name, called)

    def kernel(*arguments):
        tensors, settings = promoted(*arguments[:count], floating=True), arguments[count:]
        if not settings:
            return on_host(name, called, tensors, like)
        numbers = [int(x) for x in settings]
        return on_host(f"{name} {' '.join(map(str, numbers))}", functools.partial(called, *numbers), tensors, like)

    return kernel

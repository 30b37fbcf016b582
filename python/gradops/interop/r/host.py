"""Ops that run a function of NumPy arrays on the host, eagerly or by a callback from a compiled program.

JAX and TensorFlow must know the structure, dtypes and shapes of the results when they compile a program. The function
is then called once with made-up values of the arguments' shapes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _tree, backends, config, dtypes, ops
from ...autodiff import Variable
from ...autodiff.variable import data_of
from ...backends import tracing
from ...errors import BackendError, GradientError
from ...flow.custom import custom_gradient
from .callbacks import Held, holding, keeping
from .errors import numbered
from .values import backend_of, to_r

exists = False
"""True once a host function exists, so that compiled programs may call back."""


def host_function(function: Callable, gradient: Callable | None, name: str, shape=None) -> Callable:
    """Return an op that runs ``function``, with the derivative ``gradient(x, ..., upstream)``.

    ``gradient`` is a function of NumPy arrays, or a host function with a gradient of its own. Without a gradient,
    differentiating raises an error. Arguments are matched by the functions' signatures, as in
    :func:`gradops.custom_gradient`.
    """
    host = Host(function, name, shape)
    if gradient is None:
        return Outside(custom_gradient(host, _no_gradient(name)))
    if not isinstance(gradient, Outside):
        gradient = host_function(_fitting(gradient), None, f"the gradient of {name}")
    return Outside(custom_gradient(host, gradient))


def _fitting(gradient: Callable) -> Callable:
    """Wrap ``gradient`` to reshape results that differ from their argument's shape only by dimensions of size one."""
    signature = inspect.signature(gradient)

    def fit(value, argument):
        if not (isinstance(value, np.ndarray) and isinstance(argument, np.ndarray)):
            return value
        same = tuple(n for n in value.shape if n > 1) == tuple(n for n in argument.shape if n > 1)
        return value.reshape(argument.shape) if same else value

    @functools.wraps(gradient)
    def fitted(*args, **kwargs):
        result = gradient(*args, **kwargs)
        given: dict[str, Any] = signature.bind(*args, **kwargs).arguments
        if isinstance(result, dict):
            return {name: fit(value, given.get(name)) for name, value in result.items()}
        if isinstance(result, (list, tuple)):
            arguments = (*given.values(), *[None] * len(result))
            return [fit(value, argument) for value, argument in zip(result, arguments)]
        return fit(result, next(iter(given.values()), None))

    return fitted


class Outside:
    """The op that :func:`host_function` returns."""

    def __init__(self, function: Callable):
        self.function = function
        self.__signature__ = inspect.signature(function)
        self.__name__ = function.f.name  # type: ignore[attr-defined]

    def __call__(self, *args, **kwargs):
        return tracing.outside(self.function, *args, **kwargs)

    def keeping(self, held: Held) -> Callable:
        """Return the function with graphs that keep the R objects of both its R functions alive."""
        return custom_gradient(self.function.f, keeping(self.function.gradient, held))  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<{self.__name__} as an op>"


def _no_gradient(name: str) -> Callable:
    def gradient(*args, upstream=None):
        raise GradientError(
            f"{name} has no gradient.",
            argument="gradient",
            hint="give it one, `r_function(f, gradient)`, or use `stop_gradient()` on what it returns",
        )

    return gradient


class Host:
    """A function of tensors that calls ``function`` with NumPy arrays in place of the tensors.

    Its value, nested arrays and numbers, is converted to tensors of the arguments' backend: floating values to the
    widest floating dtype among the arguments (``floatx`` if none is floating), integers to int64.
    """

    def __init__(self, function: Callable, name: str, shape=None):
        global exists
        exists = True
        self.function = function
        self.name = self.__name__ = name
        self.shape = shape
        self.__signature__ = inspect.signature(function)

    def __call__(self, *args, **kwargs):
        leaves, form = _tree.flatten((args, kwargs))
        places = [
            i for i, leaf in enumerate(leaves) if isinstance(leaf, Variable) or backends.backend_of(leaf) is not None
        ]
        tensors = [data_of(leaves[i]) for i in places]
        backend = backend_of(tensors)
        program = _Program(self, leaves, form, places, _dtype([backend.dtype_name(t) for t in _own(backend, tensors)]))
        found = backend.call_back(program, tensors)
        if found is None:
            found = _now(backend, program, tensors)
        return found[0] if program.form is _tree.LEAF else _tree.unflatten(program.form, found)


class _Program:
    """One call, from argument arrays to result arrays. It records the structure, dtypes and shapes of the result."""

    def __init__(self, host: Host, leaves: list, form, places: list[int], dtype: str):
        self.host = host
        self.leaves = [None if i in places else leaf for i, leaf in enumerate(leaves)]
        self.arguments = form
        self.places = places
        self.dtype = dtype
        self.holding = holding.get()
        self.form: Any = None
        self.dtypes: list[str] = []
        self.shapes: list[tuple] = []

    def __call__(self, *arrays) -> list[np.ndarray]:
        filled = list(self.leaves)
        for place, array in zip(self.places, arrays):
            filled[place] = to_r(array)
        args, kwargs = _tree.unflatten(self.arguments, filled)
        value = self.host.function(*args, **kwargs)
        leaves, self.form = (
            ([value], _tree.LEAF) if not isinstance(value, (tuple, list, dict)) else _tree.flatten(value)
        )
        results = [np.asarray(ops.convert_to_numpy(v) if ops.is_tensor(v) else v) for v in leaves]
        self.dtypes = [self._dtype_of(result) for result in results]
        self.shapes = [result.shape for result in results]
        return results

    def _dtype_of(self, array: np.ndarray) -> str:
        kinds = {"b": "bool", "i": "int64", "u": "int64", "f": self.dtype}
        return kinds.get(array.dtype.kind) or dtypes.complex_of(self.dtype)

    def foresee(self, shapes: list, names: list[str]) -> None:
        """Record structure, dtypes and shapes of the result by a call with made-up values."""
        self(*[_made_up(shape, name) for shape, name in zip(shapes, names)])
        shape = self.host.shape
        if shape is not None:
            self.shapes = [tuple(shape(*shapes) if callable(shape) else shape)] * len(self.shapes)

    def cast(self, *arrays) -> tuple:
        """Call from a compiled program and return results of the dtypes and shapes recorded by :meth:`foresee`."""
        dtypes_, shapes = self.dtypes, self.shapes
        try:
            results = self(*arrays)
        except Exception as error:
            raise numbered(error) from error
        self.dtypes = dtypes_
        if len(results) != len(dtypes_):
            raise BackendError(f"{self.host.name} returned {len(results)} values; {len(dtypes_)} were foreseen.")
        for came, expected in zip(self.shapes, shapes):
            if len(came) != len(expected) or any(e is not None and c != e for c, e in zip(came, expected)):
                raise BackendError(
                    f"{self.host.name} returned a value of shape {came} where {expected} was foreseen.",
                    hint="say which: `r_function(..., shape=)`",
                )
        self.shapes = shapes
        return tuple(result.astype(name, copy=False) for result, name in zip(results, dtypes_))


def _own(backend, tensors):
    return (t for t in tensors if backends.backend_of(t) is backend)


def _dtype(names: list[str]) -> str:
    floating = [name for name in names if dtypes.is_floating(name)]
    if not floating:
        return config.floatx()
    found = floating[0]
    for name in floating[1:]:
        found = dtypes.promote(found, name)
    return dtypes.real_of(found)


def _made_up(shape: tuple, name: str) -> np.ndarray:
    """Return increasing values between 0 and 1, of full rank, which most functions accept."""
    if name == "bool" or not dtypes.is_floating(name):
        return np.ones(shape, name)
    # R functions fail on unsuitable values (`solve()` on zeros, `dbinom()` on 2.5), and a failure here would make
    # tracing fail. These values are valid probabilities, sorted, and near the identity matrix if square.
    values = np.linspace(0.25, 0.75, int(np.prod(shape))).reshape(shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        values = 0.1 * (values + np.swapaxes(values, -1, -2)) + np.eye(shape[-1])
    return values.astype(name)


# Eager calls ----------------------------------------------------------------------------------------------------------


def _now(backend, program: _Program, tensors: list) -> list:
    like = next(_own(backend, tensors), None)
    return [backend.convert(value, dtype, like) for value, dtype in zip(program(*tensors), program.dtypes)]

"""NumPy with arrays that accept variables: ``import gradops.numpy as np`` in code that fills arrays or lists variables.

All names are NumPy's, with NumPy's meaning. In a function that gradops differentiates or compiles, float
arrays made by the functions here accept variables: ``e = np.zeros(n); e[t] = p[0] * e[t - 1]``, ``np.array([x[0],
1.0])``. Elsewhere they are plain NumPy arrays. ``import numpy`` serves for everything else: only assigning a variable
to an array made by it raises an error.

Gradient:
    Through each element written or listed. Arrays of integers, bools and objects are NumPy's own.

Examples:
    >>> import gradops
    >>> import gradops.numpy as np
    >>> def discounted(p):
    ...     e = np.zeros(4)
    ...     e[0] = 1.0
    ...     for t in range(1, 4):
    ...         e[t] = p[0] * e[t - 1] + p[1]
    ...     return np.sum(e)
    >>> print(discounted(np.array([0.5, 1.0])), gradops.grad(discounted)(np.array([0.5, 1.0])))
    6.125 [5.75 4.25]

See Also:
    :class:`gradops.Variable`, an array that accepts variables wherever it is made.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from types import ModuleType
from typing import Any

import numpy as _numpy

from . import ops
from ._names import namespace
from ._tree import items
from .autodiff import inplace
from .autodiff.variable import Variable
from .errors import ArgumentError, ArgumentTypeError
from .ops import scipy_functions
from .ops.numpy_functions import LISTS, ROWS, is_ours, typed

__all__ = """
array asanyarray asarray ascontiguousarray c_ copy empty empty_like eye fft full full_like identity linalg ones
ones_like patched r_ vectorize zeros zeros_like
""".split()


def _taking(made) -> Any:
    """A NumPy array as one that accepts variables, while a function is differentiated or compiled."""
    if isinstance(made, Variable) and not made.requires_grad:
        return inplace.fillable(made.data)
    if not isinstance(made, _numpy.ndarray) or made.dtype.kind not in "fc":
        return made
    return inplace.taking(made)


def _holds_ours(value) -> bool:
    return is_ours(value) or isinstance(value, (list, tuple)) and any(map(is_ours, items(value)))


def _make_from_values(function: Callable) -> Callable:
    """A function that makes an array from values, which may be variables, or lists that contain some."""

    first = "object" if function is _numpy.array else "a"

    @functools.wraps(function)
    def make(*arguments, **keywords):
        given = dict(zip((first, "order" if function is _numpy.copy else "dtype"), arguments)) | keywords
        if not _holds_ours(given.get(first)) or len(arguments) > 2:
            return _taking(function(*arguments, **keywords))
        keywords, object = given, given.pop(first)
        dtype, rank = keywords.pop("dtype", None), keywords.pop("ndmin", 0)
        unknown = [name for name in keywords if name not in ("copy", "order", "subok", "device", "like")]
        if unknown:
            raise ArgumentTypeError(f"`{function.__name__}` of variables has no argument `{unknown[0]}`.")
        found = typed(_joined(object), dtype)
        copies = keywords.get("copy", True)
        if function in (_numpy.array, _numpy.copy) and getattr(copies, "value", copies) in (True,) and is_ours(object):
            found = ops.copy(found)
        return ops.reshape(found, (*(1,) * (rank - len(found.shape)), *found.shape)) if rank else found

    return make


def _joined(value):
    """A list of variables and numbers, or of such lists, as one array."""
    if not isinstance(value, (list, tuple)):
        return value
    return ops.stack([_joined(part) for part in value]) if _holds_ours(value) else _numpy.asarray(value)


def _filled(function: Callable) -> Callable:
    takes_value = function is _numpy.full

    @functools.wraps(function)
    def make(*arguments, **keywords):
        if takes_value and any(map(_holds_ours, (*arguments, *keywords.values()))):
            return _full(*arguments, **keywords)
        return _taking(function(*map(_as_array, arguments), **keywords))

    return make


def _full(shape, fill_value, dtype=None, order="C", **keywords):
    """``numpy.full`` for a variable."""
    return ops.copy(ops.broadcast_to(typed(_joined(fill_value), dtype), shape))


array, asarray, asanyarray, ascontiguousarray, copy = (
    _make_from_values(getattr(_numpy, name)) for name in "array asarray asanyarray ascontiguousarray copy".split()
)
zeros, ones, empty, full, eye, identity = (
    _filled(getattr(_numpy, name)) for name in "zeros ones empty full eye identity".split()
)
zeros_like, ones_like, empty_like, full_like = (
    _filled(getattr(_numpy, name)) for name in "zeros_like ones_like empty_like full_like".split()
)


class vectorize(_numpy.vectorize):
    """``numpy.vectorize``; its function is called with variables if an argument is one.

    Raises:
        ArgumentTypeError: ``signature`` or ``excluded`` together with variables.

    Gradient:
        Through the function, element by element.
    """

    def __call__(self, *arguments, **keywords):
        if not any(map(_holds_ours, (*arguments, *keywords.values()))):
            return super().__call__(*arguments, **keywords)
        if keywords or self.signature is not None or self.excluded:
            raise ArgumentTypeError("`vectorize` of variables takes positional arguments, each element by element.")
        given = _numpy.broadcast_arrays(*map(_joined, arguments))
        shape = given[0].shape
        flat = [ops.reshape(x, (-1,)) for x in given]
        found = [self.pyfunc(*(x[i] for x in flat)) for i in range(flat[0].shape[0])]
        if isinstance(found[0], tuple):
            return tuple(ops.reshape(ops.stack(list(part)), shape) for part in zip(*found))
        return ops.reshape(ops.stack(found), shape)


class _Joining:
    """``numpy.r_`` and ``numpy.c_``, also for variables."""

    def __init__(self, plain: Any, rank: int):
        self._plain = plain
        self._rank = rank

    def __getitem__(self, key):
        parts = key if isinstance(key, tuple) else (key,)
        if not _holds_ours(parts):
            return _taking(self._plain[key])
        if any(isinstance(part, str) for part in parts):
            raise ArgumentTypeError("`r_` and `c_` of variables take no text.")
        found = [_numpy.r_[part] if isinstance(part, slice) else _joined(part) for part in parts]
        found = [_numpy.atleast_1d(part) for part in found]
        if self._rank == 2:
            found = [part if len(part.shape) > 1 else part[:, None] for part in found]
        return ops.concatenate(found, -1 if self._rank == 2 else 0)


r_, c_ = _Joining(_numpy.r_, 1), _Joining(_numpy.c_, 2)


class _Part:
    """A module of NumPy, imported when it is used."""

    def __init__(self, name: str):
        self._name = name

    def __dir__(self) -> list[str]:
        return dir(getattr(_numpy, self._name))

    def __getattr__(self, name: str) -> Any:
        found = getattr(getattr(_numpy, self._name), name)
        here = _wrap_member(found)
        if here is not found:
            setattr(self, name, here)
        return here


fft: Any = _Part("fft")
linalg: Any = _Part("linalg")

__path__: list[str] = []  # with NumPy's path, Python would import its modules a second time
for _name in ("fft", "linalg", "polynomial", "random"):
    sys.modules[f"{__name__}.{_name}"] = globals().get(_name) or _Part(_name)  # type: ignore[assignment]


_missing = namespace(__name__)[1]


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_numpy)})


def __getattr__(name: str) -> Any:
    if not hasattr(_numpy, name):
        return _missing(name)
    found = getattr(_numpy, name)
    here = _wrap_member(found)
    # Cached, so that Python finds it next time; but names such as `any`, `all` and `map` are Python's in this file.
    if (here is not found or isinstance(found, _numpy.ufunc)) and not hasattr(builtins, name):
        globals()[name] = here
    return here


_MAKERS = frozenset(
    getattr(_numpy, name)
    for name in """
arange bartlett blackman fromfunction fromiter geomspace hamming hanning kaiser linspace loadtxt logspace tri
""".split()
)
"""Functions that make arrays of numbers."""


def _wrap_member(found: Any) -> Any:
    if not callable(found):
        return found
    here = _convert_lists(found) if found in ROWS else found
    return _making(here) if found in _MAKERS else here


def _making(function: Callable) -> Callable:
    @functools.wraps(function)
    def make(*arguments, **keywords):
        return _taking(function(*arguments, **keywords))

    return make


@functools.cache
def _convert_lists(function: Callable) -> Callable:
    """A NumPy function that converts a list to an array if it contains a variable."""

    row = ROWS[function]

    @functools.wraps(function)
    def call(*arguments, **keywords):
        for value in arguments:
            if isinstance(value, (list, tuple)):
                break
        else:
            if not keywords:
                # NumPy would find the same row; its first call is checked and tells how many arguments need no check.
                if arguments and is_ours(arguments[0]):
                    if len(arguments) == 1:
                        return row.op(*arguments)
                    if len(arguments) <= row.leading:
                        return row.call(*arguments)
                return function(*arguments)
        named = zip_longest(list(row.defaults)[: len(arguments)], arguments)  # further arguments have no names
        joined = [x if name in LISTS else _as_array(x) for name, x in named]
        return function(*joined, **{name: x if name in LISTS else _as_array(x) for name, x in keywords.items()})

    return call


def _as_array(value):
    """A list with variables in it, or of such lists, as one array; other values unchanged."""
    return _joined(value) if isinstance(value, (list, tuple)) and _holds_ours(value) else value


# Packages that do not know gradops ------------------------------------------------------------------------------------


@contextmanager
def patched(*packages: str) -> Iterator[None]:
    """A scope that lets packages that do not know gradops compute with ``gradops.numpy`` and ``gradops.scipy``.

    In the packages' modules, the names of NumPy, of SciPy's modules and of functions of both are bound to gradops'
    counterparts, for all threads, and restored at the end. A name without a counterpart is unchanged.
    Modules that are not imported yet, and functions stored elsewhere, such as in objects made before, are not found. In
    SciPy's modules only NumPy's names change. A variable is not an instance of ``numpy.ndarray``.

    Args:
        packages: the names of packages or modules.

    Raises:
        ArgumentError: a package that is not imported; NumPy, and gradops.

    Gradient:
        Through the package's functions, as through NumPy's on variables; functions without a derivative raise the same
        errors. Only NumPy arrays and variables: tensors of PyTorch, TensorFlow and JAX raise errors in code written for
        NumPy.

    Examples:
        SciPy's own solver of differential equations, which fills NumPy arrays, differentiated unchanged:

        >>> import gradops
        >>> from scipy.integrate import solve_ivp
        >>> def at_the_end(rate):
        ...     with gradops.numpy.patched("scipy.integrate._ivp"):
        ...         return solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), [1.0], rtol=1e-8).y[0, -1]
        >>> print(round(gradops.grad(at_the_end)(1.0), 6))
        -0.36788

    See Also:
        :func:`gradops.scipy.integrate.solve_ivp`, which can also be compiled; ``gradops.numpy`` in your own code.
    """
    modules = {
        name: module
        for name, module in list(sys.modules.items())
        if any(name == package or name.startswith(f"{package}.") for package in packages)
    }
    for package in packages:
        if package.partition(".")[0] in (_numpy.__name__, __package__):
            raise ArgumentError(f"`patched`: {package!r} does not compute with NumPy.", argument="packages")
        if package not in modules:
            raise ArgumentError(
                f"`patched`: {package!r} is not imported.", argument="packages", hint=f"`import {package}` before"
            )
    changes = [
        (vars(module), name, value, ours)
        for module in modules.values()
        for name, value in list(vars(module).items())
        if (ours := _counterpart(name, value, module.__name__)) is not value
    ]
    try:
        for names, name, _, ours in changes:
            names[name] = ours
        yield
    finally:
        for names, name, value, _ in changes:
            names[name] = value


def _counterpart(name: str, value: Any, reader: str) -> Any:
    """The gradops counterpart of a module, function or distribution of NumPy or SciPy; other values unchanged."""
    is_module = isinstance(value, ModuleType)
    place = value.__name__ if is_module else getattr(value, "__module__", None)
    # gradops.scipy calls SciPy, which must not call gradops.scipy again.
    others = ("numpy",) if reader.partition(".")[0] == "scipy" else ("numpy", "scipy")
    if not isinstance(place, str) or place.partition(".")[0] not in others:
        return value
    if is_module:
        ours = _module_of_ours(place)
        return value if ours is None else ours if place.startswith("numpy") else _Overlay(ours, value)
    name = getattr(value, "__name__", name)
    while place:  # a function names its file, such as `scipy.linalg._basic`; its public module is a parent
        ours = _module_of_ours(place)
        if ours is not None and getattr(sys.modules[place], name, None) is value:
            return getattr(ours, name, value)
        place = place.rpartition(".")[0]
    return value


@functools.cache
def _module_of_ours(place: str) -> Any:
    """Return the gradops module under a name of NumPy or SciPy; None if there is none."""
    package, _, path = place.partition(".")
    if package == "numpy":
        return sys.modules.get(f"{__package__}.{place}")
    found = scipy_functions.find(path)
    return found if isinstance(found, ModuleType) else None


class _Overlay:
    """A module of SciPy with gradops' names where gradops has them."""

    def __init__(self, ours: Any, plain: Any):
        self._ours, self._plain = ours, plain

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self._plain, name)
        found = getattr(self._ours, name, plain)
        return _Overlay(found, plain) if isinstance(found, ModuleType) and found is not plain else found

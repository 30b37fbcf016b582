"""Programs that later fits of a likelihood use again: with other data of the same shapes nothing is traced again.

A first fit compiles the likelihood with its data as constants. From the second fit of the same function on, the data
are arguments of the compiled derivatives (:mod:`gradops.jit.hoisting`), which belong to the function.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from .. import _tree, functional
from .._functions import hides_arguments
from ..errors import ArgumentTypeError, MismatchError
from ..jit.compiled import Compiled, key_of_value
from .parameters import Parameters, function_of

MOST = 8
"""The most kinds of fits of a function, by the structures of parameters and data, whose programs are kept."""
MOST_BRANCHES = 12
"""A likelihood with so many specialisations is compiled with its data as constants.

If it branches on its data, each data set makes a new specialisation.
"""
MANY = 20
"""The number of fits after which standard errors come from the exact Hessian.

It is compiled once, in the time that 10 to 30 fits spend on differences of the gradient.
"""
_NAME = "__gradops_fits__"


class Fits(OrderedDict):
    """The :class:`Derivatives` of a likelihood by kind of fit, None after the first fit; pickled without them."""

    def __init__(self, nll: Any = None):
        super().__init__()
        self.owner = (lambda: None) if nll is None else weakref.ref(nll)  # `functools.wraps()` copies attributes

    def __reduce__(self) -> tuple:
        return Fits, ()


class Derivatives:
    """The compiled derivatives of a likelihood as functions of the vector of parameters and the arrays of its data."""

    def __init__(self, nll: Callable, parameters: Parameters, leaves: list, structure: Any):
        others = [None if isinstance(x, np.ndarray) else x for x in leaves]
        places = [k for k, x in enumerate(leaves) if isinstance(x, np.ndarray)]
        nothing = parameters.layout.u

        def f(theta, *arrays):
            found = list(others)
            for k, x in zip(places, arrays):
                found[k] = x
            data = _tree.unflatten(structure, found)
            return function_of(lambda p: nll(p, data), parameters)(theta, nothing)

        def hessian(theta, *arrays):
            return functional.hessian(lambda x: f(x, *arrays), theta)

        self.first = Compiled(functional.value_and_grad(f), (), frequent=1)
        self.second = Compiled(hides_arguments(hessian), (), frequent=1)
        self.failed, self.fits = False, 0

    def is_useful(self) -> bool:
        """False if the likelihood cannot be traced without its data, or has too many specialisations."""
        counts = [getattr(x, "count", 1) for f in (self.first, self.second) for x in f.programs.all()]
        return not self.failed and max(counts, default=0) < MOST_BRANCHES


class Bound:
    """A derivative at given data. If its trace fails, a function that is compiled with the data as constants serves."""

    def __init__(self, shared: Derivatives, function: Compiled, arrays: list[np.ndarray], own: Compiled):
        self._shared, self._function, self._arrays, self._own = shared, function, arrays, own

    @property
    def programs(self) -> Any:
        return self._function.programs

    @property
    def is_fast(self) -> bool:
        """True if the compiled Hessian takes less time than differences, as many fits use it."""
        return self._shared.fits > MANY and self._function is not self._own

    def explain(self) -> str:
        return self._function.explain()

    def __call__(self, theta):
        if self._function is not self._own:
            try:
                return self._function(theta, *self._arrays)
            except MismatchError:
                raise
            except Exception:
                self._shared.failed, self._function = True, self._own
        return self._own(theta)


def shared(nll: Callable, data: Any, parameters: Parameters) -> Callable | None:
    """Return a function that binds the two derivatives of a likelihood to its data.

    It takes both as compiled with the data as constants, and returns both as functions of the parameters. None if this
    is the first fit, if the data or the parameters are not NumPy's, or if the likelihood cannot have attributes.
    """
    if type(nll) not in (FunctionType, Compiled) or not parameters.backend.is_tensor_type(np.ndarray):
        return None
    leaves, structure = _tree.flatten(data)
    try:
        key = _kind(leaves, structure), parameters.kind()
        hash(key)
    except (ArgumentTypeError, TypeError):
        return None
    fits = vars(nll).get(_NAME)
    if fits is None or fits.owner() is not nll:
        fits = vars(nll)[_NAME] = Fits(nll)
    is_first = key not in fits
    found = fits.pop(key, None)
    if found is None and not is_first:
        found = Derivatives(nll, parameters, leaves, structure)
    fits[key] = found
    if len(fits) > MOST:
        fits.popitem(last=False)
    if found is None or not found.is_useful():
        return None
    found.fits += 1
    arrays = [_frozen(x) for x in leaves if isinstance(x, np.ndarray)]
    return lambda *own: tuple(Bound(found, f, arrays, g) for f, g in zip((found.first, found.second), own))


def _kind(leaves: list, structure: Any) -> tuple:
    """Return the key of data: its structure, the shapes and dtypes of arrays, and other values.

    Raises:
        ArgumentTypeError: the data have values other than arrays, numbers and texts.
    """
    keys: list = [structure, _tree.dict_orders(structure)]
    for x in leaves:
        if type(x) is np.ndarray and x.dtype.kind in "fiub" and x.dtype.itemsize <= 8 and x.dtype.isnative:
            keys.append((x.shape, x.dtype))
        elif isinstance(x, (bool, int, float, complex, str, bytes, type(None), np.number)):
            keys.append(key_of_value(x, "data"))
        else:
            raise ArgumentTypeError("a value of another type")
    return tuple(keys)


def _frozen(x: np.ndarray) -> np.ndarray:
    found = x.copy()
    found.flags.writeable = False
    return found

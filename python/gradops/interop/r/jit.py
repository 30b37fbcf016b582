"""Fast calls of compiled functions whose arguments are all R doubles.

They skip the checks of other calls, write results into R's memory, or hand the program to C code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import backends, config
from ..._scopes import changes
from ...autodiff.diagnostics import profiler
from ...backends.policy import NeedsPolicy
from ...jit.compiled import Compiled
from .calls import invoke
from .errors import Failure
from .values import FLOAT, MARK, as_arrays, from_r, is_plain, r_arrays

_NUMBERS = (np.ndarray, np.float64)


def direct(function: Callable) -> Callable:
    """Wrap ``function`` for arguments that are floats or unmarked arrays of R's; failures are returned.

    Arguments by name are passed on as they are.
    """

    def call(*arguments, **members):
        try:
            if is_plain(arguments):
                return _r_result(function(*arguments, **members))
            marked = [{MARK: x} if isinstance(x, np.ndarray) else x for x in arguments]
            return invoke(function, from_r(tuple(marked)), members, in_r=True)
        except (Exception, NeedsPolicy) as error:
            return Failure(error)

    return call


def pair(function: Any, memory: np.ndarray) -> Callable:
    """Wrap a compiled :func:`.objective` so that its value and gradient are written into ``memory``.

    The wrapper then returns True. If they do not fit (several values, a gradient by a matrix), it returns the result of
    :func:`direct`.

    Args:
        memory: a read-only view of R's memory. It is filled with ones so that R can verify that it is not a copy.
    """
    numbers = np.ctypeslib.as_array((ctypes.c_double * memory.size).from_address(memory.ctypes.data))
    numbers[:] = 1.0
    gradient = numbers[1:]
    shapes = (gradient.shape, ()) if gradient.size == 1 else (gradient.shape,)
    general = direct(function)
    compiled = function.scalar.compiled
    embedded = backends.embedded()

    def flat(arguments):
        """Return the value and the derivative from an existing specialisation; None without one."""
        if config.default_backend() is not embedded or (known := compiled.known(arguments)) is None:
            return None
        program, arrays = known
        form, leaves = program.found(arrays)
        (_, value), derivative = form.parts[0].parts, form.parts[1]
        return leaves[-2:] if value.kind == derivative.kind == "leaf" else None

    def call(*arguments):
        try:
            found = flat(arguments)
            if found is not None:
                value, derivative = found
            elif is_plain(arguments):
                found = compiled(*as_arrays(arguments))
                (_, value), derivative = found
            else:
                return general(*arguments)
            if value.__class__ is np.float64 and derivative.__class__ in _NUMBERS and derivative.shape in shapes:
                numbers[0] = value
                gradient[:] = derivative
                return True
            return _r_result(function.finished(((None, value), derivative), *arguments))
        except (Exception, NeedsPolicy) as error:
            return Failure(error)

    call.memory = memory  # type: ignore[attr-defined]  # keeps R's vector alive as long as the function
    return call


class Alone(NamedTuple):
    """A program for C code: the ``numbers`` that src/programs.c reads and the ``owner`` of the memory they point to."""

    numbers: np.ndarray
    owner: Any


def alone(function: Any, calls: float, *arguments) -> Alone | None:
    """Return the program of a value and its gradient for such arguments, so that C code can run it without Python.

    Returns None if there is no such program yet, or if it takes more than one run of native code.

    Args:
        function: a compiled :func:`.objective` or a :func:`.likelihood`.
        calls: the number of times that C code may run it before returning to Python.
    """
    compiled = getattr(function.model(), "pair", None) if hasattr(function, "model") else function.scalar.compiled
    if not isinstance(compiled, Compiled) or not (compiled.captured and compiled.captured.is_fixed):
        return None
    if not is_plain(arguments) or profiler.running():
        return None
    arrays = as_arrays(arguments)
    if (known := compiled.known(tuple(arrays))) is None or max(x.ndim for x in arrays) > 1:
        return None
    program: Any = getattr(known[0], "first", known[0])
    value, derivative = program.form.parts
    value = value.parts[1] if value.parts else value
    sole, verification = program.sole, program.verification
    if verification is not None:
        if verification.failed or config.check() in ("always", "error"):
            return None
        verification.skip(int(calls))
    if sole is None or not value.kind == derivative.kind == "leaf":
        return None
    found = sole.run.addresses(sole.results[-3 if sole.holds else -2 :])
    if found is None:
        return None
    (value, one), gradient, *holds = found.results
    if one != 1 or gradient[1] != arrays[0].size or max(found.numbers) > MAX_EXACT_ADDRESS:
        return None
    inputs = dict(zip(sole.inputs, found.inputs))
    extents = [inputs.get(i, (-1, x.size)) for i, x in enumerate(arrays)]
    settings = ctypes.addressof(changes), changes.value
    numbers = [*found.numbers, *settings, calls, value, *gradient, holds[0][0] if holds else -1, *sum(extents, ())]
    return Alone(np.array(numbers, float), found.owner)


MAX_EXACT_ADDRESS = 2**53
"""The largest address that an R double holds exactly."""


def _r_result(value):
    """Return :func:`r_arrays` of a value, with shortcuts for the usual results of compiled functions."""
    kind = value.__class__
    if kind is np.ndarray and value.dtype is FLOAT:
        return value if value.ndim else value.reshape(1)
    if kind is np.float64:
        return np.array([value])
    if kind is dict:
        return {name: _r_result(item) for name, item in value.items()}
    if kind is tuple or kind is list:
        return kind(_r_result(item) for item in value)
    return r_arrays(value)

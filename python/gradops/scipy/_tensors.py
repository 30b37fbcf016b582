"""Arguments of the functions in ``gradops.scipy`` that are composed of ops.

The module converts tensors, constants and settings, builds errors, and wraps SciPy functions of known numbers.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import _scipy, dtypes, ops
from ..errors import ArgumentError, ArgumentTypeError, Given, GradopsError, meant
from ..ops import _checks, _compose
from ..ops._compose import NUMBERS, promoted
from ._names import word_meant

__all__ = "as_complex beside constant floating inexact is_complex numbers option promoted wrong".split()


def constant_like(value, like, dtype: str | None = None):
    """Return constants (a NumPy array or list) as a tensor of ``like``'s library, device and, by default, dtype."""
    return _compose.constant_like(np.asarray(value), like, dtype)


def as_complex(re, im):
    """Return a complex tensor from its real and imaginary part."""
    return ops.view_as_complex(ops.stack([re, im], -1))


def inexact(x):
    """Return a tensor of a floating or complex dtype; integers become ``floatx``."""
    return floating(x)[0]


def floating(*xs) -> list:
    """Return tensors of their promoted floating or complex dtype; numbers and lists are converted."""
    given = [x if type(x) in NUMBERS or ops.is_tensor(x) else ops.convert_to_tensor(x) for x in xs]
    return promoted(*given, floating=True)


def is_complex(x) -> bool:
    """Return True for a complex dtype."""
    return ops.dtype(x) in dtypes.COMPLEX


def option(function: str, value, options, name: str) -> None:
    """Raise an error if a setting is not one of the options."""
    if not (value is None and None in options):
        _checks.choice(function, value, options, name)


def numbers(function: str, name: str, value) -> np.ndarray:
    """Return a setting that has no derivative as a NumPy array.

    Raises:
        ArgumentTypeError: a variable that requires a gradient, or a traced tensor without a value.
    """
    try:
        if hasattr(value, "requires_grad") and value.requires_grad:
            raise TypeError
        return np.asarray(ops.convert_to_numpy(value) if ops.is_tensor(value) else value)
    except Exception:
        raise ArgumentTypeError(
            f"`{function}`: `{name}` must be known numbers: there is no derivative by it.",
            argument=name,
            hint=f"`stop_gradient({name})`, or numbers",
        ) from None


def wrong(
    argument: str,
    must: str,
    got: Any = ...,
    kind: type[GradopsError] = ArgumentError,
    hint: str | None = None,
    of: str = "scipy",
) -> GradopsError:
    """Return the error for an argument ``of`` a function, saying what it must be and what was given.

    :func:`.composed` adds the function's name if ``of`` is not given.
    """
    seen = "" if got is ... else f"; got {got}"
    return kind(f"`{of}`: `{argument}` must {must}{seen}.", argument=argument, hint=hint)


def constant(
    path: str, *, name: str | None = None, prepare: Callable[[dict[str, Any]], None] | None = None
) -> Callable[..., Any]:
    """Return SciPy's function at a path such as ``signal.butter``, for known numbers; its result is a constant.

    Args:
        path: the place below ``scipy``.
        name: the function's name, if it differs from SciPy's.
        prepare: gets the arguments by name; converts or refuses those with which SciPy would read the wrong memory.
    """
    found = path.rpartition(".")[2]
    title = f"scipy.{path}"

    def function(*args, **kwargs):
        scipys = _scipy_member(path)
        try:
            bound = inspect.signature(scipys).bind(*args, **kwargs)
        except TypeError as wrong:
            raise _signature_error(title, scipys, wrong, kwargs) from None
        for key, value in bound.arguments.items():
            bound.arguments[key] = _known(title, key, value)
        if prepare is not None:
            prepare(bound.arguments)
        try:
            return scipys(*bound.args, **bound.kwargs)
        except Exception as error:
            raise _constant_error(title, error, bound) from error

    function.__name__ = function.__qualname__ = name or found
    with contextlib.suppress(AttributeError, ValueError):  # not in the installed SciPy, or written in C
        function.__signature__ = inspect.signature(_scipy_member(path))  # type: ignore[attr-defined]
    function.__doc__ = f"""``scipy.{path}`` for known numbers, with SciPy's arguments and results.

    Returns:
        NumPy arrays.

    Raises:
        ArgumentTypeError: a variable, a tensor without a value yet, a wrong number of arguments.
        ArgumentError: values that SciPy rejects.

    Gradient:
        None: the result is a constant.
    """
    return function


def _scipy_member(path: str) -> Callable:
    return functools.reduce(getattr, path.split("."), _scipy)  # type: ignore[return-value]


def _signature_error(title: str, scipys: Callable, wrong: TypeError, given: Mapping) -> ArgumentTypeError:
    known = inspect.signature(scipys).parameters
    unknown = next((key for key in given if key not in known), None)
    lacking = next((key for key in known if f"{key!r}" in str(wrong)), None)
    return ArgumentTypeError(
        f"`{title}`: {wrong}.", argument=unknown or lacking or "arguments", hint=meant(unknown, known)
    )


def _constant_error(title: str, error: Exception, bound: inspect.BoundArguments) -> GradopsError:
    """Return SciPy's error as one of ours, naming the argument in its message or the first that is not a number."""
    given = bound.arguments
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    spoken = [key for key in given if re.search(rf"\b{re.escape(key)}\b", said)]
    strange = [key for key, value in given.items() if not (value is None or _checks.is_numeric(value))]
    argument = next(iter([*spoken, *strange, *given]), None)
    kind: type[GradopsError] = ArgumentTypeError if isinstance(error, TypeError) else ArgumentError
    return kind(
        f"`{title}`: `{argument}`: {{said}}",
        argument=argument,
        hint=word_meant(bound, str(error), argument),
        said=Given(said),
    )


def _known(title: str, name: str, value):
    """Return an argument with its tensors replaced by their numbers."""
    if isinstance(value, (list, tuple)):
        return type(value)([_known(title, name, x) for x in value])
    if isinstance(value, np.ndarray) or not ops.is_tensor(value):
        return value
    found = numbers(title, name, value)
    return found if found.ndim else found[()]

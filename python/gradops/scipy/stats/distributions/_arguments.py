"""Arguments of distributions: in order, as tensors of one dtype beside numbers, and valid or not."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import dtypes, ops
from ....annotations import Operand, Tensor
from ....errors import ArgumentTypeError
from ....ops import _checks
from ....ops._compose import NUMBERS
from ....ops._compose import beside as number_beside
from ..._define import _reason, with_numbers
from ..._formulas import all_so, held
from ..._neighbours import alike as of_one_library

REQUIRED = inspect.Parameter.empty


def public(function: Callable, owner, name: str, parameters: dict[str, Any], doc: str) -> Callable:
    """A method as a function of its own, whose errors name it and the argument at fault.

    Args:
        function: of all arguments, in order.
        parameters: defaults by names, and ``REQUIRED``.
    """
    defaults = tuple(parameters.values())
    least, count = sum(default is REQUIRED for default in defaults), len(defaults)

    def method(*args, **kwargs):
        try:
            if kwargs or not least <= len(args) <= count:
                given = signature.bind(*args, **kwargs)
                given.apply_defaults()
                return with_numbers(function(*given.args))
            return with_numbers(function(*args, *defaults[len(args) :]))
        except Exception as error:
            failure = _reason(method, error, args, kwargs)
        raise failure

    method.__name__, method.__qualname__, method.__module__ = name, f"{owner.name}.{name}", "gradops.scipy.stats"
    method.__doc__ = doc
    signature = inspect.Signature(
        [
            inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=_role(n))
            for n, default in parameters.items()
        ]
    )
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__annotations__ = {n: _role(n) for n in parameters}
    method.autograph_info__ = None  # type: ignore[attr-defined]  # TensorFlow's AutoGraph leaves it as it is
    return method


def called_as(function: str, values: dict) -> str | None:
    """What users call a function that runs, of its values."""
    return values["method"].__qualname__ if function == "method" else None


def _role(name: str):
    if name in ("size", "random_state", "moments", "order", "seed"):
        return Any
    return Tensor if name in ("x", "k", "q") else Operand


def alike(names, values) -> list:
    """Tensors of one floating dtype; numbers stay, but the first becomes a tensor where all are numbers.

    Raises:
        ArgumentTypeError: an argument that is not a number or tensor; a complex number.
    """
    found = [held(value) for value in values]
    doubles = [type(data) is np.ndarray and data.dtype.char == "d" for data in found]
    if any(doubles) and all(double or type(data) in (float, int) for double, data in zip(doubles, found)):
        return list(values)
    given = []
    for name, value in zip(names, values):
        if type(value) in NUMBERS:
            value = value if type(value) is not bool else int(value)
        elif not ops.is_tensor(value):
            value = ops.convert_to_tensor(value)
        if type(value) is complex or type(value) not in NUMBERS and ops.dtype(value) in dtypes.COMPLEX:
            raise ArgumentTypeError(
                f"`{name}` must be real; got {{value}}.", argument=name, value=_checks.describe(value)
            )
        given.append(value)
    tensors = [value for value in given if type(value) not in NUMBERS]
    if not tensors:
        return [ops.convert_to_tensor(float(given[0])), *given[1:]] if given else given
    whole = iter(of_one_library(*tensors))
    return [value if type(value) in NUMBERS else next(whole) for value in given]


def as_tensor(value, like):
    """A Python number as a tensor beside ``like``."""
    return number_beside(value, like) if type(value) in NUMBERS else value


def both(*tests):
    """All of several tests: a bool where that is known, as far as it is looked at."""
    found: Any = True
    for test in tests:
        if test is False or found is False:
            return False
        if test is not True:
            found = test if found is True else found & test
    return found


def checked(test):
    """A test that is True, or False where it is a bool, of all elements; else as it is."""
    return True if all_so(test) is True else test


def safe(valid, values, instead, like) -> list:
    """Parameters, where these are not valid others that are."""
    if valid is True:
        return list(values)
    if valid is False:
        return [other if type(v) in NUMBERS else ops.where(v == v, other, other) for v, other in zip(values, instead)]
    return [ops.where(valid, as_tensor(v, like), other) for v, other in zip(values, instead)]


def marked(valid, value):
    """A result, NaN where parameters are not valid."""
    if valid is True:
        return value
    return value * math.nan if valid is False else ops.where(valid, value, math.nan)

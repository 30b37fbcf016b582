"""Arguments of distributions: their order, conversion to one dtype, and validity."""

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
from ....ops._compose import constant_like as number_beside
from ..._define import _reason, unwrap_scalars
from ..._formulas import all_so, held
from ..._neighbours import alike as of_one_library

REQUIRED = inspect.Parameter.empty


def public(function: Callable, owner, name: str, parameters: dict[str, Any], doc: str) -> Callable:
    """Return a method as a function whose errors name it and the argument at fault.

    Args:
        function: takes all arguments in order.
        parameters: a dict from names to defaults, or ``REQUIRED``.
    """
    defaults = tuple(parameters.values())
    least, count = sum(default is REQUIRED for default in defaults), len(defaults)

    def method(*args, **kwargs):
        try:
            if kwargs or not least <= len(args) <= count:
                given = signature.bind(*args, **kwargs)
                given.apply_defaults()
                return unwrap_scalars(function(*given.args))
            return unwrap_scalars(function(*args, *defaults[len(args) :]))
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
    """Return the public name of a running method, from its local variables."""
    return values["method"].__qualname__ if function == "method" else None


def _role(name: str):
    if name in ("size", "random_state", "moments", "order", "seed"):
        return Any
    return Tensor if name in ("x", "k", "q") else Operand


def alike(names, values) -> list:
    """Return tensors of one floating dtype; numbers stay numbers, except the first if all are numbers.

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
    """Return a Python number as a tensor like ``like``."""
    return number_beside(value, like) if type(value) in NUMBERS else value


def both(*tests):
    """Return the conjunction of tests, a bool as soon as one is False."""
    found: Any = True
    for test in tests:
        if test is False or found is False:
            return False
        if test is not True:
            found = test if found is True else found & test
    return found


def checked(test):
    """Return True if a test is known to hold for all elements, else the test itself."""
    return True if all_so(test) is True else test


def safe(valid, values, instead, like) -> list:
    """Replace invalid parameters by valid ones."""
    if valid is True:
        return list(values)
    if valid is False:
        return [other if type(v) in NUMBERS else ops.where(v == v, other, other) for v, other in zip(values, instead)]
    return [ops.where(valid, as_tensor(v, like), other) for v, other in zip(values, instead)]


def marked(valid, value):
    """Return a result with NaN where parameters are invalid."""
    if valid is True:
        return value
    return value * math.nan if valid is False else ops.where(valid, value, math.nan)

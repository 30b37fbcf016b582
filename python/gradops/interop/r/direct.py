"""Compiled functions called with R's doubles alone, without what other calls have to find out first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...backends.policy import NeedsPolicy
from .calls import invoke
from .errors import Failure
from .values import FLOAT, MARK, from_r, in_r, is_plain


def direct(function: Callable) -> Callable:
    """``function`` for arguments that are floats and arrays of them: R's vectors and matrices without a mark.

    R gets the result, or the failure.
    """

    def call(*arguments):
        try:
            if is_plain(arguments):
                return _in_r(function(*arguments))
            marked = [{MARK: x} if isinstance(x, np.ndarray) else x for x in arguments]
            return invoke(function, from_r(tuple(marked)), in_r=True)
        except (Exception, NeedsPolicy) as error:
            return Failure(error)

    return call


def _in_r(value):
    """:func:`in_r`, of what compiled functions mostly return."""
    kind = value.__class__
    if kind is np.ndarray and value.dtype is FLOAT:
        return value if value.ndim else value.reshape(1)
    if kind is np.float64:
        return np.array([value])
    if kind is dict:
        return {name: _in_r(item) for name, item in value.items()}
    if kind is tuple or kind is list:
        return kind(_in_r(item) for item in value)
    return in_r(value)

"""What ``torch.compile`` needs to know, where PyTorch may not be there.

It traces Python line by line, and NumPy's arrays as tensors: their values are unknown to it. What is computed from
shapes and settings alone is run as it is, by :func:`constant`; checks of values are left out, see :func:`reading`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

import numpy as np

F = TypeVar("F", bound=Callable)


def compiling() -> bool:
    """Whether ``torch.compile`` or ``torch.export`` traces this."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and torch.compiler.is_compiling()


def reading() -> bool:
    """Whether ``torch.compile`` reads this line by line, where NumPy's arrays have no values either."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and torch.compiler.is_dynamo_compiling()


def constant(function: F) -> F:
    """Have ``torch.compile`` run a function where it traces a call of it, and take the result for a constant.

    It is what ``torch.compiler.assume_constant_result`` does, without importing PyTorch. The arguments must be plain
    Python: numbers, strings, and tuples and lists of them; so is the result then, where it is arrays otherwise.
    """

    def plain(*arguments):
        return _plain(function(*arguments))

    def copied(*arguments):
        return _own(plain(*arguments))

    plain._dynamo_marked_constant = True
    single = function.__annotations__.get("return") in ("None", "bool", "str", "str | None")
    function._torchdynamo_inline = plain if single else copied
    return function


def _plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return type(value)(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _own(value):
    """A copy that ``torch.compile`` has made itself: what comes from outside it cannot guard."""
    return [_own(v) for v in value] if isinstance(value, (list, tuple)) else value

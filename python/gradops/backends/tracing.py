"""The requirements of PyTorch's compiler on gradops' own code, in this file alone. It does not import torch.

``torch.compile`` and ``torch.export(strict=True)`` read Python line by line (Dynamo) where other compilers call it. To
them NumPy's arrays are tensors without values; they follow neither ``inspect.signature`` nor a ``ContextVar``; and they
check at each call whatever they looked at: a cache that has grown since is another program. So code outside
``backends/torch/`` declares at a function's definition the code to be read instead of it, and does not ask if it is
being read (except ``autodiff/torch_tape.py``):

- :func:`constant`: it is called, and its result, made of shapes and settings alone, is a constant of the graph;
- :func:`read_as`: another function stands in its place;
- :func:`left_out`: nothing does: checks of values, and the records of other tracers;
- :func:`untraced`, and :func:`outside` for one call: the graph ends before it and goes on after it.

The mark is an attribute of the function, which costs no call anything and is there before PyTorch is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable)


def compiling() -> bool:
    """True if ``torch.compile`` or ``torch.export`` traces this."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and torch.compiler.is_compiling()


def reading() -> bool:
    """True if they trace this line by line, where NumPy's arrays have no values either."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and torch.compiler.is_dynamo_compiling()


def read_as(instead: Callable) -> Callable[[F], F]:
    """A decorator by which ``instead``, a function of the same arguments, is read in a function's place."""

    def marked(function: F) -> F:
        function._torchdynamo_inline = instead
        return function

    return marked


def left_out(function: F) -> F:
    """Have a function not be read, and give None there."""
    return read_as(_nothing)(function)


def _nothing(*_, **__) -> None: ...


def constant(function: F) -> F:
    """Have a function called where it is read, and its result taken for a constant.

    As ``torch.compiler.assume_constant_result`` does, without importing PyTorch. The arguments must be plain
    Python: numbers, strings, and tuples and lists of them; so is the result then, where it is arrays otherwise.
    """

    def plain(*arguments):
        return _plain(function(*arguments))

    def copied(*arguments):
        return _own(plain(*arguments))

    plain._dynamo_marked_constant = True
    single = function.__annotations__.get("return") in ("None", "bool", "str", "str | None")
    return read_as(plain if single else copied)(function)


def _plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return type(value)(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _own(value):
    """A copy that ``torch.compile`` has made itself, as it cannot guard an object from outside."""
    return [_own(v) for v in value] if isinstance(value, (list, tuple)) else value


def untraced(function: Callable) -> Callable:
    """``function``, as PyTorch is there, left to Python; with ``fullgraph=True`` PyTorch names it in an error."""
    return sys.modules["torch"].compiler.disable(function)


def outside(function: Callable, *arguments, **keywords) -> Any:
    """``function(*arguments)``, left to Python where it is traced: the graph ends before it.

    It asks, as after such an end PyTorch goes on from the functions that were called, not from those read in their
    place: a function that is left to Python must say so in its own body.
    """
    if compiling():
        return untraced(function)(*arguments, **keywords)
    return function(*arguments, **keywords)


def stop(scope: Any):
    """The start of a scope that stops gradients, as it is read: it follows PyTorch's mode."""
    torch = sys.modules["torch"]
    scope.before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    return scope


def go_on(scope: Any, *_) -> None:
    """Its end."""
    sys.modules["torch"].set_grad_enabled(scope.before)

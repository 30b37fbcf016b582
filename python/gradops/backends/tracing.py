"""Marks on gradops' own code for PyTorch's compiler (Dynamo), all in this file. It does not import torch.

Other compilers call Python code; ``torch.compile`` and ``torch.export(strict=True)`` read it line by line. Dynamo
treats NumPy arrays as tensors without values, follows neither ``inspect.signature`` nor a ``ContextVar``, and guards
everything that it read: if a cache has grown since then, it compiles again. So code outside of ``backends/torch/`` is
marked at its definition with the code to read in its place, and does not ask whether it is being read (except
``autodiff/torch_tape.py``):

- :func:`constant`: the function is called, and its result, made of shapes and settings only, is a constant of the
  graph;
- :func:`read_as`: another function is read in its place;
- :func:`left_out`: nothing is read: checks of values, and records of other tracers;
- :func:`untraced`, and :func:`outside` for one call: the graph ends before the call and resumes after it.

A mark is an attribute of the function. It costs nothing at a call, and is set before PyTorch is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable)


def compiling() -> bool:
    """True while ``torch.compile`` or ``torch.export`` traces the running code."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and torch.compiler.is_compiling()


def reading() -> bool:
    """True while Dynamo reads the running code line by line, where NumPy arrays have no values either."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and torch.compiler.is_dynamo_compiling()


def read_as(instead: Callable) -> Callable[[F], F]:
    """A decorator that makes Dynamo read ``instead``, a function of the same arguments, in a function's place."""

    def marked(function: F) -> F:
        function._torchdynamo_inline = instead
        return function

    return marked


def left_out(function: F) -> F:
    """Make Dynamo skip a function and use None as its result."""
    return read_as(_nothing)(function)


def _nothing(*_, **__) -> None: ...


def constant(function: F) -> F:
    """Make Dynamo call a function and treat its result as a constant.

    Like ``torch.compiler.assume_constant_result``, without importing PyTorch. The arguments must be plain
    Python: numbers, strings, and tuples and lists of them. So is the result for Dynamo, even if it contains arrays
    otherwise.
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
    """A copy that ``torch.compile`` makes itself, because it cannot guard an object from outside."""
    return [_own(v) for v in value] if isinstance(value, (list, tuple)) else value


def untraced(function: Callable) -> Callable:
    """``function`` excluded from tracing, once PyTorch is loaded; with ``fullgraph=True`` PyTorch's error names it."""
    return sys.modules["torch"].compiler.disable(function)


def outside(function: Callable, *arguments, **keywords) -> Any:
    """Call ``function(*arguments)`` in plain Python; if it is traced, the graph ends before the call.

    The function checks for tracing itself: after a graph break PyTorch continues from the functions that were called,
    not from those read in their place, so a function excluded from tracing must say so in its own body.
    """
    if compiling():
        return untraced(function)(*arguments, **keywords)
    return function(*arguments, **keywords)


def stop(scope: Any):
    """Dynamo's version of entering a scope that stops gradients: it uses PyTorch's mode."""
    torch = sys.modules["torch"]
    scope.before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    return scope


def go_on(scope: Any, *_) -> None:
    """Dynamo's version of leaving that scope."""
    sys.modules["torch"].set_grad_enabled(scope.before)

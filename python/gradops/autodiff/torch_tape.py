"""The bridge to torch's own autograd: passes from torch tensors, and functions as ``torch.autograd.Function``."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from ..backends import tracing
from ..errors import GradientError
from . import initial_gradients


def backward(tensors: list, gradients: list | None, **settings) -> None:
    """``torch.autograd.backward``."""
    import torch

    _run(torch.autograd.backward, tensors, _starts(tensors, gradients), **settings)


def grad(tensors: list, inputs: list, gradients: list | None, **settings) -> tuple:
    """``torch.autograd.grad``."""
    import torch

    starts = _starts(tensors, gradients, ("outputs", "grad_outputs"))
    return _run(torch.autograd.grad, tensors, inputs, starts, **settings)


def gradient_edge(tensor):
    """``torch.autograd.graph.get_gradient_edge``.

    Raises:
        GradientError: a tensor that requires no gradient.
    """
    from torch.autograd.graph import get_gradient_edge

    if not tensor.requires_grad:
        raise GradientError("`variable` does not require a gradient.", argument="variable")
    return get_gradient_edge(tensor)


def _starts(tensors: list, given: list | None, names: tuple[str, str] = initial_gradients.NAMES) -> list:
    """The gradient that a pass starts from, or None, for each tensor; torch takes tensors and nothing else.

    Raises:
        ArgumentTypeError: a gradient that is neither tensor nor number.
    """
    import torch

    def converted(g, like):
        g = None if g is None else initial_gradients.tensor(like, g, names)
        if isinstance(like, torch.Tensor):
            initial_gradients.check(like, g, names)
        return g

    return [converted(g, like) for g, like in zip(initial_gradients.pair(tensors, given, names), tensors)]


def loaded() -> Any:
    """The torch module, or None where it is not loaded."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "set_grad_enabled") else None


def _run(step: Callable, *arguments, **keywords) -> Any:
    """A step of torch's engine; in anomaly mode torch's warning, the forward call, is part of the error.

    Raises:
        GradientError: in anomaly mode, for a gradient that failed or is NaN.
    """
    if not sys.modules["torch"].is_anomaly_enabled():
        return step(*arguments, **keywords)
    result, failure, where = None, None, None
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            result = step(*arguments, **keywords)
        except RuntimeError as error:
            failure = error
    for warning in heard:
        _, found, rest = str(warning.message).partition("Traceback of forward call that caused the error:")
        if failure is not None and found:
            where = rest.partition(" (Triggered internally")[0].strip("\n")
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if where is not None:
        raise GradientError(f"{failure} Its forward call:\n{where}") from failure
    if failure is not None:
        raise failure
    return result


def function_class(cls: type, setup_context: Callable | None) -> Any:
    """A :class:`.function.Function` as a ``torch.autograd.Function``, kept on the class, so that both go together."""
    if "_of_torch" not in vars(cls):
        _make_class(cls, setup_context)
    return cls._of_torch  # type: ignore[attr-defined]


@tracing.constant
def _make_class(cls: Any, setup_context: Callable | None) -> None:
    import torch

    def backward(ctx, *gradients):
        return cls.backward(ctx, *[None if g is None else g.clone() for g in gradients])  # it may write to them

    members = {"forward": staticmethod(cls.forward), "backward": staticmethod(backward)}
    if setup_context is not None:
        members["setup_context"] = staticmethod(setup_context)
    members.update({name: staticmethod(getattr(cls, name)) for name in ("vmap", "jvp") if hasattr(cls, name)})
    if hasattr(cls, "generate_vmap_rule"):
        members["generate_vmap_rule"] = cls.generate_vmap_rule
    cls._of_torch = type(cls.__name__, (torch.autograd.Function,), members)


def once_differentiable(backward: Callable) -> Callable:
    """torch's decorator of that name."""
    from torch.autograd.function import once_differentiable as native

    return native(backward)

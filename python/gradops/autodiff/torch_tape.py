"""What goes to torch's own autograd: passes from torch tensors, and functions as ``torch.autograd.Function``."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from .. import backends
from ..errors import ArgumentTypeError, GradientError, ShapeError, TypeOf


def backward(tensors: list, gradients: list | None, **settings) -> None:
    """``torch.autograd.backward``."""
    import torch

    gradients = _as_tensors(gradients, tensors)
    _check(tensors, gradients, "variables", "grad_variables")
    _run(torch.autograd.backward, tensors, gradients, **settings)


def grad(tensors: list, inputs: list, gradients: list | None, **settings) -> tuple:
    """``torch.autograd.grad``."""
    import torch

    gradients = _as_tensors(gradients, tensors)
    _check(tensors, gradients, "outputs", "grad_outputs")
    return _run(torch.autograd.grad, tensors, inputs, gradients, **settings)


def _check(tensors: list, gradients: list | None, name: str, given: str) -> None:
    """What torch's engine raises of its own before it starts."""
    for x, g in zip(tensors, gradients or [None] * len(tensors)):
        if not getattr(x, "requires_grad", True):
            raise GradientError(
                f"`{name}` does not require a gradient: nothing it was computed from does.", argument=name
            )
        if g is None and hasattr(x, "numel") and x.numel() != 1:
            raise GradientError(
                f"`{given}` is needed for a non-scalar of shape {tuple(x.shape)}.",
                argument=given,
                hint="reduce it to a scalar, or pass the gradient to start from",
            )
        if hasattr(g, "shape") and hasattr(x, "shape") and tuple(g.shape) != tuple(x.shape):
            raise ShapeError(
                f"`{given}` must have the shape {tuple(x.shape)} of `{name}`; got {tuple(g.shape)}.", argument=given
            )


def _as_tensors(gradients: list | None, tensors: list) -> list | None:
    """Numbers and lists of them as tensors of torch's, which takes nothing else.

    Raises:
        ArgumentTypeError: what is none of these.
    """
    if gradients is None or len(gradients) != len(tensors):
        return gradients

    def converted(g, like):
        if g is None or backends.of(g) is not None or backends.of(like) is None:
            return g
        owner = backends.of(like)
        try:
            return owner.convert(g, owner.dtype_name(like), like=like)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                "`grad_variables` must be tensors or numbers; got {g}.", argument="grad_variables", g=TypeOf(g)
            ) from error

    return [converted(g, like) for g, like in zip(gradients, tensors)]


def loaded() -> Any:
    """The torch module, or None where it is not loaded."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "set_grad_enabled") else None


def _run(step: Callable, *arguments, **keywords) -> Any:
    """A step of torch's engine; in anomaly mode what torch warns of, the forward call, is part of the error.

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
    import torch

    if "_of_torch" in vars(cls):
        return cls._of_torch  # type: ignore[attr-defined]
    members = {name: staticmethod(getattr(cls, name)) for name in ("forward", "backward")}
    if setup_context is not None:
        members["setup_context"] = staticmethod(setup_context)
    members.update({name: staticmethod(getattr(cls, name)) for name in ("vmap", "jvp") if hasattr(cls, name)})
    if hasattr(cls, "generate_vmap_rule"):
        members["generate_vmap_rule"] = cls.generate_vmap_rule
    cls._of_torch = type(cls.__name__, (torch.autograd.Function,), members)  # type: ignore[attr-defined]
    return cls._of_torch  # type: ignore[attr-defined]


def once_differentiable(backward: Callable) -> Callable:
    """torch's decorator of that name."""
    from torch.autograd.function import once_differentiable as native

    return native(backward)

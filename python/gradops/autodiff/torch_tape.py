"""The bridge to torch's own autograd: passes from torch tensors, and ``Function``s as ``torch.autograd.Function``s."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ..backends import tracing
from ..errors import GradientError, JitError
from . import initial_gradients


def backward(tensors: list, gradients: list | None, **settings) -> None:
    """Call ``torch.autograd.backward``."""
    import torch

    _run(torch.autograd.backward, tensors, _starts(tensors, gradients), **settings)


def grad(tensors: list, inputs: list, gradients: list | None, **settings) -> tuple:
    """Call ``torch.autograd.grad``."""
    import torch

    starts = _starts(tensors, gradients, ("outputs", "grad_outputs"), settings.get("is_grads_batched", False))
    return _run(torch.autograd.grad, tensors, inputs, starts, **settings)


def gradient_edge(tensor):
    """Call ``torch.autograd.graph.get_gradient_edge``.

    Raises:
        GradientError: the tensor requires no gradient.
    """
    from torch.autograd.graph import get_gradient_edge

    if not tensor.requires_grad:
        raise GradientError("`variable` does not require a gradient.", argument="variable")
    return get_gradient_edge(tensor)


def _starts(
    tensors: list, given: list | None, names: tuple[str, str] = initial_gradients.NAMES, batched: bool = False
) -> list:
    """The gradient that a pass starts from, or None, for each tensor; torch accepts tensors only.

    Args:
        batched: True if the gradients have a first dimension more, which PyTorch checks.

    Raises:
        ArgumentTypeError: a gradient that is neither tensor nor number.
    """
    import torch

    def converted(g, like):
        g = None if g is None else initial_gradients.tensor(like, g, names)
        if isinstance(like, torch.Tensor) and not batched:
            initial_gradients.check(like, g, names)
        return g

    return [converted(g, like) for g, like in zip(initial_gradients.pair(tensors, given, names), tensors)]


def loaded() -> Any:
    """The torch module; None if it is not loaded."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "set_grad_enabled") else None


def _run(step: Callable, *arguments, **keywords) -> Any:
    """Run a step of torch's engine; in anomaly mode, add torch's warning about the forward call to the error.

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
    """A :class:`.function.Function` as a ``torch.autograd.Function``; stored on the class, to live as long as it."""
    if "_of_torch" not in vars(cls):
        _make_class(cls, setup_context)
    return cls._of_torch  # type: ignore[attr-defined]


@tracing.constant
def _make_class(cls: Any, setup_context: Callable | None) -> None:
    import torch

    once = getattr(cls.backward, "once", False)

    def forward(ctx, *args):
        output = cls.forward(ctx, *args)
        if not once and not tracing.compiling():
            _note_between(torch, ctx, args, output)
        return output

    def set_up(ctx, inputs, output):
        setup_context(ctx, inputs, output)  # type: ignore[misc]
        if not once and not tracing.compiling():
            _note_between(torch, ctx, inputs, output)

    def backward(ctx, *gradients):
        if not tracing.compiling() and torch.is_grad_enabled() and hasattr(ctx, _INPUTS):
            ctx = _connected(torch, cls, setup_context, ctx)
        return cls.backward(ctx, *[None if g is None else g.clone() for g in gradients])  # `backward` may write to them

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    if setup_context is not None:
        members |= {"forward": staticmethod(cls.forward), "setup_context": staticmethod(set_up)}
    members.update({name: staticmethod(getattr(cls, name)) for name in ("vmap", "jvp") if hasattr(cls, name)})
    if hasattr(cls, "generate_vmap_rule"):
        members["generate_vmap_rule"] = cls.generate_vmap_rule
    cls._of_torch = type(cls.__name__, (torch.autograd.Function,), members)


_INPUTS = "gradops_inputs"
"""The context attribute that has the inputs of a ``forward`` with intermediate values; None if it wrote to one."""


class _Again(SimpleNamespace):
    """The context of another run of ``forward``."""

    to_save: tuple = ()

    def save_for_backward(self, *tensors) -> None:
        self.to_save = tensors

    def mark_non_differentiable(self, *tensors) -> None:
        pass

    mark_dirty = set_materialize_grads = save_for_forward = mark_non_differentiable


def _note_between(torch, ctx, args: tuple, output) -> None:
    """Save the inputs of a ``forward`` that saves an intermediate value, whose derivative PyTorch does not know."""
    outputs = output if isinstance(output, (tuple, list)) else (output,)
    known = {id(x) for x in (*args, *outputs)}
    kept = (*(getattr(ctx, "to_save", None) or ()), *vars(ctx).values())
    between = [x for x in kept if isinstance(x, torch.Tensor) and id(x) not in known and not x.requires_grad]
    if any(x.is_floating_point() or x.is_complex() for x in between):
        setattr(ctx, _INPUTS, None if getattr(ctx, "dirty_tensors", None) else args)


def _connected(torch, cls: type, setup_context: Callable | None, ctx) -> Any:
    """Run ``forward`` again and return a context whose intermediate values depend on the inputs.

    Raises:
        GradientError: ``forward`` writes to an input, or another run of it gives another value.
    """
    args, again = getattr(ctx, _INPUTS), _Again(needs_input_grad=ctx.needs_input_grad)
    if args is None:
        raise unknown_derivative(cls, "writes to an input in place")
    if setup_context is None:
        cls.forward(again, *args)  # type: ignore[attr-defined]
    else:
        setup_context(again, args, cls.forward(*args))  # type: ignore[attr-defined]

    def same(before, x):
        if not isinstance(x, torch.Tensor) or not x.requires_grad or before.requires_grad:
            return before
        try:
            is_same = torch.allclose(x.detach(), before, rtol=0, atol=0, equal_nan=True)
        except (JitError, RuntimeError):  # values cannot be read in a trace or a batch
            return x
        if not is_same:
            raise unknown_derivative(cls, "gives another value when it runs again")
        return x

    own = {name: x for name, x in vars(ctx).items() if name != _INPUTS}
    for name, x in vars(again).items():
        if isinstance(own.get(name), torch.Tensor):
            own[name] = same(own[name], x)
    found = _Again(**own)
    found.needs_input_grad = ctx.needs_input_grad
    found.saved_tensors = tuple(map(same, ctx.saved_tensors, again.to_save))
    return found


def unknown_derivative(cls: type, why: str) -> GradientError:
    """The error for a saved value that is neither an input nor an output, and whose derivative is unknown."""
    return GradientError(
        f"{cls.__name__}: `backward` uses a value that `forward` computed in between, and `forward` {why}, so that the "
        "derivative of this value is not known.",
        hint="return the value as an output, or compute it in `backward`, from saved inputs",
    )


def once_differentiable(backward: Callable) -> Callable:
    """``torch.autograd.function.once_differentiable``."""
    from torch.autograd.function import once_differentiable as native

    return native(backward)

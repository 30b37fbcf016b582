"""The tape: ``backward``, modes and what torch.autograd has, on variables and on torch tensors."""

from . import operators, record, rules, text  # noqa: F401
from .engine import backward, grad
from .function import Function, once_differentiable
from .modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .variable import Parameter, Variable

__all__ = [
    "Function",
    "Parameter",
    "Variable",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "once_differentiable",
    "set_grad_enabled",
    "text",
]

"""The tape: ``backward``, modes and the functions of ``torch.autograd``, for variables and for torch tensors.

:mod:`.variable` has the tensors that record, :mod:`.record` makes a recording implementation of each op, :mod:`.graph`
is what is recorded, :mod:`.engine` runs the backward pass, and :mod:`.rules` has the derivatives of the ops.
"""

from .._names import namespace
from . import forward_ad, operators, profiler, record, rules  # noqa: F401
from .diagnostics.anomaly import detect_anomaly, set_detect_anomaly
from .diagnostics.gradcheck import gradcheck, gradgradcheck
from .diagnostics.inspection import draw, to_dot
from .function import Function, once_differentiable
from .gradients import backward, get_gradient_edge, grad
from .interchange import to_backend
from .modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .node_hooks import allow_mutation_on_saved_tensors, register_multi_grad_hook
from .saved_tensors import save_on_cpu, saved_tensors_hooks
from .variable import Parameter, Variable

__all__ = [
    "Function",
    "Parameter",
    "Variable",
    "allow_mutation_on_saved_tensors",
    "backward",
    "detect_anomaly",
    "draw",
    "enable_grad",
    "forward_ad",
    "get_gradient_edge",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "once_differentiable",
    "profiler",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_detect_anomaly",
    "set_grad_enabled",
    "to_backend",
    "to_dot",
]

__dir__, __getattr__ = namespace(__name__, renamed={"text": "gradops.text", "to": "gradops.to_backend"})

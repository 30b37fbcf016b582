"""gradops: one gradient vocabulary, with one meaning, on NumPy, PyTorch, TensorFlow and JAX."""

from typing import TYPE_CHECKING

from . import array_api, autodiff, backends, config, errors, extend, functional, numpy, ops, scipy
from ._names import namespace
from .autodiff import Parameter, Variable, to_backend
from .flow import (
    checkpoint,
    checkpoint_name,
    checkpoint_policy,
    custom_gradient,
    gradient_checkpoint_scope,
    save_anything_except_these_names,
    save_only_these_names,
    scaled_gradient,
    scaled_gradient_ext,
    set_requires_gradient,
    stop_gradient,
    stop_gradient_scope,
)
from .functional import grad, value_and_grad
from .functional.reverse import gradient
from .functional.transformations import custom_jvp, hessian, hvp, jacobian, jvp, linear_transpose, linearize, vjp, vmap
from .jit import jit

if TYPE_CHECKING:
    from . import inference, text

backends.register_later("text", f"{__name__}.text")
ops.custom_gradient = custom_gradient
ops.stop_gradient = stop_gradient

__version__ = "0.1.0"
__all__ = [
    "Parameter",
    "Variable",
    "autodiff",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policy",
    "config",
    "custom_gradient",
    "custom_jvp",
    "errors",
    "extend",
    "functional",
    "grad",
    "gradient",
    "gradient_checkpoint_scope",
    "hessian",
    "hvp",
    "inference",
    "jacobian",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "numpy",
    "ops",
    "save_anything_except_these_names",
    "save_only_these_names",
    "scaled_gradient",
    "scaled_gradient_ext",
    "scipy",
    "set_requires_gradient",
    "stop_gradient",
    "stop_gradient_scope",
    "text",
    "to_backend",
    "value_and_grad",
    "vjp",
    "vmap",
    "array_api",  # after the modules whose names are suggested first
]

__dir__, __getattr__ = namespace(__name__, later=("inference", "text"), renamed={"to": "gradops.to_backend"})

"""gradops: one gradient vocabulary, with one meaning, on NumPy, PyTorch, TensorFlow and JAX."""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if __spec__.cached and not os.path.exists(__spec__.cached):
    from . import _bytecode as _bytecode  # before the modules whose bytecode it finds

from . import autodiff, backends, config, errors, extend, ops
from ._names import later_function, namespace
from ._version import __version__ as __version__
from .autodiff import Parameter, Variable, to_backend
from .autodiff.diagnostics import gradcheck as _gradcheck
from .flow import (
    checkpoint,
    checkpoint_name,
    checkpoint_policy,
    checkpoint_sequential,
    custom_gradient,
    gradient_checkpoint_scope,
    save_and_offload_only_these_names,
    save_anything_except_these_names,
    save_from_both_policies,
    save_only_these_names,
    scaled_gradient,
    scaled_gradient_ext,
    set_requires_gradient,
    stop_gradient,
    stop_gradient_scope,
)
from .ops import derivatives, mapping, operators, scipy_functions

if TYPE_CHECKING:
    from . import array_api, functional, inference, numpy, scipy, text
    from ._versions import show_versions
    from .functional import grad, value_and_grad
    from .functional.closures import closure_convert
    from .functional.collectives import axis_index, pmax, pmean, pmin, psum
    from .functional.ravel import ravel_pytree
    from .functional.residuals import print_saved_residuals
    from .functional.reverse import gradient
    from .functional.rules import custom_vjp, custom_vmap
    from .functional.transformations import (
        custom_jvp,
        hessian,
        hvp,
        jacobian,
        jvp,
        linear_transpose,
        linearize,
        vjp,
        vmap,
    )
    from .jit import jit

# What lower floors need of modules that are imported when they are first used.
backends.register_later("text", f"{__name__}.text")
mapping.by_batches = later_function(f"{__name__}.functional.batched", "vectorized_map")
derivatives.product = later_function(f"{__name__}.functional.transformations", "jvp")
_gradcheck.jvp = later_function(f"{__name__}.functional.matrices", "jvp")
scipy_functions.find = later_function(f"{__name__}.scipy", "find")
operators.array_api = later_function(f"{__name__}.array_api._devices", "call")
ops.custom_gradient = custom_gradient
ops.stop_gradient = stop_gradient

__all__ = [
    "Parameter",
    "Variable",
    "autodiff",
    "axis_index",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policy",
    "checkpoint_sequential",
    "closure_convert",
    "config",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vmap",
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
    "pmax",
    "pmean",
    "pmin",
    "print_saved_residuals",
    "psum",
    "ravel_pytree",
    "save_and_offload_only_these_names",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
    "scaled_gradient",
    "scaled_gradient_ext",
    "scipy",
    "set_requires_gradient",
    "show_versions",
    "stop_gradient",
    "stop_gradient_scope",
    "text",
    "to_backend",
    "value_and_grad",
    "vjp",
    "vmap",
    "array_api",  # after the modules whose names are suggested first
]

_TRANSFORMATIONS = "custom_jvp hessian hvp jacobian jvp linear_transpose linearize vjp vmap".split()
__dir__, __getattr__ = namespace(
    __name__,
    later=("functional", "inference", "numpy", "scipy", "text", "array_api"),
    renamed={"to": "gradops.to_backend"},
    objects={
        "grad": "functional",
        "value_and_grad": "functional",
        **dict.fromkeys(("axis_index", "pmax", "pmean", "pmin", "psum"), "functional.collectives"),
        **dict.fromkeys(("custom_vjp", "custom_vmap"), "functional.rules"),
        "closure_convert": "functional.closures",
        "gradient": "functional.reverse",
        "show_versions": "_versions",
        "print_saved_residuals": "functional.residuals",
        "ravel_pytree": "functional.ravel",
        **dict.fromkeys(_TRANSFORMATIONS, "functional.transformations"),
    },
)


class _Package(ModuleType):
    """The class of this module: ``gradops.jit`` is a function, and the package of that name is imported with it.

    An import of a module of that package binds the package to its name here, which must not hide the function.
    """

    @property
    def jit(self):
        return vars(self).get("_jit") or import_module(f"{__name__}.jit").jit

    @jit.setter
    def jit(self, value):
        if not isinstance(value, ModuleType):
            vars(self)["_jit"] = value


sys.modules[__name__].__class__ = _Package

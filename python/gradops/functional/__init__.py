"""Derivatives of functions: gradients, Jacobians, Hessians and products with them, on every backend."""

from .._names import namespace
from .curvature import fisher_product, gauss_newton_product, hessian_diagonal, laplacian
from .custom_solvers import custom_linear_solve, custom_root
from .implicit import argmin, fixed_point, linear_solve, root
from .matrices import hessian, hvp, jacobian, jvp, vhp, vjp
from .reverse import grad, value_and_grad
from .shapes import ShapeDtypeStruct, eval_shape
from .shards import objective
from .sparsity.hessian import SparseHessian
from .symbolic_zeros import CustomVJPPrimal, SymbolicZero
from .taylor import jet
from .torch_names import functional_call, grad_and_value, jacfwd, jacrev, stack_module_state

__all__ = [
    "CustomVJPPrimal",
    "ShapeDtypeStruct",
    "SparseHessian",
    "SymbolicZero",
    "argmin",
    "custom_linear_solve",
    "custom_root",
    "eval_shape",
    "fisher_product",
    "fixed_point",
    "functional_call",
    "gauss_newton_product",
    "grad",
    "grad_and_value",
    "hessian",
    "hessian_diagonal",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jet",
    "jvp",
    "laplacian",
    "linear_solve",
    "objective",
    "root",
    "stack_module_state",
    "value_and_grad",
    "vhp",
    "vjp",
]

__dir__, __getattr__ = namespace(__name__)

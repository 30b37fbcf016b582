"""Derivatives of functions: gradients, Jacobians, Hessians and products with them, on every backend."""

from .._names import namespace
from .curvature import fisher_product, gauss_newton_product, hessian_diagonal, laplacian
from .implicit import argmin, fixed_point, linear_solve, root
from .matrices import hessian, hvp, jacobian, jvp, vhp, vjp
from .reverse import grad, value_and_grad
from .shapes import ShapeDtypeStruct, eval_shape
from .shards import objective
from .sparsity.hessian import SparseHessian
from .symbolic_zeros import CustomVJPPrimal, SymbolicZero
from .taylor import jet

__all__ = [
    "CustomVJPPrimal",
    "ShapeDtypeStruct",
    "SparseHessian",
    "SymbolicZero",
    "argmin",
    "eval_shape",
    "fisher_product",
    "fixed_point",
    "gauss_newton_product",
    "grad",
    "hessian",
    "hessian_diagonal",
    "hvp",
    "jacobian",
    "jet",
    "jvp",
    "laplacian",
    "linear_solve",
    "objective",
    "root",
    "value_and_grad",
    "vhp",
    "vjp",
]

__dir__, __getattr__ = namespace(__name__)

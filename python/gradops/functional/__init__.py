"""Derivatives of functions: gradients, Jacobians, Hessians and their products, on every backend."""

from .gradients import grad, value_and_grad
from .matrices import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = [
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "value_and_grad",
    "vhp",
    "vjp",
]

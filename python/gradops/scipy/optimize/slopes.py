"""Exact derivatives under the names of SciPy's finite differences, Rosenbrock's function, and linear assignment.

These functions do not search for a solution, except the assignment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _scipy, functional, ops
from ...annotations import Function, Tensor
from .._define import composed
from .._solving import Problem, numbers, solver
from .._tensors import floating, inexact

__all__ = "approx_fprime check_grad linear_sum_assignment rosen rosen_der rosen_hess rosen_hess_prod".split()


@solver
def approx_fprime(xk: Tensor, f: Function, epsilon=None, *args) -> Any:
    """Exact derivative of a function of a vector; SciPy's function uses finite differences.

    Args:
        epsilon: ignored.

    Returns:
        A tensor of ``xk``'s shape, or (m, n) for a function that returns m numbers.

    Gradient:
        By ``xk`` and ``args``.
    """
    problem = Problem("scipy.optimize.approx_fprime", "f", f, xk, args)
    return functional.jacobian(problem, inexact(xk), create_graph=True)


@solver
def check_grad(func: Function, grad: Function, x0: Tensor, *args, epsilon=None, direction="all", rng=None) -> Any:
    """Norm of the difference between a gradient written by hand and the exact one.

    Args:
        epsilon, direction, rng: ignored.

    Returns:
        A tensor of shape ().

    Gradient:
        That of the norm.
    """
    name = "scipy.optimize.check_grad"
    exact = functional.grad(Problem(name, "func", func, x0, args, scalar=True))(inexact(x0))
    return ops.norm(ops.reshape(Problem(name, "grad", grad, x0, args)(x0) - exact, (-1,)))


@solver
def linear_sum_assignment(cost_matrix: Tensor, maximize=False) -> tuple[np.ndarray, np.ndarray]:
    """Assignment of rows to columns with the least total cost.

    Returns:
        Two NumPy arrays of positions: the rows and their columns.

    Gradient:
        None, since positions are integers. For the gradient of the cost, sum ``cost_matrix[rows, columns]``.
    """
    cost = numbers("scipy.optimize.linear_sum_assignment", cost_matrix, "cost_matrix")
    return _scipy.optimize.linear_sum_assignment(cost, maximize)


@composed
def rosen(x: Tensor) -> Tensor:
    """Rosenbrock's function, ``sum(100 * (x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)``, along the first axis.

    Returns:
        A tensor of ``x``'s shape without the first axis.

    Gradient:
        :func:`rosen_der`.
    """
    x = inexact(x)
    return ops.sum(100 * ops.square(x[1:] - ops.square(x[:-1])) + ops.square(1 - x[:-1]), axis=0)


@composed
def rosen_der(x: Tensor) -> Tensor:
    """Gradient of :func:`rosen`.

    Returns:
        A tensor of ``x``'s shape.

    Gradient:
        :func:`rosen_hess`.
    """
    x = inexact(x)
    rest = x[1:] - ops.square(x[:-1])
    none = ops.zeros_like(x[:1])
    return ops.concatenate([-400 * x[:-1] * rest - 2 * (1 - x[:-1]), none]) + ops.concatenate([none, 200 * rest])


@composed
def rosen_hess(x: Tensor) -> Tensor:
    """Hessian of :func:`rosen` at a vector (n,).

    Returns:
        A matrix (n, n).

    Gradient:
        That of the formula.
    """
    x = inexact(x)
    none = ops.zeros_like(x[:1])
    main = ops.concatenate([1200 * ops.square(x[:-1]) - 400 * x[1:] + 2, none])
    side = ops.diag(-400 * x[:-1], 1)
    return ops.diag(main + ops.concatenate([none, 200 * ops.ones_like(x[1:])])) + side + ops.transpose(side)


@composed
def rosen_hess_prod(x: Tensor, p: Tensor) -> Tensor:
    """Product of :func:`rosen_hess` with a vector.

    Returns:
        A vector (n,).

    Gradient:
        That of the formula.
    """
    x, p = floating(x, p)
    return ops.matmul(rosen_hess(x), p)

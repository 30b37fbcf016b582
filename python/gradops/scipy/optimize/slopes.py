"""Exact derivatives by the names of SciPy's differences, Rosenbrock's function, assignments."""

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
    """The derivative of a function of a vector: exact, by the name of SciPy's differences.

    Args:
        epsilon: not looked at.

    Returns:
        A tensor of ``xk``'s shape, or (m, n) of a function that gives m numbers.

    Gradient:
        By ``xk`` and ``args``.
    """
    problem = Problem("scipy.optimize.approx_fprime", "f", f, xk, args)
    return functional.jacobian(problem, inexact(xk), create_graph=True)


@solver
def check_grad(func: Function, grad: Function, x0: Tensor, *args, epsilon=None, direction="all", rng=None) -> Any:
    """The norm of the difference between a gradient that was written by hand and the exact one.

    Args:
        epsilon, direction, rng: not looked at.

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
    """The assignment of rows to columns of the least sum.

    Returns:
        Two of NumPy's arrays of positions, the rows and their columns.

    Gradient:
        None: positions. That of the least cost is one of ``cost_matrix[rows, columns]``.
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
    """The gradient of :func:`rosen`, of ``x``'s shape.

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
    """The matrix of second derivatives of :func:`rosen` at a vector (n,), (n, n).

    Returns:
        A matrix (n, n).

    Gradient:
        Its formula's.
    """
    x = inexact(x)
    none = ops.zeros_like(x[:1])
    main = ops.concatenate([1200 * ops.square(x[:-1]) - 400 * x[1:] + 2, none])
    side = ops.diag(-400 * x[:-1], 1)
    return ops.diag(main + ops.concatenate([none, 200 * ops.ones_like(x[1:])])) + side + ops.transpose(side)


@composed
def rosen_hess_prod(x: Tensor, p: Tensor) -> Tensor:
    """The product of :func:`rosen_hess` with a vector.

    Returns:
        A vector (n,).

    Gradient:
        Its formula's.
    """
    x, p = floating(x, p)
    return ops.matmul(rosen_hess(x), p)

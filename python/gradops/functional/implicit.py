"""Derivatives of the solution of an equation, by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable

from .. import _tree, backends
from ..autodiff.modes import is_grad_enabled, no_grad
from ..autodiff.variable import Variable, data_of, wrap
from ..errors import GradientError, ShapeError
from ..flow import custom_gradient, stop_gradient
from ..ops import _checks, control, conversion, creation, elementwise, linalg, reductions, shaping
from ..ops._checks import integer
from ..ops._matrices import epsilon
from ..ops._structures import check_functions
from .matrices import jacobian, vjp


def fixed_point(f: Callable, x0, *theta, tol: float = 1e-12, max_iterations: int = 1000):
    """The ``x`` with ``f(x, *theta) = x``, by iteration from ``x0``, differentiable for ``theta``.

    Args:
        f: of ``x`` and ``theta`` to a tensor of ``x``'s shape and dtype; a contraction near the solution.
        x0: where to start; the solution does not depend on it and it gets no gradient.
        theta: tensors, variables or numbers, or nested structures of them, such as a module's parameters.
        tol: the largest change of an element, relative to ``1 + abs(x)``, at which to stop; no less than four units of
            rounding of ``x0``'s dtype.
        max_iterations: how many steps at most.

    Returns:
        The solution, a tensor of ``x0``'s shape.

    Raises:
        GradientError: no convergence within ``max_iterations`` (inside a trace of JAX or a TensorFlow graph
            the last iterate is given instead, as its values are not known).
            Also an ``f`` that closes over a tensor with a gradient: pass that in ``theta``; for a PyTorch module
            ``f = lambda x, p: torch.func.functional_call(module, p, x)`` with ``dict(module.named_parameters())``.
        ShapeError: an ``f`` that changes the shape.

    Gradient:
        For ``theta``, by the implicit function theorem: ``(I - df/dx)`` is solved with, densely, and
        the iteration is not recorded (Christianson 1994; Bai et al. 2019). To any order.

    Examples:
        The square root of ``a`` by Heron's iteration; its derivative is ``1 / (2 * sqrt(a))``:

        >>> import gradops
        >>> from gradops.functional import fixed_point
        >>> def heron(x, a):
        ...     return 0.5 * (x + a / x)
        >>> print(fixed_point(heron, 1.0, 2.0).round(6))
        1.414214
        >>> print(gradops.grad(lambda a: fixed_point(heron, 1.0, a))(4.0).round(6))
        0.25

    See Also:
        :func:`root` for equations ``f(x) = 0``, ``gradops.ops.while_loop`` for iterations that are recorded.
    """

    check_functions("fixed_point", f=f)

    def step(x, parameters):
        y = f(x, *parameters)
        if conversion.shape(y) != conversion.shape(x):
            raise ShapeError(
                f"`f` must keep the shape {conversion.shape(x)} of `x0`; got {conversion.shape(y)}.", argument="f"
            )
        return y

    most = integer("fixed_point", max_iterations, "max_iterations", 1)
    return _implicit("fixed_point", lambda x, *p: elementwise.subtract(step(x, p), x), step, x0, theta, tol, most)


def root(f: Callable, x0, *theta, tol: float = 1e-12, max_iterations: int = 100):
    """The ``x`` with ``f(x, *theta) = 0``, by Newton's method from ``x0``, differentiable for ``theta``.

    Args:
        f: of ``x`` and ``theta`` to a tensor of ``x``'s shape and dtype.
        x0, theta, tol, max_iterations: as of :func:`fixed_point`.

    Returns:
        The solution, a tensor of ``x0``'s shape.

    Raises:
        GradientError: no convergence within ``max_iterations``, and a closure, as of :func:`fixed_point`.

    Gradient:
        For ``theta``, by the implicit function theorem: ``df/dx`` is solved with, densely. To any order.

    Examples:
        The yield ``r`` of a bond, and how it moves with the price:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import root
        >>> years = np.arange(1.0, 6.0)
        >>> def excess(r, price):
        ...     return ops.sum(5.0 * ops.exp(-r * years)) + 100.0 * ops.exp(-r * 5.0) - price
        >>> print(root(excess, 0.05, 98.0).round(6))
        0.053237
        >>> print(gradops.grad(lambda price: root(excess, 0.05, price))(98.0).round(6))
        -0.002247

    See Also:
        :func:`fixed_point`, whose iteration is yours.
    """

    check_functions("root", f=f)

    def newton(x, parameters):
        matrix, residual = _matrix(lambda z: f(z, *parameters), x), f(x, *parameters)
        change = linalg.solve(matrix, shaping.reshape(residual, (-1, 1)))
        return elementwise.subtract(x, shaping.reshape(change, conversion.shape(x)))

    return _implicit("root", f, newton, x0, theta, tol, integer("root", max_iterations, "max_iterations", 1))


def _implicit(name: str, residual: Callable, step: Callable, x0, theta: tuple, tol: float, max_iterations: int):
    """The root of ``residual(x, *theta)`` that ``step(x, theta)`` converges to."""
    if not _checks.is_numeric(tol):
        raise _checks.not_a_tensor(name, "tol", tol)
    given, structure = _tree.flatten(theta)
    for argument, values in (("theta", given), ("x0", [x0])):
        for value in values:
            if not _checks.is_numeric(value):
                raise _checks.not_a_tensor(name, argument, value)
    tensors = [t if isinstance(t, Variable) or backends.of(t) is not None else _tensor(t, given, x0) for t in given]
    start = stop_gradient(x0 if isinstance(x0, Variable) or backends.of(x0) is not None else _tensor(x0, given, x0))

    def at(x, parameters):
        return residual(x, *_tree.unflatten(structure, parameters))

    def solve(start, *parameters):
        x = _iterate(lambda x: step(x, _tree.unflatten(structure, parameters)), start, parameters, tol, max_iterations)
        rest = at(x, parameters)  # connects the solution to tensors `f` closes over: custom_gradient() refuses that
        return elementwise.add(x, elementwise.subtract(rest, stop_gradient(rest)))

    def gradient(start, *parameters, upstream):
        x = differentiable(start, *parameters)
        matrix = _matrix(lambda z: at(z, parameters), x)
        adjoint = linalg.solve(shaping.transpose(matrix), shaping.reshape(elementwise.negative(upstream), (-1, 1)))
        weights = shaping.reshape(adjoint, conversion.shape(x))
        if not parameters:
            return [None]
        _, result = vjp(lambda *p: at(x, p), tuple(parameters), weights, create_graph=is_grad_enabled())
        return [None, *result]

    differentiable = custom_gradient(solve, gradient)
    return differentiable(start, *tensors)


def _tensor(value, theta: list, x0):
    """A number or list as a tensor of the backend of the others."""
    for other in (*theta, x0):
        like = data_of(other)
        owner = backends.of(like)
        if owner is not None:
            return owner.convert(float(value) if isinstance(value, int) else value, like=like)
    return conversion.convert_to_tensor(float(value) if isinstance(value, int) else value)


def _matrix(f: Callable, x):
    """The Jacobian of ``f`` at ``x`` as a square matrix."""
    size = conversion.size(x)
    return shaping.reshape(jacobian(f, x, create_graph=is_grad_enabled()), (size, size))


def _iterate(step: Callable, start, parameters: tuple, tol: float, max_iterations: int):
    """Apply ``step`` until nothing changes by more than ``tol``; without recording."""
    start, parameters = stop_gradient(start), stop_gradient(tuple(parameters))
    if isinstance(tol, (int, float)):
        tol = max(tol, 4 * epsilon(start))  # single precision goes to and fro within that

    def moved(change, x):
        return reductions.any(
            elementwise.greater(change, elementwise.multiply(elementwise.add(elementwise.abs(x), 1), tol))
        )

    def body(x, change):
        y = step(x)
        return y, elementwise.abs(elementwise.subtract(y, x))

    infinite = creation.full_like(start, float("inf"))
    with no_grad():
        x, change = control.while_loop(
            lambda x, change: moved(change, x), body, (start, infinite), maximum_iterations=max_iterations
        )
        unfinished = moved(change, x)
    try:
        failed = bool(unfinished)
    except Exception:  # a traced value is not known
        failed = False
    if failed:
        raise GradientError(
            f"no convergence within {max_iterations} iterations.",
            argument="max_iterations",
            hint="start nearer, allow more iterations, or raise `tol`",
        )
    return wrap(x.data) if isinstance(x, Variable) else stop_gradient(x)

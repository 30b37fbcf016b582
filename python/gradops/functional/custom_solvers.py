"""Solutions by solvers of the user, differentiable by the implicit function theorem; by JAX's names."""

from __future__ import annotations

from collections.abc import Callable

from .. import ops
from ..flow import stop_gradient, stop_gradient_scope
from ..ops import _checks
from ..ops._structures import check_functions
from .implicit import Unknowns, held, linear_inverse, missing_solve, stepped
from .structured import pair
from .symbolic_zeros import connected
from .transformations import linearize, vjp


def custom_root(f: Callable, initial_guess, solve: Callable, tangent_solve: Callable, has_aux: bool = False):
    """The ``x`` with ``f(x) = 0`` that a solver of yours finds, differentiable in everything that ``f`` closes over.

    Args:
        f: a function of ``x`` that returns residuals, in the structure, shapes and dtypes of ``x``.
        initial_guess: the starting point, a tensor or a structure of tensors of one dtype; it gets no gradient.
        solve: ``solve(f, initial_guess)`` returns the solution. It is called with everything held constant and may be
            any code.
        tangent_solve: ``tangent_solve(g, y)`` returns the ``x`` with ``g(x) = y`` for a linear function ``g``, the
            derivative of ``f`` at the solution. It must be made of differentiable operations, linear in ``y``, such as
            ``y / g(1.0)`` or a solution with ``jacobian(g)(y)``.
        has_aux: True if ``solve`` returns a pair of the solution and auxiliary data.

    Returns:
        The solution, exactly as ``solve`` returns it, or ``(solution, aux)``.

    Raises:
        ArgumentError, ShapeError: ``f`` changes the structure or a shape.
        GradientError: a derivative of fourth order.

    Gradient:
        For values that ``f`` closes over, forward and reverse, to third order, by the implicit function theorem with
        ``tangent_solve``. After ``jax.lax.custom_root``.

    Examples:
        A root by bisection, and its derivative:

        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import custom_root
        >>> def bisect(f, start):
        ...     def halved(_, ends):
        ...         low, high = ends
        ...         middle = (low + high) / 2
        ...         above = f(middle) > 0
        ...         return ops.where(above, low, middle), ops.where(above, middle, high)
        ...     return ops.fori_loop(0, 60, halved, (0.0 * start, start))[0]
        >>> def cube_root(a):
        ...     return custom_root(lambda x: x**3 - a, 10.0, bisect, lambda g, y: y / g(1.0))
        >>> print(cube_root(8.0), gradops.grad(cube_root)(8.0).round(6))
        2.0 0.083333

    See Also:
        :func:`root`, with Newton's method; :func:`custom_linear_solve`.
    """
    check_functions("custom_root", f=f, solve=solve, tangent_solve=tangent_solve)
    _checks.check_flags("custom_root", has_aux=has_aux)
    unknowns = Unknowns("custom_root", initial_guess, (), f)
    x, aux = _solved(unknowns, lambda: solve(f, unknowns.tree(unknowns.start)), has_aux)

    def inverse(y):
        with stop_gradient_scope():
            push = linearize(f, unknowns.tree(x))[1]
        return unknowns.vector(tangent_solve(push, unknowns.tree(y)))

    found = unknowns.tree(_connected(unknowns, unknowns.vector_function, x, inverse))
    return (found, aux) if has_aux else found


def custom_linear_solve(
    matvec: Callable,
    b,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
):
    """The ``x`` with ``matvec(x) = b`` that a solver of yours finds, differentiable in ``b`` and what ``matvec`` uses.

    Args:
        matvec: a linear function, in the structure, shapes and dtypes of ``b``.
        b: the right-hand side, a tensor or a structure of tensors of one dtype.
        solve: ``solve(matvec, b)`` returns the solution; it is called with everything held constant.
        transpose_solve: ``transpose_solve(vecmat, b)`` returns the ``x`` with ``vecmat(x) = b`` for the transpose of
            ``matvec``; needed for derivatives in reverse mode, unless ``symmetric``.
        symmetric: True if ``matvec`` is its own transpose, so that ``solve`` solves with it too.
        has_aux: True if the solvers return a pair of the solution and auxiliary data.

    Returns:
        The solution, or ``(solution, aux)``.

    Raises:
        ArgumentError, ShapeError: ``matvec`` changes the structure or a shape.
        GradientError: a derivative in reverse mode without ``transpose_solve``; a derivative of fourth order.

    Gradient:
        For ``b`` and values that ``matvec`` closes over, forward and reverse, to third order, by ``solve`` and
        ``transpose_solve``. After ``jax.lax.custom_linear_solve``.

    Examples:
        A diagonal system, whose matrix is never formed:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import custom_linear_solve
        >>> def solved(d, b):
        ...     return custom_linear_solve(lambda x: d * x, b, lambda f, b: b / f(ops.ones_like(b)), symmetric=True)
        >>> d, b = np.array([2.0, 4.0]), np.array([1.0, 1.0])
        >>> print(solved(d, b), gradops.grad(lambda d: ops.sum(solved(d, b)))(d))
        [0.5  0.25] [-0.25   -0.0625]

    See Also:
        :func:`linear_solve`, by conjugate gradients or GMRES; :func:`custom_root`.
    """
    check_functions("custom_linear_solve", matvec=matvec, solve=solve)
    if transpose_solve is not None:
        check_functions("custom_linear_solve", transpose_solve=transpose_solve)
    _checks.check_flags("custom_linear_solve", symmetric=symmetric, has_aux=has_aux)
    unknowns = Unknowns("custom_linear_solve", b, (), matvec)
    right = unknowns.right_side(b)
    x, aux = _solved(unknowns, lambda: solve(matvec, unknowns.tree(unknowns.start)), has_aux)

    def vector_solver(solver: Callable) -> Callable:
        def solved(function: Callable, r):
            value = solver(lambda v: unknowns.tree(function(unknowns.vector(v))), unknowns.tree(r))
            return unknowns.vector(pair(value)[0] if has_aux else value)

        return solved

    with stop_gradient_scope():
        push = linearize(unknowns.vector_function, x)[1]
        pull = vjp(unknowns.vector_function, x)[1]
    back = push if symmetric else lambda w: pull(w)[0]
    transpose_solve = solve if symmetric else transpose_solve
    back_solve = missing_solve if transpose_solve is None else vector_solver(transpose_solve)
    inverse = linear_inverse(push, back, vector_solver(solve), back_solve)

    def residual(x):
        return ops.subtract(unknowns.vector_function(x), right)

    found = unknowns.tree(_connected(unknowns, residual, x, inverse))
    return (found, aux) if has_aux else found


def _solved(unknowns: Unknowns, solve: Callable, has_aux: bool) -> tuple:
    """The solution as a constant vector, and the auxiliary data."""
    value = held(solve)()
    value, aux = pair(value) if has_aux else (value, None)
    return stop_gradient(unknowns.vector(value)), aux


def _connected(unknowns: Unknowns, residual: Callable, x, inverse: Callable):
    """``x`` with the derivatives of a root of ``residual``; its value is not changed."""
    rest = residual(x)
    if not connected(rest):
        return unknowns.wrapped(x)
    # A Newton step would replace the solver's value by a better one. Without the residual's value it is a step of 0.
    return stepped(residual, lambda r: inverse(ops.subtract(r, stop_gradient(r))), x, rest)

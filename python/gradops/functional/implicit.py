"""Solutions of equations, minima and linear systems, differentiable by the implicit function theorem.

A solution is computed with everything held constant. If it depends on values being differentiated, passed or closed
over, a few Newton steps with a fixed Jacobian are then recorded from there. They change the solution by rounding only,
and each makes the derivatives correct to one order more (Gilbert 1992; Christianson 1994). So gradops never needs to
know what a function closes over.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from .. import _tree, backends, ops
from .._functions import hint_arguments
from ..autodiff.derivatives import derivatives_of
from ..autodiff.variable import Variable, data_of, is_active, wrap
from ..errors import ArgumentError, GradientError, ShapeError
from ..flow import custom_gradient, stop_gradient, stop_gradient_scope
from ..ops import _checks
from ..ops._checks import integer
from ..ops._compose import NUMBERS
from ..ops._matrices import epsilon
from ..ops._structures import check_functions
from . import matrices
from .ravel import raveled, unraveled
from .reverse import grad, value_and_grad
from .symbolic_zeros import connected
from .transformations import linearize, vjp

MAX_ORDER = 3
"""The highest order of gradients for which Newton steps are recorded; a Taylor series adds its own order."""

MAX_DENSE_UNKNOWNS = 64
"""The largest number of unknowns for a dense Jacobian; larger systems are solved by products with the Jacobian."""

GMRES_RESTART = 20
"""The number of vectors after which GMRES restarts."""


@hint_arguments
def fixed_point(f: Callable, x0, *theta, tol: float = 1e-12, max_iterations: int = 1000):
    """The ``x`` with ``f(x, *theta) = x``, by iteration from ``x0``, differentiable in everything ``f`` depends on.

    Args:
        f: a function of ``x`` and ``theta`` that returns a new ``x``, with the same shapes and dtypes; a contraction
            near the solution.
        x0: the starting point, a tensor or a structure of tensors of one dtype; the solution does not depend on it, so
            it gets no gradient.
        theta: tensors, variables or numbers, or nested structures of them, such as a module's parameters. Values that
            ``f`` closes over work as well.
        tol: the iteration stops when no element changes by more than ``tol`` relative to ``1 + abs(x)``; at least four
            units of rounding of ``x0``'s dtype. An array has one for each element.
        max_iterations: the largest number of steps.

    Returns:
        The solution, in the structure of ``x0``.

    Raises:
        GradientError: no convergence within ``max_iterations`` (inside a trace of JAX or a TensorFlow graph, whose
            values are not known, the last iterate is returned instead); a derivative of fourth order.
        ShapeError, ArgumentError: ``f`` changes the shape, or the structure.

    Gradient:
        For ``theta`` and values that ``f`` closes over, forward and reverse, to third order, by the implicit function
        theorem (Christianson 1994; Bai et al. 2019). The iteration is not recorded, only three evaluations of ``f``
        are. A system with ``I - df/dx`` is solved, by GMRES if there are more than 64 unknowns.

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
    most = integer("fixed_point", max_iterations, "max_iterations", 1)
    unknowns = Unknowns("fixed_point", x0, theta, lambda x: f(x, *theta))

    def residual(x):
        return ops.subtract(unknowns.vector_function(x), x)

    return unknowns.solved(residual, _iterated("fixed_point", unknowns.vector_function, tol, most))


@hint_arguments
def root(f: Callable, x0, *theta, tol: float = 1e-12, max_iterations: int = 100):
    """The ``x`` with ``f(x, *theta) = 0``, by Newton's method from ``x0``, differentiable in all that ``f`` uses.

    Args:
        f: a function of ``x`` and ``theta`` that returns residuals, with the shapes and dtypes of ``x``.
        x0, theta, tol, max_iterations: see :func:`fixed_point`.

    Returns:
        The solution, in the structure of ``x0``.

    Raises:
        GradientError, ShapeError, ArgumentError: see :func:`fixed_point`.

    Gradient:
        See :func:`fixed_point`; the system is solved with ``df/dx``.

    Examples:
        The yield ``r`` of a bond, and its sensitivity to the price:

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
        :func:`fixed_point`, for an iteration of your own; :func:`argmin`.
    """
    check_functions("root", f=f)
    most = integer("root", max_iterations, "max_iterations", 1)
    unknowns = Unknowns("root", x0, theta, lambda x: f(x, *theta))
    residual = unknowns.vector_function

    def newton(x):
        return ops.subtract(x, _inverse(residual, x)(residual(x)))

    return unknowns.solved(residual, _iterated("root", newton, tol, most))


@hint_arguments
def argmin(f: Callable, x0, *theta, tol: float = 1e-8, max_iterations: int = 200):
    """A local minimum ``x`` of ``f(x, *theta)`` near ``x0``, differentiable in everything ``f`` depends on.

    Args:
        f: a function of ``x`` and ``theta`` that returns a scalar and has second derivatives.
        x0, theta, tol, max_iterations: see :func:`fixed_point`.

    Returns:
        The minimizer, in the structure of ``x0``, by Newton's method with a line search. Directions of negative
        curvature are followed downhill (Nocedal & Wright 2006, chapter 3). With more than 64 unknowns the Newton
        system is solved by conjugate gradients.

    Raises:
        GradientError: no convergence, see :func:`fixed_point`.

    Gradient:
        See :func:`fixed_point`; the system is solved with the Hessian, which must be positive definite at the minimum.

    Examples:
        Ridge regression, and the sensitivity of its weights to the penalty:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import argmin
        >>> x, y = np.array([[1.0, 0.0], [1.0, 2.0], [1.0, 4.0]]), np.array([1.0, 2.0, 6.0])
        >>> def fitted(penalty):
        ...     return argmin(lambda w: ops.sum((x @ w - y) ** 2) + penalty * ops.sum(w**2), np.zeros(2))
        >>> print(fitted(0.5).round(4))
        [0.4615 1.2308]
        >>> print(gradops.jacobian(fitted)(0.5).round(4))
        [-0.0581 -0.043 ]

    See Also:
        :func:`gradops.scipy.optimize.minimize`, with SciPy's methods, bounds and constraints, if values are known.
    """
    check_functions("argmin", f=f)
    return minimum(f, x0, theta, tol, integer("argmin", max_iterations, "max_iterations", 1))


def minimum(f: Callable, x0, theta: tuple, tol, most: int, newton: Callable | None = None):
    """:func:`argmin` with an optional Newton step of the caller's.

    ``newton(gradient, x)`` returns the gradient at ``x``, and a function that multiplies a vector by the inverse of the
    Hessian there, or of a positive definite matrix near it.
    """
    unknowns = Unknowns("argmin", x0, theta, lambda x: f(x, *theta), keeps=False)

    def value(x):
        return ops.reshape(unknowns.f(unknowns.tree(x)), ())

    slope = grad(value)

    def step(x):
        """Return the value and the gradient at ``x``, and the step from it."""
        if newton is not None:
            g, inverse = newton(slope, x)
            return value(x), g, inverse(ops.negative(g))
        start, g = value_and_grad(value)(x)
        if ops.size(x) > MAX_DENSE_UNKNOWNS:
            return start, g, _cg(lambda v: matrices.jvp(slope, x, v)[1], ops.negative(g), epsilon(x) ** 0.5, 200)
        curvature, axes = ops.eigh(matrices.hessian(value, x))
        size = ops.maximum(ops.abs(curvature), epsilon(x))
        return start, g, ops.negative(ops.matmul(axes, ops.matmul(ops.transpose(axes), g) / size))

    def descend(x):
        start, g, p = step(x)
        fall = ops.vdot(g, p)
        noise = ops.multiply(ops.abs(start), 10 * epsilon(x))

        def too_high(t):
            return ops.logical_not(value(x + t * p) <= start + 1e-4 * t * fall + noise)

        (t,) = loop(too_high, lambda t: (t / 2,), (ops.ones_like(start),), 40)
        return x + t * p

    return unknowns.solved(slope, _iterated("argmin", descend, tol, most), _cg, newton)


@hint_arguments
def linear_solve(matvec: Callable, b, *, method: str = "gmres", tol: float = 1e-10, max_iterations: int | None = None):
    """The ``x`` with ``matvec(x) = b`` for a linear function, without forming its matrix.

    Args:
        matvec: a linear function of a structure of tensors like ``b``; it returns the same shapes and dtypes.
        b: a tensor or a structure of tensors of one dtype.
        method: ``"gmres"``, for any linear function (Saad & Schultz 1986; restarted after 20 vectors), or ``"cg"``,
            conjugate gradients (Hestenes & Stiefel 1952), which is cheaper for symmetric positive definite functions.
        tol: the size of ``matvec(x) - b`` relative to ``b`` at which to stop.
        max_iterations: the largest number of products with the matrix; by default ten for each unknown.

    Returns:
        The solution, in the structure of ``b``.

    Raises:
        GradientError: no convergence, see :func:`fixed_point`.
        ArgumentError: an unknown ``method``; ``matvec`` changes the structure. ShapeError: ``matvec`` changes a shape.

    Gradient:
        For ``b`` and values that ``matvec`` closes over, forward and reverse, to third order, by solving with
        ``matvec`` and its transpose, found by :func:`gradops.linear_transpose`. After ``jax.lax.custom_linear_solve``.

    Examples:
        Smoothing by an implicit step of the heat equation, and its derivative with respect to the width:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import linear_solve
        >>> signal = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
        >>> def smooth(width):
        ...     def matvec(x):
        ...         return x - width * (ops.roll(x, 1) + ops.roll(x, -1) - 2 * x)
        ...     return linear_solve(matvec, signal, method="cg")
        >>> print(smooth(0.5).round(4))
        [0.0526 0.1579 0.5789 0.1579 0.0526]
        >>> print(gradops.jacobian(smooth)(0.5).round(4))
        [ 0.0997  0.0886 -0.3767  0.0886  0.0997]

    See Also:
        :func:`gradops.ops.solve` for a matrix; :func:`root` for a function that is not linear.
    """
    check_functions("linear_solve", matvec=matvec)
    _check_tol("linear_solve", tol)
    solve = _METHODS[_checks.choice("linear_solve", method, _METHODS, "method")]
    most = None if max_iterations is None else integer("linear_solve", max_iterations, "max_iterations", 1)
    unknowns = Unknowns("linear_solve", b, (), matvec)

    right = unknowns.right_side(b)

    def residual(x):
        return ops.subtract(unknowns.vector_function(x), right)

    def found(b):
        x = solve(unknowns.vector_function, b, tol, most)
        rest = ops.subtract(unknowns.vector_function(x), b)
        return x, _norm(rest) > 10 * max(tol, 10 * epsilon(b)) * _norm(b)

    return unknowns.solved(residual, found, solve)


class Unknowns:
    """Unknowns in a structure, flattened to one vector, with functions of the structure as functions of the vector.

    Args:
        start: a structure of tensors and numbers.
        beside: additional tensors that may select the unknowns' library.
        f: a function of the structure, whose results may also select the library.
        keeps: True if the results of ``f`` must have the structure and shapes of the unknowns.
    """

    def __init__(self, name: str, start, beside, f: Callable, keeps: bool = True):
        self.name, self.f = name, f
        argument = "b" if name.endswith("linear_solve") else "initial_guess" if name == "custom_root" else "x0"
        given, self.form = _tree.flatten(start)
        theta = _tree.leaves_of(beside)
        for which, values in (("theta", theta), (argument, given)):
            for value in values:
                if not _checks.is_numeric(value):
                    raise _checks.not_a_tensor(name, which, value)
        if not given:
            raise ArgumentError(f"`{name}`: `{argument}` must hold a tensor.", argument=argument)
        leaves = [_tensor(x, [*theta, *given]) for x in given]
        of_no_library = all(type(x) in NUMBERS for x in given) and not any(map(ops.is_tensor, theta))
        at = list(map(float, given)) if of_no_library else leaves
        found, form = _tree.flatten(held(f)(_tree.unflatten(self.form, at)))
        if keeps:
            self._check(leaves, found, form)
        owner = backends.common([type(data_of(y)) for y in found], name)
        like = next((data_of(y) for y in found if backends.backend_of(data_of(y)) is owner), None)
        for i, x in enumerate(leaves):
            mine = backends.backend_of(data_of(x))
            if owner is not None and owner is not mine and mine.yields:  # numbers went to the default backend
                leaves[i] = owner.convert(data_of(x), like=like)
        self.variable = any(isinstance(x, Variable) for x in (*given, *theta, *found))
        self.shapes = [ops.shape(x) for x in leaves]
        self.start = self.vector(stop_gradient(_tree.unflatten(self.form, leaves)))

    def _check(self, leaves: list, found: list, form) -> None:
        if form != self.form:
            raise ArgumentError(
                f"`{self.name}`: `f` must return the structure of the unknowns, {self.form}; got {form}.", argument="f"
            )
        for x, y in zip(leaves, found):
            if ops.shape(y) != ops.shape(x):
                raise ShapeError(f"`f` must keep the shape {ops.shape(x)} of `x0`; got {ops.shape(y)}.", argument="f")

    def vector(self, tree):
        return raveled(_tree.leaves_of(tree))

    def tree(self, x):
        return _tree.unflatten(self.form, unraveled(x, self.shapes))

    def right_side(self, b):
        """The right-hand side ``b`` of a linear system as a vector."""
        return self.vector(b) if any(map(ops.is_tensor, _tree.leaves_of(b))) else self.start

    def wrapped(self, x):
        """A constant as a variable, if the unknowns or the values of ``f`` are variables."""
        return wrap(x) if self.variable and not isinstance(x, Variable) else x

    def vector_function(self, x):
        """``f`` as a function from vectors to vectors."""
        return self.vector(self.f(self.tree(x)))

    def solved(self, residual: Callable, find: Callable, solve: Callable | None = None, newton: Callable | None = None):
        """The root of ``residual``, as a structure.

        ``find(start)`` returns a solution and a flag that it is not converged.
        """
        x, unfinished = held(find)(self.start)
        try:
            failed = bool(unfinished)
        except Exception:  # traced values cannot be read
            failed = False
        if failed:
            raise GradientError(
                f"`{self.name}`: no convergence within `max_iterations`.",
                argument="max_iterations",
                hint="start nearer, allow more iterations, or raise `tol`",
            )
        x = stop_gradient(x)
        rest = residual(x)
        if connected(rest):
            inverse = newton(residual, x)[1] if newton else _inverse(residual, x, solve, True)
            x = stepped(residual, inverse, x, rest)
        return self.tree(self.wrapped(x))


def stepped(residual: Callable, inverse: Callable, x, rest=None, moves: bool = False):
    """``x`` after recorded Newton steps, which give it the derivatives of a root of ``residual``.

    Args:
        inverse: multiplies a residual by the inverse of the Jacobian, held fixed: each step makes derivatives of one
            order more correct. If it ``moves``, it also takes the point: then n steps do for orders below ``2**n``.
    """
    rest = residual(x) if rest is None else rest
    order = _order(rest)
    for left in reversed(range(order.bit_length() if moves else order)):
        x = ops.subtract(x, inverse(rest, x) if moves else inverse(rest))
        rest = residual(x) if left else None
    return limit_order(x)


def _order(x) -> int:
    """The order up to which steps must be exact: that of the series of ``x``, plus MAX_ORDER for gradients."""
    order, is_recorded = 0, is_active(x)
    while hasattr(value := data_of(x), "coefficient"):  # a series, whose coefficients may be series or variables
        order, x = order + value.order, value.coefficient(0)
        is_recorded = is_recorded or is_active(x)
    return order + MAX_ORDER if is_recorded or connected(x) else max(order, 1)


def limit_order(x):
    """``x``, or each coefficient of a series, with an error for gradients of an order above :data:`MAX_ORDER`."""
    if hasattr(x, "mapped"):
        return x.mapped(limit_order)
    return _limited(x, (None, 1.0, *[0.0] * (MAX_ORDER - 1))) if connected(x) else x


def _limited(x, values: tuple):
    """``x``, with an error for derivatives of a higher order than the recorded steps make correct.

    Each derivative multiplies by a function of ``x`` that carries the limit on: first 1, then 0.

    Args:
        values: the values of this function and of its derivatives; None stands for ``x`` itself.
    """
    value, *rest = values

    @custom_gradient
    def limited(x):
        def gradient(upstream):
            if not rest:
                raise GradientError(
                    f"the solution of an equation has no derivative of an order above {MAX_ORDER}.",
                    hint="if you need no higher derivative, pass it through `gradops.stop_gradient()`",
                )
            return ops.multiply(upstream, _limited(x, tuple(rest)))

        return x if value is None else ops.full_like(x, value), gradient

    return limited(x)


def held(f: Callable) -> Callable:
    """``f`` with its results, and everything it closes over, held constant."""
    return lambda *xs: stop_gradient(stop_gradient_scope(f)(*xs))


def _tensor(value, others: list):
    """A number or list as a tensor of the backend of ``others``."""
    if isinstance(value, Variable) or backends.backend_of(value) is not None:
        return value
    number = float(value) if isinstance(value, int) else value
    for other in others:
        like = data_of(other)
        owner = backends.backend_of(like)
        if owner is not None:
            return owner.convert(number, like=like)
    return ops.convert_to_tensor(number)


def _check_tol(name: str, tol) -> None:
    if not _checks.is_numeric(tol):
        raise _checks.not_a_tensor(name, "tol", tol)
    value = _checks.known(tol)
    if value is not None and np.isnan(value).any():  # no step is larger: the start would be the solution
        raise ArgumentError(f"`{name}`: `tol` must not be NaN; got {value}.", argument="tol")


def _iterated(name: str, step: Callable, tol, max_iterations: int) -> Callable:
    """A function that iterates ``step`` from a start; it returns the last iterate and True if it has not converged."""
    _check_tol(name, tol)

    def find(start):
        least = 4 * epsilon(start)
        bound = max(tol, least) if isinstance(tol, (int, float)) else ops.maximum(ops.reshape(tol, (-1,)), least)

        def moved(x, change):
            return ops.any(change > bound * (1 + ops.abs(x)))  # single precision oscillates within this bound

        def body(x, _):
            y = step(x)
            return y, ops.abs(y - x)

        state = (start, ops.full_like(start, float("inf")))
        x, change = loop(moved, body, state, max_iterations)
        return x, moved(x, change)

    return find


def _inverse(residual: Callable, x, solve: Callable | None = None, at_root: bool = False) -> Callable:
    """The inverse of the Jacobian of ``residual`` at ``x``, held fixed, as a function of vectors.

    Args:
        at_root: True if ``x`` is a root: the inverse is then applied to rounding errors only, for its derivative.
    """
    if ops.size(x) <= MAX_DENSE_UNKNOWNS:
        return dense_inverse(dense_jacobian(residual, x))
    method = _gmres if solve is None else solve
    with stop_gradient_scope():
        forward = linearize(residual, x)[1]
        pull = vjp(residual, x)[1]
    back = forward if method is _cg else lambda w: pull(w)[0]

    def solve_linear(matvec: Callable, b):
        return method(matvec, b, epsilon(b) ** 0.75, None)

    return linear_inverse(forward, back, solve_linear, solve_linear, at_root)


def dense_jacobian(residual: Callable, x):
    """The Jacobian matrix of ``residual`` at ``x``, held constant."""
    size = ops.size(x)
    return ops.reshape(held(functools.partial(matrices.jacobian, residual))(x), (size, size))


def dense_inverse(matrix) -> Callable:
    """The inverse of a Jacobian matrix, as a function of residuals of any shape."""

    def inverse(rest):
        try:
            return ops.reshape(ops.solve(matrix, ops.reshape(rest, (-1, 1))), rest.shape)
        except ArgumentError as error:
            raise GradientError(
                "the Jacobian of `f` in the unknowns is singular: there is no next step and no gradient.",
                argument="f",
                hint="start from another point; there may be no solution",
            ) from error

    return inverse


def linear_inverse(
    forward: Callable, back: Callable, solve: Callable, transpose_solve: Callable, of_nothing: bool = False
) -> Callable:
    """The solution of a linear system as a linear function of the right side.

    Args:
        back: the transpose of ``forward``.
        solve, transpose_solve: ``solve(forward, b)`` and ``transpose_solve(back, b)`` return solutions.
    """

    def inverse(r):
        owner = backends.backend_of(data_of(r))
        back_solve = None if transpose_solve is missing_solve else transpose_solve
        found = derivatives_of(owner, [r]).linear_solve(forward, r, solve, back_solve)
        return attached(r) if found is NotImplemented else found

    @custom_gradient
    def attached(r):
        value = ops.zeros_like(r) if of_nothing else held(functools.partial(solve, forward))(r)
        return value, linear_inverse(back, forward, transpose_solve, solve)

    return inverse


def missing_solve(matvec: Callable, b):
    """The solver for a transpose for which the user gave none: it knows the solution for 0, as forward mode needs it.

    Raises:
        GradientError: ``b`` is not 0, or not known.
    """
    try:
        is_zero = not ops.any(b != 0)
    except Exception:  # traced values cannot be read
        is_zero = False
    if not is_zero:
        raise GradientError(
            "`custom_linear_solve`: a derivative in reverse mode needs `transpose_solve`.",
            argument="transpose_solve",
            hint="or set `symmetric=True`, if `matvec` is its own transpose",
        )
    return b


def _norm(x):
    return ops.sqrt(ops.sum(ops.square(x)))


def _cg(matvec: Callable, b, tol: float, most: int | None):
    """Conjugate gradients from 0; stops early, with the result so far, at a direction of nonpositive curvature."""
    goal = ops.square(tol * _norm(b))

    def goes_on(x, r, p, rr, going):
        return ops.logical_and(rr > goal, going)

    def body(x, r, p, rr, going):
        h = matvec(p)
        curvature = ops.vdot(p, h)
        going = curvature > 0
        by = ops.where(going, rr / ops.where(going, curvature, 1.0), 0.0)
        r = r - by * h
        after = ops.vdot(r, r)
        x = ops.where(ops.logical_or(going, ops.any(x != 0)), x + by * p, b)
        return x, r, r + (after / rr) * p, after, going

    rr = ops.vdot(b, b)
    return loop(goes_on, body, (ops.zeros_like(b), b, b, rr, rr >= 0), most or 10 * ops.size(b))[0]


def _gmres(matvec: Callable, b, tol: float, most: int | None):
    """Generalized minimal residuals from 0, with restarts."""
    restart, goal = min(GMRES_RESTART, ops.size(b)), tol * _norm(b)
    rows = backends.backend_of(data_of(b)).convert(np.arange(restart + 1), like=data_of(b))
    first = ops.cast(rows == 0, ops.dtype(b))

    def grown(k, state):
        """Add a vector to the basis, 0 if the product is already in its span, and a column of coefficients."""
        basis, columns = state
        w = matvec(ops.matmul(ops.cast(rows == k, ops.dtype(b)), basis))
        length, column = _norm(w), ops.zeros_like(first)
        for _ in range(2):  # once is not orthogonal enough
            part = ops.matmul(basis, w)
            w, column = w - ops.matmul(part, basis), column + part
        left, next_row = _norm(w), ops.cast(rows == k + 1, ops.dtype(b))
        new = left > 10 * epsilon(b) * length
        basis = basis + ops.outer(next_row, ops.where(new, w / ops.where(new, left, 1.0), 0.0))
        return basis, columns + ops.outer(column + left * next_row, ops.cast(rows[:-1] == k, ops.dtype(b)))

    def body(x, r):
        size = _norm(r)
        start = ops.outer(first, r / ops.where(size > 0, size, 1.0)), ops.zeros_like(ops.outer(first, first[:-1]))
        basis, columns = ops.fori_loop(0, restart, grown, start)
        x = x + ops.matmul(ops.lstsq(columns, size * first), basis[:-1])
        return x, b - matvec(x)

    cycles = -(-(most or 10 * ops.size(b)) // restart)
    return loop(lambda x, r: _norm(r) > goal, body, (ops.zeros_like(b), b), cycles)[0]


def loop(goes_on: Callable, body: Callable, state: tuple, most: int) -> tuple:
    """A bounded ``ops.while_loop`` without a derivative, for which JAX would compile scans instead."""

    def within(count, *state):
        return ops.logical_and(count < most, goes_on(*state))

    return ops.while_loop(within, lambda count, *state: (count + 1, *body(*state)), (0, *state))[1:]


_METHODS = {"gmres": _gmres, "cg": _cg}

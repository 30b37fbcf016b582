"""Users' functions in SciPy's solvers, and the solutions as tensors with derivatives.

SciPy solves on numbers, with exact derivatives of the function. If the function depends on tensors with a gradient, in
``args`` or in its closure, the solution is refined by Newton's method and then by recorded steps
(:mod:`gradops.functional.implicit`), which give its derivatives.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _scipy, _tree, dtypes, functional, ops
from ..autodiff.variable import Variable
from ..backends import tracing
from ..errors import ArgumentError, ArgumentTypeError, GradientError, GradopsError, JitError
from ..functional.implicit import dense_inverse, dense_jacobian, held, stepped
from ..ops import _checks
from ..ops._compose import NUMBERS
from . import _define
from ._names import word_meant
from ._tensors import constant_like, inexact, wrong


def solver(function: Callable) -> Callable:
    """Wrap a function that calls a SciPy solver: SciPy's errors become gradops errors, the user's errors are unchanged.

    ``torch.compile`` breaks its graph there and runs the function in Python, since SciPy needs values.
    """

    def solve(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except GradopsError:
            raise
        except Exception as error:
            if getattr(error, "_of_user", False):
                raise
            failure = _failure(function, error, args, kwargs)
        raise failure

    @functools.wraps(function)
    def public(*args, **kwargs):
        return tracing.outside(solve, *args, **kwargs)

    public.autograph_info__ = None  # type: ignore[attr-defined]
    return public


def _failure(function: Callable, error: Exception, args: tuple, kwargs: dict) -> Exception:
    failure = _define._reason(function, error, args, kwargs)
    if failure is not error and isinstance(failure, GradopsError):
        return failure
    named = [name for name in inspect.signature(function).parameters if f"`{name}`" in str(error)]
    kind: Any = GradientError if isinstance(error, (RuntimeError, ArithmeticError)) else ArgumentError
    kind = ArgumentTypeError if isinstance(error, TypeError) else kind
    text = str(error).strip().replace("{", "(").replace("}", ")")
    name = _define._name(function)
    scipys: Any = _scipy
    for part in name.split(".")[1:]:
        scipys = getattr(scipys, part, None)
    return _define._caused(
        kind(
            f"`{name}`: {text or type(error).__name__}",
            argument=named[0] if named else None,
            hint=word_meant(inspect.signature(function).bind(*args, **kwargs), f"{error} {scipys.__doc__}"),
        ),
        error,
    )


def library_tensor(*given):
    """Return the tensor in the arguments that sets the library, floating ones first; None if all are NumPy's."""
    leaves = [x for x in _tree.flatten(list(given))[0] if isinstance(x, Variable) or ops.is_tensor(x)]
    leaves = [x for x in leaves if not isinstance(x, (np.ndarray, np.generic))]
    floating = [x for x in leaves if "float" in ops.dtype(x)]
    return (floating or leaves or [None])[0]


class Problem:
    """A user's function in a solver, callable on numbers and on tensors.

    Args:
        name: the solver's name, for errors.
        argument: the solver's parameter that holds the function.
        function: takes ``x`` and ``args``.
        x: a value of ``x``, such as SciPy's start.
        args: further arguments; the solution is differentiable by the tensors among them.
        scalar: True if the function returns one number, of any shape.
        beside: other arguments whose tensors set the library of ``x``.
        vectors: True if the function takes a vector of numbers and returns a value for each.
        complex_values: True if the function may return complex numbers.
    """

    def __init__(
        self, name: str, argument: str, function: Callable, x, args=(), *, scalar=False, beside=(), vectors=False,
        complex_values=False,
    ):  # fmt: skip
        if not callable(function):
            raise ArgumentTypeError(
                f"`{name}`: `{argument}` must be a function; got {{value}}.",
                argument=argument,
                value=_checks.describe(function),
            )
        self.name, self.argument, self.function, self.scalar, self.vectors = name, argument, function, scalar, vectors
        self.complex_values = complex_values
        self.args = args if isinstance(args, tuple) else (args,)
        try:
            inspect.signature(function).bind(x, *self.args)
        except TypeError as error:
            raise ArgumentTypeError(
                f"`{name}`: `{argument}` cannot be called with `x` and the {len(self.args)} of `args`: {error}.",
                argument=argument,
            ) from None
        except ValueError:  # a function written in C has no signature
            pass
        self.like = library_tensor(x, self.args, beside)
        if self.like is None:  # a torch tensor in the closure cannot be combined with a NumPy `x`
            self.like = library_tensor(_closed_over(function))
        self.dtype = None if self.like is None else dtypes.real_of(ops.dtype(inexact(self.like)))
        self.known = _tree.map_leaves(_held, self.args)

    def start(self, x, argument: str = "x0") -> np.ndarray:
        """Return the start as a float array for SciPy."""
        value = numbers(self.name, x, argument)
        if value.dtype.kind == "c":
            raise ArgumentTypeError(f"`{self.name}`: `{argument}` must be real.", argument=argument)
        if value.dtype.kind not in "fiub":
            raise _checks.not_a_tensor(self.name, argument, x)
        return value.astype(float)

    def tensor(self, x):
        """Convert SciPy's ``x`` to the tensor that the function takes."""
        if self.like is None or self.dtype is None:
            return x
        x = np.asarray(x)
        return constant_like(x, self.like, dtypes.complex_of(self.dtype) if x.dtype.kind == "c" else self.dtype)

    def _called(self, x, args, function=None):
        return _numeric(self.name, self.argument, marked(function or self.function)(x, *args), self.scalar)

    def __call__(self, x):
        """Call the function with derivatives by ``args`` and by the tensors it closes over."""
        return self._called(x, self.args)

    def held(self, x):
        """Call the function with ``args`` held constant, for derivatives by ``x`` only."""
        return self._called(x, self.known)

    def value(self, x, *_):
        """Return the function's value for SciPy's numbers, by its attribute ``_numeric`` if it has such a shortcut."""
        y = self._called(self.tensor(x), self.known, getattr(self.function, "_numeric", self.function))
        y = numbers(self.name, y, self.argument)
        if y.dtype.kind == "c":
            if not self.complex_values:
                raise ArgumentTypeError(
                    f"`{self.name}`: `{self.argument}` must give real numbers; got complex ones.",
                    argument=self.argument,
                    hint="pass on the real and the imaginary part, each by itself",
                )
            return y.astype(complex)
        return y.astype(float) if self.like is not None else y

    def near(self, x):
        """Return a tensor with the library and dtype of the solution, for use where no value is known."""
        return self.held(x) if self.like is None else self.like

    def slope(self, x, *_) -> np.ndarray:
        """Return the gradient of a scalar function as a NumPy array."""
        return self._as_numbers(functional.grad(self.held)(self._point(x)))

    def jacobian(self, x, *_) -> np.ndarray:
        return self._as_numbers(functional.jacobian(self.held, self._point(x)))

    def hessian(self, x, *_) -> np.ndarray:
        return self._as_numbers(functional.hessian(self.held, self._point(x)))

    def _point(self, x):
        return self.tensor(np.asarray(x, float))

    def _as_numbers(self, y) -> np.ndarray:
        return np.asarray(numbers(self.name, y, self.argument), float)


def _closed_over(function: Callable, within: tuple = ()) -> list:
    """Return the values in a function's closure, and in the closures of functions among them."""
    cells = getattr(inspect.unwrap(function), "__closure__", None) or ()
    values = [cell.cell_contents for cell in cells if cell != types.CellType()]
    inner = [x for x in values if isinstance(x, types.FunctionType) and x not in within]
    return values + [y for x in inner for y in _closed_over(x, (*within, function))]


def marked(function: Callable) -> Callable:
    """Wrap a user's function so that its errors can be recognised as the user's."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except GradopsError:
            raise
        except Exception as error:
            error._of_user = True  # type: ignore[attr-defined]
            raise

    return run


def _held(x):
    return ops.stop_gradient(x) if isinstance(x, Variable) or ops.is_tensor(x) else x


def _numeric(name: str, argument: str, y, scalar: bool):
    """Return the result of a user's function as a tensor or number; lists are stacked."""
    if isinstance(y, (list, tuple)):
        parts = [ops.convert_to_tensor(part) for part in y]
        y = ops.stack(parts) if any(isinstance(part, Variable) or ops.is_tensor(part) for part in y) else np.asarray(y)
    if not (type(y) in NUMBERS or _checks.is_numeric(y)):
        raise ArgumentTypeError(
            f"`{name}`: `{argument}` must give numbers; got {{value}}.", argument=argument, value=_checks.describe(y)
        )
    if scalar and np.ndim(y) if not ops.is_tensor(y) else scalar and len(y.shape):
        if ops.size(y) != 1:
            raise wrong(argument, "give one number", f"shape {tuple(y.shape)}", of=name)
        y = ops.reshape(y, ())
    return y


def has_tensors(x) -> bool:
    """Return True if a list contains tensors, also nested ones."""
    return any(isinstance(part, Variable) or ops.is_tensor(part) or is_tensor_list(part) for part in x)


def is_tensor_list(x) -> bool:
    return isinstance(x, (list, tuple)) and has_tensors(x)


def joined(problem: Problem, x):
    """Return a tensor, or a nested list of tensors and numbers, as a tensor."""
    if isinstance(x, Variable) or (ops.is_tensor(x) and not isinstance(x, np.ndarray)):
        return x
    if not is_tensor_list(x):
        return problem.tensor(np.asarray(x))
    return ops.stack([ops.convert_to_tensor(joined(problem, part)) for part in x])


def numbers(name: str, x, argument: str) -> np.ndarray:
    """Return the values of a tensor, also inside a library's transformations.

    Raises:
        JitError: in a compiled function and under ``vmap``, where values are not known.
    """
    if not (isinstance(x, Variable) or ops.is_tensor(x)):
        if isinstance(x, (list, tuple)) and has_tensors(x):
            return np.array([numbers(name, part, argument) for part in x])
        try:
            return np.asarray(x)
        except Exception:
            raise _checks.not_a_tensor(name, argument, x) from None
    try:
        return np.asarray(ops.convert_to_numpy(ops.stop_gradient(x)))
    except GradopsError as error:
        raise JitError(
            f"`{name}` looks at values, which are not known in a compiled function or under `vmap`.",
            argument=argument,
            hint="call it outside of the compiled function; in one `gradops.functional.root`, `fixed_point` or "
            "`gradops.ops.while_loop` run",
        ) from error


def solution(name: str, residual: Callable, point, lacking: str):
    """Return the tensor near ``point`` where ``residual`` is 0, with derivatives by all that ``residual`` depends on.

    Args:
        residual: maps a tensor to one of the same size.
        point: SciPy's solution, a tensor without a gradient.
        lacking: what a singular Jacobian means, for the error.
    """
    x = point = ops.convert_to_tensor(point)
    size = ops.size(point)

    def matrix(x) -> np.ndarray:
        return np.asarray(numbers(name, dense_jacobian(residual, x), "x0"), float)

    places = numbers(name, point, "x0").astype(float)
    small = 1e-9 if ops.dtype(point) == "float64" else 1e-4
    slopes, reached = matrix(x) if size else np.zeros((0, 0)), size == 0
    for _ in range(30 if size else 0):
        rest = np.asarray(numbers(name, held(residual)(x), "x0"), float).reshape(size)
        try:
            move = np.linalg.solve(slopes, rest)
        except np.linalg.LinAlgError:
            break
        if not np.all(np.isfinite(move)):
            break
        places = places - move.reshape(places.shape)
        x = constant_like(places, point)
        before, slopes = slopes, matrix(x)
        if np.max(np.abs(move)) <= small * (1 + np.max(np.abs(places))):
            # A Jacobian that is singular at the solution keeps changing by a constant factor, however near the iterate.
            change = np.linalg.solve(before, slopes - before)
            reached = bool(np.max(np.abs(change)) <= 0.1)
            break
    if not reached:
        raise GradientError(
            f"the result of `{name}` has no derivative: {lacking}, or it is not exact enough to go on from.",
            hint="if you need none, use `stop_gradient()` on what the function depends on",
        )
    return stepped(residual, dense_inverse(constant_like(slopes, point)), x) if size else x

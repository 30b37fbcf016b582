"""Derivatives of R functions for R.

Each takes one call into Python and returns R numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from ... import functional
from ..._functions import hides_arguments
from ...autodiff.variable import data_of
from ...errors import GradientError
from ...flow import stop_gradient
from ...functional import residuals, shards, transformations
from ...functional.reverse import value_and_grad
from ...ops import conversion, creation, reductions
from .arrays import fill, flat
from .calls import jit
from .values import from_r, r_arrays


def derivative(name: str, f: Callable, inputs, *arguments):
    """Call a function of :mod:`gradops.functional` by its name and return R numbers."""
    return r_arrays(getattr(functional, name)(f, inputs, *arguments))


def compiled(name: str, f: Callable, *arguments) -> Callable:
    """Return the compiled derivative of ``f``, of one argument, by a function of :mod:`gradops.functional`."""
    return jit(lambda x: getattr(functional, name)(f, x, *arguments))


def value_and_jacobian(f: Callable, compiled: bool) -> Callable:
    """Return a function that gives the Jacobian and the value of ``f``, which takes one argument."""

    def both(x):
        value = f(x)
        return value, value

    def derivative(x):
        return functional.jacobian(both, x, has_aux=True)

    return jit(derivative) if compiled else derivative


def sparse(name: str, f: Callable, inputs, **arguments) -> list[list[dict]]:
    """Return a sparse Jacobian or Hessian, for each output and input, as fields of R's column-compressed matrices.

    Rows and columns are elements in R's order, by column.
    """
    given = list(inputs) if isinstance(inputs, tuple) else [inputs]
    leaves = [conversion.convert_to_tensor(float(x)) if isinstance(x, (int, float)) else x for x in given]
    shapes = [tuple(x.shape) for x in leaves]

    def of_vectors(*vectors):
        y = f(*map(fill, vectors, shapes))
        return tuple(map(flat, y)) if isinstance(y, (list, tuple)) else flat(y)

    found = getattr(functional, name)(of_vectors, tuple(map(flat, leaves)), sparse=True, **arguments)
    rows = found if isinstance(found[0], tuple) else (found,)
    return [[{"i": m.indices, "p": m.indptr, "x": m.data, "dim": m.shape} for m in row] for row in rows]


def gradient(f: Callable, x, for_r: bool):
    """Return numDeriv's ``grad``: a scalar function's gradient, or a vectorised function's elementwise derivatives."""
    form = r_arrays if for_r else lambda result: result
    (_, value), result = _summed(f)(x)
    if conversion.size(value) == 1:
        return form(result)
    if conversion.size(value) != conversion.size(x):
        raise GradientError(
            f"`func` must return one number, or one for each of the {conversion.size(x)} of `x`; "
            f"got {conversion.size(value)}.",
            argument="func",
            hint="all derivatives of a function of several values are its `jacobian()`",
        )
    return form(transformations.jvp(f, (x,), (creation.ones_like(data_of(result)),))[1])


def objective(f: Callable, compiled: bool) -> Callable:
    """Return a function of ``f``'s value and gradient by the first argument, or Jacobian if ``f`` is not scalar.

    Returns:
        A function that returns ``finished(scalar(*arguments), *arguments)``; both are its attributes.
    """
    scalar, rows = _summed(f), _jacobian(f)
    if compiled:
        scalar, rows = jit(scalar), jit(rows)

    def finished(found, *arguments, **keywords):
        (_, value), result = found
        if conversion.size(value) > 1:
            result = rows(*arguments, **keywords)
        return {"value": value, "derivative": result}

    def evaluate(*arguments, **keywords):
        return finished(scalar(*arguments, **keywords), *arguments, **keywords)

    evaluate.scalar, evaluate.finished = scalar, finished  # type: ignore[attr-defined]
    evaluate.explain = getattr(scalar, "explain", None)  # type: ignore[attr-defined]
    return evaluate


def curvature(f: Callable, compiled: bool) -> Callable:
    """Return a function of the Hessian, by the first argument, of ``f`` or, if it is not scalar, of its sum."""

    @hides_arguments
    def hessian(x, *rest, **keywords):
        return functional.hessian(lambda x: reductions.sum(f(x, *rest, **keywords)), x)

    return jit(hessian) if compiled else hessian


def sharded_objective(which: str, f: Callable, data) -> Callable:
    """Return :func:`objective` (``"both"``) or :func:`curvature` (``"second"``) of a sum over shards of data."""
    total = functional.objective(f, from_r((data,))[0])

    def both(x):
        value, result = total.value_and_grad(x)
        return {"value": value, "derivative": result}

    return both if which == "both" else total.hessian


def saved_residuals(f: Callable, parameters: list[str], *args) -> dict:
    """Return the columns of R's data frame of the tensors that a derivative saves, and the lines to print."""
    found = residuals.saved_residuals(f, *args, parameters=parameters)
    return {
        "dtype": [x.dtype for x in found],
        "shape": [" ".join(map(str, x.shape)) for x in found],
        "bytes": [float(x.bytes) for x in found],
        "where": [x.where for x in found],
        "lines": residuals.lines_of(found),
    }


def is_on_engine(data) -> bool:
    """Return True if ``data`` is a Dask or Ray collection, or a list of their shards."""
    return shards.held(data)


def _summed(f: Callable) -> Callable:
    """Return a function of the gradient of the sum of ``f``'s value, together with the value."""

    def total(*arguments, **keywords):
        value = f(*arguments, **keywords)
        return value if conversion.shape(value) == () else reductions.sum(value), stop_gradient(value)

    return value_and_grad(total, has_aux=True)


def _jacobian(f: Callable) -> Callable:
    def jacobian(x, *rest, **keywords):
        strategy = "forward-mode"
        return functional.jacobian(lambda x: f(x, *rest, **keywords), x, strategy=strategy)

    return jacobian

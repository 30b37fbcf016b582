"""Fits of likelihoods: estimates, standard errors, intervals, and the names of parameters that are not identified."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import pathlib
import pickle
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypedDict, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from .. import _display, _scipy, _tree, ops
from .._display import track
from .._functions import hint_arguments
from .._names import add_elsewhere
from ..annotations import Number
from ..autodiff.variable import data_of
from ..errors import ArgumentError, ArgumentTypeError, InferenceError, TypeOf
from ..ops import _pandas
from . import repeated
from .likelihood import Likelihood, diagonal_scale
from .observations import reports_of
from .parameters import Parameters, check_likelihood, function_of, listed, made_by, shown, values_by_name
from .quadrature import domain
from .random_effects import Laplace
from .samples import Draws

if TYPE_CHECKING:
    from typing_extensions import Unpack

Floats: TypeAlias = NDArray[np.float64]
V = TypeVar("V")
"""The type of an estimate: a number, an array, or anything in a nested structure."""

MAX_POLISHING_STEPS = 10
"""The most Newton steps after the search, near the minimum."""
NEGLIGIBLE_STEP = {True: 4e-10, False: 1e-12}
"""The largest squared step, in standard errors, after which the Hessian is not computed again.

Such a step changes standard errors by less than 1e-6 of their size, or 1e-5 if the Hessian is by differences (True).
"""
NEAR = {True: 4e-10, False: 1e-16}
"""The squared distance from the minimum, in standard errors, at which the search ends."""
CONVERGED_DECREMENT = 1e-6
"""The largest Newton decrement (twice the predicted decrease) at which a search counts as converged."""
LEAST_CURVATURE = 1e-9
"""The smallest eigenvalue of a scaled Hessian that is told from 0."""
SINGULAR = {True: 1e-5, False: LEAST_CURVATURE}
"""The eigenvalue of a scaled Hessian below which a direction is not identified: True by differences, False exact."""


class Options(TypedDict, total=False):
    """The keyword arguments of :func:`fit`, for type checkers."""

    random: Any
    map: Any
    bounds: Any
    transforms: Any
    integrate: Any
    nobs: int | None


@overload
def fit(  # type: ignore[overload-overlap]
    nll: Callable[..., Any], start: Mapping[str, float], data: Any = None, **options: Unpack[Options]
) -> Fit[np.float64]: ...
@overload
def fit(  # type: ignore[overload-overlap]
    nll: Callable[..., Any],
    start: Mapping[str, Sequence[float] | Floats],
    data: Any = None,
    **options: Unpack[Options],
) -> Fit[Floats]: ...
@overload
def fit(
    nll: Callable[..., Any],
    start: Mapping[str, Sequence[float] | Floats | float],
    data: Any = None,
    **options: Unpack[Options],
) -> Fit[Number]: ...
@overload
def fit(nll: Callable[..., Any], start: Any, data: Any = None, **options: Unpack[Options]) -> Fit[Any]: ...
@hint_arguments
def fit(
    nll: Callable,
    start,
    data=None,
    *,
    random=(),
    map=None,
    bounds=None,
    transforms=None,
    integrate=False,
    nobs: int | None = None,
) -> Fit[Any]:
    """Minimise a negative log-likelihood, and return estimates, standard errors and diagnostics.

    SciPy's ``BFGS``, or ``L-BFGS-B`` with bounds, searches with the exact gradient. Newton steps follow, so that
    estimates are exact to rounding. Where ``BFGS`` stops too early, ``trust-exact`` continues with exact Hessians.
    Standard errors have at least six digits: their Hessian comes from differences of the exact gradient where that
    suffices, and is exact elsewhere.

    Args:
        nll: the negative log-likelihood, or the joint one with random effects. It takes the parameters, in the form of
            ``start``, and ``data`` if that is given, and returns a scalar.
        start: where the search starts: a dict of tensors, numbers or lists, also nested, of double precision.
        data: the second argument of ``nll``, passed on unchanged. From the second fit of a function on, data with
            arrays of the same shapes need no new compilation, as in simulation studies and bootstraps.
        random, map, transforms, integrate: see :func:`laplace`. The search runs over the unconstrained parameters;
            ``params`` and ``bse`` hold the transformed ones.
        bounds: a dict from names of parameters to pairs of lower and upper bound; None means no bound.
        nobs: the number of observations; by default the common length of all arrays in ``data``.

    Returns:
        A :class:`Fit`.

    Raises:
        InferenceError: the likelihood is NaN or infinite at the start, or its second derivatives are where the search
            for the minimum arrives; with random effects see :func:`laplace`.
        ArgumentError: an unknown name; no parameter to estimate; bounds that are not a pair, or are crossed.
        ArgumentTypeError: see :func:`laplace`.

    Warns:
        RuntimeWarning: the likelihood does not identify a direction of the parameters, which the warning names; the
            search did not end at a minimum.

    Gradient:
        None: estimates are NumPy numbers.

    Examples:
        A Poisson regression, with the estimates of a generalised linear model:

        >>> import numpy as np
        >>> from gradops import ops
        >>> from gradops.inference import fit
        >>> data = {"x": np.array([0.0, 1.0, 2.0, 3.0, 4.0]), "y": np.array([1.0, 1.0, 4.0, 5.0, 11.0])}
        >>> def poisson(p, data):
        ...     log_rate = p["beta"][0] + p["beta"][1] * data["x"]
        ...     return ops.sum(ops.exp(log_rate) - data["y"] * log_rate + ops.special.lgamma(data["y"] + 1))
        >>> found = fit(poisson, {"beta": [0.0, 0.0]}, data=data)
        >>> print(found.params["beta"].round(4), found.bse["beta"].round(4), round(found.llf, 4))
        [-0.1616  0.6352] [0.6246 0.1899] -7.8332
        >>> print(found.conf_int().round(3))
        [[-1.386  1.063]
         [ 0.263  1.007]]

        The standard errors agree with the exact Hessian:

        >>> print(np.sqrt(np.diag(np.linalg.inv(found.model.hessian(found.theta)))).round(4))
        [0.6246 0.1899]

    See Also:
        :func:`laplace`, :mod:`gradops.inference.transforms`, :mod:`gradops.scipy.stats`.
    """
    check_likelihood("fit", "nll", nll, data)
    settings = (nll, start, data, random, map, transforms, integrate)
    parameters, model = _model(*settings)
    lower, upper = parameters.bounds(values_by_name(bounds, "bounds"))
    found = estimated(model, lower, upper, _length(data) if nobs is None else nobs)
    found._settings = settings
    return found


def _model(nll, start, data, random, map, transforms, integrate) -> tuple[Parameters, Likelihood]:
    """Return the parameters and the likelihood of a call of :func:`fit`."""
    function = nll if data is None else lambda p: nll(p, data)
    parameters = Parameters(start, random, map, transforms=transforms)
    return parameters, Likelihood.build(
        function_of(function, parameters),
        parameters.layout,
        parameters.tensor,
        parameters.tree,
        domain(integrate),
        shared=None if data is None or parameters.layout.u.size else repeated.shared(nll, data, parameters),
    )


def _restored(settings: tuple, value: float, *estimates) -> Fit[Any]:
    """Return a pickled fit, with its likelihood built again; its problems were warned of when it was made.

    Warns:
        RuntimeWarning: the likelihood has another value: its source or its data changed after the fit.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found: Fit[Any] = Fit(_model(*settings)[1], *estimates)
    found._settings = settings
    if not np.isclose(found.value, value, rtol=1e-6, atol=1e-9, equal_nan=True):
        message = (
            f"the likelihood is not that of the saved fit: its value was {value:.6g}, and is {found.value:.6g} now"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return found


def estimated(model: Likelihood, lower: np.ndarray, upper: np.ndarray, nobs: int | None) -> Fit:
    """Return the fit of a model whose parameters have these bounds."""
    if not model.start.size:
        raise ArgumentError("`fit`: there is no parameter to estimate: all are fixed or random.", argument="start")
    start = np.clip(model.start, lower, upper)
    with track(None, "fit") as advance:
        advance(1)
        model.check(start)
        theta, hessian = minimum(model, start, lower, upper, advance)
    return Fit(model, theta, hessian, (lower, upper), nobs)


def _length(data) -> int | None:
    shapes = {tuple(np.shape(data_of(x)))[:1] for x in _tree.leaves_of(data) if np.ndim(data_of(x))}
    return int(shapes.pop()[0]) if len(shapes) == 1 else None


# The search -----------------------------------------------------------------------------------------------------------


def minimum(
    model: Any, start: np.ndarray, lower: np.ndarray, upper: np.ndarray, advance: Callable = lambda size: None
) -> tuple[np.ndarray, np.ndarray]:
    """Return where a model's value is least, and its Hessian there; ``advance`` is called at each evaluation."""
    if not start.size:
        return start, np.zeros((0, 0))
    if is_bounded(lower, upper):
        theta = search(model, start, advance, method="L-BFGS-B", bounds=np.column_stack([lower, upper]))
    else:
        theta = search(model, start, advance, method="BFGS")
    return finished(model, theta, lower, upper, advance)


def is_bounded(lower: np.ndarray, upper: np.ndarray) -> bool:
    return bool(np.isfinite(lower).any() or np.isfinite(upper).any())


def search(model: Any, start: np.ndarray, advance: Callable, **options) -> np.ndarray:
    """Return where a search of SciPy's ends."""

    def value_and_grad(theta):
        advance(1)
        value, gradient = model.value_and_grad(theta)
        bad = not np.isfinite(value) or not np.isfinite(gradient).all()
        return (np.inf, np.zeros_like(theta)) if bad else (value, gradient)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        # A fixed limit would be below the rounding errors of sums over many observations.
        limits = {"gtol": 1e-6 * max(1.0, abs(value_and_grad(start)[0]) / 10), "maxiter": 1000}
        found = _scipy.optimize.minimize(value_and_grad, start, jac=True, options=limits, **options)
        if options["method"] != "BFGS":
            return found.x
        # More steps of BFGS without a line search, for which values have too few digits. They come so near to the
        # minimum that the Hessian there, which takes many gradients, is needed once.
        theta, gradient, inverse = found.x, found.jac, found.hess_inv
        size = float(gradient @ inverse @ gradient)
        while NEAR[model.by_differences] < size < 1e-2:
            step = -inverse @ gradient
            value, new = value_and_grad(theta + step)
            before, size = size, float(new @ inverse @ new)
            if not (np.isfinite(value) and size < before / 2):
                break
            change = new - gradient
            theta, gradient, scale = theta + step, new, change @ step
            kept = np.eye(theta.size) - np.outer(step, change) / scale
            inverse = kept @ inverse @ kept.T + np.outer(step, step) / scale
        return theta


def finished(
    model: Any, theta: np.ndarray, lower: np.ndarray, upper: np.ndarray, advance: Callable = lambda size: None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum near the end of a search, and the Hessian there.

    A search by gradients stops too early on badly scaled parameters; it continues with exact Hessians.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        theta, hessian = polished(model, np.clip(theta, lower, upper), lower, upper)
        if model.by_differences or is_bounded(lower, upper):
            return theta, hessian
        inside = np.ones(theta.shape, bool)
        if newton(hessian, model.value_and_grad(theta)[1], inside)[1] < CONVERGED_DECREMENT:
            return theta, hessian
        theta = search(model, theta, advance, method="trust-exact", hess=functools.partial(_finite_hessian, model))
        return polished(model, theta, lower, upper)


def _finite_hessian(model: Any, theta: np.ndarray) -> np.ndarray:
    found = model.hessian(theta)
    if not np.isfinite(found).all():
        raise InferenceError(
            f"the second derivatives of the likelihood are not finite at {shown(model.names, theta)}, where the search "
            "for its minimum arrived.",
            hint="if the negative log-likelihood has no minimum, give bounds; if it has one, start closer to it",
        )
    return found


def polished(model: Any, theta: np.ndarray, lower, upper) -> tuple[np.ndarray, np.ndarray]:
    """Take Newton steps near a minimum while they reduce the gradient; return the minimum and the Hessian."""
    gradient, hessian = model.value_and_grad(theta)[1], model.information(theta)
    least, near = 1e-14 if model.by_differences else 1e-22, NEGLIGIBLE_STEP[model.by_differences]
    for _ in range(MAX_POLISHING_STEPS):
        inside = free(theta, gradient, lower, upper)
        step, size = newton(hessian, gradient, inside)
        if not least < size < 1e-1:
            break
        moved = np.clip(theta + step, lower, upper)
        new = model.value_and_grad(moved)[1]
        if not newton(hessian, new, inside)[1] < size:
            break
        theta, gradient = moved, new
        if size > near:
            hessian = model.information(theta)
    return theta, hessian


def free(theta: np.ndarray, gradient: np.ndarray, lower, upper) -> np.ndarray:
    """True for each parameter that no bound holds."""
    room = 1e-9 * (1 + np.abs(theta))
    return ~((theta <= lower + room) & (gradient > 0) | (theta >= upper - room) & (gradient < 0))


def newton(hessian: np.ndarray, gradient: np.ndarray, inside: np.ndarray) -> tuple[np.ndarray, float]:
    """Return Newton's step in the directions of positive curvature, and twice the decrease that it predicts.

    A slope in a direction without positive curvature counts as one at the smallest curvature that is told from 0: if
    the likelihood falls there, the search has not ended.
    """
    step = np.zeros_like(gradient)
    if not np.isfinite(hessian).all() or not inside.any():
        return step, np.nan if inside.any() else 0.0
    scale = diagonal_scale(hessian)[inside]
    values, vectors = np.linalg.eigh(hessian[np.ix_(inside, inside)] / np.outer(scale, scale))
    along = vectors.T @ (gradient[inside] / scale)
    positive = values > LEAST_CURVATURE
    step[inside] = -(vectors[:, positive] @ (along[positive] / values[positive])) / scale
    return step, float(np.sum(along**2 / np.maximum(values, LEAST_CURVATURE)))


class Held:
    """A model with one parameter fixed at a value."""

    def __init__(self, model: Any, k: int, value: float):
        self.model, self.k, self.given = model, k, value
        self.by_differences = model.by_differences
        self.names = [name for i, name in enumerate(model.names) if i != k]

    def _whole(self, others) -> np.ndarray:
        return np.insert(np.asarray(others, float), self.k, self.given)

    def value_and_grad(self, others):
        value, gradient = self.model.value_and_grad(self._whole(others))
        return value, np.delete(gradient, self.k)

    def hessian(self, others):
        return self._drop_parameter(self.model.hessian(self._whole(others)))

    def information(self, others):
        return self._drop_parameter(self.model.information(self._whole(others)))

    def _drop_parameter(self, hessian: np.ndarray) -> np.ndarray:
        return np.delete(np.delete(hessian, self.k, 0), self.k, 1)


class Summary(str):
    """The table of a fit as text, with HTML for notebooks and LaTeX for documents.

    Args:
        heading: the line above the table.
        rows: the rows of the table; the first is the head.
        problems: the problems of the fit.
    """

    def __new__(cls, heading: str, rows: list[list[str]], problems: list[str]) -> Summary:
        lines = _display.aligned(rows, least=(0, 8, 10, 7, 7))
        found = super().__new__(cls, "\n".join([heading, *lines, *(f"! {problem}" for problem in problems)]))
        found._parts = heading, rows, problems
        return found

    _parts: tuple[str, list[list[str]], list[str]]
    __repr__ = str.__str__  # without quotes

    def __getnewargs__(self) -> tuple:
        return self._parts

    def _repr_html_(self) -> str:
        heading, (head, *rows), problems = self._parts
        said = [_display.verbatim("\n".join(problems))] if problems else []
        return _display.block("fit", heading, _display.table(["parameter", *head[1:]], rows), *said)

    def as_latex(self) -> str:
        """Return the table as a LaTeX tabular, with the heading and the problems in its last rows."""
        heading, (head, *rows), problems = self._parts
        return _display.tabular(head, rows, [heading, *problems])

    _repr_latex_ = as_latex


# The fit --------------------------------------------------------------------------------------------------------------


@made_by("fit")
class Fit(Generic[V]):
    """A fit of a likelihood; made by :func:`fit`.

    Attributes:
        model: the likelihood as a function of a vector; a :class:`Laplace` if there are random effects.
        names, theta: the estimated parameters.
        hessian: the second derivatives at the estimate.
        tvalues, pvalues: estimates divided by their standard errors, in the order of ``names``, and the two-sided
            p-values of a parameter of 0.
        llf, aic, df_model, nobs: the log-likelihood; Akaike's criterion; the numbers of parameters and observations.
        problems: descriptions of what is wrong with the fit; empty for a good one.
        converged: whether the estimate is a minimum.

    Examples:
        >>> import numpy as np
        >>> from gradops import ops
        >>> from gradops.inference import fit
        >>> y = np.array([4.1, 5.3, 4.8, 6.0, 5.2])
        >>> def nll(p):
        ...     return ops.sum(0.5 * ((y - p["mean"]) / ops.exp(p["log_sd"])) ** 2 + p["log_sd"])
        >>> print(fit(nll, {"mean": 4.0, "log_sd": 0.0}).summary())
        negative log-likelihood 0.1434, AIC 4.287
                estimate  std. error        z    P>|z|
        mean        5.08      0.2791     18.2   <1e-15
        log_sd   -0.4713      0.3162    -1.49    0.136

        The gradient is 0 at the estimate:

        >>> found = fit(nll, {"mean": 4.0, "log_sd": 0.0})
        >>> value, gradient = found.model.value_and_grad(found.theta)
        >>> bool(abs(gradient).max() < 1e-8)
        True

    See Also:
        :func:`fit`.
    """

    _settings: tuple | None = None  # the arguments of :func:`fit` that make the likelihood

    def __init__(self, model: Likelihood, theta: np.ndarray, hessian: np.ndarray, bounds: tuple, nobs: int | None):
        self.model, self.theta, self.hessian, self.nobs = model, theta, hessian, nobs
        self.names, self._bounds = model.names, bounds
        self.value, gradient = model.value_and_grad(theta)
        self._free = free(theta, gradient, *bounds)
        self.llf, self.df_model = -self.value, theta.size
        self.aic = 2 * self.df_model - 2 * self.llf
        self.problems = list(self._diagnosed(gradient))
        self.converged = not self.problems
        for problem in self.problems:
            warnings.warn(problem, RuntimeWarning, stacklevel=4)

    def _diagnosed(self, gradient: np.ndarray):
        if not np.isfinite(self.hessian).all():
            yield f"the likelihood has no curvature that is a number at {shown(self.names, self.theta)}"
            return
        inside = np.flatnonzero(self._free)
        scale = diagonal_scale(self.hessian)[inside]
        values, vectors = np.linalg.eigh(self.hessian[np.ix_(inside, inside)] / np.outer(scale, scale))
        least = SINGULAR[self.model.by_differences]
        for value, vector in zip(values, vectors.T):
            direction = vector / scale
            direction = direction / direction[np.argmax(np.abs(direction))]
            terms = [(c, self.names[k]) for c, k in zip(direction, inside) if abs(c) > 0.01]
            if abs(value) <= least:
                yield f"not identified: the likelihood does not change along {_combined(terms)}"
            elif value < 0:
                yield f"not a minimum: the negative log-likelihood falls along {_combined(terms)}"
        size = newton(self.hessian, gradient, self._free)[1]
        if not size < CONVERGED_DECREMENT:
            k = int(np.argmax(np.abs(gradient / diagonal_scale(self.hessian)) * self._free))
            yield f"the search did not end at a minimum: the steepest is {self.names[k]}, slope {gradient[k]:.3g}"

    @functools.cached_property
    def _covariance(self) -> np.ndarray:
        found = np.full(self.hessian.shape, np.nan)
        inside = np.ix_(self._free, self._free)
        if self.converged:
            found[inside] = np.linalg.inv(self.hessian[inside])
        return found

    def cov_params(self) -> np.ndarray:
        """Return the covariance matrix of the estimates, in the order of ``names``.

        It is the inverse Hessian, NaN for parameters held by a bound, and everywhere if the fit has ``problems``.
        """
        return self._covariance.copy()

    @property
    def params(self) -> dict[str, V]:
        """All parameters in the form of ``start``, random effects at their mode."""
        return self.model.parameters(self.theta)

    @property
    def bse(self) -> dict[str, V]:
        """Standard errors in the form of ``start``: standard deviations for random effects, NaN for fixed values."""
        layout = self.model.layout
        if layout.transformed:
            leaves, structure = _tree.flatten(self.params)
            errors = self.delta(lambda p: ops.concatenate([ops.reshape(x, (-1,)) for x in _tree.leaves_of(p)]))[1]
            errors = np.split(np.where(errors > 0, errors, np.nan), np.cumsum([np.size(x) for x in leaves])[:-1])
            return _tree.unflatten(structure, [e.reshape(np.shape(x))[()] for e, x in zip(errors, leaves)])
        random = self.model.random_sd(self.theta, self._known()) if isinstance(self.model, Laplace) else np.zeros(0)
        return self.model.tree(layout.spread(self._se, random))

    def _known(self) -> np.ndarray:
        """Return the covariance matrix, with 0 for parameters held by a bound."""
        found = self.cov_params()
        found[~self._free] = found[:, ~self._free] = 0.0
        return found

    @property
    def _se(self) -> np.ndarray:
        return np.sqrt(np.diag(self._covariance))

    @property
    def tvalues(self) -> np.ndarray:
        return self.theta / self._se

    @property
    def pvalues(self) -> np.ndarray:
        return 2 * _scipy.special.ndtr(-np.abs(self.tvalues))

    @property
    def bic(self) -> float:
        """Schwarz's criterion.

        Raises:
            ArgumentError: the number of observations is not known.
        """
        if self.nobs is None:
            raise ArgumentError("`bic` needs the number of observations.", argument="nobs", hint="`fit(..., nobs=)`")
        return float(np.log(self.nobs)) * self.df_model - 2 * self.llf

    def delta(self, g: Callable) -> tuple[Any, Any]:
        """Return the value of ``g``, a function of all parameters, and its standard error by the delta method.

        The uncertainty of the random effects is included.

        Returns:
            A pair of arrays, one number for each element of ``g``'s value.
        """
        value, covariance = self.model.delta(g, self.theta, self._known())
        return value, np.sqrt(np.diag(covariance))

    @hint_arguments
    def predict(self, g: Callable | str | None = None, *, se: bool = False) -> Any:
        """Return the value of a function at the estimates, or what the likelihood reports.

        Args:
            g: a function of all parameters, such as the mean at new data; the name of a quantity that the likelihood
                passes to :func:`report`; or None for a dict of all these.
            se: True for a pair of the value and its standard errors by the delta method, of the same shape.

        Raises:
            ArgumentError: the likelihood does not report a quantity of that name.
        """
        if callable(g):
            value = np.asarray(ops.convert_to_numpy(g(self.params)))
            return (value[()], self.delta(g)[1].reshape(value.shape)[()]) if se else value[()]
        if g is not None and not isinstance(g, str):
            message = "`predict`: `g` must be a function of the parameters, or a name; got {g}."
            hint = "`predict(lambda p: mean(p, new))` is a mean at new data"
            raise ArgumentTypeError(message, argument="g", hint=hint, g=TypeOf(g))
        found = self.report() if se else self.model.report(self.theta)
        if g is not None and g not in found:
            message = f"`predict`: the likelihood reports {listed(list(found)) if found else 'nothing'}; got {g!r}."
            raise ArgumentError(message, argument="g", hint="`g` may be a function of the parameters")
        return found if g is None else found[g]

    def report(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the quantities that the likelihood passes to :func:`report`: by name a value and its standard error.

        Standard errors are by the delta method; the uncertainty of the random effects is included.
        """
        values = self.model.report(self.theta)
        if not values:
            return {}

        def flat(theta, u):
            found = reports_of(lambda: self.model.f(theta, u))
            return ops.concatenate([ops.reshape(found[name], (-1,)) for name in values])

        covariance = self.model.delta_of(flat, self.theta, self._known())[1]
        parts = np.split(np.sqrt(np.diag(covariance)), np.cumsum([np.size(x) for x in values.values()])[:-1])
        return {name: (x, se.reshape(x.shape)[()]) for (name, x), se in zip(values.items(), parts)}

    def simulate(self, seed: int | None = None, *, effects: bool = True) -> dict[str, np.ndarray]:
        """Draw observations from the fitted model; see :meth:`Laplace.simulate`."""
        return self.model.simulate(self.theta, seed, effects=effects)

    def residuals(self, method: str = "cdf", seed: int | None = None):
        """Return one-step-ahead residuals; see :meth:`Laplace.residuals`."""
        return self.model.residuals(self.theta, method, seed)

    def draws(self, draws: int = 4000, seed: int | None = None) -> Draws:
        """Draw parameters from the normal distribution of the estimates, and random effects given the parameters.

        Args:
            draws: the number of draws.
            seed: of NumPy's generator.

        Raises:
            ArgumentError: the estimates have no covariance, see ``problems``.
        """
        if not self.converged:
            raise ArgumentError(f"`draws`: {self.problems[0]}.", argument="draws")
        rng, model = np.random.default_rng(seed), self.model
        values, vectors = np.linalg.eigh(self._known())
        moved = (vectors * np.sqrt(np.maximum(values, 0))) @ rng.standard_normal((self.theta.size, draws))
        u = np.tile(model.layout.u[:, None], draws)
        if isinstance(model, Laplace):
            u = model.drawn(self.theta, moved, rng)
        return Draws(model, (self.theta[:, None] + moved).T[None], u.T[None], {})

    @hint_arguments
    def conf_int(self, alpha: float = 0.05, method: str = "wald") -> np.ndarray:
        """Return confidence intervals, a row for each of ``names``.

        Args:
            alpha: 1 minus the confidence level.
            method: ``"wald"`` uses standard errors; ``"profile"`` the likelihood ratio, with the other parameters
                estimated again for each value. An end is infinite if it is not found within 50 standard errors, or
                where the likelihood can be computed.

        Raises:
            ArgumentError: an unknown method; ``alpha`` is not between 0 and 1.
        """
        if method not in ("wald", "profile"):
            raise ArgumentError(f"`conf_int`: `method` must be wald or profile; got {method}.", argument="method")
        if not 0 < alpha < 1:
            raise ArgumentError(f"`conf_int`: `alpha` must be between 0 and 1; got {alpha}.", argument="alpha")
        z = float(_scipy.special.ndtri(1 - alpha / 2))
        if method == "wald":
            return self.theta[:, None] + z * self._se[:, None] * np.array([-1.0, 1.0])
        found = []
        with track(2 * self.theta.size, "profile") as advance:
            for k in range(self.theta.size):
                for side in (-1, 1):
                    found.append(self._profiled(k, z, side))
                    advance(1)
        return np.reshape(found, (-1, 2))

    @hint_arguments
    def profile(self, parameter: str | int, alpha: float = 0.01, points: int = 6) -> tuple[np.ndarray, np.ndarray]:
        """Return the likelihood profile of a parameter: the other parameters are estimated again for each value.

        Args:
            parameter: the name of the parameter, or its position in ``names``.
            alpha: 1 minus the level of the profile interval that the values span.
            points: the number of values on each side.

        Returns:
            The values, and the signed square roots of twice the increase of the negative log-likelihood, which compare
            with normal quantiles.

        Raises:
            ArgumentError: an unknown parameter; ``points`` less than 1; ``alpha`` not between 0 and 1.
        """
        if parameter not in (*self.names, *range(self.theta.size)):
            message = f"`profile`: there is no parameter `{parameter}` among {listed(self.names)}."
            raise ArgumentError(message, argument="parameter")
        if not 0 < alpha < 1 or points < 1:
            message = f"`profile`: `alpha` must be between 0 and 1, `points` positive; got {alpha}, {points}."
            raise ArgumentError(message, argument="points" if points < 1 else "alpha")
        k = self.names.index(parameter) if isinstance(parameter, str) else parameter
        z = float(_scipy.special.ndtri(1 - alpha / 2))
        found = {0.0: 0.0}
        with track(2 * points, "profile") as advance:
            for side in (-1, 1):
                end, excess = self._profiled(k, z, side) - self.theta[k], self._excess(k)
                end = end if np.isfinite(end) else 2 * side * z * self._se[k]
                for by in np.linspace(0, end, points + 1)[1:].tolist():
                    found[by] = side * np.sqrt(max(2 * excess(by), 0.0))
                    advance(1)
        return self.theta[k] + np.array(sorted(found)), np.array([found[by] for by in sorted(found)])

    def _excess(self, k: int) -> Callable[[float], float]:
        """Return the profile's increase as a function of a parameter's distance from the estimate.

        Each search starts from the result of the one before. NaN where the likelihood cannot be computed there.
        """
        others, (lower, upper) = np.delete(self.theta, k), (np.delete(b, k) for b in self._bounds)

        def excess(by: float) -> float:
            nonlocal others
            held = Held(self.model, k, self.theta[k] + by)
            if not np.isfinite(held.value_and_grad(others)[0]):
                return np.nan
            others, _ = minimum(held, others, lower, upper)
            return held.value_and_grad(others)[0] - self.value

        return excess

    def _profiled(self, k: int, z: float, side: int) -> float:
        se, limit = self._se[k], self._bounds[(side + 1) // 2][k]
        if not np.isfinite(se):
            return np.nan
        grown = self._excess(k)

        def excess(distance: float) -> float:
            return grown(side * distance) - z * z / 2

        room = (limit - self.theta[k]) * side
        near, far, beyond = 0.0, min(z * se, room), np.inf
        while not (value := excess(far)) >= 0:
            if value < 0:
                if far >= room or far > 50 * se:
                    return float(limit) if np.isfinite(limit) else side * np.inf
                near, far = far, min(1.5 * far, room, (far + beyond) / 2)
            else:  # a likelihood that overflows, at a standard error as large as that of the logarithm of a variance 0
                beyond, far = far, (near + far) / 2
            if beyond - near < 1e-3 * max(near, 1e-6 * se):
                return side * np.inf
        end = _scipy.optimize.brentq(excess, near, far, xtol=1e-9 * min(se, far), rtol=1e-9)
        return float(self.theta[k] + side * end)

    def summary(self) -> Summary:
        """Return a table of the estimates, and the problems of the fit.

        It is a string. Notebooks show it as HTML; its ``as_latex()`` is a LaTeX tabular.
        """
        return Summary(self._heading(), self._rows(), self.problems)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def to_frame(self, alpha: float = 0.05) -> Any:
        """Return the estimates as a pandas data frame, a row for each of ``names``.

        Args:
            alpha: 1 minus the level of the Wald intervals ``lower`` to ``upper``.

        Raises:
            ImportError: pandas is not installed.
            ArgumentError: ``alpha`` is not between 0 and 1.
        """
        ends = self.conf_int(alpha)
        columns = {
            "estimate": self.theta,
            "std. error": self._se,
            "z": self.tvalues,
            "P>|z|": self.pvalues,
            "lower": ends[:, 0],
            "upper": ends[:, 1],
        }
        return _pandas.data_frame(columns, self.names, "parameter")

    def __reduce__(self) -> tuple:
        if self._settings is None:
            raise ArgumentTypeError(
                "the fit of an R function cannot be pickled.", hint="save the fit in R, by `saveRDS()`"
            )
        return _restored, (self._settings, self.value, self.theta, self.hessian, self._bounds, self.nobs)

    def save(self, path: str | os.PathLike) -> None:
        """Write the fit to a file: the likelihood, its data, the estimates and their Hessian, as a pickle.

        cloudpickle, if it is installed, also takes likelihoods that are defined in a script, a function or a notebook.

        Raises:
            PicklingError, AttributeError: without cloudpickle, a likelihood that is not at the top of a module.
        """
        by = "cloudpickle" if importlib.util.find_spec("cloudpickle") else "pickle"
        pathlib.Path(path).write_bytes(importlib.import_module(by).dumps(self))

    @staticmethod
    def load(path: str | os.PathLike) -> Fit[Any]:
        """Return the fit that :meth:`save` wrote. A pickle runs code when it is read: load only files you trust.

        Raises:
            ArgumentTypeError: the file holds something else.
        """
        found = pickle.loads(pathlib.Path(path).read_bytes())
        if not isinstance(found, Fit):
            raise ArgumentTypeError(f"`load`: {path} does not hold a fit.", argument="path")
        return found

    def _heading(self) -> str:
        effects = f", {self.model.layout.u.size} random effects" if self.model.layout.u.size else ""
        seen = "" if self.nobs is None else f", {self.nobs} observations"
        return f"negative log-likelihood {self.value:.4g}, AIC {self.aic:.4g}{seen}{effects}"

    def _rows(self) -> list[list[str]]:
        found = [["", "estimate", "std. error", "z", "P>|z|"]]
        for name, x, se, z, p in zip(self.names, self.theta, self._se, self.tvalues, self.pvalues):
            tail = "<1e-15" if p < 1e-15 else f"{p:.3g}"
            found.append([name, f"{x:.4g}", f"{se:.4g}", f"{z:.3g}", tail])
        return found

    def __repr__(self) -> str:
        return f"<gradops fit of {listed(self.names)}: {self._heading()}>"


add_elsewhere(
    Fit,
    {
        **dict.fromkeys(("coef", "coef_"), "fit.params"),
        **dict.fromkeys(("AIC", "BIC"), "fit.aic` and `fit.bic()"),
        **dict.fromkeys(("loglik", "log_likelihood"), "fit.llf"),
        **dict.fromkeys(("se", "std_errors", "stderr"), "fit.bse"),
        **dict.fromkeys(("cov", "covariance", "vcov"), "fit.cov_params()"),
        "confint": "fit.conf_int()",
        "sample": "fit.draws(n)",
        "to_arviz": "fit.draws(n).to_arviz()",
    },
)


def _combined(terms: list) -> str:
    """A sum of terms in words: "a - 0.5 b"."""
    words = []
    for c, name in sorted(terms, key=lambda term: -abs(term[0])):
        size = f"{abs(c):.2g} " if abs(abs(c) - 1) > 5e-3 else ""
        words += [("- " if c < 0 else "+ ") + size + name]
    return " ".join(words).removeprefix("+ ")

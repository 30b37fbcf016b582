"""Simulation from a likelihood, one-step-ahead residuals, and a check of the Laplace approximation by simulation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _scipy, ops
from ..scipy._tensors import constant_like
from .observations import (
    ObservationScope,
    Observed,
    ReplacingScope,
    check_observations,
    observation_error,
    observation_scope,
)
from .parameters import Layout
from .tails import log_sum, sums, tails

METHODS = "cdf", "gaussian", "slope", "integral", "mode"

# Simulation -----------------------------------------------------------------------------------------------------------


class _Drawing(ObservationScope):
    """A scope in which each density draws its observations.

    Each density has a seed of its own, so a repeated run draws the same numbers. Only numbers that depend on draws made
    later in the run change.
    """

    def __init__(self, seed: int | None, effects: bool):
        super().__init__()
        self.effects = effects
        self.seeds = np.random.SeedSequence(seed)
        self.drawn: dict[str, np.ndarray] = {}
        self.restart()

    def restart(self) -> None:
        self.seen.clear()
        self.densities = 0

    def same(self, name, known, numbers):
        return super().same(name, known, numbers) or super().same(name, self.drawn[name], numbers)

    def value(self, x, name):
        if name not in self.drawn:
            self.drawn[name] = np.array(ops.convert_to_numpy(x), float)
        return constant_like(self.drawn[name], x)

    def part(self, value, places, at):
        # The current draws: a loop over time then draws each number given the one before in a single run.
        if not places.size:
            return super().part(value, places, at)
        name = self.names[places.flat[0]]
        return Observed(
            constant_like(self.drawn[name].reshape(-1)[places - self.names.index(name)], value), places, self
        )

    def density(self, family, x: Observed, args):
        places = x.places.reshape(-1)
        name = self.names[places[0]]
        if not self.seen.keys().isdisjoint(places.tolist()):
            raise observation_error(name, "is in two densities: neither draws it by itself")
        self.seen.update(dict.fromkeys(places.tolist(), False))
        self.densities += 1
        seed = int(self.seeds.generate_state(self.densities)[-1])
        shape = x.places.shape
        vectors = not hasattr(family, "logsf")
        new = family.rvs(*args, size=(shape[:-1] or 1) if vectors else shape, random_state=seed)
        numbers = np.array(ops.convert_to_numpy(new), float).reshape(-1)
        numbers[np.isnan(np.asarray(ops.convert_to_numpy(x.value), float)).reshape(-1)] = np.nan
        first = self.names.index(name)
        self.drawn[name].reshape(-1)[places - first] = numbers
        method = getattr(family, "logpdf", None) or family.logpmf
        return method(constant_like(numbers.reshape(shape), x.value), *args)


def simulated(model: Any, theta, u, seed: int | None, effects: bool) -> dict[str, np.ndarray]:
    """Draw observations from a likelihood, and with ``effects`` first its random effects; return them by name."""
    drawing = _Drawing(seed, effects)
    runs = 0
    while True:
        before = {name: numbers.copy() for name, numbers in drawing.drawn.items()}
        drawing.restart()
        with observation_scope(drawing):
            model.f(model.tensor(theta), model.tensor(u))
        drawing.observed_places()
        if before.keys() == drawing.drawn.keys() and all(
            np.array_equal(numbers, drawing.drawn[name], equal_nan=True) for name, numbers in before.items()
        ):
            return drawing.drawn
        runs += 1
        if runs > len(drawing.names) + 1:
            raise observation_error(drawing.names[0], "is drawn given what is drawn given it")


# Residuals ------------------------------------------------------------------------------------------------------------


class _Weighing(ObservationScope):
    """A scope that weights the log density of each observation.

    With the method ``"cdf"`` there are three weights: of the log density, and of the log probabilities up to and above
    the observation. With other methods there are a weight and a shift of the observation. Without weights the scope
    only records the places.
    """

    def __init__(self, method: str):
        super().__init__()
        self.tails = method == "cdf"
        self.of_counts = method in ("cdf", "integral")
        self.weights: Any = None
        self.range: dict[int, tuple[float, float]] = {}
        """The ends of the support, by place."""

    def density(self, family, x, args):
        places, shape = x.places.reshape(-1), x.places.shape
        counts = hasattr(family, "logpmf")
        density = family.logpmf if counts else family.logpdf
        if not hasattr(family, "logsf"):
            raise observation_error(
                self.names[places[0]], f"has no residuals of `{family.name}` one by one: ask for `gaussian` ones"
            )
        if counts and not self.of_counts:
            raise observation_error(self.names[places[0]], "are counts, which have only `cdf` and `integral` residuals")
        self.seen.update(dict.fromkeys(places.tolist(), counts))
        if self.weights is None:
            ends = [np.broadcast_to(ops.convert_to_numpy(end), shape).reshape(-1) for end in family.support(*args)]
            self.range.update(zip(places.tolist(), zip(*np.asarray(ends, float).tolist())))
            return density(x.value, *args)
        weights = [ops.reshape(ops.take(w, places, 0), shape) for w in self.weights]
        if not self.tails:
            return weights[0] * density(x.value + weights[1], *args)
        return sum(w * f(x.value, *args) for w, f in zip(weights, (density, family.logcdf, family.logsf)))


def residuals(model: Any, theta, u, method: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return one-step-ahead residuals of the observations by name, NaN where these are missing.

    A residual is the normal quantile of the probability of an observation given the earlier ones, with random effects
    integrated out (Thygesen, Albertsen, Berg, Kristensen & Nielsen 2017).

    Raises:
        ArgumentError: no observations are marked; a family has no residuals by this method.
    """
    scope = _Weighing(method)
    given = model.tensor(theta)
    found: np.ndarray
    if method == "gaussian":
        replaced = ReplacingScope()
        with observation_scope(replaced):
            model.f(given, model.tensor(u))
        seen = replaced.seen
        check_observations(seen)
        sizes = [int(np.prod(x.shape, dtype=int)) for x in seen.values()]
        ends = np.cumsum([0, *sizes])
        y = np.concatenate([np.asarray(ops.convert_to_numpy(x), float).reshape(-1) for x in seen.values()])

        def of_y(one, effects):
            parts = {name: effects[start:end] for name, start, end in zip(seen, ends, ends[1:])}
            with observation_scope(ReplacingScope(parts)):
                return one[0] * model.f(given, effects[len(y) :])

        found = normal_residuals(_model_with(model, of_y, np.ones(1), np.concatenate([y, u])), np.ones(1), y)
        return {name: found[start:end].reshape(x.shape) for (name, x), start, end in zip(seen.items(), ends, ends[1:])}
    with observation_scope(scope):
        model.f(given, model.tensor(u))
    there, counts = scope.observed_places()
    count = len(there)

    def weighed(weights, effects):
        scope.weights = [weights[k : k + count] for k in range(0, len(start), count)]
        try:
            with observation_scope(scope):
                return model.f(given, effects)
        finally:
            scope.weights = None

    start = np.repeat([1.0, 0.0, 0.0] if scope.tails else [1.0, 0.0], count)
    of_weights = _model_with(model, weighed, start, u)
    if method == "slope":
        found = slope_residuals(of_weights, there)
    elif method == "mode":
        found = mode_residuals(of_weights, there)
    elif method == "cdf":
        found = step_residuals(of_weights, there, counts, rng.random(count))
    else:
        ends = np.array([scope.range.get(k, (-np.inf, np.inf)) for k in range(count)])
        found = integral_residuals(of_weights, scope.numbers(), there, counts, rng.random(count), *ends.T)
    return scope.split(found)


def _model_with(model: Any, f, theta: np.ndarray, u: np.ndarray) -> Any:
    """Return the model of ``f`` with other parameters; its last random effects come from ``model``."""
    size = len(theta) + len(u)
    integrated = np.append(np.ones(size - len(model.layout.u), bool), model.layout.integrated)
    layout = Layout(
        np.append(theta, u), [f"x[{k}]" for k in range(size)], np.arange(size) >= len(theta), profiled=~integrated
    )
    return model.build(f, layout, model.tensor, lambda vector: vector)


def order_of(turns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the places of observations that are conditioned on, that are predicted in turn, and that are left out.

    Args:
        turns: the order of prediction: observations come by rising number, equal numbers by place; 0 leaves an
            observation out, and a negative number conditions on it.
    """
    places = np.argsort(turns, kind="stable")
    known, never = turns[places] < 0, turns[places] == 0
    return places[known], places[~known & ~never], places[never]


def step_residuals(model: Any, turns: np.ndarray, counts: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return residuals from a likelihood of the weights of each density and of its lower and upper tail probability.

    Args:
        turns: see :func:`order_of`.
        counts: True for each count, whose residual is randomised.
        uniform: uniform random numbers for that.
    """
    count = len(turns)
    known, coming, _ = order_of(turns)
    below, above, density = np.full((3, count), np.nan)
    none = np.zeros(count)
    if not model.layout.u.size:  # the likelihood is linear in the weights
        density, below, above = np.split(model.value_and_grad(model.start)[1], 3)
    else:
        past = none.copy()
        past[known] = 1.0
        for k in coming:
            here = np.where(np.arange(count) == k, 1.0, 0.0)
            below[k] = model.value(np.concatenate([past, here, none]))
            above[k] = model.value(np.concatenate([past, none, here]))
            past[k] = 1.0
            if counts[k]:
                density[k] = model.value(np.concatenate([past, none, none]))
    found = _quantiles(below, above, density, counts, uniform)
    return np.where(turns > 0, found, np.nan)


def _quantiles(below, above, density, drawn, uniform):
    """Return the normal quantiles of observations.

    Args:
        below, above, density: minus the logarithms of the integrals up to and above the observations, and of the
            densities at them; the integrals need not add up to 1.
        drawn: True for each observation with a positive probability, within which its residual is drawn.
    """
    whole = np.logaddexp(-below, -above)
    quantile, of_log = _scipy.special.ndtri, _scipy.special.ndtri_exp
    with np.errstate(invalid="ignore"):
        lower = below < above
        found = np.where(lower, -of_log(np.where(lower, -above, -below) - whole), of_log(-below - whole))
        return np.where(drawn, quantile(np.exp(-below - whole) - uniform * np.exp(-density - whole)), found)


class _Step:
    """The density of one observation given the earlier ones, from a likelihood of weights and shifts.

    Args:
        weights: the weights, 1 for this and the earlier observations, 0 for the others, followed by the shifts, all 0.
        before: the negative log-likelihood of the earlier observations.
    """

    def __init__(self, model: Any, weights: np.ndarray, k: int, before: float):
        self.model, self.weights, self.before = model, weights, before
        self.at = len(weights) // 2 + k

    def nll(self, shift: float) -> float:
        return self.model.value(self._shifted(shift))

    def both(self, shift: float) -> tuple[float, float]:
        """Return the value and the slope."""
        value, gradient = self.model.value_and_grad(self._shifted(shift))
        return value, gradient[self.at]

    def slope(self, shift: float) -> float:
        """Return the slope, NaN outside of the support."""
        value, slope = self.both(shift)
        return slope if np.isfinite(value) else np.nan

    def _shifted(self, shift: float) -> np.ndarray:
        moved = self.weights.copy()
        moved[self.at] = shift
        return moved

    def normal(self, value: float, slope: float) -> tuple[float, float]:
        """Return the standard deviation and the standardised residual of a normal density with this value and slope."""
        above = _standardized(value - self.before, slope)
        return math.exp(min(value - self.before - above**2 / 2 - math.log(2 * math.pi) / 2, 700.0)), above


def _steps(model: Any, turns: np.ndarray) -> Iterator[tuple[int, _Step, float, float]]:
    """Yield each predicted observation with its density, and the value and slope of its negative logarithm."""
    known, coming, _ = order_of(turns)
    weights = np.zeros(2 * len(turns))
    weights[known] = 1.0
    before = model.value(weights)
    for k in coming:
        weights[k] = 1.0
        step = _Step(model, weights, k, before)
        value, slope = step.both(0.0)
        yield k, step, value, slope
        before = value


def _standardized(value: float, slope: float) -> float:
    """Return the standardised residual of a normal density, from the value and slope of its negative logarithm.

    With a residual ``r`` and a standard deviation ``s`` the log density has the value ``-log(s) - r**2 / 2 + c`` and
    the slope ``-r / s``; together they give ``r**2 exp(r**2)``.
    """
    with np.errstate(divide="ignore"):
        log = 2 * (value + np.log(np.abs(slope))) - np.log(2 * np.pi)
    return float(np.sign(slope) * np.sqrt(_scipy.special.wrightomega(log)))


def slope_residuals(model: Any, turns: np.ndarray) -> np.ndarray:
    """Return residuals that treat each observation as normal given the earlier ones.

    The value and the slope of the log density at the observation determine the normal distribution.
    """
    found = np.full(len(turns), np.nan)
    for k, step, value, slope in _steps(model, turns):
        found[k] = _standardized(value - step.before, slope)
    return found


def mode_residuals(model: Any, turns: np.ndarray) -> np.ndarray:
    """Return residuals that treat each observation as normal given the earlier ones, NaN where the density has no mode.

    The mode of the density and the curvature of the log density there determine the normal distribution.
    """
    found = np.full(len(turns), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # points at which the search fails
        for k, step, value, slope in _steps(model, turns):
            sd, above = step.normal(value, slope)
            at, curvature = _mode(step.slope, slope, above * sd, sd)
            found[k] = -at * curvature**0.5
    return found


def _mode(slope_at: Callable[[float], float], slope: float, above: float, sd: float) -> tuple[float, float]:
    """Return the root of an increasing function and its slope there, NaN if there is no root.

    Args:
        slope: the function's value at 0, where the search starts.
        above: a guess of minus the root.
        sd: a unit of length.
    """
    at, step = 0.0, -1.01 * above
    while slope != 0 and 1e-12 * sd < abs(step) < 1e12 * sd:
        end = slope_at(at + step)
        if not np.isfinite(end):  # too far
            step /= 4
        elif np.sign(end) == np.sign(slope):
            at, step = at + step, 2 * step
        else:
            at = _scipy.optimize.brentq(slope_at, at, at + step, xtol=1e-10 * sd)
            break
    else:
        if slope != 0:
            return np.nan, np.nan
    for _ in range(2):  # first with the given unit, then with the one from the curvature
        by = 3e-4 * sd
        curvature = (slope_at(at + by) - slope_at(at - by)) / (2 * by)
        if not curvature > 0:
            return np.nan, np.nan
        sd = curvature**-0.5
    return at, curvature


def integral_residuals(
    model: Any,
    y: np.ndarray,
    turns: np.ndarray,
    kinds: np.ndarray,
    uniform: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    points: Sequence = (),
) -> np.ndarray:
    """Return residuals from integrals of each observation's density.

    Args:
        model: a likelihood of weights and shifts.
        y: the observations.
        turns: see :func:`order_of`.
        kinds: 0 for a continuous observation, 1 for a count, 2 for a continuous one with a point mass at the lower end.
        uniform: uniform random numbers for randomised residuals.
        lower, upper: the ends of the supports, infinite where unknown.
        points: for counts all possible values, for others the point masses.
    """
    below, above = np.full((2, len(y)), np.nan)
    drawn = kinds == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # points outside of the support
        for k, step, value, slope in _steps(model, turns):

            def log_density(place, k=k, step=step, value=value):
                found = value - step.nll(place - y[k])
                return found if np.isfinite(found) else -np.inf

            def normal(place, log_stretch, bend, k=k, step=step):
                value, slope = step.both(place - y[k])
                return step.normal(value - log_stretch, slope * math.exp(log_stretch) - bend)

            if kinds[k] == 1 and not len(points):
                found = sums(log_density, y[k])
            elif np.isfinite(value):
                at = np.union1d(points, lower[k]) if kinds[k] == 2 else np.asarray(points, float)
                masses, up_to = np.array([log_density(place) for place in at]), at <= y[k]
                drawn[k] |= y[k] in at
                parts = (-np.inf, -np.inf)
                if kinds[k] != 1:
                    parts = _parts(log_density, normal, y[k], lower[k], upper[k], y, drawn[k])
                found = log_sum([parts[0], *masses[up_to]]), log_sum([parts[1], *masses[~up_to]])
            else:
                continue
            below[k], above[k] = -found[0], -found[1]
    return _quantiles(below, above, np.zeros(len(y)), drawn, uniform)


def _parts(log_density, normal, y: float, lower: float, upper: float, beside, alone: bool) -> tuple[float, float]:
    """Return the logarithms of the integrals of a density below and above ``y``.

    Args:
        beside: other observations, some of them where the density is not small.
        alone: True if ``y`` is a point mass, so that the density there is not the continuous part's.
    """
    if lower < y < upper and not alone:
        return tails(log_density, normal, y, lower, upper)
    found = []
    for low, high in (lower, min(y, upper)), (max(y, lower), upper):
        if not low < high:
            found.append(-np.inf)
            continue
        within = beside[(beside > low) & (beside < high)]
        start = np.median(within) if within.size else (max(low, min(y, high) - 2) + min(high, max(y, low) + 2)) / 2
        found.append(log_sum(tails(log_density, normal, start, low, high)))
    return found[0], found[1]


def normal_residuals(model: Any, theta: np.ndarray, y: np.ndarray, turns: np.ndarray | None = None) -> np.ndarray:
    """Return residuals of jointly normal observations, which are the first random effects of ``model``.

    The Cholesky factor of their precision matrix in reverse order conditions each observation on the earlier ones.

    Args:
        turns: see :func:`order_of`; None takes the observations in order.
    """
    count, effects = len(y), len(model.random_names)
    at = model.mode(theta)[:count]
    precision = model.precision(theta, np.zeros(2 * (theta.size,)))[:effects, :effects].toarray()
    of_all, across = precision[:count, :count], precision[count:, :count]
    if effects > count:
        of_all = of_all - across.T @ np.linalg.solve(precision[count:, count:], across)
    known, coming, never = order_of(np.ones(count) if turns is None else turns)
    reverse = np.concatenate([known, coming, never])[::-1]
    root = np.linalg.cholesky(of_all[np.ix_(reverse, reverse)]).T
    found = np.full(count, np.nan)
    found[reverse] = root @ (y - at)[reverse]
    found[np.append(known, never)] = np.nan
    return found


# The check of the approximation ---------------------------------------------------------------------------------------


class Consistency(NamedTuple):
    """Result of a check by simulation: gradients at drawn data have mean 0 if the approximation is right."""

    pvalue: float
    """The p-value of a mean of 0."""
    bias: np.ndarray
    """The bias of the estimates by the approximation, to first order, in the order of ``names``."""
    gradients: np.ndarray
    """The gradients, a row for each data set."""


def consistency(model: Any, theta, u, draws: int, seed: int | None) -> Consistency:
    """Test whether gradients at ``draws`` data sets drawn from a model have mean 0."""
    replaced = ReplacingScope()
    with observation_scope(replaced):
        model.f(model.tensor(theta), model.tensor(u))
    check_observations(replaced.seen)
    sizes = [int(np.prod(x.shape, dtype=int)) for x in replaced.seen.values()]
    ends = theta.size + np.cumsum([0, *sizes])

    def of_data(given, effects):
        parts = {name: given[start:end] for name, start, end in zip(replaced.seen, ends, ends[1:])}
        with observation_scope(ReplacingScope(parts)):
            return model.f(given[: theta.size], effects)

    def whole(data):
        return np.concatenate([theta, *(np.reshape(data[name], -1) for name in replaced.seen)])

    y = {name: np.asarray(ops.convert_to_numpy(x), float) for name, x in replaced.seen.items()}
    of_any = _model_with(model, of_data, whole(y), u)
    seeds = np.random.SeedSequence(seed).generate_state(draws)
    data = [simulated(model, theta, u, int(one), True) for one in seeds]
    scores = np.array([of_any.value_and_grad(whole(drawn))[1][: theta.size] for drawn in data])
    return score_test(scores)


def score_test(scores: np.ndarray) -> Consistency:
    """Test whether rows have mean 0, and estimate the shift of the parameters that would explain another mean."""
    mean, information = scores.mean(0), np.atleast_2d(np.cov(scores, rowvar=False))
    shift = np.linalg.solve(information, mean)
    return Consistency(float(_scipy.special.chdtrc(mean.size, len(scores) * mean @ shift)), -shift, scores)

"""Data drawn from a likelihood, one-step-ahead residuals, and a check of the approximation by drawn data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _scipy, ops
from ..scipy._tensors import beside
from .marks import Observed, Places, Replaced, check_marked, marked_by, refused
from .parameters import Layout

# Simulation -----------------------------------------------------------------------------------------------------------


class _Drawing(Places):
    """A scope in which densities draw: each with a seed of its own, so that another run draws the same numbers but
    where they depend on others that were not drawn before."""

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
        return beside(self.drawn[name], x)

    def density(self, family, x: Observed, args):
        places = x.places.reshape(-1)
        name = self.names[places[0]]
        if not self.seen.keys().isdisjoint(places.tolist()):
            raise refused(name, "is in two densities: neither draws it by itself")
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
        return method(beside(numbers.reshape(shape), x.value), *args)


def simulated(model: Any, theta, u, seed: int | None, effects: bool) -> dict[str, np.ndarray]:
    """Observations drawn from a likelihood, and with ``effects`` random effects before them, by name."""
    drawing = _Drawing(seed, effects)
    runs = 0
    while True:
        before = {name: numbers.copy() for name, numbers in drawing.drawn.items()}
        drawing.restart()
        with marked_by(drawing):
            model.f(model.tensor(theta), model.tensor(u))
        drawing.of_seen()
        if before.keys() == drawing.drawn.keys() and all(
            np.array_equal(numbers, drawing.drawn[name], equal_nan=True) for name, numbers in before.items()
        ):
            return drawing.drawn
        runs += 1
        if runs > len(drawing.names) + 1:
            raise refused(drawing.names[0], "is drawn given what is drawn given it")


# Residuals ------------------------------------------------------------------------------------------------------------


class _Weighing(Places):
    """A scope in which each log density counts ``keep`` times, and with ``tails`` the logarithms of the probabilities
    up to it and above it ``below`` and ``above`` times; else it is at the observation and a ``shift`` of that. Without
    weights it only looks at which places there are."""

    def __init__(self, tails: bool):
        super().__init__()
        self.tails = tails
        self.weights: Any = None

    def density(self, family, x, args):
        places, shape = x.places.reshape(-1), x.places.shape
        counts = hasattr(family, "logpmf")
        density = family.logpmf if counts else family.logpdf
        if not hasattr(family, "logsf"):
            raise refused(
                self.names[places[0]], f"has no residuals of `{family.name}` one by one: ask for `gaussian` ones"
            )
        if counts and not self.tails:
            raise refused(self.names[places[0]], "are counts, of which there are `cdf` residuals")
        self.seen.update(dict.fromkeys(places.tolist(), counts))
        if self.weights is None:
            return density(x.value, *args)
        weights = [ops.reshape(ops.take(w, places, 0), shape) for w in self.weights]
        if not self.tails:
            return weights[0] * density(x.value + weights[1], *args)
        return sum(w * f(x.value, *args) for w, f in zip(weights, (density, family.logcdf, family.logsf)))


def residuals(model: Any, theta, u, method: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """One-step-ahead residuals of the observations by name, NaN where these are missing.

    They are the normal quantiles of each one's probability given those before it, random effects integrated out
    (Thygesen, Albertsen, Berg, Kristensen & Nielsen 2017).

    Raises:
        ArgumentError: no observations are marked; a family that has no residuals by that method.
    """
    scope = _Weighing(method == "cdf")
    given = model.tensor(theta)
    found: np.ndarray
    if method == "gaussian":
        replaced = Replaced()
        with marked_by(replaced):
            model.f(given, model.tensor(u))
        seen = replaced.seen
        check_marked(seen)
        sizes = [int(np.prod(x.shape, dtype=int)) for x in seen.values()]
        ends = np.cumsum([0, *sizes])
        y = np.concatenate([np.asarray(ops.convert_to_numpy(x), float).reshape(-1) for x in seen.values()])

        def of_y(one, effects):
            parts = {name: effects[start:end] for name, start, end in zip(seen, ends, ends[1:])}
            with marked_by(Replaced(parts)):
                return one[0] * model.f(given, effects[len(y) :])

        found = normal_residuals(_around(model, of_y, np.ones(1), np.concatenate([y, u])), np.ones(1), y)
        return {name: found[start:end].reshape(x.shape) for (name, x), start, end in zip(seen.items(), ends, ends[1:])}
    with marked_by(scope):
        model.f(given, model.tensor(u))
    there, counts = scope.of_seen()
    count = len(there)

    def weighed(weights, effects):
        scope.weights = [weights[k : k + count] for k in range(0, len(start), count)]
        try:
            with marked_by(scope):
                return model.f(given, effects)
        finally:
            scope.weights = None

    start = np.repeat([1.0, 0.0, 0.0] if scope.tails else [1.0, 0.0], count)
    of_weights = _around(model, weighed, start, u)
    if scope.tails:
        return scope.split(step_residuals(of_weights, there, counts, rng.random(count)))
    return scope.split(slope_residuals(of_weights, there))


def _around(model: Any, f, theta: np.ndarray, u: np.ndarray) -> Any:
    """A model of other parameters, whose last random effects are those of a model."""
    size = len(theta) + len(u)
    integrated = np.append(np.ones(size - len(model.layout.u), bool), model.layout.integrated)
    layout = Layout(
        np.append(theta, u), [f"x[{k}]" for k in range(size)], np.arange(size) >= len(theta), profiled=~integrated
    )
    return model.of(f, layout, model.tensor, lambda vector: vector)


def order_of(turns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The observations that are known from the start, those that come one by one, and those that never come.

    Args:
        turns: for each observation a number by which they come, of equal ones the first before; 0 where it is not in
            the likelihood, and negative where it is known from the start.
    """
    places = np.argsort(turns, kind="stable")
    known, never = turns[places] < 0, turns[places] == 0
    return places[known], places[~known & ~never], places[never]


def step_residuals(model: Any, turns: np.ndarray, counts: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Residuals of a likelihood of each observation's weights of its density, and of its lower and upper tail.

    Args:
        turns: as of :func:`order_of`.
        counts: True for each that is a whole number, whose residual is drawn.
        uniform: random numbers, to draw those by.
    """
    count = len(turns)
    known, coming, _ = order_of(turns)
    below, above, density = np.full((3, count), np.nan)
    none = np.zeros(count)
    if not model.layout.u.size:  # then they are the derivatives
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
    whole = np.logaddexp(-below, -above)
    quantile, of_log = _scipy.special.ndtri, _scipy.special.ndtri_exp
    with np.errstate(invalid="ignore"):
        lower = below < above
        found = np.where(lower, -of_log(np.where(lower, -above, -below) - whole), of_log(-below - whole))
        drawn = quantile(np.exp(-below - whole) - uniform * np.exp(-density - whole))
    return np.where(turns > 0, np.where(counts, drawn, found), np.nan)


def slope_residuals(model: Any, turns: np.ndarray) -> np.ndarray:
    """Residuals of a likelihood of each observation's weight and shift, as if each were normal given those before it.

    Of a residual ``r``, a standard deviation ``s`` and the density's logarithm, the value ``-log(s) - r**2 / 2 + c``
    and the slope ``-r / s`` give ``r**2 exp(r**2)``.
    """
    count = len(turns)
    known, coming, _ = order_of(turns)
    found, keep, shift = np.full(count, np.nan), np.zeros(count), np.zeros(count)
    keep[known] = 1.0
    before = model.value(np.concatenate([keep, shift]))
    for k in coming:
        keep[k] = 1.0
        value, gradient = model.value_and_grad(np.concatenate([keep, shift]))
        slope = gradient[count + k]
        with np.errstate(divide="ignore"):
            log = 2 * (value - before + np.log(np.abs(slope))) - np.log(2 * np.pi)
        found[k] = np.sign(slope) * np.sqrt(_scipy.special.wrightomega(log))
        before = value
    return found


def normal_residuals(model: Any, theta: np.ndarray, y: np.ndarray, turns: np.ndarray | None = None) -> np.ndarray:
    """Residuals of observations that are normal together: they are the first random effects of a model, too.

    The Cholesky factor of their precision, in reverse order, conditions each one on those before it.

    Args:
        turns: as of :func:`order_of`; None: one after the other.
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
    """What gradients at drawn data say, which have the mean 0 where the approximation is right."""

    pvalue: float
    """Of a mean of 0."""
    bias: np.ndarray
    """Of the estimates by the approximation, to first order, in the order of ``names``."""
    gradients: np.ndarray
    """A row for each set of data."""


def consistency(model: Any, theta, u, draws: int, seed: int | None) -> Consistency:
    """The gradient by the parameters at ``draws`` sets of data that are drawn from a model."""
    replaced = Replaced()
    with marked_by(replaced):
        model.f(model.tensor(theta), model.tensor(u))
    check_marked(replaced.seen)
    sizes = [int(np.prod(x.shape, dtype=int)) for x in replaced.seen.values()]
    ends = theta.size + np.cumsum([0, *sizes])

    def of_data(given, effects):
        parts = {name: given[start:end] for name, start, end in zip(replaced.seen, ends, ends[1:])}
        with marked_by(Replaced(parts)):
            return model.f(given[: theta.size], effects)

    def whole(data):
        return np.concatenate([theta, *(np.reshape(data[name], -1) for name in replaced.seen)])

    y = {name: np.asarray(ops.convert_to_numpy(x), float) for name, x in replaced.seen.items()}
    of_any = _around(model, of_data, whole(y), u)
    seeds = np.random.SeedSequence(seed).generate_state(draws)
    data = [simulated(model, theta, u, int(one), True) for one in seeds]
    scores = np.array([of_any.value_and_grad(whole(drawn))[1][: theta.size] for drawn in data])
    return score_test(scores)


def score_test(scores: np.ndarray) -> Consistency:
    """The test of rows that have the mean 0, and the shift of the parameters that explains another."""
    mean, information = scores.mean(0), np.atleast_2d(np.cov(scores, rowvar=False))
    shift = np.linalg.solve(information, mean)
    return Consistency(float(_scipy.special.chdtrc(mean.size, len(scores) * mean @ shift)), -shift, scores)

"""Likelihoods of R functions: one call from R for each evaluation, each question a number."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import config, functional, ops
from ...backends._shared import NOT_POSITIVE_DEFINITE
from ...inference import transforms
from ...inference.fits import Fit, finished
from ...inference.likelihood import Likelihood
from ...inference.parameters import Layout, free_numbers, in_double
from ...inference.quadrature import domain
from ...inference.samples import Posterior
from ...inference.transforms import Transform
from ...inference.validation import (
    integral_residuals,
    mode_residuals,
    normal_residuals,
    slope_residuals,
    step_residuals,
)


def likelihood(f: Callable, values, names: str, random, labels, parts=None, integrate=False) -> Callable:
    """The answers of a negative log-likelihood ``f`` of the parameters that are not random, and of the random ones.

    Args:
        values: where the parameters start.
        names: what R calls them, one string with ``\\x1f`` between, as a list is looked at name by name.
        random: 1 for each random effect, 2 for one that is profiled.
        labels: for each parameter a number, as of :class:`.Layout`.
        parts: None, or for each parameter of R's the count of its free numbers, and its transform where it has one.
        integrate: as of :func:`.laplace`.

    Returns:
        A function of the estimated parameters, the number of a question in :data:`QUESTIONS`, and more numbers.
    """
    values, random, labels = (np.reshape(ops.convert_to_numpy(x), -1) for x in (values, random, labels))
    layout = Layout(values, names.split("\x1f")[: values.size], random > 0, labels.astype(int), random == 2)
    within = domain(integrate)
    layout.transformed = parts is not None
    made: list[Likelihood] = []
    pieces = [(int(size), transform_of(*given) if given else None) for size, *given in parts or ()]
    ends = np.cumsum([size for size, _ in pieces])
    fixed = [piece for piece, end in zip(pieces, ends) if piece[0] and not random[end - 1]]

    def joint(theta, u):
        first, *effects = layout.halves(theta, u)
        return ops.sum(f(constrained(first, fixed), *effects))

    def answer(theta, question, more):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            if not made:  # now, as R looks at what `f` reads while it is traced
                tensor = functools.partial(in_double, config.default_backend())
                made.append(Likelihood.of(joint, layout, tensor, lambda vector: constrained(vector, pieces), within))
                made[0].log_jacobian = lambda vector: log_jacobian(vector, pieces)
            theta, more = np.array(theta, float).reshape(-1), np.array(more, float).reshape(-1)
            return QUESTIONS[int(question)](made[0], theta, more)

    return answer


def constrained(vector, pieces: list):
    """Parameters as R's vector of all, of free numbers; matrices by columns."""
    if all(transform is None for _, transform in pieces):
        return vector
    found, start = [], 0
    for size, transform in pieces:
        part = vector[start : start + size]
        start += size
        if transform is not None:
            part = transform(part)
            part = ops.reshape(ops.transpose(part) if len(part.shape) == 2 else part, (-1,))
        found.append(part)
    return ops.concatenate(found)


def log_jacobian(vector, pieces: list):
    """The logarithm of the determinant of the derivatives of :func:`constrained`."""
    starts = np.cumsum([0, *(size for size, _ in pieces)])
    found = [t.log_jacobian(vector[k : k + size]) for k, (size, t) in zip(starts.tolist(), pieces) if t is not None]
    return sum(found) if found else 0.0


def transform_of(kind: str, lower=None, upper=None) -> Transform:
    """A transform by R's name."""
    return getattr(transforms, kind) if lower is None else transforms.interval(lower, upper)


def transform(kind: str, lower, upper, function: str, x):
    """What one of a transform's functions gives: ``forward``, ``inverse`` or ``log_jacobian``."""
    found = transform_of(kind, lower, upper)
    return found(x) if function == "forward" else getattr(found, function)(x)


def free_start(kind: str, lower, upper, name: str, x):
    """The free numbers where a parameter starts; errors as of :class:`.Parameters`."""
    return free_numbers(transform_of(kind, lower, upper), np.array(x, float), name).reshape(-1)


def _both(model: Any, theta, more):
    """Value and gradient, NaN where a matrix has no Cholesky factor."""
    value, gradient = _number(model.value_and_grad, theta, (np.nan, np.full(theta.shape, np.nan)))
    return {"value": np.float64(value), "derivative": gradient}


def _value(model: Any, theta, more):
    return {"value": np.float64(_number(model.value, theta, np.nan))}


def _number(f: Callable, theta, otherwise):
    try:
        return f(theta)
    except Exception as error:
        if NOT_POSITIVE_DEFINITE not in str(error):
            raise
        return otherwise


def _second(model: Any, theta, more):
    return model.hessian(theta)


def _effects(model: Any, theta, more):
    """All parameters, random effects at their mode."""
    return np.array(model.parameters(theta))


def _finished(model: Any, theta, more):
    """The fit at the end of a search, between bounds, the lower ones first."""
    lower, upper = np.split(more, 2)
    theta, hessian = finished(model, theta, lower, upper)
    fit = Fit(model, theta, hessian, (lower, upper), None)
    return {
        "theta": theta,
        "value": np.float64(fit.value),
        "hessian": hessian,
        "covariance": fit.cov_params(),
        "parameters": np.array(fit.params),
        "errors": np.array(fit.bse),
        "free": fit._free.astype(float),
        "problems": fit.problems,
    }


def _fit(model: Any, theta, more) -> Fit:
    """A fit as it was found, of the bounds and the Hessian."""
    lower, upper, hessian = np.split(more, [theta.size, 2 * theta.size])
    return Fit(model, theta, hessian.reshape(theta.size, -1), (lower, upper), None)


def _profile(model: Any, theta, more):
    """Profile intervals, of 1 minus their level, the bounds and the Hessian."""
    return _fit(model, theta, more[1:]).conf_int(float(more[0]), "profile")


def _path(model: Any, theta, more):
    """A profile of a parameter's number, 1 minus a level, the points on a side, the bounds and the Hessian."""
    return np.array(_fit(model, theta, more[3:]).profile(int(more[0]), float(more[1]), int(more[2])))


def _start(model: Any, theta, more):
    """Nothing; an error where there is no likelihood."""
    model.check(theta)
    return theta


def _propagated(model: Any, theta, more):
    """The covariance of numbers with a Jacobian by all parameters, of the covariance of the estimated ones."""
    size = theta.size**2
    covariance, whole = more[:size].reshape(theta.size, -1), model.layout.numbers(theta, model._effects(theta))
    slopes = np.array(ops.convert_to_numpy(functional.jacobian(model.tree, model.tensor(whole))))
    jacobian = more[size:].reshape(-1, len(slopes)) @ slopes
    return model.propagated(theta, covariance, *model.layout.columns(jacobian))


def _precision(model: Any, theta, more):
    found = model.precision(theta, more.reshape(theta.size, theta.size))
    return {"i": found.indices.astype(float), "p": found.indptr.astype(float), "x": found.data}


def _importance(model: Any, theta, more):
    return np.array(model.importance(theta, int(more[0]), int(more[1])))


def _spread(model: Any, theta, more):
    """Standard deviations of the random effects, of the covariance of the estimated parameters."""
    return model.random_sd(theta, more.reshape(theta.size, -1))


def as_density(model: Any):
    """A model whose function is a density of the parameters as one of the free numbers."""
    if not model.layout.transformed:
        return model

    def joint(theta, u):
        return model.f(theta, u) - model.log_jacobian(model.layout.vector(theta, u))

    return Likelihood.of(joint, model.layout, model.tensor, model.tree)


def _sample(model: Any, theta, more):
    """Draws of all parameters by the No-U-Turn sampler from the estimates: by draw, chain and parameter."""
    draws, tune, chains, seed = (int(x) for x in more)
    target = Posterior(as_density(model))
    target.start = theta
    found = target.sample(draws, tune=tune, chains=chains, seed=seed)
    return np.swapaxes(found.posterior["x"], 0, 1)


def _step_residuals(model: Any, theta, more):
    """Of the observations' turns, which are whole numbers, and random points for these."""
    turns, counts, uniform = np.split(more, 3)
    return step_residuals(model, turns, counts == 1, uniform)


def _slope_residuals(model: Any, theta, more):
    """Of the observations' turns."""
    return slope_residuals(model, more)


def _mode_residuals(model: Any, theta, more):
    """Of the observations' turns."""
    return mode_residuals(model, more)


def _integral_residuals(model: Any, theta, more):
    """Of the observations, their turns and kinds, random points, the ends of their supports, and points of these."""
    of_each, points = more[: 3 * theta.size], more[3 * theta.size :]
    y, turns, kinds, uniform, lower, upper = np.split(of_each, 6)
    return integral_residuals(model, y, turns, kinds, uniform, lower, upper, points)


def _normal_residuals(model: Any, theta, more):
    """Of observations, which are random effects, and their turns."""
    return normal_residuals(model, theta, *np.split(more, 2))


QUESTIONS = (
    _both,
    _second,
    _effects,
    _finished,
    _propagated,
    _precision,
    _start,
    _profile,
    _value,
    _path,
    _importance,
    _spread,
    _sample,
    _step_residuals,
    _normal_residuals,
    _slope_residuals,
    _mode_residuals,
    _integral_residuals,
)
"""By the numbers that R asks them by."""

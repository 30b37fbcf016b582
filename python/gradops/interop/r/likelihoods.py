"""Likelihoods written in R: values, derivatives, fits, intervals, samples and residuals.

R evaluates a likelihood by one call with parameters and the number of a question in :data:`QUESTIONS`.
"""

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
from ...inference.parameters import Layout, double_tensor, free_numbers
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
    """Return a function that answers R's questions about a negative log-likelihood.

    Args:
        f: the negative log-likelihood, a function of the fixed parameters and the random effects.
        values: the start of all parameters.
        names: R's names of the parameters in one string, separated by ``\\x1f``: a list is converted name by name.
        random: 1 for each random effect, 2 for one that is profiled, 0 for a fixed parameter.
        labels: a number for each parameter, as in :class:`.Layout`.
        parts: None, or for each of R's parameters the count of its free numbers and, where it has one, its transform.
        integrate: as for :func:`.laplace`.

    Returns:
        A function of the estimated parameters, the number of a question in :data:`QUESTIONS`, and further numbers that
        the question takes.
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
            if not made:  # at the first evaluation: R watches what `f` reads while it is traced
                tensor = functools.partial(double_tensor, config.default_backend())
                made.append(Likelihood.build(joint, layout, tensor, lambda vector: constrained(vector, pieces), within))
                made[0].log_jacobian = lambda vector: log_jacobian(vector, pieces)
            theta, more = np.array(theta, float).reshape(-1), np.array(more, float).reshape(-1)
            return QUESTIONS[int(question)](made[0], theta, more)

    return answer


def constrained(vector, pieces: list):
    """Return R's vector of all parameters from the free numbers; matrices are filled by column."""
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
    """Return the logarithm of the Jacobian determinant of :func:`constrained`."""
    starts = np.cumsum([0, *(size for size, _ in pieces)])
    found = [t.log_jacobian(vector[k : k + size]) for k, (size, t) in zip(starts.tolist(), pieces) if t is not None]
    return sum(found) if found else 0.0


def transform_of(kind: str, lower=None, upper=None) -> Transform:
    """Return a transform by R's name for it."""
    return getattr(transforms, kind) if lower is None else transforms.interval(lower, upper)


def transform(kind: str, lower, upper, function: str, x):
    """Return the value of one of a transform's functions: ``forward``, ``inverse`` or ``log_jacobian``."""
    found = transform_of(kind, lower, upper)
    return found(x) if function == "forward" else getattr(found, function)(x)


def free_start(kind: str, lower, upper, name: str, x):
    """Return the free numbers of a parameter's start; raises the errors of :class:`.Parameters`."""
    return free_numbers(transform_of(kind, lower, upper), np.array(x, float), name).reshape(-1)


def _both(model: Any, theta, more):
    """Return value and gradient, NaN where a matrix has no Cholesky factor."""
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
    """Return all parameters, with the random effects at their mode."""
    return np.array(model.parameters(theta))


def _finished(model: Any, theta, more):
    """Return the fit at the end of a search; ``more`` holds the lower bounds, then the upper ones."""
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
    """Rebuild a fit from its lower bounds, upper bounds and Hessian."""
    lower, upper, hessian = np.split(more, [theta.size, 2 * theta.size])
    return Fit(model, theta, hessian.reshape(theta.size, -1), (lower, upper), None)


def _profile(model: Any, theta, more):
    """Return profile intervals; ``more`` holds 1 minus their level, the bounds and the Hessian."""
    return _fit(model, theta, more[1:]).conf_int(float(more[0]), "profile")


def _path(model: Any, theta, more):
    """Return a profile; ``more`` holds the parameter, 1 minus the level, points per side, bounds and the Hessian."""
    return np.array(_fit(model, theta, more[3:]).profile(int(more[0]), float(more[1]), int(more[2])))


def _start(model: Any, theta, more):
    """Return ``theta``; raise an error that names the cause if the likelihood is not finite there."""
    model.check(theta)
    return theta


def _propagated(model: Any, theta, more):
    """Return the covariance of functions of the parameters (delta method).

    ``more`` holds the covariance of the estimated parameters, then the functions' Jacobian by all parameters.
    """
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
    """Return standard deviations of the random effects; ``more`` is the covariance of the estimated parameters."""
    return model.random_sd(theta, more.reshape(theta.size, -1))


def as_density(model: Any):
    """Return a model with the density of the parameters turned into the density of the free numbers."""
    if not model.layout.transformed:
        return model

    def joint(theta, u):
        return model.f(theta, u) - model.log_jacobian(model.layout.vector(theta, u))

    return Likelihood.build(joint, model.layout, model.tensor, model.tree)


def _sample(model: Any, theta, more):
    """Return draws of the No-U-Turn sampler started at the estimates, as an array (draw, chain, parameter)."""
    draws, tune, chains, seed = (int(x) for x in more)
    target = Posterior(as_density(model))
    target.start = theta
    found = target.sample(draws, tune=tune, chains=chains, seed=seed)
    return np.swapaxes(found.posterior["x"], 0, 1)


def _step_residuals(model: Any, theta, more):
    """Return residuals by tail probabilities; ``more`` holds turns, 1 for counts, and uniform numbers."""
    turns, counts, uniform = np.split(more, 3)
    return step_residuals(model, turns, counts == 1, uniform)


def _slope_residuals(model: Any, theta, more):
    """Return residuals by the density's value and slope; ``more`` holds the observations' turns."""
    return slope_residuals(model, more)


def _mode_residuals(model: Any, theta, more):
    """Return residuals by the density's mode and curvature; ``more`` holds the observations' turns."""
    return mode_residuals(model, more)


def _integral_residuals(model: Any, theta, more):
    """Return residuals by integrals of the density.

    ``more`` holds the observations, their turns and kinds, uniform numbers, lower and upper ends of the supports, and
    points: all integers of the support, or those with a probability.
    """
    of_each, points = more[: 3 * theta.size], more[3 * theta.size :]
    y, turns, kinds, uniform, lower, upper = np.split(of_each, 6)
    return integral_residuals(model, y, turns, kinds, uniform, lower, upper, points)


def _normal_residuals(model: Any, theta, more):
    """Return residuals of observations that the model treats as random effects; ``more`` holds them and their turns."""
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
"""The functions that answer R's questions, indexed by the question's number."""

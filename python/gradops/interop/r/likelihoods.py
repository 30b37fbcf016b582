"""Likelihoods written in R: values, derivatives, fits, intervals, samples and residuals.

R evaluates a likelihood by one call with parameters and the name of a question, a method of :class:`Questions`.
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
        parts: None, or for each of R's parameters a dict of the ``size``, the count of its free numbers, and, where it
            has a transform, the arguments of :func:`transform_of`.
        integrate: as for :func:`.laplace`.

    Returns:
        A function of the estimated parameters, the name of a question, a method of :class:`Questions`, and its
        arguments by name: R's numbers.
    """
    values, random, labels = (np.reshape(ops.convert_to_numpy(x), -1) for x in (values, random, labels))
    layout = Layout(values, names.split("\x1f")[: values.size], random > 0, labels.astype(int), random == 2)
    within = domain(integrate)
    layout.transformed = parts is not None
    made: list[Likelihood] = []
    pieces = [(int(part.pop("size")), transform_of(**part) if part else None) for part in parts or ()]
    ends = np.cumsum([size for size, _ in pieces])
    fixed = [piece for piece, end in zip(pieces, ends) if piece[0] and not random[end - 1]]

    def joint(theta, u):
        first, *effects = layout.halves(theta, u)
        return ops.sum(f(constrained(first, fixed), *effects))

    def answer(theta, question: str, **members):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            if not made:  # at the first evaluation: R watches what `f` reads while it is traced
                tensor = functools.partial(double_tensor, config.default_backend())
                made.append(Likelihood.build(joint, layout, tensor, lambda vector: constrained(vector, pieces), within))
                made[0].log_jacobian = lambda vector: log_jacobian(vector, pieces)
            members = {name: np.ascontiguousarray(x, float) for name, x in members.items()}
            return getattr(Questions(made[0], np.array(theta, float).reshape(-1)), question)(**members)

    answer.model = lambda: made[0] if made else None  # type: ignore[attr-defined]
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


class Questions:
    """R's questions about a likelihood at estimated parameters; their arguments are arrays, single numbers too."""

    def __init__(self, model: Any, theta: np.ndarray):
        self.model, self.theta = model, theta

    def value_and_grad(self):
        """Return value and gradient, NaN where a matrix has no Cholesky factor."""
        otherwise = np.nan, np.full(self.theta.shape, np.nan)
        value, gradient = _number(self.model.value_and_grad, self.theta, otherwise)
        return {"value": np.float64(value), "derivative": gradient}

    def value(self):
        return {"value": np.float64(_number(self.model.value, self.theta, np.nan))}

    def hessian(self):
        return self.model.hessian(self.theta)

    def information(self):
        return self.model.information(self.theta)

    def parameters(self):
        """Return all parameters, with the random effects at their mode."""
        return np.array(self.model.parameters(self.theta))

    def check(self):
        """Return the parameters; raise an error that names the cause if the likelihood is not finite there."""
        self.model.check(self.theta)
        return self.theta

    def finished(self, lower, upper):
        """Return the fit at the end of a search."""
        self.theta, hessian = finished(self.model, self.theta, lower, upper)
        fit = self._fit(lower, upper, hessian)
        return {
            "theta": fit.theta,
            "value": np.float64(fit.value),
            "hessian": hessian,
            "covariance": fit.cov_params(),
            "parameters": np.array(fit.params),
            "errors": np.array(fit.bse),
            "free": fit._free.astype(float),
            "problems": fit.problems,
        }

    def _fit(self, lower, upper, hessian) -> Fit:
        return Fit(self.model, self.theta, hessian, (lower, upper), None)

    def conf_int(self, alpha, **fit):
        return self._fit(**fit).conf_int(alpha.item(), "profile")

    def profile(self, parameter, alpha, points, **fit):
        return np.array(self._fit(**fit).profile(int(parameter.item()), alpha.item(), int(points.item())))

    def propagated(self, covariance, jacobian):
        """Return the covariance of functions of the parameters (delta method).

        Args:
            covariance: that of the estimated parameters.
            jacobian: the functions' Jacobian by all parameters.
        """
        model, theta = self.model, self.theta
        whole = model.layout.numbers(theta, model._effects(theta))
        slopes = np.array(ops.convert_to_numpy(functional.jacobian(model.tree, model.tensor(whole))))
        return model.propagated(theta, covariance, *model.layout.columns(jacobian @ slopes))

    def precision(self, hessian):
        found = self.model.precision(self.theta, hessian)
        return {"i": found.indices.astype(float), "p": found.indptr.astype(float), "x": found.data}

    def importance(self, draws, seed):
        return np.array(self.model.importance(self.theta, int(draws.item()), int(seed.item())))

    def random_sd(self, covariance):
        return self.model.random_sd(self.theta, covariance)

    def sample(self, draws, tune, chains, seed):
        """Return draws of the No-U-Turn sampler started at the estimates, as an array (draw, chain, parameter)."""
        target = Posterior(as_density(self.model))
        target.start = self.theta
        draws, tune, chains, seed = (int(x.item()) for x in (draws, tune, chains, seed))
        found = target.sample(draws, tune=tune, chains=chains, seed=seed)
        return np.swapaxes(found.posterior["x"], 0, 1)

    def step_residuals(self, turns, counts, uniform):
        return step_residuals(self.model, turns, counts == 1, uniform)

    def slope_residuals(self, turns):
        return slope_residuals(self.model, turns)

    def mode_residuals(self, turns):
        return mode_residuals(self.model, turns)

    def integral_residuals(self, **members):
        return integral_residuals(self.model, **members)

    def normal_residuals(self, y, turns):
        return normal_residuals(self.model, self.theta, y, turns)


def _number(f: Callable, theta, otherwise):
    try:
        return f(theta)
    except Exception as error:
        if NOT_POSITIVE_DEFINITE not in str(error):
            raise
        return otherwise


def as_density(model: Any):
    """Return a model with the density of the parameters turned into the density of the free numbers."""
    if not model.layout.transformed:
        return model

    def joint(theta, u):
        return model.f(theta, u) - model.log_jacobian(model.layout.vector(theta, u))

    return Likelihood.build(joint, model.layout, model.tensor, model.tree)

"""A negative log-likelihood as a function of a vector, with its derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _display, backends, functional, ops
from .._functions import hides_arguments
from ..errors import ArgumentError, ArgumentTypeError, Code, GradientError, InferenceError, ShapeError
from ..jit import jit
from ..ops import _checks
from . import validation
from .nonfinite import nonfinite_from
from .observations import reports_of
from .parameters import Layout, listed, shown

MAX_COMPILED_STEPS = 20_000
"""Program steps of a gradient above which the Hessian is not compiled, as it has several times as many steps."""
MAX_HESSIAN_ERROR = 4e-6
"""The largest error of a scaled Hessian, relative to its smallest eigenvalue, that standard errors allow.

Standard errors change by half of that.
"""


def explained(function: Any) -> str:
    return function.explain() if hasattr(function, "explain") else "not compiled: the library runs it eagerly"


class Likelihood:
    """A negative log-likelihood as a function of the vector of estimated parameters.

    Args:
        f: the likelihood as a function of two vectors, the estimated parameters and the random effects.
        tensor: converts NumPy arrays to tensors of the likelihood's library.
        tree: converts a vector of all parameters to the user's structure.
        shared: takes the compiled gradient and Hessian and returns replacements from earlier fits, see
            :mod:`.repeated`.
    """

    by_differences = False  # whether :meth:`hessian` takes differences of the gradient
    _longest_step = 1e-3  # in standard deviations, of differences
    log_jacobian: Callable  # of the transforms, if there are any
    with_effects: type[Likelihood]  # :class:`Laplace`, set by its module

    @staticmethod
    def build(
        f: Callable, layout: Layout, tensor: Callable, tree: Callable, *integrate, shared: Callable | None = None
    ) -> Likelihood:
        """Return the model of a likelihood, with its random effects, if any, integrated out."""
        if layout.u.size:
            return Likelihood.with_effects(f, layout, tensor, tree, *integrate)
        return Likelihood(f, layout, tensor, tree, shared)

    def __init__(self, f: Callable, layout: Layout, tensor: Callable, tree: Callable, shared: Callable | None = None):
        self.f, self.layout, self.tensor, self.tree = f, layout, tensor, tree
        self.start, self.names = layout.theta, layout.names_of_theta
        self._moves: Any = np.inf  # standard deviation of each parameter given the others, once known
        nothing = tensor(layout.u)
        owner: Any = backends.backend_of(nothing)
        self._on_numpy, self._eager = isinstance(nothing, np.ndarray), owner.derivatives.own_tape
        self.pair = self._compiled(functional.value_and_grad(lambda theta: f(theta, nothing)))
        self._second = self._compiled(hides_arguments(lambda x: functional.hessian(lambda x: f(x, nothing), x)))
        if shared is not None:
            self.pair, self._second = shared(self.pair, self._second)

    def __repr__(self) -> str:
        return f"<gradops {type(self).__name__.lower()}, {self._about()}>"

    def _about(self) -> str:
        effects = f", {self.layout.u.size} random effects" if self.layout.u.size else ""
        return f"a function of {listed(self.names)}{effects}"

    def _repr_html_(self) -> str:
        rows = [[name, f"{x:.4g}"] for name, x in zip(self.names, self.start)]
        return _display.block(type(self).__name__, self._about(), _display.rows_of(rows, ["parameter", "start"]))

    def _compiled(self, function: Callable) -> Any:
        """Compile a function, except on libraries that run eagerly, where compiling costs more than running."""
        return function if self._eager else jit(function)

    def explain(self) -> str:
        """Return how the derivatives were compiled, as text."""
        return explained(self.pair)

    def _vector(self, theta) -> np.ndarray:
        theta = np.asarray(theta, float)
        if theta.shape != self.start.shape:
            raise ShapeError(
                f"`inference`: the parameters `theta` must be a vector of {self.start.size} numbers, for "
                f"{listed(self.names)}; got the shape {theta.shape}.",
                argument="theta",
            )
        return theta

    def value(self, theta) -> float:
        """The negative log-likelihood."""
        return self.value_and_grad(theta)[0]

    def value_and_grad(self, theta) -> tuple[float, np.ndarray]:
        """Return the value and its gradient with respect to the estimated parameters."""
        value, gradient = self.pair(self.tensor(self._vector(theta)))
        return float(value), np.array(ops.convert_to_numpy(gradient))

    def hessian(self, theta) -> np.ndarray:
        """Return the second derivatives.

        They are differences of the gradient if its program has more than 20,000 steps, as compiling the exact Hessian
        would then take longer than all gradients.
        """
        theta = self._vector(theta)
        self.value_and_grad(theta)
        programs = self.pair.programs.all() if hasattr(self.pair, "programs") else []
        if any(getattr(program, "steps", 0) > MAX_COMPILED_STEPS for program in programs):
            return symmetrised(self._differences(theta)[0])
        return np.array(ops.convert_to_numpy(self._second(self.tensor(theta))))

    def information(self, theta) -> np.ndarray:
        """Return the second derivatives for standard errors, exact or by differences of the exact gradient.

        Compiling the Hessian takes at least as long as 30 gradients, and running it for p parameters as long as p / 3;
        differences take 2 p + 2 gradients. They are used where they give standard errors six digits.
        """
        theta = self._vector(theta)
        if getattr(self._second, "is_fast", False):
            return self.hessian(theta)
        columns, steps = self._differences(theta)
        found = symmetrised(columns)
        error = self._error(columns, theta, steps)
        return found if error < MAX_HESSIAN_ERROR * smallest_eigenvalue(found) else self.hessian(theta)

    def _differences(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of the exact gradient by central differences, and their steps."""
        # The gradient has some 12 digits, also with random effects, as the last Newton step doubles the digits of the
        # mode. The truncation error grows with the square of the step in units of the parameter's conditional standard
        # deviation, and the rounding error with its inverse. Unsuitable steps are repeated at 3e-4 of that unit.
        sizes = np.maximum(np.abs(theta), 1.0)
        steps = 3e-5 * sizes
        found = differences(lambda x: self.value_and_grad(x)[1], theta, steps)
        with np.errstate(all="ignore"):
            self._moves = 1 / np.sqrt(np.maximum(np.diag(found), 0))
            ratio = steps / self._moves
        if (off := np.flatnonzero((ratio > self._longest_step) | (ratio < 1e-5))).size:
            steps[off] = np.minimum(3e-4 * self._moves, 1e-2 * sizes)[off]
            found[off] = differences(lambda x: self.value_and_grad(x)[1], theta, steps, off)
        return found, steps

    def _error(self, columns: np.ndarray, theta: np.ndarray, steps: np.ndarray) -> float:
        """Return the largest error of :meth:`_differences`, in units of the Hessian's diagonal."""
        # A step twice as long, in all parameters at once, has at least four times the truncation error; asymmetry
        # shows the rounding error.
        along = steps / np.sqrt(max(1, steps.size))
        above, below = (self.value_and_grad(theta + by)[1] for by in (2 * along, -2 * along))
        scale = diagonal_scale(columns)
        with np.errstate(all="ignore"):
            errors = np.abs((above - below) / 4 - columns.T @ along) / scale / np.linalg.norm(along * scale) / 3
            asymmetry = np.abs(columns - columns.T) / np.outer(scale, scale)
        return float(np.maximum(errors.max(initial=0), asymmetry.max(initial=0)))

    def parameters(self, theta):
        """Return all parameters in the user's structure, as NumPy numbers."""
        return self.tree(self.layout.numbers(self._vector(theta), self.layout.u))

    # Marks ------------------------------------------------------------------------------------------------------------

    def report(self, theta) -> dict[str, np.ndarray]:
        """Return the quantities that the likelihood passes to :func:`report`, by name."""
        theta = self._vector(theta)
        found = reports_of(lambda: self.f(self.tensor(theta), self.tensor(self._effects(theta))))
        return {name: np.asarray(ops.convert_to_numpy(x)) for name, x in found.items()}

    def simulate(self, theta, seed: int | None = None, *, effects: bool = True) -> dict[str, np.ndarray]:
        """Draw observations from the model; the likelihood marks them with :func:`observed`.

        Args:
            seed: an integer, or None for a random one.
            effects: True also draws the random effects, False keeps them at their mode.

        Returns:
            The observations by name.

        Raises:
            ArgumentError: no observations are marked; see :func:`observed`.
        """
        theta = self._vector(theta)
        return validation.simulated(self, theta, self._effects(theta), seed, effects)

    def residuals(self, theta, method: str = "cdf", seed: int | None = None):
        """One-step-ahead residuals of :func:`observed` observations, independent standard normal for a correct model.

        A residual is the normal quantile of the probability of an observation given the earlier ones, with random
        effects integrated out. For counts it is taken at a random point between the probabilities below the count and
        up to it (Thygesen, Albertsen, Berg, Kristensen & Nielsen 2017).

        Args:
            method: ``"cdf"`` takes probabilities from the Laplace approximation, and exact ones without random effects;
                ``"gaussian"`` is exact where observations and random effects are jointly normal; ``"slope"`` treats
                each observation as normal given the earlier ones, from the value and slope of its log density, and
                ``"mode"`` from the mode and the curvature there; ``"integral"`` integrates the density, or sums it over
                integers: it is the most accurate with random effects, and the slowest. TMB calls them ``cdf``,
                ``fullGaussian``, ``oneStepGaussianOffMode``, ``oneStepGaussian`` and ``oneStepGeneric``.
            seed: of the random points.

        Returns:
            An array, NaN where observations are missing or have no mode; a dict by name if several are marked.

        Raises:
            ArgumentError: an unknown method; no observations are marked; see :func:`observed`.
        """
        if method not in validation.METHODS:
            *others, last = validation.METHODS
            raise ArgumentError(
                f"`residuals`: `method` must be {', '.join(others)} or {last}; got {method}.", argument="method"
            )
        theta = self._vector(theta)
        found = validation.residuals(self, theta, self._effects(theta), method, np.random.default_rng(seed))
        return next(iter(found.values())) if len(found) == 1 else found

    def consistency(self, theta, draws: int = 100, seed: int | None = None) -> validation.Consistency:
        """Check the approximation: gradients at data drawn from the model have mean 0 if it is right.

        Args:
            draws: the number of simulated data sets, more than there are parameters.
            seed: an integer, or None for a random one.

        Returns:
            ``pvalue`` of a mean of 0; ``bias`` of the estimates, to first order; ``gradients``, a row per data set.

        Raises:
            ArgumentError: too few draws; no observations are marked; see :func:`observed`.
        """
        theta = self._vector(theta)
        if draws <= theta.size:
            raise ArgumentError(
                f"`consistency`: `draws` must be more than {theta.size}, the parameters; got {draws}.", argument="draws"
            )
        return validation.consistency(self, theta, self._effects(theta), draws, seed)

    def delta(self, g: Callable, theta, covariance) -> tuple[np.ndarray, np.ndarray]:
        """Return the value of ``g``, a function of all parameters, and its covariance by the delta method."""

        def flat(theta, u):
            return ops.reshape(g(self.tree(self.layout.vector(theta, u))), (-1,))

        return self.delta_of(flat, theta, covariance)

    def delta_of(self, g: Callable, theta, covariance) -> tuple[np.ndarray, np.ndarray]:
        """:meth:`delta` of a function of the estimated parameters and the random effects to a vector."""
        theta = self._vector(theta)
        given = self.tensor(theta), self.tensor(self._effects(theta))
        found = g(*given), *functional.jacobian(g, given)
        value, *derivatives = (np.asarray(ops.convert_to_numpy(x)) for x in found)
        return value, self.propagated(theta, covariance, *derivatives)

    def propagated(self, theta, covariance, by_theta: np.ndarray, by_u: np.ndarray) -> np.ndarray:
        """Return the covariance, by the delta method, of quantities with these derivatives."""
        return by_theta @ covariance @ by_theta.T

    def _effects(self, theta) -> np.ndarray:
        return self.layout.u

    def check(self, theta) -> None:
        """Raise if the likelihood has no finite value.

        Raises:
            InferenceError: the value is NaN or infinite; the random effects have no mode.
        """
        try:
            value = self.value(theta)
        except (GradientError, ShapeError, ArgumentTypeError):  # no scalar
            self._check_number(theta, self.layout.u)
            raise
        if not np.isfinite(value):
            self._check_number(theta, self.layout.u)

    def _check_number(self, theta, u) -> None:
        """Run the likelihood uncompiled; raise an error if the value is not finite.

        Raises:
            InferenceError: names the parameters and, on NumPy, the first operation with a result that is not finite.
        """
        found = self.f(self.tensor(theta), self.tensor(u))
        many = ops.is_tensor(found) and ops.size(found) != 1
        if many or not _checks.is_numeric(found):
            raise (ShapeError if many else ArgumentTypeError)(
                "the likelihood must be one number; got {found}.",
                argument="nll",
                hint="add up the observations' with {sum}" if many else "does it end with `return`?",
                found=_checks.describe(found),
                sum=Code("`ops.sum()`", "`sum()`"),
            )
        value = float(ops.reshape(found, ()))
        if np.isfinite(value):
            return
        at = f"{value} at {shown(self.layout.names, self.layout.numbers(theta, u))}"
        operation = nonfinite_from(self.f, theta, u) if self._on_numpy else None
        raise InferenceError(
            f"the likelihood is {at}" + (f": `{operation}` is the first to give no number." if operation else "."),
            argument="start",
            hint="start where it is a number, or write it in logarithms",
        )


def differences(gradient: Callable, theta: np.ndarray, steps: np.ndarray, of=None) -> np.ndarray:
    """Return central differences of a gradient, a row for each parameter or for each index in ``of``."""
    found = []
    for k in range(theta.size) if of is None else of:
        ends = np.stack([theta, theta])
        ends[:, k] += np.array([1, -1]) * steps[k]
        above, below = map(gradient, ends)
        found.append((above - below) / (ends[0, k] - ends[1, k]))
    return np.array(found) if found else np.zeros((0, 0))


def symmetrised(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2


def diagonal_scale(hessian: np.ndarray) -> np.ndarray:
    """Return the square roots of a Hessian's diagonal, 1 where it is 0."""
    diagonal = np.abs(np.diag(hessian))
    return np.sqrt(np.where(diagonal > 0, diagonal, 1.0))


def smallest_eigenvalue(hessian: np.ndarray) -> float:
    """Return the smallest eigenvalue of a Hessian scaled to a diagonal of 1; NaN where it is not finite."""
    if not np.isfinite(hessian).all():
        return np.nan
    scale = diagonal_scale(hessian)
    return float(np.linalg.eigvalsh(hessian / np.outer(scale, scale)).min(initial=1.0))

"""The Laplace approximation of a likelihood with random effects, with its exact gradient.

The random effects are integrated out around their mode: the value is the joint negative log-likelihood there plus half
the log determinant of its Hessian, which has a sparse factor. The gradient comes from the implicit function theorem,
not from differentiating Newton's steps: with ``H`` the Hessian by the random effects ``u``, and ``W`` its inverse on
its pattern,

    l(theta) = f(u, theta) + sum(W * H(u, theta)) / 2      has the gradient of l by theta at fixed u and W,
                                                           minus that of a . f_u(u, theta), H a = l_u

(Skaug & Fournier 2006; Kristensen, Nielsen, Berg, Skaug & Bell 2016, TMB).
"""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable

import numpy as np

from .. import _scipy, functional, ops
from ..errors import ArgumentError, InferenceError, JitError
from ..functional import SparseHessian
from ..functional.sparsity.laplace import Programs, Shared
from ..functional.transformations import vmap
from ..scipy._tensors import constant_like
from ..scipy.sparse import _ops as sparse_ops
from ..scipy.sparse import _pattern
from ..scipy.sparse._factor import Factor
from .likelihood import Likelihood, differences, explained, symmetrised
from .parameters import Layout, Parameters, check_likelihood, function_of, listed, made_by, shown
from .quadrature import NEGLIGIBLE, Domain, domain

MAX_STEPS, MAX_HALVINGS, MAX_RIDGES = 100, 40, 24
"""The most steps of a search for the mode, halvings of a step, and ridges to make a Hessian positive definite."""
MODE_TOLERANCE = 1e-18  # remaining decrease of the joint likelihood: the mode is then within 1e-9 standard deviations
VALUE_NOISE = 1e-8  # relative noise of a value: below it the slope decides on a step (Hager & Zhang 2005)
SLOW_STEP = 0.05  # remaining part of the decrease above which a step with an old factor is too slow


def laplace(f: Callable, parameters, *, random, map=None, transforms=None, profile=(), integrate=False) -> Laplace:
    """Integrate random effects out of a negative log-likelihood by the Laplace approximation.

    Args:
        f: the joint negative log-likelihood: a function of the parameters, in the form of ``parameters``, to a scalar.
        parameters: the starting values: a dict of tensors, numbers or lists, also nested, all of double precision.
        random: the names of the random effects, a string or a tuple of them.
        map: a dict from names of parameters to None, which fixes them at their start, or to a label for each element:
            elements with the same label share one parameter, which starts as the first; None fixes.
        transforms: a dict from names of parameters to transforms of :mod:`gradops.inference.transforms`. The model's
            parameter is then unconstrained, is called "name (free)" and starts where ``parameters`` says; ``f`` takes
            the transformed one.
        profile: the names of parameters that are maximised with the random effects and not integrated out, as in TMB:
            with many fixed effects few parameters are then left to estimate.
        integrate: True integrates over each random effect by quadrature instead of the approximation; the random
            effects must be independent of each other given the parameters. The nodes are centred at the mode and
            extend to 20 standard deviations; a pair of numbers is the interval to integrate over.

    Returns:
        A :class:`Laplace`.

    Raises:
        ArgumentError: an unknown name in ``random``, ``map``, ``transforms`` or ``profile``; no random effect;
            ``integrate`` with random effects that depend on each other, or with ``profile``; a start outside of its
            transform's range.
        ArgumentTypeError: a parameter that is not a tensor or number; a library without double precision.
        InferenceError: the likelihood has no curvature in a random effect, for any values.
        GradientError: ``f`` does not return a scalar.

    Gradient:
        :meth:`Laplace.value_and_grad` returns the exact one.

    Examples:
        Groups with means of their own: the model is normal, so that the approximation is exact.

        >>> import numpy as np
        >>> from gradops import ops
        >>> from gradops.inference import laplace
        >>> group = np.array([0, 0, 1, 1, 2, 2])
        >>> y = np.array([1.0, 1.4, 3.1, 2.7, -0.2, 0.4])
        >>> def joint(p):
        ...     noise = ops.sum(0.5 * ((y - p["mean"] - p["u"][group]) / 0.3) ** 2) + 6 * np.log(0.3)
        ...     return noise + ops.sum(0.5 * p["u"] ** 2 / ops.exp(2 * p["logsd"]) + p["logsd"])
        >>> model = laplace(joint, {"mean": 0.0, "logsd": 0.0, "u": np.zeros(3)}, random="u")
        >>> value, gradient = model.value_and_grad(model.start)
        >>> print(round(value, 4), gradient.round(4))
        1.3436 [-4.0191 -6.1583]

    See Also:
        :func:`gradops.inference.fit` for estimates with standard errors.
    """
    check_likelihood("laplace", "f", f)
    found = Parameters(parameters, random, map, transforms=transforms, profile=profile)
    return Laplace(function_of(f, found), found.layout, found.tensor, found.tree, domain(integrate))


@made_by("laplace")
class Laplace(Likelihood):
    """A negative log-likelihood with the random effects integrated out; made by :func:`laplace`.

    Attributes:
        start: the starting values of the estimated parameters, a vector.
        names: their names.
        random_names: the names of the random effects.
        u: the random effects from which the next search for their mode starts.

    Examples:
        A random effect with variance 1, observed with noise of variance 1: its mode is half of the observation.

        >>> from gradops import ops
        >>> from gradops.inference import laplace
        >>> def joint(p):
        ...     return (3.0 - p["a"] - p["u"]) ** 2 / 2 + p["u"] ** 2 / 2
        >>> model = laplace(joint, {"a": 1.0, "u": 0.0}, random="u")
        >>> print(model.mode([1.0]), model.random_sd([1.0]).round(4), model.hessian([1.0]).round(4))
        [1.] [0.7071] [[0.5]]

    See Also:
        :func:`laplace`.
    """

    by_differences = True
    _longest_step = 1e-2  # larger than the base class's, as each gradient needs a search

    def __init__(self, f: Callable, layout: Layout, tensor: Callable, tree: Callable, integrate: Domain | None = None):
        super().__init__(f, layout, tensor, tree)
        if not layout.u.size:
            raise ArgumentError("`random`: there is no random effect to integrate out.", argument="random")
        self.random_names = layout.names_of_u
        self.u = layout.u.copy()
        self._factor: Factor | None = None  # of the last search
        self._mode: tuple[bytes, float] | None = None  # its parameters, and the joint value
        self._left = self.u  # the remaining gradient by the random effects at the mode
        self._slope: tuple = (None, None)  # the same mode, and the gradient there
        start, u = tensor(layout.theta), tensor(layout.u)
        try:
            self._programs = self._derivatives(start, u)
        except Exception:
            self._check_number(layout.theta, layout.u)
            raise
        shape = self._programs.hessian.pattern.shape
        indices = self._programs.hessian.pattern.tocoo()
        self._pattern, _ = _pattern.coordinate_pattern(shape, indices.row, indices.col)
        self._diagonal = self._pattern.diagonal
        both = layout.integrated[indices.row] & layout.integrated[indices.col]
        self._integrated = np.flatnonzero(both)
        number = np.cumsum(layout.integrated) - 1
        self._count = int(layout.integrated.sum())
        self._inner, _ = _pattern.coordinate_pattern(
            2 * (self._count,), number[indices.row[both]], number[indices.col[both]]
        )
        flat = [name for name, place in zip(self.random_names, self._diagonal) if place == self._pattern.count]
        if flat:
            raise InferenceError(
                f"`random`: the likelihood has no curvature by {listed(flat)}, whatever the values.",
                argument="random",
                hint="give it a distribution in the likelihood, or fix it by `map`",
            )
        if not np.isfinite(self._joint_gradient(start, layout.u)[0]):
            self._check_number(layout.theta, layout.u)
        self._domain = integrate
        if integrate is not None:
            self._check_independent(indices)
            self._integral = self._compiled(
                functional.value_and_grad(functools.partial(self._integrated_out, integrate))
            )

    def _check_independent(self, pattern) -> None:
        """Raise if random effects depend on each other."""
        if self._count < len(self.random_names):
            raise ArgumentError("`integrate`: profiled parameters are not integrated out.", argument="profile")
        # other libraries than NumPy have a dense pattern, so look at the values
        values = self._programs.elements(self.tensor(self.layout.theta), self.tensor(self.layout.u))
        both = np.flatnonzero((pattern.row != pattern.col) & (ops.convert_to_numpy(values) != 0))
        if both.size:
            names = [self.random_names[k] for k in sorted((pattern.row[both[0]], pattern.col[both[0]]))]
            raise ArgumentError(
                f"`integrate`: {listed(names)} depend on each other given the parameters: "
                "each random effect is integrated over by itself.",
                argument="integrate",
                hint="the Laplace approximation, without `integrate`, and `importance()` as its check",
            )

    def _integrated_out(self, domain: Domain, theta, places, scales):
        """Return minus the log of the integrals over the random effects; ``places`` and ``scales`` set their nodes."""
        z, log_weights, before, within = (constant_like(x, theta) for x in domain.rule)
        by_u = vmap(functional.grad(lambda u: self.f(theta, u)))
        slopes = by_u(places + ops.expand_dims(z, 1) * scales) * scales
        start = before @ slopes
        counts = start < NEGLIGIBLE
        rises = ops.where(counts, start + within @ slopes, 0.0)
        terms = ops.where(counts, ops.expand_dims(log_weights, 1) - rises, -10 * NEGLIGIBLE)
        logs = ops.logsumexp(terms, 0)
        return self.f(theta, places) - ops.sum(logs + ops.log(scales))

    def explain(self) -> str:
        return "\n".join(map(explained, self._programs.compiled()))

    def _derivatives(self, theta, u) -> Programs | Shared:
        if self._on_numpy:
            with contextlib.suppress(JitError):
                return Shared(self.f, theta, u)
        return Programs(self.f, SparseHessian(self.f, (theta, u), 1), self._compiled)

    # The mode ---------------------------------------------------------------------------------------------------------

    def _newton(self, theta: np.ndarray) -> tuple[float, np.ndarray, Factor]:
        """Find the mode of the random effects; return the joint value, the mode, and the factor of the Hessian there.

        Steps use the factor of an earlier step or search as long as they converge fast. Changes of the gradient since
        then correct that factor, as in L-BFGS (Nocedal 1980).

        Raises:
            InferenceError: there is no mode, or the search did not find it.
        """
        given = self.tensor(theta)
        u, factor = self.u, self._factor
        value, gradient = self._joint_gradient(given, u)
        if factor is not None and self._mode == (theta.tobytes(), value):
            return value, u, factor
        if not _are_finite(value, gradient):
            u, factor = self.layout.u, None
            value, gradient = self._joint_gradient(given, u)
            if not _are_finite(value, gradient):
                raise self._failed("is not a number", theta, u)
        if quadratic := self._programs.is_quadratic:
            factor = None  # its own factor holds for every u, so that one step suffices
        fall, near, here, ridge = np.inf, False, quadratic, False  # here: the factor is of the Hessian at u
        seen: list[tuple] = []  # steps since then, changes of the gradient, their products
        for _ in range(MAX_STEPS):
            if factor is None or near:
                if factor is None or not here:
                    values = ops.convert_to_numpy(self._programs.elements(given, self.tensor(u)))
                    factor, ridge = self._factored(values, theta)
                    here, seen = True, []
                if near and not ridge:
                    self.u, self._factor = u, factor
                    self._mode, self._left = (theta.tobytes(), value), gradient
                    return value, u, factor
            step = -_solved(factor, seen, gradient)
            before, fall = fall, -float(gradient @ step)
            if not ridge and fall <= 1e-20:
                near = True
                continue
            rate = fall / before if 0 < before < np.inf else 1.0
            if not here and (rate > SLOW_STEP and before < np.inf):
                factor, fall = None, np.inf
                continue
            near = not ridge and fall * (fall if here else rate) < MODE_TOLERANCE  # predicted decrease after this step
            for halving in range(MAX_HALVINGS if here else 1):
                moved = u + step * 0.5**halving
                new, new_gradient = self._joint_gradient(given, moved)
                # Values can have fewer digits than slopes, as quantiles of probabilities near 1 do.
                is_flat = (
                    new <= value + VALUE_NOISE * (1 + abs(value)) and abs(float(new_gradient @ step)) <= 0.1 * fall
                )
                falls = new <= value - 1e-4 * fall * 0.5**halving + 1e-11 * (1 + abs(value))
                if (falls or is_flat) and _are_finite(new, new_gradient):
                    break
            else:
                if here:
                    raise self._failed("does not fall along Newton's step", theta, u)
                factor, fall, near = None, np.inf, False
                continue
            near = near and (halving == 0 or fall < 1e-12 * (1 + abs(value)))  # below the noise of the value
            if ridge and halving == 0 and fall <= 1e-12:
                raise self._curvature_error(values, theta)
            change = new_gradient - gradient
            product = float(change @ (moved - u))
            if product > 0 and not quadratic:
                seen.append((moved - u, change, product))
            u, value, gradient, here = moved, new, new_gradient, quadratic
            if ridge or halving:
                factor, fall = None, np.inf
        if ridge:
            raise self._curvature_error(values, theta)
        raise self._failed(f"has no minimum after {MAX_STEPS} steps", theta, u)

    def _joint_gradient(self, theta, u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self._programs.value_and_gradient(theta, self.tensor(u))
        return float(value), np.asarray(ops.convert_to_numpy(gradient))

    def _factored(self, values: np.ndarray, theta) -> tuple[Factor, bool]:
        """Return the factor of the Hessian and whether it needed a ridge to be positive definite."""
        ridge = 0.0
        scale = max(float(np.abs(values[self._diagonal]).mean()), 1e-8)
        for k in range(MAX_RIDGES):
            found = sparse_ops.cholesky(self._pattern, values)
            if found is not None:
                return found, ridge > 0
            grown = 1e-4 * scale * 4.0**k
            values = values.copy()
            values[self._diagonal] += grown - ridge
            ridge = grown
        raise self._curvature_error(values, theta)

    def _failed(self, what: str, theta, u) -> InferenceError:
        k = int(np.argmax(np.abs(self._joint_gradient(self.tensor(theta), u)[1])))
        return InferenceError(
            f"the likelihood by the random effects {what} at {shown(self.names, theta)}; the steepest is "
            f"{self.random_names[k]} = {u[k]:.6g}."
        )

    def _curvature_error(self, values, theta) -> InferenceError:
        weak = np.argsort(values[self._diagonal])[:3]
        return InferenceError(
            "the likelihood has no positive curvature by the random effects at "
            f"{shown(self.names, theta)}; the least is by {listed([self.random_names[k] for k in weak])}.",
            hint="a random effect needs a distribution, and levels that the data tell apart",
        )

    # Value and gradient -----------------------------------------------------------------------------------------------

    def _integrated_factor(self, factor: Factor) -> Factor:
        """Return the factor of the Hessian by the effects that are integrated out, from that by all effects."""
        if self._count == len(self.random_names):
            return factor
        found = sparse_ops.cholesky(self._inner, factor.values[self._integrated])
        assert found is not None  # a principal submatrix of a positive definite matrix
        return found

    def value(self, theta) -> float:
        """Return the approximate negative log-likelihood, NaN if the random effects have no mode.

        Warns:
            RuntimeWarning: there is no mode; names the parameters and the reason.
        """
        return self._evaluated(theta, False)[0]

    def value_and_grad(self, theta) -> tuple[float, np.ndarray]:
        """Return the value and its gradient with respect to the estimated parameters."""
        return self._evaluated(theta, True)

    def _evaluated(self, theta, wants_gradient: bool):
        theta = self._vector(theta)
        try:
            value, u, factor = self._newton(theta)
        except InferenceError as error:
            warnings.warn(str(error), RuntimeWarning, stacklevel=3)
            return np.nan, np.full(theta.shape, np.nan)
        if self._domain is not None:
            places = self._domain.places(u, 1 / np.sqrt(factor.values[self._diagonal]))
            value, gradient = self._integral(*map(self.tensor, (theta, *places)))
            return float(value), np.array(ops.convert_to_numpy(gradient))
        if self._count:
            value += self._integrated_factor(factor).logdet / 2 - self._count * np.log(2 * np.pi) / 2
        if not wants_gradient:
            return value, None
        if self._slope[0] is not self._mode:
            self._slope = self._mode, self._gradient(theta, u, factor)
        return value, self._slope[1].copy()

    def _gradient(self, theta, u, factor: Factor) -> np.ndarray:
        weights = np.zeros(self._pattern.count)
        if self._count:
            weights[self._integrated] = self._integrated_factor(factor).inverse(np.zeros((self._inner.count, 0)))
        weights = self.tensor(weights)
        if self._programs.is_quadratic:  # a Newton step is exact, and nothing else moves with the mode
            u = u - factor.solve(self._left[:, None])[:, 0]
            by_theta = self._programs.theta_gradient(self.tensor(theta), self.tensor(u), weights, None, None)
        else:
            given = self.tensor(theta), self.tensor(u), weights
            by_u, whole = self._programs.mode_gradient(*given, self.tensor(self._left))
            moved = factor.solve(np.asarray(ops.convert_to_numpy(by_u))[:, None])[:, 0]
            by_theta = self._programs.theta_gradient(*given, self.tensor(moved), whole)
        return np.array(ops.convert_to_numpy(by_theta))

    def hessian(self, theta) -> np.ndarray:
        """Return the second derivatives, by central differences of the exact gradient."""
        return symmetrised(self._differences(self._vector(theta))[0])

    def information(self, theta) -> np.ndarray:
        """Return the second derivatives for standard errors, which are :meth:`hessian`."""
        return self.hessian(theta)

    # Results at an estimate -------------------------------------------------------------------------------------------

    def mode(self, theta) -> np.ndarray:
        """Return the random effects that minimise the joint likelihood, in the order of ``random_names``.

        Raises:
            InferenceError: there is no minimum.
        """
        return self._newton(self._vector(theta))[1]

    def parameters(self, theta):
        """Return all parameters in the user's structure, random effects at their mode, as NumPy numbers."""
        theta = self._vector(theta)
        return self.tree(self.layout.numbers(theta, self.mode(theta)))

    def _joint(self, theta) -> tuple:
        """Return the Hessian's factor by the random effects, and its columns by the estimated parameters."""
        # Differences have some 10 digits here, as no step needs a search for the mode.
        _, u, factor = self._newton(theta)
        steps = np.minimum(1e-5 * np.maximum(np.abs(theta), 1.0), 0.01 * self._moves)
        found = differences(lambda x: self._joint_gradient(self.tensor(x), u)[1], theta, steps)
        return factor, found.T.reshape(u.size, theta.size)

    def random_sd(self, theta, covariance=None) -> np.ndarray:
        """Return the standard deviations of the random effects, as a vector.

        Args:
            covariance: of the estimated parameters, to include their uncertainty; without it they count as known.
        """
        theta = self._vector(theta)
        factor, mixed = self._joint(theta)
        found = factor.inverse(np.zeros((self._pattern.count, 0)))[self._diagonal]
        if covariance is not None:
            moved = factor.solve(mixed)
            found = found + np.einsum("ij,jk,ik->i", moved, covariance, moved)
        return np.sqrt(found)

    def drawn(self, theta, moved: np.ndarray, rng) -> np.ndarray:
        """Draw random effects given the parameters ``theta + moved``, a column for each draw."""
        factor, mixed = self._joint(theta)
        u = self.mode(theta)[:, None] - factor.solve(mixed @ moved)
        return u + factor.spread(rng.standard_normal(u.shape))

    def precision(self, theta, hessian=None):
        """Return the joint precision matrix of random effects, which come first, and estimated parameters.

        Args:
            hessian: of the approximate likelihood; by default :meth:`hessian`.

        Returns:
            A SciPy CSC matrix.
        """
        theta = self._vector(theta)
        factor, mixed = self._joint(theta)
        hessian = self.hessian(theta) if hessian is None else hessian
        corner = hessian + mixed.T @ factor.solve(mixed)
        blocks = [[self._pattern.scipys(factor.values), mixed], [mixed.T, corner]]
        return _scipy.sparse.block_array(blocks, format="csc")

    def importance(self, theta, draws: int = 1000, seed: int | None = None) -> tuple[float, float]:
        """Return the negative log-likelihood by importance sampling, without the approximation, and its standard error.

        Random effects are drawn in antithetic pairs around their mode, from the normal distribution of the Laplace
        approximation (Skaug & Fournier 2006). A :meth:`value` several standard errors away is a poor approximation.

        Args:
            draws: the number of draws, even.
            seed: of NumPy's generator.

        Raises:
            ArgumentError: ``draws`` is not even, or less than 4; a model with a profile.
            InferenceError: the random effects have no mode.
        """
        if self._count < len(self.random_names):
            raise ArgumentError("`importance`: profiled parameters are not integrated out.", argument="profile")
        if draws % 2 or draws < 4:
            raise ArgumentError(
                f"`importance`: `draws` must be an even number, at least 4; got {draws}.", argument="draws"
            )
        theta = self._vector(theta)
        value, u, factor = self._newton(theta)
        z = np.random.default_rng(seed).standard_normal((u.size, draws // 2))
        moved, given = factor.spread(z), self.tensor(theta)
        falls = [[value - self._joint_gradient(given, u + sign * by)[0] for by in moved.T] for sign in (1, -1)]
        logs = np.array(falls) + np.sum(z * z, 0) / 2
        top = logs.max()
        weights = np.exp(logs - top).mean(0)
        mean = weights.mean()
        found = value + factor.logdet / 2 - u.size * np.log(2 * np.pi) / 2 - top - np.log(mean)
        return float(found), float(weights.std(ddof=1) / mean / np.sqrt(weights.size))

    def propagated(self, theta, covariance, by_theta: np.ndarray, by_u: np.ndarray) -> np.ndarray:
        """Return the covariance, by the delta method, of quantities with these derivatives, also by random effects."""
        factor, mixed = self._joint(theta)
        solved = factor.solve(by_u.T)
        whole = by_theta - solved.T @ mixed
        return by_u @ solved + whole @ covariance @ whole.T

    def check(self, theta) -> None:
        """Raise if the random effects have no mode."""
        self.mode(theta)

    def _effects(self, theta) -> np.ndarray:
        return self.mode(theta)


def _are_finite(value: float, gradient: np.ndarray) -> bool:
    return math.isfinite(value) and bool(np.isfinite(gradient).all())


def _solved(factor: Factor, seen: list[tuple], gradient: np.ndarray) -> np.ndarray:
    """Solve with the factor, corrected by the L-BFGS recursion over the steps since it was computed."""
    left, parts = gradient, []
    for step, change, product in reversed(seen):
        parts.append(float(step @ left) / product)
        left = left - parts[-1] * change
    found = factor.solve(left[:, None])[:, 0]
    for (step, change, product), part in zip(seen, reversed(parts)):
        found = found + (part - float(change @ found) / product) * step
    return found


Likelihood.with_effects = Laplace

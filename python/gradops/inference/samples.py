"""Posterior densities for samplers, a No-U-Turn sampler, and its draws."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _display, _names, _tree
from .._display import track
from ..errors import ArgumentError, InferenceError
from .likelihood import Likelihood
from .parameters import Parameters, check_likelihood, function_of, listed, made_by, shown, titles_of
from .random_effects import Laplace

MAX_TREE_DEPTH = 10
"""The most doublings of a trajectory, which then has 1,023 steps; Stan's default."""
MAX_ENERGY_ERROR = 1000.0
"""The loss of energy above which a trajectory counts as divergent; Stan's default."""


def posterior(nlp: Callable, start, data=None, *, random=(), map=None, transforms=None) -> Posterior:
    """Return a posterior density of unconstrained parameters, with its gradient, for samplers.

    Args:
        nlp: the negative logarithm of likelihood times prior, up to a constant. It takes the parameters, in the form
            of ``start``, and ``data`` if that is given, and returns a scalar.
        start: a dict of tensors, numbers or lists, see :func:`laplace`.
        data: the second argument of ``nlp``, passed on unchanged.
        random, map: see :func:`laplace`; random effects are integrated out.
        transforms: see :func:`laplace`. The density is that of the unconstrained parameters: it includes the Jacobians
            of the transforms.

    Returns:
        A :class:`Posterior`.

    Raises:
        ArgumentError, ArgumentTypeError, InferenceError: see :func:`laplace`; there are no parameters.

    Gradient:
        :meth:`Posterior.logp_and_grad` returns it; :meth:`Posterior.density` is differentiable by its argument.

    Examples:
        A Poisson rate with a gamma prior has a known posterior:

        >>> import numpy as np
        >>> from gradops import ops
        >>> from gradops.inference import posterior, transforms
        >>> y = np.array([3.0, 1.0, 4.0])
        >>> def nlp(p):
        ...     return 4 * p["rate"] - (y.sum() + 1) * ops.log(p["rate"])
        >>> target = posterior(nlp, {"rate": 1.0}, transforms={"rate": transforms.positive})
        >>> value, gradient = target.logp_and_grad(np.zeros(1))
        >>> print(value, gradient)
        -4.0 [6.]
        >>> draws = target.sample(500, tune=500, chains=2, seed=1)
        >>> bool(abs(draws["rate"].mean() - 10 / 4) < 0.2)
        True

    See Also:
        :func:`gradops.inference.fit`.
    """
    check_likelihood("posterior", "nlp", nlp, data)
    parameters = Parameters(start, random, map, transforms=transforms)
    layout = parameters.layout
    if not layout.theta.size:
        raise ArgumentError("`posterior`: there is no parameter: all are fixed or random.", argument="start")
    function = function_of(nlp if data is None else lambda p: nlp(p, data), parameters)

    def joint(theta, u):
        return function(theta, u) - parameters.log_jacobian(layout.vector(theta, u))

    return Posterior(Likelihood.build(joint, layout, parameters.tensor, parameters.tree))


@made_by("posterior")
class Posterior:
    """A density of unconstrained parameters; made by :func:`posterior`.

    nutpie and PyMC's black-box likelihoods take ``logp_and_grad``; blackjax takes ``density`` on JAX.

    Attributes:
        names, start: names and starting values of the unconstrained parameters.

    Examples:
        >>> import numpy as np
        >>> from gradops.inference import posterior
        >>> target = posterior(lambda p: (p["a"] - 1) ** 2 / 2, {"a": 0.0})
        >>> print(target.names, target.logp(np.array([2.0])), target.logp_and_grad(np.array([2.0]))[1])
        ['a'] -0.5 [-1.]

    See Also:
        :func:`posterior`.
    """

    def __init__(self, model: Likelihood):
        self.model, self.names, self.start = model, model.names, model.start

    def __repr__(self) -> str:
        return f"<gradops posterior, {self.model._about()}>"

    def _repr_html_(self) -> str:
        return self.model._repr_html_()

    def logp(self, x) -> float:
        """Return the log density at a vector; minus infinity where it is not finite."""
        return self.logp_and_grad(x)[0]

    def logp_and_grad(self, x) -> tuple[float, np.ndarray]:
        """Return the log density and its gradient at a NumPy vector."""
        value, gradient = self.model.value_and_grad(x)
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            return -math.inf, np.zeros_like(gradient)
        return -value, -gradient

    def density(self, x):
        """Return the log density of a tensor as a tensor; the library's own transformations can be applied to it.

        Raises:
            ArgumentError: random effects are integrated out, which runs on NumPy arrays.
        """
        if isinstance(self.model, Laplace):
            raise ArgumentError("`density`: random effects are integrated out; use `logp_and_grad`.", argument="x")
        return -self.model.f(x, self.model.tensor(self.model.layout.u))

    def parameters(self, x):
        """Return the parameters in the user's structure, from unconstrained ones."""
        return self.model.parameters(x)

    def sample(
        self,
        draws: int = 1000,
        *,
        tune: int = 1000,
        chains: int = 4,
        seed: int | None = None,
        progress: bool | None = None,
    ) -> Draws:
        """Draw with the No-U-Turn sampler (Hoffman & Gelman 2014).

        ``tune`` draws before adapt the step size and the scales, which are variances over windows that double in
        length. Points of a trajectory are chosen by multinomial sampling (Betancourt 2017).

        Args:
            draws, tune, chains: the numbers of draws, of draws to tune before, and of chains.
            seed: of NumPy's generator.
            progress: True shows a bar, False none; None shows one after two seconds in a terminal.

        Raises:
            ArgumentError: less than 1 draw or chain, or less than 20 draws to tune.
            InferenceError: the density is not finite at the start.
        """
        if draws < 1 or chains < 1 or tune < 20:
            raise ArgumentError(
                f"`sample`: `draws` and `chains` must be at least 1, `tune` 20; got {draws}, {chains}, {tune}.",
                argument="tune" if tune < 20 else "draws",
            )
        if not np.isfinite(self.logp(self.start)):
            raise InferenceError(f"the density is no number at {shown(self.names, self.start)}.", argument="start")
        seeds = np.random.default_rng(seed).spawn(chains)
        with np.errstate(all="ignore"), track(chains * (tune + draws), "draws", progress) as advance:
            runs = [_chain(self.logp_and_grad, self.start, draws, tune, rng, advance) for rng in seeds]
        points = np.stack([x for x, _ in runs])
        stats = {name: np.stack([found[name] for _, found in runs]) for name in runs[0][1]}
        effects = np.tile(self.model.layout.u, (*points.shape[:2], 1))
        if isinstance(self.model, Laplace):
            still = np.zeros((self.start.size, 1))
            effects = np.array(
                [[self.model.drawn(x, still, rng)[:, 0] for x in chain] for chain, rng in zip(points, seeds)]
            )
        return Draws(self.model, points, effects, stats)


@made_by("Posterior.sample")
class Draws:
    """Draws of parameters: ``draws["name"]`` has the dimensions chains, draws, and those of the parameter.

    Attributes:
        posterior: a dict of the draws of all parameters.
        sample_stats: ``lp``, ``diverging``, ``tree_depth`` and ``step_size`` of each draw; empty for draws of a fit.

    Examples:
        >>> import numpy as np
        >>> from gradops.inference import posterior
        >>> target = posterior(lambda p: (p["a"] ** 2).sum() / 2, {"a": np.zeros(2)})
        >>> draws = target.sample(200, tune=200, chains=2, seed=3)
        >>> print(draws["a"].shape, round(float(target.logp_and_grad(np.ones(2))[1][0])))
        (2, 200, 2) -1
        >>> sorted(draws.summary()["a[0]"])
        ['ess', 'mean', 'r_hat', 'sd']

    See Also:
        :meth:`Posterior.sample`, :meth:`Fit.draws`.
    """

    def __init__(self, model: Likelihood, points: np.ndarray, effects: np.ndarray, stats: dict):
        self.free, self.sample_stats = points, stats
        shape, each = points.shape[:2], zip(np.concatenate(points), np.concatenate(effects))
        forms = [_tree.flatten(model.tree(model.layout.numbers(x, u))) for x, u in each]
        self.posterior: dict[str, np.ndarray] = {}
        for name, column in zip(titles_of(forms[0][1]), zip(*(leaves for leaves, _ in forms))):
            numbers = np.array(column)
            self.posterior[name] = numbers.reshape(*shape, *numbers.shape[1:])

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.posterior:
            like = _names.closest(str(name), list(self.posterior))
            raise ArgumentError(
                f"there are no draws of `{name}`.", argument="name", hint=None if like is None else f"`{like}`"
            )
        return self.posterior[name]

    def summary(self) -> dict[str, dict[str, float]]:
        """Return mean, standard deviation, effective sample size and split R-hat of each element, by name."""
        found = {}
        for name, x in self.posterior.items():
            for at in np.ndindex(x.shape[2:]):
                column = x[(slice(None), slice(None), *at)]
                title = f"{name}[{', '.join(map(str, at))}]" if at else name
                found[title] = {"mean": float(column.mean()), "sd": float(column.std()), **_mixing(column)}
        return found

    def __repr__(self) -> str:
        return f"<gradops draws of {listed(list(self.posterior))}: {self._about()}>"

    def _about(self) -> str:
        chains, draws = self.free.shape[:2]
        return f"{chains} {'chain' if chains == 1 else 'chains'} of {draws}"

    def _repr_html_(self) -> str:
        found = self.summary()
        rows = [
            [name, *(f"{x:.4g}" for x in row.values())] for name, row in list(found.items())[: _display.MAX_SHOWN_ROWS]
        ]
        more = [_display.verbatim(f"[... {len(found) - len(rows)} more]")] if len(found) > len(rows) else []
        return _display.block(
            "draws", self._about(), _display.table(["parameter", "mean", "sd", "ess", "r_hat"], rows), *more
        )

    def to_arviz(self) -> Any:
        """Return the draws as an object of the installed ArviZ: a ``DataTree`` or an ``InferenceData``.

        Raises:
            ImportError: ArviZ is not installed.
        """
        groups = {"posterior": self.posterior}
        if self.sample_stats:
            groups["sample_stats"] = self.sample_stats
        try:
            return importlib.import_module("arviz_base").from_dict(groups)
        except ModuleNotFoundError:
            return importlib.import_module("arviz").from_dict(**groups)


def _mixing(chains: np.ndarray) -> dict[str, float]:
    """Return the effective sample size by Geyer's initial sequence, and R-hat, of split chains (Gelman et al. 2013)."""
    half = chains.shape[1] // 2
    if half < 4:
        return {"ess": math.nan, "r_hat": math.nan}
    halves = np.concatenate([chains[:, :half], chains[:, half : 2 * half]])
    within = halves.var(1, ddof=1).mean()
    whole = within * (half - 1) / half + halves.mean(1).var(ddof=1)
    centred = halves - halves.mean(1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * half)) ** 2
    covariances = np.fft.irfft(spectrum, 2 * half)[:, :half].mean(0) / half
    rho = 1 - (within - covariances * half / (half - 1)) / whole
    pairs = rho[: half // 2 * 2].reshape(-1, 2).sum(1)
    pairs[0] = rho[0] + rho[1]
    ends = np.flatnonzero(pairs < 0)
    monotone = np.minimum.accumulate(pairs[: ends[0]] if ends.size else pairs)
    return {"ess": float(halves.size / max(2 * monotone.sum() - 1, 1e-3)), "r_hat": float(np.sqrt(whole / within))}


# No-U-Turn ------------------------------------------------------------------------------------------------------------


class _State(NamedTuple):
    x: np.ndarray
    momentum: np.ndarray
    logp: float
    gradient: np.ndarray


class _Tree(NamedTuple):
    ends: tuple[_State, _State]
    chosen: _State
    log_weight: float
    momentum: np.ndarray
    """The sum of the momenta of all points."""
    turns: bool
    diverges: bool
    acceptance: float
    points: int


class _Dynamics:
    """Hamiltonian dynamics of a density; the inverse mass matrix holds the variances of the parameters."""

    def __init__(self, density: Callable, rng, size: int):
        self.density, self.rng, self.variances, self.step = density, rng, np.ones(size), 1.0

    def energy(self, state: _State) -> float:
        found = state.logp - 0.5 * float(state.momentum @ (self.variances * state.momentum))
        return found if math.isfinite(found) else -math.inf

    def start(self, x: np.ndarray) -> _State:
        logp, gradient = self.density(x)
        return _State(x, self.rng.standard_normal(x.size) / np.sqrt(self.variances), logp, gradient)

    def leap(self, state: _State, by: float) -> _State:
        momentum = state.momentum + 0.5 * by * state.gradient
        x = state.x + by * self.variances * momentum
        logp, gradient = self.density(x)
        return _State(x, momentum + 0.5 * by * gradient, logp, gradient)

    def turns(self, ends, momentum) -> bool:
        return any(float(momentum @ (self.variances * end.momentum)) <= 0 for end in ends)

    def tree(self, state: _State, side: int, depth: int, origin: float) -> _Tree:
        """Return a trajectory of ``2**depth`` points to one side of a state."""
        if depth == 0:
            new = self.leap(state, side * self.step)
            gain = self.energy(new) - origin
            return _Tree(
                (new, new), new, gain, new.momentum, False, not gain > -MAX_ENERGY_ERROR, math.exp(min(0.0, gain)), 1
            )
        first = self.tree(state, side, depth - 1, origin)
        if first.turns or first.diverges:
            return first
        second = self.tree(first.ends[(side + 1) // 2], side, depth - 1, origin)
        return self.joined(first, second, side, False)

    def joined(self, first: _Tree, second: _Tree, side: int, biased: bool) -> _Tree:
        """Join a tree and the one to its ``side``; ``biased`` prefers points of the second (progressive sampling)."""
        stops = second.turns or second.diverges
        weight = float(np.logaddexp(first.log_weight, second.log_weight))
        chance = second.log_weight - (first.log_weight if biased else weight)
        chosen = second.chosen if not stops and math.log(self.rng.random()) < chance else first.chosen
        ends = (second.ends[0], first.ends[1]) if side < 0 else (first.ends[0], second.ends[1])
        momentum = first.momentum + second.momentum
        return _Tree(
            ends,
            chosen,
            weight,
            momentum,
            stops or self.turns(ends, momentum),
            second.diverges,
            first.acceptance + second.acceptance,
            first.points + second.points,
        )

    def draw(self, x: np.ndarray) -> tuple[_State, _Tree, int]:
        state = self.start(x)
        origin = self.energy(state)
        whole = _Tree((state, state), state, 0.0, state.momentum, False, False, 0.0, 0)
        for depth in range(MAX_TREE_DEPTH):
            side = 1 if self.rng.random() < 0.5 else -1
            whole = self.joined(whole, self.tree(whole.ends[(side + 1) // 2], side, depth, origin), side, True)
            if whole.turns or whole.diverges:
                break
        return whole.chosen, whole, depth + 1

    def first_step(self, x: np.ndarray) -> float:
        """Return a step size at which a single leapfrog step is accepted about as often as not.

        Algorithm 4 of Hoffman & Gelman (2014), with a threshold of 0.8.
        """
        state = self.start(x)
        step, way = 1.0, 0
        for _ in range(60):
            gain = self.energy(self.leap(state, step)) - self.energy(state)
            turn = 1 if gain > math.log(0.8) else -1
            if way not in (0, turn):
                break
            way, step = turn, step * 2.0**turn
        return step


class _Averaging:
    """Nesterov's dual averaging of the log step size, with a target acceptance of 0.8."""

    def __init__(self, step: float):
        self.towards, self.count, self.error, self.mean = math.log(10 * step), 0, 0.0, 0.0

    def next(self, acceptance: float) -> float:
        self.count += 1
        self.error += (0.8 - acceptance - self.error) / (self.count + 10)
        log_step = self.towards - math.sqrt(self.count) / 0.05 * self.error
        self.mean += self.count**-0.75 * (log_step - self.mean)
        return math.exp(log_step)


def _chain(
    density: Callable, start: np.ndarray, draws: int, tune: int, rng, advance: Callable
) -> tuple[np.ndarray, dict]:
    dynamics = _Dynamics(density, rng, start.size)
    x = start.copy()
    dynamics.step = dynamics.first_step(x)
    averaging = _Averaging(dynamics.step)
    ends = _windows(tune)
    seen: list[np.ndarray] = []
    points = np.empty((draws, start.size))
    stats = {
        "lp": np.empty(draws),
        "diverging": np.empty(draws, bool),
        "tree_depth": np.empty(draws, int),
        "step_size": np.empty(draws),
    }
    for k in range(tune + draws):
        state, tree, depth = dynamics.draw(x)
        x = state.x
        advance(1)
        if k >= tune:
            at = k - tune
            points[at] = x
            stats["lp"][at], stats["diverging"][at] = state.logp, tree.diverges
            stats["tree_depth"][at], stats["step_size"][at] = depth, dynamics.step
            continue
        dynamics.step = averaging.next(tree.acceptance / tree.points)
        if k >= ends[0]:
            seen.append(x)
        if k + 1 in ends[1:]:
            n = len(seen)
            dynamics.variances = (np.var(seen, 0, ddof=1) * n + 5e-3) / (n + 5)
            dynamics.step = dynamics.first_step(x)
            averaging, seen = _Averaging(dynamics.step), []
        if k + 1 == tune:
            dynamics.step = math.exp(averaging.mean)
    return points, stats


def _windows(tune: int) -> list[int]:
    """Return the end of the first phase, which adapts no scales, and the ends of windows that double.

    The last tenth of the tuning adapts the step size alone.
    """
    first, last = max(tune // 10, 5), tune - max(tune // 10, 5)
    ends, size = [first], max(tune // 40, 5)
    while ends[-1] + 3 * size <= last:
        ends.append(ends[-1] + size)
        size *= 2
    return [*ends, last]

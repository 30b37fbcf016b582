"""Observations and reported quantities, marked in a likelihood.

Outside of a scope :func:`observed` and :func:`report` do nothing. While a likelihood runs in a scope, observations are
:class:`Observed` objects, which the distributions of :mod:`gradops.scipy.stats` pass to the scope with their
parameters.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from .. import ops
from ..errors import ArgumentError


class Scope:
    """Receiver of observations and reports; this base class ignores them."""

    effects = False
    """Whether random effects are marked like observations, by the names of their parameters."""

    def observe(self, x, name: str):
        return x

    def report(self, quantities: dict) -> None:
        pass


_scope: ContextVar[Scope | None] = ContextVar("scope", default=None)


def scope() -> Scope | None:
    """Return the current scope, or None."""
    return _scope.get()


@contextlib.contextmanager
def observation_scope(given: Scope) -> Iterator[None]:
    """Context manager: ``given`` receives observations and reports."""
    token = _scope.set(given)
    try:
        yield
    finally:
        _scope.reset(token)


def observed(x, name: str = "y"):
    """Mark observations in a likelihood; returns ``x``.

    A fit of marked observations can :meth:`~gradops.inference.Fit.simulate` data and has one-step-ahead
    :meth:`~gradops.inference.Fit.residuals`. For both, the likelihood must be a sum of ``logpdf`` and ``logpmf`` of
    :mod:`gradops.scipy.stats` with the observations as first argument; for simulations the random effects, too. The
    observations may be indexed before, as in ``y[1:]``.

    Args:
        x: a tensor of known numbers.
        name: the key in the results, if several tensors are marked.

    Returns:
        ``x``.

    Raises:
        ArgumentError: in simulations and residuals: several tensors with one name; observations that are in no
            density, or in two.

    Gradient:
        That of ``x``.

    Examples:
        >>> import gradops
        >>> import numpy as np
        >>> from gradops import ops
        >>> from gradops.inference import fit, observed
        >>> from gradops.scipy import stats
        >>> def nll(p, y):
        ...     return -ops.sum(stats.norm.logpdf(observed(y), p["mean"], ops.exp(p["log_sd"])))
        >>> y = np.array([4.1, 5.3, 4.8, 6.0, 5.2])
        >>> found = fit(nll, {"mean": 4.0, "log_sd": 0.0}, y)
        >>> print(found.residuals().round(2), found.simulate(seed=1)["y"].shape)
        [-1.57  0.35 -0.45  1.47  0.19] (5,)
        >>> print(gradops.grad(lambda m: nll({"mean": m, "log_sd": 0.0}, y))(5.0).round(2))
        -0.4

    See Also:
        :func:`gradops.inference.report`.
    """
    found = _scope.get()
    return x if found is None else found.observe(x, name)


def report(**quantities) -> None:
    """Name quantities in a likelihood that a fit then reports with standard errors; they do not change the fit.

    Args:
        quantities: tensors or numbers by name.

    Gradient:
        :meth:`gradops.inference.Fit.report` uses that of each quantity, by the delta method.

    Examples:
        >>> import gradops
        >>> import numpy as np
        >>> from gradops import ops
        >>> from gradops.inference import fit, report
        >>> y = np.array([4.1, 5.3, 4.8, 6.0, 5.2])
        >>> def nll(p):
        ...     report(variance=ops.exp(2 * p["log_sd"]))
        ...     return ops.sum(0.5 * ((y - p["mean"]) / ops.exp(p["log_sd"])) ** 2 + p["log_sd"])
        >>> value, se = fit(nll, {"mean": 4.0, "log_sd": 0.0}).report()["variance"]
        >>> print(value.round(4), se.round(4))  # the variance times the root of 2 / n
        0.3896 0.2464

        It does not affect derivatives:

        >>> print(gradops.grad(nll)({"mean": 4.0, "log_sd": 0.0})["mean"].round(4))
        -5.4

    See Also:
        :func:`gradops.inference.observed`.
    """
    found = _scope.get()
    if found is not None:
        found.report(quantities)


class ReportScope(Scope):
    """A scope that collects reported quantities; later ones replace earlier ones of the same name."""

    def __init__(self):
        self.found: dict[str, Any] = {}

    def report(self, quantities):
        self.found.update(quantities)


def reports_of(run: Callable) -> dict[str, Any]:
    """Return the quantities that ``run()`` reports, by name."""
    found = ReportScope()
    with observation_scope(found):
        run()
    return found.found


class ReplacingScope(Scope):
    """A scope that records the observations, and replaces them by ``numbers`` of the same names, if given."""

    def __init__(self, numbers: dict | None = None):
        self.numbers = numbers
        self.seen: dict[str, Any] = {}

    def observe(self, x, name):
        self.seen[name] = x
        return x if self.numbers is None else ops.reshape(self.numbers[name], x.shape)


class ObservationScope(Scope):
    """A scope that numbers the observations one after the other, and receives each log density of them.

    Attributes:
        names: the name for each number (place).
        seen: for each place that was in a density, whether the observation is a count.
    """

    def __init__(self):
        self.names: list[str] = []
        self.seen: dict[int, bool] = {}
        self._known: dict[str, tuple] = {}

    def observe(self, x, name):
        x = x.value if isinstance(x, Observed) else x if ops.is_tensor(x) else ops.convert_to_tensor(x)
        numbers = np.asarray(ops.convert_to_numpy(x))
        if name not in self._known:
            start = len(self.names)
            self._known[name] = numbers, np.reshape(np.arange(start, start + numbers.size), numbers.shape)
            self.names += [name] * numbers.size
        known, places = self._known[name]
        if known.shape != numbers.shape or not self.same(name, known, numbers):
            raise observation_error(
                name, "marks several tensors: give each a `name`, or mark the whole before parts are taken"
            )
        return Observed(self.value(x, name), places, self)

    def same(self, name: str, known: np.ndarray, numbers: np.ndarray) -> bool:
        return np.array_equal(known, numbers, equal_nan=True)

    def value(self, x, name: str):
        """Return the values that the likelihood sees."""
        return x

    def part(self, value, places: np.ndarray, at) -> Observed:
        """Return the observations ``value[at]``, which have these places."""
        return Observed(value[at], places, self)

    def density(self, family, x: Observed, args: tuple):
        """Return the log density of a family at observations."""
        raise NotImplementedError

    def numbers(self) -> np.ndarray:
        """Return all observations as one vector."""
        return np.concatenate([np.zeros(0), *(numbers.reshape(-1) for numbers, _ in self._known.values())])

    def split(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Split a vector of all places by name, in the shapes of the observations."""
        return {name: values[places] for name, (_, places) in self._known.items()}

    def observed_places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return for each place whether it has an observation, and whether that is a count.

        Raises:
            ArgumentError: no observations are marked; one that is not missing was in no density.
        """
        check_observations(self.names)
        places = range(len(self.names))
        seen, missing = np.isin(places, list(self.seen)), np.isnan(self.numbers())
        missed = np.flatnonzero(~seen & ~missing)
        if missed.size:
            raise observation_error(
                self.names[missed[0]], "is the first argument of no `logpdf` or `logpmf` of `gradops.scipy.stats`"
            )
        return seen & ~missing, np.array([self.seen.get(place, False) for place in places])


class Observed:
    """Observations with their places in a scope; for all but a density they behave like the values."""

    __array_ufunc__ = None  # makes NumPy arrays defer to the operators below

    def __init__(self, value, places: np.ndarray, scope: ObservationScope):
        self.value, self.places, self.scope = value, places, scope

    def log_density(self, family, args: tuple):
        """Return the log density of a family; called by the family's own method."""
        return self.scope.density(family, self, args)

    def __getitem__(self, at) -> Observed:
        return self.scope.part(self.value, self.places[at], at)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(ops.convert_to_numpy(self.value), dtype)

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __getattr__(self, name: str):
        return getattr(self.value, name)


def _plain(name: str) -> Callable:
    def operator(self, *others):
        return getattr(self.value, name)(*(x.value if isinstance(x, Observed) else x for x in others))

    return operator


for _name in "add sub mul truediv floordiv mod pow matmul".split():
    for _side in "r", "":
        setattr(Observed, f"__{_side}{_name}__", _plain(f"__{_side}{_name}__"))
for _name in "neg pos abs lt le gt ge eq ne float int bool".split():
    setattr(Observed, f"__{_name}__", _plain(f"__{_name}__"))


def check_observations(names) -> None:
    """Raise if a likelihood marks no observations."""
    if not names:
        raise ArgumentError("the likelihood marks no observations.", argument="nll", hint="`observed(y)`")


def observation_error(name: str, what: str) -> ArgumentError:
    """Return the error that says what is wrong with the observations of this name."""
    return ArgumentError(f"`observed`: `{name}` {what}.", argument="observed")

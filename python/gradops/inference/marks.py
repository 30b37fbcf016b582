"""Marks in a likelihood: observations, and quantities to report.

Outside of a scope they do nothing. A scope hears of them while a likelihood runs: observations are then
:class:`Observed`, which the distributions of :mod:`gradops.scipy.stats` hand to the scope with their parameters.
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
    """What hears of marks; by itself a likelihood runs in it as without."""

    effects = False
    """True where random effects are marked as observations are, by the names of their parameters."""

    def observe(self, x, name: str):
        return x

    def report(self, quantities: dict) -> None:
        pass


_scope: ContextVar[Scope | None] = ContextVar("scope", default=None)


def scope() -> Scope | None:
    """The scope in which a likelihood runs."""
    return _scope.get()


@contextlib.contextmanager
def marked_by(given: Scope) -> Iterator[None]:
    """A block in which a scope hears of marks."""
    token = _scope.set(given)
    try:
        yield
    finally:
        _scope.reset(token)


def observed(x, name: str = "y"):
    """Observations, marked where a likelihood takes its data; otherwise ``x`` as it is.

    With them a fit can :meth:`~gradops.inference.Fit.simulate` data, and has one-step-ahead
    :meth:`~gradops.inference.Fit.residuals`. Both need observations, and simulations random effects, as the first
    argument of a ``logpdf`` or ``logpmf`` of :mod:`gradops.scipy.stats`, whose sum the likelihood is. They may be
    taken apart before, as ``y[1:]``.

    Args:
        x: a tensor of known numbers.
        name: for the results, where there are several.

    Returns:
        ``x``.

    Raises:
        ArgumentError: while data are drawn or weighed, several tensors of one name; observations that are in no
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
    """Name quantities in a likelihood, which a fit then reports with standard errors; a search does not look at them.

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

        In a derivative it does nothing:

        >>> print(gradops.grad(nll)({"mean": 4.0, "log_sd": 0.0})["mean"].round(4))
        -5.4

    See Also:
        :func:`gradops.inference.observed`.
    """
    found = _scope.get()
    if found is not None:
        found.report(quantities)


class Reports(Scope):
    """A scope that keeps what is reported, later ones in place of earlier."""

    def __init__(self):
        self.found: dict[str, Any] = {}

    def report(self, quantities):
        self.found.update(quantities)


def reports_of(run: Callable) -> dict[str, Any]:
    """What ``run()`` reports."""
    found = Reports()
    with marked_by(found):
        run()
    return found.found


class Replaced(Scope):
    """A scope in which observations are other numbers, by name; without any it keeps those that it sees."""

    def __init__(self, numbers: dict | None = None):
        self.numbers = numbers
        self.seen: dict[str, Any] = {}

    def observe(self, x, name):
        self.seen[name] = x
        return x if self.numbers is None else ops.reshape(self.numbers[name], x.shape)


class Places(Scope):
    """A scope in which observations have places, one after the other, and densities say what they are worth.

    Attributes:
        names: of each place.
        seen: for each place that was in a density whether it is a whole number.
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
            raise refused(name, "marks several tensors: give each a `name`, or mark the whole before parts are taken")
        return Observed(self.value(x, name), places, self)

    def same(self, name: str, known: np.ndarray, numbers: np.ndarray) -> bool:
        return np.array_equal(known, numbers, equal_nan=True)

    def value(self, x, name: str):
        """The numbers that the likelihood sees."""
        return x

    def part(self, value, places: np.ndarray, at) -> Observed:
        """The observations at places, which are ``value[at]``."""
        return Observed(value[at], places, self)

    def density(self, family, x: Observed, args: tuple):
        """The value of a log density at observations."""
        raise NotImplementedError

    def numbers(self) -> np.ndarray:
        """The number of each place."""
        return np.concatenate([np.zeros(0), *(numbers.reshape(-1) for numbers, _ in self._known.values())])

    def split(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Numbers, one for each place, by name and in their shapes."""
        return {name: values[places] for name, (_, places) in self._known.items()}

    def of_seen(self) -> tuple[np.ndarray, np.ndarray]:
        """For each place whether there is an observation, and whether it is a whole number.

        Raises:
            ArgumentError: no observations are marked; some that are not missing were in no density.
        """
        check_marked(self.names)
        places = range(len(self.names))
        seen, missing = np.isin(places, list(self.seen)), np.isnan(self.numbers())
        missed = np.flatnonzero(~seen & ~missing)
        if missed.size:
            raise refused(
                self.names[missed[0]], "is the first argument of no `logpdf` or `logpmf` of `gradops.scipy.stats`"
            )
        return seen & ~missing, np.array([self.seen.get(place, False) for place in places])


class Observed:
    """Numbers with their places among all that a scope has. For all but a density they are the numbers."""

    __array_ufunc__ = None  # NumPy's arrays leave operators to those below

    def __init__(self, value, places: np.ndarray, scope: Places):
        self.value, self.places, self.scope = value, places, scope

    def log_density(self, family, args: tuple):
        """The log density of a family, in whose method this stands."""
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


def check_marked(names) -> None:
    """Raise where a likelihood marks no observations."""
    if not names:
        raise ArgumentError("the likelihood marks no observations.", argument="nll", hint="`observed(y)`")


def refused(name: str, what: str) -> ArgumentError:
    """The error of observations: their name, and what is wrong."""
    return ArgumentError(f"`observed`: `{name}` {what}.", argument="observed")

"""Base class of discrete distributions."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable

import numpy as np

from .... import ops
from ....functional import grad
from ....ops._compose import NUMBERS
from ..._define import refused
from ..._formulas import all_so, exp
from ..._hosted import MAX_CHUNK_TERMS, hosted, hosted_op
from ._arguments import REQUIRED, as_tensor, both, checked, marked, safe
from ._family import POSITIVE, Distribution, standard

COUNTS = POSITIVE
"""The support of counts from 0 on."""


def floor(x):
    """Return the floor; of a Python number as a Python number."""
    return math.floor(x) if type(x) in NUMBERS else ops.floor(x)


def is_whole(x):
    """True where a number is a finite integer."""
    return x % 1 == 0 if type(x) in NUMBERS else (ops.floor(x) == x) & (ops.abs(x) < math.inf)


def is_count(x):
    """True where a number is an integer of at least 0."""
    return both(x >= 0, is_whole(x))


class Discrete(Distribution):
    """A family of distributions of integers.

    Attributes:
        whole: the names of the shapes that are integers, with derivatives of 0.
        counts: the names of the shapes whose validity depends on :func:`is_count` alone.
    """

    defaults = {"loc": 0}
    by_formula = False
    at = "k"
    kind = "E"
    rvs_text = (
        "Random numbers from a seed: quantiles of uniform numbers. They are integers, so a derivative by a shape is an "
        "error, or NaN where a library asks for all derivatives at once; by ``loc`` it is 1."
    )
    gradient = """Exact derivatives by each real shape that is a tensor, at least to second order; 0 outside of the
    support. Derivatives by ``k``, ``loc`` and integer shapes are 0, and so are those of quantiles, which are integers.
    Random numbers have no derivatives by shapes."""
    whole: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    support_ = COUNTS

    # Ops of one family are defined when they are first used: they would take most of the time to import this package.

    @functools.cached_property
    def _searches(self) -> dict[tuple[bool, bool], Callable]:
        """Quantiles, by ``lower, as_log``."""
        return {
            (lower, as_log): hosted(
                f"_{self.name}_{'log_' * as_log}{'ppf' if lower else 'isf'}",
                ("q", *self.shapes),
                _search(self, lower, as_log),
                "The quantile.",
                None,
            )
            for lower, as_log in itertools.product((True, False), (True, False))
        }

    @functools.cached_property
    def _drawn(self) -> Callable:
        return hosted(
            f"_{self.name}_rvs",
            ("q", *self.shapes),
            _search(self, True, False),
            "The quantile as a random number.",
            None,
            **{s: refused(f"scipy.stats.{self.name}.rvs", s, "random numbers that are whole") for s in self._real()},
        )

    @functools.cached_property
    def _entropies(self) -> Callable:
        return _sums(self)

    def _real(self) -> tuple[str, ...]:
        return tuple(name for name in self.shapes if name not in self.whole)

    def _methods(self):
        k = {"k": REQUIRED}
        return {
            "pmf": (k, lambda k, *args: self._density(k, False, *args), "Probability of ``k``."),
            "logpmf": (k, self._log_density, "Logarithm of the probability of ``k``."),
            **super()._methods(),
        }

    # Defined by families ----------------------------------------------------------------------------------------------

    def _logpmf(self, k, *shapes):
        """Return the log probability of an integer within the support."""
        raise NotImplementedError

    def _inner(self, *shapes):
        a = self._support(*shapes)[0]
        return 0.0 if type(a) is float and a == -math.inf else a

    # Methods ----------------------------------------------------------------------------------------------------------

    def _parameters(self, first, args):
        at, shapes, rest, valid = super()._parameters(first, args)
        like = next((v for v in (*at, *shapes, *rest) if type(v) not in NUMBERS), None)
        if like is not None:  # a choice between two Python numbers would have a dtype of its own
            at, shapes = [[as_tensor(v, like) for v in values] for values in (at, shapes)]
        return at, [floor(v) if n in self.whole else v for n, v in zip(self.shapes, shapes)], rest, valid

    def _replaced(self, valid, shapes, like):
        # A count is replaced by its own test, as one by `valid` would make a constant count depend on the other shapes,
        # and with it all that a program computes of counts alone: log_choose() is most of a binomial density.
        tests = [checked(is_count(v)) if name in self.counts else valid for name, v in zip(self.shapes, shapes)]
        return [safe(test, [v], [other], like)[0] for test, v, other in zip(tests, shapes, self.instead)]

    def _standard(self, x, rest):
        return ops.floor(standard(x, *rest))

    def _outer(self, z, a, b, shapes):
        return (z < a) | (z == -math.inf), z >= b

    def _density(self, k, as_log: bool, *args):
        (k,), shapes, rest, valid = self._parameters((k,), args)
        given = standard(k, *rest)
        z = ops.floor(given)
        a, b = self._support(*shapes)
        outside = (z < a) | (z > b) | (z < given) | (ops.abs(z) == math.inf)
        if all_so(outside) is False:
            outside = False
        else:
            z = ops.where(outside, self._inner(*shapes), z)
            shapes = self._sloping(outside, z, shapes)
        value = self._logpmf(z, *shapes) if as_log else self._density_from_log(self._logpmf, z, shapes)
        return marked(valid, value if outside is False else ops.where(outside, -math.inf if as_log else 0.0, value))

    def _quantile(self, p, lower, as_log, *shapes):
        return self._searches[lower, as_log](p, *shapes)

    def _random(self, like, shape, seed, shapes):
        return self._drawn(ops.random.random_uniform(like, shape, seed), *shapes)

    def _entropy(self, *shapes):
        return self._entropies(*shapes)


# Found on the host ----------------------------------------------------------------------------------------------------


def _search(family: Discrete, lower: bool, as_log: bool) -> Callable:
    """Search the smallest integer with at least a given lower probability, or at most a given upper one."""
    least, most = (-math.inf, 0.0) if as_log else (0.0, 1.0)
    if not lower:
        least, most = most, least

    def find(q, *shapes):
        if q.size > 64 and all(shape.min() == shape.max() for shape in shapes):
            found = by_table(q, *[shape[:2] for shape in shapes])
            if found is not None:
                return found
        return by_halves(q, *shapes)

    def by_table(q, *shapes):
        """Look quantiles up in a table, for many quantiles of one distribution in a short range."""
        inner = q[(q > min(least, most)) & (q < max(least, most))]
        if not inner.size:
            return None
        low, high = np.sort(by_halves(np.array([inner.min(), inner.max()]), *shapes))
        if not high - low < 4 * q.size:
            return None
        a, b = [np.ravel(end)[0] for end in family._support(*shapes)]
        k = np.arange(low, min(high + 1, b))
        tails = tail(k, q.dtype, [np.full(k.shape, shape[0]) for shape in shapes])
        if lower:
            found = low + np.searchsorted(np.maximum.accumulate(tails), q)
        else:
            found = low + np.searchsorted(-np.minimum.accumulate(tails), -q)
        return np.where(q == least, a - 1, np.where(q == most, b, found))

    def tail(k, dtype, shapes):
        """Return the tail in the dtype of the input, so that quantiles invert probabilities of this dtype."""
        return np.asarray(family._tail(k.astype(dtype), lower, as_log, *[shape.astype(dtype) for shape in shapes]))

    def by_halves(q, *shapes):
        a, b = [np.broadcast_to(np.asarray(end, "float64"), q.shape) for end in family._support(*shapes)]
        dtype, shapes = q.dtype, tuple(shape.astype("float64") for shape in shapes)

        def reached(k):
            inside = (k >= a) & (k < b)
            found = tail(np.where(inside, k, np.where(a > -np.inf, a, 0.0)), dtype, shapes)
            found = found >= q if lower else found <= q
            return np.where(inside, found, k >= b)

        mean, var = [np.broadcast_to(np.asarray(v, "float64"), q.shape) for v in family._stats(*shapes)[:2]]
        step = np.ceil(np.where(np.isfinite(var), np.sqrt(np.abs(var)), 1.0)) + 1
        start = np.floor(np.where(np.isfinite(mean), mean, np.where(a > -np.inf, a, 0.0)))
        low, high = np.maximum(start - step, a - 1), np.minimum(np.maximum(start + step, a), b)
        searched = (q != least) & (q != most)
        for _ in range(1000):
            under, over = searched & (low >= a) & reached(low), searched & ~reached(high)
            if not (under | over).any():
                break
            low, high = (
                np.where(under, np.maximum(low - step, a - 1), np.where(over, high, low)),
                np.where(over, np.minimum(high + step, b), np.where(under, low, high)),
            )
            step = 2 * step
        for _ in range(1100):
            middle = np.floor(low + (high - low) / 2)
            if not (searched & (middle > low) & (middle < high)).any():
                break
            there = reached(middle)
            low, high = np.where(there, low, middle), np.where(there, np.maximum(middle, low + 1), high)
        return np.where(q == least, a - 1, np.where(q == most, b, high))

    return find


def _sums(family: Discrete) -> Callable:
    """Return the entropy, a sum over all integers of notable probability, twice differentiable by the real shapes."""
    real = family._real()
    places = [family.shapes.index(name) for name in real]

    def entropy(k, given, *values):
        shapes = list(given)
        for place, value in zip(places, values):
            shapes[place] = value
        each = family._logpmf(k, *shapes)
        return -ops.sum(exp(each) * each)

    def of_one(order, *given):
        low, high = [
            _search(family, lower, False)(np.array([1e-25]), *[np.array([v]) for v in given])[0]
            for lower in (True, False)
        ]
        if not high - low < 4 * MAX_CHUNK_TERMS:
            return math.nan
        a, b = family._support(*given)
        k = np.arange(max(low, a), min(high, b) + 1)
        k = k[np.asarray(family._logpmf(k, *given)) > -700]
        function = lambda *values: entropy(k, given, *values)  # noqa: E731
        for i, count in enumerate(order):
            for _ in range(count):
                function = grad(function, argnums=i)
        return float(function(*[given[place] for place in places]))

    def function(order, *shapes):
        return np.array([of_one(order, *map(float, given)) for given in zip(*shapes)])

    name = f"_{family.name}_entropy"
    return hosted_op(name, family.shapes, real, function, "A derivative of the entropy.")


def is_part(p):
    """True where a number is between 0 and 1."""
    return (p >= 0) & (p <= 1)

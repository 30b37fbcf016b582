"""Base classes of distributions on the real line.

A family defines its standard form, with location 0 and scale 1, by short functions of ops: log density, tail
probability, its inverse, moments and entropy. The base classes add location and scale, values outside of the support,
invalid parameters, frozen distributions and SciPy's methods.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import ops
from ....errors import ArgumentError
from ....ops import _checks
from ....ops._compose import NUMBERS
from ..._formulas import absolute, all_so, choose, exp, is_fixed, is_single, log, refined, sqrt, where
from . import _quadrature
from ._arguments import REQUIRED, alike, as_tensor, both, checked, marked, public, safe
from ._shared import hazard_at, hazard_probability

INFINITE = (-math.inf, math.inf)

POSITIVE = (0.0, math.inf)


class Distribution:
    """A family of distributions.

    Attributes:
        name: SciPy's.
        shapes: the names of its shape parameters.
    """

    open = False
    """Whether the density is 0 at the ends of the support."""
    everywhere = False
    """Whether the formula of the density holds at infinity."""
    by_formula = True
    """Whether formulas give NaN for most invalid shapes."""
    instead: tuple[float, ...] = ()
    """Valid shapes that replace invalid ones; all 1 by default."""
    defaults: dict[str, Any] = {"loc": 0, "scale": 1}
    at = "x"

    def __init__(self, name: str, shapes: str = ""):
        self.name = name
        self.shapes = tuple(shapes.split(", ")) if shapes else ()
        self.numargs = len(self.shapes)
        self.instead = self.instead or (1.0,) * self.numargs
        self.__module__ = "gradops.scipy.stats"
        parameters = {**dict.fromkeys(self.shapes, REQUIRED), **self.defaults}
        self._names = (self.at, *self.shapes, *self.defaults)
        for method, (first, function, text) in self._methods().items():
            own = {**parameters, **first} if method in ("rvs", "stats") else {**first, **parameters}
            setattr(self, method, public(function, self, method, own, _documented(text)))
        self.__doc__ = f"""{inspect.cleandoc(type(self).__doc__ or "")}

Args:
    {", ".join((*self.shapes, *self.defaults))}: parameters, tensors or numbers.

Returns:
    Called with parameters, the distribution with these fixed. Its methods return tensors of the shape that their
    arguments broadcast to, of their promoted floating dtype; NaN where a parameter is invalid.

Raises:
    ArgumentTypeError: in a method, an argument that is not a number or tensor; a complex tensor; a wrong number of
        parameters.
    ShapeError: in a method, shapes that do not broadcast.

Gradient:
    {self.gradient}
"""

    def __reduce__(self):
        return self.name

    def __repr__(self):
        return f"<gradops.scipy.stats.{self.name}({', '.join((*self.shapes, *self.defaults))})>"

    def __call__(self, *args, **kwargs) -> Frozen:
        return Frozen(self, args, kwargs)

    freeze = __call__

    kind = ""
    """Start of the description of the entropy, ``Differential e``."""
    rvs_text = ""
    gradient = ""

    def _methods(self) -> dict[str, tuple[dict, Callable, str]]:
        """Return the methods by name: their own parameters, a function of all, and a description."""
        none: dict[str, Any] = {}
        x, q = {self.at: REQUIRED}, {"q": REQUIRED}
        return {
            "cdf": (x, lambda x, *args: self._probability(x, True, False, *args), f"Probability up to ``{self.at}``."),
            "sf": (x, lambda x, *args: self._probability(x, False, False, *args), f"Probability above ``{self.at}``."),
            "logcdf": (
                x,
                lambda x, *args: self._probability(x, True, True, *args),
                f"Logarithm of the probability up to ``{self.at}``, accurate where that rounds to 0 or 1.",
            ),
            "logsf": (
                x,
                lambda x, *args: self._probability(x, False, True, *args),
                f"Logarithm of the probability above ``{self.at}``, accurate where that rounds to 0 or 1.",
            ),
            "ppf": (q, lambda q, *args: self._inverse(q, True, False, *args), "Quantile of a lower probability."),
            "isf": (q, lambda q, *args: self._inverse(q, False, False, *args), "Quantile of an upper probability."),
            "ilogcdf": (
                q,
                lambda q, *args: self._inverse(q, True, True, *args),
                "Quantile of the logarithm of a lower probability.",
            ),
            "ilogsf": (
                q,
                lambda q, *args: self._inverse(q, False, True, *args),
                "Quantile of the logarithm of an upper probability.",
            ),
            "mean": (none, self.mean_, "Mean."),
            "var": (none, self.var_, "Variance."),
            "std": (none, self.std_, "Standard deviation."),
            "stats": (
                {"moments": "mv"},
                self.stats_,
                "Mean, variance, skewness and excess kurtosis, selected by the letters ``mvsk`` in ``moments``.",
            ),
            "moment": ({"order": REQUIRED}, self.moment_, "Raw moment of an order up to 4."),
            "entropy": (none, self.entropy_, f"{self.kind}ntropy."),
            "median": (none, self.median_, "Median."),
            "interval": (
                {"confidence": REQUIRED},
                self.interval_,
                "Ends of the central interval that has a given probability.",
            ),
            "support": (none, self.support__, "Ends of the support."),
            "rvs": ({"size": None, "random_state": None}, self.rvs_, self.rvs_text),
        }

    # Defined by families ----------------------------------------------------------------------------------------------

    support_: tuple[Any, Any] = INFINITE

    def _support(self, *shapes) -> tuple[Any, Any]:
        """Return the ends of the support."""
        return self.support_

    def _valid(self, *shapes):
        """True where shapes are valid."""
        return both(*(shape > 0 for shape in shapes))

    inside: tuple[float, ...] = ()
    """For families with :meth:`_bases`: a point and shapes, none of them 0, that replace excluded ones."""

    def _bases(self, z, *shapes) -> tuple:
        """Return factors of the density that may be 0 in the support, where its logarithm has no slope."""
        return ()

    def _power_density(self, z, *shapes):
        """Return the density, computed without logarithms, for factors that are 0."""
        raise NotImplementedError

    def _density_from_log(self, log_of: Callable, z, shapes):
        """Return the density from its logarithm, or from powers of its factors."""
        given = (z, *shapes)
        bases = self._bases(*given)
        if not bases:
            return exp(log_of(*given))
        edge: Any = functools.reduce(operator.or_, [base == 0 for base in bases])

        def taken(of):
            # A number without a gradient stays: nothing infinite arrives at the others, which are replaced.
            return [value if is_fixed(value) else of(value, other) for value, other in zip(given, self.inside)]

        choice = choose if is_single(edge) else refined
        return choice(edge, lambda of: self._power_density(*taken(of)), lambda of: exp(log_of(*taken(of))))

    def _inner(self, *shapes):
        """A point within the support."""
        a, b = self.support_
        return 0.0 if a == -math.inf else 0.5 if a == 0 else a + 0.5

    def _tail(self, z, lower: bool, log: bool, *shapes):
        """Return the probability up to ``z`` or above it, or its logarithm, within the support."""
        raise NotImplementedError

    def _quantile(self, p, lower: bool, log: bool, *shapes):
        """The inverse of :meth:`_tail` by ``z``."""
        raise NotImplementedError

    def _stats(self, *shapes) -> tuple:
        """Mean, variance, skewness and excess kurtosis."""
        raise NotImplementedError

    def _entropy(self, *shapes):
        raise NotImplementedError

    # Parameters -------------------------------------------------------------------------------------------------------

    def _parameters(self, first: tuple, args: tuple):
        """Return the first arguments, the shapes, the other parameters, and where they are valid."""
        given = alike(self._names if first else self._names[1:], (*first, *args))
        at, rest = given[: len(first)], given[len(first) + self.numargs :]
        shapes = given[len(first) : len(first) + self.numargs]
        if self.by_formula and any(map(is_single, given)):  # in a loop
            return at, shapes, rest, True
        valid: Any = self._valid(*shapes) if shapes else True
        if len(rest) == 2 and (type(rest[1]) not in NUMBERS or not rest[1] > 0):
            valid = both(valid, rest[1] > 0)
        valid = checked(valid)
        if valid is not True:
            like = next((v for v in given if type(v) not in NUMBERS), None)
            shapes = self._replaced(valid, shapes, like)
            if len(rest) == 2:
                rest = [rest[0], *safe(valid, rest[1:], (1.0,), like)]
        return at, shapes, rest, valid

    def _replaced(self, valid, shapes, like):
        """Return the shapes, replaced by ``instead`` where the parameters are not valid."""
        return safe(valid, shapes, self.instead, like)

    # The density ------------------------------------------------------------------------------------------------------

    def _density(self, x, as_log: bool, *args):
        """Return the density, or the probability mass, or its logarithm."""
        raise NotImplementedError

    def _log_density(self, x, *args):
        """Return the log density; marked observations of a likelihood may replace it."""
        marked = getattr(x, "log_density", None)
        return self._density(x, True, *args) if marked is None else marked(self, args)

    # Moments ----------------------------------------------------------------------------------------------------------

    def _moments(self, order: int, args):
        _, shapes, rest, valid = self._parameters((), args)
        loc, scale = rest[0], rest[1] if len(rest) > 1 else 1
        value = _call_with_shapes(self._stats, shapes)[order]
        value = (value * scale + loc, value * scale * scale if order == 1 else value, value, value)[order]
        return _whole(marked(valid, value), (*shapes, *rest))

    def mean_(self, *args):
        return self._moments(0, args)

    def var_(self, *args):
        return self._moments(1, args)

    def std_(self, *args):
        return sqrt(self._moments(1, args))

    def stats_(self, *args):
        args, moments = args[:-1], args[-1]
        _checks.choice(
            f"scipy.stats.{self.name}.stats", "".join(sorted(set(str(moments)) - set("mvsk"))), [""], "moments"
        )
        found = [self._moments("mvsk".index(kind), args) for kind in "mvsk" if kind in moments]
        return tuple(found) if len(found) > 1 else found[0] if found else ()

    def moment_(self, order, *args):
        if type(order) not in (int, float) or order != int(order) or not 0 <= order <= 4:
            raise ArgumentError(
                f"`scipy.stats.{self.name}.moment`: `order` must be a whole number from 0 to 4; got {{value}}.",
                argument="order",
                value=_checks.describe(order),
            )
        mean, var = self._moments(0, args), self._moments(1, args)
        if order == 0:
            return mean * 0 + 1
        if order == 1:
            return mean
        if order == 2:
            return var + mean * mean
        third = self._moments(2, args) * var * sqrt(var)
        if order == 3:
            return third + 3 * mean * var + mean**3
        fourth = (self._moments(3, args) + 3) * var * var
        return fourth + 4 * mean * third + 6 * mean * mean * var + mean**4

    def entropy_(self, *args):
        _, shapes, rest, valid = self._parameters((), args)
        value = _call_with_shapes(self._entropy, shapes)
        if len(rest) > 1 and not (type(rest[1]) is int and rest[1] == 1):
            value = value + log(rest[1])
        return _whole(marked(valid, value), (*shapes, *rest))

    def support__(self, *args):
        _, shapes, rest, valid = self._parameters((), args)
        ends = self._support(*shapes)
        scale = rest[1] if len(rest) > 1 else 1
        return tuple(_whole(marked(valid, end * scale + rest[0]), (*shapes, *rest)) for end in ends)

    def median_(self, *args):
        return _whole(self._inverse(0.5, True, False, *args), alike(self._names[1:], args))

    def interval_(self, confidence, *args):
        (confidence,) = alike(("confidence",), (confidence,))
        rest = (1 - confidence) / 2
        return self._inverse(rest, True, False, *args), self._inverse(rest, False, False, *args)

    # Probabilities and quantiles --------------------------------------------------------------------------------------

    def _standard(self, x, rest):
        """Return a point on the scale of the standard form."""
        return standard(x, *rest)

    def _outer(self, z, a, b, shapes):
        """Return where a point is below, and where above, all points with probabilities between 0 and 1."""
        raise NotImplementedError

    def _probability(self, x, lower: bool, as_log: bool, *args):
        (x,), shapes, rest, valid = self._parameters((x,), args)
        z = self._standard(x, rest)
        ends = self._support(*shapes)
        below, above = self._outer(z, *ends, shapes)
        outside = False if self.everywhere and is_single(z) else below | above
        if all_so(outside) is False:
            return marked(valid, self._tail(z, lower, as_log, *shapes))
        beyond, z = z, self._inner_standard(outside, x, shapes, rest)
        value = self._tail(z, lower, as_log, *self._sloping(outside, z, shapes))
        none, all_of_it = (-math.inf, 0.0) if as_log else (0.0, 1.0)
        first, last = (none, all_of_it) if lower else (all_of_it, none)
        value = ops.where(below, first, ops.where(above, last, value))
        return marked(valid, self._add_slopes(value, beyond, ends, lower, shapes))

    def _add_slopes(self, value, z, ends, lower: bool, shapes):
        """Add to tails the slopes at the ends of the support that their formulas lack."""
        return value

    def _inner_standard(self, outside, x, shapes, rest):
        """``x`` on the standard form's scale, where it is outside a place in the support: chosen before, as an infinite
        ``x`` has no slopes."""
        return self._standard(ops.where(outside, moved(self._inner(*shapes), *rest), x), rest)

    def _sloping(self, outside, z, shapes):
        """Return the shapes, replaced outside of the support: slopes may be infinite there, and 0 times them is NaN."""
        return safe(~outside, shapes, self.inside[1:], z) if self.inside else shapes

    def _inverse(self, q, lower: bool, as_log: bool, *args):
        (q,), shapes, rest, valid = self._parameters((q,), args)
        known = q <= 0 if as_log else (q >= 0) & (q <= 1)
        if all_so(known) is True:
            value = self._quantile(q, lower, as_log, *shapes)
        else:
            inner = ops.where(known, q, -0.7 if as_log else 0.5)
            value = ops.where(known, self._quantile(inner, lower, as_log, *shapes), math.nan)
        return marked(valid, moved(value, *rest))

    # Random numbers ---------------------------------------------------------------------------------------------------

    def _size(self, size, parameters) -> tuple[int, ...]:
        """Return the shape of random numbers: the parameters' shape, or a given one to which it broadcasts."""
        shape = np.broadcast_shapes(*[tuple(v.shape) for v in parameters if type(v) not in NUMBERS])
        if size is None:
            return shape
        function = f"scipy.stats.{self.name}.rvs"
        wanted = tuple(size) if isinstance(size, (tuple, list)) else (size,)
        if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0 for n in wanted):
            raise ArgumentError(
                f"`{function}`: `size` must be a whole number or several; got {{value}}.",
                argument="size",
                value=_checks.describe(size),
            )
        wanted = tuple(int(n) for n in wanted)
        shape = shape[max(0, len(shape) - len(wanted)) :] if 1 not in shape else shape
        if len(shape) > len(wanted) or any(m not in (1, n) for m, n in zip(shape[::-1], wanted[::-1])):
            raise ArgumentError(
                f"`{function}`: `size` {wanted} does not fit parameters of the shape {shape}.", argument="size"
            )
        return wanted

    def rvs_(self, *args):
        args, size, random_state = args[:-2], *args[-2:]
        function = f"scipy.stats.{self.name}.rvs"
        seed = seed_of(function, random_state)
        _, shapes, rest, valid = self._parameters((), args)
        given = (*shapes, *rest)
        like = next((v for v in given if type(v) not in NUMBERS), None)
        like = ops.convert_to_tensor(0.0) if like is None else like
        value = self._random(like, self._size(size, given), seed, shapes)
        return marked(valid, moved(value, *rest))

    def _random(self, like, shape, seed: int, shapes):
        raise NotImplementedError


def seed_of(function: str, random_state) -> int:
    """Return an integer seed unchanged, and a fresh one for None."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    raise ArgumentError(
        f"`{function}`: `random_state` must be None or a seed, a whole number; got {{value}}.",
        argument="random_state",
        value=_checks.describe(random_state),
    )


def _call_with_shapes(function: Callable, shapes):
    """Return ``function(*shapes)``; Python numbers are computed by NumPy, where 1 / 0 is infinite."""
    if not all(type(v) in NUMBERS for v in shapes):
        return function(*shapes)
    with np.errstate(all="ignore"):
        found = function(*map(np.float64, shapes))
    return tuple(map(float, found)) if type(found) is tuple else float(found)


def _whole(value, parameters):
    """Broadcast a result that does not depend on all parameters to their common shape."""
    for parameter in parameters:
        if type(parameter) not in NUMBERS:
            value = value + ops.where(parameter == parameter, 0.0, 0.0)
    return ops.convert_to_tensor(float(value)) if type(value) in NUMBERS else value


def _documented(text: str) -> str:
    return f"""{text}

Returns:
    A tensor of the shape that the arguments broadcast to, of their promoted floating dtype; NaN where a parameter is
    invalid.

Raises:
    ArgumentTypeError: an argument that is not a number or tensor; a complex tensor.
    ShapeError: shapes that do not broadcast.

Gradient:
    Exact derivatives by each argument that is a tensor."""


class Continuous(Distribution):
    """A family with a density."""

    scale = ""
    """Of a family whose quantiles are searched for: the scale on which they are, by its name in ``_quadrature``."""

    def _near(self, p, lower: bool, *shapes):
        """Return a start for the search of the quantile of a log probability, on NumPy arrays; NaN if none is known."""
        return np.full(p.shape, math.nan)

    def _logpdf(self, z, *shapes):
        """Return the log density within the support, including its ends unless ``open``."""
        raise NotImplementedError

    gradient = """Exact derivatives of all orders by ``x`` and each parameter that is a tensor; 0 outside of the
    support. At the ends of the support they are those from inside if the density is finite. Quantiles use the
    implicit function theorem, ``-(dF/dp) / f``, to third order if they are found by search."""
    kind = "Differential e"
    rvs_text = "Random numbers from a seed: quantiles of uniform numbers, which makes them differentiable."

    def _methods(self):
        x = {"x": REQUIRED}
        return {
            "pdf": (x, lambda x, *args: self._density(x, False, *args), "Density."),
            "logpdf": (x, self._log_density, "Logarithm of the density."),
            **super()._methods(),
        }

    def _density(self, x, as_log: bool, *args):
        (x,), shapes, (loc, scale), valid = self._parameters((x,), args)
        z = standard(x, loc, scale)
        ends = self._support(*shapes)
        outside = False if self.everywhere else _has_zero_density(z, ends, not self.open)
        if all_so(outside) is False:
            outside = False
        else:
            z = self._inner_standard(outside, x, shapes, (loc, scale))
        moves = type(scale) is not int or scale != 1
        value = self._logpdf(z, *shapes) if as_log else self._density_from_log(self._logpdf, z, shapes)
        if moves:
            value = value - log(scale) if as_log else value / scale
        return marked(valid, value if outside is False else ops.where(outside, -math.inf if as_log else 0.0, value))

    by_density = False
    """Whether the formula of tails has no slope at the ends of the support although the density is finite."""

    def _add_slopes(self, value, z, ends, lower: bool, shapes):
        """Leave out logarithms, which are infinite at the ends."""
        if not self.by_density:
            return value
        for end in ends:
            there = (z == end) & (absolute(z) < math.inf) & (absolute(value) < math.inf)
            density = self._density_from_log(self._logpdf, ops.where(there, z, self._inner(*shapes)), shapes)
            density = ops.stop_gradient(ops.where(there & (density < math.inf), density, 0.0))
            rise = density * ops.where(there, z - where(absolute(end) < math.inf, end, 0.0), 0.0)
            value = value + rise if lower else value - rise
        return value

    def _steep(self, *shapes) -> tuple:
        """Return whether the density is infinite at the lower and at the upper end, where tails have no slope."""
        return True, True

    def _outer(self, z, a, b, shapes):
        below, above = self._steep(*shapes)
        return _past(z, a, below, -math.inf), _past(z, b, above, math.inf)

    def _entropy(self, *shapes):
        return -_quadrature.expectation(
            lambda p, lower, *shapes: self._quantile(p, lower, False, *shapes), self._logpdf, shapes
        )

    def _stats(self, *shapes):
        return _quadrature.moments(self, shapes)

    def _random(self, like, shape, seed: int, shapes):
        """Return standard random numbers: quantiles of uniform numbers above 0."""
        p = ops.random.random_uniform(like, shape, seed)
        return self._quantile(ops.maximum(p, 2.0**-54), True, False, *[as_tensor(v, like) for v in shapes])


def _past(z, end, steep, last: float):
    """True outside of an end of the support, at it if the density is infinite there, and at infinity (``last``)."""
    known = all_so(steep)
    if known is True or type(end) is float and end == last:
        return z <= end if last < 0 else z >= end
    past = z < end if last < 0 else z > end
    if known is not False:
        past = past | ((z == end) & steep)
    return past if type(end) is float else past | (z == last)


def standard(x, loc, scale=1):
    """``(x - loc) / scale``."""
    if not (type(loc) is int and loc == 0):
        x = x - loc
    return x if type(scale) is int and scale == 1 else x / scale


def moved(z, loc, scale=1):
    """``z * scale + loc``."""
    if not (type(scale) is int and scale == 1):
        z = z * scale
    return z if type(loc) is int and loc == 0 else z + loc


def _has_zero_density(z, ends, closed: bool):
    """True where the density is 0: outside of the support, at infinite ends, and at all ends of an open support."""
    a, b = ends
    below = z < a if closed and not (type(a) is float and a == -math.inf) else z <= a
    above = z > b if closed and not (type(b) is float and b == math.inf) else z >= b
    outside = below | above
    if type(a) is float and type(b) is float or not closed:
        return outside
    return outside | (ops.abs(z) == math.inf)


class Frozen:
    """A distribution with fixed parameters.

    Attributes:
        dist: the family.
        args, kwds: the parameters as given.
    """

    def __init__(self, dist: Distribution, args: tuple, kwds: dict):
        self.dist, self.args, self.kwds = dist, args, kwds

    def __repr__(self):
        given = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwds.items())]
        return f"<gradops.scipy.stats.{self.dist.name}({', '.join(given)})>"

    def __dir__(self):
        return [*super().__dir__(), *self.dist._methods()]

    def __getattr__(self, name: str):
        if name.startswith("_") or name not in self.dist._methods():
            raise AttributeError(f"a frozen `scipy.stats.{self.dist.name}` has no method {name!r}")
        method = getattr(self.dist, name)
        own = list(self.dist._methods()[name][0])

        def frozen(*args, **kwds):
            if name in ("rvs", "stats"):
                return method(*self.args, **self.kwds, **dict(zip(own, args)), **kwds)
            return method(*args, *self.args, **kwds, **self.kwds)

        return frozen


class HazardFamily(Continuous):
    """A family that is defined by its cumulative hazard."""

    support_ = POSITIVE

    def _steep(self, *shapes):
        return False, True

    def _hazard(self, z, *shapes):
        raise NotImplementedError

    def _hazard_quantile(self, h, *shapes):
        """Return the inverse of :meth:`_hazard` by ``z``."""
        raise NotImplementedError

    def _tail(self, z, lower, log, *shapes):
        return hazard_probability(self._hazard(z, *shapes), lower, log)

    def _quantile(self, p, lower, log, *shapes):
        return self._hazard_quantile(hazard_at(p, lower, log), *shapes)

"""Base class and helpers for distributions of vectors and matrices: argument checks, Cholesky factors, draws."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

from .... import ops
from ....errors import ArgumentError, ArgumentTypeError, ShapeError
from ....ops import _checks
from ..._tensors import constant_like
from .._samples import real
from ._arguments import public
from ._family import seed_of
from .gamma import gamma

LOG_2_PI = math.log(2 * math.pi)

LOG_2 = math.log(2)

_DOC = """{text}

Methods: {methods}.

Returns:
    As a function, of its parameters {parameters}, the distribution with these fixed. Its methods give tensors of the
    promoted floating dtype of their arguments, in SciPy's shapes.

Raises:
    ArgumentTypeError: in a method, an argument that is not a number or tensor; a complex tensor.
    ArgumentError: in a method, a matrix that is not positive definite, also with ``allow_singular``, as a singular one
        has no derivative; parameters outside of their domain, as far as they are known.
    ShapeError: in a method, shapes that do not fit.

Gradient:
    By each argument that is a tensor, as of the formula; by symmetric matrices a symmetric one. Random numbers have
    derivatives by the parameters, those of counts none.
"""


class Multivariate:
    """A family of distributions of vectors or matrices; its methods are functions of all parameters."""

    parameters: dict[str, Any] = {}

    def __init__(self, name: str):
        self.name, self.__module__ = name, "gradops.scipy.stats"
        self.methods = [m for m, value in vars(type(self)).items() if inspect.isfunction(value) and m[0] != "_"]
        for method in self.methods:
            bound = getattr(self, method)
            defaults = {p.name: p.default for p in inspect.signature(bound).parameters.values()}
            text = inspect.getdoc(bound) or ""
            setattr(self, method, public(bound, self, method, defaults, text))
        self.__doc__ = _DOC.format(
            text=inspect.getdoc(type(self)),
            methods=", ".join(f"``{m}``" for m in self.methods),
            parameters=", ".join(f"``{p}``" for p in self.parameters),
        )

    def __reduce__(self):
        return self.name

    def __repr__(self):
        return f"<gradops.scipy.stats.{self.name}({', '.join(self.parameters)})>"

    def __call__(self, *args, **kwds) -> FrozenMultivariate:
        if len(args) > len(self.parameters) or not set(kwds) <= {*self.parameters, "seed"}:
            raise ArgumentTypeError(
                f"`scipy.stats.{self.name}` has the parameters {', '.join(self.parameters)}.", argument="arguments"
            )
        return FrozenMultivariate(self, {**self.parameters, **dict(zip(self.parameters, args)), **kwds})


class FrozenMultivariate:
    """A distribution of vectors or matrices with fixed parameters, which are attributes."""

    def __init__(self, dist: Multivariate, given: dict[str, Any]):
        self.dist, self.given = dist, given

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self.dist.methods:
            if name in self.given:
                return self.given[name]
            raise AttributeError(f"a frozen `scipy.stats.{self.dist.name}` has no attribute {name!r}")
        method = getattr(self.dist, name)
        known = inspect.signature(method).parameters
        fixed = {key: value for key, value in self.given.items() if key in known}
        rest = [key for key in known if key not in fixed]

        def frozen(*args, **kwds):
            if len(args) > len(rest):
                raise ArgumentTypeError(
                    f"`{self.dist.name}.{name}` has the arguments {', '.join(rest)}.", argument="arguments"
                )
            return method(**fixed, **dict(zip(rest, args)), **kwds)

        return frozen


# Shared ---------------------------------------------------------------------------------------------------------------


def _fail(family: str, argument: str, why: str, kind: Any = ArgumentError):
    raise kind(f"`scipy.stats.{family}`: `{argument}` {why}.", argument=argument)


def _positive(family: str, argument: str, value, above=0.0) -> None:
    known = _checks.known(value)
    if known is not None and not np.all(known > above):
        _fail(family, argument, f"must be greater than {above:g}")


def _square(family: str, name: str, a, size: int):
    """Return a square matrix from a number (times the identity), a diagonal, or a matrix."""
    if len(a.shape) == 0:
        return a * _identity(size, a)
    if len(a.shape) == 1:
        a = ops.diag(a)
    if tuple(a.shape[-2:]) != (size, size):
        _fail(family, name, f"must be {size} by {size}; got the shape {tuple(a.shape)}", ShapeError)
    return a


def _factor(family: str, name: str, a):
    """The lower Cholesky factor."""
    try:
        return ops.cholesky(a)
    except ArgumentError:
        pass
    return _fail(family, name, "must be symmetric and positive definite: a singular one has no derivative")


def _identity(size: int, like):
    return constant_like(np.eye(size), like)


def _half_logdet(factor):
    return ops.sum(ops.log(ops.diagonal(factor, 0, -2, -1)), -1)


def _solved(factor, columns):
    return ops.solve_triangular(factor, columns, lower=True)


def _turned(x):
    return ops.swapaxes(x, -1, -2)


def _trace_of_square(x):
    return ops.sum(x * x, (-2, -1))


def _size(family: str, size) -> tuple[int, ...]:
    wanted = tuple(size) if isinstance(size, (tuple, list)) else () if size is None else (size,)
    if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in wanted):
        _fail(family, "size", "must be a whole number or several")
    return tuple(int(n) for n in wanted)


def _normal(family: str, like, shape, random_state):
    return ops.random.random_normal(
        like, shape, ops.random.next_seed(seed_of(f"scipy.stats.{family}", random_state), 0)
    )


def _gamma(family: str, a, shape, random_state):
    """Draw gamma variables as quantiles of uniform ones, which makes them differentiable by ``a``."""
    seed = ops.random.next_seed(seed_of(f"scipy.stats.{family}", random_state), 1)
    law: Any = gamma
    p = ops.maximum(ops.random.random_uniform(a, shape, seed), 2.0**-54)
    return law.ppf(p, a)


def _located(family: str, names: tuple[str, str], loc, scale, *others):
    """Return a location vector, a scale matrix and other tensors, all of one dtype."""
    given = {name: x for name, x in ((names[0], loc), (names[1], scale)) if x is not None}
    given.update({f"argument {i}": x for i, x in enumerate(others)})
    found = dict(zip(given, real(f"scipy.stats.{family}", **given)))
    rest = list(found.values())[len(found) - len(others) :] if others else []
    loc, scale = found.get(names[0]), found.get(names[1])
    size = 1 if scale is None or not len(scale.shape) else scale.shape[-1]
    if loc is not None:
        loc = ops.reshape(loc, (1,)) if not len(loc.shape) else loc
        size = loc.shape[-1]
    if scale is not None and len(scale.shape) == 1 and loc is None:
        size = scale.shape[0]
    like = loc if loc is not None else scale if scale is not None else rest[0] if rest else ops.convert_to_tensor(0.0)
    one = ops.reshape(like, (-1,))[0] * 0
    scale = one + 1 if scale is None else scale
    loc = ops.stack([one] * size) if loc is None else loc
    return (loc, _square(family, names[1], scale, size), size, *rest)


def _distance(family, name, x, loc, scale, size: int):
    """Return the Cholesky factor, and the squared Mahalanobis distance of points from a location."""
    if len(x.shape) == 0:
        x = ops.reshape(x, (1,))
    if len(x.shape) == 1 and size == 1:
        x = ops.expand_dims(x, -1)
    factor, d = _factor(family, name, scale), x - loc
    if d.shape[-1] != size:
        _fail(family, "x", f"must have the last size {size}; got the shape {tuple(x.shape)}", ShapeError)
    if len(factor.shape) == 2:
        z = _solved(factor, _turned(ops.reshape(d, (-1, size))))
        return factor, ops.reshape(ops.sum(z * z, 0), tuple(d.shape[:-1]))
    z = _solved(factor, ops.expand_dims(d, -1))[..., 0]
    return factor, ops.sum(z * z, -1)

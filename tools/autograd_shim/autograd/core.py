"""autograd's pullbacks, primitives and vector spaces, implemented by gradops.

A primitive becomes a custom gradient whose rules come from ``defvjp``.
"""

from __future__ import annotations

import functools

import numpy as np

import gradops
from gradops import _tree

TAKES_VALUES = np.ndarray | np.generic | float | int | complex | gradops.Variable


def floating(x):
    """Return ``x`` with integers as floats: autograd differentiates by integers, gradops raises an error."""
    return _tree.map_leaves(lambda leaf: leaf * 1.0 if np.result_type(leaf).kind in "iu" else leaf, x)


def has_derivative(y) -> bool:
    return all(isinstance(leaf, TAKES_VALUES) and np.result_type(leaf).kind in "fc" for leaf in _tree.leaves_of(y))


def make_vjp(fun, x):
    """Return the pullback and the value; for a value without derivatives, such as a bool, the pullback gives zeros."""
    x = floating(x)
    value = fun(x)
    if not has_derivative(value):
        return lambda g: vspace(x).zeros(), value
    value, pullback = gradops.vjp(fun, x)
    return lambda g: pullback(vspace(value).like(g))[0], value


def make_jvp(fun, x):
    x = floating(x)

    def jvp(v):
        value = fun(x)
        if not has_derivative(value):
            return value, vspace(value).zeros()
        return gradops.jvp(fun, (x,), (vspace(x).like(v),))

    return jvp


# Primitives -----------------------------------------------------------------------------------------------------------

primitive_vjps: dict = {}


def primitive(f):
    """Return a function whose derivatives come only from ``defvjp``."""

    @functools.wraps(f)
    def call(*args, **kwargs):
        def run(*xs):
            rules, answer = primitive_vjps.get(call), f(*xs, **kwargs)

            def pullback(g):
                if rules is None:
                    raise NotImplementedError(f"VJP of {f.__name__} not defined")
                return tuple(rules[i](answer, *xs, **kwargs)(g) if i in rules else None for i in range(len(xs)))

            return answer, pullback

        ours = any(isinstance(leaf, gradops.Variable) for leaf in _tree.leaves_of(args))
        return gradops.custom_gradient(run)(*args) if ours else f(*args, **kwargs)

    call.defgrad = lambda rule, argnum=0: defvjp(call, rule, argnums=(argnum,))
    call.defvjp = lambda rule, argnum=0: defvjp(
        call, lambda ans, *args: lambda g: rule(g, ans, vspace(args[argnum]), vspace(g), *args), argnums=(argnum,)
    )
    call.defvjp_is_zero = lambda argnums=(0,): defvjp(call, *[None] * len(argnums), argnums=argnums)
    return call


def defvjp(fun, *rules, argnums=None):
    def zero(argnum):
        return lambda ans, *args, **kwargs: lambda g: vspace(args[argnum]).zeros()

    numbered = zip(range(len(rules)) if argnums is None else argnums, rules)
    primitive_vjps.setdefault(fun, {}).update({i: zero(i) if rule is None else rule for i, rule in numbered})


# Vector spaces --------------------------------------------------------------------------------------------------------


class VSpace:
    """The space of nested arrays with the structure, shapes and dtypes of a value."""

    def __init__(self, value):
        leaves, self.form = _tree.flatten(value)
        self.kinds = [(np.shape(x), np.result_type(x)) for x in leaves]
        self.size = sum(int(np.prod(shape)) * (1 + (dtype.kind == "c")) for shape, dtype in self.kinds)

    def __eq__(self, other):
        return (self.form, self.kinds) == (other.form, other.kinds)

    def like(self, value):
        """Return ``value`` in this space's dtypes; autograd accepts any dtype."""
        return _tree.map_leaves(lambda x, kind: x + np.zeros((), kind), value, self._of(lambda shape, dtype: dtype))

    def _of(self, make):
        return _tree.unflatten(self.form, [make(*kind) for kind in self.kinds])

    def zeros(self):
        return self._of(np.zeros)

    def ones(self):
        return self._of(lambda shape, dtype: np.ones(shape, dtype) * (1 + 1j if dtype.kind == "c" else 1))

    def randn(self):
        def numbers(shape, dtype):
            real, imaginary = np.random.standard_normal((2, *shape))
            return (real + 1j * imaginary if dtype.kind == "c" else real).astype(dtype)

        return self._of(numbers)

    def standard_basis(self):
        for at, (_, dtype) in enumerate(self.kinds):
            for place in np.ndindex(self.kinds[at][0]):
                for one in (1.0, 1j) if dtype.kind == "c" else (1.0,):
                    leaves = [np.zeros(*kind) for kind in self.kinds]
                    leaves[at][place] = one
                    yield _tree.unflatten(self.form, leaves)

    def add(self, x, y):
        return _tree.map_leaves(lambda a, b: a + b, x, y)

    def scalar_mul(self, x, a):
        return _tree.map_leaves(lambda b: b * a, x)

    def inner_prod(self, x, y):
        pairs = zip(_tree.leaves_of(x), _tree.leaves_of(y), strict=True)
        return sum(np.sum(np.real(np.conj(a) * b)) for a, b in pairs)

    def covector(self, x):
        return _tree.map_leaves(np.conj, x)


vspace = VSpace

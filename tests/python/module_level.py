"""Functions decorated at module level, for the tests of pickling."""

import gradops
from gradops import ops


@gradops.custom_gradient
def own(x):
    e = ops.exp(x)
    return ops.sin(x), lambda upstream: upstream * e * 3.0


@gradops.jit
def compiled(x):
    return ops.sum(own(x) * x)


@gradops.checkpoint
def recomputed(x):
    return ops.exp(own(x))


@gradops.value_and_grad
def objective(x):
    return ops.sum(own(x) * x)


@gradops.grad
def slope(x):
    return ops.sum(ops.sin(x) * x)


@ops.vectorize
def rows(x):
    return x * 2.0


def plain(x):
    return ops.sum(ops.sin(x) * x)


def rule(x, upstream):
    return upstream * x


class Summed:
    """The sum of a function's result."""

    def __init__(self, f):
        self.f = f

    def __call__(self, x):
        return ops.sum(self.f(x))


class Model:
    @gradops.custom_gradient
    def method(self, x):
        return x * 2.0, lambda upstream: upstream * 5.0

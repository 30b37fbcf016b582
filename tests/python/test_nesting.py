"""Nested derivatives whose gradient functions read what the outer one differentiates by, and rules that write."""

from __future__ import annotations

import math

import numpy as np
import pytest
from parity import tensors
from seeds import seeds

import gradops
from gradops import Variable, backends, functional, ops
from gradops.autodiff import Function

LIBRARIES = ["numpy", "torch", "tensorflow", "jax"]
VARIABLES = ["variable of numpy", "variable of tensorflow", "variable of jax"]


def make(value, where: str):
    """Return a tensor of a library, or a variable over one."""
    library = where.removeprefix("variable of ").removeprefix("constant of ")
    pytest.importorskip(library)
    x = tensors(np.asarray(value, float), library)
    return x if where == library else Variable(x, requires_grad=where.startswith("variable"))


def beside(where: str) -> str:
    """Return where an inner derivative's arguments live: on the tape they are variables, possibly constant ones."""
    return where if where in LIBRARIES else where.replace("variable", "constant")


def number(x) -> float:
    x = getattr(x, "data", x) if isinstance(x, Variable) else x
    return float(x.detach() if hasattr(x, "detach") else x)


# Rules that depend on y only through what they read. Each is a function whose derivative is cos(y) x.


def closed_over(y):
    return gradops.custom_gradient(lambda x: (2 * x, lambda u: u * ops.cos(y) * x))


def of_a_default(y):
    return gradops.custom_gradient(lambda x, k=y: (2 * x, lambda u, k=k: u * ops.cos(k) * x))


def of_an_attribute(y):
    class Rule:
        def __init__(self):
            self.y = [y]

        def value(self, x):
            return 2 * x

        def gradient(self, x, upstream):
            return upstream * ops.cos(self.y[0]) * x

    rule = Rule()
    return gradops.custom_gradient(rule.value, rule.gradient)


def in_a_list(y):
    return gradops.custom_gradient(lambda x: ([2 * x, x], lambda upstream: upstream[0] * ops.cos(y) * x))


def by_a_derivative(y):
    inner = gradops.grad(lambda t: ops.sin(t))
    return gradops.custom_gradient(lambda x: (2 * x, lambda u: u * inner(y) * x))


def of_a_function(y):
    class Held:
        pass

    held = Held()
    held.y = y

    class Times(Function):
        @staticmethod
        def forward(ctx, x, held):
            ctx.save_for_backward(x)
            ctx.held = held
            return 2 * x

        @staticmethod
        def backward(ctx, upstream):
            (x,) = ctx.saved_tensors
            return upstream * ops.cos(_as(upstream, ctx.held.y)) * x, None

    return lambda x: Times.apply(x, held)


def _as(like, y):
    """Return ``y`` in the form used by a function of a library's arrays: variables over them."""
    return Variable(y) if isinstance(like, Variable) and not isinstance(y, Variable) else y


def given_forward(y):
    f = gradops.custom_jvp(lambda x: 2 * x)
    f.defjvps(lambda t, value, x: t * ops.cos(y) * x)
    return f


RULES = {
    f.__name__: f
    for f in (closed_over, of_a_default, of_an_attribute, in_a_list, by_a_derivative, of_a_function, given_forward)
}


def first(z):
    return z[0] if isinstance(z, list) else z


def at_4(derivative):
    return lambda h, x: derivative(lambda x: first(h(x)), x)


DERIVATIVES = {
    "grad": at_4(lambda h, x: gradops.grad(h)(x)),
    "value_and_grad": at_4(lambda h, x: gradops.value_and_grad(h)(x)[1]),
    "vjp": at_4(lambda h, x: functional.vjp(h, x, ops.ones_like(x))[1]),
    "jvp": at_4(lambda h, x: functional.jvp(h, x, ops.ones_like(x))[1]),
    "jacobian": at_4(lambda h, x: functional.jacobian(h, x)),
    "jacobian, vectorized": at_4(lambda h, x: functional.jacobian(h, x, vectorize=True)),
    "jacobian, forward": at_4(lambda h, x: functional.jacobian(h, x, strategy="forward-mode")),
    "hvp": at_4(lambda h, x: 4.0 * functional.hvp(h, x, ops.ones_like(x))[1]),
    "vhp": at_4(lambda h, x: 4.0 * functional.vhp(h, x, ops.ones_like(x))[1]),
    "hessian": at_4(lambda h, x: 4.0 * functional.hessian(h, x)),
}


@pytest.mark.short_cases(20, "jax", "tensorflow")
@pytest.mark.parametrize("where", LIBRARIES + VARIABLES)
@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("rule", RULES)
def test_outer_derivative_with_respect_to_values_that_a_rule_reads(where, derivative, rule):
    if (where, derivative, rule) == ("torch", "jacobian, forward", "of_a_function"):
        pytest.skip("PyTorch asks a Function for a `jvp` of its own in forward mode")
    x = make(4.0, beside(where))

    def f(y):
        return DERIVATIVES[derivative](RULES[rule](y), x)

    y = make(3.0, where)
    assert number(gradops.grad(f)(y)) == pytest.approx(-4 * math.sin(3), rel=1e-12)
    if derivative == "grad" and rule != "of_a_function":
        assert number(gradops.grad(gradops.grad(f))(y)) == pytest.approx(-4 * math.cos(3), rel=1e-12)


@pytest.mark.parametrize("where", ["torch", *VARIABLES])
@pytest.mark.parametrize("rule", RULES)
def test_derivative_is_connected_to_leaves_that_its_rule_reads(where, rule):
    y = make(3.0, where)
    if where == "torch":
        y.requires_grad_()
    x = make(4.0, beside(where))
    found = gradops.grad(lambda x: first(RULES[rule](y)(x)))(x)
    found.backward()
    assert number(y.grad) == pytest.approx(-4 * math.sin(3), rel=1e-12)


@pytest.mark.parametrize("where", ["numpy", "torch", *VARIABLES])
def test_derivative_through_a_hook_that_reads_an_outer_value(where):
    def f(y):
        def h(x):
            z = 2 * x
            z.register_hook(lambda g: g * ops.cos(y) / 2)
            return z

        return gradops.grad(h)(make(4.0, beside(where)))

    assert number(gradops.grad(f)(make(3.0, where))) == pytest.approx(-math.sin(3), rel=1e-12)


@pytest.mark.parametrize("where", LIBRARIES)
@pytest.mark.parametrize("rule", ["closed_over", "given_forward", "of_a_default", "of_an_attribute", "in_a_list"])
def test_compiled(where, rule):
    x = make(4.0, where)
    f = gradops.jit(gradops.grad(lambda y: gradops.grad(lambda x: first(RULES[rule](y)(x)))(x)))
    for y in (3.0, 2.0):
        assert number(f(make(y, where))) == pytest.approx(-4 * math.sin(y), rel=1e-9)


@pytest.mark.parametrize("where", ["numpy", "torch"])
def test_rules_without_outer_reads_give_plain_results(where):
    """No pass is recorded if a rule reads constants or only what it computed from its inputs."""
    x = make(4.0, where)

    def exponential(x):
        e = ops.exp(x)
        return e, lambda u: u * e

    for h in (closed_over(make(3.0, where)), gradops.custom_gradient(exponential)):
        found = gradops.grad(h)(x)
        assert type(found) is not Variable and not getattr(found, "requires_grad", False)
    y = Variable(3.0, requires_grad=True) if where == "numpy" else make(3.0, where).requires_grad_()

    def looked(x):
        e = ops.exp(x)
        return e, lambda u: u * e * (1.0 if ops.shape(y + 1) == () else 0.0)

    found = gradops.grad(gradops.custom_gradient(looked))(x)
    assert number(found) == pytest.approx(math.exp(4)) and not getattr(found, "requires_grad", False)


@pytest.mark.parametrize("where", ["numpy", "torch"])
def test_rule_without_outer_reads_runs_once(where):
    calls = []
    h = gradops.custom_gradient(lambda x: (2 * x, lambda u: calls.append(1) or u))
    gradops.grad(h)(make(4.0, where))
    assert len(calls) == 1


# Rules that write to their upstream gradient


@gradops.custom_gradient
def clip(z):
    def rule(u):
        u[u < 0.5] = 0
        return u

    return z * 1.0, rule


class Clip(Function):
    @staticmethod
    def forward(ctx, z):
        return z * 1.0

    @staticmethod
    def backward(ctx, u):
        u[u < 0.5] = 0
        return u


def hooked(z):
    def rule(u):
        u[u < 0.5] = 0
        return u

    z = z * 1.0
    z.register_hook(rule)
    return z


W = np.array([0.1, 0.2, 3.0])
WRITING = {"custom_gradient": clip, "Function": Clip.apply, "hook": hooked}


@pytest.mark.parametrize("where", ["numpy", "torch", "variable of numpy"])
@pytest.mark.parametrize("how", WRITING)
def test_rule_that_writes_to_its_upstream_changes_no_other_gradient(where, how):
    if (where, how) == ("torch", "hook"):
        pytest.skip("hooks of torch tensors are PyTorch's: they may not write to their argument")
    h, w = WRITING[how], make(W, beside(where))
    x = make(np.ones(3), where)
    for f in (lambda z: ops.sum((h(z) + z) * w), lambda z: ops.sum((z + h(z)) * w)):
        found = gradops.grad(f)(x)
        np.testing.assert_array_equal(ops.convert_to_numpy(ops.stop_gradient(found)), [0.1, 0.2, 6])


@pytest.mark.parametrize("where", ["numpy", "torch"])
@pytest.mark.parametrize("how", WRITING)
def test_rule_that_writes_to_its_upstream_leaves_the_seed_unchanged(where, how):
    if (where, how) == ("torch", "hook"):
        pytest.skip("hooks of torch tensors are PyTorch's: they may not write to their argument")
    h, v = WRITING[how], make(W, where)
    _, found = functional.vjp(h, make(np.ones(3), where), v)
    np.testing.assert_array_equal(ops.convert_to_numpy(found), [0, 0, 3])
    np.testing.assert_array_equal(ops.convert_to_numpy(v), W)
    x = Variable(np.ones(3), requires_grad=True) if where == "numpy" else make(np.ones(3), where).requires_grad_()
    h(x).backward(v)
    np.testing.assert_array_equal(ops.convert_to_numpy(x.grad), [0, 0, 3])
    np.testing.assert_array_equal(ops.convert_to_numpy(v), W)


def test_rule_that_writes_to_its_upstream_compiled():
    f = gradops.jit(gradops.grad(lambda z: ops.sum((clip(z) + z) * W)))
    np.testing.assert_array_equal(f(np.ones(3)), [0.1, 0.2, 6])


def test_rule_that_writes_to_its_upstream_in_a_recorded_pass():
    def scaled(s):
        return ops.sum(gradops.grad(lambda z: ops.sum((clip(z) * s + z) * W))(np.ones(3)))

    assert gradops.grad(scaled)(1.0) == pytest.approx(3.0)


# Random rules. A chain of functions h_k with values a_k(x) and rules u -> u w_k(x, y): its derivative is the product of
# the w_k at the intermediate values, computed by NumPy; finite differences of it give the outer derivative.

VALUES = [lambda x: 2 * x, lambda x: ops.sin(x), lambda x: x * x / 2, lambda x: ops.tanh(x) + x]
NUMPY_VALUES = [lambda x: 2 * x, np.sin, lambda x: x * x / 2, lambda x: np.tanh(x) + x]
WEIGHTS = [
    (lambda x, y, z: ops.cos(y), lambda x, y, z: np.cos(y)),
    (lambda x, y, z: y * x + 0.3, lambda x, y, z: y * x + 0.3),
    (lambda x, y, z: ops.exp(-y * z), lambda x, y, z: np.exp(-y * z)),
    (lambda x, y, z: 1.5 + z * ops.sin(x), lambda x, y, z: 1.5 + z * np.sin(x)),
    (lambda x, y, z: 0.7 + 0 * x, lambda x, y, z: 0.7 + 0 * x),
    (lambda x, y, z: ops.where(y > 0, y, z) + x, lambda x, y, z: np.where(y > 0, y, z) + x),
]
INNER = ["grad", "value_and_grad", "vjp", "jvp", "jacobian", "jacobian, forward"]


def random_chain(seed: int, where: str):
    """Return a chain of custom gradients of ``(y, z)``, and NumPy's formula for its derivative at ``x``."""
    rng = np.random.default_rng(seed)
    parts = [(int(rng.integers(len(VALUES))), int(rng.integers(len(WEIGHTS)))) for _ in range(rng.integers(1, 4))]
    forms = rng.integers(0, 5, len(parts))
    inner = str(rng.choice(INNER))

    def chain(y, z):
        def h(x):
            for (value, weight), form in zip(parts, forms):
                x = link(VALUES[value], WEIGHTS[weight][0], form, y, z)(x)
            return x

        return h

    def formula(x, y, z):
        total = 1.0
        for value, weight in parts:
            total = total * WEIGHTS[weight][1](x, y, z)
            x = NUMPY_VALUES[value](x)
        return float(total)

    return chain, formula, inner


def link(value, weight, form: int, y, z):
    if form == 0:
        return gradops.custom_gradient(lambda x: (value(x), lambda u: u * weight(x, y, z)))
    if form == 1:
        return gradops.custom_gradient(value, lambda x, upstream: upstream * weight(x, y, z))
    if form == 2:
        held = {"y": y}
        return gradops.custom_gradient(lambda x: (value(x), lambda u: weight(x, held["y"], z) * u))
    if form == 4:
        forward = gradops.custom_jvp(value)
        forward.defjvps(lambda t, _, x: t * weight(x, y, z))
        return forward
    inner = gradops.custom_gradient(lambda x: (x * 1.0, lambda u: u * weight(x, y, z)))
    outer = gradops.custom_gradient(lambda x: (value(x), lambda u: gradops.grad(inner)(x) * u))
    return lambda x: outer(x)


def check_random_chain(seed: int, where: str) -> None:
    chain, formula, inner = random_chain(seed, where)
    x, y, z = 0.6, 0.8, -0.4
    at = make(x, beside(where))
    f = gradops.grad(lambda y, z: DERIVATIVES[inner](chain(y, z), at), argnums=(0, 1))
    found = [number(g) for g in f(make(y, where), make(z, where))]
    step = 1e-6
    expected = [
        (formula(x, y + step, z) - formula(x, y - step, z)) / (2 * step),
        (formula(x, y, z + step) - formula(x, y, z - step)) / (2 * step),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8, err_msg=f"seed {seed}, {inner}")


@pytest.mark.parametrize("where", LIBRARIES + VARIABLES)
def test_random_rules_that_read_outer_values(where):
    for seed in range(12):
        check_random_chain(seed, where)


@pytest.mark.long
@pytest.mark.parametrize("where", LIBRARIES + VARIABLES)
def test_many_random_rules_that_read_outer_values(where):
    for seed in seeds(400):
        check_random_chain(seed, where)


assert set(LIBRARIES) == set(backends.NAMES)

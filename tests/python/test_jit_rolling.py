"""Unrolled loops that become one operation: the same values and derivatives as on the tape, from fewer steps."""

from __future__ import annotations

import numpy as np
import pytest

import gradops
from gradops import ops
from gradops.jit import rolling

T = 80
RNG = np.random.default_rng(3)
Y = RNG.normal(size=T)
X = RNG.normal(size=(T, 3))
WHICH = RNG.integers(0, 3, T)
ARGUMENT = RNG.normal(size=12) * 0.3


def steps(compiled) -> int:
    return sum(program.steps for program in compiled.programs.all())


def hidden_markov(p):
    transitions = ops.softmax(ops.reshape(p[:9], (3, 3)), 1)
    emissions = ops.softmax(ops.outer(p[9:], p[:3]), 1)
    a, total = np.ones(3) / 3, 0.0
    for i in WHICH:
        a = ops.matmul(a, transitions) * emissions[:, int(i)]
        total = total + ops.log(ops.sum(a))
        a = a / ops.sum(a)
    return total


def kalman(p):
    F, Q, H = ops.reshape(p[:4], (2, 2)) + np.eye(2) * 0.8, ops.exp(p[4]) * np.eye(2), np.array([[1.0, 0.5]])
    m, P, total = np.zeros(2), np.eye(2), 0.0
    for y in Y:
        m, P = ops.matmul(F, m), ops.matmul(ops.matmul(F, P), ops.transpose(F)) + Q
        S, v = ops.matmul(ops.matmul(H, P), H.T) + ops.exp(p[5]), float(y) - ops.matmul(H, m)
        K = ops.matmul(P, H.T) / S
        m, P = m + ops.matmul(K, v), P - ops.matmul(ops.matmul(K, H), P)
        total = total + ops.log(S[0, 0]) + v[0] ** 2 / S[0, 0]
    return total


def recurrent(p):
    """Apply a matrix product to each row before it meets the state, and read all states afterwards."""
    W, U, h, states = ops.reshape(p[:9], (3, 3)), ops.outer(p[9:], p[:3]), np.zeros(3), []
    for x in X:
        h = ops.tanh(ops.matmul(W, h) + ops.matmul(U, x))
        states.append(ops.sum(h * p[:3]))
    return ops.sum((ops.stack(states) - Y) ** 2) + ops.sum(h)


def rows_written(p):
    """Write each state into a matrix and read the one before from there."""
    m = ops.set_at(ops.zeros((T, 3)), 0, p[:3])
    for t in range(1, T):
        m = ops.set_at(m, t, ops.tanh(m[t - 1] * p[3:6] + X[t]))
    return ops.sum(m * X)


def written_in_place(p):
    m = ops.zeros((T, 3)) + p[0]
    for t in range(1, T):
        m[t] = ops.sin(m[t - 1] * p[3:6] + X[t] * p[1])
    return ops.sum(m * X)


def argument_written(p):
    """Write to the argument itself while the loop reads it."""
    p = p + 0.0
    q = p[:3] * 1.0
    for t in range(T):
        p[t % 12] = ops.cos(q[0]) * 0.5
        q = ops.sin(q * p[t % 12] + X[t])
    return ops.sum(q) + ops.sum(p)


def nested_loops(p):
    x = p[:3]
    for t in range(T // 2):
        for k in range(3):
            x = ops.sin(x * p[3:6] + X[t]) * (k + 1.0)
        x = x / (1.0 + ops.sum(x * x))
    return ops.sum(x)


def longer_steps(p):
    """Change the step size, a number in the arguments of the operations, and the constants of the operations."""
    x = p[:3]
    for t in range(T):
        x = x + 0.1 / (t + 1) * (ops.matmul(ops.reshape(p[3:], (3, 3)), x) - x**3) + ops.maximum(x, float(Y[t]))
        x = x / (2.0 + ops.sum(x * x))
    return ops.sum(x * x)


def lengths(p):
    """Record lengths, whose squares the tape treats in a special way."""
    x = p[:3]
    for t in range(T):
        x = ops.sin(x * p[3:6] + X[t])
        x = x / (2.0 + ops.norm(x))
    return ops.sum(x * x)


def two_chains(p):
    a, b, total = p[:3], p[3:6], 0.0
    for t in range(T):
        a = ops.cos(a * p[6]) + X[t]
        b = ops.sin(b + p[7] * a) * p[3:6]
        total = total + ops.sum(a * b)
    return total


def settings(p):
    """Change a float that is no tensor, but a setting of the operation."""
    x = p[:3]
    for t in range(T):
        x = ops.softmax(ops.quantile(x * p[3:6] + X[t], 0.2 + t / (2.0 * T)) + x)
    return ops.sum(x * p[:3])


def second_order(p):
    """Depend on the last two states, which no loop of this kind holds."""
    one, two = p[:3], p[3:6]
    for t in range(T):
        one, two = two, ops.tanh(two * p[6:9] + one * p[9:] + X[t])
    return ops.sum(two)


def branching(p):
    x = p[:3]
    for t in range(T):
        x = ops.sin(x + X[t]) if x[0] > 0 else ops.cos(x * p[3:6]) + 0.1
    return ops.sum(x)


ROLLED = [
    hidden_markov,
    kalman,
    recurrent,
    rows_written,
    written_in_place,
    nested_loops,
    longer_steps,
    two_chains,
]


@pytest.mark.parametrize(
    "f", [*ROLLED, argument_written, settings, second_order, branching, lengths], ids=lambda f: f.__name__
)
def test_derivatives_equal_the_tape(f):
    compiled = gradops.jit(gradops.value_and_grad(f))
    for x in (ARGUMENT, ARGUMENT * 1.1):
        value, gradient = compiled(x)
        want, wanted = gradops.value_and_grad(f)(x)
        np.testing.assert_allclose(value, want, rtol=1e-10)
        np.testing.assert_allclose(gradient, wanted, rtol=1e-8, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("f", [kalman, rows_written, two_chains, second_order], ids=lambda f: f.__name__)
def test_second_derivatives_equal_the_tape(f):
    found, wanted = gradops.jit(gradops.hessian(f))(ARGUMENT), gradops.hessian(f)(ARGUMENT)
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize("f", ROLLED, ids=lambda f: f.__name__)
def test_the_loop_is_one_operation(f):
    compiled = gradops.jit(gradops.value_and_grad(f))
    compiled(ARGUMENT)
    assert steps(compiled) < 4 * T
    assert " iterations became one step" in compiled.explain()


def test_single_precision():
    x = ARGUMENT.astype(np.float32)

    def f(p):
        a = p[:3]
        for t in range(T):
            a = ops.tanh(a * p[3:6] + X[t].astype(np.float32)) * 0.5 + 0.1 * a + p[:3] * 0.01
        return ops.sum(a)

    compiled = gradops.jit(gradops.value_and_grad(f))
    value, gradient = compiled(x)
    want, wanted = gradops.value_and_grad(f)(x)
    assert value.dtype == gradient.dtype == np.float32
    assert steps(compiled) < T
    np.testing.assert_allclose(value, want, rtol=1e-5)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-4, atol=1e-6)


# Gradients that only the tape knows.

halved = gradops.custom_gradient(lambda x: (ops.sin(x), lambda g: g * 0.5))


@gradops.custom_jvp
def tripled(x):
    return ops.sin(x)


tripled.defjvp(lambda primals, tangents: (ops.sin(primals[0]), tangents[0] * 3.0))


def hooked(x):
    y = ops.sin(x)
    if isinstance(y, gradops.Variable) and y.requires_grad:
        y.register_hook(lambda g: g * 0.25)
    return y


def scoped(x):
    with gradops.stop_gradient_scope():
        return ops.sin(x)


def unrecorded(x):
    with gradops.autodiff.no_grad():
        return ops.sin(x)


SPECIAL = {
    "stopped": lambda x: gradops.stop_gradient(ops.sin(x)) + x,
    "scaled": lambda x: gradops.scaled_gradient(ops.sin(x), 2.0),
    "reversed": lambda x: gradops.scaled_gradient(ops.sin(x), -1.0),
    "custom": halved,
    "jvp": tripled,
    "hooked": hooked,
    "scope": lambda x: scoped(x) + x * 0.5,
    "no_grad": lambda x: unrecorded(x) + x * 0.5,
    "checkpoint": gradops.checkpoint(lambda x: ops.sin(x) * ops.cos(x)),
    "detached": lambda x: ops.sin(x) + (x.detach() if isinstance(x, gradops.Variable) else x),
}


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("is_late", [False, True])
def test_special_gradients_stay(name, is_late):
    """Each iteration has the special gradient, or only one of them has it."""
    special = SPECIAL[name]

    def f(p):
        a = p[:3]
        for t in range(T):
            g = special if not is_late or t == T // 2 else ops.sin
            a = g(a * p[3:6] + X[t]) * 0.7 + ops.tanh(a * p[6:9]) + 0.1
        return ops.sum(a)

    _, gradient = gradops.jit(gradops.value_and_grad(f))(ARGUMENT)
    _, wanted = gradops.value_and_grad(f)(ARGUMENT)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-8, atol=1e-12)


def test_gradients_of_variables_outside():
    """The loop reads the argument of an enclosing derivative."""

    def inner(q, p):
        a = q
        for t in range(T):
            a = ops.tanh(a * p[3:6] + X[t]) * p[6:9] + 0.5 * a + ops.sin(q)
        return ops.sum(a)

    def f(p):
        return ops.sum(gradops.grad(lambda q: inner(q, p))(p[:3]) ** 2)

    _, gradient = gradops.jit(gradops.value_and_grad(f))(ARGUMENT)
    _, wanted = gradops.value_and_grad(f)(ARGUMENT)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-7, atol=1e-10)


def test_auxiliary_results():
    def f(p):
        a, largest = p[:3], 0.0
        for t in range(T):
            a = ops.tanh(a * p[3:6] + X[t]) * p[6:9] + 0.5 * a
            largest = ops.maximum(largest, ops.max(a))
        return ops.sum(a), largest

    (value, aux), gradient = gradops.jit(gradops.value_and_grad(f, has_aux=True))(ARGUMENT)
    (want, aux_wanted), wanted = gradops.value_and_grad(f, has_aux=True)(ARGUMENT)
    np.testing.assert_allclose([value, aux], [want, aux_wanted], rtol=1e-12)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-8)


def test_a_loop_with_another_value_is_not_used(monkeypatch):
    """The value shows that a loop replaces other operations than it should."""
    stacked = rolling._Rolled._stacked
    monkeypatch.setattr(rolling._Rolled, "_stacked", lambda *arguments: stacked(*arguments)[::-1])
    compiled = gradops.jit(gradops.value_and_grad(kalman))
    value, gradient = compiled(ARGUMENT)
    want, wanted = gradops.value_and_grad(kalman)(ARGUMENT)
    assert "became one step" not in compiled.explain()
    np.testing.assert_allclose(value, want, rtol=1e-10)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-8)


# Random loops.

UNARY = [ops.tanh, ops.sin, ops.sigmoid, ops.softplus, lambda x: x**2 * 0.1, lambda x: x / (1.0 + ops.abs(x))]
BINARY = [ops.add, ops.multiply, ops.maximum, lambda x, y: x - 0.5 * y, lambda x, y: ops.hypot(x, y + 2.0)]


def random_loop(seed: int):
    """Return a function with a random loop of some iterations over some states, and its argument."""
    random = np.random.default_rng(seed)
    n, count, iterations = int(random.integers(1, 6)), int(random.integers(1, 4)), int(random.integers(40, 90))
    data, constants = random.normal(size=(iterations, n)), random.normal(size=(4, n))
    program = [tuple(random.integers(0, 1000, 4).tolist()) for _ in range(int(random.integers(5, 15)))]
    keeps, skipped = bool(random.integers(2)), int(random.integers(0, 2 * iterations))

    def f(p):
        matrix = ops.reshape(p[: n * n], (n, n)) / n
        states = [p[:n] * (k + 1.0) for k in range(count)]
        kept, total = [], 0.0
        for t in range(iterations):
            values = [*states, data[t], constants[t % 4], p[:n], ops.matmul(matrix, data[t])]
            for kind, which, first, second in program:
                x, y = values[first % len(values)], values[second % len(values)]
                if kind % 5 == 0:
                    values.append(ops.matmul(matrix, x))
                elif kind % 5 == 1:
                    values.append(ops.sum(x) * 0.1 + y)
                elif kind % 5 == 2:
                    values.append(UNARY[which % len(UNARY)](x))
                else:
                    values.append(BINARY[which % len(BINARY)](x, y))
            if t != skipped:
                states = [ops.tanh(values[-1 - k]) + 0.1 * states[k] for k in range(count)]
            total = total + ops.sum(values[-1]) * float(data[t, 0])
            kept.append(states[0])
        return total + (ops.sum(ops.stack(kept) * data) if keeps else ops.sum(states[0]))

    return f, random.normal(size=n * n + n) * 0.5


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.long) for s in range(12, 200))])
def test_random_loops(seed):
    f, x = random_loop(seed)
    value, gradient = gradops.jit(gradops.value_and_grad(f))(x)
    want, wanted = gradops.value_and_grad(f)(x)
    np.testing.assert_allclose(value, want, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-8 * max(1, np.abs(wanted).max()))


# Values of the argument that are constants of the derivative.


def chain(q, x):
    a = q
    for t in range(T):
        a = ops.tanh(a * q[0] + x * ops.sin(q) + X[t]) * 0.7 + 0.1 * a * ops.sin(x)
    return ops.sum(a)


def stopped_in_gradient(q, stopped):
    return ops.sum(gradops.grad(lambda r: chain(r, stopped))(q) ** 2)


CONSTANTS = {
    "argument": lambda x: gradops.grad(lambda q: chain(q, x))(x),
    "stopped": gradops.grad(lambda q: stopped_in_gradient(q, gradops.stop_gradient(q))),
    "gradient": lambda x: gradops.grad(
        lambda q: chain(q, gradops.grad(lambda r: ops.sum(r * r) / 2)(gradops.stop_gradient(q)))
    )(x),
    "other": gradops.grad(lambda q, x: chain(q, x), argnums=0),
    "both": gradops.grad(chain, argnums=(0, 1)),
    "inside": gradops.grad(lambda q, x: chain(q, x) + ops.sum(gradops.grad(lambda r: chain(r, x))(x) * q), argnums=0),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_equal_to_the_argument(name):
    """Recorded rows are equal where a value is a variable and where it is a constant; only the tape knows."""
    f, x = CONSTANTS[name], ARGUMENT[:3]
    arguments = (x, x) if name in ("other", "both", "inside") else (x,)
    found, wanted = gradops.jit(f)(*arguments), f(*arguments)
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-12)

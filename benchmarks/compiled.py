"""Times value and gradient of loops over observations: compiled programs, HIPS autograd, JAX and code by hand.

python benchmarks/compiled.py
"""

from __future__ import annotations

import math
import time

import autograd
import autograd.numpy
import numpy as np
from timing import compare, table

from gradops import backends, jit, ops, value_and_grad

rng = np.random.default_rng(0)
Y = np.cumsum(0.5 * rng.normal(size=200)) + rng.normal(size=200)
R = rng.normal(size=500)
for data in (Y, R):
    data.flags.writeable = False  # so that calls need not compare it


def kalman(p, exp=ops.exp, log=ops.log):
    """Return the negative log-likelihood of a local level model."""
    q, r = exp(p[0]), exp(p[1])
    level, variance, total = 0.0, 10.0, 0.0
    for y in Y:
        variance = variance + q
        s = variance + r
        v = y - level
        total = total + log(s) + v**2 / s
        k = variance / s
        level = level + k * v
        variance = variance * (1 - k)
    return total / 2


def garch(p, exp=ops.exp, log=ops.log):
    """Return the negative log-likelihood of a GARCH(1,1) model."""
    omega, alpha, beta = exp(p[0]), exp(p[1]), 1 / (1 + exp(-p[2]))
    h, total = 1.0, 0.0
    for before, now in zip(R[:-1], R[1:]):
        h = omega + alpha * before**2 + beta * h
        total = total + log(h) + now**2 / h
    return total / 2


def kalman_by_hand(p):
    q, r = map(math.exp, p)
    level, variance, total = 0.0, 10.0, 0.0
    d_level, d_variance, d_total = (0.0, 0.0), (0.0, 0.0), [0.0, 0.0]
    for y in Y.tolist():
        variance, d_variance = variance + q, (d_variance[0] + q, d_variance[1])
        s, d_s = variance + r, (d_variance[0], d_variance[1] + r)
        v = y - level
        total += math.log(s) + v * v / s
        k = variance / s
        d_k = [(d_variance[i] - k * d_s[i]) / s for i in (0, 1)]
        for i in (0, 1):
            d_total[i] += d_s[i] / s - 2 * v * d_level[i] / s - v * v * d_s[i] / (s * s)
        d_level = [d_level[i] * (1 - k) + d_k[i] * v for i in (0, 1)]
        level += k * v
        d_variance = [d_variance[i] * (1 - k) - variance * d_k[i] for i in (0, 1)]
        variance *= 1 - k
    return total / 2, np.array(d_total) / 2


def filtered(q, r, log):
    """Return a step of the Kalman filter, for a loop that is one operation."""

    def step(state, y):
        level, variance, total = state
        variance = variance + q
        s = variance + r
        v = y - level
        k = variance / s
        return (level + k * v, variance * (1 - k), total + log(s) + v**2 / s), None

    return step


def kalman_on_jax(data=Y):
    """Return value and gradient of :func:`kalman` on JAX, by ``lax.scan``: XLA takes minutes for an unrolled loop."""
    import jax
    import jax.numpy as jnp

    def loss(p):
        q, r = jnp.exp(p[0]), jnp.exp(p[1])
        start = (0.0 * q, 10.0 + 0.0 * q, 0.0 * q)
        return jax.lax.scan(filtered(q, r, jnp.log), start, jnp.asarray(data))[0][2] / 2

    return jax.jit(jax.value_and_grad(loss))


def kalman_by_scan(p, rows):
    """Return the likelihood of :func:`kalman` by ``ops.scan``: the loop is one step of the program."""
    q, r = ops.exp(p[0]), ops.exp(p[1])
    return ops.scan(filtered(q, r, ops.log), (0.0, 10.0, 0.0), rows)[0][2] / 2


def long_loops(x, lengths=(200, 5_000, 100_000)) -> None:
    """Print milliseconds of the first and of later values and gradients of ``ops.scan()`` with many steps."""
    rows = []
    for n in lengths:
        data = np.cumsum(0.5 * rng.normal(size=n)) + rng.normal(size=n)
        data.flags.writeable = False
        contenders, first = {}, {}
        for name, make in (("gradops", lambda d=data: jit(value_and_grad(lambda p: kalman_by_scan(p, d)))),) + (
            (("JAX", lambda d=data: kalman_on_jax(d)),) if backends.installed("jax") else ()
        ):
            start = time.perf_counter()
            f = make()
            value, gradient = f(x)
            first[name] = time.perf_counter() - start
            contenders[name] = lambda f=f: np.asarray(f(x)[1])
        times = compare(contenders)
        rows.append([f"{n}", *[f"{1e3 * first[k]:.0f}, {1e3 * times[k]:.3f}" for k in contenders]])
    print("\nKalman filter as a scan: first result, later ones; milliseconds\n")
    table(["steps", *contenders], rows)


def hidden(p, xp, scan, logsumexp, log_softmax):
    """Return the negative log-likelihood of a Gaussian hidden Markov model with 3 states, by the forward pass."""
    moves, means = log_softmax(xp.reshape(p[:9], (3, 3)), 1), p[9:]

    def step(state, y):
        return logsumexp(xp.reshape(state, (3, 1)) + moves, 0) - 0.5 * (y - means) ** 2, None

    return -logsumexp(scan(step, 0.0 * means, Y)[0], 0)


def hidden_states() -> None:
    """Print times of value and gradient of :func:`hidden` in gradops and JAX."""
    x = np.concatenate([0.3 * rng.normal(size=9), [-1.0, 0.0, 1.0]])
    own = jit(value_and_grad(lambda p: hidden(p, ops, ops.scan, ops.logsumexp, ops.log_softmax)))
    contenders = {"gradops jit": lambda: np.asarray(own(x)[1])}
    if backends.installed("jax"):
        import jax

        of_jax = jax.scipy.special.logsumexp, jax.nn.log_softmax
        other = jax.jit(jax.value_and_grad(lambda p: hidden(p, jax.numpy, jax.lax.scan, *of_jax)))
        contenders["jax.jit, lax.scan"] = lambda: np.asarray(other(x)[1])
    for contender in contenders.values():
        np.testing.assert_allclose(contender(), contenders["gradops jit"](), rtol=1e-9)
    print("\nHidden Markov model, 3 states, 200 steps: value and gradient\n")
    table(["", "us"], [[name, f"{1e6 * t:.0f}"] for name, t in compare(contenders).items()])


def measure(name: str, f, x, others: dict) -> None:
    """Print a table with times of ``f``'s value and gradient: compiled, eager, by HIPS autograd, and ``others``."""
    start = time.perf_counter()
    compiled = jit(value_and_grad(f))
    gradient = compiled(x)[1]
    first = time.perf_counter() - start
    hips = autograd.value_and_grad(lambda p: f(p, autograd.numpy.exp, autograd.numpy.log))
    contenders = {
        "gradops jit": lambda: compiled(x),
        "gradops eager": lambda: value_and_grad(f)(x),
        "HIPS autograd": lambda: hips(x),
        **others,
    }
    for contender in contenders.values():
        np.testing.assert_allclose(np.asarray(contender()[1]), gradient, rtol=1e-9)
    contenders["NumPy's numbers, value alone"] = lambda: f(x, np.exp, np.log)
    times = compare(contenders)
    print(f"\n{name}: value and gradient; first result after {1e3 * first:.0f} ms; {compiled.explain()}\n")
    base = times["gradops jit"]
    table(["", "us", "ratio"], [[name, f"{1e6 * t:.0f}", f"{t / base:.1f}"] for name, t in times.items()])


def main() -> None:
    x = np.array([-1.0, 0.3])
    others = {"by hand, Python's numbers": lambda: kalman_by_hand(x)}
    if backends.installed("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        on_jax = kalman_on_jax()
        others["jax.jit, lax.scan"] = lambda: jax.block_until_ready(on_jax(x))
    scanned = jit(value_and_grad(lambda p: kalman_by_scan(p, Y)))
    others["gradops jit, ops.scan"] = lambda: scanned(x)
    measure("Kalman filter, 200 steps", kalman, x, others)
    measure("GARCH(1,1), 500 steps", garch, np.array([-2.0, -2.0, 0.5]), {})
    long_loops(x)
    hidden_states()


if __name__ == "__main__":
    main()

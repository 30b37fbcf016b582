"""Times derivatives of a likelihood: compiled, eager, in hand-written NumPy and in JAX.

python benchmarks/functional.py
"""

from __future__ import annotations

import numpy as np
from timing import compare, table

from gradops import backends, config, functional, jit, ops, value_and_grad

rng = np.random.default_rng(0)
N, P = 2000, 10
X = rng.normal(size=(N, P))
Y = (rng.random(N) < 0.5).astype(float)
BETA = rng.normal(size=P) / 10


def likelihood(x, y):
    def loss(beta):
        eta = ops.matmul(x, beta)
        return ops.sum(ops.softplus(eta) - y * eta)

    return loss


def by_hand(beta):
    eta = X @ beta
    value = np.sum(np.logaddexp(0, eta) - Y * eta)
    return value, X.T @ (1 / (1 + np.exp(-eta)) - Y)


def logistic_regression() -> None:
    loss = likelihood(X, Y)
    contenders = {
        "NumPy by hand": lambda: by_hand(BETA),
        "gradops eager, NumPy": lambda: both(BETA),
        "gradops jit, NumPy": lambda: compiled(BETA),
    }
    both, compiled = value_and_grad(loss), jit(value_and_grad(loss))
    if backends.installed("jax"):
        import jax

        config.set_backend("jax")
        convert = backends.lookup("jax").convert
        x, y, beta = convert(X), convert(Y), convert(BETA)
        on_jax = jit(value_and_grad(likelihood(x, y)))
        plain = jax.jit(jax.value_and_grad(lambda b: (jax.nn.softplus(x @ b) - y * (x @ b)).sum()))
        contenders["gradops jit, JAX"] = lambda: jax.block_until_ready(on_jax(beta))
        contenders["jax.jit(jax.value_and_grad)"] = lambda: jax.block_until_ready(plain(beta))
        config.set_backend("numpy")
    times = compare(contenders)
    print(f"\nLogistic regression, n = {N}, p = {P}: value and gradient\n")
    base = times["NumPy by hand"]
    table(["", "us", "ratio"], [[name, f"{1e6 * t:.0f}", f"{t / base:.2f}"] for name, t in times.items()])


def products() -> None:
    """Print times of products with derivatives, for a multilayer perceptron with 20,000 parameters on NumPy."""
    w = rng.normal(size=(100, 200)) / 10
    v = rng.normal(size=w.shape)
    data = rng.normal(size=(64, 100))

    def loss(w):
        return ops.sum(ops.tanh(ops.matmul(ops.tanh(ops.matmul(data, w)), ops.transpose(w))) ** 2)

    gradient = value_and_grad(loss)
    times = compare(
        {
            "value": lambda: loss(w),
            "gradient": lambda: gradient(w),
            "jvp": lambda: functional.jvp(loss, w, v),
            "hvp": lambda: functional.hvp(loss, w, v),
            "vhp": lambda: functional.vhp(loss, w, v),
        },
        budget=0.05,
    )
    print("\nA two-layer tanh network, 20,000 weights, on the tape\n")
    rows = [
        [name, f"{1e6 * t:.0f}", f"{t / times['value']:.1f}", f"{t / times['gradient']:.1f}"]
        for name, t in times.items()
    ]
    table(["", "us", "ratio to the value", "ratio to the gradient"], rows)


if __name__ == "__main__":
    logistic_regression()
    products()

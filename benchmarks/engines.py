"""Times a transformer block's training step written with gradops, and the same step written with the library alone.

    python benchmarks/engines.py [torch|jax] [8x64x128]

The second argument is the size: the number of sequences, their length, and their width (in four heads).

The block is pre-normalised attention and a two-layer perceptron, whose activation has a custom (clipped) gradient. A
step computes the value and the gradient of all parameters and updates them by gradient descent. Steps run eagerly and
compiled, on one thread, in turns. The table also has the time to the first compiled step of a fresh process, without
imports. Both versions must find the same loss.
"""
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import subprocess
import sys
import time

import numpy as np
from timing import compare, table

import gradops
from gradops import ops

SIZES = [argument for argument in sys.argv[1:] if argument[0].isdigit()]
BATCH, LENGTH, WIDTH = map(int, (SIZES or ["8x64x128"])[0].split("x"))
HEADS = 4
RATE, BOUND = 1e-3, 1e-3

random = np.random.default_rng(0)


def array(*shape, scale=1.0):
    return (scale * random.standard_normal(shape)).astype("float32")


PARAMETERS = {
    "gain1": np.ones(WIDTH, "float32"),
    "shift1": np.zeros(WIDTH, "float32"),
    "into": array(WIDTH, 3 * WIDTH, scale=WIDTH**-0.5),
    "out": array(WIDTH, WIDTH, scale=WIDTH**-0.5),
    "gain2": np.ones(WIDTH, "float32"),
    "shift2": np.zeros(WIDTH, "float32"),
    "up": array(WIDTH, 4 * WIDTH, scale=WIDTH**-0.5),
    "down": array(4 * WIDTH, WIDTH, scale=(4 * WIDTH) ** -0.5),
}
X, Y = array(BATCH, LENGTH, WIDTH), array(BATCH, LENGTH, WIDTH)


@gradops.custom_gradient
def bounded(x):
    """Return ``x``, with a bounded gradient."""
    return x, lambda upstream: ops.clip(upstream, -BOUND, BOUND)


def loss(p, x, y):
    """Return the loss, written with gradops, on any library."""
    h = ops.layer_normalization(x, p["gain1"], p["shift1"], epsilon=1e-3)
    q, k, v = (ops.reshape(part, (BATCH, LENGTH, HEADS, -1)) for part in ops.split(h @ p["into"], 3, axis=-1))
    x = x + ops.reshape(ops.dot_product_attention(q, k, v), (BATCH, LENGTH, WIDTH)) @ p["out"]
    h = ops.layer_normalization(x, p["gain2"], p["shift2"], epsilon=1e-3)
    x = x + bounded(ops.gelu(h @ p["up"])) @ p["down"]
    return ops.mean(ops.square(x - y))


def torch_loss():
    import torch
    from torch.nn import functional

    class Bounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, upstream):
            return upstream.clamp(-BOUND, BOUND)

    def loss(p, x, y):
        h = functional.layer_norm(x, (WIDTH,), p["gain1"], p["shift1"], 1e-3)
        q, k, v = (
            part.reshape(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for part in torch.split(h @ p["into"], WIDTH, dim=-1)
        )
        attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        x = x + attended.reshape(BATCH, LENGTH, WIDTH) @ p["out"]
        h = functional.layer_norm(x, (WIDTH,), p["gain2"], p["shift2"], 1e-3)
        x = x + Bounded.apply(functional.gelu(h @ p["up"], approximate="tanh")) @ p["down"]
        return torch.mean((x - y) ** 2)

    return loss


def on_torch(loss, compiled: bool):
    import torch

    torch.set_num_threads(1)
    p = {name: torch.tensor(value, requires_grad=True) for name, value in PARAMETERS.items()}
    x, y = torch.tensor(X), torch.tensor(Y)
    f = torch.compile(loss, fullgraph=True) if compiled else loss
    descent = torch.optim.SGD(p.values(), lr=RATE)

    def step():
        descent.zero_grad()
        value = f(p, x, y)
        value.backward()
        descent.step()
        return float(value.detach())

    return step


def jax_loss():
    import jax
    import jax.numpy as jnp

    bounded = jax.custom_vjp(lambda x: x)
    bounded.defvjp(lambda x: (x, None), lambda _, upstream: (jnp.clip(upstream, -BOUND, BOUND),))

    def normalized(x, gain, shift):
        centred = x - jnp.mean(x, -1, keepdims=True)
        return centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-3) * gain + shift

    def loss(p, x, y):
        h = normalized(x, p["gain1"], p["shift1"])
        q, k, v = (part.reshape(BATCH, LENGTH, HEADS, -1) for part in jnp.split(h @ p["into"], 3, axis=-1))
        x = x + jax.nn.dot_product_attention(q, k, v).reshape(BATCH, LENGTH, WIDTH) @ p["out"]
        h = normalized(x, p["gain2"], p["shift2"])
        x = x + bounded(jax.nn.gelu(h @ p["up"])) @ p["down"]
        return jnp.mean((x - y) ** 2)

    return loss


def on_jax(loss, compiled: bool):
    import jax

    p = {name: jax.numpy.asarray(value) for name, value in PARAMETERS.items()}
    x, y = jax.numpy.asarray(X), jax.numpy.asarray(Y)

    def update(p):
        value, gradients = jax.value_and_grad(loss)(p, x, y)
        return value, jax.tree.map(lambda w, g: w - RATE * g, p, gradients)

    f = jax.jit(update) if compiled else update

    def step():
        nonlocal p
        value, p = f(p)
        return float(value)

    return step


ENGINES = {"torch": (on_torch, torch_loss), "jax": (on_jax, jax_loss)}


def first_step(name: str, who: str) -> float:
    """Return the seconds to the first compiled step of a fresh process, which finds a warm compiler cache on disk."""
    command = [sys.executable, __file__, "--first", name, who, *SIZES]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(2))


def time_first_step(name: str, who: str) -> None:
    make, native = ENGINES[name]
    step = make(loss if who == "gradops" else native(), True)
    start = time.perf_counter()
    step()
    print(time.perf_counter() - start)


def main(names) -> None:
    rows = []
    for name in names or ENGINES:
        make, native = ENGINES[name]
        for compiled in (False, True):
            steps = {"gradops": make(loss, compiled), "native": make(native(), compiled)}
            for _ in range(5):
                np.testing.assert_allclose(steps["gradops"](), steps["native"](), rtol=1e-4)
            times = compare(steps, repeats=25, budget=0.1)
            rows.append(
                [
                    f"{name}, {'compiled' if compiled else 'eager'}",
                    f"{1e3 * times['gradops']:.2f}",
                    f"{1e3 * times['native']:.2f}",
                    f"{times['gradops'] / times['native']:.2f}",
                    *([f"{first_step(name, who):.1f}" for who in steps] if compiled else ["", ""]),
                ]
            )
    table(["", "gradops, ms", "native, ms", "ratio", "first step, s", "native's, s"], rows)


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument not in SIZES]
    time_first_step(*given[1:]) if given[:1] == ["--first"] else main(given)

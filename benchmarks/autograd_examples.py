"""Times value and gradient of models like HIPS autograd's examples in gradops, autograd and JAX.

OMP_NUM_THREADS=1 python benchmarks/autograd_examples.py            # all
OMP_NUM_THREADS=1 python benchmarks/autograd_examples.py lstm gp    # some

Each model is written once, for all three libraries. Its docstring labels its row in the table.
"""

from __future__ import annotations

import sys
import time

import autograd
import autograd.numpy as autograd_numpy
import jax
import jax.numpy as jax_numpy
import numpy as np
from timing import compare, table

import gradops
import gradops.numpy as gradops_numpy

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)


def gp(np, count=20):
    """The marginal likelihood of a Gaussian process, 20 points."""
    x, y = np.linspace(-2, 2, count), np.sin(np.linspace(0, 6, count))

    def loss(p):
        apart = (x[:, None] - x[None, :]) / np.exp(p[3])
        covariance = np.exp(p[2]) * np.exp(-0.5 * apart**2) + (np.exp(p[1]) + 1e-4) * np.eye(count)
        rest = y - p[0]
        sign, size = np.linalg.slogdet(covariance)
        return 0.5 * (np.dot(rest, np.linalg.solve(covariance, rest)) + size)

    return loss, rng.normal(size=4) / 3


def large_gp(np):
    """The marginal likelihood of a Gaussian process, 100 points."""
    return gp(np, 100)


def lstm(np):
    """A language model: 10 steps of 8 texts, 16 states, 20 letters."""
    letters = np.eye(20)[rng.integers(0, 20, size=(11, 8))]

    def loss(p):
        hidden, cell, total = np.zeros((8, 16)), np.zeros((8, 16)), 0.0
        for now, then in zip(letters[:-1], letters[1:]):
            both = np.concatenate([now, hidden], axis=1)
            forget, enter, leave = [1 / (1 + np.exp(-(np.dot(both, p[k]) + p[k + 4]))) for k in (0, 1, 2)]
            cell = forget * cell + enter * np.tanh(np.dot(both, p[3]) + p[7])
            hidden = leave * np.tanh(cell)
            scores = np.dot(hidden, p[8])
            total = total + np.sum(np.log(np.sum(np.exp(scores), axis=1)) - np.sum(scores * then, axis=1))
        return total / 80

    weights = [rng.normal(size=(36, 16)) / 6 for _ in range(4)]
    return loss, [*weights, *[np.zeros(16)] * 4, rng.normal(size=(16, 20)) / 4]


def variational(np):
    """Black-box variational inference: 100 draws of two numbers."""
    noise = rng.normal(size=(100, 2))

    def loss(p):
        draws = noise * np.exp(p[2:]) + p[:2]
        mean, scale = draws[:, 0], draws[:, 1]
        density = -0.5 * (scale / 1.35) ** 2 - 0.5 * (mean / np.exp(scale)) ** 2 - scale
        return -np.mean(density) - np.sum(p[2:])

    return loss, np.array([-1.0, -1.0, -2.0, -2.0])


def fluid(np):
    """Smoke in a fluid, 16 x 16, five steps."""
    start, goal = rng.random((16, 16)), rng.random((16, 16))

    def projected(u, v):
        sources = -0.5 * (np.roll(u, -1, 0) - np.roll(u, 1, 0) + np.roll(v, -1, 1) - np.roll(v, 1, 1)) / 16
        p = np.zeros((16, 16))
        for _ in range(5):
            p = (sources + np.roll(p, 1, 0) + np.roll(p, -1, 0) + np.roll(p, 1, 1) + np.roll(p, -1, 1)) / 4
        down, right = np.roll(p, -1, 0) - np.roll(p, 1, 0), np.roll(p, -1, 1) - np.roll(p, 1, 1)
        return u - 8 * down, v - 8 * right

    def loss(p):
        u, v, smoke = p[0], p[1], start
        for _ in range(5):
            u, v = projected(u, v)
            down, right = u - np.floor(u), v - np.floor(v)
            smoke = (1 - down) * ((1 - right) * smoke + right * np.roll(smoke, 1, 1)) + down * np.roll(smoke, 1, 0)
        return np.mean((smoke - goal) ** 2)

    return loss, [rng.normal(size=(16, 16)) / 10 for _ in range(2)]


def ode(np):
    """An equation whose slope is a neural net: 30 steps of Runge and Kutta."""
    times = np.linspace(0, 1.5, 30)
    true = np.stack([2 * np.cos(2 * times), -2 * np.sin(2 * times)], axis=1)

    def slope(y, p):
        return np.dot(np.tanh(np.dot(y**3, p[0]) + p[1]), p[2]) + p[3]

    def loss(p):
        y, h, total = np.array([2.0, 0.0]), 1.5 / 29, 0.0
        for wanted in true:
            total = total + np.mean(np.abs(y - wanted))
            a = slope(y, p)
            b = slope(y + h / 2 * a, p)
            c = slope(y + h / 2 * b, p)
            y = y + h / 6 * (a + 2 * b + 2 * c + slope(y + h * c, p))
        return total / 30

    return loss, [rng.normal(size=shape) / 4 for shape in ((2, 20), (20,), (20, 2), (2,))]


def net(np, count=256, pixels=64, hidden=(50, 30), kinds=10):
    """A neural net, 256 x 64 to 10 classes."""
    images, classes = rng.normal(size=(count, pixels)), np.eye(kinds)[rng.integers(0, kinds, size=count)]

    def loss(p):
        hidden = np.tanh(np.dot(images, p[0]) + p[1])
        scores = np.dot(np.tanh(np.dot(hidden, p[2]) + p[3]), p[4]) + p[5]
        return np.mean(np.log(np.sum(np.exp(scores), axis=1)) - np.sum(scores * classes, axis=1))

    a, b = hidden
    return loss, [rng.normal(size=shape) / 8 for shape in ((pixels, a), (a,), (a, b), (b,), (b, kinds), (kinds,))]


def small_net(np):
    """A neural net, 20 x 8 to 3 classes."""
    return net(np, 20, 8, (10, 5), 3)


def rosenbrock(np):
    """A function of two numbers, the shortest."""
    return lambda p: 100 * (p[1] - p[0] ** 2) ** 2 + (1 - p[0]) ** 2, np.array([-1.0, 2.0])


RUNS = {f.__name__: f for f in (gp, large_gp, lstm, variational, fluid, ode, net, small_net, rosenbrock)}


def once(call, *args) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call(*args))
    return time.perf_counter() - start


def run(make) -> list[str]:
    global rng
    found, points = {}, {}
    libraries = {
        "gradops": (gradops_numpy, gradops.value_and_grad),
        "autograd": (autograd_numpy, autograd.value_and_grad),
        "jax": (jax_numpy, jax.value_and_grad),
    }
    for name, (numpy, derive) in libraries.items():
        rng = np.random.default_rng(0)
        loss, point = make(numpy)
        found[name] = derive(loss)
        points[name] = jax.tree.map(jax_numpy.asarray if name == "jax" else np.asarray, point)
    compiled = {"gradops": gradops.jit(found["gradops"]), "jax": jax.jit(found["jax"])}
    first = {name: once(call, points[name]) for name, call in compiled.items()}
    values = [call(points[name]) for name, call in (*found.items(), *compiled.items())]
    for value in values[1:]:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10), values[0], value)
    short = {"repeats": 200, "budget": 0.001}  # the best of many short rounds was not interrupted
    eager = compare({name: lambda name=name: found[name](points[name]) for name in ("gradops", "autograd")}, **short)
    calls = {"gradops": lambda: compiled["gradops"](points["gradops"])}
    warm = compare(calls | {"jax": lambda: jax.block_until_ready(compiled["jax"](points["jax"]))}, **short)
    cells = [1e6 * eager["gradops"], 1e6 * warm["gradops"], 1e3 * first["gradops"]]
    ratios = [eager["autograd"] / eager["gradops"], warm["jax"] / warm["gradops"], first["jax"] / first["gradops"]]
    return [make.__doc__.rstrip("."), *[f"{x:.0f}" for x in cells], *[f"{x:.1f}" for x in ratios]]


if __name__ == "__main__":
    header = ["", "eager, us", "jit, us", "jit, first, ms", "autograd / eager", "jax.jit / jit", "first: jax.jit / jit"]
    table(header, [run(RUNS[name]) for name in sys.argv[1:] or RUNS])

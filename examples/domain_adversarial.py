"""Domain-adversarial training (Ganin & Lempitsky 2015) on two moons, in PyTorch and JAX with the same source.

    python examples/domain_adversarial.py [--steps 600] [--picture domain_adversarial.png]

A classifier is trained on one pair of moons and used on a pair rotated by 40 degrees, without labels from that pair.
A second head guesses from the features which pair a point is from. ``scaled_gradient(features, -rate)`` reverses its
gradient on the way to the features, so they learn to separate the moons but not the pairs. Over 15 seeds the target
accuracy is 59 % to 76 % without the reversal and 70 % to 97 % with it. The picture needs matplotlib.
``domain_adversarial.R`` is the same program in R.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

import gradops
from gradops import backends, config, ops, value_and_grad

WIDTH, ANGLE = 32, 40.0


def moons(count: int, angle: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return points on two interleaved half circles, rotated by ``angle`` degrees around the origin, and labels."""
    t = np.pi * rng.random(count)
    label = np.arange(count) % 2
    points = np.where(label[:, None] == 0, np.c_[np.cos(t), np.sin(t)], np.c_[1 - np.cos(t), 0.5 - np.sin(t)])
    points = points - [0.5, 0.25] + 0.08 * rng.normal(size=(count, 2))
    a = np.deg2rad(angle)
    return points @ np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]), label.astype(float)


def layer(rng: np.random.Generator, inputs: int, outputs: int) -> dict:
    return {"w": rng.normal(size=(inputs, outputs)) * (2 / inputs) ** 0.5, "b": np.zeros(outputs)}


def initial(rng: np.random.Generator) -> dict:
    return {
        "features": [layer(rng, 2, WIDTH), layer(rng, WIDTH, WIDTH)],
        "label": [layer(rng, WIDTH, 1)],
        "domain": [layer(rng, WIDTH, WIDTH), layer(rng, WIDTH, 1)],
    }


def network(layers: list, x):
    for i, part in enumerate(layers):
        x = ops.matmul(x, part["w"]) + part["b"]
        if i + 1 < len(layers):
            x = ops.relu(x)
    return x


def features(parameters: dict, x):
    return ops.tanh(network(parameters["features"], x))


def cross_entropy(logits, target):
    """Return the cross-entropy of labels 0 and 1, from logits."""
    return ops.mean(ops.softplus(logits) - target * logits)


def loss(parameters, source, label, target, rate):
    """Return the loss of the label head on the source plus that of the domain head on both, with reversed gradient."""
    of_source, of_target = features(parameters, source), features(parameters, target)
    wrong = cross_entropy(network(parameters["label"], of_source), label)
    both = gradops.scaled_gradient(ops.concatenate([of_source, of_target]), -rate)
    origin = ops.concatenate([ops.zeros_like(label), ops.ones_like(label)])
    return wrong + cross_entropy(network(parameters["domain"], both), origin)


def train(backend: str, adversarial: bool, steps: int) -> tuple[dict, dict]:
    """Return the accuracies on source and target, and the trained parameters."""
    rng = np.random.default_rng(0)
    (x, y), (z, u) = moons(400, 0.0, rng), moons(400, ANGLE, rng)
    convert = backends.lookup(backend).convert
    parameters = each(convert, initial(rng))
    source, label, target = convert(x), convert(y[:, None]), convert(z)
    gradient = gradops.jit(value_and_grad(loss)) if backend == "jax" else value_and_grad(loss)
    optimizer = Adam()
    for step in range(steps):
        ramp = 2 / (1 + np.exp(-10 * step / steps)) - 1  # the domain head learns first, as in the paper
        _, g = gradient(parameters, source, label, target, convert(ramp if adversarial else 0.0))
        parameters = optimizer.step(parameters, g)

    def accuracy(points, truth):
        logits = np.asarray(network(parameters["label"], features(parameters, convert(points))))
        return float(np.mean((logits[:, 0] > 0) == (truth > 0.5)))

    return {"source": accuracy(x, y), "target": accuracy(z, u)}, parameters


class Adam:
    """The optimizer of Kingma & Ba (2015), for nested parameters of any library."""

    def __init__(self, rate: float = 0.01):
        self.rate, self.count, self.first, self.second = rate, 0, None, None

    def step(self, parameters, gradients):
        self.count += 1
        if self.first is None:
            self.first = self.second = each(ops.zeros_like, parameters)
        self.first = each(lambda m, g: 0.9 * m + 0.1 * g, self.first, gradients)
        self.second = each(lambda v, g: 0.999 * v + 0.001 * g * g, self.second, gradients)
        rate = self.rate * (1 - 0.999**self.count) ** 0.5 / (1 - 0.9**self.count)
        return each(lambda p, m, v: p - rate * m / (ops.sqrt(v) + 1e-8), parameters, self.first, self.second)


def each(f, value, *others):
    """Apply ``f`` to each tensor in nested dicts and lists, with the corresponding tensors in ``others``."""
    if isinstance(value, dict):
        return {key: each(f, value[key], *[o[key] for o in others]) for key in value}
    if isinstance(value, list):
        return [each(f, *parts) for parts in zip(value, *others)]
    return f(value, *others)


def picture(trained: dict, path: str) -> None:
    """Draw the source in grey, the target in its true colours, and the decision boundaries of the first library.

    The background is transparent and the text is grey, for light and dark pages.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    (x, _), (z, u) = moons(400, 0.0, rng), moons(400, ANGLE, rng)
    side = np.linspace(-2, 2, 200)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    libraries = list(dict.fromkeys(backend for backend, _ in trained))
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 4.1))
    for axis, adversarial in zip(axes, (False, True)):
        points = backends.lookup(libraries[0]).convert(grid)
        parameters = trained[libraries[0], adversarial][1]
        logits = np.asarray(network(parameters["label"], features(parameters, points))).reshape(200, 200)
        axis.contourf(side, side, logits > 0, levels=[-0.5, 0.5, 1.5], colors=["#4c8bf5", "#f0803c"], alpha=0.22)
        axis.scatter(*x.T, s=5, color="#909090", linewidths=0)
        axis.scatter(*z.T, s=9, c=np.where(u > 0.5, "#f0803c", "#4c8bf5"), linewidths=0)
        axis.set(aspect="equal", xticks=[], yticks=[])
        for spine in axis.spines.values():
            spine.set_color("#909090")
        right = ", ".join(f"{library} {trained[library, adversarial][0]['target']:.1%}" for library in libraries)
        reversal = "Gradient reversal" if adversarial else "No reversal"
        axis.set_title(reversal, fontsize=13, color="#808080", weight="bold")
        axis.set_xlabel(f"right on the coloured moons:\n{right}", fontsize=11, color="#808080")
    figure.savefig(path, dpi=120, bbox_inches="tight", transparent=True)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="Domain-adversarial training on two moons, in PyTorch and JAX.")
    parser.add_argument("--steps", type=int, default=600, help="training steps (default: 600)")
    parser.add_argument("--picture", metavar="FILE", help="where to draw what was learned (default: nowhere)")
    options = parser.parse_args()
    trained = {}
    print(f"{'library':<10} {'gradient reversal':<18} {'source':>7} {'target':>7}")
    for backend in ("torch", "jax"):
        if not backends.installed(backend):
            print(f"{backend:<10} not installed")
            continue
        with config.backend_scope(backend):
            for adversarial in (False, True):
                found, parameters = train(backend, adversarial, options.steps)
                word = "yes" if adversarial else "no"
                print(f"{backend:<10} {word:<18} {found['source']:>7.1%} {found['target']:>7.1%}", flush=True)
                trained[backend, adversarial] = found, parameters
    if options.picture and trained:
        picture(trained, options.picture)


if __name__ == "__main__":
    main()

"""Times training steps with custom gradients on PyTorch, and the same steps with PyTorch's own means.

    python benchmarks/training.py [eager|compiled] [NAME ...]

PyTorch's own means are a ``torch.autograd.Function``, ``detach``, or ``torch.utils.checkpoint``. A step computes the
loss of a small model on 32 rows, calls ``backward()`` and updates by plain gradient descent, on one thread. Both must
find the same loss. ``rule`` times the rule alone, forward and backward, on an input of 32 x 64. Compiled steps use
``torch.compile(fullgraph=True)``.
"""
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import sys
import time

import torch
from timing import compare, table
from torch.autograd import Function
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import gradops
from gradops import ops

ROWS, WIDTH, STEPS = 32, 64, 20
SLOPE, BOUND, SCALE = 25.0, 1e-3, 0.1


class Reversed(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, upstream):
        return upstream * -ctx.scale, None


class Rounded(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, upstream):
        return upstream


class Binary(Function):
    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return torch.sign(w)

    @staticmethod
    def backward(ctx, upstream):
        (w,) = ctx.saved_tensors
        return upstream * (w.abs() <= 1)


class Spike(Function):
    @staticmethod
    def forward(ctx, v, slope):
        ctx.save_for_backward(v)
        ctx.slope = slope
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, upstream):
        (v,) = ctx.saved_tensors
        return upstream / (ctx.slope * v.abs() + 1) ** 2, None


class Clamped(Function):
    @staticmethod
    def forward(ctx, x, bound):
        ctx.bound = bound
        return x.view_as(x)

    @staticmethod
    def backward(ctx, upstream):
        return upstream.clamp(-ctx.bound, ctx.bound), None


class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return upstream * (s + x * s * (1 - s))


class Product(Function):
    """A layer that divides the gradient of its weights by the number of rows."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, upstream):
        x, w = ctx.saved_tensors
        return upstream @ w.T, x.T @ upstream / len(x)


@gradops.custom_gradient
def spike(v, slope):
    return (v > 0).to(v.dtype), lambda upstream: (upstream / (slope * v.abs() + 1) ** 2, None)


def swish(x):
    s = torch.sigmoid(x)
    return x * s, lambda upstream: upstream * (s + x * s * (1 - s))


def product(x, w):
    return x @ w, lambda upstream: (upstream @ w.T, x.T @ upstream / len(x))


ours_reversed = gradops.custom_gradient(lambda x: x, lambda x, upstream: -SCALE * upstream)
ours_clamped = gradops.custom_gradient(
    lambda x, bound: x, lambda x, bound, upstream: (upstream.clamp(-bound, bound), None)
)
ours_ops = gradops.custom_gradient(lambda x: (x, lambda upstream: ops.clip(upstream, -BOUND, BOUND)))


def block(x):
    return torch.tanh(x) * torch.sigmoid(x) + functional.gelu(x)


def in_scope(x):
    with gradops.gradient_checkpoint_scope():
        y = block(x)
    return y


# Each rule, written with gradops and with PyTorch.
RULES = {
    "reversal": (lambda x: gradops.scaled_gradient(x, -SCALE), lambda x: Reversed.apply(x, SCALE)),
    "reversal by hand": (ours_reversed, lambda x: Reversed.apply(x, SCALE)),
    "straight-through": (gradops.custom_gradient(lambda x: (torch.round(x), lambda upstream: upstream)), Rounded.apply),
    "straight-through, stopped": (
        lambda x: x + gradops.stop_gradient(torch.round(x) - x),
        lambda x: x + (torch.round(x) - x).detach(),
    ),
    "binary weights": (
        gradops.custom_gradient(lambda w: (torch.sign(w), lambda upstream: upstream * (w.abs() <= 1))),
        Binary.apply,
    ),
    "spiking surrogate": (lambda v: spike(v, SLOPE), lambda v: Spike.apply(v, SLOPE)),
    "clamp of gradients": (lambda x: ours_clamped(x, BOUND), lambda x: Clamped.apply(x, BOUND)),
    "clamp by an op": (ours_ops, lambda x: Clamped.apply(x, BOUND)),
    "own activation": (gradops.custom_gradient(swish), Swish.apply),
    "own layer": (gradops.custom_gradient(product), Product.apply),
    "checkpoint": (gradops.checkpoint(block), lambda x: checkpoint(block, x, use_reentrant=False)),
    "checkpoint scope": (in_scope, lambda x: checkpoint(block, x, use_reentrant=False)),
}


def perceptron(name, rule):
    """Return a model of three layers, the first two with the rule: after them, on their weights, or as the layers."""
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(WIDTH, WIDTH) / 8) for _ in range(3)]
    x, y = torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)

    def loss():
        h = x
        for w in weights[:2]:
            if name == "binary weights":
                h = torch.tanh(h @ rule(w))
            elif name == "own layer":
                h = torch.tanh(rule(h, w))
            else:
                h = rule(torch.tanh(h @ w))
        return functional.mse_loss(h @ weights[2], y)

    return weights, loss


def spiking(name, rule):
    """Return a recurrent layer of leaky neurons over ``STEPS`` steps."""
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(WIDTH, WIDTH) / 8) for _ in range(2)]
    xs, y = torch.randn(STEPS, ROWS, WIDTH), torch.rand(ROWS, WIDTH)

    def loss():
        v = torch.zeros(ROWS, WIDTH)
        total = torch.zeros(ROWS, WIDTH)
        s = v
        for x in xs:
            v = 0.9 * v * (1 - s) + x @ weights[0] + s @ weights[1]
            s = rule(v - 1)
            total = total + s
        return functional.mse_loss(total / STEPS, y)

    return weights, loss


def recurrent(name, rule):
    """Return a recurrent network that applies the rule to its state at each of ``STEPS`` steps."""
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(WIDTH, WIDTH) / 8) for _ in range(2)]
    xs, y = torch.randn(STEPS, ROWS, WIDTH), torch.randn(ROWS, WIDTH)

    def loss():
        h = torch.zeros(ROWS, WIDTH)
        for x in xs:
            h = rule(torch.tanh(x @ weights[0] + h @ weights[1]))
        return functional.mse_loss(h, y)

    return weights, loss


MODELS = {"spiking surrogate": spiking, "clamp of gradients": recurrent, "clamp by an op": recurrent}


def training(name, rule, compiled):
    weights, loss = MODELS.get(name, perceptron)(name, rule)
    if compiled:
        torch._dynamo.reset()
        loss = torch.compile(loss, fullgraph=True)

    def step():
        value = loss()
        value.backward()
        with torch.no_grad():
            for w in weights:
                w -= 1e-2 * w.grad
                w.grad = None
        return value.detach()

    return step


def alone(name, rule):
    x = torch.randn(ROWS, WIDTH, requires_grad=True)
    w = torch.randn(WIDTH, WIDTH, requires_grad=True)
    upstream = torch.ones(ROWS, WIDTH)
    given = (x, w) if name == "own layer" else (x,)
    return lambda: torch.autograd.grad(rule(*given), given, upstream)


def rows(name, compiled):
    steps = {who: training(name, rule, compiled) for who, rule in zip(("ours", "theirs"), RULES[name])}
    for _ in range(3):
        torch.testing.assert_close(steps["ours"](), steps["theirs"]())
    times = compare(steps, repeats=150, budget=0.01, clock=time.process_time)
    found = [f"{1e6 * times[who]:.0f}" for who in ("theirs", "ours")] + [f"{times['ours'] / times['theirs']:.2f}"]
    if not compiled:
        single = {who: alone(name, rule) for who, rule in zip(("ours", "theirs"), RULES[name])}
        times = compare(single, repeats=150, budget=0.003, clock=time.process_time)
        found += [f"{1e6 * times[who]:.1f}" for who in ("theirs", "ours")] + [f"{times['ours'] / times['theirs']:.2f}"]
    return [name, *found]


if __name__ == "__main__":
    torch.set_num_threads(1)
    ways, names = [a for a in sys.argv[1:] if a in ("eager", "compiled")], [a for a in sys.argv[1:] if a in RULES]
    for way in ways or ["eager", "compiled"]:
        print(f"\n{way}\n")
        header = ["script", "PyTorch's us", "gradops us", "ratio"]
        header += ["rule: PyTorch's us", "gradops us", "ratio"] if way == "eager" else []
        table(header, [rows(name, way == "compiled") for name in names or RULES])

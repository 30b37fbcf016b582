"""Measures memory and time of checkpointing, and compares custom and scaled gradients with each library's own.

    python benchmarks/flow.py [checkpointing|custom_gradients|flows]

Each way of checkpointing runs in separate processes, on one thread: one measures the peak memory above that before the
first layer, and three measure the time, as the best processor time of a step.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from timing import compare, table

import gradops
from gradops import Variable, ops

LAYERS, SEGMENT, ROWS, WIDTH = 50, 7, 4096, 256

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""Makes freed memory go back to the system at once, so that the peak shows it. That costs time."""

CHECKPOINTS = {
    "numpy": ["nothing", "gradient_checkpoint_scope", "checkpoint"],
    "torch": ["nothing", "gradient_checkpoint_scope", "checkpoint", "torch.utils.checkpoint"],
}


def segments():
    return [range(i, min(i + SEGMENT, LAYERS)) for i in range(0, LAYERS, SEGMENT)]


def torch_chain(contender: str):
    import torch
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(WIDTH, WIDTH) / WIDTH**0.5) for _ in range(LAYERS)]
    x = torch.randn(ROWS, WIDTH)

    def layers(which):
        def run(h):
            for i in which:
                h = torch.tanh(h @ weights[i])
            return h

        return run

    wrap = {"checkpoint": gradops.checkpoint, "torch.utils.checkpoint": None}.get(contender, lambda f: f)
    if wrap is None:
        wrap = lambda f: lambda h: checkpoint(f, h, use_reentrant=False)  # noqa: E731
    scope = gradops.gradient_checkpoint_scope if contender == "gradient_checkpoint_scope" else contextlib.nullcontext

    def step():
        h = x
        for which in segments():
            with scope():
                h = wrap(layers(which))(h)
        h.square().mean().backward()
        for w in weights:
            w.grad = None

    return step


def numpy_chain(contender: str):
    rng = np.random.default_rng(0)
    weights = [
        Variable((rng.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5).astype("float32"), requires_grad=True)
        for _ in range(LAYERS)
    ]
    x = rng.normal(size=(ROWS, WIDTH)).astype("float32")
    scope = gradops.gradient_checkpoint_scope if contender == "gradient_checkpoint_scope" else contextlib.nullcontext
    wrap = gradops.checkpoint if contender == "checkpoint" else lambda f: f

    def layers(which):
        def run(h):
            for i in which:
                h = ops.tanh(ops.matmul(h, weights[i]))
            return h

        return run

    def step():
        h = Variable(x)
        for which in segments():
            with scope():
                h = wrap(layers(which))(h)
        ops.mean(ops.square(h)).backward()
        for w in weights:
            w.zero_grad()

    return step


def measure(library: str, contender: str, what: str) -> None:
    """Print the peak of the first step in MiB, or the best time of ten steps in seconds. Runs in a separate process."""
    chain = {"numpy": numpy_chain, "torch": torch_chain}[library]
    step = chain(contender)
    global ROWS
    rows, ROWS = ROWS, 8
    chain(contender)()  # so that what libraries load and keep does not count
    ROWS = rows
    if what == "peak":
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        step()
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
        return
    best = float("inf")
    for _ in range(10):
        start = time.process_time()
        step()
        best = min(best, time.process_time() - start)
    print(best)


def measured(library: str, contender: str, what: str) -> float:
    command = [sys.executable, __file__, "--measure", library, contender, what]
    settings = ONE_THREAD | (AT_ONCE if what == "peak" else {})
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | settings).stdout
    return float(out.splitlines()[-1])


def checkpointing() -> None:
    print(f"\nA chain of {LAYERS} layers tanh(h @ w), h {ROWS} x {WIDTH} float32, segments of {SEGMENT}: one step\n")
    rows = []
    for library, contenders in CHECKPOINTS.items():
        peaks = {c: measured(library, c, "peak") for c in contenders}
        turns = [{c: measured(library, c, "time") for c in contenders} for _ in range(3)]
        best = {c: min(turn[c] for turn in turns) for c in contenders}
        for c in contenders:
            memory = [f"{peaks[c]:.0f}", f"{peaks[c] / peaks['nothing']:.2f}"]
            rows.append([library, c, *memory, f"{1e3 * best[c]:.0f}", f"{best[c] / best['nothing']:.2f}"])
    table(["library", "recomputed by", "peak MiB", "ratio", "ms", "ratio"], rows)


def square_gradient(x):
    return x * x, lambda upstream: upstream * x * 3.0


def torch_native():
    import torch

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, upstream):
            (x,) = ctx.saved_tensors
            return upstream * x * 3.0

    return Square.apply


def torch_contenders(size: int) -> dict:
    import torch

    x = torch.ones(size or (), requires_grad=True)

    def step(f):
        def run():
            torch.autograd.grad(f(x).sum(), x)

        return run

    own = gradops.custom_gradient(square_gradient)
    native = torch_native()
    both = {"eager": (native, own)}
    with contextlib.suppress(Exception):
        both["compiled"] = tuple(torch.compile(f, backend="aot_eager") for f in both["eager"])
    return {mode: tuple(map(step, pair)) for mode, pair in both.items()}


def jax_contenders(size: int) -> dict:
    import jax
    import jax.numpy as jnp

    x = jnp.ones(size or ())

    @jax.custom_vjp
    def native(x):
        return x * x

    native.defvjp(lambda x: (x * x, x), lambda x, upstream: (upstream * x * 3.0,))
    own = gradops.custom_gradient(square_gradient)
    grads = [jax.grad(lambda x, f=f: f(x).sum()) for f in (native, own)]
    compiled = [jax.jit(g) for g in grads]
    return {
        mode: tuple(lambda g=g: g(x).block_until_ready() for g in pair)
        for mode, pair in {"eager": grads, "compiled": compiled}.items()
    }


def tensorflow_contenders(size: int) -> dict:
    import tensorflow as tf

    x = tf.ones(size or ())
    native, own = tf.custom_gradient(square_gradient), gradops.custom_gradient(square_gradient)

    def step(f):
        def run(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            return tape.gradient(y, x)

        return run

    pair = [step(native), step(own)]
    compiled = [tf.function(f, autograph=False) for f in pair]
    return {
        mode: tuple(lambda f=f: f(x).numpy() for f in fs) for mode, fs in {"eager": pair, "compiled": compiled}.items()
    }


def custom_gradients() -> None:
    print("\nA custom gradient, forward and backward: gradops beside the library's own idiom\n")
    natives = {"torch": "autograd.Function", "jax": "custom_vjp", "tensorflow": "tf.custom_gradient"}
    makers = {"torch": torch_contenders, "jax": jax_contenders, "tensorflow": tensorflow_contenders}
    rows = []
    for library, native in natives.items():
        if not gradops.backends.installed(library):
            continue
        for size, name in ((0, "scalar"), (2**18, "1 MiB")):
            for mode, (theirs, ours) in makers[library](size).items():
                times = compare({"theirs": theirs, "ours": ours}, repeats=300, budget=0.003)
                t, o = times["theirs"], times["ours"]
                numbers = [f"{1e6 * t:.1f}", f"{1e6 * o:.1f}", f"{1e6 * (o - t):.1f}", f"{o / t:.2f}"]
                rows.append([library, mode, name, native, *numbers])
    table(["library", "", "tensor", "native", "native us", "gradops us", "more us", "ratio"], rows)


def torch_flows() -> tuple:
    import torch

    def scaled(scale):
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.view_as(x)

            @staticmethod
            def backward(ctx, upstream):
                return upstream * scale

        return Scaled.apply

    x = torch.ones((), requires_grad=True)
    natives = {"stop": torch.Tensor.detach, "scale": scaled(0.5), "reverse": scaled(-1.0)}
    return natives, lambda f: lambda: torch.autograd.grad(f(x) * x, x)


def jax_flows() -> tuple:
    import jax
    import jax.numpy as jnp

    def scaled(scale):
        function = jax.custom_vjp(lambda x: x)
        function.defvjp(lambda x: (x, None), lambda _, upstream: (upstream * scale,))
        return function

    x = jnp.ones(())

    def step(f):
        g = jax.grad(lambda x: f(x) * x)
        return lambda: g(x).block_until_ready()

    return {"stop": jax.lax.stop_gradient, "scale": scaled(0.5), "reverse": scaled(-1.0)}, step


def tensorflow_flows() -> tuple:
    import tensorflow as tf

    def scaled(scale):
        return tf.custom_gradient(lambda x: (tf.identity(x), lambda upstream: upstream * scale))

    x = tf.ones(())

    def step(f):
        def run():
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x) * x
            return tape.gradient(y, x)

        return run

    return {"stop": tf.stop_gradient, "scale": scaled(0.5), "reverse": scaled(-1.0)}, step


OURS = {
    "stop": gradops.stop_gradient,
    "scale": lambda x: gradops.scaled_gradient(x, 0.5),
    "reverse": lambda x: gradops.scaled_gradient(x, -1.0),
}


def flows() -> None:
    print(
        "\nA scalar that is stopped, scaled or reversed, times itself: forward and backward, eager, beside each idiom\n"
    )
    rows = []
    for library, make in (("torch", torch_flows), ("jax", jax_flows), ("tensorflow", tensorflow_flows)):
        if not gradops.backends.installed(library):
            continue
        natives, step = make()
        for name, native in natives.items():
            times = compare({"theirs": step(native), "ours": step(OURS[name])}, repeats=300, budget=0.003)
            t, o = times["theirs"], times["ours"]
            rows.append([library, name, f"{1e6 * t:.1f}", f"{1e6 * o:.1f}", f"{1e6 * (o - t):.1f}", f"{o / t:.2f}"])
    table(["library", "", "native us", "gradops us", "more us", "ratio"], rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
    else:
        for part in (checkpointing, custom_gradients, flows):
            if sys.argv[1:] in ([], [part.__name__]):
                part()

"""Deep graphs and long runs: no recursion, linear memory, no leaks.

Each check runs in a new process with memory of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[2] / "python"
PROLOGUE = """
import gc, json, resource, time
import numpy as np
from gradops import Variable, ops
from gradops.autodiff import no_grad, state

def now():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
"""


def run(body: str) -> dict:
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("needs /proc")
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    done = subprocess.run([sys.executable, "-c", PROLOGUE + body], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.short_cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("step", ["y + x", "y * 1.0000001", "ops.reshape(y, (2,))", "y[0:2]", "ops.split(y * 1, 1)[0]"])
def test_chain_of_a_million_operations(step):
    """The chain is built, differentiated and freed by reference counting alone, in memory linear in its length."""
    n = 1_000_000 if step == "y * 1.0000001" else 200_000
    found = run(f"""
gc.disable()
x = Variable(np.ones(2), requires_grad=True)
y = x * 1
y = y + 1
start = now()
def chain(n):
    y = x * 1
    for _ in range(n):
        y = {step}
    return y
sizes = []
for n in ({n // 4}, {n}):
    before = now()
    y = chain(n)
    sizes.append(now() - before)
    y.sum().backward()
    del y
    after = now()
y = chain({n // 4})
del y
print(json.dumps({{"sizes": sizes, "left": now() - start, "grad": x.grad.data.tolist()}}))
""")
    small, large = found["sizes"]
    assert large < 6 * max(small, 1 << 24), found
    assert large / n < 3000, f"{large / n:.0f} bytes for each operation"
    assert found["left"] < 0.1 * large + (64 << 20), found
    assert found["grad"][0] > 0


@pytest.mark.slow
def test_second_derivative_of_a_deep_chain():
    found = run("""
from gradops.autodiff import grad
x = Variable(np.ones(2), requires_grad=True)
y = x * x
for _ in range(20_000):
    y = y * 1.00001
(g,) = grad(y.sum(), x, create_graph=True)
(h,) = grad(g.sum(), x)
del y, g
print(json.dumps({"h": h.data.tolist()}))
""")
    assert found["h"][0] == pytest.approx(2 * 1.00001**20_000)


@pytest.mark.long
@pytest.mark.slow
def test_hundred_thousand_training_steps_leak_nothing():
    """The steps use in-place updates, hooks, views and retained gradients; the cycle collector is off."""
    found = run("""
gc.disable()
w = Variable(np.full(3, 0.5), requires_grad=True)
x = np.array([1.0, 2.0, 3.0])
def step(i):
    h = w * x
    if i % 20 == 0:
        h.register_hook(lambda g: g * 1.0)
        h.retain_grad()
        h[0] = 1.0
        h = h[0:2] * h[1:3]
    h.sum().backward()
    with no_grad():
        w.__isub__(1e-9 * w.grad)
    w.zero_grad()
for i in range(5_000):
    step(i)
start = now()
counts = len(state.hooks), len(state.written)
for i in range(100_000):
    step(i)
left = len(state.hooks) - counts[0], len(state.written) - counts[1]
print(json.dumps({"grown": now() - start, "hooks": left[0], "written": left[1]}))
""")
    assert found["grown"] < 4 << 20, found
    assert found["hooks"] <= 0 and found["written"] <= 0, found


@pytest.mark.long
def test_ten_thousand_scopes_left_by_errors():
    """Every scope ends when its block fails, and keeps no mode, no memory and no registered exit."""
    found = run("""
from gradops import config, gradient_checkpoint_scope, stop_gradient_scope
from gradops.autodiff import detect_anomaly, enable_grad, inference_mode, is_grad_enabled, profiler, set_grad_enabled
scopes = [no_grad, enable_grad, inference_mode, lambda: set_grad_enabled(False), stop_gradient_scope, detect_anomaly,
    gradient_checkpoint_scope, lambda: config.backend_scope("numpy"), profiler.profile]
x = Variable(np.ones(100), requires_grad=True)
def fail(i):
    try:
        with scopes[i % len(scopes)](), scopes[i // len(scopes) % len(scopes)]():
            ops.reshape(ops.exp(x), (7, 7))
    except ValueError:
        return
    raise AssertionError("no error")
for i in range(1_000):
    fail(i)
gc.collect()
start, objects = now(), len(gc.get_objects())
for i in range(10_000):
    fail(i)
gc.collect()
y = ops.sum(x * 2)
print(json.dumps({"grown": now() - start, "objects": len(gc.get_objects()) - objects,
    "on": is_grad_enabled() and y.requires_grad, "backend": config.backend()}))
""")
    assert found["grown"] < 8 << 20 and found["objects"] < 200, found
    assert found["on"] and found["backend"] == "numpy"


@pytest.mark.long
@pytest.mark.parametrize("library", ["numpy", "jax", "torch"])
def test_thousand_compilations(library):
    """Compiles functions that are created in a loop and dropped with their programs."""
    pytest.importorskip(library)
    found = run(f"""
import gradops
from gradops import backends
x = backends.lookup("{library}").convert(np.linspace(0.1, 1, 5))
def compiled(i):
    a = float(i)
    f = gradops.jit(gradops.value_and_grad(lambda x: ops.sum(ops.sin(x * a) * x)))
    value, slope = f(x)
    np.testing.assert_allclose(ops.convert_to_numpy(slope)[0], np.sin(0.1 * a) + 0.1 * a * np.cos(0.1 * a), rtol=1e-5)
sizes = []
for part in range(4):
    for i in range({250 if library == "numpy" else 50}):
        compiled(part * 1000 + i)
    {"import jax; jax.clear_caches()" if library == "jax" else ""}
    gc.collect()
    sizes.append(now())
print(json.dumps({{"sizes": sizes}}))
""")
    first, *rest = found["sizes"]
    assert rest[-1] - rest[0] < 24 << 20, found

"""Custom gradients, compiled functions and objectives go to other processes: pickle by name, cloudpickle by value."""

from __future__ import annotations

import pickle
import subprocess
import sys

import module_level
import numpy as np
import pytest

import gradops
from gradops import ops

X = np.array([0.3, -0.7, 1.2])
OF_MODULE = ["own", "compiled", "recomputed", "objective"]


def slope(f):
    """The gradient of a function, or the one that it returns."""
    value = f(X)
    return value[1] if isinstance(value, tuple) else gradops.grad(lambda x: ops.sum(f(x)))(X)


@pytest.mark.parametrize("name", OF_MODULE)
def test_what_is_decorated_at_module_level_is_pickled_by_name(name):
    f = getattr(module_level, name)
    f(X)  # compiled by then
    assert pickle.loads(pickle.dumps(f)) is f


def test_methods():
    assert pickle.loads(pickle.dumps(module_level.Model.method)) is module_level.Model.method


def made_here() -> dict:
    k = 3.0
    own = gradops.custom_gradient(lambda x: (ops.sin(x), lambda upstream: upstream * ops.exp(x) * k))
    return {
        "custom_gradient": own,
        "with a gradient function": gradops.custom_gradient(lambda x: x * k, lambda x, upstream: upstream * x),
        "jit": gradops.jit(lambda x: ops.sum(own(x) * k)),
        "static": gradops.jit(lambda x, n=2: ops.sum(own(x) * n), static_argnums=1),
        "checkpoint": gradops.checkpoint(lambda x: ops.exp(own(x))),
        "value_and_grad": gradops.value_and_grad(lambda x: ops.sum(own(x) * k)),
        "jit of value_and_grad": gradops.jit(gradops.value_and_grad(lambda x: ops.sum(own(x) * k))),
    }


@pytest.mark.parametrize("name", made_here())
def test_what_closes_over_something_is_pickled_by_value(name):
    cloudpickle = pytest.importorskip("cloudpickle", reason="needs `tools/setup --engines`")
    f = made_here()[name]
    want = slope(f)  # compiled programs stay here
    np.testing.assert_allclose(slope(pickle.loads(cloudpickle.dumps(f))), want)


def test_in_another_process():
    cloudpickle = pytest.importorskip("cloudpickle", reason="needs `tools/setup --engines`")
    f = made_here()["jit of value_and_grad"]
    program = "import sys, pickle; value, gradient = pickle.load(sys.stdin.buffer)(); print(*gradient)"
    call = cloudpickle.dumps(lambda: f(X))
    done = subprocess.run([sys.executable, "-c", program], input=call, capture_output=True, check=True)
    np.testing.assert_allclose([float(word) for word in done.stdout.split()], f(X)[1])

"""Custom gradients, compiled functions and objectives in other processes: pickle by name, cloudpickle by value."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
import subprocess
import sys
from pathlib import Path

import module_level
import numpy as np
import pytest
import torch
from parity import BACKENDS, flat, numpy, tensors

import gradops
from gradops import ops
from gradops.errors import GradopsError

X = np.array([0.3, -0.7, 1.2])
OF_MODULE = ["own", "compiled", "recomputed", "objective", "slope", "rows"]


def slope(f):
    """Return the gradient of a function, or the one that it returns."""
    value = f(X)
    return value[1] if isinstance(value, tuple) else gradops.grad(lambda x: ops.sum(f(x)))(X)


@pytest.mark.parametrize("name", OF_MODULE)
def test_module_level_functions_are_pickled_by_name(name):
    f = getattr(module_level, name)
    f(X)  # compiles it
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
def test_closures_are_pickled_by_value(name):
    cloudpickle = pytest.importorskip("cloudpickle", reason="needs `tools/setup --engines`")
    f = made_here()[name]
    want = slope(f)  # compiled programs are not pickled
    np.testing.assert_allclose(slope(pickle.loads(cloudpickle.dumps(f))), want)


def test_pickling_to_another_process():
    cloudpickle = pytest.importorskip("cloudpickle", reason="needs `tools/setup --engines`")
    f = made_here()["jit of value_and_grad"]
    program = "import sys, pickle; value, gradient = pickle.load(sys.stdin.buffer)(); print(*gradient)"
    call = cloudpickle.dumps(lambda: f(X))
    done = subprocess.run([sys.executable, "-c", program], input=call, capture_output=True, check=True)
    np.testing.assert_allclose([float(word) for word in done.stdout.split()], f(X)[1])


MADE = {
    "grad": lambda f: gradops.grad(f),
    "grad of grad": lambda f: gradops.grad(module_level.Summed(gradops.grad(f))),
    "value_and_grad": lambda f: gradops.value_and_grad(f),
    "argnums": lambda f: gradops.value_and_grad(f, argnums=(0,)),
    "jit": lambda f: gradops.jit(f),
    "jit of value_and_grad": lambda f: gradops.jit(gradops.value_and_grad(f)),
    "checkpoint": lambda f: gradops.checkpoint(f),
    "grad of checkpoint": lambda f: gradops.grad(gradops.checkpoint(f)),
    "custom_gradient": lambda f: gradops.custom_gradient(f, module_level.rule),
    "grad of custom_gradient": lambda f: gradops.grad(gradops.custom_gradient(f, module_level.rule)),
    "grad of jit": lambda f: gradops.grad(gradops.jit(f)),
    "vectorize": lambda f: ops.vectorize(f),
    "vectorize by a signature": lambda f: ops.vectorize(f, signature="(n)->()"),
}
"""Transformations of a module-level function."""


@pytest.mark.short_cases(5, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("name", MADE)
def test_transformations_of_a_module_level_function(name, protocol, backend):
    f = MADE[name](module_level.plain)
    x = tensors(X, backend)
    want = f(x)  # compiles it
    for again in (pickle.loads(pickle.dumps(f, protocol)), copy.copy(f), copy.deepcopy(f)):
        for found, wanted in zip(flat(numpy(again(x))), flat(numpy(want))):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("make", [gradops.grad, gradops.value_and_grad, gradops.jit, gradops.checkpoint, ops.vectorize])
def test_unpicklable_functions_are_refused_with_a_hint(make):
    def inner(x):
        return x**2

    for f in (lambda x: x**2, inner):
        with pytest.raises(GradopsError, match="top of a module, by `def`, or pickle it by cloudpickle"):
            pickle.dumps(make(f))
    rule = gradops.custom_gradient(module_level.plain, lambda x, upstream: upstream)
    with pytest.raises(GradopsError, match="top of a module"):
        pickle.dumps(rule)


FUNCTIONS_OF_FUNCTIONS = [
    gradops.grad,
    gradops.value_and_grad,
    gradops.jacobian,
    gradops.hessian,
    gradops.vmap,
    gradops.jit,
    gradops.checkpoint,
    gradops.custom_jvp,
    ops.vectorize,
    lambda f: gradops.custom_gradient(f, lambda x, upstream: upstream),
    lambda f: gradops.jit(gradops.grad(gradops.custom_gradient(f, lambda x, upstream: upstream))),
]
"""Transformations that pickle by what they are made of."""


@pytest.mark.parametrize("make", FUNCTIONS_OF_FUNCTIONS)
def test_copies_of_a_transformed_lambda_are_the_lambda(make):
    f = make(lambda x: x * 2.0)
    for way in (copy.copy, copy.deepcopy):
        assert way(f) is f
        assert way({"activation": functools.partial(f, 1.0)})["activation"].func is f


class Scale:
    def __init__(self, k):
        self.k = np.array(k)
        self.recomputed = gradops.checkpoint(self.scaled)
        self.own = gradops.custom_gradient(self, lambda x, upstream: upstream * self.k)
        self.compiled = gradops.jit(self.scaled)
        self.forward = gradops.custom_jvp(self.scaled)
        self.forward.defjvp(lambda primals, tangents: (self.scaled(*primals), tangents[0] * 7.0))

    def scaled(self, x):
        return x * self.k

    def __call__(self, x):
        return self.scaled(x)


def test_deep_copy_of_an_object_has_its_own_methods():
    """A deep copy calls the copy, like Python's bound methods; a lambda keeps its closure."""
    model = Scale(2.0)
    other = copy.deepcopy(model)
    other.k *= 5.0
    for name in ("recomputed", "own", "compiled", "forward"):
        assert getattr(model, name)(3.0) == 6.0
        assert getattr(other, name)(3.0) == 30.0, name
    assert gradops.grad(other.forward)(3.0) == 7.0
    assert gradops.grad(other.own)(3.0) == 2.0


def test_pytorch_models_are_copied():
    activation = gradops.custom_gradient(lambda x: torch.relu(x), lambda x, upstream: upstream * 3.0)
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation=activation, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    assert all(each.activation is activation for each in encoder.layers)
    averaged = torch.optim.swa_utils.AveragedModel(encoder)
    x = torch.ones(1, 3, 4)
    torch.testing.assert_close(averaged(x), encoder(x))


def test_dataclasses_of_transformed_functions():
    @dataclasses.dataclass
    class Options:
        slope: object

    slope = gradops.grad(lambda x: x * x)
    assert dataclasses.asdict(Options(slope)) == {"slope": slope}


SCRIPT = (
    Path(module_level.__file__).read_text()
    + """
import functools, multiprocessing, pickle, sys
import numpy as np

X = np.array([0.3, -0.7, 1.2])

@gradops.grad
def slope_of_recomputed(x):
    return ops.sum(recomputed(x))

def gradient_of_own(x):
    return gradops.grad(lambda x: ops.sum(own(x)))(x)

FUNCTIONS = [own, compiled, recomputed, objective, slope_of_recomputed, gradient_of_own,
             gradops.grad(plain), gradops.value_and_grad(plain), gradops.jit(plain), gradops.checkpoint(plain),
             gradops.jit(gradops.value_and_grad(compiled)), functools.partial(objective, X)]

def called(f, *x):
    return f(*x)

def flat(value):
    return np.concatenate([np.ravel(v) for v in (value if isinstance(value, tuple) else [value])])

if __name__ == "__main__":
    given = [() if isinstance(f, functools.partial) else (X,) for f in FUNCTIONS]
    want = [flat(f(*x)) for f, x in zip(FUNCTIONS, given)]
    how = sys.argv[1]
    if how == "pickle":
        assert pickle.loads(pickle.dumps(own)) is own
        found = [pickle.loads(pickle.dumps(f))(*x) for f, x in zip(FUNCTIONS, given)]
    elif how == "joblib":
        import joblib
        jobs = [joblib.delayed(f)(*x) for f, x in zip(FUNCTIONS, given)]
        found = joblib.Parallel(n_jobs=2, backend="loky")(jobs)
    elif how == "cloudpickle":
        import cloudpickle, subprocess
        calls = cloudpickle.dumps(lambda: [f(*x) for f, x in zip(FUNCTIONS, given)])
        program = "import pickle, sys; sys.stdout.buffer.write(pickle.dumps(pickle.load(sys.stdin.buffer)()))"
        done = subprocess.run([sys.executable, "-c", program], input=calls, capture_output=True, check=True)
        found = pickle.loads(done.stdout)
    else:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.starmap(called, [(f, *x) for f, x in zip(FUNCTIONS, given)])
    for f, a, b in zip(FUNCTIONS, found, want):
        np.testing.assert_allclose(flat(a), b, err_msg=repr(f))
    print("all", len(FUNCTIONS))
"""
)


@pytest.mark.parametrize("how", ["pickle", "spawn", "cloudpickle", "joblib"])
def test_functions_of_a_script(how, tmp_path):
    """Functions defined in the script that is run can be loaded again and sent to other processes."""
    if how in ("cloudpickle", "joblib"):
        pytest.importorskip(how, reason="needs `tools/setup --engines`")
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(path), how], capture_output=True, text=True, check=False)
    assert done.stdout == "all 12\n", done.stderr

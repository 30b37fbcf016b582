"""Tensors on a device other than the CPU stay there: on PyTorch's `meta`, which has shapes and dtypes but no values.

What an op creates itself (positions, windows, identities) must be on its arguments' device, forward and backward. A CPU
tensor next to a `meta` tensor is PyTorch's error, as it is next to a GPU tensor.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import precision
import pytest
from parity import flat
from test_parity import CASES

import gradops
from gradops import backends, ops
from gradops.ops import random

torch = pytest.importorskip("torch")

VALUES = re.compile(
    "no data|nonzero|Tensor.item|values of `segment_ids`|inside a trace|one known number|"
    "meta device type tensor to numpy"
)
"""The error of an op that needs its arguments' values."""
FEW = ("segment_prod", "unique-filled", "histogram-range", "logspace", "stft", "cholesky", "image.resize")


def on_meta(value):
    return precision.each_array(value, lambda x: backends.lookup("torch").convert(x).to("meta"))


def total(tensors):
    found = [x for x in tensors if isinstance(x, torch.Tensor) and x.requires_grad]
    return sum(x.real.sum() if x.is_complex() else x.sum() for x in found) if found else None


def check(case, place=on_meta, device: str = "meta") -> list[str]:
    """Return the devices of a case's results and gradients, to second order, that differ from its arguments' device."""
    given = {k: place(v) for k, v in case.example().items()}
    leaves = [x for k in case.gradients for x in (given[k] if isinstance(given[k], list) else [given[k]])]
    if not any(isinstance(x, torch.Tensor) for v in given.values() for x in (v if isinstance(v, list) else [v])):
        return []
    for x in leaves:
        x.requires_grad_()
    results = flat(case.function()(**given))
    elsewhere = [str(x.device) for x in results if isinstance(x, torch.Tensor) and x.device.type != device]
    elsewhere += ["NumPy" for x in results if isinstance(x, np.ndarray) and case.op != "convert_to_numpy"]
    y = total(results)
    for _ in range(2):
        if y is None:
            break
        y = total(torch.autograd.grad(y, leaves, create_graph=True, allow_unused=True))
    return elsewhere


def on_cpu(value):
    with torch.device("cpu"):
        return precision.each_array(value, backends.lookup("torch").convert)


def beside_another_default(case) -> list[str]:
    """Return the misplaced results for CPU tensors while PyTorch's default device is another one."""
    try:
        check(case, on_cpu, "cpu")
    except Exception:  # no second derivative, or no derivative on PyTorch
        return []
    with torch.device("meta"):
        return check(case, on_cpu, "cpu")


def tried(case, check=check) -> str:
    """Return the fault of a case: an empty string if it passes or needs values."""
    try:
        return ", ".join(check(case))
    except (RuntimeError, ValueError, TypeError) as error:
        return "" if VALUES.search(str(error)) else f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("name", FEW)
def test_some_ops_stay_on_their_device(name):
    case = next(c for c in CASES if name in (c.id, c.op))
    try:
        assert check(case) == []
    except gradops.errors.GradopsError as error:
        assert name == "unique-filled" and VALUES.search(str(error))


@pytest.mark.parametrize("name", ("quantile-midpoint", "kaiser-numbers", *FEW))
def test_some_ops_ignore_the_default_device(name):
    assert beside_another_default(next(c for c in CASES if name in (c.id, c.op))) == []


@pytest.mark.long
def test_every_op_ignores_the_default_device():
    found = {case.id: wrong for case in CASES if (wrong := tried(case, beside_another_default))}
    assert not found


@pytest.mark.long
def test_every_op_stays_on_its_device():
    found = {case.id: wrong for case in CASES if (wrong := tried(case))}
    assert not found


def test_gradient_function_results_stay_on_their_device():
    """Holds for gradient functions that return a number or a NumPy array as well."""
    for gradient in (lambda upstream: upstream * 2, lambda upstream: 2.0, lambda upstream: np.ones(3)):
        x = torch.ones(3, device="meta", requires_grad=True)
        y = gradops.custom_gradient(lambda x, gradient=gradient: (ops.exp(x), gradient))(x)
        assert torch.autograd.grad(y.sum(), x)[0].device.type == "meta"
    for flow in (
        gradops.stop_gradient,
        lambda x: gradops.scaled_gradient(x, -0.5),
        lambda x: gradops.scaled_gradient_ext(x, scale=2.0, shift=1.0, scale_shift_by_sum_over_axis=0),
        gradops.checkpoint(ops.exp),
    ):
        x = torch.ones(3, device="meta", requires_grad=True)
        y = flow(x) * x
        y.sum().backward()
        assert y.device.type == x.grad.device.type == "meta"


def test_mixing_two_devices_raises_pytorch_error():
    x, y = torch.ones(3), torch.ones(3, device="meta")
    for name in ("add", "where", "matmul", "concatenate", "logaddexp"):
        arguments = {"where": (x > 0, x, y), "concatenate": ([x, y],)}.get(name, (x, y))
        with pytest.raises(gradops.errors.GradopsError, match=f"`{name}`.*device"):
            getattr(ops, name)(*arguments)


def test_random_states_of_other_devices_are_preserved(monkeypatch):
    """`torch.manual_seed` would reseed every GPU."""
    seeded = []
    monkeypatch.setattr(torch, "manual_seed", seeded.append)
    before = torch.get_rng_state()
    alpha = torch.full((3,), 2.0)
    first, again = (random.random_gamma(alpha, alpha, (3,), 4) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not seeded and torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_checkpoint_recomputation_is_not_cast_again(kind):
    """In a backward pass under ``autocast``, the recorded operations already include the casts."""
    from gradops.backends.torch.checkpoint_plan import TorchPlan

    before = torch.is_autocast_enabled(kind)
    torch.set_autocast_enabled(kind, True)
    try:
        with TorchPlan(set(), lambda: None).recomputing():
            assert not torch.is_autocast_enabled(kind)
        assert torch.is_autocast_enabled(kind)
    finally:
        torch.set_autocast_enabled(kind, before)


def test_matmul_precision_settings_are_respected():
    """TF32 and similar modes are settings of PyTorch and JAX: gradops has none of its own and changes none."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        x = torch.ones((2, 2), requires_grad=True)
        ops.sum(ops.matmul(x, ops.solve(x + torch.eye(2), x))).backward()
        assert torch.get_float32_matmul_precision() == "high" and torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.set_float32_matmul_precision(before)
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones((2, 2), "float32")
    for name, f in {"matmul": jax.numpy.matmul, "dot": jax.numpy.dot, "tensordot": jax.numpy.tensordot}.items():
        with jax.default_matmul_precision("tensorfloat32"):
            mine, own = (
                str(jax.make_jaxpr(jax.grad(lambda x, g=g: g(x, x).sum()))(x)) for g in (getattr(ops, name), f)
            )
        assert "HIGH" in own and mine.count("HIGH") == own.count("HIGH"), name


ON_ANOTHER_DEVICE = """
import jax, precision
from parity import flat
from test_parity import CASES
from gradops import backends, ops

device = jax.devices()[1]
x = jax.device_put(jax.numpy.ones(4), jax.sharding.NamedSharding(jax.make_mesh((2,), "i"), jax.P("i")))
for like in (ops.zeros_like(x), ops.ones_like(x), ops.full_like(x, 2), ops.empty_like(x)):
    assert like.sharding == x.sharding and like.dtype == x.dtype

def there(value):
    return precision.each_array(value, lambda x: jax.device_put(backends.lookup("jax").convert(x), device))

def result(case, place):
    return flat(case.function()(**{k: place(v) for k, v in case.example().items()}))

for case in CASES if EVERY else ():
    try:
        found = result(case, there)
    except Exception as error:
        try:
            result(case, lambda value: precision.each_array(value, backends.lookup("jax").convert))
        except Exception:
            continue  # not on JAX at all
        raise AssertionError(case.id) from error
    for y in found:
        assert not isinstance(y, jax.Array) or not y.committed or y.devices() == {device}, case.id
"""


def run_on_another_device(every: bool):
    environment = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "PYTHONPATH": os.pathsep.join(sys.path)}
    script = f"EVERY = {every}{ON_ANOTHER_DEVICE}"
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.long
def test_arrays_like_a_sharded_jax_array_are_sharded():
    pytest.importorskip("jax")
    run_on_another_device(every=False)


@pytest.mark.long
def test_every_op_on_a_second_jax_device():
    pytest.importorskip("jax")
    run_on_another_device(every=True)

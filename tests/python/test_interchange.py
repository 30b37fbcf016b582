"""Tensors from one library to another, with the same memory where the libraries can."""

from __future__ import annotations

import numpy as np
import pytest
from parity import BACKENDS

import gradops
from gradops import Variable, backends, config, errors, ops

pairs = pytest.mark.parametrize("source, target", [(a, b) for a in BACKENDS for b in BACKENDS])


def aligned(values: np.ndarray) -> np.ndarray:
    """The same values in memory that begins at a multiple of 64 bytes, as TensorFlow and JAX need it to share."""
    room = np.empty(values.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    array = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


def made(name: str, values: np.ndarray):
    return values if name == "numpy" else backends.by_name(name).convert(values)


def address(x) -> int:
    if not hasattr(x, "__dlpack__"):
        pytest.skip(f"tensors of this {backends.of(x).name} speak no DLPack")
    try:
        return np.from_dlpack(x).ctypes.data
    except BufferError as error:  # NumPy before 2.1 shares nothing that is read only, as JAX's memory is
        pytest.skip(str(error))


@pairs
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128", "bool"])
def test_values_and_dtype(source, target, dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    y = gradops.to(made(source, values), target)
    assert backends.of(y).name == target and ops.dtype(y) == dtype
    np.testing.assert_array_equal(ops.convert_to_numpy(y), values)


@pairs
def test_the_memory_is_shared(source, target):
    x = made(source, aligned(np.arange(6.0)))
    if source != "numpy" and address(x) % 64 and target in ("tensorflow", "jax"):
        pytest.skip("this library gave memory that the other cannot use")
    assert address(gradops.to(x, target)) == address(x)


@pytest.mark.parametrize("target", BACKENDS)
def test_what_cannot_be_shared_is_copied(target):
    """Memory laid out backwards, read-only, or at an odd place."""
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    for x in (np.arange(8.0)[::-2], frozen, aligned(np.arange(5.0))[1:], np.float64(2.0), np.zeros((0, 3))):
        y = gradops.to(x, target)
        np.testing.assert_array_equal(ops.convert_to_numpy(y), x)
        assert tuple(y.shape) == np.shape(x)
        np.testing.assert_allclose(ops.convert_to_numpy(ops.exp(y)), np.exp(x))  # its kernels take the memory as it is


@pytest.mark.parametrize("target", BACKENDS)
def test_numbers_lists_and_variables(target):
    y = gradops.to([1, 2.5], target)
    assert backends.of(y).name == target and ops.dtype(y) == "float64"
    v = Variable(np.ones(3))
    assert ops.convert_to_numpy(gradops.to(v, target)).tolist() == [1, 1, 1]
    assert gradops.to(y, target) is y
    assert ops.convert_to_numpy(gradops.to(v, target, "cpu")).tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", [b for b in BACKENDS if b != "torch"])
@pytest.mark.parametrize("other", BACKENDS)
def test_a_variable_speaks_dlpack(name, other):
    with config.use_backend(name):
        v = Variable(made(name, aligned(np.arange(4.0))))
        received = {"numpy": np.from_dlpack}
        if other == "torch":
            received[other] = pytest.importorskip("torch").from_dlpack
        elif other == "jax":
            received[other] = pytest.importorskip("jax.numpy").from_dlpack
        elif other == "tensorflow":
            tf = pytest.importorskip("tensorflow")
            received[other] = lambda x: tf.experimental.dlpack.from_dlpack(x.__dlpack__())
        if not hasattr(v.data, "__dlpack__"):
            with pytest.raises(errors.BackendError, match="without DLPack"):
                received[other](v)
            return
        if (name, other) == ("jax", "numpy"):
            address(v.data)
        y = received[other](v)
    assert address(y) == address(v.data) or other == "jax" and address(v.data) % 64
    np.testing.assert_array_equal(np.asarray(y), np.arange(4.0))
    v.requires_grad = True
    with pytest.raises(errors.GradientError, match="being recorded"):
        received[other](v)


def recorded() -> dict:
    found = {"variable": Variable(np.ones(2), requires_grad=True)}
    if "torch" in BACKENDS:
        import torch

        found["torch"] = torch.ones(2, requires_grad=True)
    return found


@pytest.mark.parametrize("kind", recorded())
def test_a_recorded_gradient_is_not_lost(kind):
    with pytest.raises(errors.GradientError, match="being recorded"):
        gradops.to(recorded()[kind], "numpy")
    detached = gradops.to(gradops.stop_gradient(recorded()[kind]), "numpy")
    assert detached.tolist() == [1, 1]


def test_in_a_derivative():
    """Inside `grad` and a watching tape the gradient is recorded, too."""
    for name in BACKENDS:
        other = "torch" if name == "numpy" and "torch" in BACKENDS else "numpy"
        with pytest.raises(errors.GradopsError):
            gradops.grad(lambda x, other=other: ops.sum(gradops.to(x, other)))(made(name, np.ones(2)))


def test_bfloat16():
    for source in ("torch", "jax", "tensorflow"):
        if source in BACKENDS:
            x = ops.cast(made(source, np.ones(2)), "bfloat16")
            for target in {"torch", "jax"} & set(BACKENDS):
                assert ops.dtype(gradops.to(x, target)) == "bfloat16", (source, target)
            assert ops.dtype(gradops.to(x, "numpy")) == "float32"


@pytest.mark.parametrize("name", BACKENDS)
def test_devices_that_are_not_there(name):
    with pytest.raises(errors.BackendError, match="device"):
        gradops.to(np.ones(2), name, "cuda:9")
    with pytest.raises(errors.BackendError, match="Unknown backend"):
        gradops.to(np.ones(2), "cupy")


@pytest.mark.parametrize("target", ["torch", "tensorflow", "jax"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_at_half_an_address(target, dtype):
    """As R's stand in memory: PyTorch's and TensorFlow's loops crash there."""
    pytest.importorskip(target)
    size = np.dtype(dtype).itemsize
    memory = np.zeros(9 * size, np.uint8)
    start = -memory.ctypes.data % size + size // 2
    x = memory[start : start + 7 * size].view(dtype)
    x[:] = np.arange(7) * 1j
    with gradops.config.use_backend(target):
        np.testing.assert_allclose(ops.convert_to_numpy(ops.exp(ops.convert_to_tensor(x))), np.exp(x), rtol=1e-6)
        np.testing.assert_allclose(ops.convert_to_numpy(ops.exp(gradops.to(x, target))), np.exp(x), rtol=1e-6)

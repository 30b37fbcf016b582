"""Conversion of tensors between libraries, with shared memory where possible."""

from __future__ import annotations

import numpy as np
import pytest
from parity import BACKENDS

import gradops
from gradops import Variable, backends, config, errors, ops

pairs = pytest.mark.parametrize("source, target", [(a, b) for a in BACKENDS for b in BACKENDS])


def aligned(values: np.ndarray) -> np.ndarray:
    """Return the values in memory aligned to 64 bytes, which TensorFlow and JAX need to share it."""
    room = np.empty(values.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    array = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


def made(name: str, values: np.ndarray):
    return values if name == "numpy" else backends.lookup(name).convert(values)


def address(x) -> int:
    if not hasattr(x, "__dlpack__"):
        pytest.skip(f"tensors of this {backends.backend_of(x).name} speak no DLPack")
    try:
        return np.from_dlpack(x).ctypes.data
    except BufferError as error:  # NumPy before 2.1 does not share read-only memory, such as JAX's
        pytest.skip(str(error))


@pairs
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128", "bool"])
def test_values_and_dtype(source, target, dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    y = gradops.to_backend(made(source, values), target)
    assert backends.backend_of(y).name == target and ops.dtype(y) == dtype
    np.testing.assert_array_equal(ops.convert_to_numpy(y), values)


@pairs
def test_memory_is_shared(source, target):
    x = made(source, aligned(np.arange(6.0)))
    if source != "numpy" and address(x) % 64 and target in ("tensorflow", "jax"):
        pytest.skip("this library gave memory that the other cannot use")
    assert address(gradops.to_backend(x, target)) == address(x)


@pytest.mark.parametrize("target", BACKENDS)
def test_unshareable_memory_is_copied(target):
    """Covers reversed, read-only and unaligned memory."""
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    for x in (np.arange(8.0)[::-2], frozen, aligned(np.arange(5.0))[1:], np.float64(2.0), np.zeros((0, 3))):
        y = gradops.to_backend(x, target)
        np.testing.assert_array_equal(ops.convert_to_numpy(y), x)
        assert tuple(y.shape) == np.shape(x)
        np.testing.assert_allclose(ops.convert_to_numpy(ops.exp(y)), np.exp(x))  # kernels accept the memory


@pytest.mark.parametrize("target", BACKENDS)
def test_numbers_lists_and_variables(target):
    y = gradops.to_backend([1, 2.5], target)
    assert backends.backend_of(y).name == target and ops.dtype(y) == "float64"
    v = Variable(np.ones(3))
    assert ops.convert_to_numpy(gradops.to_backend(v, target)).tolist() == [1, 1, 1]
    assert gradops.to_backend(y, target) is y
    assert ops.convert_to_numpy(gradops.to_backend(v, target, "cpu")).tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", [b for b in BACKENDS if b != "torch"])
@pytest.mark.parametrize("other", BACKENDS)
def test_variable_supports_dlpack(name, other):
    with config.backend_scope(name):
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
def test_recorded_gradient_is_not_lost(kind):
    with pytest.raises(errors.GradientError, match="being recorded"):
        gradops.to_backend(recorded()[kind], "numpy")
    detached = gradops.to_backend(gradops.stop_gradient(recorded()[kind]), "numpy")
    assert detached.tolist() == [1, 1]


def test_conversions_inside_a_derivative_are_recorded():
    """The conversion raises inside `grad` and under a watching tape."""
    for name in BACKENDS:
        other = "torch" if name == "numpy" and "torch" in BACKENDS else "numpy"
        with pytest.raises(errors.GradopsError):
            gradops.grad(lambda x, other=other: ops.sum(gradops.to_backend(x, other)))(made(name, np.ones(2)))


def test_bfloat16():
    for source in ("torch", "jax", "tensorflow"):
        if source in BACKENDS:
            x = ops.cast(made(source, np.ones(2)), "bfloat16")
            for target in set(BACKENDS) - {"numpy"}:
                assert ops.dtype(gradops.to_backend(x, target)) == "bfloat16", (source, target)
            assert ops.dtype(gradops.to_backend(x, "numpy")) == "float32"


@pytest.mark.parametrize("name", BACKENDS)
def test_missing_devices(name):
    with pytest.raises(errors.BackendError, match="device"):
        gradops.to_backend(np.ones(2), name, "cuda:9")
    for device in ("cpu:9", "cpu:-1", "cpu:x", "", "nonsense", 7.5):
        with pytest.raises(errors.BackendError, match="device"):
            gradops.to_backend(np.ones(2), name, device)
    assert gradops.to_backend(np.ones(2), name, "cpu:0") is not None
    with pytest.raises(errors.BackendError, match="Unknown backend"):
        gradops.to_backend(np.ones(2), "cupy")


@pytest.mark.parametrize("target", BACKENDS)
def test_lazy_conjugation_of_torch(target):
    """PyTorch conjugates lazily on reading, and its DLPack export would hand over unconjugated memory."""
    torch = pytest.importorskip("torch")
    values = np.arange(4.0) + 1j * np.arange(1.0, 5.0)
    x = torch.tensor(values).conj()
    np.testing.assert_array_equal(ops.convert_to_numpy(gradops.to_backend(x, target)), values.conj())
    np.testing.assert_array_equal(ops.convert_to_numpy(gradops.to_backend(x.imag, target)), -values.imag)


@pytest.mark.parametrize("target", BACKENDS)
def test_zeros_without_memory(target):
    """PyTorch allocates no memory for a zero derivative around forward mode; no other memory must be read."""
    torch = pytest.importorskip("torch")
    x = torch.arange(1.0, 4.0, dtype=torch.float64)
    second = torch.func.jacrev(torch.func.jacfwd(lambda z: (gradops.stop_gradient(ops.exp(z)) * z).sum()))(x)
    freed = torch.full((3, 3), 7.0, dtype=torch.float64)
    del freed
    for _ in range(2):
        assert ops.convert_to_numpy(gradops.to_backend(second, target)).tolist() == np.zeros((3, 3)).tolist()
    torch.func.vmap(lambda row: row + float(ops.convert_to_numpy(second).sum()))(x)


def test_read_only_memory_is_not_written_to():
    torch = pytest.importorskip("torch")
    x = aligned(np.arange(3.0))
    x.flags.writeable = False
    y = gradops.to_backend(x, "torch")
    y[0] = 9
    assert x.tolist() == [0, 1, 2] and isinstance(y, torch.Tensor)


@pytest.mark.parametrize("target", BACKENDS)
def test_other_byte_orders(target):
    x = np.arange(3.0).astype(">f8")
    np.testing.assert_array_equal(ops.convert_to_numpy(gradops.to_backend(x, target)), x)
    with config.backend_scope(target):
        np.testing.assert_allclose(ops.convert_to_numpy(ops.exp(ops.convert_to_tensor(x))), np.exp(x))


@pytest.mark.parametrize("target", BACKENDS)
def test_dtypes_missing_in_the_other_library(target):
    """TensorFlow would abort the process when it exports a string tensor."""
    given = {"numpy": [np.array(["a"]), np.array([1, None], object)]}
    if "torch" in BACKENDS:
        import torch

        given["torch"] = [torch.eye(2).to_sparse(), torch.ones(2, device="meta")]
    if "tensorflow" in BACKENDS:
        import tensorflow as tf

        given["tensorflow"] = [tf.constant(["a"])]
    if "jax" in BACKENDS:
        import jax

        given["jax"] = [jax.random.key(0)]
    for x in (x for source, xs in given.items() if source != target for x in xs):
        with pytest.raises(errors.ArgumentTypeError, match=f"`to_backend`: {target} cannot have"):
            gradops.to_backend(x, target)


@pytest.mark.parametrize("name", [b for b in BACKENDS if b != "torch"])
def test_dlpack_keyword_arguments(name):
    """Passes `copy`, `dl_device` and `max_version` to a variable's `__dlpack__`."""
    data = made(name, aligned(np.arange(4.0)))
    v = Variable(data)
    if not hasattr(data, "__dlpack__"):
        pytest.skip(f"tensors of this {name} speak no DLPack")
    where = v.__dlpack_device__()
    assert tuple(map(int, where)) == (1, 0)
    everything = {"stream": None, "max_version": (1, 1), "dl_device": where, "copy": True}
    assert "dltensor" in repr(v.__dlpack__(**everything)) and "dltensor" in repr(v.__dlpack__())
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":  # earlier versions pass no keywords
        copied = np.from_dlpack(v, copy=True)
        np.testing.assert_array_equal(copied, np.arange(4.0))
        assert copied.ctypes.data != np.asarray(data).ctypes.data
    with pytest.raises((BufferError, RuntimeError)):
        v.__dlpack__(dl_device=(2, 0))


def test_in_compiled_functions():
    torch = pytest.importorskip("torch")
    ones = np.ones(2, "float32")
    made_in = torch.compile(lambda x: x + gradops.to_backend(ones, "torch"), fullgraph=True, backend="eager")
    assert made_in(torch.ones(2)).tolist() == [2, 2]
    out = torch.compile(lambda x: gradops.to_backend(x + 1, "numpy"), backend="eager")  # the graph ends there
    assert out(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(errors.JitError, match="looked at a value"):
        torch.func.vmap(lambda x: gradops.to_backend(x, "numpy"))(torch.ones(2, 2))


def test_traced_tensors_have_no_values():
    jax = pytest.importorskip("jax")
    for transform in (jax.jit, jax.vmap):
        with pytest.raises(errors.JitError):
            transform(lambda x: gradops.to_backend(x, "numpy"))(jax.numpy.ones(2))
    with pytest.raises(errors.GradientError, match="being recorded"):
        jax.grad(lambda x: gradops.to_backend(x, "numpy").sum())(jax.numpy.ones(2))


def test_tensorflow_variable_watched_by_a_tape():
    tf = pytest.importorskip("tensorflow")
    v, constant = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0], trainable=False)
    assert gradops.to_backend(v, "numpy").tolist() == [1, 2]
    with tf.GradientTape():
        assert gradops.to_backend(constant, "numpy").tolist() == [1, 2]
        with pytest.raises(errors.GradientError, match="being recorded"):
            gradops.to_backend(v, "numpy")


def test_tangents_are_not_lost():
    torch = pytest.importorskip("torch")
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(errors.GradientError, match="being recorded"):
            gradops.to_backend(x, "numpy")


@pytest.mark.parametrize("target", ["torch", "tensorflow", "jax"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_aligned_to_half_their_size(target, dtype):
    """R allocates complex vectors this way; vectorised loops of PyTorch and TensorFlow crash on them."""
    pytest.importorskip(target)
    size = np.dtype(dtype).itemsize
    memory = np.zeros(9 * size, np.uint8)
    start = -memory.ctypes.data % size + size // 2
    x = memory[start : start + 7 * size].view(dtype)
    x[:] = np.arange(7) * 1j
    with gradops.config.backend_scope(target):
        np.testing.assert_allclose(ops.convert_to_numpy(ops.exp(ops.convert_to_tensor(x))), np.exp(x), rtol=1e-6)
        np.testing.assert_allclose(ops.convert_to_numpy(ops.exp(gradops.to_backend(x, target))), np.exp(x), rtol=1e-6)

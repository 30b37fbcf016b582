"""Convolution: the frameworks' conventions, bounded memory, precision and bad input."""

import tracemalloc

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

from gradops import Variable, autodiff, backends, ops
from gradops.errors import ArgumentError, ArgumentTypeError, ShapeError

random = np.random.default_rng(0)


@pytest.mark.parametrize("size", [5, 6, 7])
@pytest.mark.parametrize("window", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_padding_matches_tensorflow(size, window, stride, tf):
    x, k = random.standard_normal((1, size, 2)), random.standard_normal((window, 2, 3))
    want = tf.nn.conv1d(x, k, stride, "SAME").numpy()
    np.testing.assert_allclose(ops.conv(x, k, stride, "same"), want)
    want = tf.nn.conv1d_transpose(x, k.swapaxes(1, 2), [1, size * stride, 3], stride, "SAME").numpy()
    np.testing.assert_allclose(ops.conv_transpose(x, k.swapaxes(1, 2), stride, "same"), want, atol=1e-12)


@pytest.mark.parametrize("extra", [None, 0, 1])
def test_valid_transpose_matches_torch(extra, torch):
    x, k = random.standard_normal((2, 4, 3)), random.standard_normal((3, 2, 3))
    want = torch.nn.functional.conv_transpose1d(
        torch.tensor(x).transpose(1, 2), torch.tensor(k).permute(2, 1, 0), stride=2, output_padding=extra or 0
    )
    np.testing.assert_allclose(ops.conv_transpose(x, k, 2, output_padding=extra), want.transpose(1, 2).numpy())


def test_memory_is_bounded():
    """Materialised patches of this convolution and of its gradients would take 170 MiB each."""
    x = Variable(random.standard_normal((1, 300, 300, 10)), requires_grad=True)
    k = Variable(random.standard_normal((5, 5, 10, 2)), requires_grad=True)
    for strides in (1, 2):
        tracemalloc.start()
        autodiff.grad(ops.sum(ops.square(ops.conv(x, k, strides))), [x, k])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 64 * 2**20


def test_non_contiguous_inputs():
    x = random.standard_normal((7, 2, 6, 4)).transpose(3, 0, 2, 1)[:, ::-1, ::2]
    k = random.standard_normal((2, 4, 3, 3)).T
    np.testing.assert_allclose(ops.conv(x, k[..., :2, :]), ops.conv(x.copy(), k[..., :2, :].copy()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_precision(backend):
    for name in ("float32", "float64"):
        x, k = tensors(np.ones((1, 4, 1), name), backend), tensors(np.ones((2, 1, 1), name), backend)
        for op in (ops.conv, ops.depthwise_conv, ops.conv_transpose):
            assert ops.dtype(op(x, k)) == name
    half = tensors(np.full((1, 5000, 1), 0.25, "float16"), "numpy")
    assert ops.conv(half, np.ones((5000, 1, 1), "float16")).tolist() == [[[1250.0]]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_empty_batch(backend):
    x, k = tensors(np.ones((0, 4, 3)), backend), tensors(np.ones((2, 3, 5)), backend)
    assert tuple(ops.conv(x, k).shape) == (0, 3, 5)
    assert tuple(ops.conv_transpose(x, tensors(np.ones((2, 5, 3)), backend)).shape) == (0, 5, 5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_become_tensors_of_the_default_backend(backend):
    y = ops.conv([[[1.0], [2.0], [4.0]]], tensors(np.ones((2, 1, 1)), backend))
    assert backends.backend_of(y).name == backend and numpy(y).tolist() == [[[3.0], [6.0]]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_input(backend):
    x, k = tensors(np.ones((2, 4, 4, 3)), backend), tensors(np.ones((2, 2, 3, 5)), backend)
    for op in (ops.conv, ops.depthwise_conv, ops.conv_transpose):
        name = op.op.name
        with pytest.raises(ArgumentError, match=f"`{name}`: `padding`"):
            op(x, k, padding="full")
        with pytest.raises(ArgumentError, match=f"`{name}`: `data_format`"):
            op(x, k, data_format="NHWC")
        with pytest.raises(ArgumentError, match=f"`{name}`: `strides`"):
            op(x, k, strides=0)
        with pytest.raises(ArgumentError, match=f"`{name}`: `strides`"):
            op(x, k, strides=(1, 1, 1))
        with pytest.raises(ArgumentTypeError, match=f"`{name}`: `dilation_rate`"):
            op(x, k, dilation_rate=1.5)
        with pytest.raises(ShapeError, match=f"`{name}`: `inputs`"):
            op(x[0, 0], k)
        with pytest.raises(ShapeError, match=f"`{name}`: `kernel`"):
            op(x, k[0])
        with pytest.raises(ShapeError, match=f"`{name}`: `kernel` must have elements"):
            op(x, k[:0])
    with pytest.raises(ShapeError, match="`conv`: the 3 channels"):
        ops.conv(x, k[:, :, :2])
    with pytest.raises(ShapeError, match="`depthwise_conv`"):
        ops.depthwise_conv(x, k[:, :, :2])
    with pytest.raises(ShapeError, match="`conv_transpose`"):
        ops.conv_transpose(x, k)
    with pytest.raises(ShapeError, match="`conv`: `inputs` must not be smaller"):
        ops.conv(x, k, dilation_rate=4)
    with pytest.raises(ArgumentError, match="`conv`: `padding`"):
        ops.conv(x, k, padding="causal")
    with pytest.raises(ShapeError, match="`separable_conv`: `pointwise_kernel`"):
        ops.separable_conv(x, k, tensors(np.ones((2, 1, 15, 2)), backend))

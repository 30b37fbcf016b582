"""Times convolution, pooling, softmax and attention on NumPy and on PyTorch, both on one thread.

    python benchmarks/nn.py [name ...]

Each row is the best of several runs in turns, on the same data. Nothing is asserted.
"""
# ruff: noqa: E402

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import sys
from functools import partial

import numpy as np
import torch
from timing import compare

from gradops import ops

torch.set_num_threads(1)
random = np.random.default_rng(0)


def array(*shape):
    return random.standard_normal(shape, dtype="float32")


def gradient(function):
    """Return the forward and backward pass of a function of one tensor, by gradops' tape or by PyTorch's."""

    def run(x, *rest):
        if isinstance(x, torch.Tensor):
            x = x.detach().requires_grad_()
            torch.sum(function(x, *rest)).backward()
        else:
            from gradops import Variable, autodiff

            x = Variable(x, requires_grad=True)
            autodiff.grad(ops.sum(function(x, *rest)), [x])

    return run


def conv(**keywords):
    return lambda x, k: ops.conv(x, k, **keywords)


def attention(**keywords):
    return lambda q, k, v: ops.dot_product_attention(q, k, v, flash_attention=True, **keywords)


image, deep = array(8, 56, 56, 64), array(8, 14, 14, 256)
ROWS = {
    "conv 3x3, 64 to 64, 56x56": (conv(padding="same"), image, array(3, 3, 64, 64)),
    "conv 3x3, 256 to 256, 14x14": (conv(padding="same"), deep, array(3, 3, 256, 256)),
    "conv 7x7, 3 to 64, 112x112, stride 2": (
        conv(padding="same", strides=2),
        array(4, 112, 112, 3),
        array(7, 7, 3, 64),
    ),
    "conv 1x1, 256 to 64, 14x14": (conv(), deep, array(1, 1, 256, 64)),
    "conv 1-D 5, 64 to 64, 2000": (conv(padding="causal"), array(4, 2000, 64), array(5, 64, 64)),
    "conv 3-D 3x3x3, 16 to 32": (conv(padding="same"), array(1, 16, 32, 32, 16), array(3, 3, 3, 16, 32)),
    "conv 3x3, channels first": (
        conv(padding="same", data_format="channels_first"),
        array(8, 64, 28, 28),
        array(3, 3, 64, 64),
    ),
    "conv 3x3, 8 groups": (conv(padding="same"), image, array(3, 3, 8, 64)),
    "conv 3x3, 64 to 64, gradients": (gradient(conv(padding="same")), array(8, 28, 28, 64), array(3, 3, 64, 64)),
    "conv 3x3, stride 2, gradients": (
        gradient(conv(padding="same", strides=2)),
        array(8, 56, 56, 64),
        array(3, 3, 64, 64),
    ),
    "conv_transpose 4x4, stride 2": (
        lambda x, k: ops.conv_transpose(x, k, 2, "same"),
        array(8, 14, 14, 128),
        array(4, 4, 64, 128),
    ),
    "depthwise_conv 3x3, 64": (lambda x, k: ops.depthwise_conv(x, k, padding="same"), image, array(3, 3, 64, 1)),
    "max_pool 2x2": (lambda x: ops.max_pool(x, 2), image),
    "max_pool 3x3, stride 2": (lambda x: ops.max_pool(x, 3, 2, "same"), image),
    "max_pool 2x2, gradient": (gradient(lambda x: ops.max_pool(x, 2)), image),
    "average_pool 3x3": (lambda x: ops.average_pool(x, 3, 1, "same"), image),
    "softmax of 1000": (ops.softmax, array(1000, 1000)),
    "layer_normalization of 512": (ops.layer_normalization, array(2000, 512)),
    "gelu": (ops.gelu, array(1000, 1000)),
    "attention 8 heads of 64, length 512": (attention(), *(array(2, 512, 8, 64) for _ in range(3))),
    "attention, causal, length 2048": (attention(is_causal=True), *(array(1, 2048, 4, 64) for _ in range(3))),
}


def main(names):
    print(f"{'':40} {'NumPy ms':>10} {'PyTorch ms':>10} {'ratio':>7}")
    for name, (function, *inputs) in ROWS.items():
        if names and not any(n in name for n in names):
            continue
        tensors = [torch.from_numpy(x) for x in inputs]
        times = compare({"numpy": partial(function, *inputs), "torch": partial(function, *tensors)})
        own, other = 1000 * times["numpy"], 1000 * times["torch"]
        print(f"{name:40} {own:10.2f} {other:10.2f} {own / other:7.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Cases: losses, and labels as vectors."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays
from scipy import special

from .normalization import fixed

targets = arrays((2, 3), 0.1, 0.9)
probabilities = arrays((2, 3), 0.1, 0.9)
logits = arrays((2, 3), -3, 3)
labels = arrays((2, 4), 0, 3, dtype="int64")


def binary(target, output, from_logits=False):
    p = special.expit(output) if from_logits else output
    return -(target * np.log(p) + (1 - target) * np.log(1 - p))


def categorical(target, output, from_logits=False, axis=-1):
    p = special.softmax(output, axis) if from_logits else output / output.sum(axis, keepdims=True)
    return -(target * np.log(p)).sum(axis)


def sparse(target, output, from_logits=False, axis=-1):
    classes = output.shape[axis]
    one_hot = np.moveaxis((np.arange(classes) == target[..., None]).astype("float64"), -1, axis)
    return categorical(one_hot, output, from_logits, axis)


def psnr(x1, x2, max_val):
    return 10 * np.log10(max_val**2 / np.mean((x1.astype("float64") - x2) ** 2))


def one_hot(x, num_classes, axis=-1, dtype="float64"):
    return np.moveaxis(np.asarray(x)[..., None] == np.arange(num_classes), -1, axis).astype(dtype)


def multi_hot(inputs, num_classes, axis=-1):
    out = np.zeros((len(inputs), num_classes))
    for row, found in zip(out, inputs):
        row[found] = 1
    return np.moveaxis(out, -1, axis)


CASES = [
    Case("binary_crossentropy", fixed(target=targets, output=probabilities), binary, gradients=["target", "output"]),
    Case(
        "binary_crossentropy",
        fixed(target=targets, output=logits, from_logits=True),
        binary,
        gradients=["target", "output"],
        label="logits",
    ),
    Case(
        "binary_crossentropy",
        fixed(target=arrays((2, 3), 0, 2, dtype="int64"), output=probabilities),
        binary,
        gradients=["output"],
        label="integer target",
    ),
    Case(
        "categorical_crossentropy",
        fixed(target=targets, output=probabilities),
        categorical,
        gradients=["target", "output"],
    ),
    Case(
        "categorical_crossentropy",
        fixed(target=targets, output=logits, from_logits=True, axis=0),
        categorical,
        gradients=["target", "output"],
        label="logits",
    ),
    Case(
        "sparse_categorical_crossentropy",
        fixed(target=labels, output=arrays((2, 4, 3), 0.1, 1)),
        sparse,
        gradients=["output"],
    ),
    Case(
        "sparse_categorical_crossentropy",
        fixed(target=labels, output=arrays((2, 3, 4)), from_logits=True, axis=1),
        sparse,
        gradients=["output"],
        label="logits",
    ),
    Case(
        "psnr", fixed(x1=arrays((2, 3, 2), 0, 1), x2=arrays((2, 3, 2), 0, 1), max_val=1.0), psnr, gradients=["x1", "x2"]
    ),
    Case(
        "psnr",
        fixed(x1=arrays((4, 3), 0, 255, dtype="uint8"), x2=arrays((4, 3), 0, 255, dtype="uint8"), max_val=255),
        psnr,
        label="bytes",
    ),
    Case("one_hot", fixed(x=arrays((2, 3), -1, 6, dtype="int64"), num_classes=4, axis=st.integers(-3, 2)), one_hot),
    Case("one_hot", fixed(x=arrays((), 0, 3, dtype="int32"), num_classes=4, dtype="int32"), one_hot, label="0-d"),
    Case(
        "multi_hot",
        fixed(inputs=arrays((2, 3), 0, 4, dtype="int64"), num_classes=5, axis=st.sampled_from([-1, 0, 1])),
        multi_hot,
    ),
]

"""Cases: normalisation, against the formulas in NumPy."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays


def fixed(**arguments):
    """Return a strategy of keyword arguments: shapes become arrays, strategies stay, other values are constants."""
    made = {}
    for name, value in arguments.items():
        if isinstance(value, tuple):
            value = arrays(value, 0.3, 2.0)
        made[name] = value if isinstance(value, st.SearchStrategy) else st.just(value)
    return st.fixed_dictionaries(made)


def at(value, x, axes):
    return np.reshape(value, [x.shape[i] if i in axes else 1 for i in range(x.ndim)])


def batch(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    axes = (axis % x.ndim,)
    y = (x - at(mean, x, axes)) / np.sqrt(at(variance, x, axes) + epsilon)
    y = y if scale is None else y * at(scale, x, axes)
    return y if offset is None else y + at(offset, x, axes)


def layer(x, gamma=None, beta=None, axis=-1, epsilon=1e-7):
    axes = tuple(a % x.ndim for a in (axis if isinstance(axis, list) else [axis]))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    y = y if gamma is None else y * at(gamma, x, axes)
    return y if beta is None else y + at(beta, x, axes)


def rms(x, scale=None, axis=-1, epsilon=1e-7):
    axes = tuple(a % x.ndim for a in (axis if isinstance(axis, list) else [axis]))
    y = x / np.sqrt((x**2).mean(axes, keepdims=True) + epsilon)
    return y if scale is None else y * (at(scale, x, axes) if np.ndim(scale) else scale)


def normalize(x, axis=-1, order=2):
    axis = tuple(axis) if isinstance(axis, list) else axis
    return x / np.sum(np.abs(x) ** order, axis, keepdims=True) ** (1 / order)


def moments(x, axes, keepdims=False):
    axes = tuple(axes) if isinstance(axes, list) else axes
    return [x.mean(axes, keepdims=keepdims), x.var(axes, keepdims=keepdims)]


signed = arrays((2, 3, 4), -2.0, 2.0, away=[0.0])

CASES = [
    Case(
        "standardized",
        fixed(x=signed, gamma=(3, 4), beta=(3, 4), rank=2, epsilon=1e-3),
        lambda x, gamma, beta, rank, epsilon: layer(x, gamma, beta, [1, 2], epsilon),
        gradients=["x", "gamma", "beta"],
    ),
    Case("moments", fixed(x=signed, axes=[0, 2]), moments, gradients=["x"]),
    Case("moments", fixed(x=signed, axes=-1, keepdims=True), moments, gradients=["x"], label="keepdims"),
    Case("moments", fixed(x=arrays((3, 4), -5, 5, dtype="int64"), axes=[0]), moments, label="integers"),
    Case(
        "batch_normalization",
        fixed(x=signed, mean=(3,), variance=(3,), axis=1, offset=(3,), scale=(3,)),
        batch,
        gradients=["x", "mean", "variance", "offset", "scale"],
    ),
    Case(
        "batch_normalization",
        fixed(x=signed, mean=(4,), variance=(4,), axis=-1, epsilon=0.1),
        batch,
        gradients=["x"],
        label="plain",
    ),
    Case(
        "layer_normalization",
        fixed(x=signed, gamma=(4,), beta=(4,)),
        layer,
        gradients=["x", "gamma", "beta"],
        rtol=1e-5,
    ),
    Case(
        "layer_normalization",
        fixed(x=signed, gamma=(2, 4), beta=(2, 4), axis=[0, -1], epsilon=0.1),
        layer,
        gradients=["x", "gamma", "beta"],
        label="axes",
    ),
    Case("layer_normalization", fixed(x=signed, axis=1, epsilon=0.01), layer, gradients=["x"], label="plain"),
    Case("rms_normalization", fixed(x=signed, scale=(4,)), rms, gradients=["x", "scale"]),
    Case("rms_normalization", fixed(x=signed, scale=()), rms, gradients=["x", "scale"], label="number"),
    Case("rms_normalization", fixed(x=signed, axis=[0, 1], epsilon=0.1), rms, gradients=["x"], label="axes"),
    Case("normalize", fixed(x=signed), normalize, gradients=["x"]),
    Case("normalize", fixed(x=signed, axis=0, order=1), normalize, gradients=["x"], label="order 1"),
    Case("normalize", fixed(x=signed, axis=[0, 2], order=3), normalize, gradients=["x"], label="order 3"),
]

"""``eval_shape`` against the shapes and dtypes of actual results."""

from __future__ import annotations

import numpy as np
import pytest
from parity import tensors

import gradops
from gradops import Variable, _tree, config, functional, ops
from gradops.errors import ArgumentError, GradopsError, ShapeError
from gradops.functional import ShapeDtypeStruct, eval_shape


def model(p, x, *, top=None):
    y = ops.tanh(ops.matmul(x, p["w"]) + p["b"])
    if top is not None:
        y = y[:, :top]
    custom = gradops.custom_gradient(lambda y: (ops.round(y), lambda upstream: upstream))
    slope = gradops.grad(lambda b: ops.sum(custom(y + b) ** 2))(p["b"][:1])
    return {"y": y, "rest": (ops.argmax(y, axis=1), "text", 2.5), "slope": slope, "kept": custom(y) > 0}


@pytest.mark.parametrize("given", ["structs", "tensors"])
def test_shapes_and_dtypes_match_results(backend, given):
    rng = np.random.default_rng(0)
    p = {"w": rng.normal(size=(3, 4)), "b": rng.normal(size=4)}
    p, x = _tree.map_leaves(lambda x: tensors(x, backend), (p, rng.normal(size=(5, 3))))
    x = ops.cast(x, "float32")
    results = model(_tree.map_leaves(lambda x: ops.cast(x, "float32"), p), x, top=2)

    def look(y):
        return ShapeDtypeStruct(ops.shape(y), ops.dtype(y)) if ops.is_tensor(y) else y

    p = _tree.map_leaves(lambda x: ops.cast(x, "float32"), p)
    arguments = (p, x) if given == "tensors" else _tree.map_leaves(look, (p, x))
    assert eval_shape(model, *arguments, top=2) == _tree.map_leaves(look, results)


def test_no_values_are_computed():
    """The product would not fit into memory."""
    large = ShapeDtypeStruct((10**6, 10**6), "float32")
    for backend in ("torch", "jax", "tensorflow"):
        with config.backend_scope(backend):
            assert eval_shape(lambda x: ops.matmul(x, x) + 1, large) == large


def test_errors_and_variables(backend):
    x = ShapeDtypeStruct((2, 3))
    with pytest.raises(GradopsError):
        eval_shape(lambda x: ops.concatenate([x, ops.reshape(x, (4,))]), x)
    with pytest.raises(ShapeError, match="matmul"):
        eval_shape(lambda x: ops.matmul(x, x), x)
    with pytest.raises(ArgumentError, match="shape"):
        ShapeDtypeStruct((2, -1))
    v = (
        Variable(tensors(np.ones(3), backend), requires_grad=True)
        if backend != "torch"
        else tensors(np.ones(3), backend)
    )
    assert functional.eval_shape(lambda v: v * 2, v) == ShapeDtypeStruct((3,), "float64")

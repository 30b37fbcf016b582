"""Losses at extreme inputs and for labels without a class, and bad input."""

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

from gradops import Variable, autodiff, ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError


@pytest.mark.parametrize("backend", BACKENDS)
def test_logits_neither_overflow_nor_round(backend):
    target, output = tensors(np.array([1.0, 0, 1, 0]), backend), tensors(np.array([-1e4, 1e4, 800, -800]), backend)
    np.testing.assert_allclose(numpy(ops.binary_crossentropy(target, output, from_logits=True)), [1e4, 1e4, 0, 0])
    np.testing.assert_allclose(numpy(ops.categorical_crossentropy(target, output, from_logits=True)), 29200)


@pytest.mark.parametrize("backend", BACKENDS)
def test_probabilities_0_and_1_are_clipped(backend):
    zero, one = tensors(np.zeros(1), backend), tensors(np.ones(1), backend)
    np.testing.assert_allclose(numpy(ops.binary_crossentropy(one, zero)), -np.log(1e-7), rtol=1e-6)
    np.testing.assert_allclose(numpy(ops.binary_crossentropy(zero, one)), -np.log(1e-7), rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_labels_without_a_class(backend):
    """Their loss is 0 and their one-hot vector is zero; an axis of size 1 is accepted."""
    labels = tensors(np.array([[1], [-1], [3]]), backend)
    loss = ops.sparse_categorical_crossentropy(labels, tensors(np.zeros((3, 3)), backend), from_logits=True)
    np.testing.assert_allclose(numpy(loss), [np.log(3), 0, 0])
    np.testing.assert_array_equal(numpy(ops.one_hot(labels, 3)).sum(-1), [[1], [0], [0]])


def test_labels_give_no_gradient():
    x = Variable(np.zeros((2, 3)), requires_grad=True)
    loss = ops.sum(ops.sparse_categorical_crossentropy(Variable(np.array([0, 2])), x, from_logits=True))
    (g,) = autodiff.grad(loss, [x])
    np.testing.assert_allclose(numpy(g), [[-2 / 3, 1 / 3, 1 / 3], [1 / 3, 1 / 3, -2 / 3]])
    assert not ops.one_hot(Variable(np.array([0, 2])), 3).requires_grad


@pytest.mark.parametrize("backend", BACKENDS)
def test_multi_hot(backend):
    np.testing.assert_array_equal(numpy(ops.multi_hot(tensors(np.array([0, 2, 2]), backend), 4)), [1, 0, 1, 0])
    np.testing.assert_array_equal(numpy(ops.multi_hot(tensors(np.array([[0, -1]]), backend), num_tokens=2)), [[1, 0]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_input(backend):
    x, labels = tensors(np.ones((2, 3)), backend), tensors(np.array([0, 1, 2]), backend)
    with pytest.raises(ShapeError, match="`binary_crossentropy`: `target` and `output`"):
        ops.binary_crossentropy(labels, x)
    with pytest.raises(ShapeError, match="`categorical_crossentropy`"):
        ops.categorical_crossentropy(labels, x)
    with pytest.raises(AxisError, match="`categorical_crossentropy`"):
        ops.categorical_crossentropy(x, x, axis=2)
    with pytest.raises(ShapeError, match="`sparse_categorical_crossentropy`: `target`"):
        ops.sparse_categorical_crossentropy(labels, x)
    with pytest.raises(ArgumentTypeError, match="`sparse_categorical_crossentropy`: `target`"):
        ops.sparse_categorical_crossentropy(x[:, 0], x)
    with pytest.raises(ShapeError, match="`psnr`"):
        ops.psnr(x, labels, 1.0)
    with pytest.raises(ArgumentTypeError, match="`one_hot`: `x`"):
        ops.one_hot(x, 3)
    with pytest.raises(AxisError, match="`one_hot`"):
        ops.one_hot(labels, 3, axis=2)
    with pytest.raises(ArgumentError, match="`one_hot`: `sparse`"):
        ops.one_hot(labels, 3, sparse=True)
    with pytest.raises(ArgumentError, match="`multi_hot`: `num_classes`"):
        ops.multi_hot(labels, -1)

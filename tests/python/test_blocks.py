"""Block ops: inverse pairs, and bad input."""

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

from gradops import ops
from gradops.errors import ArgumentError, ShapeError


@pytest.mark.parametrize("backend", BACKENDS)
def test_inverses(backend):
    x = np.random.default_rng(0).standard_normal((2, 4, 6, 8))
    y = tensors(x, backend)
    for layout in ("channels_last", "channels_first"):
        there = ops.space_to_depth(y, 2, layout)
        np.testing.assert_array_equal(numpy(ops.depth_to_space(there, 2, layout)), x)
    np.testing.assert_array_equal(numpy(ops.fold(ops.unfold(y, 2, stride=2), (6, 8), 2, stride=2)), x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_infinities_do_not_spread(backend):
    x = tensors(np.array([[[[np.inf, 1.0], [2.0, 3.0]]]]), backend)
    assert numpy(ops.unfold(x, 1)).ravel().tolist() == [np.inf, 1, 2, 3]


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_input(backend):
    x = tensors(np.ones((2, 4, 4, 3)), backend)
    with pytest.raises(ShapeError, match="`unfold`: `x` must not be smaller"):
        ops.unfold(x, 5)
    with pytest.raises(ShapeError, match="`unfold`: `x`"):
        ops.unfold(x[0], 2)
    with pytest.raises(ArgumentError, match="`unfold`: `padding`"):
        ops.unfold(x, 2, padding=-1)
    with pytest.raises(ShapeError, match="`fold`: `x` must have a multiple of 4 rows"):
        ops.fold(x[0], 3, 2)
    with pytest.raises(ShapeError, match="`depth_to_space`: `x`"):
        ops.depth_to_space(x, 2)
    with pytest.raises(ShapeError, match="`space_to_depth`"):
        ops.space_to_depth(x, 3)
    with pytest.raises(ArgumentError, match="`space_to_depth`: `block_size`"):
        ops.space_to_depth(x, 1)
    with pytest.raises(ArgumentError, match="`depth_to_space`: `data_format`"):
        ops.depth_to_space(x, 2, "first")

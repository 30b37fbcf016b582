"""Complex numbers are unordered: comparing them raises the same error on every backend."""

import numpy as np
import pytest
from parity import BACKENDS, tensors

from gradops import Variable, ops
from gradops.errors import ArgumentTypeError

Z = np.array([1 + 2j, 3 - 1j])


@pytest.mark.parametrize("backend", [*BACKENDS, "variable"])
@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "maximum", "minimum"])
def test_comparisons(name, backend):
    z = Variable(Z) if backend == "variable" else tensors(Z, backend)
    with pytest.raises(ArgumentTypeError, match=f"`{name}`: `x1` must be real"):
        getattr(ops, name)(z, 1.0)


@pytest.mark.parametrize("backend", [*BACKENDS, "variable"])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "floor", "ceil", "trunc"])
def test_extremes_and_rounding(name, backend):
    z = Variable(Z) if backend == "variable" else tensors(Z, backend)
    with pytest.raises(ArgumentTypeError, match=f"`{name}`: `x` must be real"):
        getattr(ops, name)(z)


@pytest.mark.parametrize("backend", [*BACKENDS, "variable"])
@pytest.mark.parametrize("name", ["segment_max", "segment_min"])
def test_extremes_of_segments(name, backend):
    z = Variable(Z) if backend == "variable" else tensors(Z, backend)
    with pytest.raises(ArgumentTypeError, match=f"`{name}`: `data` must be real"):
        getattr(ops, name)(z, np.array([0, 0]))

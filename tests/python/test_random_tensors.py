"""Random tensors: equal numbers for equal seeds, with the moments of their distribution, on each library."""

import numpy as np
import pytest
from parity import BACKENDS, numpy, tensors

from gradops import ops
from gradops.errors import ArgumentTypeError
from gradops.ops.random import next_seed, random_binomial, random_gamma, random_normal, random_uniform

COUNT = 20_000


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_distributions(backend, dtype):
    like = tensors(np.zeros(2, dtype), backend)
    normal, uniform = (draw(like, (COUNT,), 3) for draw in (random_normal, random_uniform))
    for drawn in (normal, uniform):
        assert type(drawn) is type(ops.exp(like)) and ops.dtype(drawn) == dtype and ops.shape(drawn) == (COUNT,)
    normal, uniform = numpy(normal), numpy(uniform)
    for power, moment in ((1, 0), (2, 1), (3, 0), (4, 3)):
        error = np.sqrt({1: 1, 2: 2, 3: 15, 4: 96}[power] / COUNT)
        assert abs(np.mean(normal.astype(float) ** power) - moment) < 5 * error
        assert abs(np.mean(uniform.astype(float) ** power) - 1 / (power + 1)) < 5 * np.sqrt(0.1 / COUNT)
    assert uniform.min() >= 0 and uniform.max() < 1
    assert abs(np.corrcoef(normal[1:], normal[:-1])[0, 1]) < 5 / np.sqrt(COUNT)


@pytest.mark.parametrize("draw", [random_normal, random_uniform])
@pytest.mark.parametrize("backend", BACKENDS)
def test_seeds(backend, draw):
    like = tensors(np.zeros(1), backend)
    first, again, other = (numpy(draw(like, (2, 3), seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other) and np.unique(first).size == 6
    assert ops.shape(draw(like, (), 1)) == () and ops.shape(draw(like, (0, 2), 1)) == (0, 2)
    with pytest.raises(ArgumentTypeError, match="`seed` must be a whole number"):
        draw(like, (2,), 1.5)


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_distributions_with_parameters(backend, dtype):
    like = tensors(np.zeros(2, dtype), backend)
    alpha = np.array([0.3, 1.0, 7.5])
    gamma = random_gamma(like, tensors(alpha, backend), (COUNT, 3), 3)
    n, p = np.array([1, 4, 50]), np.array([0.5, 0.1, 0.9])
    binomial = random_binomial(like, tensors(n, backend), tensors(p, backend), (COUNT, 3), 3)
    for drawn, mean, variance in ((gamma, alpha, alpha), (binomial, n * p, n * p * (1 - p))):
        assert type(drawn) is type(ops.exp(like)) and ops.dtype(drawn) == dtype and ops.shape(drawn) == (COUNT, 3)
        values = numpy(drawn).astype(float)
        assert np.all(abs(values.mean(0) - mean) < 5 * np.sqrt(variance / COUNT))
        assert np.all(abs(values.var(0) / variance - 1) < 0.25)
    assert set(np.unique(numpy(binomial)[:, 1])) <= {0, 1, 2, 3, 4}
    again = random_gamma(like, tensors(alpha, backend), (COUNT, 3), 3)
    np.testing.assert_array_equal(numpy(again), numpy(gamma))


def test_derived_seeds_are_independent():
    seeds = {next_seed(seed, count) for seed in range(30) for count in range(30)}
    assert len(seeds) == 900 and all(0 <= seed < 2**31 for seed in seeds)

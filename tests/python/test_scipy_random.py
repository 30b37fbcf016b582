"""Random functions of ``gradops.scipy`` with random arguments from their domain.

Values are compared with SciPy's; derivatives on the tape, of each library and compiled are compared with differences.
"""

import random

import numpy as np
import pytest
import scipy.special
import scipy.stats
from scipy_checks import agree
from seeds import seeds

import gradops
from gradops.errors import GradientError
from gradops.scipy import special, stats

RANGES = ((0.1, 0.9), (0.3, 3.0), (1.1, 7.0), (-3.0, 3.0))
STEPS = set("ceil floor round bdtr bdtrc bdtri nbdtr nbdtrc nbdtri pdtr pdtrc pdtri smirnov kolmogorov".split())
"""Arguments that are integers, invisible to differences."""
METHODS = ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf")


def elementwise() -> list[str]:
    """Return the names of functions that are real ufuncs in SciPy."""
    return sorted(
        name
        for name in special.__all__
        if isinstance(theirs := getattr(scipy.special, name, None), np.ufunc)
        and theirs.nout == 1
        and "d" * theirs.nin + "->d" in theirs.types
        and name not in STEPS
        and hasattr(getattr(special, name), "op")
    )


def continuous() -> list[str]:
    """Return the names of continuous families with up to three shapes."""
    return sorted(
        name
        for name in stats.__all__
        if isinstance(getattr(scipy.stats, name, None), scipy.stats.rv_continuous)
        and hasattr(getattr(stats, name), "pdf")
    )


def of_special(rng):
    """Return a function, and arguments at which it is finite and smooth."""
    name = rng.choice(elementwise())
    theirs = getattr(scipy.special, name)
    arrays = [np.array([rng.uniform(*rng.choice(RANGES)) for _ in range(3)]) for _ in range(theirs.nin)]
    return f"special.{name}", getattr(special, name), theirs, arrays


def of_stats(rng):
    name, method = rng.choice(continuous()), rng.choice(METHODS)
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    shapes = [np.array([rng.uniform(*rng.choice(RANGES[:3]))]) for _ in range(theirs.numargs)]
    p = np.array([rng.uniform(0.05, 0.95) for _ in range(3)])
    loc, scale = np.array([rng.uniform(-1, 1)]), np.array([rng.uniform(0.5, 2)])
    x = p if method in ("ppf", "isf") else theirs.ppf(p, *shapes, loc, scale)
    return f"stats.{name}.{method}", getattr(ours, method), getattr(theirs, method), [x, *shapes, loc, scale]


def differentiable(function, arrays) -> list[int]:
    """Return the positions of the differentiable arguments of a function."""
    found = []
    for i in range(len(arrays)):
        try:
            gradops.grad(lambda *xs: gradops.ops.sum(function(*xs)), argnums=i)(*arrays)
            found.append(i)
        except GradientError:
            pass
    return found


def drawn(seed: int, count: int, over) -> list[str]:
    """Return the faults of ``count`` random calls."""
    rng, wrong, seen = random.Random(seed), [], 0
    while seen < count:
        name, ours, theirs, arrays = (of_special if rng.random() < 0.6 else of_stats)(rng)
        with np.errstate(all="ignore"):
            value = theirs(*arrays)
            around = np.stack([theirs(*[x + step for x in arrays]) for step in (1e-3, -1e-3)])
        if not (np.isfinite(around) & (abs(around - value) < 0.1 * (1 + abs(value)))).all():
            continue  # near a pole or end point, where differences are useless
        seen += 1
        try:
            by = differentiable(ours, arrays)
            agree(ours, theirs, *arrays, by=by, rtol=1e-7, gradient_rtol=1e-4, second=False, over=over)
        except Exception as error:
            wrong.append(f"{name}({', '.join(map(repr, arrays))}): {type(error).__name__}: {str(error)[:300]}")
    return wrong


@pytest.mark.filterwarnings("ignore")
def test_random_calls():
    assert drawn(36, 40, ("numpy",)) == []


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", seeds(10))
def test_more_random_calls(seed):
    for library in ("torch", "tensorflow", "jax"):
        pytest.importorskip(library)
    assert drawn(seed, 40, ("numpy", "torch", "tensorflow", "jax")) == []

"""``scipy.spatial.distance``: distances between vectors, between all pairs of rows, and distance matrices.

Each is differentiable by the vectors, weights and parameters; at a kink, where a distance is 0, the gradient is 0.
Metrics of boolean vectors are piecewise constant, or polynomials as in SciPy.

Examples:
    >>> import numpy as np
    >>> import gradops
    >>> from gradops import ops
    >>> from gradops.scipy.spatial import distance
    >>> x = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]])
    >>> print(distance.pdist(x))
    [5. 3. 4.]
    >>> print(gradops.grad(lambda u: distance.euclidean(u, x[1]))(x[0]))
    [-0.6 -0.8]

See Also:
    :func:`gradops.ops.cdist`, :func:`gradops.ops.norm`; ``gradops.scipy.linalg``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ... import ops
from ...annotations import Axis, Tensor
from ...backends import tracing
from ...errors import ArgumentTypeError, ShapeError
from ...ops import reductions
from ...ops._checks import choice, known
from ...ops.reductions import kink
from .._define import family
from .._names import namespace
from .._neighbours import alike
from .._tensors import constant, inexact, is_complex, wrong

__all__ = """
braycurtis canberra cdist chebyshev cityblock correlation cosine dice directed_hausdorff euclidean hamming
is_valid_dm is_valid_y jaccard jensenshannon mahalanobis minkowski num_obs_dm num_obs_y pdist rogerstanimoto
russellrao seuclidean sokalsneath sqeuclidean squareform yule
""".split()

F = TypeVar("F", bound=Callable)

METRICS: dict[str, Callable] = {}
"""Formulas of two tensors along their last dimension by name, ``metric(u, v, w, **settings)``."""
TRUTHS = {"rogerstanimoto", "russellrao", "sokalsneath", "yule"}
"""Metrics that take nonzero elements of rows as true."""
ALIASES = {
    **dict.fromkeys("chebychev cheby cheb ch".split(), "chebyshev"),
    **dict.fromkeys("cblock cb c".split(), "cityblock"),
    **dict.fromkeys("matching hamm ha h".split(), "hamming"),
    **dict.fromkeys("euclid eu e".split(), "euclidean"),
    **dict.fromkeys("jacc ja j".split(), "jaccard"),
    **dict.fromkeys("mahal mah".split(), "mahalanobis"),
    **dict.fromkeys("mi m pnorm".split(), "minkowski"),
    **dict.fromkeys("se s".split(), "seuclidean"),
    **dict.fromkeys("sqe sqeuclid".split(), "sqeuclidean"),
    "co": "correlation",
    "cos": "cosine",
    "js": "jensenshannon",
}

of_two = functools.partial(
    family,
    {"w": "weights of the elements."},
    returns="A tensor without dimensions.",
    raises="ShapeError: tensors that are not vectors of one length.\nArgumentError: negative weights.",
)
SIGNS = "That of absolute values: their signs, 0 where they are 0."
COUNTS = "That of a ratio of sums of products of the elements, which count as 0 and 1."
PARALLEL = "By vectors and weights; 0 where the vectors are parallel."


def vector_metric(gradient: str) -> Callable[[F], F]:
    """Return a decorator that registers a formula along the last dimension as a metric and as a function of vectors."""

    def decorate(formula: F) -> F:
        METRICS[formula.__name__] = formula

        @functools.wraps(formula)
        def of_vectors(u, v, w=None):
            return formula(*_vectors(u, v, w))

        return of_two(gradient=gradient)(of_vectors)  # type: ignore[return-value]

    return decorate


# Arguments -----------------------------------------------------------------------------------------------------------


def _vectors(u, v, w=None) -> list:
    found = list(alike(u, v) if w is None else alike(u, v, w))
    for name, x in zip(("u", "v", "w"), found):
        if len(x.shape) != 1:
            raise wrong(name, "be a vector", tuple(x.shape), ShapeError)
        if is_complex(x):
            raise wrong(name, "be real", ops.dtype(x), ArgumentTypeError)
        if tuple(x.shape) != tuple(found[0].shape):
            raise wrong(name, f"be of the length of `u`, {int(found[0].shape[0])}", int(x.shape[0]), ShapeError)
    _not_negative(None if w is None else found[2])
    return [*found, *[None] * (3 - len(found))]


def _not_negative(w) -> None:
    values = None if w is None else known(w)
    if values is not None and (values < 0).any():
        raise wrong("w", "not be negative")


def exponent(p):
    """Return Minkowski's exponent checked: a number, or a tensor with a gradient."""
    values = known(p)
    if values is not None:
        if values.dtype.kind not in "fiu" or values.size != 1 or not values > 0:
            raise wrong("p", "be a positive number", repr(p))
        if not hasattr(p, "requires_grad") and isinstance(p, (int, float, np.generic, np.ndarray)):
            return values.item()
    return p


def _check_size(name: str, x, sizes: tuple):
    if tuple(x.shape) != sizes:
        raise wrong(name, f"be of shape {sizes}", tuple(x.shape), ShapeError)
    return x


def _matrix(name: str, x):
    if len(x.shape) != 2:
        raise wrong(name, "be a matrix", tuple(x.shape), ShapeError)
    if is_complex(x):
        raise wrong(name, "be real", ops.dtype(x), ArgumentTypeError)
    return x


# Formulas ------------------------------------------------------------------------------------------------------------


def root(total, d, p: Any = 2):
    """Return the ``p``-th root, with gradient 0 at 0, where it has no second derivative.

    Args:
        total: a sum along the last dimension of ``d`` of powers that are 0 where ``d`` is 0.
    """
    if isinstance(p, (int, float)) and p == 2:
        return reductions.root(ops.expand_dims(total, -1), d)[..., 0]
    positive = total > 0
    length = ops.where(positive, total, ops.ones_like(total)) ** (1 / p)
    return ops.where(positive, length, total + kink(d, ops.expand_dims(total == 0, -1))[..., 0])


def _ratio(above, below):
    """Return a quotient that is 0 where the denominator is 0."""
    zero = below == 0
    return ops.where(zero, ops.zeros_like(below), above / ops.where(zero, ops.ones_like(below), below))


def _sum(x, w):
    return ops.sum(x if w is None else x * w, -1)


def powers(d, p, w=None):
    """Return the sum of powers of absolute values; at 0 the gradient is 0, and for ``p < 2`` the second one NaN."""
    if isinstance(p, (int, float)) and p == 2:
        return _sum(reductions.squared(d), w)
    a = ops.abs(d)
    positive = a > 0
    at_0 = ops.zeros_like(a) if isinstance(p, (int, float)) and p > 2 else kink(d, d == 0)
    return _sum(ops.where(positive, ops.where(positive, a, ops.ones_like(a)) ** p, at_0), w)


def _truth(x):
    return ops.cast(x != 0, ops.dtype(x))


def _counts(u, v, w) -> tuple:
    """Return the numbers of elements true in both vectors, in the first only, in the second only, and in neither."""
    return _sum(u * v, w), _sum(u * (1 - v), w), _sum((1 - u) * v, w), _sum((1 - u) * (1 - v), w)


@vector_metric("``2 (u - v)``.")
def sqeuclidean(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Squared Euclidean distance of two vectors."""
    return _sum((u - v) * (u - v), w)


@vector_metric("``(u - v) / y``; 0 where the vectors are equal.")
def euclidean(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Euclidean distance of two vectors."""
    d = u - v
    return root(METRICS["sqeuclidean"](u, v, w), d if w is None else d * w)


@vector_metric(SIGNS)
def cityblock(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """City block distance of two vectors: the sum of absolute differences."""
    return _sum(ops.abs(u - v), w)


@vector_metric("1 or -1 at the largest difference; equal ones share it.")
def chebyshev(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Chebyshev distance of two vectors: the largest absolute difference."""
    d = ops.abs(u - v)
    return ops.max(d if w is None else ops.where(w > 0, d, ops.zeros_like(d)), -1)


@vector_metric(SIGNS + " Pairs of zeros do not contribute.")
def canberra(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Canberra distance of two vectors."""
    return _sum(_ratio(ops.abs(u - v), ops.abs(u) + ops.abs(v)), w)


@vector_metric(SIGNS)
def braycurtis(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Bray-Curtis distance of two vectors."""
    return _sum(ops.abs(u - v), w) / _sum(ops.abs(u + v), w)


@vector_metric(PARALLEL)
def cosine(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Cosine distance of two vectors: 1 minus the cosine of their angle."""
    return _correlation(u, v, w, False)


def _correlation(u, v, w, centered=True):
    if w is not None:
        w = w / ops.sum(w, -1)
    if centered:
        mean = (lambda x: ops.mean(x, -1, keepdims=True)) if w is None else (lambda x: ops.expand_dims(_sum(x, w), -1))
        u, v = u - mean(u), v - mean(v)
    ratio = _sum(u * v, w) / ops.sqrt(_sum(u * u, w) * _sum(v * v, w))
    return ops.clip(1 - ratio, 0.0, 2.0)


@of_two(gradient=PARALLEL)
def correlation(u: Tensor, v: Tensor, w: Tensor | None = None, centered: bool = True) -> Tensor:
    """Correlation distance of two vectors: 1 minus their correlation.

    Args:
        centered: True to subtract the means.
    """
    u, v, w = _vectors(u, v, w)
    return _correlation(u, v, w, bool(centered))


def _minkowski(u, v, w, p=2):
    if isinstance(p, (int, float)) and p in (1, 2):
        return METRICS["cityblock" if p == 1 else "euclidean"](u, v, w)
    if isinstance(p, (int, float)) and p == math.inf:
        return METRICS["chebyshev"](u, v, None if w is None else w != 0)
    d = u - v
    return root(powers(d, p, w), d if w is None else d * w, p)


@of_two(raises="ShapeError: tensors that are not vectors of one length.\nArgumentError: a ``p`` that is not positive.")
def minkowski(u: Tensor, v: Tensor, p=2, w: Tensor | None = None) -> Tensor:
    """Minkowski distance of two vectors, ``sum(w * abs(u - v) ** p) ** (1 / p)``.

    Args:
        p: a positive number, which may be infinite; a tensor has a gradient.

    Gradient:
        By vectors, weights and ``p``; 0 where the vectors are equal.
    """
    u, v, w = _vectors(u, v, w)
    return _minkowski(u, v, w, exponent(p))


def _seuclidean(u, v, w, V):
    d = u - v
    return root(ops.sum(d * d / V, -1), d)


@of_two(gradient="By vectors and variances; 0 where the vectors are equal.")
def seuclidean(u: Tensor, v: Tensor, V: Tensor) -> Tensor:
    """Standardized Euclidean distance of two vectors, with a variance for each element.

    Args:
        V: the variances.
    """
    u, v, V = alike(u, v, V)
    u, v, _ = _vectors(u, v)
    return _seuclidean(u, v, None, _check_size("V", V, tuple(u.shape)))


def _mahalanobis(u, v, w, VI):
    d = u - v
    return root(ops.sum(ops.matmul(ops.expand_dims(d, -2), VI)[..., 0, :] * d, -1), d)


@of_two(gradient="By vectors and ``VI``; 0 where the vectors are equal.")
def mahalanobis(u: Tensor, v: Tensor, VI: Tensor) -> Tensor:
    """Mahalanobis distance of two vectors, ``sqrt((u - v) @ VI @ (u - v))``.

    Args:
        VI: the inverse of a covariance matrix.
    """
    u, v, VI = alike(u, v, VI)
    u, v, _ = _vectors(u, v)
    return _mahalanobis(u, v, None, _square(VI, int(u.shape[0])))


def _square(VI, n: int):
    return _check_size("VI", VI if len(VI.shape) else ops.reshape(VI, (1, 1)), (n, n))


@family(returns="A tensor without ``axis``.", raises="AxisError: there is no such axis.")
def jensenshannon(p: Tensor, q: Tensor, base=None, *, axis: Axis = 0, keepdims: bool = False) -> Tensor:
    """Jensen-Shannon distance of two distributions, which are normalised to sum to 1.

    Args:
        base: the base of the logarithm, by default e.
        axis: the axis of the probabilities.

    Gradient:
        By both; 0 where they are equal, and by probabilities that are 0.
    """
    p, q = alike(p, q)
    return _jensenshannon(p, q, None, base, axis, keepdims)


def _jensenshannon(u, v, w, base=None, axis=-1, keepdims=False):
    u, v = [ops.moveaxis(x / ops.sum(x, axis, keepdims=True), axis, -1) for x in (u, v)]
    mean = (u + v) / 2

    def entropy(x):
        positive = x > 0
        safe = ops.where(positive, x, ops.ones_like(x))
        below = ops.where(positive, mean, ops.ones_like(mean))
        terms = ops.where(positive, safe * ops.log(safe / below), ops.where(x < 0, math.inf + 0 * x, ops.zeros_like(x)))
        return ops.sum(terms, -1)

    total = entropy(u) + entropy(v)
    length = root((total if base is None else total / ops.log(base)) / 2, u - v)
    return ops.expand_dims(length, axis) if keepdims else length


METRICS |= {
    "correlation": _correlation,
    "jensenshannon": _jensenshannon,
    "mahalanobis": _mahalanobis,
    "minkowski": _minkowski,
    "seuclidean": _seuclidean,
}


@vector_metric("By the weights only: the metric is piecewise constant.")
def hamming(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Hamming distance of two vectors: the share of elements that differ."""
    differs = ops.cast(u != v, ops.dtype(u))
    return ops.mean(differs, -1) if w is None else _sum(differs, w) / ops.sum(w, -1)


@vector_metric("By the weights only: the metric is piecewise constant.")
def jaccard(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Jaccard dissimilarity of two boolean vectors."""
    first, second = _truth(u), _truth(v)
    either = ops.maximum(first, second)
    return _ratio(_sum(either - first * second, w), _sum(either, w))


@vector_metric(COUNTS + " 0 where they agree.")
def yule(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Yule dissimilarity of two boolean vectors."""
    both, first, second, none = _counts(u, v, w)
    return _ratio(2 * first * second, both * none + first * second)


@vector_metric(COUNTS)
def dice(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Dice dissimilarity of two boolean vectors."""
    both, first, second, _ = _counts(u, v, w)
    return (first + second) / (2 * both + first + second)


@vector_metric(COUNTS)
def rogerstanimoto(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Rogers-Tanimoto dissimilarity of two boolean vectors."""
    both, first, second, none = _counts(u, v, w)
    return 2 * (first + second) / (both + none + 2 * (first + second))


@vector_metric(COUNTS)
def russellrao(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Russell-Rao dissimilarity of two boolean vectors."""
    count = ops.sum(ops.ones_like(u * v), -1) if w is None else ops.sum(w, -1)
    return (count - _sum(u * v, w)) / count


@vector_metric(COUNTS)
def sokalsneath(u: Tensor, v: Tensor, w: Tensor | None = None) -> Tensor:
    """Sokal-Sneath dissimilarity of two boolean vectors."""
    both, first, second, _ = _counts(u, v, w)
    return 2 * (first + second) / (both + 2 * (first + second))


ALIASES |= {name: name for name in METRICS}

# Between rows --------------------------------------------------------------------------------------------------------

SETTINGS = {
    "correlation": ("w", "centered"),
    "minkowski": ("p", "w"),
    "seuclidean": ("V",),
    "mahalanobis": ("VI",),
    "jensenshannon": (),
}
of_rows = family(
    {
        "metric": "a metric's name, or a function of two vectors.",
        "out": "must be None, since results are new tensors.",
        "kwargs": "the metric's settings: ``w``, ``p``, ``V``, ``VI``. By default ``V`` and ``VI`` are the variances "
        "and the inverse of the covariance matrix of all rows.",
        "rng": "ignored; all pairs are compared.",
    },
    raises="ShapeError: tensors that are not matrices with equally many columns.\nArgumentError: an unknown metric.",
    gradient="That of the metric, by rows and settings; 0 where two rows are equal.",
)


def _metric(metric, given: dict, rows: list) -> Callable:
    """Return the metric of rows with its settings, including their defaults."""
    name = ALIASES.get(metric.lower()) if isinstance(metric, str) else None
    if name is None:
        choice("distance", metric, tuple(METRICS), "metric")
    formula: Callable = METRICS[name]  # type: ignore[index]
    unknown = next((key for key in given if key not in SETTINGS.get(name, ("w",))), None)  # type: ignore[arg-type]
    if unknown is not None:
        raise ArgumentTypeError(f"`distance`: the metric `{name}` has no argument `{unknown}`.", argument=unknown)
    n = int(rows[0].shape[-1])
    settings, w = dict(given), given.get("w")
    if w is not None:
        w = _check_size("w", alike(rows[0], w)[1], (n,))
        _not_negative(w)
    if "p" in settings:
        settings["p"] = exponent(settings["p"])
    if name == "seuclidean":
        V = given.get("V")
        settings["V"] = _check_size("V", _variances(rows) if V is None else alike(rows[0], V)[1], (n,))
    elif name == "mahalanobis":
        VI = given.get("VI")
        settings["VI"] = _precision(rows) if VI is None else _square(alike(rows[0], VI)[1], n)
    settings["w"] = w
    truth = _truth if name in TRUTHS else lambda x: x
    return lambda u, v: formula(truth(u), truth(v), **settings)


def _variances(rows: list):
    x = ops.concatenate(rows, 0) if len(rows) > 1 else rows[0]
    return ops.var(x, 0) * (int(x.shape[0]) / (int(x.shape[0]) - 1))


def _precision(rows: list):
    x = ops.concatenate(rows, 0) if len(rows) > 1 else rows[0]
    m, n = int(x.shape[0]), int(x.shape[1])
    if m <= n:
        raise wrong("VI", f"be given where {m} rows do not give a covariance of {n} elements")
    d = x - ops.mean(x, 0, keepdims=True)
    return ops.inv(ops.matmul(ops.transpose(d), d) / (m - 1))


def _no_out(out) -> None:
    if out is not None:
        raise wrong("out", "be None; results are new tensors", kind=ArgumentTypeError)


@of_rows
def cdist(XA: Tensor, XB: Tensor, metric="euclidean", *, out=None, **kwargs) -> Tensor:
    """Distances between all rows of one matrix and all rows of another.

    Returns:
        A matrix with a row for each row of ``XA`` and a column for each row of ``XB``.
    """
    _no_out(out)
    a, b = alike(XA, XB)
    a, b = _matrix("XA", a), _matrix("XB", b)
    if int(a.shape[1]) != int(b.shape[1]):
        raise wrong("XB", f"have the {int(a.shape[1])} columns of `XA`", int(b.shape[1]), ShapeError)
    if callable(metric) and not isinstance(metric, str):
        m, n = int(a.shape[0]), int(b.shape[0])
        found = [metric(a[i], b[j], **kwargs) for i in range(m) for j in range(n)]
        return ops.reshape(ops.stack(found, 0), (m, n)) if found else ops.zeros((m, n))
    return _metric(metric, kwargs, [a, b])(ops.expand_dims(a, 1), ops.expand_dims(b, 0))


@tracing.constant
def _pairs(n: int) -> tuple:
    return np.triu_indices(n, 1)


@of_rows
def pdist(X: Tensor, metric="euclidean", *, out=None, **kwargs) -> Tensor:
    """Distances between all pairs of rows, each pair once.

    Returns:
        A vector: the distances from the first row to all later ones, then from the second, and so on.
    """
    _no_out(out)
    x = _matrix("X", inexact(X if ops.is_tensor(X) else ops.convert_to_tensor(X)))
    n = int(x.shape[0])
    if callable(metric) and not isinstance(metric, str):
        found = [metric(x[i], x[j], **kwargs) for i in range(n) for j in range(i + 1, n)]
        return ops.stack(found, 0) if found else ops.zeros((0,))
    first, second = _pairs(n)
    return _metric(metric, kwargs, [x])(ops.take(x, first, 0), ops.take(x, second, 0))


@of_rows
def directed_hausdorff(u: Tensor, v: Tensor, rng=0) -> tuple:
    """Directed Hausdorff distance: the largest distance from a row of ``u`` to its nearest row of ``v``.

    Returns:
        The distance, and the positions of the two rows.

    Gradient:
        That of the Euclidean distance of the two rows.
    """
    u, v = alike(u, v)
    u, v = _matrix("u", u), _matrix("v", v)
    if int(u.shape[1]) != int(v.shape[1]) or 0 in (int(u.shape[0]), int(v.shape[0])):
        got = f"{tuple(u.shape)} and {tuple(v.shape)}"
        raise wrong("v", "have as many columns as `u`, and both must have rows", got, ShapeError)
    squares = METRICS["sqeuclidean"](ops.expand_dims(u, 1), ops.expand_dims(v, 0), None)
    nearest = ops.argmin(squares, 1)
    i = ops.argmax(ops.min(squares, 1), 0)
    j = ops.take(nearest, i, 0)
    d = ops.take(u, i, 0) - ops.take(v, j, 0)
    return root(ops.sum(d * d), d), i, j


@tracing.constant
def _square_index(n: int) -> np.ndarray:
    """Return the index into the vector for each entry of the distance matrix; on the diagonal one past the end."""
    places = np.full((n, n), n * (n - 1) // 2)
    first, second = np.triu_indices(n, 1)
    places[first, second] = places[second, first] = np.arange(len(first))
    return places


@family(
    returns="A matrix for a vector, or for a matrix the vector of its upper triangle.",
    gradient="The upstream gradient: for a vector the sum of a pair's two entries, for a matrix its upper triangle.",
)
def squareform(X: Tensor, force="no", checks: bool = True) -> Tensor:
    """Convert a vector of pairwise distances to a matrix, or a distance matrix to a vector.

    Args:
        force: ``"tomatrix"`` or ``"tovector"`` to require that form of the result.
        checks: True to check that a matrix is symmetric with zeros on its diagonal, if its values are known.

    Raises:
        ShapeError: neither a square matrix nor a vector with as many distances as there are pairs.
        ArgumentError: a matrix that is not a distance matrix.
    """
    force = force.lower() if isinstance(force, str) else force
    choice("distance", force, ("no", "tomatrix", "tovector"), "force")
    x = X if ops.is_tensor(X) else ops.convert_to_tensor(X)
    rank = len(x.shape)
    if rank not in {"no": (1, 2), "tomatrix": (1,), "tovector": (2,)}[force]:
        raise wrong("X", "be a vector or a matrix, as `force` says", tuple(x.shape), ShapeError)
    n = int(x.shape[0])
    if rank == 1:
        count = math.ceil(math.sqrt(2 * n)) if n else 1
        if count * (count - 1) != 2 * n:
            raise ShapeError(f"`distance`: {n} distances are not of all pairs of some points.", argument="X")
        return ops.take(ops.pad(x, [(0, 1)]), _square_index(count), 0)
    _check_size("X", x, (n, n))
    values = known(x) if checks else None
    if values is not None and not (np.array_equal(values, values.T) and not np.diag(values).any()):
        raise wrong("X", "be symmetric, with zeros on its diagonal", hint="`checks=False`")
    first, second = _pairs(n)
    return ops.take(ops.reshape(x, (-1,)), np.asarray(first) * n + np.asarray(second), 0)


is_valid_dm, is_valid_y = constant("spatial.distance.is_valid_dm"), constant("spatial.distance.is_valid_y")
num_obs_dm, num_obs_y = constant("spatial.distance.num_obs_dm"), constant("spatial.distance.num_obs_y")

__dir__, __getattr__ = namespace(__name__, __all__)

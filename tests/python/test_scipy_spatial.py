"""``gradops.scipy.spatial`` and its metrics against SciPy."""

import numpy as np
import pytest
import scipy.spatial
from scipy_checks import QUICK, agree, compare, each_case, each_program, in_programs, refused

import gradops
from gradops import ops
from gradops.scipy import spatial
from gradops.scipy.spatial import distance, points

rng = np.random.default_rng(36)
U, V, W = rng.uniform(0.1, 1, size=(3, 4))
A, B = rng.uniform(0.1, 1, size=(3, 4)), rng.uniform(0.1, 1, size=(2, 4))
MANY = rng.normal(size=(7, 3))
TRUE, FALSE = np.array([1.0, 0, 1, 1, 0]), np.array([1.0, 1, 0, 1, 0])
SPHERE = MANY[:2] / np.linalg.norm(MANY[:2], axis=1, keepdims=True)

OF_COUNTS = ("dice", "hamming", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
OF_TWO = tuple(
    name for name in distance.METRICS if name not in (*OF_COUNTS, "mahalanobis", "seuclidean", "jensenshannon")
)

# The function, its arrays, settings, and further arguments of `agree()`.
CASES = [
    *[(name, (U, V), {}, {}) for name in OF_TWO],
    *[(name, (U, V, W), {}, {}) for name in OF_TWO if name != "minkowski"],
    *[(name, (TRUE, FALSE), {}, {"by": ()}) for name in OF_COUNTS],
    *[(name, (TRUE, FALSE, np.arange(1.0, 6)), {}, {"by": (2,)}) for name in OF_COUNTS],
    ("minkowski", (U, V, np.array(1.5), W), {}, {"every": True, "second": True}),
    *[("minkowski", (U, V), {"p": p}, {}) for p in (1, 2, np.inf)],
    ("correlation", (U, V, W), {"centered": False}, {}),
    ("jensenshannon", (U, V), {}, {}),
    ("jensenshannon", (A, A[::-1] ** 2), {"base": 2.0, "axis": 1, "keepdims": True}, {}),
    ("mahalanobis", (U, V, np.cov(rng.normal(size=(4, 9)))), {}, {}),
    ("seuclidean", (U, V, W), {}, {}),
    *[
        ("cdist", (A, B), {"metric": metric}, {"every": metric == "euclidean"})
        for metric in ("euclidean", "cb", "cosine", "correlation", "canberra", "braycurtis", "chebyshev", "js", "se")
    ],
    ("cdist", (A, B, W), {"metric": "minkowski", "p": 3}, {"keys": (0, 1, "w")}),
    ("cdist", (MANY, MANY[:2] + 0.3), {"metric": "mahalanobis"}, {}),
    ("cdist", (MANY, MANY[:2] + 0.3, np.eye(3) + 0.1), {"metric": "mahalanobis"}, {"keys": (0, 1, "VI")}),
    *[("pdist", (A,), {"metric": metric}, {}) for metric in ("sqeuclidean", "cosine", "seuclidean")],
    ("pdist", (MANY,), {"metric": "mahal"}, {}),
    ("squareform", (W[:3],), {}, {}),
    ("minkowski_distance", (A, U), {"p": 3}, {}),
    ("minkowski_distance", (A, U), {"p": 1}, {}),
    ("minkowski_distance_p", (A, U), {"p": np.inf}, {}),
    ("minkowski_distance_p", (A, U), {}, {}),
    ("distance_matrix", (A, B), {"p": 1.5}, {}),
    ("distance_matrix", (A, B), {}, {}),
    ("geometric_slerp", (SPHERE[0], SPHERE[1], np.array([0.2, 0.7])), {}, {"by": (2,), "second": True}),
    ("procrustes", (MANY, MANY[::-1] ** 2), {}, {}),
]


def homes(name):
    return (spatial, scipy.spatial) if name in points.__all__ else (distance, scipy.spatial.distance)


@each_case(CASES)
def test_agrees_with_scipy(name, arrays, settings, how):
    compare(*homes(name), name, arrays, settings, how)


@pytest.mark.long
@each_case(CASES)
def test_agrees_with_scipy_on_all_backends(name, arrays, settings, how):
    compare(*homes(name), name, arrays, settings, how, everywhere=True)


def test_each_name_has_a_case():
    of_known = {"is_valid_dm", "is_valid_y", "num_obs_dm", "num_obs_y"}
    cases = {name for name, *_ in CASES} | of_known | {"directed_hausdorff"}
    assert cases == set(distance.__all__) | set(points.__all__)


@pytest.mark.parametrize("metric", OF_COUNTS)
def test_metrics_of_boolean_rows(metric):
    x = rng.integers(0, 2, size=(5, 6)).astype(float)
    x[:, 0] = 1
    np.testing.assert_allclose(distance.pdist(x, metric), scipy.spatial.distance.pdist(x, metric), rtol=1e-13)
    x = x * rng.uniform(0.5, 1, size=x.shape)
    np.testing.assert_allclose(distance.cdist(x, x, metric), scipy.spatial.distance.cdist(x, x, metric), rtol=1e-13)


@pytest.mark.parametrize("alias", distance.ALIASES)
def test_metric_aliases(alias):
    found, want = [module.pdist(MANY**2, alias) for module in (distance, scipy.spatial.distance)]
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_user_defined_metrics():
    def city(u, v):
        return ops.sum(ops.abs(u - v))

    np.testing.assert_allclose(distance.cdist(A, B, city), distance.cdist(A, B, "cityblock"))
    np.testing.assert_allclose(distance.pdist(A, city), distance.pdist(A, "cityblock"))


def test_hausdorff():
    found = distance.directed_hausdorff(A, B)
    np.testing.assert_allclose(found, scipy.spatial.distance.directed_hausdorff(A, B), rtol=1e-14)
    agree(
        lambda u, v: distance.directed_hausdorff(u, v)[0],
        lambda u, v: np.asarray(scipy.spatial.distance.directed_hausdorff(u, v)[0]),
        *(A, B),
        **QUICK,
    )


def test_square_and_condensed_distances():
    v = rng.uniform(size=6)
    square = distance.squareform(v)
    np.testing.assert_array_equal(square, scipy.spatial.distance.squareform(v))
    np.testing.assert_array_equal(distance.squareform(square), v)
    np.testing.assert_array_equal(distance.squareform(np.zeros(0)), np.zeros((1, 1)))
    assert distance.squareform([1, 2, 3]).dtype == "int64"
    upper = gradops.grad(lambda x: ops.sum(distance.squareform(x) * v))(square)
    np.testing.assert_array_equal(upper[np.triu_indices(4, 1)], v)
    assert not upper[np.tril_indices(4)].any()


@pytest.mark.parametrize(
    "metric", ["euclidean", "minkowski", "cityblock", "chebyshev", "canberra", "js", "se", "mahal"]
)
def test_gradients_are_zero_for_equal_rows(metric):
    settings = {"p": 1.5} if metric == "minkowski" else {"V": np.ones(3)} if metric == "se" else {}
    settings = {"VI": np.eye(3)} if metric == "mahal" else settings
    x = np.abs(MANY[:1]) + 0.1

    def total(x):
        return ops.sum(distance.cdist(x, ops.stop_gradient(x), metric, **settings))

    np.testing.assert_allclose(gradops.grad(total)(x), 0, atol=1e-7)
    second = gradops.grad(lambda x: ops.sum(gradops.grad(total)(x)))(x)
    assert np.isnan(second).all() != (metric in ("cityblock", "chebyshev", "canberra"))  # distances have none


def test_geometric_slerp():
    np.testing.assert_allclose(spatial.geometric_slerp(SPHERE[0], SPHERE[0], [0.3]), SPHERE[:1], rtol=1e-12)
    way = gradops.grad(lambda end: ops.sum(spatial.geometric_slerp(SPHERE[0], end, 0.5) * SPHERE[1]))(SPHERE[1])
    assert np.isfinite(way).all()


@pytest.mark.long
@each_program(lambda x: ops.sum(distance.pdist(x) ** 3))
def test_programs_of_libraries(compiled):
    def f(x):
        y = ops.sum(distance.squareform(distance.pdist(x)) ** 2) + ops.sum(distance.cdist(x, x + 1, "minkowski", p=3))
        return y + ops.sum(distance.cdist(x, x * 2, "cosine")) + ops.sum(distance.pdist(x, "mahalanobis"))

    in_programs(f, MANY, compiled=compiled)


def test_single_precision_is_preserved():
    torch = pytest.importorskip("torch")
    x = torch.rand((4, 3), dtype=torch.float32, requires_grad=True)
    for metric in ("euclidean", "cosine", "minkowski", "mahalanobis", "hamming"):
        y = distance.cdist(x, x, metric, **({"p": 3} if metric == "minkowski" else {}))
        assert y.dtype == torch.float32


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: distance.euclidean(A, U), "u"),
        (lambda: distance.euclidean(U, V[:2]), "v"),
        (lambda: distance.euclidean("a", V), "u"),
        (lambda: distance.euclidean(U, V, -W), "w"),
        (lambda: distance.minkowski(U, V, 0), "p"),
        (lambda: distance.cdist(U, B), "XA"),
        (lambda: distance.cdist(A, MANY), "XB"),
        (lambda: distance.cdist(A, B, "euclidian"), "metric"),
        (lambda: distance.cdist(A, B, "cosine", p=2), "p"),
        (lambda: distance.cdist(A, B, out=A), "out"),
        (lambda: distance.pdist(A, "mahalanobis"), "VI"),
        (lambda: distance.pdist(A, "seuclidean", V=W[:2]), "V"),
        (lambda: distance.squareform(W), "X"),
        (lambda: distance.squareform(A[:3, :3]), "X"),
        (lambda: distance.squareform(W, force="tovector"), "X"),
        (lambda: spatial.geometric_slerp(U, V, 0.5), "start"),
        (lambda: spatial.procrustes(A, B), "data2"),
        (lambda: spatial.distance_matrix(A, MANY), "y"),
    ],
)
def test_errors_name_the_argument(call, argument):
    refused(call, argument)


def test_refused_functions_name_alternatives():
    with pytest.raises(AttributeError, match="cdist"):
        spatial.KDTree  # noqa: B018

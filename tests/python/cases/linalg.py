"""Cases: linear algebra.

Results that are unique only up to sign, phase or order pass through functions that are invariant to these: see
``Through``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np
import scipy.linalg
from parity import Case, inputs

from gradops import ops

BATCHES = [(), (2,)]


@dataclass(frozen=True)
class Through(Case):
    """A case that applies a function to its results and to the reference's before they are compared."""

    through: Callable = tuple

    def function(self) -> Callable:
        op = super().function()
        return lambda **keywords: self.through(ops, op(**keywords), keywords)


@st.composite
def matrices(draw, kind="general", rows=None, columns=None, dtype="float64", name="x", batches=tuple(BATCHES)):
    """Draw ``{name: matrix}``: general, symmetric (separated eigenvalues), positive definite, or well conditioned."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch = draw(st.sampled_from(batches if dtype == "float64" else [(2,)]))
    m = rows or (draw(st.integers(1, 3)) if dtype == "float64" else 2)  # few shapes: each is compiled by JAX
    n = columns or m
    shape = (*batch, m, n)
    x = rng.uniform(-1, 1, shape)
    if "complex" in dtype:
        x = x + 1j * rng.uniform(-1, 1, shape)
    if kind == "general":
        return {name: x.astype(dtype)}
    u, _, vh = np.linalg.svd(x)
    values = np.arange(1, m + 1) + rng.uniform(-0.2, 0.2, (*batch, m))
    if kind == "symmetric":
        values = values * rng.choice([-1, 1], (*batch, m))
    if kind in ("symmetric", "positive"):
        vh = np.conj(np.swapaxes(u, -1, -2))
    x = (u * values[..., None, :]) @ vh
    if kind in ("symmetric", "positive"):
        x = (x + np.conj(np.swapaxes(x, -1, -2))) / 2
    return {name: x.astype(dtype)}


@st.composite
def systems(draw, kind="regular", rows=None, dtype="float64"):
    """Draw ``a`` and a matching ``b``: a vector, columns, or broadcast columns."""
    a = draw(matrices(kind, rows=rows, dtype=dtype, name="a"))["a"]
    shape = draw(st.sampled_from([(a.shape[-2],), (a.shape[-2], 2), (2, a.shape[-2], 1)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    b = rng.uniform(-1, 1, shape)
    return {"a": a, "b": b + 1j * rng.uniform(-1, 1, shape) if "complex" in dtype else b}


def mirrored(x):
    return np.conj(np.swapaxes(x, -1, -2))


def both(op, kind, reference, **keywords):
    """Return one case with real and one with complex matrices."""
    arguments = {k: keywords.pop(k) for k in ("rows", "columns") if k in keywords}
    keywords.setdefault("gradients", ["x"])
    return [
        (Through if "through" in keywords else Case)(
            op,
            matrices(kind, dtype=dtype, **arguments),
            lambda **given: reference(*given.values()),
            label=f"{label}{kind}{name}",
            **keywords,
        )
        for label in [keywords.pop("label", "")]
        for dtype, name in (("float64", ""), ("complex128", "-complex"))
    ]


def solved(function):
    """Turn a reference solver for columns into one that also accepts vectors."""

    def reference(a, b):
        vectors = b.ndim == 1 or b.shape == a.shape[:-1]
        columns = b[..., None] if vectors else b
        while columns.ndim < a.ndim:  # NumPy before 2.0 takes one dimension less for vectors
            columns = columns[None]
        x = function(a, columns)
        return x[..., 0] if vectors else x

    return reference


def triangular(lower):
    return solved(lambda a, b: np.linalg.solve(np.tril(a) if lower else np.triu(a), b))


def with_options(inputs, **options):
    return inputs.map(lambda given: {**given, **options})


# Quantities that do not depend on the choice of vectors: weighted projections and products.


def ramp(o, n, like):
    """Return 1, ..., n along the columns, in the dtype of ``like``, so that products keep that dtype."""
    return o.cumsum(o.ones_like(like[..., :1, :n]), -1)


def through_eigh(o, result, given):
    w, v = result
    vh = o.conj(o.swapaxes(v, -1, -2))
    return [w, o.matmul(o.multiply(v, ramp(o, w.shape[-1], v)), vh)]


def through_eig(o, result, given):
    w, v = result
    inverse = o.inv(v)
    lengths = o.square(o.abs(v))
    return [
        o.sum(o.exp(w), -1),
        o.matmul(o.multiply(v, o.expand_dims(o.exp(w), -2)), inverse),
        o.sum(o.multiply(lengths, o.expand_dims(o.real(w), -2)), -1),
    ]


def through_svd(o, result, given):
    u, s, vh = result
    uh, v = o.conj(o.swapaxes(u, -1, -2)), o.conj(o.swapaxes(vh, -1, -2))
    k = s.shape[-1]
    weights = ramp(o, k, u)
    return [
        s,
        o.matmul(o.multiply(u[..., :k], weights), uh[..., :k, :]),
        o.matmul(o.multiply(v[..., :k], weights), vh[..., :k, :]),
        o.matmul(o.multiply(u[..., :k], o.square(weights)), vh[..., :k, :]),
        o.matmul(u[..., k:], uh[..., k:, :]),
        o.matmul(v[..., k:], vh[..., k:, :]),
    ]


def through_qr(o, result, given):
    q, r = result
    k = min(given["x"].shape[-2:])
    weights = ramp(o, k, q)
    qh, rh = o.conj(o.swapaxes(q, -1, -2)), o.conj(o.swapaxes(r, -1, -2))
    return [
        o.matmul(o.multiply(q[..., :k], weights), qh[..., :k, :]),
        o.matmul(o.multiply(rh[..., :k], weights), r[..., :k, :]),
        o.matmul(q[..., k:], qh[..., k:, :]),
    ]


def lu_reference(x):
    flat = x.reshape(-1, *x.shape[-2:])
    parts = [scipy.linalg.lu_factor(m) for m in flat]
    batch = x.shape[:-2]
    return (
        np.array([lu for lu, _ in parts]).reshape(x.shape),
        np.array([p for _, p in parts], np.int64).reshape(*batch, min(x.shape[-2:])),
    )


def reference_through(through, function):
    return lambda x: through(numpy_ops, function(x), {"x": x})


class numpy_ops:
    """NumPy functions under the names used above."""

    conj, swapaxes, matmul, multiply, square, abs, sum, exp, real, expand_dims, ones_like, cumsum = (
        np.conj,
        np.swapaxes,
        np.matmul,
        np.multiply,
        np.square,
        np.abs,
        np.sum,
        np.exp,
        np.real,
        np.expand_dims,
        np.ones_like,
        np.cumsum,
    )
    inv = np.linalg.inv


def invariant(op, kind, through, function, **keywords):
    return both(op, kind, reference_through(through, function), through=through, **keywords)


# JAX computes parts of these gradients in single precision: they agree to six digits.
loose = {"rtol": 1e-5, "atol": 1e-7}


def powered(x, n):
    return np.linalg.matrix_power(x, n)


CASES = [
    *both("cholesky", "positive", np.linalg.cholesky),
    Case(
        "cholesky",
        with_options(matrices("positive"), upper=True),
        lambda x, upper: mirrored(np.linalg.cholesky(x)),
        gradients=["x"],
        label="upper",
    ),
    *both("cholesky_inverse", "regular", lambda x: np.linalg.inv(np.tril(x) @ mirrored(np.tril(x)))),
    Case(
        "cholesky_inverse",
        with_options(matrices("regular"), upper=True),
        lambda x, upper: np.linalg.inv(np.triu(x).swapaxes(-1, -2) @ np.triu(x)),
        gradients=["x"],
        label="upper",
    ),
    *both("det", "regular", np.linalg.det),
    *both("slogdet", "regular", lambda x: tuple(np.linalg.slogdet(x))),
    *both("logdet", "regular", lambda x: np.linalg.slogdet(x)[1]),
    *both(
        "adjugate",
        "regular",
        lambda x: np.linalg.det(x)[..., None, None] * np.linalg.inv(x),
    ),
    *both("inv", "regular", np.linalg.inv),
    *both("expm", "regular", scipy.linalg.expm),
    *(
        Case("matrix_power", with_options(matrices("regular", dtype=d), n=n), powered, ["x"], label=f"{d}-{n}")
        for d, n in (("float64", 3), ("float64", -2), ("complex128", 2))
    ),
    Case("matrix_power", with_options(matrices("regular"), n=0), powered, label="identity"),
    Case("matrix_power", inputs(x=np.array([[1, 2], [3, 4]]), n=5), powered, label="integers"),
    *both("pinv", "general", np.linalg.pinv, rows=3, columns=2, **loose),
    *both("pinv", "general", np.linalg.pinv, rows=2, columns=3, **loose, label="wide-"),
    *both("matrix_rank", "general", np.linalg.matrix_rank, rows=3, columns=2, gradients=()),
    *(
        Case("solve", systems(dtype=d), solved(np.linalg.solve), gradients=["a", "b"], label=d)
        for d in ("float64", "complex128")
    ),
    *(
        Case(
            "solve_triangular",
            with_options(systems(dtype=d), lower=lower),
            lambda a, b, lower: triangular(lower)(a, b),
            gradients=["a", "b"],
            label=f"{d}-{lower}",
        )
        for d in ("float64", "complex128")
        for lower in (False, True)
    ),
    *(
        Case(
            "lstsq",
            systems("general", rows=3, dtype=d),
            solved(lambda a, b: np.linalg.pinv(a) @ b),
            gradients=["a", "b"],
            **loose,
            label=d,
        )
        for d in ("float64", "complex128")
    ),
    *both("lu_factor", "general", lu_reference, **loose),
    *both("lu_factor", "general", lu_reference, rows=3, columns=2, label="tall-"),
    *both("lu_factor", "general", lu_reference, rows=2, columns=3, label="wide-", **loose),
    *invariant("eigh", "symmetric", through_eigh, np.linalg.eigh),
    *invariant(
        "eig", "regular", through_eig, lambda x: [part.astype(complex) for part in np.linalg.eig(x)], rows=2, **loose
    ),
    *invariant("qr", "general", through_qr, np.linalg.qr, rows=3, columns=2),
    *invariant("qr", "general", through_qr, np.linalg.qr, rows=2, columns=3, label="wide-"),
    *invariant("svd", "regular", through_svd, np.linalg.svd),
]

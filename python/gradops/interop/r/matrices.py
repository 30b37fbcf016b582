"""R's functions of dense matrices on tensors: decompositions, triangular solves and multivariate normal densities.

Results have R's conventions, such as eigenvalues in decreasing order.
"""

from __future__ import annotations

import math

from ... import ops, scipy
from ...errors import ShapeError
from ...ops import _checks
from .arrays import flat, promoted_operands


def eigen(x, symmetric: bool):
    """Return R's ``eigen()``: values in decreasing order (by modulus if not symmetric) and vectors as columns."""
    if symmetric:
        return [ops.flip(part, -1) for part in scipy.linalg.eigh(x, check_finite=False)]
    values, vectors = ops.eig(x)
    order = ops.argsort(-ops.abs(ops.stop_gradient(values)))
    parts = [ops.take(values, order, -1), ops.take(vectors, order, -1)]
    known = _checks.known(values)
    return parts if known is None or known.imag.any() else [ops.real(part) for part in parts]


def svd(x, nu: float, nv: float):
    """Return R's ``svd()``: singular values, and the first ``nu`` left and ``nv`` right singular vectors as columns."""
    u, d, v = ops.svd(x, full_matrices=max(nu, nv) > min(x.shape))
    return [d, u[:, : int(nu)], ops.transpose(ops.conj(v))[:, : int(nv)]]


def triangular_solve(r, x, k: float, upper: bool, transpose: bool):
    """Solve the triangular system of the first ``k`` rows and columns of ``r`` and the first ``k`` rows of ``x``."""
    r, x = promoted_operands(r, x)
    r, x = r[: int(k), : int(k)], x[: int(k)]
    return ops.solve_triangular(ops.transpose(r) if transpose else r, x, lower=upper == transpose)


def normal(x, mu, root, scale):
    """Return the log density of a normal vector, or of each row, by ``root``, the upper factor of the covariance."""
    size = int(root.shape[0])
    z, log_scale = standard(x, mu, scale, size)
    root, z = promoted_operands(root, z)
    z = ops.solve_triangular(ops.transpose(root), z, lower=True)
    constant = ops.sum(ops.log(ops.diagonal(root))) + size * math.log(2 * math.pi) / 2
    return -ops.sum(ops.square(z), 0) / 2 - (constant + log_scale)


def standard(x, mu, scale, size: float) -> list:
    """Return standardised observations as columns, and the sum of the logarithms of the scales.

    Args:
        x: a vector, or a matrix with a row for each observation.
        mu, scale: shaped like ``x``, or ``size`` elements shared by all observations, or one number.
    """
    size = int(size)
    centred, scaled = not (mu.__class__ is float and mu == 0), not (scale.__class__ is float and scale == 1)
    x, mu, scale = promoted_operands(x, mu, scale)
    z = _observed("x", x, size)
    if centred:
        z = z - _observed("mu", mu, size, True)
    if not scaled:
        return [z, 0.0]
    scale = _observed("scale", scale, size, True)
    log_scale = ops.log(scale)
    return [z / scale, ops.sum(log_scale, 0) if len(scale.shape) else size * log_scale]


def _observed(name: str, value, size: int, alone: bool = False):
    """Return a value with a column for each observation; a single number stays one if ``alone``."""
    shape = tuple(value.shape)
    count = math.prod(shape)
    if len(shape) == 2 and shape[1] == size:
        return ops.transpose(value)
    if count == size:
        return ops.reshape(flat(value), (size, 1))
    if count == 1 and alone:
        return ops.reshape(value, ())
    raise ShapeError(
        f"`{name}` must have {size} elements for each observation, as the matrix has rows; got {shape}.",
        argument=name,
        hint="Give a vector, or a matrix with a row for each observation.",
    )

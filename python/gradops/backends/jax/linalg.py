"""JAX kernels: linear algebra. JAX returns NaN or infinity for unsuitable matrices; known values raise an error."""

import inspect

import jax
import jax.numpy as jnp
from jax.interpreters import ad

from .. import _shared
from ._private import typeof
from .base import cast, dtype_name, floats, promoted
from .kinks import _elementwise

_matrix = _shared.full_precision(floats, cast, dtype_name)
_system = _shared.system_in_full_precision(floats, promoted, cast, dtype_name)


def _known(*arrays) -> bool:
    return not any(isinstance(x, jax.core.Tracer) for x in arrays)


def _adjoint(x):
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _symmetric(x):
    """Make ``x`` exactly symmetric by averaging small asymmetries; raises for large ones."""
    difference = x - _adjoint(x)
    if x.size and _known(x):
        allowed = _shared.ASYMMETRY * jnp.abs(x).max((-2, -1))
        if (jnp.abs(difference).max((-2, -1)) > allowed).any():
            raise ValueError(_shared.NOT_SYMMETRIC)
    return x - difference / 2


def _finite(x):
    if _known(x) and not jnp.isfinite(x).all():
        raise ValueError(_shared.NOT_FINITE)
    return x


def _regular(y, *arguments):
    """Return ``y``; raises if it is not finite although the arguments are."""
    if _known(y, *arguments) and not jnp.isfinite(y).all() and all(jnp.isfinite(x).all() for x in arguments):
        raise ValueError(_shared.SINGULAR)
    return y


@_matrix
def cholesky(x, upper=False):
    y = jnp.linalg.cholesky(_symmetric(x), symmetrize_input=False)
    if _known(y) and jnp.isnan(y).any():
        raise ValueError(_shared.NOT_POSITIVE_DEFINITE)
    return _adjoint(y) if upper else y


@_matrix
def det(x):
    return jnp.linalg.det(x) if x.size else slogdet(x)[0]  # JAX's `det` fails for empty matrices


@_matrix
def slogdet(x):
    return tuple(jnp.linalg.slogdet(x))


@_matrix
def inv(x):
    return _regular(jnp.linalg.inv(x), x)


@_matrix
def expm(x):
    return jax.scipy.linalg.expm(x)


@_matrix
def pinv(x, rcond=None):
    return jnp.linalg.pinv(_finite(x), rtol=max(x.shape[-2:]) * jnp.finfo(x.dtype).eps if rcond is None else rcond)


@_system
def solve(a, b):
    return _regular(jnp.linalg.solve(a, b), a, b)


@_system
def solve_triangular(a, b, lower=False):
    if _known(a) and (jnp.diagonal(a, axis1=-2, axis2=-1) == 0).any():
        raise ValueError(_shared.SINGULAR)
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = jnp.broadcast_to(a, batch + a.shape[-2:]), jnp.broadcast_to(b, batch + b.shape[-2:])
    return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=lower)


# Newer versions of JAX compute derivatives of eigenvectors only on request.
_OPTIONS = {name: True for name in inspect.signature(jax.lax.linalg.eig).parameters if name == "enable_eigvec_derivs"}


@_matrix
def eig(x):
    if not x.size:  # JAX has no derivative for empty matrices
        x = x.astype(jnp.result_type(x, jnp.complex64))
        return x.reshape(x.shape[:-1]), x
    return tuple(jax.lax.linalg.eig(_finite(x), compute_left_eigenvectors=False, **_OPTIONS))


@_matrix
def eigh(x):
    return tuple(jnp.linalg.eigh(_symmetric(_finite(x)), symmetrize_input=False))


# NaN where there is no derivative. Primitives, linear in an argument, because JAX transposes the rules that use them.


def _primitive(name: str, function, jvp, transpose):
    primitive = _elementwise(name, function)
    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose
    return primitive


def _nan(t, scale):
    rounding = 1e3 * jnp.finfo(t.dtype).eps * jnp.abs(scale).max((-2, -1), keepdims=True, initial=0.0)
    return jnp.where(jnp.abs(t) <= rounding, 0.0, jnp.nan).astype(t.dtype)


def _nan_of(t):
    """NaN for nonzero elements of a tangent or cotangent."""
    return t if type(t) is ad.Zero else _undefined.bind(t, jnp.zeros_like(t))


_undefined = _primitive(
    "gradops_undefined",
    _nan,
    lambda primals, tangents: (_undefined.bind(*primals), _nan_of(tangents[0])),
    lambda g, t, scale: [_nan_of(g) if ad.is_undefined_primal(t) else None, None],
)


def undefined(t, at, scale):
    """See :func:`gradops.ops.decompositions.undefined`."""
    return _undefined.bind(jnp.where(at, t, 0.0), scale)


def _crease_moved(primals, tangents):
    (t, x), (dt, dx) = primals, tangents
    if type(dx) is ad.Zero:
        return _crease.bind(t, x), dt if type(dt) is ad.Zero else jnp.zeros_like(t)
    return _crease.bind(t, x), _nan_of(dx)


_crease = _primitive(
    "gradops_crease",
    lambda t, x: jnp.zeros_like(t),
    _crease_moved,
    lambda g, t, x: [ad.Zero(t.aval) if ad.is_undefined_primal(t) else None, None],
)


def crease(t, x, at):
    """See :func:`gradops.ops.decompositions.crease`."""
    return _crease.bind(t, jnp.where(at, x, 0.0))


def parted(a, b, pairs, floor):
    """See :func:`gradops.ops.decompositions.parted`."""
    shape = jnp.broadcast_shapes(*(x.shape for x in (a, b, pairs, floor)))
    dtype = jnp.result_type(floor)
    a, b, floor = (jnp.broadcast_to(x, shape) for x in (a, b, floor))
    return _parted.bind(jnp.where(pairs, floor, jnp.inf).astype(dtype), a, b)


def _differ(floor, a, b):
    allowed = (jnp.abs(a) + jnp.abs(b)) * (0.5 * jnp.finfo(floor.dtype).eps ** 0.5) + floor
    return jnp.where(jnp.abs(a - b) > allowed, jnp.nan, jnp.zeros_like(floor))


_parted = _primitive(
    "gradops_parted",
    _differ,
    lambda primals, tangents: (_parted.bind(*primals), ad.Zero(typeof(primals[0]))),
    lambda g, *operands: [ad.Zero(v.aval) if ad.is_undefined_primal(v) else None for v in operands],
)


@_matrix
def lu_factor(x):
    y, pivots, _ = jax.lax.linalg.lu(x)
    return y, pivots.astype("int64")


@_matrix
def svd(x, full_matrices=True, compute_uv=True):
    y = jnp.linalg.svd(_finite(x), full_matrices, compute_uv)
    return tuple(y) if compute_uv else y

"""Linear filters given by their coefficients, with derivatives by the data and the coefficients.

The recursive part is the op :func:`all_pole`, which SciPy runs on the host.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ... import _scipy, backends, ops
from ...annotations import Axis, Integer, Tensor
from ...errors import ShapeError
from ...extend import derivative, kernel
from ...extend import op as make_op
from ...ops._checks import choice, integer, known
from .._define import LIBRARIES, family
from .._neighbours import alike, back, extended, last, line, vector
from .._tensors import constant_like, wrong

__all__ = ["filtfilt", "lfilter", "lfilter_zi", "lfiltic", "sosfilt", "sosfilt_zi", "sosfiltfilt"]

by_filter = family(
    {
        "b": "the numerator's coefficients, a vector or number; ``a`` holds the denominator's.",
        "sos": "second-order sections as rows ``b0 b1 b2 1 a1 a2``.",
        "padtype": 'padding at the ends: ``"odd"`` for a point reflection, ``"even"`` for a reflection, ``"constant"`` '
        "for the end's value, None for none.",
        "padlen": "the number of padded elements, by default three times the number of coefficients.",
    },
    returns="A tensor of ``x``'s shape, of the promoted floating dtype.",
    raises="ShapeError: coefficients or states of the wrong shape.\nAxisError: there is no such axis.",
    gradient="By ``x`` the filter of the upstream gradient, backwards in time; also by coefficients and states.",
)
by_state = family(
    returns="A vector of ``max(len(a), len(b)) - 1`` elements.",
    raises="ShapeError: coefficients of the wrong shape.",
    gradient="By all arguments.",
)


@make_op(name="scipy.signal.all_pole", linear=("x",))
def all_pole(x: Tensor, a: Tensor) -> Tensor:
    """Recursion ``y[n] = x[n] - a[0] y[n - 1] - a[1] y[n - 2] - ...`` along the last dimension.

    Gradient:
        By ``x`` the recursion on the upstream gradient, backwards; by ``a`` minus its correlation with earlier results.
    """
    order = int(a.shape[0])

    def step(before, x):
        y = x - ops.sum(before * a, -1)
        return ops.concatenate([ops.expand_dims(y, -1), before[..., : order - 1]], -1), y

    start = ops.zeros_like(x[..., :1]) * ops.zeros_like(a)
    return ops.moveaxis(ops.scan(step, start, ops.moveaxis(x, -1, 0))[1], 0, -1)


def _backwards(g, a):
    return ops.flip(all_pole(ops.flip(g, -1), a), -1)


def _coefficient_cotangent(g, a, y):
    w, n = _backwards(g, a), int(y.shape[-1])
    sums = [-ops.sum(w[..., k:] * y[..., : max(n - k, 0)]) for k in range(1, int(a.shape[0]) + 1)]
    return ops.stack(sums, 0)


derivative(all_pole, x=lambda g, a: _backwards(g, a), a=lambda g, a, y: _coefficient_cotangent(g, a, y))


@kernel(all_pole, "numpy")
def _(x, a):
    half = x.dtype == "float16"
    y = _scipy.signal.lfilter([1.0], np.concatenate([[1], a]), x.astype("float32") if half else x)
    return y.astype(np.result_type(x, a), copy=False)


def _rows(x, *a):
    """Run the recursion on NumPy arrays; in batches made by a compiler each row may have its own coefficients."""
    shape = np.broadcast_shapes(x.shape, *[k.shape for k in a])
    x = np.broadcast_to(x, shape).astype("float32" if x.dtype.itemsize < 4 else x.dtype, copy=False)
    taps = np.stack([np.broadcast_to(k, shape)[..., 0] for k in a], -1).reshape(-1, len(a))
    if not x.size:
        return x
    if (taps == taps[:1]).all():
        return _scipy.signal.lfilter([1.0], [1.0, *taps[0]], x)
    rows = [_scipy.signal.lfilter([1.0], [1.0, *tap], row) for tap, row in zip(taps, x.reshape(len(taps), -1))]
    return np.stack(rows).reshape(shape)


def _host_kernel(backend):
    foresee = backend.kernel("foresee")
    if foresee is not None:
        foresee("scipy.signal.all_pole", _rows)

    def kernel(x, a):
        return backend.call_on_host("scipy.signal.all_pole", _rows, [x, *[a[i] for i in range(int(a.shape[0]))]])

    return kernel


for _library in LIBRARIES:
    backends.add_kernel(_library, "scipy.signal.all_pole", _host_kernel)


# Coefficients --------------------------------------------------------------------------------------------------------


def _coefficients(function: str, b, a) -> tuple:
    """Return ``b / a[0]`` and ``a[1:] / a[0]`` as vectors."""
    b, a = vector(function, b, "b"), vector(function, a, "a")
    return b / a[0], a[1:] / a[0]


def _filled(x, count: int):
    """Pad the last dimension with zeros to ``count``."""
    lacking = count - int(x.shape[-1])
    return extended(x, 0, lacking, "constant") if lacking > 0 else x


def _filtered(b, a, x, zi=None) -> tuple:
    """Filter along the last dimension; ``a`` comes without its first 1. Return the result and the last state."""
    n, order = int(x.shape[-1]), max(int(b.shape[0]) - 1, int(a.shape[0]))
    recursive = int(a.shape[0]) > 0
    taps = int(b.shape[0])
    if zi is None:
        y = line(x, b, taps - 1, 0)
        return (all_pole(y, a) if recursive else y), None
    v = _filled(line(x, b, taps - 1, taps - 1), n + order) + extended(zi, 0, n, "constant")
    y, rest = v[..., :n], v[..., n:]
    if recursive and n:
        y = all_pole(y, a)
        tail = y[..., max(n - order, 0) :]
        count = int(tail.shape[-1])
        rest = (
            rest - _filled(line(tail, a, int(a.shape[0]) - 1, int(a.shape[0]) - 1), count - 1 + order)[..., count - 1 :]
        )
    return y, rest


@by_filter
def lfilter(b: Tensor, a: Tensor, x: Tensor, axis: Axis = -1, zi: Tensor | None = None):
    """Filter a signal: ``a[0] y[n] = b[0] x[n] + b[1] x[n - 1] + ... - a[1] y[n - 1] - ...``.

    Args:
        zi: the state before the first element, ``max(len(a), len(b)) - 1`` numbers along ``axis``.

    Returns:
        A tensor of ``x``'s shape, of the promoted floating dtype; with ``zi`` also the state after the last element.
    """
    if zi is None:
        b, a, x = alike(b, a, x)
    else:
        b, a, x, zi = alike(b, a, x, zi)
    b, a = _coefficients("lfilter", b, a)
    x, axis = last("lfilter", x, axis)
    if zi is None:
        return back(_filtered(b, a, x)[0], axis)
    order = max(int(b.shape[0]) - 1, int(a.shape[0]))
    zi = last("lfilter", zi, axis)[0] if len(zi.shape) == len(x.shape) else zi
    wanted = (*x.shape[:-1], order)
    if (
        len(zi.shape) != len(wanted)
        or any(n not in (1, m) for n, m in zip(zi.shape[:-1], wanted))
        or (int(zi.shape[-1]) != order)
    ):
        raise wrong("zi", f"have {order} elements along `axis` and else `x`'s shape", tuple(zi.shape), ShapeError)
    y, zf = _filtered(b, a, x, zi)
    return back(y, axis), back(zf, axis)


def _steady(b, a):
    """Return the steady state for a step; ``a`` comes without its first 1."""
    order = max(int(b.shape[0]) - 1, int(a.shape[0]))
    b, a = _filled(b, order + 1), _filled(a, order)
    rest = b[1:] - a * b[0]
    first = ops.sum(rest) / (1 + ops.sum(a))
    one = ops.ones_like(a[:1])
    sums = ops.cumsum(ops.concatenate([one, a[:-1]], 0), 0)
    lost = ops.cumsum(ops.concatenate([0 * one, rest[:-1]], 0), 0)
    return sums * first - lost


@by_state
def lfilter_zi(b: Tensor, a: Tensor) -> Tensor:
    """State of :func:`lfilter` in which the response to a step is steady.

    Gradient:
        By the coefficients. The formula is in SciPy's notes: the linear system is solved by sums.
    """
    b, a = alike(b, a)
    b, a = _coefficients("lfilter_zi", b, a)
    return _steady(b, a) if max(int(b.shape[0]) - 1, int(a.shape[0])) else b[:0]


@by_state
def lfiltic(b: Tensor, a: Tensor, y: Tensor, x: Tensor | None = None) -> Tensor:
    """State of :func:`lfilter` after the last outputs ``y`` and inputs ``x``, latest first."""
    if x is None:
        b, a, y = alike(b, a, y)
        x = ops.zeros_like(y)
    else:
        b, a, y, x = alike(b, a, y, x)
    b, a = _coefficients("lfiltic", b, a)
    order = max(int(b.shape[0]) - 1, int(a.shape[0]))
    x, y = _filled(_flat(x, "x"), order), _filled(_flat(y, "y"), order)
    b, a = _filled(b, order + 1)[1:], _filled(a, order)
    sums = [ops.sum(b[m:] * x[: order - m]) - ops.sum(a[m:] * y[: order - m]) for m in range(order)]
    return ops.stack(sums, 0) if sums else b


def _flat(x, name: str):
    if len(x.shape) > 1:
        raise wrong(name, "be a vector", tuple(x.shape), ShapeError)
    return x if x.shape else ops.reshape(x, (1,))


# Sections ------------------------------------------------------------------------------------------------------------


def _sections(sos):
    if len(sos.shape) == 1:
        sos = ops.expand_dims(sos, 0)
    if len(sos.shape) != 2 or int(sos.shape[1]) != 6:
        raise wrong("sos", "be of shape (sections, 6)", tuple(sos.shape), ShapeError)
    return sos


def _each(sos):
    """Return the coefficients of each section; ``a`` without its first, which is 1."""
    return [(sos[i, :3], sos[i, 4:]) for i in range(int(sos.shape[0]))]


def _cascade(sos, x, states=None) -> tuple:
    """Apply the sections along the last dimension; return the result and their last states."""
    after = []
    for i, (b, a) in enumerate(_each(sos)):
        x, state = _filtered(b, a, x, None if states is None else states[i])
        after.append(state)
    return x, after


@by_filter
def sosfilt(sos: Tensor, x: Tensor, axis: Axis = -1, zi: Tensor | None = None):
    """Filter a signal by a cascade of second-order sections.

    Args:
        zi: the states before the first element, of shape ``(sections, ..., 2, ...)``, with 2 in place of ``axis``.

    Returns:
        A tensor of ``x``'s shape, of the promoted floating dtype; with ``zi`` also the states after the last element.
    """
    if zi is None:
        sos, x = alike(sos, x)
    else:
        sos, x, zi = alike(sos, x, zi)
    sos = _sections(sos)
    x, axis = last("sosfilt", x, axis)
    if zi is None:
        return back(_cascade(sos, x)[0], axis)
    wanted = (int(sos.shape[0]), *x.shape[:axis], 2, *x.shape[axis:-1])
    if tuple(zi.shape) != wanted:
        raise wrong("zi", f"be of shape {wanted}", tuple(zi.shape), ShapeError)
    y, zf = _cascade(sos, x, ops.moveaxis(zi, axis + 1, -1))
    return back(y, axis), ops.moveaxis(ops.stack(zf, 0), -1, axis + 1) if zf else zi


@by_state
def sosfilt_zi(sos: Tensor) -> Tensor:
    """States of :func:`sosfilt` in which the response to a step is steady.

    Returns:
        A tensor of shape ``(sections, 2)``.

    Gradient:
        By the coefficients, as for :func:`lfilter_zi`.
    """
    (sos,) = alike(sos)
    if len(sos.shape) != 2:
        raise wrong("sos", "be of shape (sections, 6)", tuple(sos.shape), ShapeError)
    return ops.stack(_steady_states(_sections(sos)), 0)


def _steady_states(sos) -> list:
    found, scale = [], None
    for b, a in _each(sos):
        state = _steady(b, a)
        found.append(state if scale is None else state * scale)
        gain = ops.sum(b) / (1 + ops.sum(a))
        scale = gain if scale is None else scale * gain
    return found


# Forwards and backwards ----------------------------------------------------------------------------------------------

PadType = Literal["odd", "even", "constant", None]


def _padded(function: str, x, padtype, padlen, taps: int) -> tuple:
    """Return ``x`` padded at both ends of its last dimension, and the number of elements added to each."""
    if padtype is not None:
        choice(function, padtype, ("odd", "even", "constant"), "padtype")
    edge = 0 if padtype is None else 3 * taps if padlen is None else int(padlen)
    if edge < 0 or int(x.shape[-1]) <= edge:
        raise wrong("padlen", f"be from 0 to below the {int(x.shape[-1])} elements of `x` along `axis`", edge)
    return extended(x, edge, edge, {"even": "reflect", "constant": "edge"}.get(padtype, "odd")), edge


def _there_and_back(run, x, edge: int):
    """Run a filter, ``run(x, first)``, forwards and backwards from steady states."""
    y = run(x, x[..., :1])
    y = ops.flip(run(ops.flip(y, -1), y[..., -1:]), -1)
    return y[..., edge : int(y.shape[-1]) - edge] if edge else y


def _same_both_ways(b, a, x, irlen: int | None):
    """Filter forwards and backwards from initial states that make it nearest to backwards and forwards (Gustafsson)."""

    def run(x):
        return _filtered(b, a, x)[0]

    n, order = int(x.shape[-1]), max(int(b.shape[0]) - 1, int(a.shape[0]))
    there, other = ops.flip(run(ops.flip(run(x), -1)), -1), run(ops.flip(run(ops.flip(x, -1)), -1))
    if not order:
        return there
    m = n if irlen is None else integer("filtfilt", irlen, "irlen", 1)
    m = m if 2 * m < n else n
    # The filter's output for each unit state, and that output filtered from the other side; a row for each state.
    free = _filtered(b, a, constant_like(np.zeros((order, m)), x), constant_like(np.eye(order), x))[0]
    after = run(ops.flip(free, -1))
    starts, ends, rest = ops.flip(after, -1), ops.flip(free, -1), other - there
    rows = starts - free, ends - after
    if m < n:
        rows = extended(rows[0], 0, m, "constant"), extended(rows[1], m, 0, "constant")
        starts, ends = extended(starts, 0, n - m, "constant"), extended(ends, n - m, 0, "constant")
        rest = ops.concatenate([rest[..., :m], rest[..., n - m :]], -1)
    states = ops.matmul(rest, ops.pinv(ops.concatenate(rows, 0)))
    return there + ops.matmul(states, ops.concatenate([starts, ends], 0))


@by_filter
def filtfilt(
    b: Tensor, a: Tensor, x: Tensor, axis: Axis = -1, padtype: PadType = "odd", padlen: Integer | None = None,
    method: Literal["pad", "gust"] = "pad", irlen: Integer | None = None,
) -> Tensor:  # fmt: skip
    """Filter a signal forwards and backwards, which leaves phases unchanged.

    Args:
        method: ``"pad"``, or ``"gust"``, which does not pad but chooses the states at the ends so that filtering in
            either order gives the same result, by least squares (Gustafsson 1996).
        irlen: for ``"gust"`` the length of the impulse response, beyond which the states at the ends have no effect.

    Raises:
        ArgumentError: ``x`` is not longer than ``padlen``; an unknown method.
    """
    choice("filtfilt", method, ("pad", "gust"), "method")
    b, a, x = alike(b, a, x)
    b, a = _coefficients("filtfilt", b, a)
    x, axis = last("filtfilt", x, axis)
    if method == "gust":
        return back(_same_both_ways(b, a, x, irlen), axis)
    x, edge = _padded("filtfilt", x, padtype, padlen, max(int(b.shape[0]), int(a.shape[0]) + 1))
    steady = _steady(b, a) if max(int(b.shape[0]) - 1, int(a.shape[0])) else b[:0]
    return back(_there_and_back(lambda x, first: _filtered(b, a, x, steady * first)[0], x, edge), axis)


@by_filter
def sosfiltfilt(
    sos: Tensor, x: Tensor, axis: Axis = -1, padtype: PadType = "odd", padlen: Integer | None = None
) -> Tensor:
    """Filter a signal by second-order sections forwards and backwards, which leaves phases unchanged.

    Args:
        padlen: the number of padded elements, by default ``3 * (2 * sections + 1)``, less for first-order sections.

    Raises:
        ArgumentError: ``x`` is not longer than ``padlen``.
    """
    given = sos
    sos, x = alike(sos, x)
    sos = _sections(sos)
    x, axis = last("sosfiltfilt", x, axis)
    taps = 2 * int(sos.shape[0]) + 1
    if padlen is None and padtype is not None:
        values = known(given)
        if values is None:
            raise wrong("padlen", "be given where the sections have no values yet, as in a program")
        values = np.atleast_2d(values)
        taps -= int(min((values[:, 2] == 0).sum(), (values[:, 5] == 0).sum()))
    x, edge = _padded("sosfiltfilt", x, padtype, padlen, taps)
    steady = _steady_states(sos)
    return back(_there_and_back(lambda x, first: _cascade(sos, x, [s * first for s in steady])[0], x, edge), axis)

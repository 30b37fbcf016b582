"""Attention.

Means of values for each target, weighted by how well its query matches the keys of the values.

See Also:
    :func:`softmax`, :func:`matmul`, :func:`einsum`.
"""

from __future__ import annotations

import numpy as np

from .. import dtypes as _dtypes
from ..annotations import Tensor
from ..errors import ShapeError
from ._checks import broadcast_shapes, check_rank, check_real, describe
from ._compose import floats, rounded, wide
from ._dispatch import op
from .activations import softmax
from .conversion import cast
from .conversion import dtype as _dtype
from .conversion import shape as _shape
from .elementwise import add, divide, greater, logical_and, multiply, tanh
from .indexing import where
from .products import matmul
from .properties import fits as _fits
from .shaping import reshape, transpose


def _check(op, query, key, value, bias, mask, *rest):
    check_real(op, query, key, value, bias, mask)
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_rank(op.name, tensor, (4,), name)
    (batch, targets, heads, width), (again, sources, groups, depth) = _shape(query), _shape(key)
    if not _fits((again, depth), (batch, width)) or not groups or heads % groups:
        raise ShapeError(
            f"`{op.name}`: `key` must have the batch and head size of `query`, {{query}}, and a number of "
            f"heads that divides its {heads}; got {{key}}.",
            argument="key",
            query=describe(query),
            key=describe(key),
        )
    if not _fits(_shape(value)[:3], _shape(key)[:3]):
        raise ShapeError(
            f"`{op.name}`: `value` must be of `key`'s shape but for the last dimension; got {{value}}.",
            argument="value",
            value=describe(value),
        )
    for name, tensor in (("bias", bias), ("mask", mask)):
        wanted = (batch, heads, targets, sources)
        if tensor is None:
            continue
        if not _fits(broadcast_shapes(op.name, ("logits", name), wanted, _shape(tensor)), wanted):
            raise ShapeError(
                f"`{op.name}`: `{name}` must broadcast to {wanted}; got {{tensor}}.",
                argument=name,
                tensor=describe(tensor),
            )


_MASKED_SCORE = -1e30
"""The score of a masked source: finite, because a softmax of nothing but minus infinity is NaN."""


@op(check=_check, conditions=("mask",))
def dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Tensor:
    """``softmax(query @ key * scale + bias) @ value`` for each head (Vaswani et al. 2017).

    Args:
        query: ``(batch, targets, heads, width)``.
        key: ``(batch, sources, groups, width)``. With fewer groups than heads, consecutive heads share a group
            (grouped-query attention, Ainslie et al. 2023).
        value: ``(batch, sources, groups, width)``; the width may be another.
        bias: added to the logits; broadcasts to ``(batch, heads, targets, sources)``. -inf masks.
        mask: true where a source may be attended to; broadcasts likewise.
        scale: ``1 / sqrt(width)`` if None.
        is_causal: mask the sources after a target's own position.
        flash_attention: True uses the library's fused kernel, if it has one, even if it can be differentiated only once
            (PyTorch's). None uses it where results and derivatives are the same; on PyTorch's CPU also for first
            derivatives without mask or bias. False never uses it.
        attn_logits_soft_cap: a bound ``cap`` on the scaled logits: ``cap * tanh(logits / cap)``.

    Returns:
        ``(batch, targets, heads, width)``. A target whose sources are all masked gives 0. On NumPy only
        the logits of a few targets are in memory at once.

    Raises:
        ShapeError: shapes that do not fit each other.

    Gradient:
        Of the formula, through the softmax, to ``query``, ``key``, ``value`` and ``bias``; 0 to masked sources.

    Examples:
        >>> x = np.arange(4.0).reshape(1, 2, 1, 2) / 4
        >>> print(ops.dot_product_attention(x, x, x).reshape(2, 2).round(4))
        [[0.261  0.511 ]
         [0.3044 0.5544]]
        >>> print(gradops.grad(lambda x: ops.sum(ops.dot_product_attention(x, x, x)))(x).ravel().round(4))
        [0.8732 0.787  1.2992 1.3854]

    See Also:
        :func:`softmax`.
    """
    name = _dtypes.promote(_dtypes.promote(_dtype(floats(query)), _dtype(floats(key))), _dtype(floats(value)))
    query, key, value = (cast(x, name) for x in (query, key, value))
    scale = _shape(query)[3] ** -0.5 if scale is None else float(scale)
    if bias is not None:
        open_ = greater(bias, -np.inf)
        mask = open_ if mask is None else logical_and(mask, open_)
        bias = cast(where(open_, bias, 0.0), name)
    if attn_logits_soft_cap is None and not any(_is_on_tape(x) for x in (query, key, value, bias)):
        return attention_forward(query, key, value, bias, mask, scale, is_causal, flash_attention)
    return _attention(query, key, value, bias, mask, scale, is_causal, attn_logits_soft_cap)


def _is_on_tape(x) -> bool:
    return hasattr(x, "_node")


def _attention(query, key, value, bias, mask, scale, is_causal, cap=None):
    (query, final), (key, _), (value, _) = wide(query), wide(key), wide(value)
    (batch, targets, heads, width), (_, sources, groups, _) = _shape(query), _shape(key)
    stacked = (batch, groups, heads // groups * targets)
    query = reshape(transpose(query, (0, 2, 1, 3)), (*stacked, width))
    logits = matmul(multiply(query, scale), transpose(key, (0, 2, 3, 1)))
    logits = reshape(logits, (batch, heads, targets, sources))
    if cap is not None:
        logits = multiply(tanh(divide(logits, float(cap))), float(cap))
    logits = logits if bias is None else add(logits, bias)
    if is_causal:
        before = np.tril(np.ones((targets, sources), bool))
        mask = before if mask is None else logical_and(mask, before)
    if mask is None:
        weights = softmax(logits)
    else:
        weights = where(mask, softmax(where(mask, logits, _MASKED_SCORE)), 0.0)
    result = matmul(reshape(weights, (*stacked, sources)), transpose(value, (0, 2, 1, 3)))
    result = reshape(result, (batch, heads, targets, _shape(value)[3]))
    return rounded(transpose(result, (0, 2, 1, 3)), final)


@op(public=False, linear=("value",))
def attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    scale,
    is_causal,
    flash_attention=None,
) -> Tensor:
    """:func:`dot_product_attention` of tensors of one dtype, by the backend's fastest kernel.

    Gradient:
        As in :func:`dot_product_attention`.
    """
    return _attention(query, key, value, bias, mask, scale, is_causal)

"""Derivatives of reductions, products and sorting. Other statistics are composed of ops with derivative rules.

Ties of ``max`` and ``min`` share the gradient equally. Sorting permutes the gradient back to the original order.
"""

import math

import numpy as np

from ...ops import (
    add,
    argsort,
    broadcast_to,
    cast,
    concatenate,
    cumsum,
    dtype,
    einsum,
    equal,
    exp,
    expand_dims,
    flip,
    matmul,
    multiply,
    reshape,
    sliding_product,
    softmax,
    split,
    subtract,
    sum,
    swapaxes,
    tensordot,
    transpose,
)
from ...ops._compose import constant_like
from ...ops.reductions import kink_curve, kink_curved, kink_pulled, kink_pushed, moved, vector_axes
from ...ops.sorting import pick
from ..record import derivative

derivative("kink", x=lambda g, x, zero: kink_pulled(g, x, zero))
derivative(
    "kink_pulled",
    complex_aware=True,
    t=lambda g, x, zero: kink_pushed(g, x, zero),
    x=lambda g, x, zero: kink_curve(g, x, zero),
)
derivative(
    "kink_pushed",
    complex_aware=True,
    t=lambda g, x, zero: kink_pulled(g, x, zero),
    x=lambda g, t, x, zero: kink_curved(g, t, x, zero),
)
derivative("kink_curve", complex_aware=True, **dict.fromkeys("tx", lambda g, x, zero: kink_curve(g, x, zero)))
derivative(
    "kink_curved",
    complex_aware=True,
    u=lambda g, t, x, zero: sum(kink_curve(g, x, moved(t, zero)), vector_axes(zero), True),
    **dict.fromkeys("tx", lambda g, x, zero: kink_curve(g, x, zero)),
)


def keepdims_shape(shape, axis):
    """Return the shape of a reduction's result with 1 for the reduced dimensions."""
    if axis is None:
        return (1,) * len(shape)
    axes = {a % len(shape) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))} if len(shape) else set()
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def spread(g, shape, axis):
    """Return ``g``, of a reduced shape, broadcast over the dimensions that were reduced."""
    if axis is not None:
        ones = keepdims_shape(shape, axis)
        g = g if g.shape == ones else reshape(g, ones)
    return broadcast_to(g, shape)


def _mean(g, shape, axis):
    if axis is None:
        count = math.prod(shape)
    else:
        count = math.prod([full for full, one in zip(shape, keepdims_shape(shape, axis)) if one == 1])
    return spread(g * (1.0 / count if count else float("nan")), shape, axis)


def _extreme(g, x, y, shape, axis, initial):
    y = reshape(y, keepdims_shape(shape, axis))
    chosen = cast(equal(x, y), dtype(g))
    count = sum(chosen, axis, True)
    if initial is not None:
        count = add(count, equal(y, initial))
    # A NaN maximum equals no element: the count is 0, and 0 / 0 makes the gradient NaN.
    return multiply(spread(g, shape, axis), chosen / count)


def _cumsum(g, shape, axis):
    if axis is None:
        return reshape(flip(cumsum(flip(g, 0), 0), 0), shape)
    return flip(cumsum(flip(g, axis), axis), axis)


derivative("sum", x=lambda g, shape, axis: spread(g, shape, axis))
derivative("mean", x=_mean)
derivative("max", x=_extreme)
derivative("min", x=_extreme)


def _logsumexp(g, x, y, shape, axis):
    if dtype(x)[0] == "c":
        slope = exp(subtract(x, reshape(y, keepdims_shape(shape, axis))))
    else:
        # Without `y`, so that the derivative of a loop, which runs its steps again, needs no logarithm.
        slope = softmax(x, tuple(range(len(shape))) if axis is None else axis)
    return multiply(spread(g, shape, axis), slope)


derivative("logsumexp", x=_logsumexp)
derivative("cumsum", x=_cumsum)


# Sorting, and sliding products.


def _sort(g, x, shape, axis):
    if not shape:
        return reshape(g, ())
    if axis is None:
        return reshape(pick(g, argsort(argsort(x, None), -1)), shape)
    back = argsort(argsort(x, axis), axis)
    if axis % len(shape) == len(shape) - 1:
        return pick(g, back)
    return swapaxes(pick(swapaxes(g, axis, -1), swapaxes(back, axis, -1)), axis, -1)


derivative("sort", x=_sort)


def _window_data_gradient(g, window):
    """Return the gradient of the data that a window slides over: the reversed window slides over the padded ``g``."""
    zero = broadcast_to(split(multiply(g, 0), [1], 0)[0], (window.shape[0] - 1,))
    padded = concatenate([zero, g, zero], 0) if window.shape[0] > 1 else g
    return sliding_product(padded, flip(window))


derivative("sliding_product", x=_window_data_gradient, window=lambda g, x: sliding_product(x, g))


# Products -------------------------------------------------------------------------------------------------------------


def _matmul(g, x1, x2):
    if len(x1.shape) > 1 and len(x2.shape) > 1:
        return matmul(g, swapaxes(x2, -1, -2)), matmul(swapaxes(x1, -1, -2), g)
    return _matmul1(g, x1, x2), _matmul2(g, x1, x2)


def _matmul1(g, x1, x2):
    if len(x1.shape) == 1 and len(x2.shape) == 1:
        return g * x2
    if len(x2.shape) == 1:
        return matmul(expand_dims(g, -1), expand_dims(x2, 0))
    if len(x1.shape) == 1:
        g = expand_dims(g, -2)
        return reshape_rows(matmul(g, swapaxes(x2, -1, -2)))
    return matmul(g, swapaxes(x2, -1, -2))


def reshape_rows(g):
    """Reshape ``(..., 1, n)`` to ``(..., n)``."""
    return reshape(g, (*g.shape[:-2], g.shape[-1]))


def _matmul2(g, x1, x2):
    if len(x1.shape) == 1 and len(x2.shape) == 1:
        return g * x1
    if len(x1.shape) == 1:
        return matmul(expand_dims(x1, -1), expand_dims(g, -2))
    if len(x2.shape) == 1:
        g = matmul(swapaxes(x1, -1, -2), expand_dims(g, -1))
        return reshape(g, g.shape[:-1])
    return matmul(swapaxes(x1, -1, -2), g)


def axes_of_product(axes, rank1, rank2):
    """Return the dimensions of both operands over which ``tensordot`` sums."""
    if isinstance(axes, int):
        return list(range(rank1 - axes, rank1)), list(range(axes))
    first, second = ([a] if isinstance(a, int) else list(a) for a in axes)
    return [a % rank1 for a in first], [a % rank2 for a in second]


def _tensordot1(g, x1, x2, axes):
    used1, used2 = axes_of_product(axes, len(x1.shape), len(x2.shape))
    free1 = [i for i in range(len(x1.shape)) if i not in used1]
    free2 = [i for i in range(len(x2.shape)) if i not in used2]
    out = tensordot(g, x2, (list(range(len(free1), len(free1) + len(free2))), free2))
    order = free1 + [used1[used2.index(i)] for i in sorted(used2)]
    return transpose(out, [order.index(i) for i in range(len(order))]) if order else out


def _tensordot2(g, x1, x2, axes):
    used1, used2 = axes_of_product(axes, len(x1.shape), len(x2.shape))
    free1 = [i for i in range(len(x1.shape)) if i not in used1]
    free2 = [i for i in range(len(x2.shape)) if i not in used2]
    out = tensordot(x1, g, (free1, list(range(len(free1)))))
    order = [used2[used1.index(i)] for i in sorted(used1)] + free2
    return transpose(out, [order.index(i) for i in range(len(order))]) if order else out


def _einsum(g, subscripts, operands, shapes):
    inputs, output = explicit(subscripts, [len(s) for s in shapes])
    gradients = []
    for i, (letters, shape) in enumerate(zip(inputs, shapes)):
        others = [x for j, x in enumerate(operands) if j != i]
        names = [n for j, n in enumerate(inputs) if j != i]
        present = set(output).union(*names) if names else set(output)
        if len(set(letters)) == len(letters) and set(letters) <= present:
            gradients.append(einsum(",".join([output, *names]) + "->" + letters, g, *others))
        else:
            gradients.append(_einsum_hard(g, output, names, others, letters, shape, present))
    return gradients


def _einsum_hard(g, output, names, others, letters, shape, present):
    """Broadcast the gradient over letters that are summed in one operand, or repeated (a diagonal)."""
    distinct = "".join(dict.fromkeys(letters))
    known = "".join(c for c in distinct if c in present)
    part = einsum(",".join([output, *names]) + "->" + known, g, *others)
    sizes = dict(zip(letters, shape))
    part = reshape(part, [sizes[c] if c in present else 1 for c in distinct])
    part = broadcast_to(part, [sizes[c] for c in distinct])
    if len(distinct) == len(letters):
        return part
    spare = iter(c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in letters)
    target, diagonals, masks, seen = "", [], [], set()
    for c in letters:
        if c in seen:
            fresh = next(spare)
            diagonals.append(c + fresh)
            masks.append(constant_like(np.eye(sizes[c]), part))
            target += fresh
        else:
            seen.add(c)
            target += c
    return einsum(",".join([distinct, *diagonals]) + "->" + target, part, *masks)


def explicit(subscripts: str, ranks) -> tuple[list[str], str]:
    """Return subscripts with the ellipsis replaced by letters and the result spelled out."""
    subscripts = subscripts.replace(" ", "")
    left, arrow, output = subscripts.partition("->")
    inputs = left.split(",")
    if "..." in subscripts:
        spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in subscripts]
        width = max(rank - len(n.replace("...", "")) for n, rank in zip(inputs, ranks) if "..." in n)
        fill = "".join(spare[:width])
        inputs = [
            n.replace("...", fill[width - (rank - len(n.replace("...", ""))) :]) for n, rank in zip(inputs, ranks)
        ]
        output = output.replace("...", fill)
        if not arrow:
            output = fill
    if not arrow:
        letters = "".join(inputs)
        output += "".join(sorted(c for c in set(letters) - set(output) if letters.count(c) == 1))
    return inputs, output


derivative("matmul", x1=_matmul1, x2=_matmul2, joint=_matmul)
derivative("tensordot", x1=_tensordot1, x2=_tensordot2)
derivative("einsum", operands=_einsum)

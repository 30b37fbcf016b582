"""Derivatives: products."""

import numpy as np

from ...ops import broadcast_to, einsum, expand_dims, matmul, reshape, swapaxes, tensordot, transpose
from ...ops._compose import beside
from ..record import derivative


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
    """``(..., 1, n)`` to ``(..., n)``."""
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
    """The dimensions of both operands over which ``tensordot`` sums."""
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
    """Letters that are summed alone, or repeated (a diagonal): spread over them."""
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
            masks.append(beside(np.eye(sizes[c]), part))
            target += fresh
        else:
            seen.add(c)
            target += c
    return einsum(",".join([distinct, *diagonals]) + "->" + target, part, *masks)


def explicit(subscripts: str, ranks) -> tuple[list[str], str]:
    """Subscripts with the ellipsis spelt out in letters and the result named."""
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

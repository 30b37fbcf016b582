"""PyTorch: control flow where ``torch.compile`` traces, which does not know values; else it is Python's."""

import torch

from .tracing import reading


def concrete(x, kind):
    """A 0-d tensor's value, or None where ``torch.compile`` traces."""
    return None if reading() else kind(x)


def branch(index, functions):
    if index.dtype == torch.bool:
        return torch.cond(index, functions[1], functions[0], ())
    if len(functions) == 1:
        return functions[0]()
    return torch.cond(index <= 0, functions[0], lambda: branch(index - 1, functions[1:]), ())


def while_loop(holds, step, leaves, bound):
    """Unlike other libraries' loops it has a derivative, so one with a bound needs no scan.

    Its tensors must not share memory, with those that its functions close over neither.
    """
    left = torch.full((), -1 if bound is None else bound, device=leaves[0].device)
    return list(
        torch.while_loop(
            lambda left, *xs: torch.logical_and(left != 0, holds(list(xs))),
            lambda left, *xs: (left - 1, *[x.clone() for x in step(list(xs))]),
            (left, *[x.clone() for x in leaves]),
        )[1:]
    )

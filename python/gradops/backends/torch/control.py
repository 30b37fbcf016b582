"""PyTorch: what vectorises; loops and branches are Python's."""

import torch

from . import _private

unwinds = (_private.end_of_recomputation,)


def vectorized_map(function, rows):
    return torch.vmap(lambda *leaves: tuple(function(*leaves)), randomness="different")(*rows)

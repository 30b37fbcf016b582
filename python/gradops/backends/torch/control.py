"""PyTorch: what vectorises; loops and branches are Python's."""

import torch


def vectorized_map(function, rows):
    return torch.vmap(lambda *leaves: tuple(function(*leaves)), randomness="different")(*rows)

"""NumPy kernels: indexing."""

import numpy as np


def get_item(x, key):
    return x[key]


def take(x, indices, axis=None):
    return np.take(x, indices, axis)


def add_at(x, key, updates):
    out = np.array(x)
    if _distinct(key):
        out[key] += updates
    else:
        np.add.at(out, key, updates)
    return out


def _distinct(key) -> bool:
    """Whether a key cannot choose a position twice: no integer arrays in it."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None or part is Ellipsis or isinstance(part, (int, slice, np.integer, np.bool_))
        or getattr(part, "dtype", None) == bool
        for part in parts
    )

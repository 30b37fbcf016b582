"""Numeric derivatives for gradcheck: central differences, one real element at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...ops import conversion
from .tensors import as_tuple, changed, evaluate, real_count, real_size, reals, to_numpy


def numeric_jacobians(func, values, places, flat, eps, advance) -> list[list[np.ndarray]]:
    """Central differences: for each input and output a matrix of (real elements of the input, of the output)."""
    found = []
    for i in places:
        columns = [np.zeros((real_size(values[i]), real_count(y)), float) for y in flat]
        for row, direction in enumerate(directions(values[i])):
            up = moved(func, values, i, eps * direction)
            down = moved(func, values, i, -eps * direction)
            for k, (a, b) in enumerate(zip(up, down)):
                columns[k][row] = reals((np.asarray(a) - np.asarray(b)) / (2 * eps))
            advance(2)
        found.append(columns)
    return found


def moved(func, values, i: int, by) -> list[np.ndarray]:
    moved = list(values)
    moved[i] = changed(values[i], to_numpy(values[i]) + by)
    return [to_numpy(y) for y in as_tuple(evaluate(func, moved))]


def directions(x) -> Iterable[np.ndarray]:
    shape, is_complex = tuple(x.shape), "complex" in conversion.dtype(x)
    for position in np.ndindex(*shape):
        for unit in (1.0, 1j) if is_complex else (1.0,):
            direction = np.zeros(shape, complex if is_complex else float)
            direction[position] = unit
            yield direction

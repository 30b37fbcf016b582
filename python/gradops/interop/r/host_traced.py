"""Calls of host functions in ``gradops.jit`` on NumPy."""

from __future__ import annotations

import itertools

_numbers = itertools.count()


def call_back(program, tensors: list) -> list:
    values = [getattr(t, "value", t) for t in tensors]
    program(*values)
    place = next(t.program for t in tensors if hasattr(t, "program"))
    return list(place.call(f"host {next(_numbers)}", program.cast, tensors, values))

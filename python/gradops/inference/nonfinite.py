"""Find the function call that made a likelihood NaN or infinite."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .._scopes import changed
from ..autodiff.variable import data_of
from ..errors import JitError
from ..jit.array import Traced
from ..jit.backend import register
from ..jit.control import Recorder
from ..jit.program import Program
from ..ops._structures import recorder

OP = "<gradops op "
"""Prefix of the file names of ops; the name of an op's R form ends with "for R"."""


class _Called(Program):
    """A program that records, for each step with a result that is not finite, which function was called."""

    def __init__(self) -> None:
        super().__init__()
        self.called: dict[int, str] = {}

    def step(self, name, kernel, arguments, values):
        found = super().step(name, kernel, arguments, values)
        for x in found if isinstance(found, (list, tuple)) else [found]:
            if isinstance(x, Traced) and not _is_finite(x.value):
                self.called.setdefault(x.place, _public_caller(sys._getframe(1)) or name)
        return found


def nonfinite_from(f: Callable, *xs: np.ndarray) -> str | None:
    """Return the call in ``f`` that has finite arguments and a result that is not finite; None if unknown.

    The search goes backward from the result, so that values of branches that were not taken do not count.
    """
    program = _Called()
    register()
    with contextlib.suppress(JitError), np.errstate(all="ignore"):
        with changed(recorder, Recorder(program, unrolled=True)):
            result: Any = data_of(f(*map(program.input, xs)))
        if isinstance(result, Traced):
            steps = {place: step for step in program.table.rows() for place in step.places}
            place: Any = result.place
            name = None
            while place in steps:
                name = program.called.get(place, steps[place].name)
                place = next((p for p in steps[place].uses if not _is_finite(program.value(p))), None)
            return name
    return None


def _is_finite(value) -> bool:
    return bool(np.isfinite(value).all()) if np.asarray(value).dtype.kind in "fc" else True


def _public_caller(frame: Any) -> str | None:
    """Return the public name of the gradops function that the innermost frame of other code called.

    A module whose internal function names differ from the public ones defines ``called_as(name, locals)``.
    """
    name = None
    while frame is not None:
        code, within = frame.f_code, frame.f_globals
        if code.co_filename.startswith(OP):
            name = code.co_filename[len(OP) : -1].removesuffix(" for R")
        elif not str(within.get("__name__")).startswith("gradops."):
            break
        elif "called_as" in within:
            name = within["called_as"](code.co_name, frame.f_locals) or name
        frame = frame.f_back
    return name

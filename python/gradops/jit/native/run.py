"""A run of native steps as one call, and what happens where NumPy would warn."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ...autodiff.diagnostics import profiler
from . import replay
from .code import Code
from .instructions import END, FAILED
from .machine import exceptions
from .whole_numbers import WHOLES


class Run:
    """Code with its memory, called with the arrays that come from outside.

    Attributes:
        names: the ops whose steps are in it, with their number.
        instructions: how many words of code it has.
        __name__: what profiles call it.
    """

    def __init__(self, code: Code, inputs: list[tuple[int, Any]], outputs: list[tuple[int, Any]], names: Counter[str]):
        self.names = names
        self.__name__ = "native"
        self._machine = code.machine
        self._checks = code.checks
        code.words.append(END)
        self._words = np.frombuffer(code.words, np.intc)
        self._template = code.template()
        self._inputs = [_slot(start, value) for start, value in inputs]
        self._outputs = [
            (*_slot(start, value), value.dtype, not isinstance(value, np.ndarray)) for start, value in outputs
        ]
        self._code = self._words.ctypes.data
        self._free: list[tuple[tuple[np.ndarray, np.ndarray], int]] = []

    @property
    def bytes(self) -> int:
        """The size of the code and of its memory."""
        return self._words.nbytes + self._template.nbytes

    def __call__(self, *arrays) -> list:
        """The results, which are the caller's; a profile has them under a label.

        Warns:
            RuntimeWarning: as NumPy does.

        Raises:
            IndexError: a position that is out of bounds.
        """
        if profiler.running():
            with profiler.record_function(f"native code, {sum(self.names.values())} steps"):
                return self._computed(arrays)
        return self._computed(arrays)

    def _computed(self, arrays) -> list:
        try:
            taken = self._free.pop()
        except IndexError:
            floats = self._template.copy()
            taken = (floats, floats.view(np.int64)), floats.ctypes.data
        views, address = taken
        for (at, shape, kind), x in zip(self._inputs, arrays):
            memory = views[kind]
            if shape is None:
                memory[at] = x
            elif len(shape) == 1:
                memory[at] = x
            else:
                memory[at].reshape(shape)[...] = x
        machine = self._machine
        raised = machine.run(self._code, address, machine.functions)
        if raised and (raised == FAILED or _is_warned_of(raised)):
            replay.replay(self._words, views[0], self._checks)
        results: list[Any] = []
        for at, shape, kind, dtype, is_number in self._outputs:
            memory = views[kind]
            if is_number:
                results.append(dtype.type(memory[at]))
            elif shape is None:
                results.append(np.array(memory[at], dtype))
            elif len(shape) == 1:
                results.append(memory[at].astype(dtype))
            else:
                result = np.empty(shape, dtype)
                result.reshape(-1)[:] = memory[at]
                results.append(result)
        self._free.append(taken)
        return results


def _slot(start: int, value) -> tuple:
    """Where a value stands in memory, its shape, None of a number, and whether it is of whole numbers."""
    is_whole = int(value.dtype in WHOLES)
    if not value.ndim:
        return start, None, is_whole
    return slice(start, start + value.size), value.shape, is_whole


def _is_warned_of(raised: int) -> bool:
    """Whether NumPy does anything about one of the floating-point exceptions."""
    handled = dict(np.geterr())
    return any(raised & flag and handled[name] != "ignore" for name, flag in exceptions().items())

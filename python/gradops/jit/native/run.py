"""A run of native steps as one call, its replay where NumPy would warn, and its explanation.

The machine notices that NumPy would warn, as of a division by zero, but not where. The run is then done again by NumPy,
call by call, so that the warning says what NumPy's says, once for each place as the filters of ``warnings`` ask for it,
or is an error under ``np.errstate(all="raise")``.
"""

from __future__ import annotations

import copy
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...autodiff.diagnostics import profiler
from .. import agreement
from ..scalar_blocks import count
from ..steps import Step
from . import loop_compiler
from .code import Checked, Code
from .instructions import (
    CALLS,
    END,
    FAILED,
    FIRST_FUNCTION,
    FUNCTIONS,
    LONG,
    NUMBERS,
    OF_ROWS,
    OPERATIONS,
    REDUCTIONS,
    ROWS,
    SHORT,
    VECTOR,
    WAITING,
    WHOLES,
)
from .machine import exceptions

_NAMES = list(NUMBERS)
_FUNCTIONS = list(FUNCTIONS.values())
_OF_NUMBERS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv
}  # fmt: skip
"""As the program calls them on single numbers, of which warnings tell."""


def replay(words: np.ndarray, memory: np.ndarray, checks: Sequence[Checked]) -> None:
    """Run code on memory, with ``checks`` as of :class:`.Code`.

    Raises:
        IndexError: a position that is out of bounds.
    """
    # The machine has gone through this memory already, to its end or to where it failed. That it can be gone through
    # again is a property of all code: inputs and constants are written by no instruction, and each other cell is
    # written before it is read, also the counter and the state of a loop, which begin as copies. Code that updated an
    # input in place would be right here once, and wrong exactly where something is warned of.
    code, whole = words.tolist(), memory.view(np.int64)
    at = 0
    while code[at] != END:
        operation, out, a, b, c = code[at : at + SHORT]
        name = _NAMES[operation % VECTOR]
        is_vector = operation >= VECTOR
        count, sa, sb, sc = code[at + SHORT : at + LONG - 1] if is_vector else (0, 0, 0, 0)
        at += LONG if is_vector else SHORT
        if name == "gather":
            memory[out : out + count] = memory[code[at : at + count]]
            at += count
            continue
        if name == "pick":
            memory[out : out + count] = memory[a + sa * whole[b : b + count]]
            continue
        if name == "product":
            x, y = _matrix(memory, a, count, c, sa), _matrix(memory, b, c, sc, sb)
            memory[out : out + count * sc] = np.matmul(x, y).reshape(-1)
            continue
        if name in ROWS:
            row, (kind, few) = int(whole[b]) * (sa if is_vector else c), ROWS[name]
            here, there = (out, a + row) if kind == "load" else (out + row, a)
            memory[here : here + (count or few)] = memory[there : there + (count or few)]
            continue
        if name == "index":
            position = int(whole[a])
            if not -b <= position < b:
                raise IndexError(f"index {position} is out of bounds for axis {c} with size {b}")
            whole[out] = position % b
            continue
        if name in ("checked", "outside"):
            checks[out].redo(memory)
            at = checks[out].end
            continue
        if name == "unless":
            if memory[out] == 0:
                at += a - SHORT
            continue
        if name == "again":
            if whole[out] != c:
                whole[out] += b
                at -= a + SHORT
            continue
        meaning, operands = _meaning(name, b, c)
        if not is_vector:
            meaning = _power if meaning is np.power else _OF_NUMBERS.get(name, meaning)
        single = code[at] % VECTOR == NUMBERS["single"] and code[at + 1] == out  # rounded by the next instruction
        values = [_operand(memory, *o, count, single) for o in ((a, sa), (b, sb), (c, sc))[:operands]]
        if not is_vector or name in REDUCTIONS or name == "dot":
            memory[out] = meaning(*values)
        else:
            memory[out : out + count] = meaning(*values)


def _matrix(memory: np.ndarray, start: int, rows: int, columns: int, far: int) -> np.ndarray:
    """A matrix in the memory, whose rows are ``far`` from each other, or its columns where that is negative."""
    step = memory.itemsize
    strides = (far * step, step) if far > 0 else (step, -far * step)
    return np.lib.stride_tricks.as_strided(memory[start:], (rows, columns), strides)


def _power(x, y):
    """As the machine's, C's ``pow()``: of a single exponent 0.5 NumPy takes the root, which is NaN at -inf."""
    return np.power(x, np.atleast_1d(y))[0]


def _meaning(name: str, b: int, c: int):
    if name in OPERATIONS:
        return OPERATIONS[name].meaning, OPERATIONS[name].operands
    if name in CALLS:
        function = _FUNCTIONS[(c if name.endswith("2") else b) - FIRST_FUNCTION]
        return function.meaning, function.operands
    return (np.dot, 2) if name == "dot" else ((OF_ROWS if name in OF_ROWS else REDUCTIONS)[name], 1)


def _operand(memory: np.ndarray, start: int, stride: int, count: int, single: bool):
    if not count:
        value = memory[start]
    elif stride:
        end = start + stride * count
        value = memory[start : end if end >= 0 else None : stride]
    else:
        value = np.broadcast_to(memory[start], count)
    return value.astype(np.float32) if single else value


class Addresses(NamedTuple):
    """What C code needs to run code in a memory of its own.

    Attributes:
        numbers: the machine's ``parts`` and its arguments: see :class:`.Machine`.
        inputs, results: where each begins in the memory, and its size.
        owner: of all that is pointed to.
    """

    numbers: list[int]
    inputs: list[tuple[int, int]]
    results: list[tuple[int, int]]
    owner: Any


class Run:
    """Code with its memory, called with the arrays that come from outside.

    Attributes:
        names: the ops whose steps are in it, with their number.
        called: those of them in loops that are NumPy's own, by op and reason.
        instructions: the number of its words of code.
        __name__: its name in profiles.
    """

    def __init__(self, code: Code, inputs: list[tuple[int, Any]], outputs: list[tuple[int, Any]], names: Counter[str]):
        self.names, self.called = names, code.called
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
        self._passes, self._until_compiled = code.passes, loop_compiler.WORTH
        self._compiled: loop_compiler.Parts | None = None

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
        # A call has a memory of its own: a program may be called by several threads at once, and the machine runs
        # without Python's lock. `pop` and `append` of a list are one step each to other threads. Where a call raises
        # its memory does not come back, which costs the next one a copy of the template.
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
        if self._compiled is not None:
            raised = self._compiled(address)
        else:
            raised = machine.run(self._code, address, machine.functions)
            if raised > 0 and raised & WAITING:
                raised = self._with_kernels(raised, address, views[0])
            elif self._passes and raised >= 0:
                self._count_passes(address, views)
        if raised and (raised == FAILED or is_warned_of(raised)):
            replay(self._words, views[0], self._checks)
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

    def addresses(self, results: Sequence[int]) -> Addresses | None:
        """What runs the code without Python; None while its loops may still be compiled."""
        outputs = [self._outputs[i] for i in results]
        if self._passes or any(is_whole for _, _, is_whole in self._inputs) or any(kind for _, _, kind, *_ in outputs):
            return None
        memory, machine = self._template.copy(), self._machine
        table = np.array([[machine.address("run"), self._code]], np.uint64)
        if self._compiled is not None:
            table = self._compiled.table
        return Addresses(
            [machine.address("parts"), table.ctypes.data, len(table), machine.functions, memory.ctypes.data],
            [_extent(*slot[:2]) for slot in self._inputs],
            [_extent(*slot[:2]) for slot in outputs],
            (self, memory, table),
        )

    def _with_kernels(self, raised: int, address: int, memory: np.ndarray) -> int:
        """Run the kernels that native code waits for, and the rest of it; the exceptions of all, or FAILED."""
        machine, seen = self._machine, 0
        flags = list(exceptions().values())  # as NumPy numbers them, by their order

        def note(kind: str, raised: int) -> None:
            nonlocal seen
            seen |= sum(flag for i, flag in enumerate(flags) if raised >> i & 1)

        with np.errstate(all="call", call=note):
            while raised > 0 and raised & WAITING:
                seen |= raised & 0xFF
                check = self._checks[(raised & ~WAITING) >> 8]
                try:
                    check.redo(memory)
                except Exception:  # which the replay raises, after the warnings of what was before
                    return FAILED
                raised = machine.run(self._code + check.end * self._words.itemsize, address, machine.functions)
        return raised if raised == FAILED or raised < 0 else raised | seen

    def _count_passes(self, address: int, memory: tuple[np.ndarray, np.ndarray]) -> None:
        """Compile the loops where they have run for long, if they then give what the machine gave in this call."""
        self._until_compiled -= self._passes
        if self._until_compiled > 0:
            return
        self._passes = 0
        compiled = loop_compiler.compiled(self._words, self._template, self._machine)
        if compiled is None or not agreement.checks():
            self._compiled = compiled
            return
        given = [memory[kind][at].copy() for at, _, kind, *_ in self._outputs]
        compiled(address)
        found = [memory[kind][at].copy() for at, _, kind, *_ in self._outputs]
        if agreement.agree(found, given):
            self._compiled = compiled
            return
        for (at, _, kind, *_), x in zip(self._outputs, given):
            memory[kind][at] = x
        agreement.report(f"a loop compiled by LLVM ({', '.join(self.names)})", stacklevel=4)

    def first_rows(self, count: int, last: int) -> Run:
        """Return the same code with its last loop ending after ``count`` rows, at row ``last``."""
        words = self._words.copy()
        again = [x for x in loop_compiler.decoded(self._words) if x.name == "again"][-1]
        words[again.at + SHORT - 1] = last
        short = copy.copy(self)
        short._words, short._code, short._free, short._passes, short._compiled = words, words.ctypes.data, [], 0, None
        return short


def _slot(start: int, value) -> tuple:
    """The position of a value in memory, its shape (None for a number), and True if it is of whole numbers."""
    is_whole = int(value.dtype in WHOLES)
    if not value.ndim:
        return start, None, is_whole
    return slice(start, start + value.size), value.shape, is_whole


def _extent(at: Any, shape: tuple | None) -> tuple[int, int]:
    return (at, 1) if shape is None else (at.start, at.stop - at.start)


def is_warned_of(raised: int) -> bool:
    """True if NumPy does anything about one of the floating-point exceptions."""
    handled = dict(np.geterr())
    # The machine's flags are of all that it did; NumPy's settings, in which the user may have said to be silent, are
    # those of the thread at this moment.
    return any(raised & flag and handled[name] != "ignore" for name, flag in exceptions().items())


class Explained:
    """The explanation of one program by :meth:`Compiled.explain`.

    Attributes:
        steps: the number of the program's steps.
        native: the number of them that run natively.
        runs: the number of their runs.
        refused: the numbers of those that do not, by op and reason.
        called: the numbers of those in native loops that are NumPy's own, by op and reason.
        bytes: the size of the native code with its memory.
        reason: why there is no native code at all.
        failed: what was wrong with it, where a check found that.
    """

    failed = ""

    def __init__(
        self, steps: list[Step], runs: Sequence[Any], refused: Mapping[tuple[str, str], int], reason: str = ""
    ):
        self.reason = reason
        self.steps = count(steps)
        self.native = sum(sum(run.names.values()) for run in runs)
        self.runs = len(runs)
        self.refused = dict(refused)
        self.called: Counter[tuple[str, str]] = Counter()
        for run in runs:
            self.called.update(getattr(run, "called", {}))
        self.bytes = sum(run.bytes for run in runs)

    def __str__(self) -> str:
        if self.reason:
            return f"{_count(self.steps)}, none native: {self.reason}"
        lines = [f"{_count(self.steps)}, {self.native} native"]
        if self.runs:
            lines[0] += f" in {self.runs} run{'s' if self.runs > 1 else ''} ({self.bytes / 1024:.0f} KiB)"
        for (name, reason), times in sorted(self.refused.items(), key=lambda item: -item[1]):
            lines.append(f"  {name}{f' ({times} times)' if times > 1 else ''}: {reason}")
        for name, reason in self.called:
            lines.append(f"  {name} in a native loop is NumPy's own: {reason}")
        if self.failed:
            lines.append(f"  not used: {self.failed}")
        return "\n".join(lines)


def _count(steps: int) -> str:
    return f"{steps} step{'' if steps == 1 else 's'}"

"""Execute a run of native steps as one call, and explain which steps are native.

:class:`Run` holds the bytecode that :mod:`.lowering` wrote. A compiled program calls it with arrays and receives
arrays.

The machine detects that NumPy would warn, for example about a division by zero, but not at which step. It may also stop
early, for example at a small pivot that NumPy should judge. The reference executor then repeats the run step by step.
So warnings have NumPy's text, obey the filters of ``warnings``, and are errors under ``np.errstate(all="raise")``.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...autodiff.diagnostics import profiler
from .. import agreement
from ..reference import Reference
from . import loop_compiler
from .code import Code
from .instructions import END, FAILED, SHORT, WAITING, WHOLES
from .machine import NotCompiled, exceptions, warn


class Addresses(NamedTuple):
    """The addresses that C code needs to execute a run, in its own memory.

    Attributes:
        numbers: the address of the machine's function ``parts``, and this function's arguments.
        inputs, results: for each value its first cell and its number of elements.
        owner: keeps alive the objects behind the addresses.
    """

    numbers: list[int]
    inputs: list[tuple[int, int]]
    results: list[tuple[int, int]]
    owner: Any


class Run:
    """Bytecode with its memory, called with the arrays that it reads.

    Args:
        code: the bytecode, without its end marker.
        inputs, outputs: for each value its first cell, and an example with its shape and dtype.
        names: the number of steps in the run, by op.
        reference: computes the same results with the reference executor.

    Attributes:
        names: the number of steps in the run, by op.
        called: the number of steps inside loops that call NumPy's kernel, by op and reason.
        __name__: the name in profiles.
    """

    def __init__(
        self,
        code: Code,
        inputs: list[tuple[int, Any]],
        outputs: list[tuple[int, Any]],
        names: Counter[str],
        reference: Reference,
    ):
        self.names, self.called = names, code.called
        self._reference: Callable[..., list] = reference
        self.__name__ = "native"
        self._machine = code.machine
        self._calls = code.calls
        code.words.append(END)
        self._words = np.frombuffer(code.words, np.intc)
        self._template = code.template()
        self._inputs = [_slot(start, value) for start, value in inputs]
        self._outputs = [
            (*_slot(start, value), value.dtype, not isinstance(value, np.ndarray)) for start, value in outputs
        ]
        self._code = self._words.ctypes.data
        self._free: list[tuple[tuple[np.ndarray, np.ndarray], int]] = []
        self._passes = code.passes if code.machine.compiles else 0
        self._until_compiled = loop_compiler.WORTH
        self._compiled: loop_compiler.Parts | None = None

    @property
    def bytes(self) -> int:
        """The size of the code and its memory in bytes."""
        return self._words.nbytes + self._template.nbytes

    def __call__(self, *arrays) -> list:
        """Return the results as new arrays, which the caller may change. Profiles show the call under its own label.

        Warns:
            RuntimeWarning: where NumPy would warn.

        Raises:
            IndexError: a position is out of bounds.
        """
        if profiler.running():
            with profiler.record_function(f"native code, {sum(self.names.values())} steps"):
                return self._computed(arrays)
        return self._computed(arrays)

    def _computed(self, arrays) -> list:
        # Each call has its own memory: several threads may call a program at once, and the machine runs without the
        # GIL. `pop` and `append` of a list are atomic. If a call raises, its memory is not returned to the list, and
        # the next call copies the template instead.
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
                raised = self._run_kernels(raised, address, views[0])
            elif self._passes and raised >= 0:
                self._count_passes(address, views)
        if raised and (raised == FAILED or is_warned_of(raised)):
            self._free.append(taken)
            return self._reference(*arrays)
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
        """Return what C code needs to execute the run; None while its loops may still be compiled.

        Also None if an argument or result holds integers.

        Args:
            results: positions of the wanted results among the outputs.
        """
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

    def _run_kernels(self, raised: int, address: int, memory: np.ndarray) -> int:
        """Run the kernels that the code waits for and resume it until it ends; return its exceptions, or FAILED."""
        machine, seen = self._machine, 0
        flags = list(exceptions().values())  # in the order of NumPy's own bits

        def note(kind: str, raised: int) -> None:
            nonlocal seen
            seen |= sum(flag for i, flag in enumerate(flags) if raised >> i & 1)

        with np.errstate(all="call", call=note):
            while raised > 0 and raised & WAITING:
                seen |= raised & 0xFF
                call = self._calls[(raised & ~WAITING) >> 8]
                try:
                    call.run(memory)
                except Exception:  # the reference executor raises it again, after any earlier warnings
                    return FAILED
                raised = machine.run(self._code + call.end * self._words.itemsize, address, machine.functions)
        return raised if raised == FAILED or raised < 0 else raised | seen

    def _count_passes(self, address: int, memory: tuple[np.ndarray, np.ndarray]) -> None:
        """Compile the loops once they are hot, and keep them if they reproduce the results of this call."""
        self._until_compiled -= self._passes
        if self._until_compiled > 0:
            return
        self._passes = 0
        try:
            compiled = loop_compiler.compiled(self._words, self._template, self._machine)
        except NotCompiled as error:
            warn(f"a hot loop remains interpreted: {error}")
            return
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
        """Return a run whose last loop ends after ``count`` rows, at row ``last``.

        The run returns None if NumPy would have to compute these rows.
        """
        words = self._words.copy()
        again = [x for x in loop_compiler.decoded(self._words) if x.name == "again"][-1]
        words[again.at + SHORT - 1] = last
        short = copy.copy(self)
        short._reference = lambda *arrays: None  # type: ignore[assignment]
        short._words, short._code, short._free, short._passes, short._compiled = words, words.ctypes.data, [], 0, None
        return short


def _slot(start: int, value) -> tuple:
    """Return a value's cell or slice of cells, its shape (None for a number), and 1 if it holds integers."""
    is_whole = int(value.dtype in WHOLES)
    if not value.ndim:
        return start, None, is_whole
    return slice(start, start + value.size), value.shape, is_whole


def _extent(at: Any, shape: tuple | None) -> tuple[int, int]:
    return (at, 1) if shape is None else (at.start, at.stop - at.start)


def is_warned_of(raised: int) -> bool:
    """Return True if NumPy warns, raises or calls back for one of these floating-point exceptions."""
    handled = dict(np.geterr())
    # NumPy's settings belong to the thread, and the user may have silenced some of the exceptions just for this call.
    return any(raised & flag and handled[name] != "ignore" for name, flag in exceptions().items())


class Explained:
    """The report on one program that :meth:`Compiled.explain` prints.

    Attributes:
        steps: the number of steps.
        native: the number of native steps.
        runs: the number of native runs.
        refused: the number of steps that are not native, by op and reason.
        called: the number of steps in native loops that call NumPy's kernel, by op and reason.
        bytes: the size of the native code and its memory.
        reason: why there is no native code at all, or "".
        failed: the discrepancy that a check of the native code found, or "".
    """

    failed = ""

    def __init__(self, steps: int, runs: Sequence[Any], refused: Mapping[tuple[str, str], int], reason: str = ""):
        self.reason = reason
        self.steps = steps
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

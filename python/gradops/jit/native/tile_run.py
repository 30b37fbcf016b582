"""A group of steps on large arrays as one call, on as many processors as are there, and its replay by NumPy."""

from __future__ import annotations

import concurrent.futures
import ctypes
import functools
import os
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...autodiff.diagnostics import profiler
from ..array import Place
from ..steps import Step
from .machine import Machine
from .run import is_warned_of

# The public layout of `PyUFuncObject` (numpy/ufuncobject.h), the same in NumPy 1 and 2, behind CPython's head.
_HEAD = object.__basicsize__
_FUNCTIONS, _DATA = _HEAD + 16, _HEAD + 24


def loop(ufunc: np.ufunc, *dtypes: Any) -> tuple[int, int] | None:
    """The addresses of the loop on operands and results of those dtypes, and of its data; None where it has none."""
    count = ufunc.nin
    signature = "".join(d.char for d in dtypes[:count]) + "->" + "".join(d.char for d in dtypes[count:])
    try:
        number = ufunc.types.index(signature)
    except ValueError:
        return None
    found = [_word(_word(id(ufunc) + at) + 8 * number) for at in (_FUNCTIONS, _DATA)]
    return found[0], found[1]


def address(array: np.ndarray) -> int:
    """The address of an array's first element: ``array.ctypes.data``, which takes ten times as long."""
    return _word(id(array) + _HEAD)


def _word(at: int) -> int:
    return ctypes.c_size_t.from_address(at).value


@functools.cache
def are_known() -> bool:
    """True if NumPy's objects are laid out as they are read here: 2 + 3 is 5."""
    if ctypes.sizeof(ctypes.c_size_t) != 8 or not hasattr(np.ufunc, "resolve_dtypes"):
        return False
    x = np.array([2.0, 3.0, 0.0])
    if address(x) != x.ctypes.data or ctypes.c_int.from_address(id(np.add) + _HEAD).value != 2:
        return False
    found = loop(np.add, x.dtype, x.dtype, x.dtype)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_size_t] * 4)(found[0])  # type: ignore[index]
    arguments = np.array([x.ctypes.data + 8 * i for i in range(3)], np.int64)
    count, steps = np.array([1], np.int64), np.full(3, 8, np.int64)
    call(arguments.ctypes.data, count.ctypes.data, steps.ctypes.data, found[1])  # type: ignore[index]
    return bool(x[2] == 5.0)


# A group of steps on large arrays as one call, on as many processors as are there, and its replay by NumPy ------------


PARALLEL = 10_000_000
"""Elements times instructions from which on threads share the tiles: some milliseconds of work.

With less to do a thread that others keep from running holds up the result for longer than it takes alone.
"""


WORTH = 100_000_000
"""The same after which a group is compiled: some 20 ms of work, as LLVM takes for it."""


class Result(NamedTuple):
    """A result of a group: its row in the table of operands, its example, and how the tiles' parts become one."""

    row: int
    value: Any
    ufunc: np.ufunc | None = None
    parts: tuple[int, ...] = ()
    divisor: float = 1.0

    def joined(self, part: np.ndarray) -> Any:
        """The tiles' parts as one."""
        found = part[0] if len(part) == 1 else self.ufunc.reduce(part, 0)  # type: ignore[union-attr]
        if self.divisor != 1.0:
            found = found / found.dtype.type(self.divisor)
        shape = self.value.shape
        return found.reshape(shape).copy() if shape else found


class Plan(NamedTuple):
    """The program that :class:`Tiles` runs.

    Attributes:
        words: for the machine.
        table: the operands: address, 1 if within a thread's room, bytes from row to row and from tile to tile.
        arrays: of the arguments that are arrays the number and the row in the table.
        numbers: single numbers: an argument's number or the number's bytes, its row and dtype.
        results: in order of their places.
        room: bytes that each thread needs.
        work: elements times instructions.
        held: the owner of compiled code.
    """

    words: np.ndarray
    table: np.ndarray
    arrays: list[tuple[int, int]]
    numbers: list[tuple[Any, int, np.dtype]]
    results: list[Result]
    room: int
    work: int
    held: Any = None


class Tiles:
    """The function of a group's step.

    Attributes:
        names: the ops whose steps are in it, with their number.
        __name__: its name in profiles.
    """

    def __init__(
        self,
        machine: Machine,
        plan: Plan,
        steps: list[Step],
        inputs: list[int],
        outputs: list[int],
        constants: dict[int, np.ndarray],
        compiled: Callable[[], Plan],
    ):
        self.names: Counter[str] = Counter()
        self.__name__ = "native"
        self._machine, self._plan = machine, plan
        self._steps, self._inputs, self._outputs, self._constants = steps, inputs, outputs, constants
        self._free: list[_State] = []
        self._compiled, self._until_compiled = compiled, WORTH

    @property
    def bytes(self) -> int:
        """The size of the code and of its memory."""
        return self._plan.words.nbytes + self._plan.table.nbytes + self._plan.room

    def __call__(self, *arrays) -> list:
        """The results, which are the caller's; a profile has them under a label.

        Warns:
            RuntimeWarning: as NumPy does.
        """
        if profiler.running():
            with profiler.record_function(f"native code, {sum(self.names.values())} steps"):
                return self._computed(arrays)
        return self._computed(arrays)

    def _computed(self, arrays) -> list:
        # A call has memory of its own, as several threads may call a program at once. An array whose elements do not
        # lie side by side is copied; the copies and the results are held until all tiles are done, as the machine has
        # only their addresses.
        plan = self._plan
        try:
            state = self._free.pop()
        except IndexError:
            state = _State(plan)
        table, held = state.table, []
        for number, row in plan.arrays:
            x = arrays[number]
            flags = x.flags
            if not (flags.c_contiguous and flags.aligned):
                x = np.require(x, requirements=["C", "A"])
            held.append(x)
            table[row, 0] = address(x)
        for number, room in state.numbers:
            room[...] = arrays[number]
        results: list[Any] = []
        for result in plan.results:
            if result.ufunc is None:
                results.append(np.empty(result.value.shape, result.value.dtype))
                table[result.row, 0] = address(results[-1])
            else:
                results.append(None)
        raised = state.run(self._machine, (held, results))
        # The tiles wrote to results and rooms alone, never to an argument, so NumPy can do it all again.
        if raised and is_warned_of(raised):
            results = self._replayed(arrays)
        else:
            for i, part in state.parts:
                results[i] = plan.results[i].joined(part)
        if plan is self._plan:
            self._free.append(state)
        if self._until_compiled > 0:
            self._until_compiled -= plan.work
            if self._until_compiled <= 0:
                self._plan, self._free = self._compiled(), []
        return results

    def _replayed(self, arrays) -> list:
        values = {**self._constants, **dict(zip(self._inputs, arrays))}
        for step in self._steps:
            (values[step.places[0]],) = [step.function(*step.given(values.__getitem__))]
        return [values[place] for place in self._outputs]


class _State:
    """The memory of one call."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.table = plan.table.copy()
        self._held = []
        self.numbers = []
        for value, row, dtype in plan.numbers:
            room = np.zeros(1, dtype)
            self._held.append(room)
            self.table[row, 0] = address(room)
            if isinstance(value, Place):
                self.numbers.append((int(value), room))
            else:
                room[...] = np.frombuffer(value, dtype)
        self.parts = []
        for i, result in enumerate(plan.results):
            if result.ufunc is not None:
                part = np.empty(result.parts, result.value.dtype)
                self.table[result.row, 0] = address(part)
                self.parts.append((i, part))
        self.next = np.zeros(1, np.int64)
        self._rooms: list[np.ndarray] = []
        self._addresses = [address(x) for x in (plan.words, self.table, self.next)]

    def run(self, machine: Machine, memory) -> int:
        """Run all tiles; the floating-point exceptions raised.

        Args:
            memory: the arrays that are read and written.
        """
        self.next[0] = 0
        others = threads() - 1 if self.plan.work >= PARALLEL else 0
        while len(self._rooms) <= others:
            self._rooms.append(np.empty(self.plan.room + 64, np.uint8))
        # Each thread holds the arrays: an interrupt here ends the call, but not the other threads' tiles.
        waiting = [_pool().submit(self._run, machine, i, memory) for i in range(1, others + 1)]
        raised = self._run(machine, 0, memory)
        for one in waiting:
            if not one.cancel():  # which one that has not begun need not
                raised |= one.result()
        return raised

    def _run(self, machine: Machine, number: int, _memory) -> int:
        room = -(-address(self._rooms[number]) // 64) * 64
        code, table, following = self._addresses
        return machine.tiles(code, table, room, following, machine.functions)


# Threads. Each takes the next tile until none is left, so that one that is interrupted holds up no other.


@functools.cache
def threads() -> int:
    """The number of threads: ``OMP_NUM_THREADS`` where that is set, else that of the processors."""
    named = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if named.isdigit() and int(named):
        return int(named)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _pool() -> concurrent.futures.ThreadPoolExecutor:
    return concurrent.futures.ThreadPoolExecutor(threads() - 1, "gradops")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)

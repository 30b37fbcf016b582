"""A group of steps on large arrays as one call, on as many processors as are there, also by the reference executor."""

from __future__ import annotations

import concurrent.futures
import ctypes
import functools
import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...autodiff.diagnostics import profiler
from .. import agreement
from ..array import Place
from ..reference import Reference
from .code import BOOL, FLOATS
from .instructions import OPERATIONS
from .machine import Machine
from .run import is_warned_of

# The public layout of `PyUFuncObject` (numpy/ufuncobject.h), the same in NumPy 1 and 2, behind CPython's head.
_HEAD = object.__basicsize__
_FUNCTIONS, _DATA = _HEAD + 16, _HEAD + 24


class Loop(NamedTuple):
    """A function that is called as the inner loops of ufuncs are.

    Attributes:
        address, data: of the function, and of what it takes last.
        name: of the operation that it does on float64 or truth values, where LLVM's source of that is known.
    """

    address: int
    data: int = 0
    name: str = ""


_NAMES = {
    x.meaning: name
    for name, x in OPERATIONS.items()
    if isinstance(x.meaning, np.ufunc) and "%functions" not in x.source
}


@functools.lru_cache(maxsize=1024)
def loop(ufunc: np.ufunc, *dtypes: Any) -> Loop | None:
    """The loop on operands and results of those dtypes; None where the ufunc has none."""
    count = ufunc.nin
    signature = "".join(d.char for d in dtypes[:count]) + "->" + "".join(d.char for d in dtypes[count:])
    try:
        number = ufunc.types.index(signature)
    except ValueError:
        return None
    found, data = (_word(_word(id(ufunc) + at) + 8 * number) for at in (_FUNCTIONS, _DATA))
    name, double = _NAMES.get(ufunc, ""), FLOATS[0]
    if name and "uitofp i1" in OPERATIONS[name].source:
        is_known = dtypes[count] == BOOL and {*dtypes[:count]} in ({double}, {BOOL})
    else:
        is_known = {*dtypes} == {double}
    return Loop(found, data, name if is_known else "")


_at = ctypes.c_size_t.from_address


def address(array: np.ndarray) -> int:
    """The address of an array's first element: ``array.ctypes.data``, which takes ten times as long."""
    return _at(id(array) + _HEAD).value


def _word(at: int) -> int:
    return _at(at).value


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


# A group of steps on large arrays as one call ------------------------------------------------------------------------


PARALLEL = 200_000
"""Work, elements by instructions, from which on threads may share the tiles: some 50 us. A thread is there in 20."""


WORTH = 100_000_000
"""The same after which a group is compiled: some 20 ms of work, as LLVM takes for it."""


class Result(NamedTuple):
    """A result of a group: its row in the table of operands, and what it is."""

    row: int
    shape: tuple[int, ...]
    dtype: np.dtype


class Plan(NamedTuple):
    """The program that :class:`Tiles` runs.

    Attributes:
        words: for the machine.
        closing: the same for what is done once all tiles are: it joins their parts.
        table: the operands: address, 1 if within a thread's room, bytes from row to row and from tile to tile.
        arrays: of the arguments that are arrays the number and the row in the table.
        numbers: single numbers: an argument's number or the number's bytes, its row and dtype.
        results: in order of their places.
        parts: of results that are joined of the tiles' parts the row, shape and dtype of these.
        room: bytes that each thread needs.
        work: elements that instructions go through.
        held: the owner of compiled code.
    """

    words: np.ndarray
    closing: np.ndarray
    table: np.ndarray
    arrays: list[tuple[int, int]]
    numbers: list[tuple[Any, int, np.dtype]]
    results: list[Result]
    parts: list[tuple[int, tuple[int, ...], np.dtype]]
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
        reference: Reference,
        compiled: Callable[[], Plan],
    ):
        self.names: Counter[str] = Counter()
        self.__name__ = "native"
        self._machine, self._plan = machine, plan
        self._reference = reference
        self._free: list[_State] = []
        self._compiled, self._until_compiled = compiled, WORTH
        self._pace = _Pace()

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
        plan = self._plan
        try:
            state = self._free.pop()
        except IndexError:
            state = _State(self._machine, plan)
        results, raised = self._run(plan, state, arrays, self._pace)
        # The tiles wrote to results and rooms alone, never to an argument, so NumPy can do it all again.
        if raised and is_warned_of(raised):
            results = self._reference(*arrays)
        else:
            results = [x if x.ndim else x[()] for x in results]
        if plan is self._plan:
            self._free.append(state)
        if self._until_compiled > 0:
            self._until_compiled -= plan.work
            if self._until_compiled <= 0:
                self._compile(arrays, results)
        return results

    def _run(self, plan: Plan, state: _State, arrays, pace: _Pace) -> tuple[list, int]:
        """The results as arrays, and the floating-point exceptions raised."""
        # A call has memory of its own, as several threads may call a program at once. An array whose elements do not
        # lie side by side is copied; the copies and the results are held until all tiles are done, as the machine has
        # only their addresses.
        table, held = state.addresses, []
        for number, row in plan.arrays:
            x = arrays[number]
            flags = x.flags
            if not (flags.c_contiguous and flags.aligned):
                x = np.require(x, requirements=["C", "A"])
            held.append(x)
            table[4 * row] = address(x)
        for number, room in state.numbers:
            room[...] = arrays[number]
        results: list[Any] = []
        for row, shape, dtype in plan.results:
            result = np.empty(shape, dtype)
            table[4 * row] = address(result)
            results.append(result)
        if plan.work >= PARALLEL and threads() > 1:
            return results, pace.timed(state.shared, state.run, (held, results))
        return results, state.run()

    def _compile(self, arrays, results: list) -> None:
        """Compile the group, if it then gives what it gave in this call."""
        plan, pace = self._compiled(), _Pace()
        state = _State(self._machine, plan)
        if agreement.checks():
            found, _ = self._run(plan, state, arrays, pace)
            if not agreement.agree([x if x.ndim else x[()] for x in found], results):
                agreement.report(f"a group compiled by LLVM ({', '.join(self.names)})", stacklevel=4)
                return
        self._plan, self._free, self._pace = plan, [state], pace


class _Pace:
    """Whether threads share a group's tiles, by the time that calls took.

    With idle processors two threads take half the time of one. Where others keep a thread from running it holds up the
    result for longer than all takes alone. What is slower is tried again at times, as that may change: a thirtieth of
    all time at most.
    """

    def __init__(self) -> None:
        self._times = [0.0, 0.0]  # alone and shared
        self._calls, self._next = 0, 4

    def shares(self) -> bool:
        """True if threads share the tiles of the next call."""
        self._calls += 1
        if self._calls < 4:
            return self._calls == 2
        return (self._times[1] < self._times[0]) != (self._calls == self._next)

    def timed(self, shared: Callable[[Any], int], alone: Callable[[], int], memory: Any) -> int:
        """What one of both gives."""
        shares = self.shares()
        start = time.perf_counter()
        result = shared(memory) if shares else alone()
        took, times = time.perf_counter() - start, self._times
        # A mean of the last times: one lucky call does not make up for those that were held up.
        times[shares] = times[shares] + (took - times[shares]) / 4 if times[shares] else took
        if self._calls >= self._next:
            self._next = self._calls + 8 + int(32 * took / (times[not shares] or took))
        return result


class _State:
    """The memory of one call."""

    def __init__(self, machine: Machine, plan: Plan):
        table = plan.table.copy()
        self.addresses = table.reshape(-1).data  # of which four numbers are a row
        self.numbers = []
        self._held: list[Any] = [plan, table]
        for value, row, dtype in plan.numbers:
            room = np.zeros(1, dtype)
            self._hold(row, room)
            if isinstance(value, Place):
                self.numbers.append((int(value), room))
            else:
                room[...] = np.frombuffer(value, dtype)
        for row, shape, dtype in plan.parts:
            self._hold(row, np.empty(shape, dtype))
        self._size = plan.room
        self._rooms: list[int] = []
        self._next = np.zeros(1, np.int64)
        self._tiles, self._alone = machine.function("tiles", 5), machine.function("tiles.alone", 6)
        self._functions = machine.functions
        self._words, self._table, self._following = address(plan.words), address(table), address(self._next)
        self._closing = address(plan.closing) if plan.parts else 0
        self._given = self._of_thread(0)

    def _hold(self, row: int, array: np.ndarray) -> None:
        self._held.append(array)
        self.addresses[4 * row] = address(array)

    def _of_thread(self, number: int) -> tuple[int, ...]:
        """The arguments of the machine behind the code, with the thread's own room."""
        while len(self._rooms) <= number:
            room = np.empty(self._size + 64, np.uint8)
            self._held.append(room)
            self._rooms.append(-(-address(room) // 64) * 64)
        return self._table, self._rooms[number], self._following, self._functions

    def run(self) -> int:
        """Run all tiles; the floating-point exceptions raised."""
        return self._alone(self._words, *self._given, self._closing)

    def shared(self, memory: Any) -> int:
        """The same, with threads that share the tiles.

        Args:
            memory: the arrays that are read and written.
        """
        self._next[0] = 0
        # Each thread holds the arrays: an interrupt here ends the call, but not the other threads' tiles.
        given = [self._of_thread(i) for i in range(1, threads())]
        waiting = [_pool().submit(self._run, one, memory) for one in given]
        raised = self._run(self._given, memory)
        for one in waiting:
            if not one.cancel():  # which one that has not begun need not
                raised |= one.result()
        return self._closed(raised)

    def _run(self, given: tuple[int, ...], _memory: Any) -> int:
        return self._tiles(self._words, *given)

    def _closed(self, raised: int) -> int:
        """The exceptions, also of joining the tiles' parts."""
        if self._closing:
            self._next[0] = 0
            raised |= self._tiles(self._closing, *self._given)
        return raised


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

"""Execute a group of steps on large arrays as one call, in several threads if that is faster.

:class:`Tiles` is the function of a group's step: a compiled program calls it with arrays and receives arrays. It runs
the plan that :mod:`.tile_plan` wrote, through the machine's function ``tiles`` (``runtime/tiles.c``), and repeats the
group by the reference executor if NumPy would warn. :func:`loop` finds the inner loops of NumPy's ufuncs.
"""

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
from .machine import Machine, NotCompiled, exceptions, warn
from .run import is_warned_of

# The public layout of `PyUFuncObject` (numpy/ufuncobject.h), the same in NumPy 1 and 2, after CPython's object header.
_HEAD = object.__basicsize__
_FUNCTIONS, _DATA = _HEAD + 16, _HEAD + 24


class Loop(NamedTuple):
    """A function with the signature of a ufunc's inner loop.

    Attributes:
        address, data: the address of the function, and its last argument.
        name: the operation that it computes, if there is LLVM IR for it on float64 or booleans, else "".
    """

    address: int
    data: int = 0
    name: str = ""


_NAMES = {x.meaning: name for name, x in OPERATIONS.items() if isinstance(x.meaning, np.ufunc) and not x.calls}


@functools.lru_cache(maxsize=1024)
def loop(ufunc: np.ufunc, *dtypes: Any) -> Loop | None:
    """Return a ufunc's inner loop for the dtypes of its operands and results; None if it has none."""
    count = ufunc.nin
    signature = "".join(d.char for d in dtypes[:count]) + "->" + "".join(d.char for d in dtypes[count:])
    try:
        number = ufunc.types.index(signature)
    except ValueError:
        return None
    found, data = (_word(_word(id(ufunc) + at) + 8 * number) for at in (_FUNCTIONS, _DATA))
    name, double = _NAMES.get(ufunc, ""), FLOATS[0]
    if "d" * count + "->?" in ufunc.types:
        is_known = dtypes[count] == BOOL and {*dtypes[:count]} in ({double}, {BOOL})
    else:
        is_known = {*dtypes} == {double}
    return Loop(found, data, name if is_known else "")


_at = ctypes.c_size_t.from_address


def address(array: np.ndarray) -> int:
    """Return the address of an array's first element, ten times as fast as ``array.ctypes.data``."""
    return _at(id(array) + _HEAD).value


def _word(at: int) -> int:
    return _at(at).value


@functools.cache
def are_known() -> bool:
    """Return True if NumPy's objects have the layout that this module assumes: it calls a loop that adds 2 and 3."""
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


# Execution of a group.


PARALLEL = 200_000
"""The least work, elements times instructions, that threads share: about 50 us; waking a thread takes 20."""


WORTH = 100_000_000
"""The work after which a group is compiled: about 20 ms, the time that LLVM takes for it."""


class Result(NamedTuple):
    """A result of a group: its row in the table of operands, its shape and its dtype."""

    row: int
    shape: tuple[int, ...]
    dtype: np.dtype


class Plan(NamedTuple):
    """The program that :class:`Tiles` executes.

    Attributes:
        words: the instructions for each tile, after a header (see :data:`.tile_source.HEAD`).
        closing: instructions to execute after all tiles, which combine the tiles' parts of results.
        table: a row for each operand: address, 1 if it is relative to a thread's room, and the strides in bytes between
            rows and between tiles.
        arrays: for each argument that is an array, its number and its row in the table.
        numbers: for each single number, the argument's number or the constant's bytes, its row and its dtype.
        results: the results, in the order of their slots.
        parts: for each result that is combined from the tiles' parts, the row, shape and dtype of the parts.
        room: the size of a thread's room in bytes.
        work: the work of one call, elements times instructions.
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

    Args:
        machine: the machine that executes the plan.
        plan: the group's plan.
        steps: NumPy steps that compute the same results.
        inputs, outputs: the slots of the arguments and results.
        constants: the values of further slots that ``steps`` read.
        compiled: returns the plan with instructions compiled by LLVM.

    Attributes:
        names: the number of steps in the group, by op.
        __name__: the name in profiles.
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
        self._compiled, self._until_compiled = compiled, WORTH if machine.compiles else 0
        self._pace = _Pace()

    @property
    def bytes(self) -> int:
        """The size of the plan and of one room in bytes."""
        return self._plan.words.nbytes + self._plan.table.nbytes + self._plan.room

    def __call__(self, *arrays) -> list:
        """Return the results as new arrays, which the caller may change. Profiles show the call under its own label.

        Warns:
            RuntimeWarning: where NumPy would warn.
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
        # Tiles write only to results and rooms, never to an argument, so NumPy can repeat the group.
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
        """Return the results as arrays, and the floating-point exceptions raised."""
        # Each call has its own memory, as several threads may call a program at once. Arrays that are not contiguous
        # are copied. Copies and results are referenced until all tiles are done, as the machine has only addresses.
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
        """Compile the group, and keep the compiled plan if it reproduces the results of this call."""
        try:
            plan, pace = self._compiled(), _Pace()
        except NotCompiled as error:
            warn(f"operations on large arrays are not compiled: {error}")
            return
        state = _State(self._machine, plan)
        if agreement.checks():
            found, _ = self._run(plan, state, arrays, pace)
            if not agreement.agree([x if x.ndim else x[()] for x in found], results):
                agreement.report(f"a group compiled by LLVM ({', '.join(self.names)})", stacklevel=4)
                return
        self._plan, self._free, self._pace = plan, [state], pace


class _Pace:
    """Decides from measured times whether threads share a group's tiles.

    On idle processors two threads take half the time of one. On busy ones, a thread that cannot run delays the result
    for longer than one thread takes for everything. The slower mode is tried again now and then, as the load may
    change, for at most a thirtieth of the time.
    """

    def __init__(self) -> None:
        self._times = [0.0, 0.0]  # by one thread, and shared
        self._calls, self._next = 0, 4

    def shares(self) -> bool:
        """Return True if threads share the tiles of the next call."""
        self._calls += 1
        if self._calls < 4:
            return self._calls == 2
        return (self._times[1] < self._times[0]) != (self._calls == self._next)

    def timed(self, shared: Callable[[Any], int], alone: Callable[[], int], memory: Any) -> int:
        """Call one of two functions, measure its time, and return its result.

        Args:
            shared: executes the tiles in several threads; receives ``memory``.
            alone: executes them in this thread.
            memory: the arrays that the tiles read and write.
        """
        shares = self.shares()
        start = time.perf_counter()
        result = shared(memory) if shares else alone()
        took, times = time.perf_counter() - start, self._times
        # A moving average, so that one lucky call does not hide several that were delayed.
        times[shares] = times[shares] + (took - times[shares]) / 4 if times[shares] else took
        if self._calls >= self._next:
            self._next = self._calls + 8 + int(32 * took / (times[not shares] or took))
        return result


class _State:
    """The memory of one call: a copy of the table, single numbers, parts of results, and a room for each thread."""

    def __init__(self, machine: Machine, plan: Plan):
        table = plan.table.copy()
        self.addresses = table.reshape(-1).data  # four numbers for each row
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
        self._tiles, self._alone = machine.function("tiles", 6), machine.function("tiles_alone", 7)
        self._functions, self._exceptions = machine.functions, sum(exceptions().values())
        self._words, self._table, self._following = address(plan.words), address(table), address(self._next)
        self._closing = address(plan.closing) if plan.parts else 0
        self._given = self._thread_arguments(0)

    def _hold(self, row: int, array: np.ndarray) -> None:
        self._held.append(array)
        self.addresses[4 * row] = address(array)

    def _thread_arguments(self, number: int) -> tuple[int, ...]:
        """Return a thread's arguments of the machine's function after the code, with the thread's room."""
        while len(self._rooms) <= number:
            room = np.empty(self._size + 64, np.uint8)
            self._held.append(room)
            self._rooms.append(-(-address(room) // 64) * 64)
        return self._table, self._rooms[number], self._following, self._functions, self._exceptions

    def run(self) -> int:
        """Execute all tiles in this thread; return the floating-point exceptions raised."""
        return self._alone(self._words, *self._given, self._closing)

    def shared(self, memory: Any) -> int:
        """Execute all tiles in several threads; return the floating-point exceptions raised.

        Args:
            memory: the arrays that are read and written, which each thread references.
        """
        self._next[0] = 0
        # Each thread references the arrays: an interrupt ends this call, but not the other threads' tiles.
        given = [self._thread_arguments(i) for i in range(1, threads())]
        waiting = [_pool().submit(self._run, one, memory) for one in given]
        raised = self._run(self._given, memory)
        for one in waiting:
            if not one.cancel():  # a thread that has not started is not needed any more
                raised |= one.result()
        return self._run_closing(raised)

    def _run(self, given: tuple[int, ...], _memory: Any) -> int:
        return self._tiles(self._words, *given)

    def _run_closing(self, raised: int) -> int:
        """Combine the tiles' parts of results; return all exceptions raised."""
        if self._closing:
            self._next[0] = 0
            raised |= self._tiles(self._closing, *self._given)
        return raised


# Threads. Each takes the next tile until none is left, so a thread that is preempted does not delay the others.


@functools.cache
def threads() -> int:
    """Return the number of threads: ``OMP_NUM_THREADS`` if it is set, else the number of processors."""
    named = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if named.isdigit() and int(named):
        return int(named)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _pool() -> concurrent.futures.ThreadPoolExecutor:
    return concurrent.futures.ThreadPoolExecutor(threads() - 1, "gradops")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)

"""Choose the steps of a program that become native, and order native runs and NumPy calls.

:func:`.lowering.lowered` and the loops of :mod:`.loops` ask here before they write any code, so the decision depends on
ops, dtypes and sizes only.
"""

from __future__ import annotations

import functools
from array import array as words_of
from collections import Counter
from collections.abc import Sequence, Set
from typing import Any

import numpy as np

from ..array import Place
from ..program import Program
from ..steps import Step
from ..table import FEW, LONGEST, Rows, count
from .code import BOOL, FLOATS
from .instructions import WHOLES
from .registry import LOOPS, Known, known_of, moves

LARGEST = 4096
"""The largest array of a native step, in elements. NumPy is as fast on larger ones, as it reuses operands' memory."""

LARGEST_CALL = 512
"""The largest array for functions of the C library; NumPy's versions are vectorized."""

LARGEST_TAKEN = 4096
"""The largest array that is copied to native memory to read a few of its elements."""

LARGEST_FACTOR = 65_536
"""The largest factor of a matrix product in a loop, which is copied to native memory once and read by BLAS."""

LARGEST_CONSTANT = 1_000_000

FEWEST = 6
"""The fewest steps of a run; below, one call of the machine costs more than the calls of NumPy."""

COPY = 3
"""The calls of NumPy's arithmetic that one of :data:`COPIES` costs."""
COPIES = frozenset(("add_at", "concatenate", "set_at", "stack"))

Groups = Sequence[Sequence[int]]


class Plan:
    """Decides which steps can be native, by op, dtype and size.

    Args:
        reads: for each step, the slots that it reads.
        joined: see :func:`joined_arrays`.
        is_body: True for the steps of a loop's body.
    """

    def __init__(self, program: Program, reads: Groups, joined: Set[int] = frozenset(), is_body: bool = False):
        self._joined, self._is_body = joined, is_body
        self.value = program.values.__getitem__
        self.constants = program.constants
        self._reads = reads
        self._known: dict[str, Known] = {}
        self._is_native = bytearray(len(program.values))  # by slot, 1 if a native step computes it

    def note_inputs(self, places: Sequence[int]) -> None:
        """Note the slots whose values are in native memory before the first step."""
        for place in places:
            self._is_native[place] = 1

    def take(self, step: Step | Rows) -> None:
        """Note that a step is native."""
        note(self._is_native, step, 1)

    @functools.cached_property
    def _uses(self) -> Counter[int]:
        """The number of steps that read each array."""
        return Counter(place for read in self._reads for place in read if self.value(place).__class__ is np.ndarray)

    def why_not(self, step: Step | Rows, reads: Sequence[int]) -> str | None:
        """Return why a step must stay a NumPy call; None if it can be native."""
        if isinstance(step, Rows):
            return None  # operations on single numbers, whose rules were tried before
        known = self._lookup(step.name)
        if known.rule is None:
            return "the machine has no such operation"
        reason = known.refusal and known.refusal(*map(self._example, (step.places[0], *step.arguments)))
        if reason:
            return reason
        for largest, x in zip(known.limits, step.arguments):
            if np.any(np.asarray(self._example(x)) > largest):
                return f"an operand above {largest:g}"
        largest = LARGEST_CONSTANT if step.name in LOOPS else LARGEST
        for place in step.places:
            value = self.value(place)
            if value.__class__ is np.float64:
                continue
            if value.dtype is not FLOATS[0]:
                if not is_known(value.dtype):
                    return f"dtype {value.dtype}"
                if value.dtype == BOOL and step.name in ("add", "multiply"):  # NumPy computes these as `or` and `and`
                    return "truth values"
            if value.size > LARGEST_CALL and value.size > self._size_limit(step, reads, known):
                return _LARGE
        for place in reads:
            value = self.value(place)
            if value.__class__ is np.float64:
                continue
            if place in self.constants:
                if value.size > LARGEST_CONSTANT:
                    return "a constant too large to be copied"
            elif value.dtype is not FLOATS[0] and not is_known(value.dtype):
                return f"dtype {value.dtype}"
            elif value.size > largest and self._joined.isdisjoint((place, *step.places)):
                if not (known.moves and self._can_be_copied(place, value)) and not self._is_factor(step, place, value):
                    return _LARGE
        return None

    def _lookup(self, name: str) -> Known:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = known_of(name)
        return known

    def _example(self, x):
        return self.value(x) if isinstance(x, Place) else x

    def _size_limit(self, step: Step, reads: Sequence[int], known: Known) -> int:
        if step.name in LOOPS or step.places[0] in self._joined:
            return LARGEST_CONSTANT
        if not known.moves:
            return LARGEST_CALL if known.calls and not self._is_square(step) else LARGEST
        made_here = all(self._is_native[place] or place in self.constants for place in reads)
        return LARGEST_CONSTANT if made_here else LARGEST

    def _is_square(self, step: Step) -> bool:
        if step.name != "power":
            return False
        exponent = step.arguments[1]
        if isinstance(exponent, Place):
            exponent = self.constants.get(exponent.index)
        return exponent is not None and not np.ndim(exponent) and bool(exponent == 2)

    def _is_factor(self, step: Step, place: int, value) -> bool:
        """Return True if BLAS reads an array of a loop's body where it is."""
        is_read_by_blas = step.name == "matmul" and value.dtype == FLOATS[0] and value.size <= LARGEST_FACTOR
        return self._is_body and bool(self._is_native[place]) and is_read_by_blas

    def _can_be_copied(self, place: int, value) -> bool:
        """Return True if it pays to copy an array to native memory for the elements that steps take from it."""
        return bool(self._is_native[place]) or value.size <= max(LARGEST_TAKEN, 200 * self._uses[place])


def joined_arrays(program: Program, steps: Sequence[Step | Rows]) -> set[int]:
    """Return the slots of arrays made of many single numbers, as a loop fills them, and of arrays made of these.

    They stay with the operations on the numbers: a run that gives thousands of numbers to NumPy's steps, and another
    run that takes as many again, take ten times as long as NumPy saves.
    """
    found: set[int] = set()
    largest = 0
    for step in steps:
        if isinstance(step, Rows):
            continue
        if step.name == "stack" and len(step.uses) > LARGEST_CALL:
            largest = max(largest, len(step.uses))
        elif not found or found.isdisjoint(step.uses):
            continue
        sizes = [(p, program.values[p].size) for p in step.places if program.values[p].__class__ is np.ndarray]
        found.update(p for p, size in sizes if size <= 2 * largest)
    return found


_LARGE = "an array on which NumPy's own loops are as fast"


def is_known(dtype) -> bool:
    """Return True if native code supports a dtype."""
    return dtype in FLOATS or dtype == BOOL or dtype in WHOLES


def note(table: Any, step: Step | Rows, value: int) -> None:
    """Set a table's entries for a step's result slots to a value; the table is an :mod:`array` or a bytearray."""
    if isinstance(step, Rows):
        np.frombuffer(table, "b" if isinstance(table, bytearray) else table.typecode)[step.places] = value
        return
    for place in step.places:
        table[place] = value


def results_among(step: Step | Rows, is_chosen: bytearray) -> list[int]:
    """Return a step's result slots for which ``is_chosen`` is set."""
    if isinstance(step, Rows) and len(step) > FEW:
        return step.places[np.frombuffer(is_chosen, bool)[step.places]].tolist()
    places = step.places.tolist() if isinstance(step, Rows) else step.places
    return [place for place in places if is_chosen[place]]


def phases(program: Program, steps: list, reads: Groups, refused: dict[int, str]) -> list[int]:
    """Return the phase of each step. A phase executes its native steps, as one run, then its NumPy calls."""
    of_native, of_others = (words_of("i", [-1]) * len(program.values) for _ in range(2))
    found = []
    for i, step in enumerate(steps):
        native, phase = i not in refused, 0
        for place in reads[i]:
            if of_native[place] >= 0:
                phase = max(phase, of_native[place])
            elif of_others[place] >= 0:
                # Native steps come first in their phase. So a NumPy call may read a native result of its own phase,
                # but a native step that reads a NumPy result belongs to the next phase. Steps have no side effects, so
                # independent steps may be reordered. Each phase calls the machine once and copies inputs, so fewer
                # phases are faster.
                phase = max(phase, of_others[place] + native)
        found.append(phase)
        note(of_native if native else of_others, step, phase)
    return found


def group_by_phase(phases: list[int]) -> list[list[int]]:
    """Return the numbers of the steps in each phase."""
    found: list[list[int]] = [[] for _ in range(max(phases, default=0) + 1)]
    for i, phase in enumerate(phases):
        found[phase].append(i)
    return found


def refuse_short(steps: Sequence[Step | Rows], order: Groups, refused: dict[int, str]) -> None:
    """Refuse the steps of runs that are too short to pay; views do not count as work."""
    for phase in order:
        native = [i for i in phase if i not in refused] if refused else phase
        work = count([steps[i] for i in native if not moves(steps[i].name)])
        work += COPY * sum(steps[i].name in COPIES for i in native)
        if work < FEWEST and not any(steps[i].name in LOOPS for i in native):
            for i in native:
                refused[i] = "too few steps that could run together"


def are_read_once(program: Program, steps: list, reads: Groups, wanted: set[int]) -> np.ndarray:
    """Return a table by slot: True if exactly one operation or step reads it, once."""
    size = len(program.values)
    times = np.zeros(size, np.intc)
    # Readers of the wanted slots are unknown: counting these slots twice rules them out.
    operands = [np.array([*wanted, *wanted], np.intc)]
    waiting = 0

    def count_reads() -> np.ndarray:
        return np.bincount(np.concatenate(operands), minlength=size).astype(np.intc)

    for step, read in zip(steps, reads):
        operands.append(step.words[:, 2:].ravel() if isinstance(step, Rows) else np.array(read, np.intc))
        waiting += len(operands[-1])
        if waiting > max(LONGEST, size // 8):  # bounds the memory for `operands`
            times += count_reads()
            operands.clear()
            waiting = 0
    if operands:
        times += count_reads()
    return times == 1


def needed_outside(
    program: Program, steps: list, reads: Groups, order: Groups, refused: dict[int, str], wanted: set[int]
) -> bytearray:
    """Return a table by slot: 1 if the value is read outside the run that computes it."""
    run_of = words_of("i", [-2]) * len(program.values)
    is_needed = bytearray(len(program.values))
    for place in wanted:
        is_needed[place] = 1
    for number, phase in enumerate(order if refused else ()):
        for i in phase:
            here = -1 if i in refused else number
            for place in reads[i]:
                if here < 0 or run_of[place] != here:
                    is_needed[place] = 1
            note(run_of, steps[i], here)
    return is_needed

"""From a program's steps to runs of native code: which steps go together, and the code of each run."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import config
from ..array import Place
from ..blocks import Block, Operation, block_of, count, expanded, single
from ..calls import Step
from ..program import Program
from .code import BOOL, FLOATS, Code, NotNative
from .instructions import FUNCTIONS
from .machine import Machine
from .rules import ELEMENTWISE, LOOPS, MOVES, RULES
from .run import Run
from .whole import WHOLES, named

LARGEST = 4096
"""Elements of an array from which on NumPy's own loops are taken, which write over what they read."""

LARGEST_CALL = 64
"""The same for functions of the C library, as NumPy computes several elements at once."""

LARGEST_TAKEN = 4096
"""Elements of an array that is copied for the sake of a few of them."""

LARGEST_CONSTANT = 1_000_000

FEWEST = 6
"""Steps of a run: with fewer, the call of the machine costs more than those of NumPy."""

Groups = Sequence[Sequence[int]]

_ALWAYS_FLOATING = frozenset("add subtract multiply divide power".split())
_CALLS = frozenset(FUNCTIONS) | {"sigmoid", "softplus", "logaddexp", "lgamma", "polygamma", "normal_cdf"}


def lowered(
    program: Program, steps: list[Step], wanted: set[int], machine: Machine
) -> tuple[list[Step], Counter[tuple[str, str]]]:
    """The steps, with runs of those that can be native as one step each.

    Returns:
        The steps, and how many are not native, by op and reason.
    """
    steps = expanded(steps, unless=lambda block: all(_is_native(what, machine) for what in block.kinds))
    reads = [step.uses for step in steps]
    plan = Plan(program, reads)
    refused: dict[int, str] = {}
    for i, step in enumerate(steps):
        reason = plan.why_not(step, reads[i])
        if reason is None:
            plan.take(step.places)
        else:
            refused[i] = reason
    runs: list[Lowering] = []
    while len(runs) == 0:
        order = _by_phase(_phases(steps, reads, refused)) if refused else [range(len(steps))]
        _refuse_short(steps, order, refused)
        runs = _written(program, steps, order, refused, machine)
    found: list[Step] = []
    needed = _needed_outside(steps, reads, order, refused, wanted) if refused else wanted
    for run, phase in zip(runs, order):
        native = [i for i in phase if i not in refused]
        if native:
            found.append(run.step([p for i in native for p in steps[i].places if p in needed]))
        found += [steps[i] for i in phase if i in refused]
    return found, Counter((steps[i].name, reason) for i, reason in refused.items())


@functools.cache
def _is_native(what: Operation, machine: Machine) -> bool:
    """Whether an operation on single numbers is native."""
    program = Program()
    operands = [program.input(np.float64(0.5)) for x in what.pattern if x is None]
    with np.errstate(all="ignore"):
        place = program.new(what.compute(*[x.value for x in operands]))
    step = Step(what.name, what.kernel, what.arguments([x.place for x in operands]), (place,), False)
    if what.name not in RULES:
        return False
    try:
        Lowering(program, Code(machine)).lower(step)
    except NotNative:
        return False
    return True


class Plan:
    """What can be native, judged by ops, dtypes and sizes alone."""

    def __init__(self, program: Program, reads: Groups):
        self.value = program.value
        self.constants = program.constants
        self._reads = reads
        self._is_native = bytearray(len(program.values))  # by place, whether a native step makes it

    def take(self, places: Sequence[int]) -> None:
        """Note that native steps make these places."""
        for place in places:
            self._is_native[place] = 1

    @functools.cached_property
    def _uses(self) -> Counter[int]:
        """How often each array is read."""
        return Counter(place for read in self._reads for place in read if self.value(place).__class__ is np.ndarray)

    def why_not(self, step: Step, reads: Sequence[int]) -> str | None:
        """Why a step stays NumPy's; None where it does not."""
        if step.name not in RULES and block_of(step) is None:
            return "the machine has no such operation"
        moves = step.name in MOVES
        largest = LARGEST_CONSTANT if step.name in LOOPS else LARGEST
        for place in step.places:
            value = self.value(place)
            if value.__class__ is np.float64:
                continue
            if not _is_known(value.dtype):
                return f"dtype {value.dtype}"
            if value.dtype == BOOL and step.name in _ALWAYS_FLOATING:
                return "truth values"
            if value.size > self._most(step, reads, moves):
                return _LARGE
        for place in reads:
            value = self.value(place)
            if value.__class__ is np.float64:
                continue
            if place in self.constants:
                if value.size > LARGEST_CONSTANT:
                    return "a constant too large to be copied"
            elif not _is_known(value.dtype):
                return f"dtype {value.dtype}"
            elif value.size > largest and not (moves and self._may_be_taken_from(place, value)):
                return _LARGE
        return None

    def _most(self, step: Step, reads: Sequence[int], moves: bool) -> int:
        if step.name in LOOPS:
            return LARGEST_CONSTANT
        if not moves:
            return LARGEST_CALL if step.name in _CALLS else LARGEST
        made_here = all(self._is_native[place] or place in self.constants for place in reads)
        return LARGEST_CONSTANT if made_here else LARGEST

    def _may_be_taken_from(self, place: int, value) -> bool:
        """Whether an array may be copied for the sake of what is taken from it."""
        return bool(self._is_native[place]) or value.size <= max(LARGEST_TAKEN, 200 * self._uses[place])


_LARGE = "an array on which NumPy's own loops are as fast"


def _is_known(dtype) -> bool:
    return dtype in FLOATS or dtype == BOOL or dtype in WHOLES


def _phases(steps: list[Step], reads: Groups, refused: dict[int, str]) -> list[int]:
    """When each step runs: in each phase first the native ones, as one run, then the others."""
    of_native: dict[int, int] = {}
    of_others: dict[int, int] = {}
    found = []
    for i, step in enumerate(steps):
        native, phase = i not in refused, 0
        for place in reads[i]:
            if place in of_native:
                phase = max(phase, of_native[place])
            elif place in of_others:
                phase = max(phase, of_others[place] + native)
        found.append(phase)
        for place in step.places:
            (of_native if native else of_others)[place] = phase
    return found


def _by_phase(phases: list[int]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(max(phases, default=0) + 1)]
    for i, phase in enumerate(phases):
        found[phase].append(i)
    return found


def _refuse_short(steps: list[Step], order: Groups, refused: dict[int, str]) -> None:
    """Leave to NumPy the runs that are too short."""
    for phase in order:
        native = [i for i in phase if i not in refused]
        work = count([steps[i] for i in native if steps[i].name not in MOVES])
        if work < FEWEST and not any(steps[i].name in LOOPS for i in native):
            for i in native:
                refused[i] = "too few steps that could run together"


def _written(program: Program, steps: list[Step], order: Groups, refused: dict, machine) -> list[Lowering]:
    """The code of each phase's run; none where a rule refused a step, which is then noted."""
    found = []
    before = len(refused)
    for phase in order:
        lowering = Lowering(program, Code(machine))
        for i in phase:
            if i not in refused:
                try:
                    lowering.lower(steps[i])
                except NotNative as reason:
                    refused[i] = str(reason)
        found.append(lowering)
    return found if len(refused) == before else []


def _needed_outside(
    steps: list[Step], reads: Groups, order: Groups, refused: dict[int, str], wanted: set[int]
) -> set[int]:
    """The places that are read outside of the run that makes them."""
    run_of: dict[int, int] = {}
    needed = set(wanted)
    for number, phase in enumerate(order):
        for i in phase:
            here = -1 if i in refused else number
            needed.update(place for place in reads[i] if here < 0 or run_of.get(place) != here)
            for place in steps[i].places:
                run_of[place] = here
    return needed


class Lowering:
    """The code of one run, or of a loop in it, while it is written, with what rules need to know."""

    def __init__(self, program: Program, code: Code):
        self.program = program
        self.code = code
        self._names: list[str] = []
        self._inputs: dict[int, tuple[int, Any]] = {}
        self._cells: dict[int, Any] = {}
        self._whole: dict[int, Any] = {}

    def lower(self, step: Step) -> None:
        """Write the code of a step.

        Raises:
            NotNative: it cannot be native.
        """
        block = block_of(step)
        if block is not None:
            self._lower_block(block)
            return
        result = RULES[step.name](self, step, *step.arguments)
        self._names.append(step.name)
        if result.__class__ is int and self.program.values[step.places[0]].__class__ is np.float64:
            self._cells[step.places[0]] = result
            return
        for place, cells in zip(step.places, result if step.several else [result]):
            self.take(place, cells)

    def _lower_block(self, block: Block) -> None:
        known, code = self._cells, self.code
        forms = {
            what: code.form(ELEMENTWISE[what.name])
            for what in block.kinds
            if what.is_plain and what.name in ELEMENTWISE
        }
        words: list[int] = []
        for call, place in block.operations:
            form = forms.get(call[0])
            if form is None:
                code.words.extend(words)
                words.clear()
                self.lower(single(call, place))
                continue
            found = []
            for p in call[1:]:
                cell = known.get(p)
                found.append(self.cells(Place(p)) if cell is None else cell)
            number, last = form
            out = known[place] = code.size
            code.size = out + 1
            words += (number, out, *found, *last)
            self._names.append(call[0].name)
        code.words.extend(words)

    def step(self, outputs: list[int]) -> Step:
        """The run as a step of a program."""
        results = [(self.code.side_by_side(self.cells(Place(p))), self.program.value(p)) for p in outputs]
        run = Run(self.code, list(self._inputs.values()), results, Counter(self._names))
        return Step("native", run, tuple(map(Place, self._inputs)), tuple(outputs), True)

    def take(self, place: int, cells) -> None:
        """Let a value have these cells."""
        known = self._whole if _is_whole(self.program.value(place)) else self._cells
        known[place] = cells if type(cells) is int or cells.ndim else int(cells)

    # What is known of arguments.

    def value(self, step: Step):
        """The value of a step's result for the arguments that the function was traced with."""
        return self.program.value(step.places[0])

    def example(self, x):
        """The value of an argument for the arguments that the function was traced with."""
        return self.program.value(x.index) if isinstance(x, Place) else x

    def shape(self, x) -> tuple[int, ...]:
        return np.shape(self.example(x))

    def is_constant(self, x) -> bool:
        """Whether an argument is the same at each call."""
        return not isinstance(x, Place) or x.index in self.program.constants

    def constants(self, arguments):
        """Arguments, or parts of a key, that must be the same at each call."""
        if isinstance(arguments, Place):
            if not self.is_constant(arguments):
                raise NotNative("positions that depend on values")
            return self.example(arguments)
        if isinstance(arguments, (list, tuple)):
            return type(arguments)(map(self.constants, arguments))
        return arguments

    # Cells.

    def cells(self, x, dtype=None):
        """The cells of an argument; of floats where ``dtype`` is floating, of whole numbers where it is that.

        Without ``dtype`` they are as the argument is. Python's numbers and whole constants take ``dtype``.

        Raises:
            NotNative: no floats, whole numbers or truth values.
        """
        if not isinstance(x, Place):
            return self._constant(x, dtype or FLOATS[0])
        value = self.program.value(x.index)
        is_whole = _is_whole(value)
        wants_whole = is_whole if dtype is None else dtype in WHOLES
        known = self._whole if wants_whole else self._cells
        found = known.get(x.index)
        if found is not None:
            return found
        if x.index in self.program.constants:
            found = self._constant(value, dtype or value.dtype)
            if value.dtype not in FLOATS and not wants_whole:
                return found
        elif is_whole != wants_whole:
            found = self._converted(self.cells(x), value, dtype)
        else:
            found = self.code.new(np.shape(value))
            self._inputs[x.index] = (found if type(found) is int else int(found.min(initial=self.code.size)), value)
        known[x.index] = found
        return found

    def _constant(self, value, dtype):
        if dtype not in WHOLES:
            return self.code.constant(_as_floats(value, dtype))
        array = np.asarray(value)
        if array.dtype.kind not in "biu" or array.dtype == np.uint64:
            raise NotNative(f"dtype {array.dtype}")
        return self.code.whole(array)

    def _converted(self, cells, value, dtype):
        """Floats of whole numbers, or whole numbers of truth values."""
        name = "int64_of_float" if dtype in WHOLES else f"{FLOATS[dtype == FLOATS[1]]}_of_whole"
        return self.code.written(name, [cells], np.shape(value), None)

    def array(self, x, dtype=None) -> np.ndarray:
        """The cells of an argument as an array, also those of a number."""
        return np.asarray(self.cells(x, dtype))

    def cast(self, x, dtype):
        """The cells of an argument whose values are those of ``dtype``."""
        given = getattr(self.example(x), "dtype", None)
        if given in FLOATS and dtype in WHOLES:
            return self.code.written(f"{dtype}_of_float", [self.cells(x)], self.shape(x), None)
        cells = self.cells(x, dtype)
        if (given, dtype) in (FLOATS, WHOLES):
            return self.code.elementwise("copy", [cells], () if type(cells) is int else cells.shape, dtype)
        return cells

    def elementwise(self, name: str, operands: tuple, step: Step):
        """The cells of an operation on arguments, of the shape and dtype of a step's result."""
        value = self.program.values[step.places[0]]
        if value.__class__ is np.float64:  # the most frequent case
            known, found = self._cells, []
            for x in operands:
                cell = known.get(x.index) if x.__class__ is Place else None
                found.append(self.cells(x, FLOATS[0]) if cell is None else cell)
            return self.code.number(name, found)
        if value.dtype == BOOL:
            dtype = self._met(operands)
            if dtype in WHOLES:
                of_wholes = named(name)
                name, dtype = (of_wholes, dtype) if of_wholes else (name, FLOATS[0])
        else:
            dtype = value.dtype
        if name == "where":
            return self.operation(
                name, [self.cells(operands[0], FLOATS[0]), *(self.cells(x, dtype) for x in operands[1:])], step
            )
        return self.operation(name, [self.cells(x, dtype) for x in operands], step)

    def operation(self, name: str, cells: list, step: Step):
        """The same on cells."""
        value = self.value(step)
        return self.code.elementwise(name, cells, np.shape(value), value.dtype)

    def _met(self, operands) -> np.dtype:
        """The dtype in which operands are compared; that of floats for truth values."""
        found = {getattr(self.example(x), "dtype", None) for x in operands}
        if FLOATS[0] in found or FLOATS[1] in found:
            return FLOATS[FLOATS[0] not in found]
        if any(type(x) is float for x in operands):
            return np.dtype(config.floatx())
        return WHOLES[0] if found - {BOOL, None} else FLOATS[0]


def _is_whole(value) -> bool:
    return value.__class__ is not np.float64 and value.dtype in WHOLES


def _as_floats(value, dtype):
    """A constant as floats that are those of its dtype, or of ``dtype`` where it is a Python number or whole."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise NotNative(f"dtype {array.dtype}")
    if array.dtype.kind in "iu" and array.size and np.abs(array.astype(np.float64)).max() >= 2.0**53:
        raise NotNative("whole numbers that are no floats")
    if array.dtype.kind in "iu" or isinstance(value, float) and not isinstance(value, np.generic):
        array = array.astype(dtype)
    return np.float64(array) if not array.ndim else array

"""Lower a program's steps to runs of native code.

:func:`lowered` takes steps, of which :mod:`.tiles` may already have fused some, and replaces each phase's native steps
by one step that calls a :class:`.Run`. It is called by the package's own :func:`lowered`. A :class:`Lowering` writes
the bytecode of one run; the rules of :mod:`.registry` receive it and ask it for the cells of a step's arguments.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import config
from ..._tree import map_items
from ..array import Place
from ..operations import NumberOperation
from ..program import Program
from ..reference import Reference
from ..steps import OPERAND, Step
from ..table import FEW, Rows, Table, expanded, joined, names
from .code import BOOL, FLOATS, Code, NotNative, Outside
from .instructions import WHOLES, integer_instruction
from .machine import Machine
from .number_rows import Forms, Made
from .peephole import Shortened
from .plan import (
    Plan,
    are_read_once,
    group_by_phase,
    joined_arrays,
    needed_outside,
    phases,
    refuse_short,
    results_among,
)
from .registry import OF_KERNELS, known_of, rule_of
from .run import Run


def lowered(
    program: Program, rows: Rows, steps: list[Step | Rows], wanted: set[int], machine: Machine
) -> tuple[list[Step], Counter[tuple[str, str]]]:
    """Replace runs of steps that can be native by one step each.

    Args:
        program: the recorded program.
        rows: the program's rows.
        steps: the same computation as steps; those on single numbers may still be blocks of rows.
        wanted: the slots whose values the caller reads.
        machine: the machine that executes the code.

    Returns:
        The new steps, and the number of steps that are not native, by op and reason.
    """
    steps = expanded(steps, unless=lambda rows: all(_is_native(what, machine) for what in rows.operations))
    reads = [step.uses for step in steps]
    plan = Plan(program, reads, joined_arrays(program, steps))
    refused: dict[int, str] = {}
    for i, step in enumerate(steps):
        reason = plan.why_not(step, reads[i])
        if reason is None:
            plan.take(step)
        else:
            refused[i] = reason
    is_long = any(isinstance(step, Rows) and len(step) >= MANY for step in steps)
    once = are_read_once(program, steps, reads, wanted) if is_long else None
    runs: list[Lowering] = []
    # The phases depend on which steps are native, and a rule may refuse a step only when it is tried. All code is then
    # discarded, and the phases are computed again without that step. Each round refuses at least one more step, so the
    # loop ends.
    outside: dict[int, str] = {}
    while len(runs) == 0:
        order = group_by_phase(phases(program, steps, reads, refused)) if refused else [range(len(steps))]
        refuse_short(steps, order, refused)
        runs = _written(program, steps, order, refused, outside, once, machine)
    found: list[Step] = []
    is_needed = needed_outside(program, steps, reads, order, refused, wanted)
    for run, phase in zip(runs, order):
        native = [i for i in phase if i not in refused] if refused else phase
        if native:
            done = rows if len(native) == len(steps) else joined(rows.table, [steps[i] for i in native])
            found.append(run.step(done, [p for i in native for p in results_among(steps[i], is_needed)]))
        found += expanded([steps[i] for i in phase if i in refused])
    return found, Counter((name, reason) for i, reason in refused.items() for name in names(steps[i]).elements())


@functools.cache
def _is_native(what: NumberOperation, machine: Machine) -> bool:
    """Return True if an operation on single numbers is native, by writing code for it once."""
    program = Program()
    operands = [program.input(np.float64(0.5)) for x in what.pattern if x is OPERAND]
    with np.errstate(all="ignore"):
        place = program.new(what.compute(*[x.value for x in operands]))
    step = Step(what.name, what.kernel, what.arguments([x.place for x in operands]), (place,), False)
    known = known_of(what.name)
    if known.rule is None or known.limits:  # limits depend on the operands' values
        return False
    try:
        Lowering(program, Code(machine, {}))._lower_step(step)
    except NotNative:
        return False
    return True


def _written(
    program: Program,
    steps: Sequence[Step | Rows],
    order: Sequence[Sequence[int]],
    refused: dict,
    outside: dict[int, str],
    once: np.ndarray | None,
    machine: Machine,
) -> list[Lowering]:
    """Write the code of each phase's run.

    Return an empty list if a rule refused a step; the step is then in ``refused``, or in ``outside`` if its NumPy
    kernel can be called within a loop.
    """
    found = []
    is_refused = False
    for phase in order:
        lowering = Lowering(program, Code(machine, outside), once)
        for i in phase:
            if i not in refused:
                try:
                    lowering.lower(steps[i])
                except Outside:
                    is_refused = True
                    break
                except NotNative as reason:
                    refused[i] = str(reason)
                    is_refused = True
        found.append(lowering)
    return [] if is_refused else found


MANY = 200
"""The smallest block of operations for the peephole pass; on fewer, the pass costs more than it saves."""


class Lowering:
    """Writes the code of one run, or of a loop's body in it, and answers the rules' questions about arguments.

    Args:
        program: the program that the steps belong to.
        code: receives the instructions.
        is_read_once: for each slot, True if it is read exactly once; None if that is unknown.
    """

    def __init__(self, program: Program, code: Code, is_read_once: np.ndarray | None = None):
        self.program = program
        self.code = code
        self._is_read_once = is_read_once
        self._names: Counter[str] = Counter()
        self._inputs: dict[int, tuple[int, Any]] = {}
        self._cells: dict[int, Any] = {}
        self._whole: dict[int, Any] = {}
        self._made = Made()
        self._forms = Forms(code)

    def lower(self, step: Step | Rows) -> None:
        """Write the code of a step.

        Raises:
            NotNative: the step cannot be native.
        """
        if isinstance(step, Rows):
            self._lower_rows(step)
            self._names.update(step.names())
        else:
            self._lower_step(step)
            self._names[step.name] = self._names.get(step.name, 0) + 1

    def _lower_step(self, step: Step) -> None:
        if id(step) in self.code.outside:
            self._call(step)
            return
        write: Any = OF_KERNELS.get(step.function) or rule_of(step.name)
        result = write(self, step, *step.arguments)
        if result.__class__ is int and self.program.values.is_number(step.places[0]):
            self._cells[step.places[0]] = result
            return
        for place, cells in zip(step.places, result if step.several else [result]):
            self.take(place, cells)

    def _call(self, step: Step) -> None:
        """Write a call of a step's NumPy kernel."""
        self.code.called[step.name, self.code.outside[id(step)]] += 1
        given = [p for p in step.uses if p not in self.program.constants]
        dtypes = [self.example(Place(p)).dtype for p in given]
        constants = {p: self.program.constants[p] for p in step.uses if p in self.program.constants}

        def kernel(*arrays):
            values = {**constants, **dict(zip(given, arrays))}
            arguments = map_items(lambda x: values[x.index] if x.__class__ is Place else x, step.arguments)
            return step.function(*arguments)

        cells = [(self.array(Place(p), dtype), dtype) for p, dtype in zip(given, dtypes)]
        results = [self.code.new(np.shape(self.program.value(place))) for place in step.places]
        self.code.call(kernel, cells, results)
        for place, result in zip(step.places, results):
            self.take(place, result)

    def _lower_rows(self, numbers: Rows) -> None:
        """Write operations on single numbers: runs of one-instruction operations in bulk, the others one by one."""
        table, rows = numbers.table, numbers.words
        self._made.cover(int(rows[0, 1]), int(rows[-1, 1]))
        if len(rows) < FEW:
            self._lower_singly(table, rows)
            return
        rows = self._forms.rewrite_squares(rows, self.program.constants)
        together = self._forms.are_single(rows)
        cuts = [0, *(np.flatnonzero(together[1:] != together[:-1]) + 1).tolist(), len(rows)]
        for start, stop in itertools.pairwise(cuts):
            if together[start] and stop - start >= FEW:
                self._lower_together(rows[start:stop])
            else:
                self._lower_singly(table, rows[start:stop])

    def _lower_singly(self, table: Table, rows: np.ndarray) -> None:
        made, known, code = self._made, self._cells, self.code
        for row in rows.tolist():
            number, place, *operands = row
            form = self._forms.lookup_plain(number)
            if form is None:
                self._lower_step(table.step(row))
                made[place] = self._cells.pop(place)
                continue
            cells = []
            for p in operands:
                if p:
                    cell = made[p]
                    if cell < 0:
                        cell = known[p] if p in known else self.cells(Place(p))
                    cells.append(cell)
            out = made[place] = code.size
            code.size = out + 1
            code.words.extend((form[0], out, *cells, *form[1]))

    def _lower_together(self, rows: np.ndarray) -> None:
        code, made, places, operands = self.code, self._made, rows[:, 1], rows[:, 2:]
        determinants = np.unique(operands[self._forms.are_checked(rows), 1])
        zero = code.constant(0.0) if len(determinants) else 0
        made.take(places, 0)  # a placeholder that marks operands which are results of this block
        others = (made.cells(operands) < 0) & (operands > 0)
        outside, at = np.unique(operands[others], return_inverse=True)
        cells = np.array([self._cell(p) for p in outside.tolist()], np.intc)
        results = np.arange(code.size, code.size + len(rows), dtype=np.intc)
        made.take(places, results)
        found = made.cells(operands)
        found[others] = cells[at]
        words = self._forms.words(rows, results, found)
        if len(rows) >= MANY and self._is_read_once is not None:
            short = Shortened(words, code.size, self._is_read_once[places] & ~np.isin(places, determinants))
            words = short.words
            made.take(places, short.cells)
        first = code.size
        code.size += len(words)
        if len(determinants):
            known = made.cells(determinants)
            for k in np.flatnonzero(known < 0).tolist():  # determinants computed outside the block
                known[k] = self._cell(int(determinants[k]))
            words = code.insert_checks(words, first, np.sort(known), zero)
        code.words.frombytes(words.tobytes())

    def _cell(self, place: int) -> int:
        """Return the cell of a number, with a fast path for constants, the most frequent case."""
        found = self._cells.get(place)
        if found is None:
            value = self.program.constants.get(place)
            if value.__class__ is not np.float64:
                return self.cells(Place(place))
            found = self._cells[place] = self.code.constant(value)
        return found

    def step(self, rows: Rows, outputs: list[int]) -> Step:
        """Return the finished run as a step that replaces ``rows`` and computes the slots ``outputs``."""
        for place in rows.uses:  # a rule may ignore an operand, such as `imag` of real numbers, but its kernel takes it
            if place not in self._inputs and place not in self.program.constants:
                self.cells(place)
        results = [(self.code.contiguous(self.cells(Place(p))), self.program.value(p)) for p in outputs]
        inputs = tuple(map(Place, self._inputs))
        reference = Reference(rows, inputs, list(map(Place, outputs)), self.program.constants)
        run = Run(self.code, list(self._inputs.values()), results, self._names, reference)
        return Step("native", run, inputs, tuple(outputs), True)

    def take(self, place: int, cells) -> None:
        """Record the cells of a slot's value."""
        known = self._whole if _is_whole(self.program.value(place)) else self._cells
        known[place] = cells if type(cells) is int or cells.ndim else int(cells)

    # Facts about arguments.

    def value(self, step: Step):
        """Return the value that a step's result had during tracing."""
        return self.program.value(step.places[0])

    def example(self, x):
        """Return the value that an argument had during tracing."""
        return self.program.value(x.index) if isinstance(x, Place) else x

    def shape(self, x) -> tuple[int, ...]:
        return np.shape(self.example(x))

    def is_constant(self, x) -> bool:
        """Return True if an argument is the same at each call."""
        return not isinstance(x, Place) or x.index in self.program.constants

    def constants(self, arguments):
        """Return the values of arguments, or of parts of a key, that must be constants.

        Raises:
            NotNative: an argument differs between calls.
        """
        if isinstance(arguments, Place):
            if not self.is_constant(arguments):
                raise NotNative("positions that depend on values")
            return self.example(arguments)
        if isinstance(arguments, (list, tuple)):
            return type(arguments)(map(self.constants, arguments))
        return arguments

    # Cells.

    def cells(self, x, dtype=None):
        """Return the cells of an argument, converted to floats or integers as ``dtype`` asks.

        Without ``dtype`` there is no conversion. Python numbers and integer constants take ``dtype``.

        Raises:
            NotNative: the argument's dtype is not a supported float, integer or boolean one.
        """
        if not isinstance(x, Place):
            return self._constant(x, dtype or FLOATS[0])
        if dtype is FLOATS[0] or dtype is None and self.program.values.is_number(x):  # the most frequent case
            found = self._cells.get(x)
            if found is not None:
                return found
        value = self.program.value(x.index)
        is_whole = _is_whole(value)
        wants_whole = is_whole if dtype is None else dtype in WHOLES
        # Memory may hold an argument twice, as integers (the bits of an int64) and as floats of the same value, and an
        # instruction that reads the wrong form would compute garbage. So there are two tables, and a value is converted
        # when the other form is first needed.
        known = self._whole if wants_whole else self._cells
        found = known.get(x.index)
        if found is None and not is_whole and not wants_whole:
            found = self._made[x.index]
            found = None if found < 0 else found
        if found is not None:
            return found
        if x.index in self.program.constants:
            found = self._constant(value, dtype or value.dtype)
            if value.dtype not in FLOATS and not wants_whole:
                return found
        elif is_whole != wants_whole:
            found = self._converted(self.cells(x), value, dtype)
        else:
            self._inputs[x.index] = self.code.size, value
            found = self.code.new(np.shape(value))
        known[x.index] = found
        return found

    def _constant(self, value, dtype):
        if dtype is FLOATS[0] and isinstance(value, float):  # the most frequent case
            return self.code.constant(value)
        if dtype not in WHOLES:
            return self.code.constant(_as_floats(value, dtype))
        array = np.asarray(value)
        if array.dtype.kind not in "biu" or array.dtype == np.uint64:
            raise NotNative(f"dtype {array.dtype}")
        return self.code.whole(array)

    def _converted(self, cells, value, dtype):
        """Emit the conversion of integers to floats, or of booleans to integers."""
        name = "int64_of_float" if dtype in WHOLES else f"{FLOATS[dtype == FLOATS[1]]}_of_whole"
        return self.code.written(name, [cells], np.shape(value), None)

    def array(self, x, dtype=None) -> np.ndarray:
        """Return the cells of an argument as an array, which has no dimensions for a number."""
        return np.asarray(self.cells(x, dtype))

    def cast(self, x, dtype):
        """Emit a cast of an argument to ``dtype``, if it is needed; return the cells of the result."""
        given = getattr(self.example(x), "dtype", None)
        if given in FLOATS and dtype in WHOLES:
            return self.code.written(f"{dtype}_of_float", [self.cells(x)], self.shape(x), None)
        cells = self.cells(x, dtype)
        if (given, dtype) in (FLOATS, WHOLES):
            return self.code.elementwise("copy", [cells], () if type(cells) is int else cells.shape, dtype)
        return cells

    def elementwise(self, name: str, operands: tuple, step: Step):
        """Emit an elementwise operation on a step's arguments; return the cells of the step's result."""
        if self.program.values.is_number(step.places[0]):  # the most frequent case
            known, found = self._cells, []
            for x in operands:
                cell = known.get(x.index) if x.__class__ is Place else None
                found.append(self.cells(x, FLOATS[0]) if cell is None else cell)
            return self.code.number(name, found)
        value = self.value(step)
        if value.dtype == BOOL:
            dtype = self._comparison_dtype(operands)
            if dtype in WHOLES:
                of_wholes = integer_instruction(name)
                name, dtype = (of_wholes, dtype) if of_wholes else (name, FLOATS[0])
        else:
            dtype = value.dtype
        if name == "where":
            return self.operation(
                name, [self.cells(operands[0], FLOATS[0]), *(self.cells(x, dtype) for x in operands[1:])], step
            )
        return self.operation(name, [self.cells(x, dtype) for x in operands], step)

    def limited_elementwise(self, limits: tuple[float, ...], name: str, operands: tuple, step: Step):
        """Emit an operation that is right only for operands up to a limit; beyond it, execution ends.

        The reference executor then calls the step's NumPy kernel.
        """
        code, dtype = self.code, self.value(step).dtype
        if dtype not in FLOATS:
            raise NotNative(f"dtype {dtype}")
        given = [self.array(x, dtype) for x in operands]
        for x, limit in zip(given, limits):
            if np.isfinite(limit) and x.size:
                largest = code.reduced("max", x.reshape(-1), FLOATS[0])
                code.require(code.number("less_equal", [largest, code.constant(limit)]))
        return self.operation(name, given, step)

    def operation(self, name: str, cells: list, step: Step, shape: tuple[int, ...] | None = None):
        """Emit an elementwise operation on cells, with the dtype of a step's result.

        Args:
            shape: the shape to compute; by default that of the step's result.
        """
        value = self.value(step)
        return self.code.elementwise(name, cells, np.shape(value) if shape is None else shape, value.dtype)

    def _comparison_dtype(self, operands) -> np.dtype:
        """Return the dtype in which operands are compared; booleans are compared as floats."""
        found = {getattr(self.example(x), "dtype", None) for x in operands}
        if FLOATS[0] in found or FLOATS[1] in found:
            return FLOATS[FLOATS[0] not in found]
        if any(type(x) is float for x in operands):
            return np.dtype(config.floatx())
        return WHOLES[0] if found - {BOOL, None} else FLOATS[0]


def _is_whole(value) -> bool:
    return value.__class__ is not np.float64 and value.dtype in WHOLES


def _as_floats(value, dtype):
    """Return a constant as float64, rounded to ``dtype`` if it is a Python number or an integer.

    Raises:
        NotNative: the constant has an unsupported dtype, or integers that float64 cannot represent.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise NotNative(f"dtype {array.dtype}")
    if array.dtype.kind in "iu" and array.size and np.abs(array.astype(np.float64)).max() >= 2.0**53:
        raise NotNative("integers that float64 cannot represent")
    if array.dtype.kind in "iu" or isinstance(value, float) and not isinstance(value, np.generic):
        array = array.astype(dtype)
    return np.float64(array) if not array.ndim else array

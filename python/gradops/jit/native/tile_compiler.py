"""Compile hot groups of steps on large arrays with LLVM: several instructions become one vectorized loop.

:class:`.tile_run.Tiles` calls :func:`compiled` once a group has done enough work, with the plan of :mod:`.tile_plan`,
and receives the same plan with segments of instructions replaced by calls of compiled functions.

A ufunc's loop reads its operands from the cache and writes its result there. A compiled loop keeps intermediate values
in registers, and needs no call for each row of a matrix. LLVM takes about 20 ms for a group. Only full tiles are
compiled, so sizes are constants in the IR; a shorter last tile is executed as before. Each element has the bits of
NumPy's loops, and sums have NumPy's order. The only difference is the sign of a maximum or minimum among zeros of both
signs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from . import tile_run
from .code import BOOL
from .instructions import OPERATIONS
from .llvm import EIGHT, LANES, Text, constant_vector, inner_loop, wide
from .machine import Machine, meaning
from .tile_plan import (
    COLUMN,
    FULL,
    FUNCTIONS,
    HEAD,
    ONE,
    OPERANDS,
    POWERS,
    PRODUCT,
    REPEATED,
    ROW,
    SHORT,
    SPREAD,
    WORDS,
    Instruction,
    Operand,
    Written,
)

_OF_EIGHT = (*FUNCTIONS, *(f"power{n}" for n in POWERS))
"""Functions of eight numbers, which are C (``runtime/eight_functions.h``)."""

_REDUCTIONS = ("add", "maximum", "minimum")

_PAIRWISE = 128
"""The longest sum that NumPy does not split into halves."""


class _Space(NamedTuple):
    """The iteration space of a compiled loop.

    Attributes:
        rows, length: the number of rows, and of elements in a row.
        vectors: the kinds of operands with a number for each element; the first is the kind of results.
        scalar: the kind of operands with a number for each row.
    """

    rows: int
    length: int
    vectors: tuple[str, ...]
    scalar: str


def compiled(plan: tile_run.Plan, written: Written, machine: Machine) -> tile_run.Plan:
    """Return a plan that executes full tiles with compiled functions where possible.

    Args:
        plan: the plan of the group.
        written: the plan's instructions.
        machine: compiles the IR.
    """
    code, texts = written.code, []
    words = plan.words[HEAD:].reshape(len(code), WORDS)
    once = int(plan.words[4])  # leading instructions that each thread executes only for its first tile
    parts = list(_segments(written, once))
    for i, (start, end, space) in enumerate(parts):
        later = {o for x, _ in code[end:] for o in x.operands[:-1]}
        texts.append(_Function(f"part{i}", space, code[start:end], later, plan.table).text())
    if not parts:
        return plan
    engine, _ = machine.compiled("\n".join(texts), "part0", level=1)
    pieces, at = [], 0
    for i, (start, end, _) in enumerate(parts):
        call = np.zeros((1, WORDS), np.int64)  # no operands: the function finds the addresses in the room
        call[0, [0, 3]] = engine.get_function_address(f"part{i}"), 1
        pieces += [words[at:start], call]
        at = end
    full = np.concatenate([*pieces, words[at:]])
    head = [*plan.words[:3], len(full), once, len(full), len(full) + len(code)]
    return plan._replace(words=np.concatenate([head, full.ravel(), words.ravel()]), held=engine)


# Segments of instructions that become one function.


def _segments(written: Written, once: int) -> Iterator[tuple[int, int, _Space]]:
    """Yield the first instruction of each segment, the one after its last, and its iteration space."""
    rows, width, code = written.rows, written.width, written.code
    spaces = [_Space(1, rows * width, (FULL,), ONE)]
    if width > 1:
        spaces.append(_Space(1, rows, (COLUMN,), ONE))
        spaces.append(_Space(rows, width, (FULL, ROW), COLUMN))
    at = once
    while at < len(code):
        start, found, work = at, spaces, 0
        while at < len(code):
            within = [space for space in found if _fits(code[at][0], space)]
            if not within:
                break
            found = within
            work += any(o.kind in (FULL, COLUMN) for o in code[at][0].operands[:-1])
            at += 1
        # A single instruction is no faster when compiled, unless it is a call for each row.
        if at > start and work > (found[0].rows == 1):
            yield start, at, found[0]
        at = max(at, start + 1)


def _fits(x: Instruction, space: _Space) -> bool:
    """Return True if an instruction can be part of a loop over an iteration space."""
    *given, out = x.operands
    if out in given:
        kinds = [o.kind for o in given if o != out]
        return x.loop.name in _REDUCTIONS and out.kind == space.scalar and kinds == [space.vectors[0]]
    if x.loop.name not in (*OPERATIONS, *_OF_EIGHT) or x.over == PRODUCT or x.over == SPREAD and space.rows == 1:
        return False
    # A function takes as long for a partly empty vector, at the end of a short row, or for a row's single number, as
    # for eight numbers.
    if space.rows > 1 and space.length < REPEATED and x.loop.name in FUNCTIONS:
        return False
    known = {space.scalar, ONE, *(space.vectors if out.kind == space.vectors[0] else ())}
    return out.kind in (space.vectors[0], space.scalar) and all(o.kind in known for o in given)


# LLVM IR.

_EXTREMES = {"maximum": "ogt", "minimum": "olt"}


class _Function(Text):
    """Writes the function of a segment.

    The function has the signature of a ufunc's inner loop. After the operands' addresses it receives that of the
    thread's room, which starts with the addresses of the tile's operands, in the order of the plan's table.

    Args:
        name: the function's name.
        space: its iteration space.
        code: the segment's instructions, with the table rows of their operands.
        later: the operands that later instructions read.
        table: the plan's table.
    """

    def __init__(
        self,
        name: str,
        space: _Space,
        code: list[tuple[Instruction, list[int]]],
        later: set[Operand],
        table: np.ndarray,
    ):
        super().__init__("begin")
        self.title, self.space, self.table = name, space, table
        self.code = [x for x, _ in code]
        self.row = {o: row for x, rows in code for o, row in zip(x.operands, rows)}
        self.needed = {o for o in self.row if o in later or not table[self.row[o]][1]}
        """Results that must be written to memory."""
        self.bases: dict[int, str] = {}
        self.globals: list[str] = []
        self.scalars: dict[Operand, str] = {}
        self.row_number = ""

    def text(self) -> str:
        phases = self._phases()

        def row(r: str, _: list) -> list:
            self.row_number = r
            for phase in phases:
                self._phase(phase)
            return []

        if self.space.rows > 1:
            self.loop("0", str(self.space.rows), 1, [], row)
        else:
            row("0", [])
        loads = [("%room", "%arguments", OPERANDS), *((base, "%room", row) for row, base in self.bases.items())]
        head = [line for load in loads for line in _loaded_pointer(*load)]
        self.lines[:0] = [*head, "  br label %begin", "begin:"]
        return "\n".join([*self.globals, inner_loop(self.title, self)])

    def _phases(self) -> list[list[Instruction]]:
        """Split the instructions into phases so that no phase reads a row reduction it computes itself."""
        phases: list[list[Instruction]] = [[]]
        reduced: set[Operand] = set()
        made: dict[Operand, int] = {}
        for x in self.code:
            *given, out = x.operands
            if reduced.intersection(given):
                phases.append([])
                reduced.clear()
            phases[-1].append(x)
            if out in given:
                reduced.add(out)
            self.needed.update(o for o in given if o in made and made[o] < len(phases) and o.kind in self.space.vectors)
            made[out] = len(phases)
        return phases

    # Numbers for each row, which stay in registers until the row ends.

    def _base(self, row: int) -> str:
        return self.bases.setdefault(row, f"%b{row}")

    def _scalar(self, o: Operand) -> str:
        """Return the name of an operand's number for the current row; load it on first use."""
        if o not in self.scalars:
            if isinstance(o.value, bytes):
                number = float(np.frombuffer(o.value, o.dtype)[0])
                self.scalars[o] = f"0x{struct.pack('>d', number).hex().upper()}"
            elif o.dtype == BOOL:
                self.scalars[o] = self._truth(self.line(f"load i8, ptr {self._address(o)}"), "i8", "0", "double")
            else:
                self.scalars[o] = self.line(f"load double, ptr {self._address(o)}")
        return self.scalars[o]

    def _address(self, o: Operand) -> str:
        base = self._base(self.row[o])
        if o.kind != COLUMN or self.space.rows == 1:
            return base
        return self.at(base, self.row_number, _memory(o))

    def _write_scalar(self, o: Operand, value: str) -> None:
        self.scalars[o] = value
        if o in self.needed:
            if o.dtype == BOOL:
                value = self.line(f"zext i1 {self.line(f'fcmp une double {value}, 0.0')} to i8")
            self.store(_memory(o), value, self._address(o))

    def _truth(self, value: str, kind: str, zero: str, out: str) -> str:
        """Convert a boolean from memory to 0.0 or 1.0, as operations expect."""
        is_true = self.line(f"icmp ne {kind} {value}, {zero}")
        return self.line(f"uitofp {out.replace('double', 'i1')} {is_true} to {out}")

    # Operations.

    def _eight_results(self, name: str, operands: list[str]) -> str:
        """Write an operation on vectors of eight; return the name of its result."""
        if name in OPERATIONS:
            return self.computed(wide(meaning(name)), operands)
        return self.line(f"call {EIGHT} @eight_{name}({EIGHT} {operands[0]})")

    def _single_result(self, name: str, operands: list[str]) -> str:
        """Write an operation on numbers; return the name of its result."""
        if name in OPERATIONS:
            return self.computed(meaning(name), operands)
        return self.line(f"extractelement {EIGHT} {self._eight_results(name, [self.spread(operands[0])])}, i64 0")

    # A phase: numbers for the row, then a loop over the row's elements, then the results of reductions.

    def _phase(self, phase: list[Instruction]) -> None:
        queue: list[tuple[Instruction, dict[Operand, str]]] = []
        results: dict[Operand, tuple[str, Operand, str]] = {}
        # Operands share memory if their lifetimes do not overlap. So a row's number is loaded here, at its first use,
        # and not later when the loop is written.
        for x in phase:
            *given, out = x.operands
            scalars = {o: self._scalar(o) for o in given if o.kind not in self.space.vectors}
            if out in given:
                (operand,) = (o for o in given if o != out)
                results[out] = x.loop.name, operand, scalars[out]
            elif out.kind not in self.space.vectors:
                self._write_scalar(out, self._single_result(x.loop.name, [scalars[o] for o in given]))
                continue
            queue.append((x, {o: self.spread(value) for o, value in scalars.items() if o != out}))
        if queue:
            for out, value in self._loop(queue, results).items():
                self._write_scalar(out, value)

    def _loop(self, queue, results: dict[Operand, tuple[str, Operand, str]]) -> dict[Operand, str]:
        """Write a loop over a row; return the results of its reductions.

        Args:
            queue: the instructions, with the vectors of their scalar operands.
            results: for each reduction's result the reduction's name, its operand, and the value it starts from.
        """
        length = self.space.length
        whole, rest = length // LANES * LANES, length % LANES
        sums = [out for out, (name, *_) in results.items() if name == "add"]
        ends = _halves(length) if sums else [length]
        state = {out: self._initial_state(*results[out]) for out in results}
        parts: dict[Operand, list[str]] = {out: [] for out in sums}
        if whole and len(ends) == 1:
            state = self._elements(queue, results, state, "0", str(whole))
            is_by_columns = self.space.rows > 1 and length < SHORT
            add = self._add_lanes if is_by_columns else self.lane_sum
            parts = {out: [add(state[out][0])] for out in sums}
        elif whole:
            state, parts = self._blocks(queue, results, state, sums, [*ends[:-1], whole])
        if rest:
            values = self._body(queue, str(whole), rest)
            for out, (name, operand, _) in results.items():
                if name == "add":
                    total = parts[out].pop() if parts[out] else "-0.0"
                    parts[out].append(self._add_lanes(values[operand], total, rest))
                else:
                    state[out] = self._fold(name, state[out], values[operand])
        found = {}
        for out, (name, _, before) in results.items():
            if name == "add":
                found[out] = self.added(before, self._pairwise_sum(parts[out], length), "double")
            else:
                found[out] = self._final_extreme(name, *state[out])
        return found

    def _add_lanes(self, vector: str, total: str = "-0.0", count: int = LANES) -> str:
        """Add the first ``count`` lanes of a vector to a number, one by one."""
        for i in range(count):
            total = self.added(total, self.line(f"extractelement {EIGHT} {vector}, i64 {i}"), "double")
        return total

    def _blocks(self, queue, results, state, sums, ends: list[int]):
        """Write a loop over the blocks into which NumPy splits a sum; return the final state, and each block's sums."""
        count, name = len(ends), f"@{self.title}.{self.name()[1:]}"
        numbers = ", ".join(f"i64 {n}" for n in [0, *ends])
        self.globals.append(f"{name} = private constant [{count + 1} x i64] [{numbers}]")
        rooms = {out: self.line(f"alloca double, i64 {count}") for out in sums}
        kept = [out for out in state if out not in sums]

        def block(i: str, values: list) -> list:
            first = self.line(f"load i64, ptr {self.at(name, i, 'i64')}")
            last = self.line(f"load i64, ptr {self.at(name, self.number('add', i, 1), 'i64')}")
            found = self._elements(queue, results, {**state, **_split(kept, state, values)}, first, last)
            for out in sums:
                self.store("double", self.lane_sum(found[out][0]), self.at(rooms[out], i))
            return [part for out in kept for part in found[out]]

        found = _split(kept, state, self.loop("0", str(count), 1, _parts(kept, state), block))
        parts = {}
        for out in sums:
            places = [self.at(rooms[out], k) for k in range(count)]
            parts[out] = [self.line(f"load double, ptr {place}") for place in places]
        return found, parts

    def _elements(self, queue, results, state, first: str, last: str):
        """Write the loop over a range of elements, eight at a time; return the state of reductions after it."""

        def elements(i: str, parts: list) -> list:
            before, values = _split(state, state, parts), self._body(queue, i)
            return [part for out in state for part in self._fold(results[out][0], before[out], values[results[out][1]])]

        return _split(state, state, self.loop(first, last, LANES, _parts(state, state), elements))

    def _body(self, queue, i: str, rest: int = 0) -> dict[Operand, str]:
        """Write the instructions for eight elements, or the last ``rest`` of a row; return each operand's vector."""
        values: dict[Operand, str] = {}
        for x, spread in queue:
            *given, out = x.operands
            for o in given:
                if o.kind in self.space.vectors and o not in values:
                    values[o] = self._loaded(o, i, rest)
            if out in given:
                continue
            operands = [values[o] if o in values else spread[o] for o in given]
            values[out] = self._eight_results(x.loop.name, operands)
            if out in self.needed:
                self._write(out, values[out], i, rest)
        return values

    def _place(self, o: Operand, i: str) -> str:
        base = self._base(self.row[o])
        if self.space.rows > 1 and o.kind != ROW:
            base = self.at(base, self.number("mul", self.row_number, self.space.length), _memory(o))
        return self.at(base, i, _memory(o))

    # The last elements of a row may be fewer than eight. The other lanes repeat the last element, so that they raise no
    # additional exceptions. A single element is loaded as a scalar: on some processors vectors of one element fail an
    # assertion in LLVM, which aborts the process.
    def _loaded(self, o: Operand, i: str, rest: int) -> str:
        kind, count = _memory(o), rest or LANES
        source = f"ptr {self._place(o, i)}, align {o.dtype.itemsize}"
        value = self.line(f"load {kind if rest == 1 else f'<{count} x {kind}>'}, {source}")
        if rest == 1:
            first = self.line(f"insertelement <{LANES} x {kind}> poison, {kind} {value}, i64 0")
            value = self.line(
                f"shufflevector <{LANES} x {kind}> {first}, <{LANES} x {kind}> poison, <{LANES} x i32> zeroinitializer"
            )
        elif rest:
            lanes = ", ".join(f"i32 {min(k, rest - 1)}" for k in range(LANES))
            value = self.line(
                f"shufflevector <{rest} x {kind}> {value}, <{rest} x {kind}> poison, <{LANES} x i32> <{lanes}>"
            )
        if o.dtype == BOOL:
            value = self._truth(value, f"<{LANES} x i8>", "zeroinitializer", f"{EIGHT}")
        return value

    def _write(self, o: Operand, value: str, i: str, rest: int) -> None:
        kind, count = _memory(o), rest or LANES
        if o.dtype == BOOL:
            is_true = self.line(f"fcmp une {EIGHT} {value}, zeroinitializer")
            value = self.line(f"zext <{LANES} x i1> {is_true} to <{LANES} x i8>")
        if rest == 1:
            value = self.line(f"extractelement <{LANES} x {kind}> {value}, i64 0")
        elif rest:
            lanes = ", ".join(f"i32 {k}" for k in range(rest))
            value = self.line(
                f"shufflevector <{LANES} x {kind}> {value}, <{LANES} x {kind}> poison, <{rest} x i32> <{lanes}>"
            )
        stored = kind if rest == 1 else f"<{count} x {kind}>"
        self.store(stored, value, self._place(o, i), f", align {o.dtype.itemsize}")

    # Reductions. The state of a sum is NumPy's eight partial sums, which start from -0.0, the neutral element. The
    # state of a maximum or minimum is eight partial ones, and a vector that is NaN where an element was: the comparison
    # of two numbers would lose the NaN.

    def _initial_state(self, name: str, operand: Operand, before: str) -> list[str]:
        return [constant_vector("-0.0")] if name == "add" else [self.spread(before), "zeroinitializer"]

    def _fold(self, name: str, state: list[str], value: str) -> list[str]:
        if name == "add":
            return [self.added(state[0], value)]
        is_nan = self.line(f"fcmp uno {EIGHT} {value}, {value}")
        nan = self.line(f"select <{LANES} x i1> {is_nan}, {EIGHT} {value}, {EIGHT} {state[1]}")
        return [self._select_extreme(name, EIGHT, value, state[0]), nan]

    def _select_extreme(self, name: str, kind: str, x: str, y: str) -> str:
        is_first = self.line(f"fcmp {_EXTREMES[name]} {kind} {x}, {y}")
        return self.line(f"select {kind.replace('double', 'i1')} {is_first}, {kind} {x}, {kind} {y}")

    def _final_extreme(self, name: str, vector: str, nan: str) -> str:
        lanes = [self.line(f"extractelement {EIGHT} {vector}, i64 {k}") for k in range(LANES)]
        while len(lanes) > 1:
            lanes = [self._select_extreme(name, "double", *lanes[k : k + 2]) for k in range(0, len(lanes), 2)]
        is_nan = self.line(f"fcmp uno {EIGHT} {nan}, {nan}")
        known = self.line(f"bitcast <{LANES} x i1> {is_nan} to i{LANES}")
        found = self.line(f"icmp ne i{LANES} {known}, 0")
        return self.line(f"select i1 {found}, double 0x7FF8000000000000, double {lanes[0]}")

    def _pairwise_sum(self, parts: list[str], length: int) -> str:
        """Add the sums of a row's blocks in NumPy's order, which splits the row into halves."""
        if len(parts) == 1:
            return parts[0]
        first = _half(length)
        count = len(_halves(first))
        left, right = self._pairwise_sum(parts[:count], first), self._pairwise_sum(parts[count:], length - first)
        return self.added(left, right, "double")


def _loaded_pointer(result: str, table: str, i: int) -> list[str]:
    """Return IR that loads an entry of a table of pointers."""
    return [f"  {result}.at = getelementptr ptr, ptr {table}, i64 {i}", f"  {result} = load ptr, ptr {result}.at"]


def _memory(o: Operand) -> str:
    """Return the IR type of an operand's elements in memory."""
    return "i8" if o.dtype == BOOL else "double"


def _parts(outs: Iterable[Operand], state: dict[Operand, list[str]]) -> list[tuple[str, str]]:
    """Return the values of several reductions' state as one list, with their IR type."""
    return [(EIGHT, part) for out in outs for part in state[out]]


def _split(outs: Iterable[Operand], state: dict[Operand, list[str]], parts: list[str]) -> dict[Operand, list[str]]:
    """Split a list of values by reduction, with as many for each as in ``state``; the inverse of :func:`_parts`."""
    rest = iter(parts)
    return {out: [next(rest) for _ in state[out]] for out in outs}


def _half(length: int) -> int:
    return length // 2 // 8 * 8


def _halves(length: int) -> list[int]:
    """Return the ends of the blocks into which NumPy's pairwise summation splits a row."""
    if length <= _PAIRWISE:
        return [length]
    first = _half(length)
    return [*_halves(first), *[first + end for end in _halves(length - first)]]

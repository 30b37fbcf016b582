"""Groups that have run for long: their elementwise operations and reductions compiled by LLVM, several as one loop.

A loop of a ufunc reads its operands from the cache and writes its result there. Several as one loop keep what is
between them in registers, and the rows of a matrix cost no call each. LLVM takes some 20 ms for a group, so that it
pays for groups that run often or long. Only full tiles are compiled, whose sizes are known when the code is written;
the last tile, where it is shorter, goes on as before. Each element has the bits of NumPy's loops, and sums their order.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from . import tile_run, tile_source, tile_sums
from .code import BOOL, FLOATS
from .instructions import OPERATIONS
from .machine import Machine
from .machine_parts import INTRINSICS
from .tile_plan import COLUMN, FULL, ONE, PRODUCT, REPEATED, ROW, SPREAD, Instruction, Operand, Written

_ARITHMETIC = (
    "add", "subtract", "multiply", "divide", "negative", "absolute", "sqrt", "sign", "maximum", "minimum", "fmax",
    "fmin", "floor", "ceil", "trunc", "rint",
)  # fmt: skip
_QUESTIONS = (
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not", "isnan", "isinf", "isfinite",
)  # fmt: skip
"""Ufuncs whose loops are written here by the source of the machine's instruction of that name: numbers, truth."""

_PAIRWISE = 128
"""Elements of a sum that NumPy does not halve."""


class _Space(NamedTuple):
    """A loop over rows of so many elements.

    Attributes:
        vectors: the kinds of operands that have a number for each element, first that of results.
        scalar: the kind of those with a number for each row.
    """

    rows: int
    length: int
    vectors: tuple[str, ...]
    scalar: str


def compiled(plan: tile_run.Plan, written: Written, machine: Machine) -> tile_run.Plan:
    """The plan with functions in the place of those instructions for full tiles that can be compiled."""
    code, texts = written.code, []
    words = plan.words[tile_source.HEAD :].reshape(len(code), tile_source.WORDS)
    once = int(plan.words[4])  # those that are done for a thread's first tile alone, which come first
    parts = list(_segments(written, once, machine))
    for i, (start, end, space) in enumerate(parts):
        later = {o for x, _ in code[end:] for o in x.operands[:-1]}
        texts.append(_Function(f"part{i}", space, code[start:end], later, plan.table, machine).text())
    if not parts:
        return plan
    engine, _ = machine.compiled("\n".join([*_DECLARED, *texts]), "part0", level=1)
    pieces, at = [], 0
    for i, (start, end, _) in enumerate(parts):
        call = np.zeros((1, tile_source.WORDS), np.int64)  # of no operands: it finds the addresses in the room
        call[0, [0, 3]] = engine.get_function_address(f"part{i}"), 1
        pieces += [words[at:start], call]
        at = end
    full = np.concatenate([*pieces, words[at:]])
    head = [*plan.words[:3], len(full), once, len(full), len(full) + len(code)]
    return plan._replace(words=np.concatenate([head, full.ravel(), words.ravel()]), held=engine)


@functools.cache
def _sources(machine: Machine) -> dict[Any, str]:
    """LLVM's source of elementwise loops, as of :class:`.Operation`, by the loops' addresses."""
    found: dict[Any, str] = {}
    double = FLOATS[0]
    for name in (*_ARITHMETIC, *_QUESTIONS):
        ufunc = getattr(np, name)
        for given, out in ((double, double),) if name in _ARITHMETIC else ((double, BOOL), (BOOL, BOOL)):
            found.setdefault(tile_run.loop(ufunc, *[given] * ufunc.nin, out), OPERATIONS[name].source)
    found[tile_run.loop(np.positive, double, double)] = OPERATIONS["copy"].source
    found[machine.address("where8"), 0] = OPERATIONS["where"].source
    for exponent in tile_source.POWERS:
        found[machine.address(f"power{exponent}.tile"), 0] = tile_source.power(exponent)
    found.pop(None, None)  # of functions that NumPy has none of those for
    return found


@functools.cache
def _reductions(machine: Machine) -> dict[Any, str]:
    """The names of the loops of reductions by their addresses."""
    loops = {name: tile_run.loop(getattr(np, name), *FLOATS[:1] * 3) for name in ("add", "maximum", "minimum")}
    if loops["add"] is not None:
        loops["add"] = machine.address("sum.tile"), loops["add"][0]
    return {loop: name for name, loop in loops.items()}


# Which instructions go together.


def _segments(written: Written, once: int, machine: Machine) -> Iterator[tuple[int, int, _Space]]:
    """The first instruction of each function, the one after its last, and its loop."""
    rows, width, code = written.rows, written.width, written.code
    spaces = [_Space(1, rows * width, (FULL,), ONE)]
    if width > 1:
        spaces.append(_Space(1, rows, (COLUMN,), ONE))
    if width >= REPEATED:
        spaces.append(_Space(rows, width, (FULL, ROW), COLUMN))
    at = once
    while at < len(code):
        start, found, work = at, spaces, 0
        while at < len(code):
            within = [space for space in found if _fits(code[at][0], space, machine)]
            if not within:
                break
            found = within
            work += any(o.kind in (FULL, COLUMN) for o in code[at][0].operands[:-1])
            at += 1
        # One instruction alone is no faster here, but for one that is a call for each row.
        if at > start and work > (found[0].rows == 1):
            yield start, at, found[0]
        at = max(at, start + 1)


def _fits(x: Instruction, space: _Space, machine: Machine) -> bool:
    *given, out = x.operands
    if out in given:
        kinds = [o.kind for o in given if o != out]
        return x.loop in _reductions(machine) and out.kind == space.scalar and kinds == [space.vectors[0]]
    if x.loop not in _sources(machine) or x.over in (PRODUCT, SPREAD):
        return False
    known = {space.scalar, ONE, *(space.vectors if out.kind == space.vectors[0] else ())}
    return out.kind in (space.vectors[0], space.scalar) and all(o.kind in known for o in given)


# LLVM's text.

_LANES = 8


# LLVM compares eight numbers by an instruction that is invalid of NaN, unless it is told to compare quietly, as NumPy.
_QUIET = r"""call <8 x i1> @llvm.experimental.constrained.fcmp.v8f64(
  \2 \3, \2 \4, metadata !"\1", metadata !"fpexcept.ignore")"""
_QUIET_TYPE = "<8 x i1> @llvm.experimental.constrained.fcmp.v8f64(<8 x double>, <8 x double>, metadata, metadata)"


def _wide(source: str) -> str:
    """The source of one number as that of eight."""
    source = re.sub(r"\b(double|i1|i64)\b", rf"<{_LANES} x \1>", source).replace(".f64(", f".v{_LANES}f64(")
    source = re.sub(r"fcmp (o[lg][te]) (<[^>]*>) (\S+), (.*)", _QUIET, source)
    return re.sub(r"(?<![\w.%])(-?\d+\.\d+|0x[0-9A-F]+)", lambda found: _same(found[0]), source)


def _same(number: str) -> str:
    return f"<{', '.join([f'double {number}'] * _LANES)}>"


_DECLARED = [tile_sums.JOINED, f"declare {_QUIET_TYPE}"]
for _line in (*INTRINSICS, "declare double @llvm.fma.f64(double, double, double)"):
    _DECLARED += [_line, _wide(_line)]

_EXTREMES = {"maximum": "ogt", "minimum": "olt"}


class _Function:
    """The function of a segment while it is written.

    It is called as a ufunc's loop is, with the room's address behind those of operands: there stand the addresses of
    the tile's operands, by their rows in the plan's table.
    """

    def __init__(
        self,
        name: str,
        space: _Space,
        code: list[tuple[Instruction, list[int]]],
        later: set[Operand],
        table: np.ndarray,
        machine: Machine,
    ):
        self.name, self.space, self.table = name, space, table
        self.code = [x for x, _ in code]
        self.row = {o: row for x, rows in code for o, row in zip(x.operands, rows)}
        self.needed = {o for o in self.row if o in later or not table[self.row[o]][1]}
        """Operands that are read from memory after they are written."""
        self.sources, self.reductions = _sources(machine), _reductions(machine)
        self.bases: dict[int, str] = {}
        self.lines: list[str] = []
        self.globals: list[str] = []
        self.scalars: dict[Operand, str] = {}
        self.count = 0
        self.here = "begin"
        """The block that is being written."""

    def text(self) -> str:
        phases = self._phases()
        is_rows = self.space.rows > 1
        if is_rows:
            self.lines += ["  br label %row"]
            self._block("row")
            self.lines.append("  %r = phi i64 [0, %begin], [%r.next, %row.end]")
            self.lines.append(f"  %first = mul i64 %r, {self.space.length}")
        for phase in phases:
            self._phase(phase)
        if is_rows:
            self.lines.append("  br label %row.end")
            self._block("row.end")
            self.lines += ["  %r.next = add i64 %r, 1", f"  %r.more = icmp slt i64 %r.next, {self.space.rows}"]
            self.lines.append("  br i1 %r.more, label %row, label %end")
            self._block("end")
        head = [*self.globals, f"define void @{self.name}(ptr %arguments, ptr %count, ptr %steps, ptr %data) {{"]
        head += ["entry:", f"  %room = ptr %arguments[{tile_source.OPERANDS}]"]
        head += [f"  {base} = ptr %room[{row}]" for row, base in self.bases.items()]
        head += ["  br label %begin", "begin:"]
        return "\n".join([*head, *self.lines, "  ret void", "}", ""])

    def _phases(self) -> list[list[Instruction]]:
        """The instructions, in parts of which none reads what another of its part reduces a row to."""
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

    # Lines.

    def _line(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %x{self.count} = {text}")
        return f"%x{self.count}"

    def _label(self) -> str:
        self.count += 1
        return f"at{self.count}"

    def _block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.here = label

    def _computed(self, source: str, operands: list[str]) -> str:
        self.count += 1
        result = f"%x{self.count}"
        text = source.format(r=result, t=f"{result}.", **dict(zip("xyz", operands)))
        self.lines += [f"  {line}" for line in text.splitlines() if line]
        return result

    # Numbers for a row, which are there until the row's end.

    def _base(self, row: int) -> str:
        return self.bases.setdefault(row, f"%b{row}")

    def _scalar(self, o: Operand) -> str:
        """The number that an operand has for the row."""
        if o not in self.scalars:
            if isinstance(o.value, bytes):
                number = float(np.frombuffer(o.value, o.dtype)[0])
                self.scalars[o] = f"0x{struct.pack('>d', number).hex().upper()}"
            elif o.dtype == BOOL:
                self.scalars[o] = self._truth(self._line(f"load i8, ptr {self._address(o)}"), "i8", "0", "double")
            else:
                self.scalars[o] = self._line(f"load double, ptr {self._address(o)}")
        return self.scalars[o]

    def _address(self, o: Operand) -> str:
        base = self._base(self.row[o])
        if o.kind != COLUMN or self.space.rows == 1:
            return base
        return self._line(f"getelementptr {_memory(o)}, ptr {base}, i64 %r")

    def _write_scalar(self, o: Operand, value: str) -> None:
        self.scalars[o] = value
        if o in self.needed:
            if o.dtype == BOOL:
                value = self._line(f"zext i1 {self._line(f'fcmp une double {value}, 0.0')} to i8")
            self.lines.append(f"  store {_memory(o)} {value}, ptr {self._address(o)}")

    def _truth(self, value: str, kind: str, zero: str, out: str) -> str:
        """A truth value of memory as the number that sources take for it."""
        is_true = self._line(f"icmp ne {kind} {value}, {zero}")
        return self._line(f"uitofp {out.replace('double', 'i1')} {is_true} to {out}")

    # A part: its numbers for the row, then a loop over the row's elements, then its sums.

    def _phase(self, phase: list[Instruction]) -> None:
        queue: list[tuple[Instruction, dict[Operand, str]]] = []
        results: dict[Operand, tuple[str, Operand, str]] = {}
        # A room may be another's, once nobody reads it. So a number of the row is read here where the first
        # instruction asks for it, not when the loop is written.
        for x in phase:
            *given, out = x.operands
            scalars = {o: self._scalar(o) for o in given if o.kind not in self.space.vectors}
            if out in given:
                (operand,) = (o for o in given if o != out)
                results[out] = self.reductions[x.loop], operand, scalars[out]
            elif out.kind not in self.space.vectors:
                self._write_scalar(out, self._computed(self.sources[x.loop], [scalars[o] for o in given]))
                continue
            queue.append((x, {o: self._spread(value) for o, value in scalars.items() if o != out}))
        if queue:
            for out, value in self._loop(queue, results).items():
                self._write_scalar(out, value)

    def _spread(self, number: str) -> str:
        """Eight times a number."""
        if not number.startswith("%"):
            return _same(number)
        one = self._line(f"insertelement <{_LANES} x double> poison, double {number}, i64 0")
        return self._line(
            f"shufflevector <{_LANES} x double> {one}, <{_LANES} x double> poison, <{_LANES} x i32> zeroinitializer"
        )

    def _loop(self, queue, results: dict[Operand, tuple[str, Operand, str]]) -> dict[Operand, str]:
        """Write a loop over a row; what it is reduced to."""
        length = self.space.length
        whole, rest = length // _LANES * _LANES, length % _LANES
        sums = [out for out, (name, *_) in results.items() if name == "add"]
        ends = _halves(length) if sums else [length]
        state = {out: self._begun(*results[out]) for out in results}
        parts: dict[Operand, list[str]] = {out: [] for out in sums}
        if whole and len(ends) == 1:
            state = self._elements(queue, results, state, "0", str(whole))
            parts = {out: [self._joined(state[out][0])] for out in sums}
        elif whole:
            state, parts = self._blocks(queue, results, state, sums, [*ends[:-1], whole])
        if rest:
            values = self._body(queue, str(whole), rest)
            for out, (name, operand, _) in results.items():
                if name == "add":
                    total = parts[out].pop() if parts[out] else "-0.0"
                    for i in range(rest):
                        x = self._line(f"extractelement <{_LANES} x double> {values[operand]}, i64 {i}")
                        total = self._line(f"fadd double {total}, {x}")
                    parts[out].append(total)
                else:
                    state[out] = self._reduced(name, state[out], values[operand])
        found = {}
        for out, (name, _, before) in results.items():
            if name == "add":
                found[out] = self._line(f"fadd double {before}, {self._added(parts[out], length)}")
            else:
                found[out] = self._extreme(name, *state[out])
        return found

    def _blocks(self, queue, results, state, sums, ends: list[int]):
        """Write the loop over blocks, each of whose sums is a part of the row's; the state after it, and the parts."""
        count, block, after, done = len(ends), self._label(), self._label(), self._label()
        name, kind = f"@{self.name}.{block}", f"[{len(ends) + 1} x i64]"
        self.globals.append(f"{name} = private constant {kind} [{', '.join(f'i64 {n}' for n in [0, *ends])}]")
        before = self.here
        rooms = {out: self._line(f"alloca double, i64 {count}") for out in sums}
        self.lines.append(f"  br label %{block}")
        self._block(block)
        i, following = f"%{block}.i", f"%{block}.next"
        self.lines.append(f"  {i} = phi i64 [0, %{before}], [{following}, %{after}]")
        kept = {out: parts for out, parts in state.items() if out not in sums}
        phis = {out: [f"%{block}.{self._label()}" for _ in parts] for out, parts in kept.items()}
        at = len(self.lines)
        first = self._line(f"load i64, ptr {self._line(f'getelementptr i64, ptr {name}, i64 {i}')}")
        self.lines.append(f"  {following} = add i64 {i}, 1")
        last = self._line(f"load i64, ptr {self._line(f'getelementptr i64, ptr {name}, i64 {following}')}")
        found = self._elements(queue, results, {**state, **phis}, first, last)
        self.lines[at:at] = [
            f"  {phi} = phi {_type_of(k)} [{start}, %{before}], [{end}, %{after}]"
            for out in kept
            for k, (phi, start, end) in enumerate(zip(phis[out], kept[out], found[out]))
        ]
        self.lines.append(f"  br label %{after}")
        self._block(after)
        for out in sums:
            place = self._line(f"getelementptr double, ptr {rooms[out]}, i64 {i}")
            self.lines.append(f"  store double {self._joined(found[out][0])}, ptr {place}")
        more = self._line(f"icmp slt i64 {following}, {count}")
        self.lines.append(f"  br i1 {more}, label %{block}, label %{done}")
        self._block(done)
        parts = {}
        for out in sums:
            places = [self._line(f"getelementptr double, ptr {rooms[out]}, i64 {k}") for k in range(count)]
            parts[out] = [self._line(f"load double, ptr {place}") for place in places]
        return found, parts

    def _elements(self, queue, results, state, first: str, last: str):
        """Write the loop from one element to another, eight at once; the state of reductions after it."""
        each, after, before = self._label(), self._label(), self.here
        self.lines.append(f"  br label %{each}")
        self._block(each)
        i, following = f"%{each}.i", f"%{each}.next"
        self.lines.append(f"  {i} = phi i64 [{first}, %{before}], [{following}, %{each}]")
        phis = {out: [f"%{each}.{self._label()}" for _ in parts] for out, parts in state.items()}
        at = len(self.lines)
        values = self._body(queue, i)
        found = {out: self._reduced(name, phis[out], values[x]) for out, (name, x, _) in results.items()}
        self.lines[at:at] = [
            f"  {phi} = phi {_type_of(k)} [{start}, %{before}], [{end}, %{each}]"
            for out in state
            for k, (phi, start, end) in enumerate(zip(phis[out], state[out], found[out]))
        ]
        self.lines.append(f"  {following} = add i64 {i}, {_LANES}")
        more = self._line(f"icmp slt i64 {following}, {last}")
        self.lines.append(f"  br i1 {more}, label %{each}, label %{after}")
        self._block(after)
        return found

    def _body(self, queue, i: str, rest: int = 0) -> dict[Operand, str]:
        """Write the instructions of eight elements, or of a row's last ones; their operands' and results' names."""
        values: dict[Operand, str] = {}
        for x, spread in queue:
            *given, out = x.operands
            for o in given:
                if o.kind in self.space.vectors and o not in values:
                    values[o] = self._loaded(o, i, rest)
            if out in given:
                continue
            operands = [values[o] if o in values else spread[o] for o in given]
            values[out] = self._computed(_wide(self.sources[x.loop]), operands)
            if out in self.needed:
                self._store(out, values[out], i, rest)
        return values

    def _place(self, o: Operand, i: str) -> str:
        base = self._base(self.row[o])
        if self.space.rows > 1 and o.kind != ROW:
            base = self._line(f"getelementptr {_memory(o)}, ptr {base}, i64 %first")
        return self._line(f"getelementptr {_memory(o)}, ptr {base}, i64 {i}")

    # The last elements of a row are fewer than eight. In the lanes behind them is the last one again, so that no
    # exception is raised there that is not of an element.
    def _loaded(self, o: Operand, i: str, rest: int) -> str:
        kind, count = _memory(o), rest or _LANES
        value = self._line(f"load <{count} x {kind}>, ptr {self._place(o, i)}, align {o.dtype.itemsize}")
        if rest:
            lanes = ", ".join(f"i32 {min(k, rest - 1)}" for k in range(_LANES))
            value = self._line(
                f"shufflevector <{rest} x {kind}> {value}, <{rest} x {kind}> poison, <{_LANES} x i32> <{lanes}>"
            )
        if o.dtype == BOOL:
            value = self._truth(value, f"<{_LANES} x i8>", "zeroinitializer", f"<{_LANES} x double>")
        return value

    def _store(self, o: Operand, value: str, i: str, rest: int) -> None:
        kind, count = _memory(o), rest or _LANES
        if o.dtype == BOOL:
            is_true = self._line(f"fcmp une <{_LANES} x double> {value}, zeroinitializer")
            value = self._line(f"zext <{_LANES} x i1> {is_true} to <{_LANES} x i8>")
        if rest:
            lanes = ", ".join(f"i32 {k}" for k in range(rest))
            value = self._line(
                f"shufflevector <{_LANES} x {kind}> {value}, <{_LANES} x {kind}> poison, <{rest} x i32> <{lanes}>"
            )
        self.lines.append(f"  store <{count} x {kind}> {value}, ptr {self._place(o, i)}, align {o.dtype.itemsize}")

    # Reductions. Of a sum eight partial ones, NumPy's, each from -0.0 on, which changes no number; of an extreme eight,
    # and where NaN was, which one comparison of two numbers loses.

    def _begun(self, name: str, operand: Operand, before: str) -> list[str]:
        return [_same("-0.0")] if name == "add" else [self._spread(before), "zeroinitializer"]

    def _reduced(self, name: str, state: list[str], value: str) -> list[str]:
        eight = f"<{_LANES} x double>"
        if name == "add":
            return [self._line(f"fadd {eight} {state[0]}, {value}")]
        is_nan = self._line(f"fcmp uno {eight} {value}, {value}")
        return [self._further(name, eight, value, state[0]), self._line(f"or <{_LANES} x i1> {state[1]}, {is_nan}")]

    def _further(self, name: str, kind: str, x: str, y: str) -> str:
        is_first = self._line(f"fcmp {_EXTREMES[name]} {kind} {x}, {y}")
        return self._line(f"select {kind.replace('double', 'i1')} {is_first}, {kind} {x}, {kind} {y}")

    def _joined(self, vector: str) -> str:
        return self._line(f"call double @joined(<{_LANES} x double> {vector})")

    def _extreme(self, name: str, vector: str, is_nan: str) -> str:
        lanes = [self._line(f"extractelement <{_LANES} x double> {vector}, i64 {k}") for k in range(_LANES)]
        while len(lanes) > 1:
            lanes = [self._further(name, "double", *lanes[k : k + 2]) for k in range(0, len(lanes), 2)]
        known = self._line(f"bitcast <{_LANES} x i1> {is_nan} to i{_LANES}")
        found = self._line(f"icmp ne i{_LANES} {known}, 0")
        return self._line(f"select i1 {found}, double 0x7FF8000000000000, double {lanes[0]}")

    def _added(self, parts: list[str], length: int) -> str:
        """The sum of the parts of a row's sum, as NumPy halves the row."""
        if len(parts) == 1:
            return parts[0]
        first = _half(length)
        count = len(_halves(first))
        left, right = self._added(parts[:count], first), self._added(parts[count:], length - first)
        return self._line(f"fadd double {left}, {right}")


def _memory(o: Operand) -> str:
    """The type of an operand's elements in memory."""
    return "i8" if o.dtype == BOOL else "double"


def _type_of(part: int) -> str:
    """The type of a part of a reduction's state."""
    return f"<{_LANES} x {('double', 'i1')[part]}>"


def _half(length: int) -> int:
    return length // 2 // 8 * 8


def _halves(length: int) -> list[int]:
    """The ends of the blocks in which NumPy adds a row."""
    if length <= _PAIRWISE:
        return [length]
    first = _half(length)
    return [*_halves(first), *[first + end for end in _halves(length - first)]]

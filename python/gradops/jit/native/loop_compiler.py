"""Loops that have run for long, compiled by LLVM: their instructions one after the other, without the machine.

The machine takes some 2.5 ns for an instruction, most of it to go to the next one. A loop's own code takes as long as
the processor does for its operations, but some 40 ms to compile, so that it pays for loops that run often or long. The
operations are those of the machine to the bit, and where it would end or NumPy would warn the replay is the same.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from . import machine_parts
from .emitter import FOLDS, OF_EXPONENTIALS, Emitter
from .instructions import CALLS, END, FAILED, LONG, NUMBERS, OPERATIONS, ROWS, SHORT, VECTOR
from .machine import Machine, exceptions

WORTH = 20_000_000
"""Instructions that the machine has run of a program's loops when they are compiled: some 50 ms."""

_NAMES = list(NUMBERS)


LONGEST = 32
"""Numbers of a vector whose operations are written one by one."""


MOST = 2000
"""Instructions of a loop that is compiled: LLVM takes a second for some ten thousand."""


class Instruction(NamedTuple):
    """An instruction: its first word's place, the words after that, and where the next one begins.

    Attributes:
        size: of one on vectors, else 0.
    """

    at: int
    name: str
    words: tuple[int, ...]
    size: int
    end: int


class Loop(NamedTuple):
    """A loop with those in it: its first word, and the one after its last."""

    start: int
    end: int
    body: list[Instruction]


def compiled(words: np.ndarray, template: np.ndarray, machine: Machine) -> Parts | None:
    """The code as a function of the memory's address; None where it has no loop that can be compiled."""
    code = decoded(words)
    found = _loops(code)
    if not found or any(x.name == "outside" for x in code):  # for which the machine waits for a kernel
        return None
    # All parts work on one memory, one after the other. Each clears the processor's flags when it begins, so the
    # exceptions of the whole are those of all parts together.
    parts: list[tuple[int, int]] = []
    held: list = []

    def by_machine(words: np.ndarray) -> None:
        held.append(np.append(words, END).astype(np.intc))
        parts.append((machine.address("run"), held[-1].ctypes.data))

    before = 0
    for loop in found:
        text = _text(loop, _extents(loop, code, template))
        if text is None:
            return None
        if loop.start > before:
            by_machine(words[before : loop.start])
        engine, address = machine.compiled(text, "loop")
        held.append(engine)
        parts.append((address, 0))
        before = loop.end
    if words[before] != END:
        by_machine(words[before:-1])
    held.append(table := np.array(parts, np.uint64))
    return Parts(machine, table, held)


class Parts:
    """The parts of a code as a function of the memory's address.

    Attributes:
        table: of the machine's ``parts``.
    """

    def __init__(self, machine: Machine, table: np.ndarray, held: list):
        self.table, self._held = table, held  # whose addresses are in the table
        self._run = functools.partial(machine.function("parts", 4), table.ctypes.data, len(table), machine.functions)

    def __call__(self, memory: int) -> int:
        return self._run(memory)


# Code.


def decoded(words: np.ndarray) -> list[Instruction]:
    code, at, found = words.tolist(), 0, []
    while code[at] != END:
        number = code[at]
        name, is_vector = _NAMES[number % VECTOR], number >= VECTOR
        size = LONG if is_vector else SHORT
        count = code[at + SHORT] if is_vector else 0
        end = at + size + (count if name == "gather" else 0)
        found.append(Instruction(at, name, tuple(code[at + 1 : end]), count, end))
        at = end
    return found


def _loops(code: list[Instruction]) -> list[Loop]:
    """The outermost loops; none where a branch around one would leave the code before it."""
    spans = [(x.at - x.words[1], x.at + SHORT) for x in code if x.name == "again"]
    outer = [a for a in spans if not any(b != a and b[0] <= a[0] and a[1] <= b[1] for b in spans)]
    for x in code:
        if x.name == "unless" and any(x.at < start < x.at + x.words[1] for start, _ in outer):
            return []
    return [Loop(start, end, [x for x in code if start <= x.at < end]) for start, end in outer]


def _extents(loop: Loop, code: list[Instruction], template: np.ndarray) -> list[tuple[int, int]] | None:
    """The cells that rows are read from and written to; None where positions are computed."""
    whole, counted = template.view(np.int64), {}
    # A loop counts from one constant to another, so the rows that its number names are known. A row at a position that
    # values give may be anywhere.
    for x in loop.body:
        if x.name == "again":
            counter, _, _, last = x.words
            begun = [y for y in code if y.name == "copy" and y.words[0] == counter and y.at < x.at]
            if begun:
                first = int(whole[begun[-1].words[1]])
                counted[counter] = min(first, last), max(first, last)
    found = []
    for x in loop.body:
        if x.name in ROWS:
            kind, base, _, counter, stride, count = _row(x)
            if counter not in counted:
                return None
            low, high = counted[counter]
            found.append((base + low * stride, base + high * stride + count))
    return found


def _row(x: Instruction) -> tuple[str, int, int, int, int, int]:
    """Of a load or store: which, the first row, the cells, that of the row's number, how far rows are apart, size."""
    kind, count = ROWS[x.name]
    out, a, counter, stride = x.words[:4]
    base, near = (a, out) if kind == "load" else (out, a)
    return kind, base, near, counter, x.words[5] if x.size else stride, x.size or count


# LLVM's text.

_TEXT = """
{functions}
define i32 @loop(ptr %code, ptr %memory, ptr %functions) {{
entry:
  %clear = load ptr, ptr %functions
  call i32 %clear(i32 {exceptions})
{before}
{body}
{after}
  %test = ptr %functions[1]
  %raised = call i32 %test(i32 {exceptions})
  ret i32 %raised
failed:
  ret i32 {failed}
}}
"""


class _Writing(Emitter):
    """The text of one loop while it is written."""

    def __init__(self, extents: list[tuple[int, int]] | None):
        super().__init__()
        self.extents = extents
        self.registers: dict[int, bool] = {}
        """The cells that are LLVM's to keep where it will, True for those that are written."""
        self._first = 0

    def cell(self, cell, is_written: bool = False) -> str:
        # A cell in a variable of its own is one that LLVM keeps in a register. That is right only for cells that
        # nothing reaches by a computed address: a row that was stored to memory would leave the variable with its old
        # value. Where it is not known what rows reach, there are no variables.
        if self.extents is not None and not any(start <= cell < end for start, end in self.extents):
            self.registers[cell] = self.registers.get(cell, False) or is_written
            return f"%r{cell}"
        return super().cell(cell)

    def write(self, cell, value: str, kind: str = "double") -> None:
        super().write(cell, value, kind)
        self.sums = {cells: found for cells, found in self.sums.items() if cell not in cells}

    def is_kept(self, cells) -> bool:
        return self.registers.keys() >= {*cells}

    def target(self, words) -> str:
        return f"at{self._first + words}"

    def instruction(self, x: Instruction) -> bool:
        """Write an instruction; False where it cannot be."""
        self._first = x.at
        if not x.size:
            self.write_short(x.name, x.words)
            return True
        out, a, b, c, count, *strides = x.words[: LONG - 1]
        if x.name in OPERATIONS or x.name in CALLS:
            for i in range(count):
                operands = (cell + stride * i for cell, stride in zip((a, b, c), strides))
                self.write_elementwise(x.name, [out + i, *operands])
        elif x.name == "gather":
            for i, cell in enumerate(x.words[LONG - 1 :]):
                self.write(out + i, self.read(cell))
        elif x.name == "sum":
            self.write(out, self._sum([self.read(a + strides[0] * i) for i in range(count)]))
        elif x.name in ROWS or x.name in FOLDS or x.name in OF_EXPONENTIALS or x.name == "dot":
            self.write_long(x.name, x.words)
        else:
            return False
        return True

    def _sum(self, values: list[str]) -> str:
        """The sum as NumPy's: from eight numbers on in eight parts, and added to 0.0."""
        whole = len(values) // 8 * 8
        parts = [self.halved([self._added(values[i:whole:8]) for i in range(8)])] if whole else []
        return self._added([*parts, *values[whole:], "0.0"])

    def _added(self, values: list[str]) -> str:
        return functools.reduce(lambda total, x: self.line(f"fadd double {total}, {x}"), values)


def _text(loop: Loop, extents: list[tuple[int, int]] | None) -> str | None:
    writing = _Writing(extents)
    if sum(x.size or 1 for x in loop.body) > MOST:
        return None
    from_elsewhere = {x.at + {"again": -1, "unless": 1}[x.name] * x.words[1] for x in loop.body if x.name in _JUMPS}
    for x in loop.body:
        writing.go(f"at{x.at}")
        writing.begin(f"at{x.at}")
        if x.at in from_elsewhere:
            writing.sums.clear()
        if x.size > LONGEST or not writing.instruction(x):
            return None
    writing.go(f"at{loop.end}")
    writing.begin(f"at{loop.end}")
    before, after = [], []
    for cell, is_written in writing.registers.items():
        before += [f"  %r{cell} = alloca double", f"  %p{cell} = getelementptr double, ptr %memory, i64 {cell}"]
        before += [f"  %f{cell} = load double, ptr %p{cell}", f"  store double %f{cell}, ptr %r{cell}"]
        if is_written:
            after += [f"  %l{cell} = load double, ptr %r{cell}", f"  store double %l{cell}, ptr %p{cell}"]
    body, mask = "\n".join(writing.lines), sum(exceptions().values())
    return _TEXT.format(
        functions=machine_parts.text(mask) if "ptr %functions)" in body else "\n".join(machine_parts.INTRINSICS),
        exceptions=mask,
        before="\n".join(before),
        body=body,
        after="\n".join(after),
        failed=FAILED,
    )


_JUMPS = frozenset(("again", "unless"))

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
from .instructions import CALLS, END, FAILED, FUNCTION_NUMBERS, LONG, NUMBERS, OPERATIONS, ROWS, SHORT, VECTOR
from .llvm import Text
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
        engine, address = _by_llvm(text, machine)
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
        self._run = functools.partial(machine.parts, table.ctypes.data, len(table), machine.functions)

    def __call__(self, memory: int) -> int:
        return self._run(memory)


# By its text: programs of the same shape, as of a function that is compiled again for other data, share code.
@functools.lru_cache(maxsize=256)
def _by_llvm(text: str, machine: Machine) -> tuple[object, int]:
    """The owner of a loop's code, and its address."""
    return machine.compiled(text, "loop")


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
  br label %at{start}
{body}
at{end}:
{after}
  %test = ptr %functions[1]
  %raised = call i32 %test(i32 {exceptions})
  ret i32 %raised
failed:
  ret i32 {failed}
}}
"""


class _Writing(Text):
    """The text of one loop while it is written."""

    def __init__(self, extents: list[tuple[int, int]] | None):
        super().__init__()
        self.extents = extents
        self.registers: dict[int, bool] = {}
        """The cells that are LLVM's to keep where it will, True for those that are written."""
        self.sums: dict[tuple[int, ...], tuple[str, str]] = {}
        """By the cells of numbers the largest, and the sum of the exponentials of what they are less than it."""

    def cell(self, cell: int, is_written: bool = False) -> str:
        """The pointer to a cell."""
        # A cell in a variable of its own is one that LLVM keeps in a register. That is right only for cells that
        # nothing reaches by a computed address: a row that was stored to memory would leave the variable with its old
        # value. Where it is not known what rows reach, there are no variables.
        if self.extents is not None and not any(start <= cell < end for start, end in self.extents):
            self.registers[cell] = self.registers.get(cell, False) or is_written
            return f"%r{cell}"
        return self.at("%memory", cell)

    def read(self, cell: int, kind: str = "double") -> str:
        return self.line(f"load {kind}, ptr {self.cell(cell)}")

    def write(self, cell: int, value: str, kind: str = "double") -> None:
        pointer = self.cell(cell, is_written=True)
        self.sums = {cells: found for cells, found in self.sums.items() if cell not in cells}
        self.store(kind, value, pointer)

    def row(self, base: int, counter: int, stride: int) -> str:
        """The pointer to a row."""
        far = self.number("mul", self.read(counter, "i64"), stride)
        return self.at("%memory", self.number("add", far, base))


def _text(loop: Loop, extents: list[tuple[int, int]] | None) -> str | None:
    writing = _Writing(extents)
    if sum(x.size or 1 for x in loop.body) > MOST:
        return None
    from_elsewhere = {x.at + {"again": -1, "unless": 1}[x.name] * x.words[1] for x in loop.body if x.name in _JUMPS}
    for x in loop.body:
        writing.lines.append(f"at{x.at}:")
        if x.at in from_elsewhere:
            writing.sums.clear()
        if x.size > LONGEST or not _write(writing, x):
            return None
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
        start=loop.start,
        end=loop.end,
        failed=FAILED,
    )


def _write(writing: _Writing, x: Instruction) -> bool:
    """Write an instruction; False where it cannot be."""
    out, a, b, c = x.words[:4]
    lines, onward = writing.lines, f"  br label %at{x.end}"
    if x.name in OPERATIONS or x.name in CALLS:
        for i in range(x.size or 1):
            sa, sb, sc = x.words[5:8] if x.size else (0, 0, 0)
            writing.write(out + i, _result(writing, x, [a + sa * i, b + sb * i, c + sc * i]))
    elif x.name == "gather":
        for i, cell in enumerate(x.words[LONG - 1 :]):
            writing.write(out + i, writing.read(cell))
    elif x.name == "dot":
        total = "0.0"
        for i in range(x.size):
            operands = [writing.read(first + stride * i) for first, stride in zip((a, b), x.words[5:7])]
            product = writing.line(f"fmul double {operands[0]}, {operands[1]}")
            total = writing.line(f"fadd double {total}, {product}")
        writing.write(out, total)
    elif x.name in _FOLDS:
        operands = [writing.read(a + x.words[5] * i) for i in range(x.size)]
        writing.write(out, _sum(writing, operands) if x.name == "sum" else _folded(writing, _FOLDS[x.name], operands))
    elif x.name in _OF_EXPONENTIALS:
        _write_of_exponentials(writing, x, tuple(a + x.words[5] * i for i in range(x.size)))
    elif x.name in ROWS:
        kind, base, near, counter, stride, count = _row(x)
        far = writing.row(base, counter, stride)
        places = [writing.at(far, i) for i in range(count)]
        if kind == "load":
            values = [writing.line(f"load double, ptr {place}") for place in places]
            for i, value in enumerate(values):
                writing.write(near + i, value)
        else:
            for i, value in enumerate([writing.read(near + i) for i in range(count)]):
                writing.store("double", value, places[i])
    elif x.name == "again":
        number = writing.read(out, "i64")
        is_last = writing.line(f"icmp eq i64 {number}, {c}")
        lines += [f"  br i1 {is_last}, label %at{x.end}, label %back{x.at}", f"back{x.at}:"]
        writing.write(out, writing.line(f"add i64 {number}, {b}"), "i64")
        onward = f"  br label %at{x.at - a}"
    elif x.name in ("unless", "require"):
        holds = writing.line(f"fcmp une double {writing.read(out)}, 0.0")
        onward = f"  br i1 {holds}, label %at{x.end}, label %{'failed' if x.name == 'require' else f'at{x.at + a}'}"
    elif x.name == "index":
        number = writing.read(a, "i64")
        is_negative = writing.line(f"icmp slt i64 {number}, 0")
        end = writing.line(f"select i1 {is_negative}, i64 {b}, i64 0")
        at = writing.line(f"add i64 {number}, {end}")
        writing.write(out, at, "i64")
        is_inside = writing.line(f"icmp ult i64 {at}, {b}")
        onward = f"  br i1 {is_inside}, label %at{x.end}, label %failed"
    else:
        return False
    lines.append(onward)
    return True


_FOLDS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _sum(writing: _Writing, operands: list[str]) -> str:
    """The sum as NumPy's: from eight numbers on in eight parts, and added to 0.0."""
    whole = len(operands) // 8 * 8
    parts = [_folded(writing, "add", operands[i:whole:8]) for i in range(8)] if whole else []
    while len(parts) > 1:
        parts = [_folded(writing, "add", parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return _folded(writing, "add", [_folded(writing, "add", [*parts, *operands[whole:]]), "0.0"])


def _folded(writing: _Writing, name: str, operands: list[str]) -> str:
    source = OPERATIONS[name].source
    return functools.reduce(lambda total, x: writing.computed(source, (total, x)), operands)


def _result(writing: _Writing, x: Instruction, cells: list[int]) -> str:
    """The result of an operation on cells; a call has the number of its function after them."""
    if x.name in OPERATIONS:
        operation = OPERATIONS[x.name]
        return writing.computed(operation.source, [writing.read(cell) for cell in cells[: operation.operands]])
    count = int(x.name[-1])
    given = ", ".join(f"double {writing.read(cell)}" for cell in cells[:count])
    function = _function(writing, x.words[1 + count])
    if x.name.startswith("scipy"):
        return writing.line(f"call double @{x.name}({given}, ptr {function}, ptr %functions)")
    return writing.line(f"call double {function}({given})")


def _function(writing: _Writing, number: int) -> str:
    """The address of a function that the machine calls."""
    return writing.line(f"ptr %functions[{number}]")


_JUMPS = frozenset(("again", "unless"))

_OF_EXPONENTIALS = frozenset(("logsumexp", "softmax", "log_softmax"))


def _write_of_exponentials(writing: _Writing, x: Instruction, cells: tuple[int, ...]) -> None:
    """Write one of :data:`_OF_EXPONENTIALS`, operation by operation as the machine's function of the name."""
    line, out = writing.line, x.words[0]
    operands = [writing.read(cell) for cell in cells]
    known = writing.sums.get(cells) if x.name != "softmax" else None
    top = known[0] if known else _folded(writing, "maximum", operands)
    if x.name == "logsumexp":
        writing.write(out, top)
        size = line(f"call double @llvm.fabs.f64(double {top})")
        is_finite = line(f"fcmp olt double {size}, 0x7FF0000000000000")
        writing.lines += [f"  br i1 {is_finite}, label %finite{x.at}, label %at{x.end}", f"finite{x.at}:"]
    exp, log = (_function(writing, FUNCTION_NUMBERS[name]) for name in ("exp", "log"))
    less = [line(f"fsub double {operand}, {top}") for operand in operands]
    powers = [] if known else [line(f"call double {exp}(double {each})") for each in less]
    total = known[1] if known else functools.reduce(lambda s, power: line(f"fadd double {s}, {power}"), powers)
    if x.name == "softmax":
        for i, power in enumerate(powers):
            writing.write(out + i, line(f"fdiv double {power}, {total}"))
        if writing.registers.keys() >= {*cells}:
            writing.sums[cells] = top, total
        return
    logarithm = line(f"call double {log}(double {total})")
    if x.name == "logsumexp":
        writing.write(out, line(f"fadd double {logarithm}, {top}"))
        return
    for i, each in enumerate(less):
        writing.write(out + i, line(f"fsub double {each}, {logarithm}"))

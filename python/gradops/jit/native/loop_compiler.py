"""Compile hot loops of bytecode to machine code with LLVM.

:class:`.run.Run` passes its bytecode to :func:`compiled` once its loops have executed enough instructions, and from
then on calls the returned :class:`Parts` instead of the interpreter.

The interpreter takes about 2.5 ns for an instruction, most of it for dispatch. Compiled loops have no dispatch and keep
cells in registers, but take about 40 ms to compile. Results have the same bits. A compiled loop ends early in the same
cases as the interpreter and raises the same floating-point exceptions, so the reference executor takes over as before.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

import numpy as np

from .emitter import Emitter, Instruction, row
from .instructions import END, FAILED, LONG, NUMBERS, ROWS, SHORT, VECTOR
from .machine import Machine

WORTH = 20_000_000
"""The number of instructions after which loops are compiled; the interpreter takes about 50 ms for them."""

_NAMES = list(NUMBERS)


LONGEST = 32
"""The longest vector in a compiled loop, as vector instructions are unrolled."""


MOST = 2000
"""The longest loop that is compiled, in unrolled instructions; LLVM takes a second for ten thousand."""


class Loop(NamedTuple):
    """An outermost loop, with the loops inside it.

    Attributes:
        start, end: the index of its first word, and of the word after its last.
        body: its instructions.
    """

    start: int
    end: int
    body: list[Instruction]


def compiled(words: np.ndarray, template: np.ndarray, machine: Machine) -> Parts | None:
    """Compile the loops of bytecode; return None if it has no loop, or one that cannot be compiled.

    Args:
        words: the bytecode, with its end marker.
        template: the initial memory.
        machine: compiles the loops, and interprets the code between them.
    """
    code = decoded(words)
    found = _loops(code)
    if not found or any(x.name == "outside" for x in code):  # only the interpreter can wait for a kernel
        return None
    # All parts work on the same memory, in order. Each part clears the processor's flags first, so the exceptions of
    # the parts are combined.
    parts: list[tuple[int, int]] = []
    held: list = []

    def add_interpreted(words: np.ndarray) -> None:
        held.append(np.append(words, END).astype(np.intc))
        parts.append((machine.address("run"), held[-1].ctypes.data))

    before = 0
    for loop in found:
        text = _text(loop, _extents(loop, code, template), machine)
        if text is None:
            return None
        if loop.start > before:
            add_interpreted(words[before : loop.start])
        engine, address = machine.compiled(text, "loop")
        held.append(engine)
        parts.append((address, 0))
        before = loop.end
    if words[before] != END:
        add_interpreted(words[before:-1])
    held.append(table := np.array(parts, np.uint64))
    return Parts(machine, table, held)


class Parts:
    """Bytecode with compiled loops: a function of the memory's address that returns the exceptions raised.

    Attributes:
        table: the table that the machine's function ``parts`` takes.
    """

    def __init__(self, machine: Machine, table: np.ndarray, held: list):
        self.table, self._held = table, held  # `held` keeps alive what the table points to
        self._run = functools.partial(machine.function("parts", 4), table.ctypes.data, len(table), machine.functions)

    def __call__(self, memory: int) -> int:
        return self._run(memory)


# Bytecode.


def decoded(words: np.ndarray) -> list[Instruction]:
    """Decode bytecode up to its end marker."""
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
    """Return the outermost loops; none if a branch jumps over one, from interpreted code before it."""
    spans = [(x.at - x.words[1], x.at + SHORT) for x in code if x.name == "again"]
    outer = [a for a in spans if not any(b != a and b[0] <= a[0] and a[1] <= b[1] for b in spans)]
    for x in code:
        if x.name == "unless" and any(x.at < start < x.at + x.words[1] for start, _ in outer):
            return []
    return [Loop(start, end, [x for x in code if start <= x.at < end]) for start, end in outer]


def _extents(loop: Loop, code: list[Instruction], template: np.ndarray) -> list[tuple[int, int]] | None:
    """Return the ranges of cells that loads and stores reach; None if one uses a computed index."""
    whole, counted = template.view(np.int64), {}
    # A loop counts from one constant to another, so the rows that its counter selects are known. A computed index may
    # select any row.
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
            kind, base, _, counter, stride, count = row(x)
            if counter not in counted:
                return None
            low, high = counted[counter]
            found.append((base + low * stride, base + high * stride + count))
    return found


# LLVM IR.

_TEXT = """
define i32 @loop(ptr %code, ptr %memory, ptr %functions) {{
entry:
  %test.p = getelementptr ptr, ptr %functions, i64 1
  %mask.p = getelementptr ptr, ptr %functions, i64 2
  %clear = load ptr, ptr %functions
  %test = load ptr, ptr %test.p
  %mask = load i64, ptr %mask.p
  %exceptions = trunc i64 %mask to i32
  call i32 %clear(i32 %exceptions)
{before}
{body}
{after}
  %raised = call i32 %test(i32 %exceptions)
  ret i32 %raised
failed:
  ret i32 {failed}
}}
"""


def _text(loop: Loop, extents: list[tuple[int, int]] | None, machine: Machine) -> str | None:
    """Return the IR of a loop; None if the loop is too long or has an unsupported instruction."""
    writing = Emitter(extents)
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
    # The machine's own functions are in another module, so a loop calls their addresses.
    body = re.sub(
        r"@(?!llvm)(\w+)\(",
        lambda called: f"inttoptr (i64 {machine.address(called[1])} to ptr)(",
        "\n".join(writing.lines),
    )
    return _TEXT.format(
        before="\n".join(before),
        body=body,
        after="\n".join(after),
        failed=FAILED,
    )


_JUMPS = frozenset(("again", "unless"))

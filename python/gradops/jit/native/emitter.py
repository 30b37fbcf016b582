"""Emit LLVM IR for the instructions of compiled loops.

:mod:`.loop_compiler` decodes the bytecode. The words of an instruction are known, and a vector's elements are unrolled.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from .instructions import CALLS, FUNCTION_NUMBERS, LONG, OPERATIONS, ROWS
from .llvm import Text
from .machine import meaning

FOLDS = {"prod": "multiply", "max": "maximum", "min": "minimum"}
"""Reductions of a vector from left to right, with the operation on two numbers that they repeat."""

OF_EXPONENTIALS = ("logsumexp", "softmax", "log_softmax")


class Instruction(NamedTuple):
    """A decoded instruction.

    Attributes:
        at: the index of its first word.
        name: its name in :data:`.NUMBERS`.
        words: the words after the opcode.
        size: the length of a vector instruction, else 0.
        end: the index of the next instruction's first word.
    """

    at: int
    name: str
    words: tuple[int, ...]
    size: int
    end: int


def row(x: Instruction) -> tuple[str, int, int, int, int, int]:
    """Return a load's or store's kind, first cell of row 0, other cells, cell of the counter, stride and size."""
    kind, count = ROWS[x.name]
    out, a, counter, stride = x.words[:4]
    base, near = (a, out) if kind == "load" else (out, a)
    return kind, base, near, counter, x.words[5] if x.size else stride, x.size or count


class Emitter(Text):
    """Writes the IR of one loop, which works on ``%memory`` and calls functions of the table ``%functions``.

    Args:
        extents: the ranges of cells that loads and stores reach; None if they may reach any cell.

    Attributes:
        registers: cells in local variables, which LLVM may keep in registers; True for cells that are written.
        sums: for the cells of a vector, its maximum and the sum of ``exp(x - maximum)``, once these are computed.
    """

    def __init__(self, extents: list[tuple[int, int]] | None):
        super().__init__()
        self.extents = extents
        self.registers: dict[int, bool] = {}
        self.sums: dict[tuple[int, ...], tuple[str, str]] = {}

    # Cells.

    def cell(self, cell: int, is_written: bool = False) -> str:
        """Return the pointer to a cell."""
        # LLVM keeps a cell that has its own variable in a register. That is correct only for cells that no load or
        # store reaches: storing a row to memory would not update the variable. If the reach of loads and stores is
        # unknown, there are no variables.
        if self.extents is not None and not any(start <= cell < end for start, end in self.extents):
            self.registers[cell] = self.registers.get(cell, False) or is_written
            return f"%r{cell}"
        return self.at("%memory", cell)

    def read(self, cell: int, kind: str = "double") -> str:
        return self.line(f"load {kind}, ptr {self.cell(cell)}")

    def write(self, cell: int, value: str, kind: str = "double") -> None:
        self.store(kind, value, self.cell(cell, is_written=True))
        self.sums = {cells: found for cells, found in self.sums.items() if cell not in cells}

    # Instructions.

    def instruction(self, x: Instruction) -> bool:
        """Write an instruction; return False if it is not supported."""
        if x.name in ROWS:
            self._write_row(x)
        elif not x.size:
            self._write_short(x)
        else:
            return self._write_long(x)
        return True

    def _write_short(self, x: Instruction) -> None:
        """Write an instruction on numbers; writing continues in the block that falls through to the next one."""
        out, a, b, c = x.words
        if x.name in OPERATIONS or x.name in CALLS:
            self._write_elementwise(x.name, x.words)
        elif x.name == "index":
            # An unsigned comparison: an index that is still negative exceeds every size.
            number = self.read(a, "i64")
            is_negative = self.line(f"icmp slt i64 {number}, 0")
            at = self.number("add", number, self.line(f"select i1 {is_negative}, i64 {b}, i64 0"))
            self.write(out, at, "i64")
            self.guard(self.line(f"icmp ult i64 {at}, {b}"), "failed")
        elif x.name == "again":
            # The comparison precedes the step, so the counter ends at its last number, and a body runs at least once.
            number = self.read(out, "i64")
            back, after = self.label(), self.label()
            self.branch(self.line(f"icmp eq i64 {number}, {c}"), after, back)
            self.begin(back)
            self.write(out, self.number("add", number, b), "i64")
            self.go(f"at{x.at - a}")
            self.begin(after)
        elif x.name in ("unless", "require"):
            holds = self.line(f"fcmp une double {self.read(out)}, 0.0")
            self.guard(holds, "failed" if x.name == "require" else f"at{x.at + a}")

    def _write_long(self, x: Instruction) -> bool:
        """Write a vector instruction; return False if it is not supported."""
        out, a, b, c, count, *strides = x.words[: LONG - 1]
        if x.name in OPERATIONS or x.name in CALLS:
            for i in range(count):
                given = [cell + stride * i for cell, stride in zip((a, b, c), strides)]
                if x.name in CALLS:  # the function's number follows the operands
                    given[int(x.name[-1])] = (a, b, c)[int(x.name[-1])]
                self._write_elementwise(x.name, [out + i, *given])
            return True
        if x.name == "gather":
            for i, cell in enumerate(x.words[LONG - 1 :]):
                self.write(out + i, self.read(cell))
            return True
        cells = [a + strides[0] * i for i in range(count)]
        if x.name == "sum":
            self.write(out, self._sum([self.read(cell) for cell in cells]))
        elif x.name in FOLDS:
            self.write(out, self._folded(FOLDS[x.name], cells))
        elif x.name in OF_EXPONENTIALS:
            self._write_softmax(x.name, out, cells)
        elif x.name == "dot":
            total = "0.0"
            for i, cell in enumerate(cells):
                product = self.line(f"fmul double {self.read(cell)}, {self.read(b + strides[1] * i)}")
                total = self.line(f"fadd double {total}, {product}")
            self.write(out, total)
        else:
            return False
        return True

    def _write_elementwise(self, name: str, words: Sequence[int]) -> None:
        """Write an operation, given the cells of its result and operands; a call's last word is its function."""
        out, *given = words
        count = OPERATIONS[name].operands if name in OPERATIONS else int(name[-1])
        values = [self.read(cell) for cell in given[:count]]
        if name in OPERATIONS:
            self.write(out, self.computed(meaning(name), values))
            return
        operands, number = ", ".join(f"double {x}" for x in values), given[count]
        if name.startswith("scipy"):
            self.write(out, self.line(f"call double @{name}({operands}, i64 {number}, ptr %functions)"))
        else:
            self.write(out, self.line(f"call double {self._function(number)}({operands})"))

    def _function(self, number: int) -> str:
        """Load the address of a function from the table."""
        return self.line(f"load ptr, ptr {self.at('%functions', number, 'ptr')}")

    def _write_row(self, x: Instruction) -> None:
        """Write a load or store of contiguous cells, at a row whose number is in a cell."""
        kind, base, near, counter, stride, count = row(x)
        start = self.number("add", base, self.number("mul", self.read(counter, "i64"), stride))
        far = self.at("%memory", start)
        # All reads come first, so LLVM need not prove that no write changes a later read.
        if kind == "load":
            for i, value in enumerate([self.line(f"load double, ptr {self.at(far, i)}") for i in range(count)]):
                self.write(near + i, value)
        else:
            for i, value in enumerate([self.read(near + i) for i in range(count)]):
                self.store("double", value, self.at(far, i))

    # Reductions.

    def _folded(self, name: str, cells: Sequence[int]) -> str:
        """Write a reduction of cells from left to right; return its result."""
        first, *rest = cells
        source = meaning(name)
        return functools.reduce(
            lambda total, cell: self.computed(source, (total, self.read(cell))), rest, self.read(first)
        )

    def _sum(self, values: list[str]) -> str:
        """Write a sum in NumPy's order: eight partial sums from eight numbers on, and 0.0 added last."""
        whole = len(values) // 8 * 8
        parts = [self.pairwise_sum([self._added(values[i:whole:8]) for i in range(8)])] if whole else []
        return self._added([*parts, *values[whole:], "0.0"])

    def _added(self, values: list[str]) -> str:
        return functools.reduce(lambda total, x: self.line(f"fadd double {total}, {x}"), values)

    def _write_softmax(self, name: str, out: int, cells: Sequence[int]) -> None:
        """Write a softmax, log-softmax or log-sum-exp, which subtract the maximum first."""
        exp, log = (self._function(FUNCTION_NUMBERS[name]) for name in ("exp", "log"))
        known = self.sums.get(tuple(cells)) if name != "softmax" else None
        top = known[0] if known else self._folded("maximum", cells)

        def less(cell: int) -> str:
            return self.line(f"fsub double {self.read(cell)}, {top}")

        def power(i: int) -> str:
            found = self.line(f"call double {exp}(double {less(cells[i])})")
            if name == "softmax":
                self.write(out + i, found)
            return found

        def total() -> str:
            if known:
                return known[1]
            add = lambda s, i: self.line(f"fadd double {s}, {power(i)}")  # noqa: E731
            return functools.reduce(add, range(1, len(cells)), power(0))

        def logarithm() -> str:
            return self.line(f"call double {log}(double {total()})")

        if name == "softmax":
            whole = total()
            if self.registers.keys() >= {*cells}:  # only `write` changes these cells, and drops the entry again
                self.sums[tuple(cells)] = top, whole
            for i in range(len(cells)):
                self.write(out + i, self.line(f"fdiv double {self.read(out + i)}, {whole}"))
        elif name == "log_softmax":
            whole = logarithm()
            for i, cell in enumerate(cells):
                self.write(out + i, self.line(f"fsub double {less(cell)}, {whole}"))
        else:
            # If the maximum is infinite, the differences would be NaN; the result is the maximum.
            size = self.line(f"call double @llvm.fabs.f64(double {top})")
            is_finite = self.line(f"fcmp olt double {size}, 0x7FF0000000000000")
            self.write(out, self.chosen(is_finite, lambda: self.line(f"fadd double {logarithm()}, {top}"), top))

"""LLVM's text of the machine's instructions, written once: for the machine itself, and for a loop that is compiled.

The machine reads an instruction's words as it runs, so that they are names in its text, and a vector is a loop. Where a
loop is compiled the words are known, and a vector's elements are written one by one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from .instructions import CALLS, FUNCTION_NUMBERS, OPERATIONS, ROWS
from .llvm import Text

Number = int | str
"""A whole number, or its name in the text."""

FOLDS = {"prod": "multiply", "max": "maximum", "min": "minimum"}
"""Reductions of a vector that take its elements in their order, by the operation on two."""

OF_EXPONENTIALS = ("logsumexp", "softmax", "log_softmax")


def operands(name: str) -> int:
    """The number of operands of an elementwise instruction."""
    return OPERATIONS[name].operands if name in OPERATIONS else int(name[-1])


class Emitter(Text):
    """The text of instructions, which work on ``%memory`` and call ``%functions``.

    Attributes:
        sums: by the cells of numbers the largest, and the sum of the exponentials of what they are less than it.
    """

    def __init__(self, here: str = "entry"):
        super().__init__(here)
        self.sums: dict[tuple[Number, ...], tuple[str, str]] = {}

    def target(self, words: Number) -> str:
        """The label of the instruction that begins so many words after this one."""
        raise NotImplementedError

    # Cells.

    def cell(self, cell: Number, is_written: bool = False) -> str:
        """The pointer to a cell."""
        return self.at("%memory", cell)

    def read(self, cell: Number, kind: str = "double") -> str:
        return self.line(f"load {kind}, ptr {self.cell(cell)}")

    def write(self, cell: Number, value: str, kind: str = "double") -> None:
        self.store(kind, value, self.cell(cell, is_written=True))

    def place(self, first: Number, i: Number, stride: Number = 1) -> Number:
        """The cell that is so many strides after another."""
        if isinstance(first, int) and isinstance(i, int) and isinstance(stride, int):
            return first + i * stride
        return self.number("add", first, self.number("mul", i, stride))

    # Instructions on numbers.

    def write_short(self, name: str, words: Sequence[Number]) -> None:
        """Write an instruction on numbers; the text goes on where the next instruction is the one behind it."""
        out, a, b, c = words
        if name in OPERATIONS or name in CALLS:
            self.write_elementwise(name, words)
        elif name in ROWS:
            self.write_row(name, words, c, ROWS[name][1])
        elif name == "index":
            # A position is compared without a sign: one that is still below 0 is beyond every size.
            number = self.read(a, "i64")
            is_negative = self.line(f"icmp slt i64 {number}, 0")
            at = self.number("add", number, self.line(f"select i1 {is_negative}, i64 {b}, i64 0"))
            self.write(out, at, "i64")
            self.go_on(self.line(f"icmp ult i64 {at}, {b}"), "failed")
        elif name == "again":
            # The comparison comes before the step, so the counter ends on its last number, and a body runs once.
            number = self.read(out, "i64")
            back, after = self.label(), self.label()
            self.branch(self.line(f"icmp eq i64 {number}, {c}"), after, back)
            self.begin(back)
            self.write(out, self.number("add", number, b), "i64")
            self.go(self.target(self.place(0, a, -1)))
            self.begin(after)
        elif name in ("unless", "require"):
            holds = self.line(f"fcmp une double {self.read(out)}, 0.0")
            self.go_on(holds, "failed" if name == "require" else self.target(a))

    def write_elementwise(self, name: str, cells: Sequence[Number]) -> None:
        """Write an operation on the cells of its result and operands; a call's last word is its function."""
        out, *given = cells
        count = operands(name)
        values = [self.read(cell) for cell in given[:count]]
        self.write(out, self.elementwise(name, values, given[count] if name in CALLS else 0))

    def elementwise(self, name: str, values: Sequence[str], function: Number) -> str:
        """The result of an operation, or of a call of the function of that number."""
        if name in OPERATIONS:
            return self.computed(OPERATIONS[name].source, values)
        given, address = ", ".join(f"double {x}" for x in values), self.function(function)
        if name.startswith("scipy"):
            return self.line(f"call double @{name}({given}, ptr {address}, ptr %functions)")
        return self.line(f"call double {address}({given})")

    def function(self, number: Number) -> str:
        """The address of a function that the machine calls."""
        return self.line(f"ptr %functions[{number}]")

    # Instructions on vectors, those that take one element after the other.

    def write_long(self, name: str, words: Sequence[Number]) -> None:
        """Write an instruction on vectors: one of :data:`FOLDS`, ``dot``, a load or store, or of exponentials."""
        out, a, b, _, count, sa, sb = words[:7]
        if name in ROWS:
            self.write_row(name, words, sa, count)
        elif name in OF_EXPONENTIALS:
            self._write_of_exponentials(name, out, a, sa, count)
        elif name == "dot":

            def added(i: Number, total: str) -> str:
                product = self.line(f"fmul double {self.read(self.place(a, i, sa))}, {self.read(self.place(b, i, sb))}")
                return self.line(f"fadd double {total}, {product}")

            self.write(out, self.accumulated(0, count, "0.0", added))
        else:
            self.write(out, self.folded(FOLDS[name], lambda i: self.read(self.place(a, i, sa)), count))

    def accumulated(self, first: int, count: Number, start: str, step: Callable[[Number, str], str]) -> str:
        """The number that steps make of another, one for each element from one on."""
        if isinstance(count, int):
            return functools.reduce(lambda total, i: step(i, total), range(first, count), start)
        (total,) = self.loop(str(first), count, 1, [("double", start)], lambda i, state: [step(i, *state)])
        return total

    def each(self, count: Number, body: Callable[[Number], None]) -> None:
        """Write ``body`` for each element."""

        def one(i: Number, _: list) -> list:
            body(i)
            return []

        if isinstance(count, int):
            for i in range(count):
                body(i)
        else:
            self.loop("0", count, 1, [], one)

    def folded(self, name: str, element: Callable[[Number], str], count: Number) -> str:
        """What an operation on two makes of a vector's elements in their order."""
        source = OPERATIONS[name].source
        return self.accumulated(1, count, element(0), lambda i, total: self.computed(source, (total, element(i))))

    def write_row(self, name: str, words: Sequence[Number], stride: Number, count: Number) -> None:
        """Write a load or store of cells that lie side by side, at a row whose number another cell holds."""
        out, a, counter = words[:3]
        is_load = ROWS[name][0] == "load"
        row, near = (a, out) if is_load else (out, a)
        far = self.at("%memory", self.place(row, self.read(counter, "i64"), stride))

        def read(i: Number) -> str:
            return self.line(f"load double, ptr {self.at(far, i)}") if is_load else self.read(self.place(near, i))

        def write(i: Number, value: str) -> None:
            if is_load:
                self.write(self.place(near, i), value)
            else:
                self.store("double", value, self.at(far, i))

        if isinstance(count, int):  # all are read before LLVM would have to ask whether one is written over
            for i, value in enumerate([read(i) for i in range(count)]):
                write(i, value)
        else:
            self.each(count, lambda i: write(i, read(i)))

    # Softmax and its like: of what numbers are less than the largest of them.

    def is_kept(self, cells: Sequence[Number]) -> bool:
        """True if nothing but :meth:`write` changes cells."""
        return False

    def _write_of_exponentials(self, name: str, out: Number, a: Number, stride: Number, count: Number) -> None:
        cells = tuple(self.place(a, i, stride) for i in range(count)) if isinstance(count, int) else ()
        exp, log = (self.function(FUNCTION_NUMBERS[name]) for name in ("exp", "log"))

        def element(i: Number) -> str:
            return self.read(self.place(a, i, stride))

        def less(i: Number) -> str:
            return self.line(f"fsub double {element(i)}, {top}")

        def power(i: Number) -> str:
            found = self.line(f"call double {exp}(double {less(i)})")
            if name == "softmax":
                self.write(self.place(out, i), found)
            return found

        def total() -> str:
            if known:
                return known[1]
            return self.accumulated(1, count, power(0), lambda i, s: self.line(f"fadd double {s}, {power(i)}"))

        def logarithm() -> str:
            return self.line(f"call double {log}(double {total()})")

        known = self.sums.get(cells) if name != "softmax" else None
        top = known[0] if known else self.folded("maximum", element, count)
        if name == "softmax":
            whole = total()

            def divided(i: Number) -> str:
                return self.line(f"fdiv double {self.read(self.place(out, i))}, {whole}")

            if self.is_kept(cells):  # unless the results, which are written now, take the operands' cells
                self.sums[cells] = top, whole
            self.each(count, lambda i: self.write(self.place(out, i), divided(i)))
        elif name == "log_softmax":
            whole = logarithm()
            self.each(count, lambda i: self.write(self.place(out, i), self.line(f"fsub double {less(i)}, {whole}")))
        else:
            # Of an infinite largest number the differences would be NaN; it is the result itself.
            size = self.line(f"call double @llvm.fabs.f64(double {top})")
            is_finite = self.line(f"fcmp olt double {size}, 0x7FF0000000000000")
            self.write(out, self.chosen(is_finite, lambda: self.line(f"fadd double {logarithm()}, {top}"), top))

"""Emit LLVM IR for the machine's instructions, both for the interpreter and for compiled loops.

:mod:`.machine_source` passes the names of IR values for an instruction's words, which the interpreter reads at run
time, and a vector becomes an IR loop. :mod:`.loop_compiler` passes integers, as the words are known, and a vector's
elements are unrolled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from .instructions import CALLS, FUNCTION_NUMBERS, OPERATIONS, ROWS
from .llvm import Text

Number = int | str
"""An integer, or the name of an integer in the IR."""

FOLDS = {"prod": "multiply", "max": "maximum", "min": "minimum"}
"""Reductions of a vector from left to right, with the operation on two numbers that they repeat."""

OF_EXPONENTIALS = ("logsumexp", "softmax", "log_softmax")


def operands(name: str) -> int:
    """Return the number of operands of an elementwise instruction."""
    return OPERATIONS[name].operands if name in OPERATIONS else int(name[-1])


class Emitter(Text):
    """Emits instructions that work on ``%memory`` and call functions of the table ``%functions``.

    ``%exceptions`` is the mask of the floating-point exceptions that NumPy warns about.

    Attributes:
        sums: for the cells of a vector, its maximum and the sum of ``exp(x - maximum)``, once these are computed.
    """

    def __init__(self, here: str = "entry"):
        super().__init__(here)
        self.sums: dict[tuple[Number, ...], tuple[str, str]] = {}

    def target(self, words: Number) -> str:
        """Return the label of the instruction that begins this number of words after the current one."""
        raise NotImplementedError

    # Cells.

    def cell(self, cell: Number, is_written: bool = False) -> str:
        """Return the pointer to a cell."""
        return self.at("%memory", cell)

    def read(self, cell: Number, kind: str = "double") -> str:
        return self.line(f"load {kind}, ptr {self.cell(cell)}")

    def write(self, cell: Number, value: str, kind: str = "double") -> None:
        self.store(kind, value, self.cell(cell, is_written=True))

    def place(self, first: Number, i: Number, stride: Number = 1) -> Number:
        """Return the cell ``first + i * stride``."""
        if isinstance(first, int) and isinstance(i, int) and isinstance(stride, int):
            return first + i * stride
        return self.number("add", first, self.number("mul", i, stride))

    # Instructions on numbers.

    def write_short(self, name: str, words: Sequence[Number]) -> None:
        """Write an instruction on numbers; writing continues in the block that falls through to the next one."""
        out, a, b, c = words
        if name in OPERATIONS or name in CALLS:
            self.write_elementwise(name, words)
        elif name in ROWS:
            self.write_row(name, words, c, ROWS[name][1])
        elif name == "index":
            # An unsigned comparison: an index that is still negative exceeds every size.
            number = self.read(a, "i64")
            is_negative = self.line(f"icmp slt i64 {number}, 0")
            at = self.number("add", number, self.line(f"select i1 {is_negative}, i64 {b}, i64 0"))
            self.write(out, at, "i64")
            self.guard(self.line(f"icmp ult i64 {at}, {b}"), "failed")
        elif name == "again":
            # The comparison precedes the step, so the counter ends at its last number, and a body runs at least once.
            number = self.read(out, "i64")
            back, after = self.label(), self.label()
            self.branch(self.line(f"icmp eq i64 {number}, {c}"), after, back)
            self.begin(back)
            self.write(out, self.number("add", number, b), "i64")
            self.go(self.target(self.place(0, a, -1)))
            self.begin(after)
        elif name in ("unless", "require"):
            holds = self.line(f"fcmp une double {self.read(out)}, 0.0")
            self.guard(holds, "failed" if name == "require" else self.target(a))

    def write_elementwise(self, name: str, cells: Sequence[Number]) -> None:
        """Write an operation, given the cells of its result and operands; a call's last word is its function."""
        out, *given = cells
        count = operands(name)
        values = [self.read(cell) for cell in given[:count]]
        self.write(out, self.elementwise(name, values, given[count] if name in CALLS else 0))

    def elementwise(self, name: str, values: Sequence[str], function: Number) -> str:
        """Write an operation on values, or a call of a function given by its number; return the result's name."""
        if name in OPERATIONS:
            return self.computed(OPERATIONS[name].source, values)
        given, address = ", ".join(f"double {x}" for x in values), self.function(function)
        if name.startswith("scipy"):
            return self.line(f"call double @{name}({given}, i32 %exceptions, ptr {address}, ptr %functions)")
        return self.line(f"call double {address}({given})")

    def function(self, number: Number) -> str:
        """Load the address of a function from the table."""
        return self.line(f"ptr %functions[{number}]")

    # Instructions on vectors that process one element after the other.

    def write_long(self, name: str, words: Sequence[Number]) -> None:
        """Write a vector instruction: one of :data:`FOLDS` or :data:`OF_EXPONENTIALS`, ``dot``, a load or a store."""
        out, a, b, _, count, sa, sb = words[:7]
        if name in ROWS:
            self.write_row(name, words, sa, count)
        elif name in OF_EXPONENTIALS:
            self._write_softmax(name, out, a, sa, count)
        elif name == "dot":

            def added(i: Number, total: str) -> str:
                product = self.line(f"fmul double {self.read(self.place(a, i, sa))}, {self.read(self.place(b, i, sb))}")
                return self.line(f"fadd double {total}, {product}")

            self.write(out, self.accumulated(0, count, "0.0", added))
        else:
            self.write(out, self.folded(FOLDS[name], lambda i: self.read(self.place(a, i, sa)), count))

    def accumulated(self, first: int, count: Number, start: str, step: Callable[[Number, str], str]) -> str:
        """Write a fold of elements ``first`` to ``count``; return the final value.

        Args:
            start: the initial value.
            step: writes one step for an element's number and the value so far, and returns the new value.
        """
        if isinstance(count, int):
            return functools.reduce(lambda total, i: step(i, total), range(first, count), start)
        (total,) = self.loop(str(first), count, 1, [("double", start)], lambda i, state: [step(i, *state)])
        return total

    def each(self, count: Number, body: Callable[[Number], None]) -> None:
        """Write ``body`` for each element, unrolled if the count is known."""

        def iteration(i: Number, _: list) -> list:
            body(i)
            return []

        if isinstance(count, int):
            for i in range(count):
                body(i)
        else:
            self.loop("0", count, 1, [], iteration)

    def folded(self, name: str, element: Callable[[Number], str], count: Number) -> str:
        """Write a reduction of a vector from left to right; return its result."""
        source = OPERATIONS[name].source
        return self.accumulated(1, count, element(0), lambda i, total: self.computed(source, (total, element(i))))

    def write_row(self, name: str, words: Sequence[Number], stride: Number, count: Number) -> None:
        """Write a load or store of contiguous cells, at a row whose number is in cell ``counter``."""
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

        if isinstance(count, int):  # all reads come first, so LLVM need not prove that no write changes a later read
            for i, value in enumerate([read(i) for i in range(count)]):
                write(i, value)
        else:
            self.each(count, lambda i: write(i, read(i)))

    # Softmax, log-softmax and log-sum-exp, which subtract the maximum first.

    def is_kept(self, cells: Sequence[Number]) -> bool:
        """Return True if only :meth:`write` changes these cells."""
        return False

    def _write_softmax(self, name: str, out: Number, a: Number, stride: Number, count: Number) -> None:
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

            if self.is_kept(cells):  # the writes below drop the entry again if they overwrite these cells
                self.sums[cells] = top, whole
            self.each(count, lambda i: self.write(self.place(out, i), divided(i)))
        elif name == "log_softmax":
            whole = logarithm()
            self.each(count, lambda i: self.write(self.place(out, i), self.line(f"fsub double {less(i)}, {whole}")))
        else:
            # If the maximum is infinite, the differences would be NaN; the result is the maximum.
            size = self.line(f"call double @llvm.fabs.f64(double {top})")
            is_finite = self.line(f"fcmp olt double {size}, 0x7FF0000000000000")
            self.write(out, self.chosen(is_finite, lambda: self.line(f"fadd double {logarithm()}, {top}"), top))

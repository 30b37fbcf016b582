"""Write LLVM IR: values, blocks, loops and vectors of eight float64.

:class:`Text` is the body of one function while :mod:`.emitter` and :mod:`.tile_compiler` write it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

LANES = 8

EIGHT = f"<{LANES} x double>"


def constant_vector(number: str, kind: str = "double") -> str:
    """Return a vector constant whose eight lanes are the same literal."""
    return f"<{', '.join([f'{kind} {number}'] * LANES)}>"


# LLVM lowers a vector `fcmp` to a comparison that raises "invalid" for NaN, unless the quiet one is requested, which
# NumPy uses.
_QUIET = r"""call <8 x i1> @llvm.experimental.constrained.fcmp.v8f64(
  \2 \3, \2 \4, metadata !"\1", metadata !"fpexcept.ignore")"""

QUIET = f"declare <8 x i1> @llvm.experimental.constrained.fcmp.v8f64({EIGHT}, {EIGHT}, metadata, metadata)"
"""The declaration of the comparison that sources returned by :func:`wide` call."""


def wide(source: str) -> str:
    """Return IR, of :func:`.machine.meaning` or an intrinsic's declaration, rewritten for vectors of eight numbers."""
    source = re.sub(r"\b(double|i1|i64)\b", rf"<{LANES} x \1>", source).replace(".f64(", f".v{LANES}f64(")
    source = re.sub(r"fcmp ([ou][lg][te]) (<[^>]*>) (\S+), (.*)", _QUIET, source)
    source = re.sub(r"(?<= )-?\d+(?=,|$)", lambda found: constant_vector(found[0], "i64"), source, flags=re.MULTILINE)
    return re.sub(r"(?<![\w.%])(-?\d+\.\d+e[+-]\d+|0x[0-9A-F]+)", lambda found: constant_vector(found[0]), source)


class Text:
    """The body of a function while it is written.

    Attributes:
        lines: the lines so far.
        here: the label of the current block.
    """

    def __init__(self, here: str = "entry"):
        self.lines: list[str] = []
        self.count = 0
        self.here = here

    def name(self) -> str:
        self.count += 1
        return f"%x{self.count}"

    def line(self, text: str) -> str:
        """Write an instruction; return the name of its result."""
        result = self.name()
        self.lines.append(f"  {result} = {text}")
        return result

    def computed(self, source: str, operands: Sequence[str]) -> str:
        """Write the IR of an operation (:func:`.machine.meaning`); return the name of its result."""
        result = self.name()
        text = source.format(r=result, t=f"{result}.", **dict(zip("xyz", operands)))
        self.lines += [f"  {line}" for line in text.splitlines()]
        return result

    def store(self, kind: str, value: str, pointer: str, more: str = "") -> None:
        self.lines.append(f"  store {kind} {value}, ptr {pointer}{more}")

    def at(self, pointer: str, i: str | int, kind: str = "double") -> str:
        """Return the pointer to an element."""
        return self.line(f"getelementptr {kind}, ptr {pointer}, i64 {i}")

    def number(self, operator: str, x: str | int, y: str | int) -> str:
        """Write an operation on two 64-bit integers."""
        return self.line(f"{operator} i64 {x}, {y}")

    def both(self, *conditions: str) -> str:
        """Write the conjunction of conditions."""
        return functools.reduce(lambda x, y: self.line(f"and i1 {x}, {y}"), conditions)

    # Blocks. Generated labels start with `b` and a number, so they do not collide with the callers' labels.

    def label(self) -> str:
        return f"b{self.name()[1:]}"

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.here = label

    def branch(self, condition: str, label: str, otherwise: str) -> None:
        self.lines.append(f"  br i1 {condition}, label %{label}, label %{otherwise}")

    def go(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def guard(self, condition: str, otherwise: str) -> None:
        """Branch to ``otherwise`` unless a condition holds; writing continues where it holds."""
        self.branch(condition, label := self.label(), otherwise)
        self.begin(label)

    def chosen(self, condition: str, body: Callable[[], str], otherwise: str) -> str:
        """Write a branch; return the number that ``body`` computes if a condition holds, else ``otherwise``."""
        before, after = self.here, self.label()
        self.guard(condition, after)
        value = body()
        inside = self.here
        self.go(after)
        self.begin(after)
        return self.line(f"phi double [{value}, %{inside}], [{otherwise}, %{before}]")

    def loop(
        self, first: str, last: str, step: int, state: Sequence[tuple[str, str]], body: Callable[[str, list[str]], list]
    ) -> list[str]:
        """Write a counting loop; return the names of its state after the last iteration.

        Args:
            first, last, step: the counter's first value, its exclusive bound, and its increment.
            state: the type and initial value of each part of the state.
            body: writes one iteration, given the counter and the state, and returns the new state.
        """
        before, label = self.here, self.label()
        self.lines += [f"  br label %{label}", f"{label}:"]
        i, *names = (self.name() for _ in range(1 + len(state)))
        at = len(self.lines)
        self.begin(f"{label}.body")
        after = body(i, names)
        following = self.number("add", i, step)
        phis = [("i64", i, first, following)]
        phis += [(kind, name, start, end) for (kind, start), name, end in zip(state, names, after, strict=True)]
        self.lines[at:at] = [
            *(f"  {name} = phi {kind} [{start}, %{before}], [{end}, %{self.here}]" for kind, name, start, end in phis),
            f"  {i}.more = icmp slt i64 {i}, {last}",
            f"  br i1 {i}.more, label %{label}.body, label %{label}.after",
        ]
        self.go(label)
        self.begin(f"{label}.after")
        return names

    # Vectors of eight.

    def spread(self, number: str) -> str:
        """Return a vector whose eight lanes are the same number."""
        if not number.startswith("%"):
            return constant_vector(number)
        one = self.line(f"insertelement {EIGHT} poison, double {number}, i64 0")
        return self.line(f"shufflevector {EIGHT} {one}, {EIGHT} poison, <{LANES} x i32> zeroinitializer")

    def added(self, x: str, y: str, kind: str = EIGHT) -> str:
        return self.line(f"fadd {kind} {x}, {y}")

    def pairwise_sum(self, numbers: list[str]) -> str:
        """Return the sum of two, four or eight numbers, added pairwise."""
        while len(numbers) > 1:
            numbers = [self.added(x, y, "double") for x, y in zip(numbers[::2], numbers[1::2])]
        return numbers[0]

    def lane_sum(self, vector: str) -> str:
        """Return the sum of a vector's eight lanes, in NumPy's order."""
        return self.line(f"call double @lane_sum({EIGHT} {vector})")


def inner_loop(name: str, text: Text) -> str:
    """Return the IR of a function with the signature of a ufunc's inner loop."""
    head = f"define void @{name}(ptr %arguments, ptr %count, ptr %steps, ptr %data) {{\nentry:"
    return "\n".join([head, *text.lines, "  ret void", "}", ""])

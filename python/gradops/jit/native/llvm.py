"""LLVM's text while it is written: names, lines, loops, and vectors of eight float64; the parts of the machine's."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence

LANES = 8

EIGHT = f"<{LANES} x double>"


def same(number: str, kind: str = "double") -> str:
    """Eight times a number that is written down."""
    return f"<{', '.join([f'{kind} {number}'] * LANES)}>"


# LLVM compares eight numbers by an instruction that is invalid of NaN, unless it is told to compare quietly, as NumPy.
_QUIET = r"""call <8 x i1> @llvm.experimental.constrained.fcmp.v8f64(
  \2 \3, \2 \4, metadata !"\1", metadata !"fpexcept.ignore")"""

DECLARED = (
    f"declare <8 x i1> @llvm.experimental.constrained.fcmp.v8f64({EIGHT}, {EIGHT}, metadata, metadata)",
    f"declare {EIGHT} @llvm.fma.v8f64({EIGHT}, {EIGHT}, {EIGHT})",
    f"declare {EIGHT} @llvm.fabs.v8f64({EIGHT})",
)
"""Functions that :func:`wide` sources call."""


def wide(source: str) -> str:
    """The source of an :class:`.Operation` as that of eight numbers."""
    source = re.sub(r"\b(double|i1|i64)\b", rf"<{LANES} x \1>", source).replace(".f64(", f".v{LANES}f64(")
    source = re.sub(r"fcmp (o[lg][te]) (<[^>]*>) (\S+), (.*)", _QUIET, source)
    source = re.sub(r"(?<= )-?\d+(?=,|$)", lambda found: same(found[0], "i64"), source, flags=re.MULTILINE)
    return re.sub(r"(?<![\w.%])(-?\d+\.\d+|0x[0-9A-F]+)", lambda found: same(found[0]), source)


class Text:
    """The lines of a function.

    Attributes:
        here: the block that is being written.
    """

    def __init__(self, here: str = "entry"):
        self.lines: list[str] = []
        self.count = 0
        self.here = here

    def name(self) -> str:
        self.count += 1
        return f"%x{self.count}"

    def line(self, text: str) -> str:
        """The name of what a line computes."""
        result = self.name()
        self.lines.append(f"  {result} = {text}")
        return result

    def computed(self, source: str, operands: Sequence[str]) -> str:
        """The result of an :class:`.Operation`'s source."""
        result = self.name()
        text = source.format(r=result, t=f"{result}.", **dict(zip("xyz", operands)))
        self.lines += [f"  {line}" for line in text.splitlines() if line]
        return result

    def store(self, kind: str, value: str, pointer: str, more: str = "") -> None:
        self.lines.append(f"  store {kind} {value}, ptr {pointer}{more}")

    def at(self, pointer: str, i: str | int, kind: str = "double") -> str:
        """The pointer to an element."""
        return self.line(f"getelementptr {kind}, ptr {pointer}, i64 {i}")

    def number(self, operator: str, x: str | int, y: str | int) -> str:
        """A whole number of two."""
        return self.line(f"{operator} i64 {x}, {y}")

    def both(self, *conditions: str) -> str:
        """True where all conditions hold."""
        return functools.reduce(lambda x, y: self.line(f"and i1 {x}, {y}"), conditions)

    # Blocks. A label of the text's own begins otherwise than those that a caller names.

    def label(self) -> str:
        return f"b{self.name()[1:]}"

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.here = label

    def branch(self, condition: str, label: str, otherwise: str) -> None:
        self.lines.append(f"  br i1 {condition}, label %{label}, label %{otherwise}")

    def go(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def go_on(self, condition: str, otherwise: str) -> None:
        """Go on where a condition holds."""
        self.branch(condition, label := self.label(), otherwise)
        self.begin(label)

    def chosen(self, condition: str, body: Callable[[], str], otherwise: str) -> str:
        """The number that ``body`` computes where a condition holds, else another one, by a branch."""
        before, after = self.here, self.label()
        self.go_on(condition, after)
        value = body()
        inside = self.here
        self.go(after)
        self.begin(after)
        return self.line(f"phi double [{value}, %{inside}], [{otherwise}, %{before}]")

    def loop(
        self, first: str, last: str, step: int, state: Sequence[tuple[str, str]], body: Callable[[str, list[str]], list]
    ) -> list[str]:
        """Write a loop from a number to another; what its state is after it.

        Args:
            state: types and first values.
            body: writes a pass for the number and the state, and gives the state after it.
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

    def eight(self, pointer: str, mask: str | None = None) -> str:
        """Eight numbers of the memory; zeros where a mask is false."""
        if mask is None:
            return self.line(f"load {EIGHT}, ptr {pointer}, align 8")
        given = f"ptr {pointer}, i32 8, <{LANES} x i1> {mask}, {EIGHT} zeroinitializer"
        return self.line(f"call {EIGHT} @llvm.masked.load.v8f64.p0({given})")

    def spread(self, number: str) -> str:
        """Eight times a number."""
        if not number.startswith("%"):
            return same(number)
        one = self.line(f"insertelement {EIGHT} poison, double {number}, i64 0")
        return self.line(f"shufflevector {EIGHT} {one}, {EIGHT} poison, <{LANES} x i32> zeroinitializer")

    def fused(self, x: str, y: str, z: str) -> str:
        return self.line(f"call {EIGHT} @llvm.fma.v8f64({EIGHT} {x}, {EIGHT} {y}, {EIGHT} {z})")

    def added(self, x: str, y: str, kind: str = EIGHT) -> str:
        return self.line(f"fadd {kind} {x}, {y}")

    def halved(self, numbers: list[str]) -> str:
        """The sum of two, four or eight, of neighbours first."""
        while len(numbers) > 1:
            numbers = [self.added(x, y, "double") for x, y in zip(numbers[::2], numbers[1::2])]
        return numbers[0]

    def joined(self, vector: str) -> str:
        """The sum of eight in NumPy's order."""
        return self.line(f"call double @joined({EIGHT} {vector})")


def inner_loop(name: str, text: Text) -> str:
    """A function that is called as the inner loops of ufuncs are."""
    head = f"define void @{name}(ptr %arguments, ptr %count, ptr %steps, ptr %data) {{\nentry:"
    return "\n".join([head, *text.lines, "  ret void", "}", ""])


# LLVM has an instruction for the address and another for the value, each with a name. Here a position may also be a
# product, `%p[%i * %stride]`, and a distance in bytes, `%p[%i * %step bytes]`.

_NAME = r"%[\w.]+"
_PLACE = rf"(?P<array>{_NAME})\[(?P<at>[%\w.]+)( \* (?P<far>[%\w.]+))?(?P<bytes> bytes)?\]"
_READ = re.compile(rf"(?m)^ *(?P<x>{_NAME}) = (?P<type>\w+) {_PLACE}(?P<facts>.*)$")
_WRITTEN = re.compile(rf"(?m)^ *{_PLACE} = (?P<type>\w+) (?P<x>[%\w.-]+)(?P<facts>.*)$")


def assembled(text: str) -> str:
    """The text in LLVM's own instructions."""
    numbers = itertools.count()

    def addressed(found: re.Match) -> tuple[str, str]:
        name, at, lines = f"%at${next(numbers)}", found["at"], ""
        if found["far"]:
            lines, at = f"  {name}.o = mul i64 {at}, {found['far']}\n", f"{name}.o"
        kind = "i8" if found["bytes"] else found["type"]
        return name, f"{lines}  {name} = getelementptr {kind}, ptr {found['array']}, i64 {at}\n"

    def read(found: re.Match) -> str:
        name, lines = addressed(found)
        return f"{lines}  {found['x']} = load {found['type']}, ptr {name}{found['facts']}"

    def written(found: re.Match) -> str:
        name, lines = addressed(found)
        return f"{lines}  store {found['type']} {found['x']}, ptr {name}{found['facts']}"

    return _WRITTEN.sub(written, _READ.sub(read, text))


_SOURCES: list[Callable[[int], str]] = []


def source(function: Callable[[int], str]) -> Callable[[int], str]:
    """Register a part of the machine's text.

    Args:
        function: gives it for the platform's mask of the floating-point exceptions that NumPy warns of.
    """
    _SOURCES.append(function)
    return function


def sources(exceptions: int) -> str:
    """All parts of the machine's text."""
    return "\n".join(function(exceptions) for function in _SOURCES)

"""Assemble the LLVM IR of the native machine, the interpreter function ``run``.

:func:`source` fills the templates of :mod:`.machine_parts` with a block for each instruction, whose IR comes from
:mod:`.emitter`. :mod:`.machine` compiles it.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import machine_parts
from .emitter import Emitter, operands
from .instructions import (
    CALLS,
    END,
    FAILED,
    FUSED,
    LONG,
    NUMBERS,
    OPERATIONS,
    ROWS,
    SHORT,
    SIDE_BY_SIDE,
    VECTOR,
    VECTOR_FUNCTIONS,
    WAITING,
)

_WORDS = ("out", "a", "b", "c", "n", "sa", "sb", "sc")
"""The words of an instruction after the opcode."""

_JUMPS = ("index", "again", "unless", "require", "outside")
_SCALAR_ONLY = frozenset((*FUSED, *_JUMPS, *ROWS)) - {"load", "store"}
"""Instructions that have no vector form."""


def source(exceptions: int) -> str:
    """Return the IR of the function ``run``, the interpreter, and of the vector instructions :data:`.SIDE_BY_SIDE`.

    Args:
        exceptions: the platform's mask of the floating-point exceptions that NumPy warns about.
    """
    elementwise = [*OPERATIONS, *CALLS]
    scalar_names = [*elementwise, *ROWS, *_JUMPS]
    targets = {NUMBERS[name]: f"scalar.{name}" for name in scalar_names}
    targets.update({number + VECTOR: "vector.op" for name, number in NUMBERS.items() if name not in _SCALAR_ONLY})
    # The jump is unchecked, so every possible opcode needs a target.
    targets.update({NUMBERS["gather"] + VECTOR: "vector.gather", END: "end"})
    scalars = _ScalarBlocks()
    for name in scalar_names[:-1]:  # the last one, `outside`, is in the template
        scalars.instruction(name)
    main = machine_parts.MAIN.format(
        exceptions=exceptions,
        table_size=2 * VECTOR,
        targets=", ".join(f"ptr blockaddress(@run, %{targets.get(i, 'unknown')})" for i in range(2 * VECTOR)),
        labels=", ".join(f"label %{label}" for label in dict.fromkeys([*targets.values(), "unknown"])),
        dispatched_from="".join(f", [%{label}.at, %{label}]" for label in scalars.jumps),
        vectors=VECTOR_FUNCTIONS - VECTOR,
        long=LONG,
        waiting=WAITING,
        scalar_blocks="\n".join(scalars.lines),
        short=SHORT,
        failed=FAILED,
    )
    return "\n".join([vectors(exceptions, *SIDE_BY_SIDE), main])


def vectors(exceptions: int, *names: str) -> str:
    """Return the IR of vector instructions, as functions ``vector_NAME``. The other vector instructions are C."""
    functions, number = [], 0
    for name in names:
        for part in [name, f"{name}_apart"] if name in SIDE_BY_SIDE else [name]:
            writing = _Vector(number)
            number = writing.instruction(name, is_apart=part != name)
            words = "\n".join(_word(f"%{word}", i) for i, word in enumerate(_WORDS, 1))
            body = "\n".join(writing.lines)
            functions.append(machine_parts.VECTOR.format(name=part, exceptions=exceptions, words=words, body=body))
    return "\n".join([*functions, _facts(number)])


def _word(result: str, at: int) -> str:
    """Return IR that loads a word of the current instruction as a 64-bit integer."""
    return f"  {result}.i = i32 %at[{at}]\n  {result} = sext i32 {result}.i to i64"


class _ScalarBlocks(Emitter):
    """Writes the blocks of instructions on numbers.

    Attributes:
        jumps: the blocks that jump to the dispatcher; the value ``%LABEL.at`` is the address of the next instruction.
    """

    def __init__(self) -> None:
        super().__init__()
        self.jumps: list[str] = []
        self._jumps: list[str] = []

    def target(self, words) -> str:
        self.jumps.append(label := self.label())
        self._jumps += [f"{label}:", f"  %{label}.at = getelementptr i32, ptr %at, i64 {words}", "  br label %dispatch"]
        return label

    def instruction(self, name: str) -> None:
        """Write an instruction."""
        self.begin(f"scalar.{name}")
        words = [self.name() for _ in _WORDS[: SHORT - 1]]
        self.lines += [_word(word, i) for i, word in enumerate(words, 1)]
        self.write_short(name, words)
        # Each operation has its own jump, so the processor predicts its successor separately.
        self.go(self.target(SHORT) if name in OPERATIONS or name in CALLS else "short.done")
        self.lines += self._jumps
        self._jumps = []


class _Vector(Emitter):
    """Writes a vector instruction, whose loops assume that results do not overlap operands.

    Args:
        loops: the number of loops with facts (see :func:`_facts`) in the module so far.
    """

    def __init__(self, loops: int) -> None:
        super().__init__("begin")
        self.loops = loops

    def instruction(self, name: str, is_apart: bool) -> int:
        """Write an instruction; return the number of loops with facts in the module so far.

        Args:
            is_apart: True for the function of an operation :data:`.SIDE_BY_SIDE` for operands that are not contiguous.
        """
        if name in OPERATIONS or name in CALLS:
            strides = [f"%s{word}" for word in "abc"[: operands(name)]]
            if name in SIDE_BY_SIDE and not is_apart:
                self._loop_if(name, strides, ["1"] * len(strides))
                # In a function of its own, the other loops do not use up registers of this one.
                self.lines.append(f"  tail call void @vector_{name}_apart(ptr %at, ptr %memory, ptr %functions)")
                self.go("done")
                return self.loops
            if is_apart and len(strides) == 2:
                self._loop_if(name, strides, ["0", "1"])
                self._loop_if(name, strides, ["1", "0"])
            self._loop(name, strides)
        else:  # one element after the other
            self.write_long(name, [f"%{word}" for word in _WORDS])
            self.go("done")
        return self.loops

    def _loop_if(self, name: str, strides: Sequence[str], known: Sequence[str]) -> None:
        """Write a loop for the case that strides have known values; writing continues where they have not."""
        after = self.label()
        self.guard(self.both(*[self.line(f"icmp eq i64 {x}, {y}") for x, y in zip(strides, known)]), after)
        self._loop(name, known)
        self.begin(after)

    def _loop(self, name: str, strides: Sequence[str]) -> None:
        self.loops += 1
        known = {i: self.line(f"load double, ptr %v{'abc'[i]}.p") for i, stride in enumerate(strides) if stride == "0"}
        before, label = self.here, self.label()
        i, following, more = self.name(), self.name(), self.name()
        self.go(label)
        self.begin(label)
        self.lines.append(f"  {i} = phi i64 [0, %{before}], [{following}, %{label}]")
        values = [
            known[k] if k in known else self.line(f"double %v{'abc'[k]}.p[{i} * {stride}], !llvm.access.group !0")
            for k, stride in enumerate(strides)
        ]
        result = self.elementwise(name, values, f"%{'abc'[len(strides)]}" if name in CALLS else 0)
        self.lines += [
            f"  %vout.p[{i}] = double {result}, !llvm.access.group !0",
            f"  {following} = add i64 {i}, 1",
            f"  {more} = icmp slt i64 {following}, %n",
            f"  br i1 {more}, label %{label}, label %done, !llvm.loop !{2 * self.loops}",
        ]


# The metadata promises LLVM that no iteration reads what another one writes; results that overlapped operands otherwise
# than element by element would be wrong. `Code` allocates new cells for a vector's result, except when it rounds in
# place, and `move()`, which writes to existing cells, first copies sources that overlap.
def _facts(loops: int) -> str:
    """Return metadata that lets LLVM vectorize each loop, but not interleave or unroll it, which takes seconds."""
    facts = '"llvm.loop.parallel_accesses", !0', '"llvm.loop.interleave.count", i32 1', '"llvm.loop.unroll.disable"'
    lines = ["!0 = distinct !{}", *(f"!{2 * i + 1} = !{{!{fact}}}" for i, fact in enumerate(facts))]
    lines += [f"!{2 * i} = distinct !{{!{2 * i}, !1, !3, !5}}" for i in range(1, loops + 1)]
    return "\n".join(lines)

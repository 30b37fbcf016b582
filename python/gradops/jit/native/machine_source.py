"""Assemble the LLVM IR of the native machine, the interpreter function ``run``.

:func:`source` fills the templates of :mod:`.machine_parts` with a block for each instruction, whose IR comes from
:mod:`.emitter`. :mod:`.machine` compiles it.
"""

from __future__ import annotations

from . import machine_parts
from .emitter import FOLDS, OF_EXPONENTIALS, Emitter, operands
from .instructions import (
    CALLED,
    CALLS,
    END,
    FAILED,
    FUSED,
    LONG,
    NUMBERS,
    OF_ROWS,
    OPERATIONS,
    ROWS,
    SHORT,
    SIDE_BY_SIDE,
    VECTOR,
    WAITING,
)

_WORDS = ("out", "a", "b", "c", "n", "sa", "sb", "sc")
"""The words of an instruction after the opcode."""

_JUMPS = ("index", "again", "unless", "require", "outside")
_SCALAR_ONLY = frozenset((*FUSED, *_JUMPS, *ROWS)) - {"load", "store"}
"""Instructions that have no vector form."""


def source(exceptions: int) -> str:
    """Return the IR of the function ``run`` and of the functions that it calls.

    Args:
        exceptions: the platform's mask of the floating-point exceptions that NumPy warns about.
    """
    elementwise = [*OPERATIONS, *CALLS]
    scalar_names = [*elementwise, *ROWS, *_JUMPS]
    vector_names = [name for name in NUMBERS if name not in _SCALAR_ONLY]
    targets = {NUMBERS[name]: f"scalar.{name}" for name in scalar_names}
    targets.update({NUMBERS[name] + VECTOR: "vector.op" for name in vector_names})
    # The jump is unchecked, so every possible opcode needs a target.
    targets[END] = "end"
    scalars, vectors = _ScalarBlocks(), _VectorBlocks()
    for name in scalar_names[:-1]:  # the last one, `outside`, is in the template
        scalars.instruction(name)
    for name in vector_names:
        if name in elementwise:
            vectors.operation(name)
        elif name in ("dot", "load", "store", *FOLDS):
            vectors.instruction(name)
    calls_of_c = [name for name in (*CALLED, *OF_ROWS) if name not in OF_EXPONENTIALS]
    calls = [machine_parts.CALLED.format(name=name) for name in calls_of_c]
    calls += [machine_parts.OF_ROW.format(name=name) for name in OF_EXPONENTIALS]
    main = machine_parts.MAIN.format(
        exceptions=exceptions,
        table_size=2 * VECTOR,
        targets=", ".join(f"ptr blockaddress(@run, %{targets.get(i, 'unknown')})" for i in range(2 * VECTOR)),
        labels=", ".join(f"label %{label}" for label in dict.fromkeys([*targets.values(), "unknown"])),
        dispatched_from="".join(f", [%{label}.at, %{label}]" for label in scalars.jumps),
        long=LONG,
        numbers=VECTOR - 1,
        waiting=WAITING,
        scalar_blocks="\n".join(scalars.lines),
        vector_words="\n".join(_word(f"%{word}", i) for i, word in enumerate(_WORDS, 1)),
        vector_cases="\n".join(f"    i32 {NUMBERS[name]}, label %vector.{name}" for name in vector_names),
        short=SHORT,
        failed=FAILED,
        vector_blocks="\n".join([*vectors.lines, *calls]),
        metadata=vectors.metadata(),
    )
    functions = [f"declare void @{name}(ptr, ptr, i64, i64)" for name in calls_of_c]
    functions += map(_exponentials_function, OF_EXPONENTIALS)
    return "\n".join([*machine_parts.INTRINSICS, machine_parts.DECLARED, *functions, main])


def _word(result: str, at: int) -> str:
    """Return IR that loads a word of the current instruction as a 64-bit integer."""
    return f"  {result}.i = i32 %at[{at}]\n  {result} = sext i32 {result}.i to i64"


def _exponentials_function(name: str) -> str:
    """Return the IR of a function for one of :data:`.OF_EXPONENTIALS`, for vectors of any length."""
    text = Emitter()
    text.write_long(name, ("%out", "%a", 0, 0, "%n", "%stride", 0))
    head = f"define internal void @{name}({machine_parts.OF_ROW_GIVEN}) noinline {{\nentry:"
    return "\n".join([head, *text.lines, "  ret void\n}"])


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


class _VectorBlocks(Emitter):
    """Writes the blocks of vector instructions, whose loops assume that results do not overlap operands."""

    def __init__(self) -> None:
        super().__init__()
        self.loops = 0

    def name(self) -> str:
        return f"%v{super().name()[1:]}"

    def instruction(self, name: str) -> None:
        """Write an instruction that processes one element after the other."""
        self.begin(f"vector.{name}")
        self.write_long(name, [f"%{word}" for word in _WORDS])
        self.go("vector.done")

    def operation(self, name: str) -> None:
        """Write an elementwise operation: a loop for any strides, and for some operations contiguous special cases."""
        count = operands(name)
        strides = [f"%s{word}" for word in "abc"[:count]]
        if name not in SIDE_BY_SIDE:
            self._loop(name, f"vector.{name}", strides)
            return
        cases = {"near": ["1", "1"], "left": ["0", "1"], "right": ["1", "0"]} if count == 2 else {"near": ["1"]}
        self.begin(f"vector.{name}")
        for case in cases:
            condition = "%near" if count == 2 else "%a.near"
            if case != "near":
                condition = self.line(f"and i1 {'%a.same, %b.near' if case == 'left' else '%a.near, %b.same'}")
            self.branch(condition, f"{case}.{name}", f"not.{case}.{name}")
            self.begin(f"not.{case}.{name}")
        self.go(f"apart.{name}")
        for case, known in {**cases, "apart": strides}.items():
            self._loop(name, f"{case}.{name}", known)

    def _loop(self, name: str, label: str, strides: list[str]) -> None:
        self.loops += 1
        self.begin(label)
        same = {i: self.line(f"load double, ptr %v{'abc'[i]}.p") for i, stride in enumerate(strides) if stride == "0"}
        i, following, more = self.name(), self.name(), self.name()
        self.go(f"{label}.loop")
        self.begin(f"{label}.loop")
        self.lines.append(f"  {i} = phi i64 [0, %{label}], [{following}, %{label}.loop]")
        values = [
            same[k] if k in same else self.line(f"double %v{'abc'[k]}.p[{i} * {stride}], !llvm.access.group !0")
            for k, stride in enumerate(strides)
        ]
        result = self.elementwise(name, values, f"%{'abc'[len(strides)]}" if name in CALLS else 0)
        self.lines += [
            f"  %vout.p[{i}] = double {result}, !llvm.access.group !0",
            f"  {following} = add i64 {i}, 1",
            f"  {more} = icmp slt i64 {following}, %n",
            f"  br i1 {more}, label %{label}.loop, label %vector.done, !llvm.loop !{2 * self.loops}",
        ]

    # The metadata promises LLVM that no iteration reads what another one writes; results that overlapped operands
    # otherwise than element by element would be wrong. `Code` allocates new cells for a vector's result, except when it
    # rounds in place, and `move()`, which writes to existing cells, first copies sources that overlap.
    def metadata(self) -> str:
        """Return metadata that lets LLVM vectorize each loop, but not interleave or unroll it, which takes seconds."""
        facts = '"llvm.loop.parallel_accesses", !0', '"llvm.loop.interleave.count", i32 1', '"llvm.loop.unroll.disable"'
        lines = ["!0 = distinct !{}", *(f"!{2 * i + 1} = !{{!{fact}}}" for i, fact in enumerate(facts))]
        for i in range(1, self.loops + 1):
            lines += [f"!{2 * i} = distinct !{{!{2 * i}, !1, !3, !5}}"]
        return "\n".join(lines)

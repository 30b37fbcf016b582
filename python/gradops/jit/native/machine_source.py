"""The native machine as LLVM's text: one function that runs the code of any program, made of :mod:`.machine_parts`.

LLVM has an instruction for the address and another for the value, each with a name. Here a position may also be a
product, ``%p[%i * %stride]``, and a distance in bytes, ``%p[%i * %step bytes]``.
"""

from __future__ import annotations

import itertools
import re

from . import machine_parts
from .instructions import (
    CALLED,
    CALLS,
    END,
    FAILED,
    FUSED,
    LONG,
    MATRICES,
    NUMBERS,
    OF_ROWS,
    OPERATIONS,
    REDUCTIONS,
    ROWS,
    SHORT,
    SIDE_BY_SIDE,
    VECTOR,
    WAITING,
)

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


# The native machine as LLVM's text: one function that runs the code of any program, made of :mod:`.machine_parts` -----


_OPERANDS = "xyz"
_WORDS = {"op": 0, "out": 1, "a": 2, "b": 3, "c": 4, "n": 5, "sa": 6, "sb": 7, "sc": 8}
"""The places of the words of an instruction."""


def source(exceptions: int) -> str:
    """The machine's text.

    Args:
        exceptions: the platform's mask of the floating-point exceptions that NumPy warns of.
    """
    elementwise = [*OPERATIONS, *CALLS]
    rows = [name for name in ROWS if name not in ("load", "store")]
    short = ("load", "store", "index", "again", "unless", "require", "outside", *rows)
    loops = _Loops()
    of_vectors = [name for name in elementwise if name not in FUSED]
    blocks = [loops.of(name) for name in of_vectors]
    targets = {NUMBERS[name]: f"scalar.{name}" for name in (*elementwise, *short)}
    targets.update(
        {NUMBERS[name] + VECTOR: "vector.op" for name in NUMBERS if name not in short[2:] and name not in FUSED}
    )
    # Every number that a word may hold has a target, as the jump has no check: it would go anywhere.
    targets[END] = "end"
    main = machine_parts.MAIN.format(
        exceptions=exceptions,
        table_size=2 * VECTOR,
        targets=", ".join(f"ptr blockaddress(@run, %{targets.get(i, 'unknown')})" for i in range(2 * VECTOR)),
        labels=", ".join(f"label %{label}" for label in dict.fromkeys([*targets.values(), "unknown"])),
        dispatched_from="".join(f", [%s.{name}.next, %scalar.{name}]" for name in elementwise),
        long=LONG,
        numbers=VECTOR - 1,
        scalar_blocks="\n".join(map(_scalar_block, elementwise)),
        vector_words="\n".join(_word(f"%{word}", word) for word in ("out", "a", "b", "c", "n", "sa", "sb", "sc")),
        vector_cases=_cases([*of_vectors, *REDUCTIONS, *OF_ROWS, "dot"], "vector"),
        others="\n".join(
            [
                machine_parts.OTHERS.format(
                    exceptions=exceptions,
                    waiting=WAITING,
                    **{name: _words(_PREFIXES.get(name, name)) for name in short},
                ),
                *map(_row_block, rows),
            ]
        ),
        short=SHORT,
        failed=FAILED,
        **{name: NUMBERS[name] for name in ("gather", "pick", "load", "store", *MATRICES)},
        vector_blocks="\n".join([*blocks, *_folds(), *_called(), machine_parts.DOT]),
        reduced=", ".join(f"[%{name}.s, %{_last_block(name)}]" for name in (*REDUCTIONS, "dot")),
        metadata=loops.metadata(),
    )
    return machine_parts.text(exceptions) + main + machine_parts.PARTS.format(failed=FAILED)


def _row_block(name: str) -> str:
    """A load or store of a few numbers side by side."""
    kind, count = ROWS[name]
    p = f"%{name}."
    far, near = ("a", "out") if kind == "load" else ("out", "a")
    lines = [f"scalar.{name}:", _words(name), f"{p}i = i64 %memory[{p}b]"]
    lines += [f"{p}o = mul i64 {p}i, {p}c", f"{p}far = add i64 {p}{far}, {p}o"]
    source, target = (f"{p}far", f"{p}{near}") if kind == "load" else (f"{p}{near}", f"{p}far")
    lines.append(f"{p}from = getelementptr double, ptr %memory, i64 {source}")
    lines.append(f"{p}to = getelementptr double, ptr %memory, i64 {target}")
    lines += [f"{p}x{k} = double {p}from[{k}]" for k in range(count)]
    lines += [f"{p}to[{k}] = double {p}x{k}" for k in range(count)]
    return "\n".join([*lines, "br label %short.done"])


_PREFIXES = {"load": "l", "store": "s", "index": "i"}


def _words(prefix: str) -> str:
    """The words of a short instruction."""
    return "\n".join(_word(f"%{prefix}.{word}", word) for word in ("out", "a", "b", "c"))


def _word(result: str, word: str) -> str:
    """A word of the instruction at hand as a 64-bit number."""
    return f"  {result}.i = i32 %at[{_WORDS[word]}]\n  {result} = sext i32 {result}.i to i64"


def _cases(names, kind: str) -> str:
    return "\n".join(f"    i32 {NUMBERS[name]}, label %{kind}.{name}" for name in names)


def _last_block(name: str) -> str:
    return f"vector.{name}" if name in CALLED else f"{name}.loop"


def _count(name: str) -> int:
    return OPERATIONS[name].operands if name in OPERATIONS else int(name[-1])


def _body(name: str, prefix: str, operands: list[str], function: str) -> str:
    """The operation on named operands; ``function`` holds the number of the function that a call calls."""
    if name in OPERATIONS:
        named = dict(zip(_OPERANDS, operands))
        return OPERATIONS[name].source.format(r=f"{prefix}r", t=f"{prefix}t.", **named)
    given = ", ".join(f"double {x}" for x in operands)
    lines = [f"{prefix}f = ptr %functions[{function}]"]
    if name.startswith("scipy"):
        lines.append(f"{prefix}r = call double @{name}({given}, ptr {prefix}f, ptr %functions)")
    else:
        lines.append(f"{prefix}r = call double {prefix}f({given})")
    return "\n".join(lines)


def _scalar_block(name: str) -> str:
    prefix, count = f"%s.{name}.", _count(name)
    lines, operands = [f"scalar.{name}:", _word(f"{prefix}out", "out")], []
    for word, operand in zip("abc"[:count], _OPERANDS):
        x = prefix + operand
        lines += [_word(f"{x}.at", word), f"{x} = double %memory[{x}.at]"]
        operands.append(x)
    if name in CALLS:
        lines.append(_word(f"{prefix}number", "abc"[count]))
    lines += [
        _body(name, prefix, operands, f"{prefix}number"),
        f"%memory[{prefix}out] = double {prefix}r",
        f"{prefix}next = getelementptr i32, ptr %at, i64 {SHORT}",
        "br label %dispatch",
    ]
    return "\n".join(lines)


class _Loops:
    """The loops of operations on vectors, whose results are apart from their operands."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, name: str) -> str:
        """An operation's: of operands any distance apart, and where there are such, of those side by side."""
        count = _count(name)
        strides = [f"%s{word}" for word in "abc"[:count]]
        if name not in SIDE_BY_SIDE:
            return self._loop(name, f"vector.{name}", f"vector.{name}", strides)
        cases = {"near": ["1", "1"], "left": ["0", "1"], "right": ["1", "0"]} if count == 2 else {"near": ["1"]}
        conditions = {"near": "%near" if count == 2 else "%a.near", "left": "%l.{}", "right": "%r.{}"}
        lines = [f"vector.{name}:"]
        for case in cases:
            condition = conditions[case].format(name)
            if case == "left":
                lines.append(f"  {condition} = and i1 %a.same, %b.near")
            if case == "right":
                lines.append(f"  {condition} = and i1 %a.near, %b.same")
            lines += [f"  br i1 {condition}, label %{case}.{name}, label %not.{case}.{name}", f"not.{case}.{name}:"]
        lines.append(f"  br label %apart.{name}")
        loops = [self._loop(name, f"{case}.{name}", f"{case}.{name}", cases[case]) for case in cases]
        return "\n".join([*lines, *loops, self._loop(name, f"apart.{name}", f"apart.{name}", strides)])

    def _loop(self, name: str, label: str, prefix: str, strides: list[str]) -> str:
        self.count += 1
        before, loads, operands = [], [], []
        for word, operand, stride in zip("abc", _OPERANDS, strides):
            x = f"%{prefix}.{operand}"
            operands.append(x)
            if stride == "0":
                before.append(f"{x} = load double, ptr %v{word}.p")
                continue
            far = "" if stride == "1" else f" * {stride}"
            loads.append(f"{x} = double %v{word}.p[%{prefix}.i{far}], !llvm.access.group !0")
        function = f"%{'abc'[_count(name)]}" if name in CALLS else ""
        return machine_parts.LOOP.format(
            label=label,
            name=prefix,
            before="\n".join(before),
            loads="\n".join(loads),
            body=_body(name, f"%{prefix}.", operands, function),
            number=2 * self.count,
        )

    # LLVM is told that no pass of such a loop reads what another one writes, and believes it: of a result that lay
    # among the operands some elements would be wrong. `Code` gives a vector's result cells of its own, or, to round it,
    # those of its operand one by one; `move()`, which writes to cells that are there, puts sources among them elsewhere
    # first.
    def metadata(self) -> str:
        """The metadata by which LLVM may do the passes of each loop at once; more copies of each take it seconds."""
        facts = '"llvm.loop.parallel_accesses", !0', '"llvm.loop.interleave.count", i32 1', '"llvm.loop.unroll.disable"'
        lines = ["!0 = distinct !{}", *(f"!{2 * i + 1} = !{{!{fact}}}" for i, fact in enumerate(facts))]
        for i in range(1, self.count + 1):
            lines += [f"!{2 * i} = distinct !{{!{2 * i}, !1, !3, !5}}"]
        return "\n".join(lines)


def _called() -> list[str]:
    calls = [machine_parts.CALLED.format(name=name) for name in CALLED]
    return calls + [machine_parts.OF_ROW.format(name=name) for name in OF_ROWS]


def _folds() -> list[str]:
    bodies = {"prod": "multiply", "max": "maximum", "min": "minimum"}
    return [
        machine_parts.FOLD.format(name=name, body=_body(body, f"%{name}.", [f"%{name}.s", f"%{name}.x"], ""))
        for name, body in bodies.items()
    ]

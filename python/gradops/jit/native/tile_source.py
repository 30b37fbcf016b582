"""The layout of plans on large arrays, and LLVM IR of vectorized inner loops for them.

The functions are part of the machine's module. ``tiles`` (``runtime/tiles.c``), which :class:`.tile_run.Tiles` calls,
executes a plan of :mod:`.tile_plan` tile by tile.

An instruction of a plan calls an inner loop of a ufunc, NumPy's or SciPy's, so each element has the same bits and
raises the same floating-point exceptions as in eager execution. This module has vectorized loops for functions that
NumPy computes one element at a time on some or all processors, and for small integer powers.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from . import tile_functions, tile_sums
from .instructions import FUNCTIONS
from .llvm import DECLARED, EIGHT, LANES, Text, inner_loop, source, wide

OPERANDS = 4
"""The most operands of an instruction, including its result."""

COUNTS, STEPS = 4, 9
"""The most counts and strides of a loop, which are those of ``np.matmul``; ``runtime/tiles.c`` has the same numbers."""

HEAD = 7
"""The number of words before the instructions.

They are the number of rows of the domain, of rows of a tile, of operands, of instructions, and of those that each
thread executes once; then the first instruction, and the one after the last, for a last tile that is shorter.
"""

WORDS = 5 + 2 * COUNTS + OPERANDS + STEPS + OPERANDS
"""The number of words of an instruction.

They are the loop and its data, the number of operands, the number of calls and the counts of a call, each as a constant
and a multiple of the tile's rows, then the operands' table rows, the loop's strides, and the strides between calls.
"""


@source
def _source(exceptions: int) -> str:
    loops = [_elementwise_loop(f"power{n}", source) for n, source in tile_functions.POWERS.items()]
    loops += [_elementwise_loop(name, f.source, f.largest) for name, f in FUNCTIONS.items() if f.source]
    declared = [f"declare double @llvm.fma.f64({', '.join(['double'] * 3)})", *DECLARED]
    return "\n".join([*declared, _where(8, "i64"), _where(4, "i32"), *loops, tile_sums.source()])


def _elementwise_loop(name: str, source: str, largest: float = math.inf) -> str:
    """Return the IR of an inner loop for an operation on one operand.

    Args:
        name: the operation; the loop's name is this with ``.tile``.
        source: the operation's IR, as in :class:`.Operation`.
        largest: the largest operand for which ``source`` is accurate; beyond it, the loop calls NumPy's loop.
    """
    text = Text()
    x, out = (text.line(f"ptr %arguments[{i}]") for i in range(2))
    count = text.line("load i64, ptr %count")
    strides = [text.line(f"i64 %steps[{i}]") for i in range(2)]
    is_near = text.both(*[text.line(f"icmp eq i64 {stride}, 8") for stride in strides])
    near, other = text.label(), text.label()

    # Explicit vectors: the operand and the result may be the same array, so LLVM would not vectorize the loop itself.
    def eight(i: str, _: list) -> list:
        value = text.computed(wide(source), [text.eight(text.at(x, i))])
        text.store(EIGHT, value, text.at(out, i), ", align 8")
        return []

    def scalar_loop(first: str, *strides: str) -> None:
        def scalar_step(i: str, _: list) -> list:
            value = text.computed(source, [text.line(f"double {x}[{i} * {strides[0]} bytes]")])
            text.lines.append(f"  {out}[{i} * {strides[1]} bytes] = double {value}")
            return []

        text.loop(first, count, 1, [], scalar_step)

    def is_beyond(i: str, found: list) -> list:
        value = text.line(f"double {x}[{i}]")
        size = text.line(f"call double @llvm.fabs.f64(double {value})")
        is_small = text.line(f"fcmp ult double {size}, {_bits(largest)}")
        is_good = text.both(is_small, text.line(f"fcmp ord double {value}, 0.0"))
        return [text.number("or", found[0], text.line(f"select i1 {is_good}, i64 0, i64 1"))]

    if largest == math.inf:
        text.branch(is_near, near, other)
        text.begin(other)
        scalar_loop("0", *strides)
    else:  # `data` is NumPy's loop, for tiles with a large element or a NaN, and for strided ones
        text.guard(is_near, other)
        (beyond,) = text.loop("0", count, 1, [("i64", "0")], is_beyond)
        text.branch(text.line(f"icmp eq i64 {beyond}, 0"), near, other)
        text.begin(other)
        text.lines.append("  call void %data(ptr %arguments, ptr %count, ptr %steps, ptr null)")
    text.lines.append("  ret void")
    text.begin(near)
    whole = text.number("and", count, -LANES)
    text.loop("0", whole, LANES, [], eight)
    scalar_loop(whole, "8", "8")
    return inner_loop(f"{name}.tile", text)


def _bits(number: float) -> str:
    return f"0x{struct.pack('>d', number).hex()}"


def _where(size: int, kind: str) -> str:
    """Return the IR of an inner loop for ``np.where``, specialised for contiguous operands and single numbers.

    Args:
        size: the size of an element in bytes.
        kind: an IR type of this size.
    """
    text, kinds = Text(), ("i8", kind, kind, kind)
    arrays = [text.line(f"ptr %arguments[{i}]") for i in range(4)]
    steps = [text.line(f"i64 %steps[{i}]") for i in range(4)]
    count = text.line("load i64, ptr %count")

    def loop(strides: Sequence[int | str]) -> None:
        def element(i: str, _: list) -> list:
            *places, out = [f"{array}[{i} * {stride} bytes]" for array, stride in zip(arrays, strides)]
            is_first, x, y = [text.line(f"{kind} {place}") for kind, place in zip(kinds, places)]
            chosen = text.line(f"select i1 {text.line(f'icmp ne i8 {is_first}, 0')}, {kind} {x}, {kind} {y}")
            text.lines.append(f"  {out} = {kind} {chosen}")
            return []

        text.loop("0", count, 1, [], element)

    for x in (size, 0):
        for y in (size, 0):
            known, other = (1, x, y, size), text.label()
            text.guard(text.both(*[text.line(f"icmp eq i64 {s}, {stride}") for s, stride in zip(steps, known)]), other)
            loop(known)
            text.lines.append("  ret void")
            text.begin(other)
    loop(steps)
    return inner_loop(f"where{size}", text)

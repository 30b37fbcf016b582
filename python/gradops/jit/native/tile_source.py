"""LLVM IR of the function ``tiles``, which executes plans on large arrays tile by tile, and of vectorized inner loops.

The functions are part of the machine's module. :class:`.tile_run.Tiles` calls ``tiles`` with a plan of
:mod:`.tile_plan`.

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
"""The most counts and strides of a loop, which are those of ``np.matmul``."""

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

# Several threads execute this function on the same plan. The only memory that they share and write is `next`, which
# gives each its next tile, so no ordering between them is needed (`monotonic`). A tile's results and its parts of sums
# belong to it alone, and Python reads them after it has waited for all threads. A thread's room starts with the
# addresses of the current tile's operands; loops receive the room's address after those of their operands. The first
# instructions, whose results are the same for all tiles, are executed only for a thread's first tile. Only the very
# last tile may have fewer rows, and no thread takes a tile after it. It has its own instructions, as compiled functions
# are for full tiles.
_TILES = """
define i32 @tiles(ptr %plan, ptr %operands, ptr %room, ptr %next, ptr %functions) {{
entry:
  %arguments = alloca [{most} x ptr]
  %behind = getelementptr ptr, ptr %arguments, i64 {behind}
  store ptr %room, ptr %behind
  %count = alloca [{counts} x i64]
  %clear = load ptr, ptr %functions
  call i32 %clear(i32 {exceptions})
  %test = ptr %functions[1]
  %rows = load i64, ptr %plan
  %per = i64 %plan[1]
  %places = i64 %plan[2]
  %code.count = i64 %plan[3]
  %code = getelementptr i64, ptr %plan, i64 {head}
  %once = i64 %plan[4]
  %once.words = mul i64 %once, {words}
  %later = getelementptr i64, ptr %code, i64 %once.words
  %code.words = mul i64 %code.count, {words}
  %code.end = getelementptr i64, ptr %code, i64 %code.words
  %last.first = i64 %plan[5]
  %last.first.words = mul i64 %last.first, {words}
  %last = getelementptr i64, ptr %code, i64 %last.first.words
  %last.end.at = i64 %plan[6]
  %last.end.words = mul i64 %last.end.at, {words}
  %last.end = getelementptr i64, ptr %code, i64 %last.end.words
  %room.i = ptrtoint ptr %room to i64
  br label %tile
tile:
  %raised = phi i32 [0, %entry], [%raised.now, %instructions]
  %from = phi ptr [%code, %entry], [%later, %instructions]
  %number = atomicrmw add ptr %next, i64 1 monotonic
  %start = mul i64 %number, %per
  %left = sub i64 %rows, %start
  %over = icmp sle i64 %left, 0
  br i1 %over, label %done, label %place
done:
  ret i32 %raised
place: ; compute the addresses of this tile's operands
  %j = phi i64 [0, %tile], [%j1, %place]
  %p.at = mul i64 %j, 4
  %p = getelementptr i64, ptr %operands, i64 %p.at
  %p.base = load i64, ptr %p
  %in.room = i64 %p[1]
  %p.row = i64 %p[2]
  %p.tile = i64 %p[3]
  %of.room = mul i64 %in.room, %room.i
  %of.row = mul i64 %start, %p.row
  %of.tile = mul i64 %number, %p.tile
  %a1 = add i64 %p.base, %of.room
  %a2 = add i64 %a1, %of.row
  %a3 = add i64 %a2, %of.tile
  %room[%j] = i64 %a3
  %j1 = add i64 %j, 1
  %j.more = icmp slt i64 %j1, %places
  br i1 %j.more, label %place, label %begin
begin:
  %short = icmp slt i64 %left, %per
  %here = select i1 %short, i64 %left, i64 %per
  %begun = select i1 %short, ptr %last, ptr %from
  %end = select i1 %short, ptr %last.end, ptr %code.end
  br label %instructions
instructions:
  %at = phi ptr [%begun, %begin], [%at1, %after]
  %raised.now = phi i32 [%raised, %begin], [%raised.next, %after]
  %is.end = icmp eq ptr %at, %end
  br i1 %is.end, label %tile, label %instruction
instruction:
  %loop = load ptr, ptr %at
{loads}
  %data = inttoptr i64 %data.i to ptr
  %outer.rows = mul i64 %outer.each, %here
  %outer = add i64 %outer.rows, %outer.fixed
{products}
  %own = getelementptr i64, ptr %at, i64 {own}
  %steps = getelementptr i64, ptr %at, i64 {steps}
  %far = getelementptr i64, ptr %at, i64 {far}
  br label %pass
pass:
  %o = phi i64 [0, %instruction], [%o1, %call]
  br label %argument
argument: ; set again before each call, as a loop may overwrite its arguments and counts
  %k = phi i64 [0, %pass], [%k1, %argument]
  %k.number = i64 %own[%k]
  %k.base = i64 %room[%k.number]
  %k.step = i64 %far[%k]
  %k.off = mul i64 %k.step, %o
  %k.address = add i64 %k.base, %k.off
  %arguments[%k] = i64 %k.address
  %k1 = add i64 %k, 1
  %k.more = icmp slt i64 %k1, %used
  br i1 %k.more, label %argument, label %call
call:
{stores}
  call void %loop(ptr %arguments, ptr %count, ptr %steps, ptr %data)
  %o1 = add i64 %o, 1
  %o.more = icmp slt i64 %o1, %outer
  br i1 %o.more, label %pass, label %after
after: ; read the flags after each loop, as the next one may clear them
  %new = call i32 %test(i32 {exceptions})
  %raised.next = or i32 %raised.now, %new
  %at1 = getelementptr i64, ptr %at, i64 {words}
  br label %instructions
}}
"""

# Executes all tiles in one thread, then the closing instructions, if any.
_ALONE = """
define i32 @tiles.alone(ptr %plan, ptr %operands, ptr %room, ptr %next, ptr %functions, ptr %closing) {
  store i64 0, ptr %next
  %raised = call i32 @tiles(ptr %plan, ptr %operands, ptr %room, ptr %next, ptr %functions)
  %no.parts = icmp eq ptr %closing, null
  br i1 %no.parts, label %done, label %join
done:
  ret i32 %raised
join:
  store i64 0, ptr %next
  %more = call i32 @tiles(ptr %closing, ptr %operands, ptr %room, ptr %next, ptr %functions)
  %all = or i32 %raised, %more
  ret i32 %all
}
"""

_LOADED = ("data.i", "used", "outer.fixed", "outer.each")

_COUNT = """
  %count{i}.fixed = i64 %at[{fixed}]
  %count{i}.each = i64 %at[{each}]
  %count{i}.rows = mul i64 %count{i}.each, %here
  %count{i} = add i64 %count{i}.rows, %count{i}.fixed"""

_STORE = "  %count[{i}] = i64 %count{i}"


@source
def _source(exceptions: int) -> str:
    loads = [f"  %{name} = i64 %at[{i}]" for i, name in enumerate(_LOADED, 1)]
    own = 5 + 2 * COUNTS
    tiles = _TILES.format(
        most=OPERANDS + 1,
        behind=OPERANDS,
        head=HEAD,
        counts=COUNTS,
        words=WORDS,
        exceptions=exceptions,
        loads="\n".join(loads),
        products="".join(_COUNT.format(i=i, fixed=5 + 2 * i, each=6 + 2 * i) for i in range(COUNTS)),
        stores="\n".join(_STORE.format(i=i) for i in range(COUNTS)),
        own=own,
        steps=own + OPERANDS,
        far=own + OPERANDS + STEPS,
    )
    loops = [_elementwise_loop(f"power{n}", source) for n, source in tile_functions.POWERS.items()]
    loops += [_elementwise_loop(name, f.source, f.largest) for name, f in FUNCTIONS.items() if f.source]
    declared = [f"declare double @llvm.fma.f64({', '.join(['double'] * 3)})", *DECLARED]
    return "\n".join([*declared, tiles, _ALONE, _where(8, "i64"), _where(4, "i32"), *loops, tile_sums.source()])


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

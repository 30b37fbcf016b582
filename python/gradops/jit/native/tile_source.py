"""The second function of the native machine as LLVM's text: steps on large arrays, tile by tile.

An instruction is a call of a ufunc's own inner loop, NumPy's or SciPy's, so that each element has the bits and the
floating-point exceptions that it has eagerly. Functions whose loops compute one element at a time, all or on some
processors, have loops of their own, and so have powers of whole numbers.
"""

from __future__ import annotations

import struct

from . import tile_functions, tile_sums
from .llvm import DECLARED, EIGHT, LANES, Text, source, wide

OPERANDS = 4
"""The most operands of an instruction, its result among them."""

COUNTS, STEPS = 4, 9
"""The counts and strides that a loop takes at most: those of ``np.matmul``."""

HEAD = 7
"""Words before the instructions: rows of the domain and of a tile, operands, instructions, those that are done once,
the first and the end of the last tile's where it is shorter."""

WORDS = 5 + 2 * COUNTS + OPERANDS + STEPS + OPERANDS
"""Words of an instruction.

Loop and its data, the number of operands, the number of calls and the counts of a call, each as a constant and as a
multiple of the rows of a tile, then the operands, the loop's strides, and strides from call to call.
"""

# Threads run this function at the same time on one plan. All that they share and write is `next`, from which each takes
# the number of its next tile, so no order between them is asked for (`monotonic`); a tile's results, and its parts of
# sums, are its own, and Python sees them once it has waited for all threads. The addresses of a tile's operands stand
# at the beginning of the thread's own room, whose address a loop finds behind those of its operands. The first
# instructions, whose results are the same for all tiles, are done for a thread's first tile alone; only the last of all
# has fewer rows, and no thread takes another after it. It has its own instructions, as compiled ones are of full tiles.
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
place: ; the addresses of the operands of this tile
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
argument: ; a loop may write over its arguments and its count
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
after: ; each loop may clear the flags of those before it
  %new = call i32 %test(i32 {exceptions})
  %raised.next = or i32 %raised.now, %new
  %at1 = getelementptr i64, ptr %at, i64 {words}
  br label %instructions
}}
"""

# All tiles by one thread, then what joins their parts, where there are any.
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

# A choice of elements: a loop for each of the two operands that may be one number.
_WHERE = """
define void @where{size}(ptr %arguments, ptr %count, ptr %steps, ptr %data) {{
  %c = load ptr, ptr %arguments
  %x = ptr %arguments[1]
  %y = ptr %arguments[2]
  %out = ptr %arguments[3]
  %n = load i64, ptr %count
  %sc = load i64, ptr %steps
  %sx = i64 %steps[1]
  %sy = i64 %steps[2]
  %so = i64 %steps[3]
  %c.near = icmp eq i64 %sc, 1
  %o.near = icmp eq i64 %so, {size}
  %near = and i1 %c.near, %o.near
  %x.near = icmp eq i64 %sx, {size}
  %y.near = icmp eq i64 %sy, {size}
  %x.one = icmp eq i64 %sx, 0
  %y.one = icmp eq i64 %sy, 0
  br i1 %near, label %x.any, label %far
x.any:
  br i1 %x.near, label %xa, label %x.same
x.same:
  br i1 %x.one, label %xo, label %far
xa:
  br i1 %y.near, label %aa, label %xa.same
xa.same:
  br i1 %y.one, label %ao, label %far
xo:
  br i1 %y.near, label %oa, label %xo.same
xo.same:
  br i1 %y.one, label %oo, label %far
{loops}
end:
  ret void
}}
"""

_WHERE_LOOP = """
{name}:
  %{name}.i = phi i64 [0, %{before}], [%{name}.i1, %{name}]
  %{name}.c = i8 %c[%{name}.i * {sc}]
  %{name}.is = icmp ne i8 %{name}.c, 0
  %{name}.x = {kind} %x[%{name}.i * {sx} bytes]
  %{name}.y = {kind} %y[%{name}.i * {sy} bytes]
  %{name}.r = select i1 %{name}.is, {kind} %{name}.x, {kind} %{name}.y
  %out[%{name}.i * {so} bytes] = {kind} %{name}.r
  %{name}.i1 = add i64 %{name}.i, 1
  %{name}.more = icmp slt i64 %{name}.i1, %n
  br i1 %{name}.more, label %{name}, label %end
"""

_OF_ONE = """define void @{name}.tile(ptr %arguments, ptr %count, ptr %steps, ptr %data) {{
  %x = load ptr, ptr %arguments
  %out = ptr %arguments[1]
  %n = load i64, ptr %count
  %sx = load i64, ptr %steps
  %so = i64 %steps[1]
  %x.near = icmp eq i64 %sx, 8
  %o.near = icmp eq i64 %so, 8
  %near = and i1 %x.near, %o.near
"""
"""The beginning of a loop of one operand: where both lie, and if their elements lie side by side."""

# Of a wave the data is the loop for a tile in which an element is larger, or none, or whose elements lie apart.
_LOOK = """
{begin}  br i1 %near, label %look, label %other
look:
  %l = phi i64 [0, %0], [%l1, %look]
  %bad = phi i64 [0, %0], [%bad1, %look]
  %l.x = double %x[%l]
  %l.size = call double @llvm.fabs.f64(double %l.x)
  %l.small = fcmp ult double %l.size, {largest}
  %l.number = fcmp ord double %l.x, 0.0
  %l.good = and i1 %l.small, %l.number
  %l.bad = select i1 %l.good, i64 0, i64 1
  %bad1 = or i64 %bad, %l.bad
  %l1 = add i64 %l, 1
  %l.more = icmp slt i64 %l1, %n
  br i1 %l.more, label %look, label %looked
looked:
  %any = icmp ne i64 %bad1, 0
  br i1 %any, label %other, label %each
other:
  call void %data(ptr %arguments, ptr %count, ptr %steps, ptr null)
  ret void
"""

_APART = """
{begin}  br i1 %near, label %each, label %apart
apart:
  %i = phi i64 [0, %0], [%i1, %apart]
  %v = double %x[%i * %sx bytes]
{body}
  %out[%i * %so bytes] = double %r
  %i1 = add i64 %i, 1
  %i.more = icmp slt i64 %i1, %n
  br i1 %i.more, label %apart, label %end
end:
  ret void
"""

POWERS = range(3, 9)
"""Exponents of which there are loops."""


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
    powers = {f"power{n}": power(n) for n in POWERS}
    loops = [_each(name, source) for name, source in {**powers, **tile_functions.FUNCTIONS}.items()]
    loops += [_each(name, source, _LOOK) for name, source in tile_functions.WAVES.items()]
    declared = [f"declare double @llvm.fma.f64({', '.join(['double'] * 3)})", *DECLARED]
    return "\n".join([*declared, tiles, _ALONE, _where(8, "i64"), _where(4, "i32"), *loops, tile_sums.source()])


def _each(name: str, source: str, apart: str = _APART) -> str:
    """The loop of an operation of one operand, ``source`` as of :class:`.Operation`.

    Args:
        apart: what is done where elements lie apart; it goes to ``each`` where they lie side by side.
    """
    body = source.format(r="%r", t="%t.", x="%v")
    begun = _OF_ONE.format(name=name)
    text = Text("each")
    whole = text.number("and", "%n", -LANES)

    # The operand and the result may be one array, of which LLVM would not take several elements at once by itself.
    def eight(i: str, _: list) -> list:
        value = text.computed(wide(source), [text.eight(text.at("%x", i))])
        text.store(EIGHT, value, text.at("%out", i), ", align 8")
        return []

    def one(i: str, _: list) -> list:
        value = text.computed(source, [text.line(f"load double, ptr {text.at('%x', i)}")])
        text.store("double", value, text.at("%out", i))
        return []

    text.loop("0", whole, LANES, [], eight)
    text.loop(whole, "%n", 1, [], one)
    first = apart.format(begin=begun, body=body, largest=_bits(tile_functions.LARGEST))
    return "\n".join([first, "each:", *text.lines, "  ret void", "}", ""])


def _bits(number: float) -> str:
    return f"0x{struct.pack('>d', number).hex()}"


def power(exponent: int) -> str:
    """The source of a power of ``{x}``, as of :class:`.Operation`."""
    # Of products with their rounding errors, by which the power has the rounding of its last sum alone.
    lines, last = [], 0
    for digit in bin(exponent)[3:]:
        for of_x in (False, True)[: 1 + int(digit)]:
            h, low = f"{{t}}h{last}" if last else "{x}", f"{{t}}l{last}"
            other, last = "{x}" if of_x else h, last + 1
            p, q, out = f"{{t}}h{last}", f"{{t}}q{last}", f"{{t}}l{last}"
            lines += [f"{p} = fmul double {h}, {other}", f"{q}.n = fneg double {p}"]
            lines.append(f"{q} = call double @llvm.fma.f64(double {h}, double {other}, double {q}.n)")
            if last == 1:
                lines.append(f"{out} = fadd double {q}, 0.0")
            else:
                lines.append(f"{q}.c = fmul double {other}, {'1.0' if of_x else '2.0'}")
                lines.append(f"{out} = call double @llvm.fma.f64(double {low}, double {q}.c, double {q})")
    # Where a product overflows its rounding error is infinite less infinite, a NaN. Such a low part says nothing, and
    # the high one alone is the power, infinite as NumPy's.
    lines.append(f"{{t}}s = fadd double {{t}}h{last}, {{t}}l{last}")
    lines.append(f"{{t}}size = call double @llvm.fabs.f64(double {{t}}l{last})")
    lines.append("{t}finite = fcmp olt double {t}size, 0x7FF0000000000000")
    lines.append(f"{{r}} = select i1 {{t}}finite, double {{t}}s, double {{t}}h{last}")
    return "\n".join(lines)


def _where(size: int, kind: str) -> str:
    strides = {"o": "0", "a": str(size)}
    loops = [
        _WHERE_LOOP.format(name=x + y, kind=kind, sc=1, sx=strides[x], sy=strides[y], so=size, before=before)
        for x, y, before in (("a", "a", "xa"), ("a", "o", "xa.same"), ("o", "a", "xo"), ("o", "o", "xo.same"))
    ]
    far = _WHERE_LOOP.format(name="each", kind=kind, sc="%sc", sx="%sx", sy="%sy", so="%so", before="far")
    return _WHERE.format(size=size, loops="\n".join([*loops, "far:\n  br label %each", far]))

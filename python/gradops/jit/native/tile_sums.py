"""Sums, products of matrices with vectors, and repeated rows, for :mod:`.tile_source`: eight float64 at once.

The sum is NumPy's pairwise one to the bit: its eight partial sums are the parts of one vector.
"""

from __future__ import annotations

_V, _TYPE = 8, "<8 x double>"


def source() -> str:
    """The text."""
    return "\n".join([_DECLARED, JOINED, _SUM, _SPREAD, _matrix_by_vector(), _vector_by_matrix()])


JOINED = """
define internal double @joined(<8 x double> %r) alwaysinline {
  %a = shufflevector <8 x double> %r, <8 x double> poison, <4 x i32> <i32 0, i32 2, i32 4, i32 6>
  %b = shufflevector <8 x double> %r, <8 x double> poison, <4 x i32> <i32 1, i32 3, i32 5, i32 7>
  %s = fadd <4 x double> %a, %b
  %c = shufflevector <4 x double> %s, <4 x double> poison, <2 x i32> <i32 0, i32 2>
  %d = shufflevector <4 x double> %s, <4 x double> poison, <2 x i32> <i32 1, i32 3>
  %t = fadd <2 x double> %c, %d
  %x = extractelement <2 x double> %t, i64 0
  %y = extractelement <2 x double> %t, i64 1
  %z = fadd double %x, %y
  ret double %z
}
"""
"""The sum of eight parts in NumPy's order."""

# The last numbers of a row are fewer than eight, and those behind them may be another's memory, or none. So they are
# read under a mask (`first`), with zeros for the others: a product of two zeros adds nothing, where a product of 0 and
# what happens to stand there could be a NaN.
_DECLARED = """
declare <8 x double> @llvm.fma.v8f64(<8 x double>, <8 x double>, <8 x double>)
declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)
declare void @llvm.masked.store.v8f64.p0(<8 x double>, ptr, i32, <8 x i1>)

define internal <8 x i1> @first(i64 %n) alwaysinline {
  %one = insertelement <8 x i64> poison, i64 %n, i64 0
  %all = shufflevector <8 x i64> %one, <8 x i64> poison, <8 x i32> zeroinitializer
  %is = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %all
  ret <8 x i1> %is
}
"""

# NumPy begins a sum one by one with -0.0, the number that changes no other, and adds the whole to what the result
# holds, which is 0.0 at first: a sum of negative zeros is 0.0.
_SUM = """
define internal double @pairwise.near(ptr %a, i64 %n) {
  %large = icmp sgt i64 %n, 128
  br i1 %large, label %split, label %block
split:
  %half = sdiv i64 %n, 2
  %n2 = and i64 %half, -8
  %n3 = sub i64 %n, %n2
  %p2 = getelementptr double, ptr %a, i64 %n2
  %left = call double @pairwise.near(ptr %a, i64 %n2)
  %right = call double @pairwise.near(ptr %p2, i64 %n3)
  %both = fadd double %left, %right
  ret double %both
block:
  %whole = and i64 %n, -8
  %few = icmp eq i64 %whole, 0
  br i1 %few, label %tail, label %begin
begin:
  %r0 = load <8 x double>, ptr %a, align 8
  br label %eight
eight:
  %k = phi i64 [8, %begin], [%k8, %add]
  %r = phi <8 x double> [%r0, %begin], [%r1, %add]
  %on = icmp slt i64 %k, %whole
  br i1 %on, label %add, label %join
add:
  %p = getelementptr double, ptr %a, i64 %k
  %v = load <8 x double>, ptr %p, align 8
  %r1 = fadd <8 x double> %r, %v
  %k8 = add i64 %k, 8
  br label %eight
join:
  %j = call double @joined(<8 x double> %r)
  br label %tail
tail:
  %i = phi i64 [0, %block], [%whole, %join], [%i1, %one]
  %s = phi double [-0.0, %block], [%j, %join], [%s1, %one]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %done
one:
  %w = double %a[%i]
  %s1 = fadd double %s, %w
  %i1 = add i64 %i, 1
  br label %tail
done:
  ret double %s
}

define void @sum.tile(ptr %arguments, ptr %count, ptr %steps, ptr %data) {
  %out = load ptr, ptr %arguments
  %x = ptr %arguments[1]
  %n = load i64, ptr %count
  %so = load i64, ptr %steps
  %sx = i64 %steps[1]
  %reduces = icmp eq i64 %so, 0
  %near = icmp eq i64 %sx, 8
  %ours = and i1 %reduces, %near
  br i1 %ours, label %here, label %other
here:
  %before = load double, ptr %out
  %s = call double @pairwise.near(ptr %x, i64 %n)
  %sum = fadd double %before, %s
  store double %sum, ptr %out
  ret void
other:
  call void %data(ptr %arguments, ptr %count, ptr %steps, ptr null)
  ret void
}
"""

_SPREAD = """
define void @spread.tile(ptr %arguments, ptr %count, ptr %steps, ptr %data) {
entry:
  %x = load ptr, ptr %arguments
  %out = ptr %arguments[1]
  %rows = load i64, ptr %count
  %width = i64 %count[1]
  %along = load i64, ptr %steps
  %across = i64 %steps[1]
  %is.row = icmp eq i64 %across, 0
  br label %row
row:
  %r = phi i64 [0, %entry], [%r1, %next]
  %from.o = mul i64 %r, %across
  %from = getelementptr i8, ptr %x, i64 %from.o
  %to.o = mul i64 %r, %width
  %to = getelementptr double, ptr %out, i64 %to.o
  br i1 %is.row, label %copy, label %same
same:
  %number = load double, ptr %from
  br label %fill
fill:
  %c = phi i64 [0, %same], [%c1, %fill]
  %to[%c] = double %number
  %c1 = add i64 %c, 1
  %c.more = icmp slt i64 %c1, %width
  br i1 %c.more, label %fill, label %next
copy:
  %k = phi i64 [0, %row], [%k1, %copy]
  %k.x = double %from[%k]
  %to[%k] = double %k.x
  %k1 = add i64 %k, 1
  %k.more = icmp slt i64 %k1, %width
  br i1 %k.more, label %copy, label %next
next:
  %r1 = add i64 %r, 1
  %r.more = icmp slt i64 %r1, %rows
  br i1 %r.more, label %row, label %end
end:
  ret void
}
"""

_BEGIN = """
define void @{name}.tile(ptr %arguments, ptr %count, ptr %steps, ptr %data) {{
entry:
  %x = load ptr, ptr %arguments
  %v = ptr %arguments[1]
  %out = ptr %arguments[2]
  %first = i64 %count[1]
  %second = i64 %count[2]
"""


def _load(name: str, pointer: str, mask: str | None = None) -> str:
    if mask is None:
        return f"  {name} = load {_TYPE}, ptr {pointer}, align 8\n"
    masked = f"call {_TYPE} @llvm.masked.load.v8f64.p0(ptr {pointer}, i32 8, <8 x i1> {mask}, {_TYPE} zeroinitializer)"
    return f"  {name} = {masked}\n"


def _fused(name: str, a: str, b: str, c: str) -> str:
    return f"  {name} = call {_TYPE} @llvm.fma.v8f64({_TYPE} {a}, {_TYPE} {b}, {_TYPE} {c})\n"


def _splat(name: str, pointer: str) -> str:
    return (
        f"  {name}.d = load double, ptr {pointer}\n  {name}.1 = insertelement {_TYPE} poison, double {name}.d, i64 0\n"
        f"  {name} = shufflevector {_TYPE} {name}.1, {_TYPE} poison, <8 x i32> zeroinitializer\n"
    )


# BLAS, which NumPy calls, adds in an order of its own that depends on the processor: a product has no bits that would
# have to be the same. What must be is that they do not depend on threads, so each row, or each tile's part of a column,
# is added in one order, whoever does it.
def _matrix_by_vector() -> str:
    """A number for each row: eight rows at once, then the rest one by one."""
    text = _BEGIN.format(name="matvec")
    text += """  %whole = and i64 %second, -8
  %rest = sub i64 %second, %whole
  %mask = call <8 x i1> @first(i64 %rest)
  %vt.p = getelementptr double, ptr %v, i64 %whole
"""
    text += _load("%vt", "%vt.p", "%mask") + "  %eights = and i64 %first, -8\n  br label %e.rows\n"
    for name, rows, start, limit, after in (("e", _V, "0", "%eights", "o.rows"), ("o", 1, "%eights", "%first", "end")):
        before = "entry" if name == "e" else "e.rows"
        text += f"{name}.rows:\n  %{name}.r = phi i64 [{start}, %{before}], [%{name}.r1, %{name}.tail]\n"
        text += (
            f"  %{name}.on = icmp slt i64 %{name}.r, {limit}\n  br i1 %{name}.on, label %{name}.row, label %{after}\n"
        )
        text += f"{name}.row:\n"
        for i in range(rows):
            text += f"  %{name}.n{i} = add i64 %{name}.r, {i}\n  %{name}.o{i} = mul i64 %{name}.n{i}, %second\n"
            text += f"  %{name}.p{i} = getelementptr double, ptr %x, i64 %{name}.o{i}\n"
        text += f"  br label %{name}.chunks\n{name}.chunks:\n"
        text += f"  %{name}.j = phi i64 [0, %{name}.row], [%{name}.j1, %{name}.chunk]\n"
        for i in range(rows):
            text += f"  %{name}.a{i} = phi {_TYPE} [zeroinitializer, %{name}.row], [%{name}.b{i}, %{name}.chunk]\n"
        text += f"  %{name}.jon = icmp slt i64 %{name}.j, %whole\n"
        text += f"  br i1 %{name}.jon, label %{name}.chunk, label %{name}.tail\n{name}.chunk:\n"
        text += f"  %{name}.v.p = getelementptr double, ptr %v, i64 %{name}.j\n" + _load(f"%{name}.v", f"%{name}.v.p")
        for i in range(rows):
            text += f"  %{name}.x{i}.p = getelementptr double, ptr %{name}.p{i}, i64 %{name}.j\n"
            text += _load(f"%{name}.x{i}", f"%{name}.x{i}.p")
            text += _fused(f"%{name}.b{i}", f"%{name}.x{i}", f"%{name}.v", f"%{name}.a{i}")
        text += f"  %{name}.j1 = add i64 %{name}.j, 8\n  br label %{name}.chunks\n{name}.tail:\n"
        for i in range(rows):
            text += f"  %{name}.t{i}.p = getelementptr double, ptr %{name}.p{i}, i64 %whole\n"
            text += _load(f"%{name}.t{i}", f"%{name}.t{i}.p", "%mask")
            text += _fused(f"%{name}.s{i}", f"%{name}.t{i}", "%vt", f"%{name}.a{i}")
        text += f"  %{name}.out = getelementptr double, ptr %out, i64 %{name}.r\n"
        if rows == 1:
            text += f"  %o.sum = call double @joined({_TYPE} %o.s0)\n  store double %o.sum, ptr %o.out\n"
        else:
            text += _sums([f"%e.s{i}" for i in range(rows)]) + f"  store {_TYPE} %e.sum, ptr %e.out, align 8\n"
        text += f"  %{name}.r1 = add i64 %{name}.r, {rows}\n  br label %{name}.rows\n"
    return text + "end:\n  ret void\n}\n"


def _sums(vectors: list[str]) -> str:
    """The sums of eight vectors as one, ``%e.sum``."""
    text, level = "", 0
    even, odd = (", ".join(f"i32 {i}" for i in range(start, 16, 2)) for start in (0, 1))
    while len(vectors) > 1:
        following = []
        for i in range(0, len(vectors), 2):
            name = "%e.sum" if len(vectors) == 2 else f"%e.l{level}.{i}"
            for part, places in (("a", even), ("b", odd)):
                pair = f"{_TYPE} {vectors[i]}, {_TYPE} {vectors[i + 1]}"
                text += f"  {name}.{part} = shufflevector {pair}, <8 x i32> <{places}>\n"
            text += f"  {name} = fadd {_TYPE} {name}.a, {name}.b\n"
            following.append(name)
        vectors, level = following, level + 1
    return text


def _vector_by_matrix() -> str:
    """A number for each column: 32 columns at once, then eight, or the last few, with four sums each."""
    text = _BEGIN.format(name="vecmat") + "  %wide = and i64 %first, -32\n  br label %w.columns\n"
    # %first columns, %second rows
    text += """w.columns:
  %w.j = phi i64 [0, %entry], [%w.j1, %w.done]
  %w.on = icmp slt i64 %w.j, %wide
  br i1 %w.on, label %w.rows, label %c.columns
w.rows:
  %w.i = phi i64 [0, %w.columns], [%w.i1, %w.rows]
"""
    for c in range(4):
        text += f"  %w.a{c} = phi {_TYPE} [zeroinitializer, %w.columns], [%w.b{c}, %w.rows]\n"
    text += "  %w.v.p = getelementptr double, ptr %v, i64 %w.i\n" + _splat("%w.v", "%w.v.p")
    text += "  %w.o = mul i64 %w.i, %first\n  %w.oj = add i64 %w.o, %w.j\n"
    for c in range(4):
        text += f"  %w.c{c} = add i64 %w.oj, {8 * c}\n  %w.p{c} = getelementptr double, ptr %x, i64 %w.c{c}\n"
        text += _load(f"%w.x{c}", f"%w.p{c}") + _fused(f"%w.b{c}", f"%w.x{c}", "%w.v", f"%w.a{c}")
    text += "  %w.i1 = add i64 %w.i, 1\n  %w.more = icmp slt i64 %w.i1, %second\n"
    text += "  br i1 %w.more, label %w.rows, label %w.done\nw.done:\n"
    for c in range(4):
        text += f"  %w.d{c} = add i64 %w.j, {8 * c}\n  %w.q{c} = getelementptr double, ptr %out, i64 %w.d{c}\n"
        text += f"  store {_TYPE} %w.b{c}, ptr %w.q{c}, align 8\n"
    text += "  %w.j1 = add i64 %w.j, 32\n  br label %w.columns\n"
    text += """c.columns:
  %c.j = phi i64 [%wide, %w.columns], [%c.j1, %c.done]
  %c.on = icmp slt i64 %c.j, %first
  br i1 %c.on, label %c.begin, label %end
c.begin:
  %c.left = sub i64 %first, %c.j
  %c.mask = call <8 x i1> @first(i64 %c.left)
  %c.fours = and i64 %second, -4
  br label %c.four
"""
    text += "c.four:\n  %c.i = phi i64 [0, %c.begin], [%c.i4, %c.four.body]\n"
    for u in range(4):
        text += f"  %c.a{u} = phi {_TYPE} [zeroinitializer, %c.begin], [%c.b{u}, %c.four.body]\n"
    text += "  %c.four.on = icmp slt i64 %c.i, %c.fours\n  br i1 %c.four.on, label %c.four.body, label %c.join\n"
    text += "c.four.body:\n"
    for u in range(4):
        text += f"  %c.n{u} = add i64 %c.i, {u}\n  %c.v{u}.p = getelementptr double, ptr %v, i64 %c.n{u}\n"
        text += _splat(f"%c.v{u}", f"%c.v{u}.p")
        text += f"  %c.o{u} = mul i64 %c.n{u}, %first\n  %c.oj{u} = add i64 %c.o{u}, %c.j\n"
        text += f"  %c.p{u} = getelementptr double, ptr %x, i64 %c.oj{u}\n" + _load(f"%c.x{u}", f"%c.p{u}", "%c.mask")
        text += _fused(f"%c.b{u}", f"%c.x{u}", f"%c.v{u}", f"%c.a{u}")
    text += "  %c.i4 = add i64 %c.i, 4\n  br label %c.four\nc.join:\n"
    text += f"  %c.s0 = fadd {_TYPE} %c.a0, %c.a1\n  %c.s1 = fadd {_TYPE} %c.a2, %c.a3\n"
    text += f"  %c.s = fadd {_TYPE} %c.s0, %c.s1\n  br label %c.one\n"
    text += f"""c.one:
  %c.k = phi i64 [%c.fours, %c.join], [%c.k1, %c.one.body]
  %c.t = phi {_TYPE} [%c.s, %c.join], [%c.t1, %c.one.body]
  %c.one.on = icmp slt i64 %c.k, %second
  br i1 %c.one.on, label %c.one.body, label %c.done
c.one.body:
  %c.v.p = getelementptr double, ptr %v, i64 %c.k
"""
    text += _splat("%c.v", "%c.v.p")
    text += "  %c.o = mul i64 %c.k, %first\n  %c.oj = add i64 %c.o, %c.j\n"
    text += "  %c.p = getelementptr double, ptr %x, i64 %c.oj\n" + _load("%c.x", "%c.p", "%c.mask")
    text += _fused("%c.t1", "%c.x", "%c.v", "%c.t") + "  %c.k1 = add i64 %c.k, 1\n  br label %c.one\n"
    text += f"""c.done:
  %c.q = getelementptr double, ptr %out, i64 %c.j
  call void @llvm.masked.store.v8f64.p0({_TYPE} %c.t, ptr %c.q, i32 8, <8 x i1> %c.mask)
  %c.j1 = add i64 %c.j, 8
  br label %c.columns
end:
  ret void
}}
"""
    return text

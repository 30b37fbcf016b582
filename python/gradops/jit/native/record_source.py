"""LLVM IR that records operations on single numbers in bulk, and propagates marks through a program.

The functions are part of the machine's module; :mod:`.records` calls them. ``record`` appends operations to a program's
table, reuses slots of equal operations (common subexpression elimination by hashing), and computes their values.
``record_again`` rehashes into a larger table. ``mark_operands`` and ``mark_results`` propagate marks backward and
forward.
"""

from __future__ import annotations

from .llvm import source

PYTHON, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATIVE, SELECT, COPY, CALL = range(9)
"""How the value of an operation is computed: by Python, by an instruction, or by a function of the C library."""

_HASH = """\
  %h1 = mul i32 %op, -1640531527
  %h2 = add i32 %h1, %x
  %h3 = mul i32 %h2, -2048144777
  %h4 = add i32 %h3, %y
  %h5 = mul i32 %h4, -1028477379
  %h6 = add i32 %h5, %z
  %h7 = mul i32 %h6, 668265263
  %h8 = lshr i32 %h7, 15
  %h9 = xor i32 %h7, %h8
  %h = zext i32 %h9 to i64
"""
"""IR that hashes an operation and its operands; the hash is the first table entry to probe."""

_TEXT = f"""
; Record operations. Row k of `rows` is an operation with up to three operands; its result has the number `base + k`,
; and `places` (slots) and `active` are indexed by number. Recorded operations are in `words`, and in the hash table.
; `s` holds all arguments and the position to resume at. Returns 1 at the end, or 0 after an operation whose value
; Python must compute.
define i64 @record(ptr noalias %s) {{
entry:
  %rows.i = i64 %s[0]
  %rows = inttoptr i64 %rows.i to ptr
  %k0 = i64 %s[1]
  %n = i64 %s[2]
  %places.i = i64 %s[3]
  %places = inttoptr i64 %places.i to ptr
  %base = i64 %s[4]
  %active.i = i64 %s[5]
  %active = inttoptr i64 %active.i to ptr
  %table.i = i64 %s[6]
  %table = inttoptr i64 %table.i to ptr
  %mask = i64 %s[7]
  %words.i = i64 %s[8]
  %words = inttoptr i64 %words.i to ptr
  %used0 = i64 %s[9]
  %numbers.i = i64 %s[10]
  %numbers = inttoptr i64 %numbers.i to ptr
  %made0 = i64 %s[11]
  %kinds.i = i64 %s[12]
  %kinds = inttoptr i64 %kinds.i to ptr
  %ones.i = i64 %s[13]
  %ones = inttoptr i64 %ones.i to ptr
  %ones.n = i64 %s[14]
  %functions.i = i64 %s[15]
  %functions = inttoptr i64 %functions.i to ptr
  br label %row
row:
  %k = phi i64 [%k0, %entry], [%k1, %known]
  %used = phi i64 [%used0, %entry], [%used.known, %known]
  %made = phi i64 [%made0, %entry], [%made.known, %known]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %begin, label %done
done:
  %s[1] = i64 %k
  %s[9] = i64 %used
  %s[11] = i64 %made
  ret i64 1
begin:
  %k1 = add i64 %k, 1
  %number = add i64 %base, %k
  %k4 = mul i64 %k, 4
  %at = getelementptr i32, ptr %rows, i64 %k4
  %op = load i32, ptr %at
  %op.i = sext i32 %op to i64
  %kind = i32 %kinds[%op.i]
  %count = and i32 %kind, 3
  %what.f = lshr i32 %kind, 2
  %what = and i32 %what.f, 15
  %two = icmp ugt i32 %count, 1
  %three = icmp ugt i32 %count, 2
  %x.w = i32 %at[1]
  %y.w = i32 %at[2]
  %z.w = i32 %at[3]
  %x.n = sext i32 %x.w to i64
  %y.n = sext i32 %y.w to i64
  %z.n = sext i32 %z.w to i64
  %x = i32 %places[%x.n]
  %y.p = i32 %places[%y.n]
  %z.p = i32 %places[%z.n]
  %y = select i1 %two, i32 %y.p, i32 0
  %z = select i1 %three, i32 %z.p, i32 0
  %x.on = i8 %active[%x.n]
  %y.a = i8 %active[%y.n]
  %z.a = i8 %active[%z.n]
  %y.on = select i1 %two, i8 %y.a, i8 0
  %z.on = select i1 %three, i8 %z.a, i8 0
  %xy.on = or i8 %x.on, %y.on
  %on = or i8 %xy.on, %z.on
  %active[%number] = i8 %on
  switch i32 %what, label %find [i32 {COPY}, label %same i32 {MULTIPLY}, label %one]
same:
  br label %known
one: ; look for a factor that is 1 at each call: the product is the other factor
  %j = phi i64 [0, %begin], [%j1, %one.right]
  %j.more = icmp slt i64 %j, %ones.n
  br i1 %j.more, label %one.left, label %find
one.left:
  %j1 = add i64 %j, 1
  %a.one = i32 %ones[%j]
  %x.is = icmp eq i32 %x, %a.one
  br i1 %x.is, label %known, label %one.right
one.right:
  %y.is = icmp eq i32 %y, %a.one
  br i1 %y.is, label %known, label %one
find:
{_HASH}  br label %probe
probe:
  %p = phi i64 [%h, %find], [%p1, %differ]
  %slot = and i64 %p, %mask
  %p1 = add i64 %slot, 1
  %r = i32 %table[%slot]
  %empty = icmp slt i32 %r, 0
  br i1 %empty, label %new, label %compare
compare:
  %r.i = sext i32 %r to i64
  %r5 = mul i64 %r.i, 5
  %it = getelementptr i32, ptr %words, i64 %r5
  %it.op = load i32, ptr %it
  %it.x = i32 %it[2]
  %it.y = i32 %it[3]
  %it.z = i32 %it[4]
  %e1 = icmp eq i32 %it.op, %op
  %e2 = icmp eq i32 %it.x, %x
  %e3 = icmp eq i32 %it.y, %y
  %e4 = icmp eq i32 %it.z, %z
  %e12 = and i1 %e1, %e2
  %e34 = and i1 %e3, %e4
  %equal = and i1 %e12, %e34
  br i1 %equal, label %again, label %differ
differ:
  br label %probe
again:
  %again.place = i32 %it[1]
  br label %known
new:
  %used.w = trunc i64 %used to i32
  %table[%slot] = i32 %used.w
  %u5 = mul i64 %used, 5
  %to = getelementptr i32, ptr %words, i64 %u5
  %place = trunc i64 %made to i32
  store i32 %op, ptr %to
  %to[1] = i32 %place
  %to[2] = i32 %x
  %to[3] = i32 %y
  %to[4] = i32 %z
  %used1 = add i64 %used, 1
  %made1 = add i64 %made, 1
  %x.at = sext i32 %x to i64
  %y.at = sext i32 %y to i64
  %z.at = sext i32 %z to i64
  %vx = double %numbers[%x.at]
  %vy = double %numbers[%y.at]
  %vz = double %numbers[%z.at]
  switch i32 %what, label %leave [i32 {ADD}, label %add
                                  i32 {SUBTRACT}, label %subtract
                                  i32 {MULTIPLY}, label %multiply
                                  i32 {DIVIDE}, label %divide
                                  i32 {NEGATIVE}, label %negative
                                  i32 {SELECT}, label %select
                                  i32 {CALL}, label %call]
add:
  %v.add = fadd double %vx, %vy
  br label %value
subtract:
  %v.subtract = fsub double %vx, %vy
  br label %value
multiply:
  %v.multiply = fmul double %vx, %vy
  br label %value
divide: ; Python computes a division by 0, as NumPy warns
  %by.zero = fcmp oeq double %vy, 0.0
  %v.divide = fdiv double %vx, %vy
  br i1 %by.zero, label %leave, label %value
negative:
  %v.negative = fneg double %vx
  br label %value
select:
  %chosen = fcmp une double %vx, 0.0
  %v.select = select i1 %chosen, double %vy, double %vz
  br label %value
call:
  %f.w = lshr i32 %kind, 6
  %f.i = zext i32 %f.w to i64
  %f = ptr %functions[%f.i]
  %v.call = call double %f(double %vx)
  br label %value
value:
  %v = phi double [%v.add, %add], [%v.subtract, %subtract], [%v.multiply, %multiply], [%v.divide, %divide],
                  [%v.negative, %negative], [%v.select, %select], [%v.call, %call]
  %numbers[%made] = double %v
  br label %known
known:
  %found = phi i32 [%x, %same], [%y, %one.left], [%x, %one.right], [%again.place, %again], [%place, %value]
  %used.known = phi i64 [%used, %same], [%used, %one.left], [%used, %one.right], [%used, %again], [%used1, %value]
  %made.known = phi i64 [%made, %same], [%made, %one.left], [%made, %one.right], [%made, %again], [%made1, %value]
  %places[%number] = i32 %found
  br label %row
leave:
  %places[%number] = i32 %place
  %s[1] = i64 %k1
  %s[9] = i64 %used1
  %s[11] = i64 %made1
  ret i64 0
}}

; Enter the recorded operations, from number `first` on, in a larger hash table.
define void @record_again(i64 %first, i64 %n, ptr noalias %words, ptr noalias %table, i64 %mask) {{
entry:
  br label %row
row:
  %k = phi i64 [%first, %entry], [%k1, %new]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %begin, label %done
done:
  ret void
begin:
  %k1 = add i64 %k, 1
  %k5 = mul i64 %k, 5
  %it = getelementptr i32, ptr %words, i64 %k5
  %op = load i32, ptr %it
  %x = i32 %it[2]
  %y = i32 %it[3]
  %z = i32 %it[4]
{_HASH}  br label %probe
probe:
  %p = phi i64 [%h, %begin], [%p1, %probe]
  %slot = and i64 %p, %mask
  %p1 = add i64 %slot, 1
  %r = i32 %table[%slot]
  %empty = icmp slt i32 %r, 0
  br i1 %empty, label %new, label %probe
new:
  %k.w = trunc i64 %k to i32
  %table[%slot] = i32 %k.w
  br label %row
}}
"""

_ROW = """\
  %k5 = mul i64 %k, 5
  %at = getelementptr i32, ptr %rows, i64 %k5
  %out.w = i32 %at[1]
  %out = sext i32 %out.w to i64
  %m.3 = i8 %marks[%out]
"""
"""IR that reads operation ``k``, and the mark of its result into ``%m.3``."""


def _operands(text: str, order: tuple = (0, 1, 2)) -> str:
    """Return IR that reads each operand and then executes ``text``.

    In ``text``, ``%x{i}`` is the operand's slot, ``%x{i}.m`` its mark, and ``%x{i}.bit`` its bit of ``through``.
    """
    read = """\
  %x{i}.w = i32 %at[{word}]
  %x{i} = sext i32 %x{i}.w to i64
  %x{i}.m = i8 %marks[%x{i}]
  %x{i}.bits = lshr i8 %bits, {i}
  %x{i}.bit = and i8 %x{i}.bits, 1
"""
    return "".join((read + text).format(i=i, before=i + 1, word=i + 2) for i in order)


_TEXT += (
    """
; From the last operation to the first: if the result is marked, mark the operands whose bit of `through` is set.
define void @mark_operands(i64 %n, ptr noalias %rows, ptr noalias %through, ptr noalias %marks) {
entry:
  br label %row
row:
  %k1 = phi i64 [%n, %entry], [%k, %next]
  %more = icmp sgt i64 %k1, 0
  br i1 %more, label %begin, label %done
done:
  ret void
begin:
  %k = sub i64 %k1, 1
"""
    + _ROW
    + """\
  %has = icmp ne i8 %m.3, 0
  br i1 %has, label %mark.operands, label %next
mark.operands:
  %bits = i8 %through[%k]
"""
    + _operands("  %x{i}.new = or i8 %x{i}.m, %x{i}.bit\n  %marks[%x{i}] = i8 %x{i}.new\n")
    + """\
  br label %next
next:
  br label %row
}

; From the first operation to the last: mark the result if a marked operand's bit of `through` is set.
define void @mark_results(i64 %n, ptr noalias %rows, ptr noalias %through, ptr noalias %marks) {
entry:
  br label %row
row:
  %k = phi i64 [0, %entry], [%k1, %begin]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %begin, label %done
done:
  ret void
begin:
  %k1 = add i64 %k, 1
"""
    + _ROW
    + """\
  %bits = i8 %through[%k]
"""
    + _operands("  %x{i}.on = and i8 %x{i}.m, %x{i}.bit\n  %m.{i} = or i8 %m.{before}, %x{i}.on\n", (2, 1, 0))
    + """\
  %marks[%out] = i8 %m.0
  br label %row
}
"""
)

source(lambda exceptions: _TEXT)

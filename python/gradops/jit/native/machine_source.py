"""The native machine as LLVM's text: one function that runs the code of any program."""

from __future__ import annotations

from .instructions import CALLS, LONG, NUMBERS, OPERATIONS, REDUCTIONS, ROUND, SHORT, VECTOR

_HELPERS = """
declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.floor.f64(double)
declare double @llvm.ceil.f64(double)
declare double @llvm.trunc.f64(double)
declare double @llvm.rint.f64(double)

; SciPy's ufuncs warn of nothing: what floating-point exceptions a function raises is taken back.
define internal double @scipy1(double %x, ptr %f, ptr %functions) noinline {{
  %test.at = getelementptr ptr, ptr %functions, i64 1
  %test = load ptr, ptr %test.at
  %before = call i32 %test(i32 {exceptions})
  %r = call double %f(double %x, i32 0)
  %after = call i32 %test(i32 {exceptions})
  %same = icmp eq i32 %before, %after
  br i1 %same, label %done, label %clear
clear:
  %new = xor i32 %before, %after
  %clear.f = load ptr, ptr %functions
  call i32 %clear.f(i32 %new)
  br label %done
done:
  ret double %r
}}

define internal double @logaddexp(double %x, double %y, ptr %functions) noinline {{
  %equal = fcmp oeq double %x, %y
  br i1 %equal, label %same, label %differ
same:
  %twice = fadd double %x, 0x3FE62E42FEFA39EF
  ret double %twice
differ:
  %d = fsub double %x, %y
  %nan = fcmp uno double %d, %d
  br i1 %nan, label %undefined, label %defined
undefined:
  ret double %d
defined:
  %first = fcmp ogt double %d, 0.0
  %top = select i1 %first, double %x, double %y
  %size = call double @llvm.fabs.f64(double %d)
  %less = fneg double %size
  %exp.at = getelementptr ptr, ptr %functions, i64 {exp}
  %exp = load ptr, ptr %exp.at
  %e = call double %exp(double %less)
  %log1p.at = getelementptr ptr, ptr %functions, i64 {log1p}
  %log1p = load ptr, ptr %log1p.at
  %l = call double %log1p(double %e)
  %r = fadd double %top, %l
  ret double %r
}}

; NumPy's pairwise summation: halves above 128 numbers, then eight partial sums.
define internal double @pairwise(ptr %a, i64 %n, i64 %stride) {{
  %short = icmp slt i64 %n, 8
  br i1 %short, label %few, label %many
few:
  %i = phi i64 [0, %0], [%i1, %few.body]
  %s = phi double [-0.0, %0], [%s1, %few.body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %few.body, label %few.done
few.body:
  %o = mul i64 %i, %stride
  %p = getelementptr double, ptr %a, i64 %o
  %v = load double, ptr %p
  %s1 = fadd double %s, %v
  %i1 = add i64 %i, 1
  br label %few
few.done:
  ret double %s
many:
  %large = icmp sgt i64 %n, 128
  br i1 %large, label %split, label %block
split:
  %half = sdiv i64 %n, 2
  %odd = srem i64 %half, 8
  %n2 = sub i64 %half, %odd
  %n3 = sub i64 %n, %n2
  %o2 = mul i64 %n2, %stride
  %p2 = getelementptr double, ptr %a, i64 %o2
  %left = call double @pairwise(ptr %a, i64 %n2, i64 %stride)
  %right = call double @pairwise(ptr %p2, i64 %n3, i64 %stride)
  %both = fadd double %left, %right
  ret double %both
block:
{first}
  %rest = srem i64 %n, 8
  %whole = sub i64 %n, %rest
  br label %eight
eight:
  %k = phi i64 [8, %block], [%k8, %eight.body]
{partial}
  %on = icmp slt i64 %k, %whole
  br i1 %on, label %eight.body, label %join
eight.body:
{added}
  %k8 = add i64 %k, 8
  br label %eight
join:
  %j01 = fadd double %r0, %r1
  %j23 = fadd double %r2, %r3
  %j45 = fadd double %r4, %r5
  %j67 = fadd double %r6, %r7
  %j03 = fadd double %j01, %j23
  %j47 = fadd double %j45, %j67
  %j = fadd double %j03, %j47
  br label %tail
tail:
  %ti = phi i64 [%whole, %join], [%ti1, %tail.body]
  %ts = phi double [%j, %join], [%ts1, %tail.body]
  %tmore = icmp slt i64 %ti, %n
  br i1 %tmore, label %tail.body, label %tail.done
tail.body:
  %to = mul i64 %ti, %stride
  %tp = getelementptr double, ptr %a, i64 %to
  %tv = load double, ptr %tp
  %ts1 = fadd double %ts, %tv
  %ti1 = add i64 %ti, 1
  br label %tail
tail.done:
  ret double %ts
}}
"""

_MAIN = """
define i32 @run(ptr %code, i64 %length, ptr %memory, ptr %functions) {{
entry:
  %clear = load ptr, ptr %functions
  call i32 %clear(i32 {exceptions})
  br label %next
next:
  %pc = phi i64 [0, %entry], [%pc.short, %stored], [%pc.long, %vector.done], [%pc.gather, %gather.done]
  %more = icmp slt i64 %pc, %length
  br i1 %more, label %decode, label %end
end:
  %test.at = getelementptr ptr, ptr %functions, i64 1
  %test = load ptr, ptr %test.at
  %raised = call i32 %test(i32 {exceptions})
  ret i32 %raised
decode:
  %at = getelementptr i32, ptr %code, i64 %pc
  %op = load i32, ptr %at
{words}
  %a.p = getelementptr double, ptr %memory, i64 %a
  %number = and i32 %op, 255
  %is.vector = and i32 %op, {vector}
  %scalar = icmp eq i32 %is.vector, 0
  br i1 %scalar, label %scalar.op, label %vector.op

scalar.op:
  %x = load double, ptr %a.p
  %b.p = getelementptr double, ptr %memory, i64 %b
  switch i32 %number, label %unknown [
{scalar_cases}
  ]
{scalar_blocks}
store:
  %r = phi double {results}
  %round = and i32 %op, {round}
  %exact = icmp eq i32 %round, 0
  br i1 %exact, label %stored, label %rounded
rounded:
  %single = fptrunc double %r to float
  %double = fpext float %single to double
  br label %stored
stored:
  %value = phi double [%r, %store], [%double, %rounded]
  %out.p = getelementptr double, ptr %memory, i64 %out
  store double %value, ptr %out.p
  %pc.short = add i64 %pc, {short}
  br label %next

vector.op:
  %vout.p = getelementptr double, ptr %memory, i64 %out
  %vb.p = getelementptr double, ptr %memory, i64 %b
  %vc.p = getelementptr double, ptr %memory, i64 %c
{vector_words}
  switch i32 %number, label %unknown [
{vector_cases}
    i32 {gather}, label %gather
  ]
{vector_blocks}
one:
  %v1 = phi double {reduced}
  store double %v1, ptr %vout.p
  br label %vector.stored
vector.stored:
  %n.stored = phi i64 [1, %one]{stored_from}
  %vround = and i32 %op, {round}
  %vexact = icmp eq i32 %vround, 0
  br i1 %vexact, label %vector.done, label %round.loop
round.loop:
  %ri = phi i64 [0, %vector.stored], [%ri1, %round.loop]
  %rp = getelementptr double, ptr %vout.p, i64 %ri
  %rv = load double, ptr %rp
  %rs = fptrunc double %rv to float
  %rd = fpext float %rs to double
  store double %rd, ptr %rp
  %ri1 = add i64 %ri, 1
  %rmore = icmp slt i64 %ri1, %n.stored
  br i1 %rmore, label %round.loop, label %vector.done
vector.done:
  %pc.long = add i64 %pc, {long}
  br label %next

gather:
  %g.at = getelementptr i32, ptr %at, i64 {long}
  br label %gather.loop
gather.loop:
  %gi = phi i64 [0, %gather], [%gi1, %gather.loop]
  %gw.p = getelementptr i32, ptr %g.at, i64 %gi
  %gw = load i32, ptr %gw.p
  %gw.i = sext i32 %gw to i64
  %gv.p = getelementptr double, ptr %memory, i64 %gw.i
  %gv = load double, ptr %gv.p
  %go.p = getelementptr double, ptr %vout.p, i64 %gi
  store double %gv, ptr %go.p
  %gi1 = add i64 %gi, 1
  %gmore = icmp slt i64 %gi1, %n
  br i1 %gmore, label %gather.loop, label %gather.done
gather.done:
  %g.length = add i64 %n, {long}
  %pc.gather = add i64 %pc, %g.length
  br label %next

unknown:
  ret i32 -1
}}
"""

_LOOP = """
vector.{name}:
  br label %{name}.loop
{name}.loop:
  %{name}.i = phi i64 [0, %vector.{name}], [%{name}.i1, %{name}.loop]
{loads}
{body}
  %{name}.o = getelementptr double, ptr %vout.p, i64 %{name}.i
  store double %{name}.r, ptr %{name}.o
  %{name}.i1 = add i64 %{name}.i, 1
  %{name}.more = icmp slt i64 %{name}.i1, %n
  br i1 %{name}.more, label %{name}.loop, label %vector.stored
"""

_FOLD = """
vector.{name}:
  %{name}.first = load double, ptr %a.p
  br label %{name}.loop
{name}.loop:
  %{name}.i = phi i64 [1, %vector.{name}], [%{name}.i1, %{name}.body]
  %{name}.s = phi double [%{name}.first, %vector.{name}], [%{name}.r, %{name}.body]
  %{name}.more = icmp slt i64 %{name}.i, %n
  br i1 %{name}.more, label %{name}.body, label %one
{name}.body:
  %{name}.at = mul i64 %{name}.i, %sa
  %{name}.p = getelementptr double, ptr %a.p, i64 %{name}.at
  %{name}.x = load double, ptr %{name}.p
{body}
  %{name}.i1 = add i64 %{name}.i, 1
  br label %{name}.loop
"""

_SUM = """
vector.sum:
  %sum.s = call double @pairwise(ptr %a.p, i64 %n, i64 %sa)
  br label %one
vector.dot:
  br label %dot.loop
dot.loop:
  %dot.i = phi i64 [0, %vector.dot], [%dot.i1, %dot.body]
  %dot.s = phi double [0.0, %vector.dot], [%dot.s1, %dot.body]
  %dot.more = icmp slt i64 %dot.i, %n
  br i1 %dot.more, label %dot.body, label %one
dot.body:
  %dot.oa = mul i64 %dot.i, %sa
  %dot.pa = getelementptr double, ptr %a.p, i64 %dot.oa
  %dot.x = load double, ptr %dot.pa
  %dot.ob = mul i64 %dot.i, %sb
  %dot.pb = getelementptr double, ptr %vb.p, i64 %dot.ob
  %dot.y = load double, ptr %dot.pb
  %dot.xy = fmul double %dot.x, %dot.y
  %dot.s1 = fadd double %dot.s, %dot.xy
  %dot.i1 = add i64 %dot.i, 1
  br label %dot.loop
"""

_OPERANDS = "xyz"
_WORDS = "abc"


def source(exceptions: int, exp: int, log1p: int) -> str:
    """The machine's text.

    Args:
        exceptions: the platform's mask of the floating-point exceptions that NumPy warns of.
        exp, log1p: the numbers of these functions in the table.
    """
    elementwise = [*OPERATIONS, *CALLS]
    helpers = _HELPERS.format(exceptions=exceptions, exp=exp, log1p=log1p, **_partial_sums())
    main = _MAIN.format(
        exceptions=exceptions,
        vector=VECTOR,
        round=ROUND,
        short=SHORT,
        long=LONG,
        words=_words("at", {1: "out", 2: "a", 3: "b", 4: "c"}),
        vector_words=_words("at", {5: "n", 6: "sa", 7: "sb", 8: "sc"}),
        scalar_cases=_cases(elementwise, "scalar"),
        scalar_blocks="\n".join(map(_scalar_block, elementwise)),
        results=", ".join(f"[%s.{name}.r, %scalar.{name}]" for name in elementwise),
        vector_cases=_cases([*elementwise, *REDUCTIONS, "dot"], "vector"),
        gather=NUMBERS["gather"],
        vector_blocks="\n".join([*map(_loop, elementwise), *_folds(), _SUM]),
        reduced=", ".join(f"[%{name}.s, %{_last_block(name)}]" for name in (*REDUCTIONS, "dot")),
        stored_from="".join(f", [%n, %{name}.loop]" for name in elementwise),
    )
    return helpers + main


def _last_block(name: str) -> str:
    return "vector.sum" if name == "sum" else f"{name}.loop"


def _partial_sums() -> dict[str, str]:
    def loads(prefix: str, start: str) -> str:
        lines = []
        for i in range(8):
            p = f"%{prefix}{i}"
            lines += [f"{p}.k = add i64 {start}, {i}", f"{p}.o = mul i64 {p}.k, %stride"]
            lines += [f"{p}.p = getelementptr double, ptr %a, i64 {p}.o", f"{p} = load double, ptr {p}.p"]
        return "\n".join(lines)

    partial = "\n".join(f"%r{i} = phi double [%f{i}, %block], [%q{i}, %eight.body]" for i in range(8))
    added = loads("g", "%k") + "\n" + "\n".join(f"%q{i} = fadd double %r{i}, %g{i}" for i in range(8))
    return {"first": loads("f", "0"), "partial": partial, "added": added}


def _words(at: str, names: dict[int, str]) -> str:
    """Loads of an instruction's words."""
    return "\n".join(
        f"  %{name}.w = getelementptr i32, ptr %{at}, i64 {i}\n"
        f"  %{name}.i = load i32, ptr %{name}.w\n"
        f"  %{name} = sext i32 %{name}.i to i64"
        for i, name in names.items()
    )


def _cases(names, kind: str) -> str:
    return "\n".join(f"    i32 {NUMBERS[name]}, label %{kind}.{name}" for name in names)


def _operands(name: str) -> int:
    return OPERATIONS[name].operands if name in OPERATIONS else int(name[-1])


def _body(name: str, prefix: str, x: str, y: str = "", z: str = "") -> str:
    if name in OPERATIONS:
        return OPERATIONS[name].source.format(r=f"{prefix}r", t=f"{prefix}t.", x=x, y=y, z=z)
    function = "b" if _operands(name) == 1 else "c"  # its number stands after the last operand
    address = (
        f"{prefix}f.p = getelementptr ptr, ptr %functions, i64 %{function}\n{prefix}f = load ptr, ptr {prefix}f.p\n"
    )
    given = f"double {x}" + (f", double {y}" if _operands(name) > 1 else "")
    if name == "scipy1":
        return address + f"{prefix}r = call double @scipy1({given}, ptr {prefix}f, ptr %functions)"
    return address + f"{prefix}r = call double {prefix}f({given})"


def _scalar_block(name: str) -> str:
    loads, operands = [], ["%x"]
    for word, operand in list(zip(_WORDS, _OPERANDS))[1 : _operands(name)]:
        if word == "c":
            loads.append(f"%s.{name}.c.p = getelementptr double, ptr %memory, i64 %c")
        pointer = "%b.p" if word == "b" else f"%s.{name}.c.p"
        loads.append(f"%s.{name}.{operand} = load double, ptr {pointer}")
        operands.append(f"%s.{name}.{operand}")
    return "\n".join([f"scalar.{name}:", *loads, _body(name, f"%s.{name}.", *operands), "br label %store"])


def _loop(name: str) -> str:
    loads, operands = [], []
    for word, operand in list(zip(_WORDS, _OPERANDS))[: _operands(name)]:
        base = "%a.p" if word == "a" else f"%v{word}.p"
        v = f"%{name}.{operand}"
        loads += [f"{v}.o = mul i64 %{name}.i, %s{word}", f"{v}.p = getelementptr double, ptr {base}, i64 {v}.o"]
        loads.append(f"{v} = load double, ptr {v}.p")
        operands.append(v)
    return _LOOP.format(name=name, loads="\n".join(loads), body=_body(name, f"%{name}.", *operands))


def _folds() -> list[str]:
    bodies = {"prod": "multiply", "max": "maximum", "min": "minimum"}
    return [
        _FOLD.format(name=name, body=_body(body, f"%{name}.", f"%{name}.s", f"%{name}.x"))
        for name, body in bodies.items()
    ]

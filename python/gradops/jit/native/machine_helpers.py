"""Functions that the native machine calls, as LLVM's text: SciPy's, ``logaddexp`` and NumPy's summation."""

from __future__ import annotations

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
{few}
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
{tail}
}}
"""

_ONE_BY_ONE = """
{name}:
  %{name}.i = phi i64 [{first}, %{block}], [%{name}.i1, %{name}.body]
  %{name}.s = phi double [{start}, %{block}], [%{name}.s1, %{name}.body]
  %{name}.more = icmp slt i64 %{name}.i, %n
  br i1 %{name}.more, label %{name}.body, label %{name}.done
{name}.body:
  %{name}.o = mul i64 %{name}.i, %stride
  %{name}.p = getelementptr double, ptr %a, i64 %{name}.o
  %{name}.v = load double, ptr %{name}.p
  %{name}.s1 = fadd double %{name}.s, %{name}.v
  %{name}.i1 = add i64 %{name}.i, 1
  br label %{name}
{name}.done:
  ret double %{name}.s
"""


def text(exceptions: int, exp: int, log1p: int) -> str:
    """The functions, with arguments as of :func:`.machine_source.source`."""
    return _HELPERS.format(exceptions=exceptions, exp=exp, log1p=log1p, **_summation())


def _summation() -> dict[str, str]:
    def loads(prefix: str, start: str) -> str:
        lines = []
        for i in range(8):
            p = f"%{prefix}{i}"
            lines += [f"{p}.k = add i64 {start}, {i}", f"{p}.o = mul i64 {p}.k, %stride"]
            lines += [f"{p}.p = getelementptr double, ptr %a, i64 {p}.o", f"{p} = load double, ptr {p}.p"]
        return "\n".join(lines)

    partial = "\n".join(f"%r{i} = phi double [%f{i}, %block], [%q{i}, %eight.body]" for i in range(8))
    added = loads("g", "%k") + "\n" + "\n".join(f"%q{i} = fadd double %r{i}, %g{i}" for i in range(8))
    return {
        "few": _ONE_BY_ONE.format(name="few", block="0", first="0", start="-0.0"),
        "tail": _ONE_BY_ONE.format(name="tail", block="join", first="%whole", start="%j"),
        "first": loads("f", "0"),
        "partial": partial,
        "added": added,
    }

"""Templates of the native machine's LLVM IR, which :mod:`.machine_source` fills in.

``MAIN`` is the interpreter. :func:`text` returns the functions that it calls: wrappers of SciPy's functions,
``logaddexp``, remainders, reductions with NumPy's summation order, sorting, and wrappers of BLAS and LAPACK.
:mod:`.loop_compiler` includes these functions in its modules as well.
"""

from __future__ import annotations

from . import tile_sums
from .instructions import FUNCTION_NUMBERS, ROUTINE_NUMBERS

FUNCTIONS_USED = ("exp", "log1p", "log", "fmod")
"""Functions of the C library that the IR of this module calls."""

# The interpreter is one function with threaded dispatch: each operation is a block that ends in an indirect jump to the
# next operation, so the processor predicts each jump separately. Results must have NumPy's bits, so no instruction has
# a fast-math flag: LLVM may neither reassociate sums nor contract a product and a sum into one rounding.
MAIN = """
@targets = internal constant [{table_size} x ptr] [{targets}]

define i32 @run(ptr %code, ptr %memory, ptr %functions) {{
entry:
  %clear = load ptr, ptr %functions
  call i32 %clear(i32 {exceptions})
  br label %dispatch
dispatch: ; LLVM duplicates this block at the end of each operation
  %at = phi ptr [%code, %entry], [%next.long, %vector.done], [%next.gather, %gather.done],
    [%next.short, %short.done]{dispatched_from}
  %op = load i32, ptr %at
  %op.i = zext i32 %op to i64
  %target.p = getelementptr ptr, ptr @targets, i64 %op.i
  %target = load ptr, ptr %target.p
  indirectbr ptr %target, [{labels}]
end:
  %test = ptr %functions[1]
  %raised = call i32 %test(i32 {exceptions})
  ret i32 %raised
unknown:
  ret i32 -1
failed:
  ret i32 {failed}
{scalar_blocks}
; The machine returns so that Python can call a kernel on the memory. The result holds the exceptions and the kernel's
; number. Python then resumes after this instruction, with cleared flags.
scalar.outside:
  %outside = i32 %at[1]
  %outside.test = ptr %functions[1]
  %outside.raised = call i32 %outside.test(i32 {exceptions})
  %outside.number = shl i32 %outside, 8
  %outside.both = or i32 %outside.raised, %outside.number
  %outside.r = or i32 %outside.both, {waiting}
  ret i32 %outside.r
short.done:
  %next.short = getelementptr i32, ptr %at, i64 {short}
  br label %dispatch
vector.op:
{vector_words}
  %vout.p = getelementptr double, ptr %memory, i64 %out
  %va.p = getelementptr double, ptr %memory, i64 %a
  %vb.p = getelementptr double, ptr %memory, i64 %b
  %vc.p = getelementptr double, ptr %memory, i64 %c
  %a.near = icmp eq i64 %sa, 1
  %b.near = icmp eq i64 %sb, 1
  %a.same = icmp eq i64 %sa, 0
  %b.same = icmp eq i64 %sb, 0
  %near = and i1 %a.near, %b.near
  %number = and i32 %op, {numbers}
  switch i32 %number, label %unknown [
{vector_cases}
  ]
{vector_blocks}
vector.done:
  %next.long = getelementptr i32, ptr %at, i64 {long}
  br label %dispatch

; The operands of a gather follow its words, and the next instruction follows them.
vector.gather:
  %g.at = getelementptr i32, ptr %at, i64 {long}
  br label %gather.loop
gather.loop:
  %gi = phi i64 [0, %vector.gather], [%gi1, %gather.loop]
  %gw = i32 %g.at[%gi]
  %gw.i = sext i32 %gw to i64
  %gv = double %memory[%gw.i]
  %vout.p[%gi] = double %gv
  %gi1 = add i64 %gi, 1
  %gmore = icmp slt i64 %gi1, %n
  br i1 %gmore, label %gather.loop, label %gather.done
gather.done:
  %next.gather = getelementptr i32, ptr %g.at, i64 %n
  br label %dispatch

vector.pick:
  br label %pick.loop
pick.loop:
  %ki = phi i64 [0, %vector.pick], [%ki1, %pick.loop]
  %kb = i64 %vb.p[%ki]
  %kv = double %va.p[%kb * %sa]
  %vout.p[%ki] = double %kv
  %ki1 = add i64 %ki, 1
  %kmore = icmp slt i64 %ki1, %n
  br i1 %kmore, label %pick.loop, label %vector.done

vector.product:
  call void @product(ptr %va.p, ptr %vb.p, ptr %vout.p, i64 %n, i64 %c, i64 %sc, i64 %sa, i64 %sb, ptr %functions)
  br label %vector.done
vector.factor:
  call void @factor(ptr %vout.p, ptr %va.p, ptr %vb.p, ptr %vc.p, i64 %n, ptr %functions)
  br label %vector.done
vector.solved:
  call void @solved(ptr %vout.p, ptr %va.p, ptr %vb.p, i64 %c, i64 %n, i64 %sa, ptr %functions)
  br label %vector.done
vector.inverse:
  call void @inverse(ptr %vout.p, ptr %va.p, ptr %vb.p, i64 %n, ptr %functions)
  br label %vector.done
}}
{metadata}
"""

CALLED = """
vector.{name}:
  %{name}.s = call double @{name}(ptr %va.p, i64 %n, i64 %sa, ptr %functions)
  store double %{name}.s, ptr %vout.p
  br label %vector.done
"""

OF_ROW = """
vector.{name}:
  call void @{name}(ptr %memory, i64 %out, i64 %a, i64 %n, i64 %sa, ptr %functions)
  br label %vector.done
"""

OF_ROW_GIVEN = "ptr %memory, i64 %out, i64 %a, i64 %n, i64 %stride, ptr %functions"
"""The parameters of a function that :data:`OF_ROW` calls."""

_HELPERS = """
{intrinsics}
declare double @llvm.copysign.f64(double, double)

{scipy1}

{scipy2}

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
  %exp = ptr %functions[{exp}]
  %e = call double %exp(double %less)
  %log1p = ptr %functions[{log1p}]
  %l = call double %log1p(double %e)
  %r = fadd double %top, %l
  ret double %r
}}

define internal double @fmod(double %x, double %y, ptr %functions) alwaysinline {{
  %f = ptr %functions[{fmod}]
  %r = call double %f(double %x, double %y)
  ret double %r
}}
; True if C's remainder is not 0 and has the opposite sign of the divisor.
define internal i1 @differs(double %m, double %y) alwaysinline {{
  %negative.m = fcmp olt double %m, 0.0
  %negative.y = fcmp olt double %y, 0.0
  %other = xor i1 %negative.m, %negative.y
  %some = fcmp une double %m, 0.0
  %r = and i1 %other, %some
  ret i1 %r
}}
; C's remainder has the sign of the dividend; Python's and NumPy's has that of the divisor, even if it is 0.
define internal double @remainder(double %x, double %y, ptr %functions) noinline {{
  %m = call double @fmod(double %x, double %y, ptr %functions)
  %zero = fcmp oeq double %m, 0.0
  %signed = call double @llvm.copysign.f64(double 0.0, double %y)
  %differs = call i1 @differs(double %m, double %y)
  %added = fadd double %m, %y
  %nonzero = select i1 %differs, double %added, double %m
  %r = select i1 %zero, double %signed, double %nonzero
  ret double %r
}}
; NumPy's algorithm: subtract the remainder, divide, and round to the nearest integer, as the quotient may have been
; rounded to just below an integer.
define internal double @floor_divided(double %x, double %y, ptr %functions) noinline {{
  %none = fcmp oeq double %y, 0.0
  %quotient = fdiv double %x, %y
  br i1 %none, label %plain, label %divide
plain:
  ret double %quotient
divide:
  %m = call double @fmod(double %x, double %y, ptr %functions)
  %less = fsub double %x, %m
  %d = fdiv double %less, %y
  %differs = call i1 @differs(double %m, double %y)
  %d1 = fsub double %d, 1.0
  %exact = select i1 %differs, double %d1, double %d
  %floor = call double @llvm.floor.f64(double %exact)
  %rest = fsub double %exact, %floor
  %up = fcmp ogt double %rest, 0.5
  %floor1 = fadd double %floor, 1.0
  %whole = select i1 %up, double %floor1, double %floor
  %zero = fcmp oeq double %exact, 0.0
  %signed = call double @llvm.copysign.f64(double 0.0, double %quotient)
  %r = select i1 %zero, double %signed, double %whole
  ret double %r
}}

{positions}
{product}
; NumPy's sum starts from 0.0, so a sum of negative zeros is 0.0.
define internal double @sum(ptr %a, i64 %n, i64 %stride, ptr %functions) alwaysinline {{
  %s = call double @pairwise(ptr %a, i64 %n, i64 %stride)
  %r = fadd double %s, 0.0
  ret double %r
}}
{pairwise}
"""

_EXTREME = """
; The index of the first extreme, or of the first NaN.
define internal double @{name}(ptr %a, i64 %n, i64 %stride, ptr %functions) noinline {{
entry:
  %first = load {type}, ptr %a
  br label %loop
loop:
  %i = phi i64 [1, %entry], [%i1, %body]
  %m = phi {type} [%first, %entry], [%m1, %body]
  %at = phi i64 [0, %entry], [%at1, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %x = {type} %a[%i * %stride]
{better}
  %m1 = select i1 %better, {type} %x, {type} %m
  %at1 = select i1 %better, i64 %i, i64 %at
  %i1 = add i64 %i, 1
  br label %loop
end:
  %r = bitcast i64 %at to double
  ret double %r
}}
"""

_FIRST = """
  %beyond = fcmp u{than} double %x, %m
  %known = fcmp ord double %m, %m
  %better = and i1 %beyond, %known
"""

# Insertion sort: stable, and fast for the few numbers of a row.
_ARGSORT = """
define internal void @{name}({given}) noinline {{
entry:
  %a.p = getelementptr double, ptr %memory, i64 %a
  %out.p = getelementptr double, ptr %memory, i64 %out
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %placed]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %x = {type} %a.p[%i * %stride]
  br label %back
back:
  %j = phi i64 [%i, %body], [%j1, %shift]
  %left = icmp sgt i64 %j, 0
  br i1 %left, label %compare, label %placed
compare:
  %j1 = sub i64 %j, 1
  %b = i64 %out.p[%j1]
  %y = {type} %a.p[%b * %stride]
{after}
  br i1 %after, label %shift, label %placed
shift:
  %out.p[%j] = i64 %b
  br label %back
placed:
  %k = phi i64 [%j, %compare], [0, %back]
  %out.p[%k] = i64 %i
  %i1 = add i64 %i, 1
  br label %loop
end:
  ret void
}}
"""

_AFTER_NUMBER = """
  %greater = fcmp ugt double %y, %x
  %number = fcmp ord double %x, %x
  %after = and i1 %greater, %number
"""

_OF_SCIPY = """; SciPy's ufuncs never warn, so floating-point exceptions of the function are cleared.
define internal double @scipy{count}({parameters}, ptr %f, ptr %functions) noinline {{
{before}
  %r = call double %f({parameters}, i32 0)
{after}
  ret double %r
}}
"""


_PRODUCT = """
; BLAS is column-major: it computes the transposed product from the transposed factors in reverse order.
define internal void @product(ptr %x, ptr %y, ptr %out, i64 %m, i64 %k, i64 %n, i64 %sx, i64 %sy,
    ptr %functions) noinline {{
{sizes}
{sides}
  %one = alloca double
  store double 1.0, ptr %one
  %zero = alloca double
  store double 0.0, ptr %zero
  %f = ptr %functions[{blas}]
  call void %f(ptr %turn.y, ptr %turn.x, ptr %size.n, ptr %size.m, ptr %size.k, ptr %one, ptr %y, ptr %far.y, ptr %x,
    ptr %far.x, ptr %zero, ptr %out, ptr %size.n)
  ret void
}}
"""

# LAPACK's floating-point exceptions are cleared, as NumPy ignores them. LAPACK reports by `info` that a pivot is
# exactly 0; execution then ends (`require`), and NumPy raises its error.
_FACTOR = """
define internal void @factor(ptr %matrix, ptr %rows, ptr %regular, ptr %sign, i64 %n, ptr %functions) noinline {{
{sizes}
  %info = alloca i32
{before}
  call void %f(ptr %size.n, ptr %size.n, ptr %matrix, ptr %size.n, ptr %rows, ptr %info)
{after}
  %info.i = load i32, ptr %info
  %is.regular = icmp eq i32 %info.i, 0
  %regular.d = uitofp i1 %is.regular to double
  store double %regular.d, ptr %regular
  br label %loop
loop:
  %i = phi i64 [0, %done], [%i1, %loop]
  %s = phi double [1.0, %done], [%s1, %loop]
  %row = i32 %rows[%i]
  %i1 = add i64 %i, 1
  %own = trunc i64 %i1 to i32
  %moved = icmp ne i32 %row, %own
  %minus = fneg double %s
  %s1 = select i1 %moved, double %minus, double %s
  %more = icmp slt i64 %i1, %n
  br i1 %more, label %loop, label %end
end:
  store double %s1, ptr %sign
  ret void
}}
"""

_SOLVED = """
define internal void @solved(ptr %right, ptr %matrix, ptr %rows, i64 %k, i64 %n, i64 %turned,
    ptr %functions) noinline {{
{sizes}
  %info = alloca i32
  %is.turned = icmp ne i64 %turned, 0
  %turn.i = select i1 %is.turned, i8 84, i8 78
  %turn = alloca i8
  store i8 %turn.i, ptr %turn
{before}
  call void %f(ptr %turn, ptr %size.n, ptr %size.k, ptr %matrix, ptr %size.n, ptr %rows, ptr %right, ptr %size.n,
    ptr %info)
{after}
  ret void
}}
"""

_INVERSE = """
define internal void @inverse(ptr %matrix, ptr %rows, ptr %room, i64 %n, ptr %functions) noinline {{
{sizes}
  %info = alloca i32
{before}
  call void %f(ptr %size.n, ptr %matrix, ptr %size.n, ptr %rows, ptr %room, ptr %size.n, ptr %info)
{after}
  ret void
}}
"""

_ROUTINE = """
  %f = ptr %functions[{number}]
"""

# The processor's flags accumulate since the machine started, so only flags that the call has added may be cleared.
_BEFORE = """
  %test = ptr %functions[1]
  %before = call i32 %test(i32 {exceptions})
"""

_AFTER = """
  %after = call i32 %test(i32 {exceptions})
  %same = icmp eq i32 %before, %after
  br i1 %same, label %done, label %clear
clear:
  %new = xor i32 %before, %after
  %clear.f = load ptr, ptr %functions
  call i32 %clear.f(i32 %new)
  br label %done
done:
"""

_SIZE = """
  %size.{0}.i = trunc i64 %{0} to i32
  %size.{0} = alloca i32
  store i32 %size.{0}.i, ptr %size.{0}
"""

_SIDE = """
  %turned.{0} = icmp slt i64 %s{0}, 0
  %turn.{0}.i = select i1 %turned.{0}, i8 84, i8 78
  %turn.{0} = alloca i8
  store i8 %turn.{0}.i, ptr %turn.{0}
  %minus.{0} = sub i64 0, %s{0}
  %far.{0}.l = select i1 %turned.{0}, i64 %minus.{0}, i64 %s{0}
  %far.{0}.i = trunc i64 %far.{0}.l to i32
  %far.{0} = alloca i32
  store i32 %far.{0}.i, ptr %far.{0}
"""


def _positions() -> str:
    """Return the IR of argmax, argmin and argsort, for doubles and for integers."""
    found = []
    for kind, prefix in (("double", ""), ("i64", "whole_")):
        whole = bool(prefix)
        for name, than in (("argmax", "gt"), ("argmin", "lt")):
            better = f"  %better = icmp s{than} i64 %x, %m" if whole else _FIRST.format(than=than)
            found.append(_EXTREME.format(name=prefix + name, type=kind, better=better))
        after = "  %after = icmp sgt i64 %y, %x" if whole else _AFTER_NUMBER
        found.append(_ARGSORT.format(name=f"{prefix}argsort", given=OF_ROW_GIVEN, type=kind, after=after))
    return "".join(found)


INTRINSICS = [f"declare double @llvm.{name}.f64(double)" for name in ("fabs", "sqrt", "floor", "ceil", "trunc", "rint")]


def text(exceptions: int) -> str:
    """Return the IR of the functions that the machine calls.

    Args:
        exceptions: the platform's mask of the floating-point exceptions that NumPy warns about.
    """
    before, after = _BEFORE.format(exceptions=exceptions), _AFTER.format(exceptions=exceptions)
    scipys = {
        f"scipy{count}": _OF_SCIPY.format(count=count, parameters=parameters, before=before, after=after)
        for count, parameters in ((1, "double %x"), (2, "double %x, double %y"))
    }
    sizes, sides = "".join(map(_SIZE.format, "mkn")), "".join(map(_SIDE.format, "xy"))
    product = _PRODUCT.format(blas=ROUTINE_NUMBERS["dgemm"], sizes=sizes, sides=sides)
    for name, template, letters in (("getrf", _FACTOR, "n"), ("getrs", _SOLVED, "nk"), ("getri", _INVERSE, "n")):
        routine = _ROUTINE.format(number=ROUTINE_NUMBERS[f"d{name}"])
        product += template.format(sizes="".join(map(_SIZE.format, letters)), before=routine + before, after=after)
    known = {
        "exceptions": exceptions,
        "intrinsics": "\n".join(INTRINSICS),
        **{name: FUNCTION_NUMBERS[name] for name in FUNCTIONS_USED},
    }
    pairwise = tile_sums.pairwise("pairwise", "%stride")
    return _HELPERS.format(product=product, positions=_positions(), pairwise=pairwise, **known, **scipys)


# Executes the parts of a program whose loops are compiled, in order. A row of `table` has the address of a function
# with the signature of `run`, and of its bytecode.
PARTS = """
define i32 @parts(ptr %table, i64 %parts, ptr %functions, ptr %memory) {{
entry:
  br label %part
part:
  %i = phi i64 [0, %entry], [%i1, %next]
  %before = phi i32 [0, %entry], [%raised, %next]
  %at = mul i64 %i, 2
  %pair = getelementptr i64, ptr %table, i64 %at
  %function = load ptr, ptr %pair
  %code = ptr %pair[1]
  %new = call i32 %function(ptr %code, ptr %memory, ptr %functions)
  %raised = or i32 %before, %new
  %failure = and i32 %new, {failed}
  %failed = icmp ne i32 %failure, 0
  br i1 %failed, label %end, label %next
next:
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %parts
  br i1 %more, label %part, label %done
done:
  ret i32 %raised
end:
  ret i32 {failed}
}}
"""

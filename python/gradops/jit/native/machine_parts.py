"""Templates of the native machine's LLVM IR, which :mod:`.machine_source` fills in.

``MAIN`` is the interpreter. The functions that it calls, :data:`DECLARED`, are C in ``runtime/``.
"""

from __future__ import annotations

FUNCTIONS_USED = ("exp", "log1p", "log", "fmod")
"""Functions of the C library that the interpreter's instructions call."""

INTRINSICS = [f"declare double @llvm.{name}.f64(double)" for name in ("fabs", "sqrt", "floor", "ceil", "trunc", "rint")]

DECLARED = [
    *INTRINSICS,
    "declare double @logaddexp(double, double, ptr)",
    "declare double @modulo(double, double, ptr)",
    "declare double @floor_divided(double, double, ptr)",
    "declare double @scipy1(double, i32, ptr, ptr)",
    "declare double @scipy2(double, double, i32, ptr, ptr)",
]
"""Declarations of the functions that elementwise instructions call."""

# The interpreter is one function with threaded dispatch: each operation is a block that ends in an indirect jump to the
# next operation, so the processor predicts each jump separately. It starts at a cache line, which saves a tenth of the
# time of operations with three operands, as their code has the size of a line. Results must have NumPy's bits, so no
# instruction has a fast-math flag: LLVM may neither reassociate sums nor round a product and a sum only once.
MAIN = """
@targets = internal constant [{table_size} x ptr] [{targets}]

define i32 @run(ptr %code, ptr %memory, ptr %functions) noinline align 64 {{
entry:
  %exceptions = or i32 {exceptions}, 0
  %clear = load ptr, ptr %functions
  call i32 %clear(i32 %exceptions)
  br label %dispatch
dispatch: ; LLVM duplicates this block at the end of each operation
  %at = phi ptr [%code, %entry], [%next.long, %vector.op], [%next.gather, %gather.done],
    [%next.short, %short.done]{dispatched_from}
  %op = load i32, ptr %at
  %op.i = zext i32 %op to i64
  %target.p = getelementptr ptr, ptr @targets, i64 %op.i
  %target = load ptr, ptr %target.p
  indirectbr ptr %target, [{labels}]
end:
  %test = ptr %functions[1]
  %raised = call i32 %test(i32 %exceptions)
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
  %outside.raised = call i32 %outside.test(i32 %exceptions)
  %outside.number = shl i32 %outside, 8
  %outside.both = or i32 %outside.raised, %outside.number
  %outside.r = or i32 %outside.both, {waiting}
  ret i32 %outside.r
short.done:
  %next.short = getelementptr i32, ptr %at, i64 {short}
  br label %dispatch
vector.op:
  %vector.i = add i64 %op.i, {vectors}
  %vector = ptr %functions[%vector.i]
  call void %vector(ptr %at, ptr %memory, ptr %functions)
  %next.long = getelementptr i32, ptr %at, i64 {long}
  br label %dispatch

; The operands of a gather follow its words, and the next instruction follows them.
vector.gather:
  %g.out.i = i32 %at[1]
  %g.out = sext i32 %g.out.i to i64
  %g.p = getelementptr double, ptr %memory, i64 %g.out
  %g.n.i = i32 %at[{short}]
  %g.n = sext i32 %g.n.i to i64
  %g.at = getelementptr i32, ptr %at, i64 {long}
  br label %gather.loop
gather.loop:
  %gi = phi i64 [0, %vector.gather], [%gi1, %gather.loop]
  %gw = i32 %g.at[%gi]
  %gw.i = sext i32 %gw to i64
  %gv = double %memory[%gw.i]
  %g.p[%gi] = double %gv
  %gi1 = add i64 %gi, 1
  %gmore = icmp slt i64 %gi1, %g.n
  br i1 %gmore, label %gather.loop, label %gather.done
gather.done:
  %next.gather = getelementptr i32, ptr %g.at, i64 %g.n
  br label %dispatch
}}
"""

# The words of a vector instruction, and the places of its vectors.
VECTOR = """
define void @vector_{name}(ptr %at, ptr %memory, ptr %functions) noinline align 64 {{
entry:
  %exceptions = or i32 {exceptions}, 0
{words}
  %vout.p = getelementptr double, ptr %memory, i64 %out
  %va.p = getelementptr double, ptr %memory, i64 %a
  %vb.p = getelementptr double, ptr %memory, i64 %b
  %vc.p = getelementptr double, ptr %memory, i64 %c
  br label %begin
begin:
{body}
done:
  ret void
}}
"""

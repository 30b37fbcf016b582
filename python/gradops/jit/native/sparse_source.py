"""LLVM IR of sparse Cholesky factorization, triangular solves and the inverse on the factor's pattern.

The functions are part of the machine's module; :mod:`gradops.scipy.sparse._columns` calls them. A factor is stored in
compressed columns, each with its diagonal element first: ``starts`` of the columns, ``rows`` and values. All index
vectors are 64-bit. The workspace ``w`` must contain zeros, and contains zeros again afterwards.
"""

from __future__ import annotations

from .llvm import source

_BACKWARDS = """\
entry:
  br label %column
column:
  %k1 = phi i64 [%n, %entry], [%k, %next]
  %more = icmp sgt i64 %k1, 0
  br i1 %more, label %begin, label %done
done:
  ret void
begin:
  %k = sub i64 %k1, 1
  %s0 = i64 %starts[%k]
  %s9 = i64 %starts[%k1]
  %d = double %l[%s0]
"""
"""IR of a loop over columns from the last to the first, with the extent and diagonal element of each."""

_TEXT = (
    """
; Left-looking factorization (George & Liu 1981). `before[k]` is where row k starts in `lefts`, which lists the
; positions of its elements left of the diagonal, and in `ends`, which lists the ends of their columns. `given[k]` is
; where column k of the matrix starts in `from`, which lists positions in `a`, and in `into`, which lists rows. Returns
; 0 if a pivot is not positive.
define i64 @sparse_factor(i64 %n, ptr noalias %starts, ptr noalias %rows, ptr noalias %before, ptr noalias %lefts,
                          ptr noalias %ends, ptr noalias %given, ptr noalias %into, ptr noalias %from,
                          ptr noalias %a, ptr noalias %l, ptr noalias %w) {
entry:
  br label %column
column:
  %k = phi i64 [0, %entry], [%k1, %next]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %begin, label %good
good:
  ret i64 1
begin:
  %k1 = add i64 %k, 1
  %g0 = i64 %given[%k]
  %g9 = i64 %given[%k1]
  br label %fill
fill:
  %g = phi i64 [%g0, %begin], [%g1, %filled]
  %g.more = icmp slt i64 %g, %g9
  br i1 %g.more, label %filled, label %left.begin
filled:
  %g.from = i64 %from[%g]
  %g.row = i64 %into[%g]
  %g.x = double %a[%g.from]
  %w[%g.row] = double %g.x
  %g1 = add i64 %g, 1
  br label %fill
left.begin:
  %q0 = i64 %before[%k]
  %q9 = i64 %before[%k1]
  br label %left
left:
  %q = phi i64 [%q0, %left.begin], [%q1, %left.next]
  %q.more = icmp slt i64 %q, %q9
  br i1 %q.more, label %left.one, label %pivot
left.one:
  %p0 = i64 %lefts[%q]
  %p9 = i64 %ends[%q]
  %factor = double %l[%p0]
  br label %taken
taken:
  %p = phi i64 [%p0, %left.one], [%p1, %taken]
  %p.row = i64 %rows[%p]
  %p.x = double %l[%p]
  %p.w = double %w[%p.row]
  %p.y = fmul contract double %factor, %p.x
  %p.z = fsub contract double %p.w, %p.y
  %w[%p.row] = double %p.z
  %p1 = add i64 %p, 1
  %p.more = icmp slt i64 %p1, %p9
  br i1 %p.more, label %taken, label %left.next
left.next:
  %q1 = add i64 %q, 1
  br label %left
pivot:
  %d = double %w[%k]
  %d.good = fcmp ogt double %d, 0.0
  br i1 %d.good, label %root, label %bad
bad:
  ret i64 0
root:
  %r = call double @llvm.sqrt.f64(double %d)
  %inverse = fdiv double 1.0, %r
  %s0 = i64 %starts[%k]
  %s9 = i64 %starts[%k1]
  %l[%s0] = double %r
  %w[%k] = double 0.0
  br label %scale
scale:
  %s = phi i64 [%s0, %root], [%s1, %scaled]
  %s1 = add i64 %s, 1
  %s.more = icmp slt i64 %s1, %s9
  br i1 %s.more, label %scaled, label %next
scaled:
  %s.row = i64 %rows[%s1]
  %s.x = double %w[%s.row]
  %s.y = fmul double %s.x, %inverse
  %l[%s1] = double %s.y
  %w[%s.row] = double 0.0
  br label %scale
next:
  br label %column
}

define void @sparse_forward(i64 %n, ptr noalias %starts, ptr noalias %rows, ptr noalias %l, ptr noalias %x) {
entry:
  br label %column
column:
  %k = phi i64 [0, %entry], [%k1, %next]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %begin, label %done
done:
  ret void
begin:
  %k1 = add i64 %k, 1
  %s0 = i64 %starts[%k]
  %s9 = i64 %starts[%k1]
  %d = double %l[%s0]
  %b = double %x[%k]
  %y = fdiv double %b, %d
  %x[%k] = double %y
  br label %scale
scale:
  %s = phi i64 [%s0, %begin], [%s1, %taken]
  %s1 = add i64 %s, 1
  %s.more = icmp slt i64 %s1, %s9
  br i1 %s.more, label %taken, label %next
taken:
  %s.row = i64 %rows[%s1]
  %s.l = double %l[%s1]
  %s.x = double %x[%s.row]
  %s.y = fmul contract double %s.l, %y
  %s.z = fsub contract double %s.x, %s.y
  %x[%s.row] = double %s.z
  br label %scale
next:
  br label %column
}

define void @sparse_backward(i64 %n, ptr noalias %starts, ptr noalias %rows, ptr noalias %l, ptr noalias %x) {
"""
    + _BACKWARDS
    + """\
  %b = double %x[%k]
  br label %sum
sum:
  %s = phi i64 [%s0, %begin], [%s1, %taken]
  %y = phi double [%b, %begin], [%s.z, %taken]
  %s1 = add i64 %s, 1
  %s.more = icmp slt i64 %s1, %s9
  br i1 %s.more, label %taken, label %next
taken:
  %s.row = i64 %rows[%s1]
  %s.l = double %l[%s1]
  %s.x = double %x[%s.row]
  %s.y = fmul contract double %s.l, %s.x
  %s.z = fsub contract double %y, %s.y
  br label %sum
next:
  %solved = fdiv double %y, %d
  %x[%k] = double %solved
  br label %column
}

; The inverse on the factor's pattern, from the last column to the first (Takahashi, Fagan & Chen 1973). `w` holds the
; column's elements below the diagonal, divided by the diagonal element; their products with later columns of the
; inverse accumulate in `v`, whose other rows may hold anything.
define void @sparse_inverse(i64 %n, ptr noalias %starts, ptr noalias %rows, ptr noalias %l, ptr noalias %z,
                            ptr noalias %w, ptr noalias %v) {
"""
    + _BACKWARDS
    + """\
  %inverse = fdiv double 1.0, %d
  br label %spread
spread:
  %s = phi i64 [%s0, %begin], [%s1, %spread.one]
  %s1 = add i64 %s, 1
  %s.more = icmp slt i64 %s1, %s9
  br i1 %s.more, label %spread.one, label %across
spread.one:
  %s.row = i64 %rows[%s1]
  %s.l = double %l[%s1]
  %s.y = fmul double %s.l, %inverse
  %w[%s.row] = double %s.y
  %v[%s.row] = double 0.0
  br label %spread
across:
  %t = phi i64 [%s0, %spread], [%t1, %across.end]
  %t1 = add i64 %t, 1
  %t.more = icmp slt i64 %t1, %s9
  br i1 %t.more, label %across.one, label %collect.begin
across.one:
  %c = i64 %rows[%t1]
  %c1 = add i64 %c, 1
  %p0 = i64 %starts[%c]
  %p9 = i64 %starts[%c1]
  %own = double %w[%c]
  %c.z = double %z[%p0]
  %c.y = fmul double %c.z, %own
  br label %along
along:
  %p = phi i64 [%p0, %across.one], [%p1, %along.one]
  %sum = phi double [%c.y, %across.one], [%sum1, %along.one]
  %p1 = add i64 %p, 1
  %p.more = icmp slt i64 %p1, %p9
  br i1 %p.more, label %along.one, label %across.end
along.one:
  %p.row = i64 %rows[%p1]
  %p.z = double %z[%p1]
  %p.w = double %w[%p.row]
  %p.v = double %v[%p.row]
  %to.own = fmul contract double %p.z, %p.w
  %sum1 = fadd contract double %sum, %to.own
  %to.row = fmul contract double %p.z, %own
  %p.new = fadd contract double %p.v, %to.row
  %v[%p.row] = double %p.new
  br label %along
across.end:
  %c.v = double %v[%c]
  %c.new = fadd double %c.v, %sum
  %v[%c] = double %c.new
  br label %across
collect.begin:
  %first = fmul double %inverse, %inverse
  br label %collect
collect:
  %e = phi i64 [%s0, %collect.begin], [%e1, %collect.one]
  %diagonal = phi double [%first, %collect.begin], [%diagonal1, %collect.one]
  %e1 = add i64 %e, 1
  %e.more = icmp slt i64 %e1, %s9
  br i1 %e.more, label %collect.one, label %next
collect.one:
  %e.row = i64 %rows[%e1]
  %e.v = double %v[%e.row]
  %e.w = double %w[%e.row]
  %e.z = fneg double %e.v
  %z[%e1] = double %e.z
  %e.y = fmul contract double %e.v, %e.w
  %diagonal1 = fadd contract double %diagonal, %e.y
  %w[%e.row] = double 0.0
  br label %collect
next:
  %z[%s0] = double %diagonal
  br label %column
}
"""
)

source(lambda exceptions: _TEXT)

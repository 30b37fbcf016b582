"""LLVM IR of vectorized inner loops for sums, matrix-vector products and broadcast rows, eight float64 at a time.

The functions are part of the machine's module: :mod:`.tile_source` includes :func:`source`, and plans of
:mod:`.tile_plan` call the loops. The sum has the bits of NumPy's pairwise summation, whose eight partial sums are the
lanes of one vector.
"""

from __future__ import annotations

from collections.abc import Callable

from .llvm import EIGHT, LANES, Text, inner_loop


def source() -> str:
    """Return the IR of all loops in this module."""
    functions = _pairwise(), _SUM, _spread(), _matrix_by_vector(), _vector_by_matrix()
    return "\n".join([_DECLARED, JOINED, *functions])


def _pairwise() -> str:
    """Return the IR of NumPy's pairwise summation: halves above 128 numbers, then eight partial sums."""
    text = Text()

    def element(i: str, total: list) -> list:
        return [text.added(total[0], text.line(f"double %a[{i}]"), "double")]

    def sum_of_eights() -> str:
        first = EIGHT, text.eight("%a")
        return text.lane_sum(*text.loop(str(LANES), whole, LANES, [first], eight))

    def eight(i: str, total: list) -> list:
        return [text.added(total[0], text.eight(text.at("%a", i)))]

    few = text.label()
    text.guard(text.line("icmp sgt i64 %n, 128"), few)
    half = text.number("and", text.number("sdiv", "%n", 2), -LANES)
    calls = [("%a", half), (text.at("%a", half), text.number("sub", "%n", half))]
    first, second = (text.line(f"call double @pairwise.near(ptr {a}, i64 {n})") for a, n in calls)
    text.lines.append(f"  ret double {text.added(first, second, 'double')}")
    text.begin(few)
    # NumPy starts a sum from -0.0, the neutral element, and adds it to the initial result, which is 0.0; so a sum of
    # negative zeros is 0.0.
    whole = text.number("and", "%n", -LANES)
    start = text.chosen(text.line(f"icmp ne i64 {whole}, 0"), sum_of_eights, "-0.0")
    (total,) = text.loop(whole, "%n", 1, [("double", start)], element)
    head = "define internal double @pairwise.near(ptr %a, i64 %n) {\nentry:"
    return "\n".join([head, *text.lines, f"  ret double {total}", "}", ""])


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
"""IR that adds eight partial sums in NumPy's order."""

# The last numbers of a row may be fewer than eight, and the memory after them may not be readable. So they are loaded
# under a mask (`first`), with zeros in the other lanes of both factors: 0 times whatever is stored there could be NaN.
_DECLARED = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)
declare void @llvm.masked.store.v8f64.p0(<8 x double>, ptr, i32, <8 x i1>)

define internal <8 x i1> @first(i64 %n) alwaysinline {
  %one = insertelement <8 x i64> poison, i64 %n, i64 0
  %all = shufflevector <8 x i64> %one, <8 x i64> poison, <8 x i32> zeroinitializer
  %is = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %all
  ret <8 x i1> %is
}
"""

_SUM = """
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


def _spread() -> str:
    """Return the IR of a loop that repeats a row, or a number for each row, to an array."""
    text = Text()
    x, out = (text.line(f"ptr %arguments[{i}]") for i in range(2))
    rows, width = (text.line(f"i64 %count[{i}]") for i in range(2))
    across = text.line("i64 %steps[1]")
    is_row = text.line(f"icmp eq i64 {across}, 0")

    def row(r: str, _: list) -> list:
        target = text.at(out, text.number("mul", r, width))
        copy, same, after = (text.label() for _ in range(3))

        def filled(read: Callable[[str], str]) -> None:
            def element(i: str, _: list) -> list:
                text.store("double", read(i), text.at(target, i))
                return []

            text.loop("0", width, 1, [], element)
            text.go(after)

        text.branch(is_row, copy, same)
        text.begin(same)
        number = text.line(f"double {x}[{r} * {across} bytes]")
        filled(lambda i: number)
        text.begin(copy)
        filled(lambda i: text.line(f"double {x}[{i}]"))
        text.begin(after)
        return []

    text.loop("0", rows, 1, [], row)
    return inner_loop("spread.tile", text)


# Products need not have NumPy's bits, as the order of summation in BLAS depends on the processor. But they must not
# depend on the number of threads, so each row, and each tile's part of a column, has a fixed order.


def _product() -> Text:
    """Return a function body that starts by loading the matrix, the vector, the result, and two counts."""
    text = Text()
    text.lines += ["  %x = load ptr, ptr %arguments", "  %v = ptr %arguments[1]", "  %out = ptr %arguments[2]"]
    text.lines += ["  %first = i64 %count[1]", "  %second = i64 %count[2]"]
    return text


_ZERO = EIGHT, "zeroinitializer"


def _matrix_by_vector() -> str:
    """Return the IR of a matrix times a vector: eight rows at a time, then the rest one by one."""
    text = _product()
    whole = text.number("and", "%second", -LANES)
    mask = text.line(f"call <8 x i1> @first(i64 {text.number('sub', '%second', whole)})")
    end = text.eight(text.at("%v", whole), mask)

    def row_writer(count: int):
        def row(r: str, _: list) -> list:
            places = [text.number("mul", text.number("add", r, i), "%second") for i in range(count)]
            rows = [text.at("%x", place) for place in places]

            def chunk(j: str, sums: list) -> list:
                v = text.eight(text.at("%v", j))
                return [text.fused(text.eight(text.at(x, j)), v, total) for x, total in zip(rows, sums)]

            sums = text.loop("0", whole, LANES, [_ZERO] * count, chunk)
            sums = [text.fused(text.eight(text.at(x, whole), mask), end, total) for x, total in zip(rows, sums)]
            if count == 1:
                text.store("double", text.lane_sum(*sums), text.at("%out", r))
            else:
                text.store(EIGHT, _sums(text, sums), text.at("%out", r), ", align 8")
            return []

        return row

    eights = text.number("and", "%first", -LANES)
    text.loop("0", eights, LANES, [], row_writer(LANES))
    text.loop(eights, "%first", 1, [], row_writer(1))
    return inner_loop("matvec.tile", text)


def _sums(text: Text, vectors: list[str]) -> str:
    """Write the sums of eight vectors; return them as one vector."""
    halves = [", ".join(f"i32 {i}" for i in range(start, 2 * LANES, 2)) for start in (0, 1)]
    while len(vectors) > 1:
        pairs = [f"{EIGHT} {x}, {EIGHT} {y}" for x, y in zip(vectors[::2], vectors[1::2])]
        vectors = [
            text.added(*[text.line(f"shufflevector {pair}, <8 x i32> <{places}>") for places in halves])
            for pair in pairs
        ]
    return vectors[0]


def _vector_by_matrix() -> str:
    """Return the IR of a vector times a matrix: 32 columns at a time, then up to eight with four sums each."""
    text = _product()
    tile = text.number("mul", "%first", "%second")  # columns, rows

    def factor(i: str) -> tuple[str, str]:
        """Write the vector's number for a row, in eight lanes, and the offset of the row."""
        return text.spread(text.line(f"load double, ptr {text.at('%v', i)}")), text.number("mul", i, "%first")

    def wide(j: str, _: list) -> list:
        places = [text.number("add", j, LANES * c) for c in range(4)]

        def row(i: str, sums: list) -> list:
            v, start = factor(i)
            rows = [text.at("%x", text.number("add", start, place)) for place in places]
            # This tile is in the cache, as the product with the matrix has just read it. Prefetch the next tile from
            # memory during the arithmetic.
            for x in rows:
                text.lines.append(f"  call void @llvm.prefetch.p0(ptr {text.at(x, tile)}, i32 0, i32 2, i32 1)")
            return [text.fused(text.eight(x), v, total) for x, total in zip(rows, sums)]

        for place, total in zip(places, text.loop("0", "%second", 1, [_ZERO] * 4, row)):
            text.store(EIGHT, total, text.at("%out", place), ", align 8")
        return []

    def few(j: str, _: list) -> list:
        mask = text.line(f"call <8 x i1> @first(i64 {text.number('sub', '%first', j)})")

        def add_row(i: str, total: str) -> str:
            v, start = factor(i)
            return text.fused(text.eight(text.at("%x", text.number("add", start, j)), mask), v, total)

        def four(i: str, sums: list) -> list:
            return [add_row(text.number("add", i, u), total) for u, total in enumerate(sums)]

        fours = text.number("and", "%second", -4)
        a, b, c, d = text.loop("0", fours, 4, [_ZERO] * 4, four)
        start = EIGHT, text.added(text.added(a, b), text.added(c, d))
        (total,) = text.loop(fours, "%second", 1, [start], lambda i, sums: [add_row(i, *sums)])
        given = f"{EIGHT} {total}, ptr {text.at('%out', j)}, i32 8, <8 x i1> {mask}"
        text.lines.append(f"  call void @llvm.masked.store.v8f64.p0({given})")
        return []

    columns = text.number("and", "%first", -4 * LANES)
    text.loop("0", columns, 4 * LANES, [], wide)
    text.loop(columns, "%first", LANES, [], few)
    return inner_loop("vecmat.tile", text)

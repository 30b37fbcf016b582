"""The instructions of the native machine, each with its meaning in NumPy and its code in LLVM.

Values are doubles in one flat memory; those of float32 are doubles that are float32's, truth values 0 and 1, whole
numbers have the bits of an int64 (below). An instruction is five 32-bit words, ``(operation, result, a,
b, c)``, of which the last four are positions in memory; one on vectors has five more, ``(n, stride of a, stride of b,
stride of c, unused)``, and its results lie side by side.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from . import tile_functions

# Instructions on whole numbers, which stand in memory as the 64 bits of an int64.
#
# Those of int32 are int64's that ``narrow`` has wrapped to 32 bits, as NumPy's wrap.

WHOLES = (np.dtype("int64"), np.dtype("int32"))

_LIKE: dict[str, str] = {
    "add": "{t}r = add i64 {t}x, {t}y",
    "subtract": "{t}r = sub i64 {t}x, {t}y",
    "multiply": "{t}r = mul i64 {t}x, {t}y",
    "negative": "{t}r = sub i64 0, {t}x",
    "absolute": "{t}m = sub i64 0, {t}x\n{t}c = icmp slt i64 {t}x, 0\n{t}r = select i1 {t}c, i64 {t}m, i64 {t}x",
    "sign": """{t}p = icmp sgt i64 {t}x, 0
{t}a = zext i1 {t}p to i64
{t}m = ashr i64 {t}x, 63
{t}r = or i64 {t}a, {t}m""",
    "maximum": "{t}c = icmp sgt i64 {t}x, {t}y\n{t}r = select i1 {t}c, i64 {t}x, i64 {t}y",
    "minimum": "{t}c = icmp slt i64 {t}x, {t}y\n{t}r = select i1 {t}c, i64 {t}x, i64 {t}y",
    "fmax": "{t}c = icmp sgt i64 {t}x, {t}y\n{t}r = select i1 {t}c, i64 {t}x, i64 {t}y",
    "fmin": "{t}c = icmp slt i64 {t}x, {t}y\n{t}r = select i1 {t}c, i64 {t}x, i64 {t}y",
    **{f"bitwise_{name}": f"{{t}}r = {name} i64 {{t}}x, {{t}}y" for name in ("and", "or", "xor")},
    "bitwise_not": "{t}r = xor i64 {t}x, -1",
    "left_shift": """{t}c = icmp ult i64 {t}y, 64
{t}n = and i64 {t}y, 63
{t}s = shl i64 {t}x, {t}n
{t}r = select i1 {t}c, i64 {t}s, i64 0""",
    "right_shift": "{t}c = icmp ult i64 {t}y, 64\n{t}n = select i1 {t}c, i64 {t}y, i64 63\n{t}r = ashr i64 {t}x, {t}n",
    # by divisors other than 0 and -1, which the rules see to
    "fmod": "{t}r = srem i64 {t}x, {t}y",
    "floor_divide": """{t}q = sdiv i64 {t}x, {t}y
{t}l = srem i64 {t}x, {t}y
{t}s = xor i64 {t}l, {t}y
{t}o = icmp slt i64 {t}s, 0
{t}n = icmp ne i64 {t}l, 0
{t}b = and i1 {t}o, {t}n
{t}d = sext i1 {t}b to i64
{t}r = add i64 {t}q, {t}d""",
    "mod": """{t}l = srem i64 {t}x, {t}y
{t}s = xor i64 {t}l, {t}y
{t}o = icmp slt i64 {t}s, 0
{t}n = icmp ne i64 {t}l, 0
{t}b = and i1 {t}o, {t}n
{t}d = select i1 {t}b, i64 {t}y, i64 0
{t}r = add i64 {t}l, {t}d""",
}
_COMPARED = {
    "equal": "eq",
    "not_equal": "ne",
    "less": "slt",
    "less_equal": "sle",
    "greater": "sgt",
    "greater_equal": "sge",
}
_UNCHANGED = ("floor", "ceil", "trunc", "rint", "copy", "where")
"""Instructions that are the same for whole numbers as for others."""


def named(name: str) -> str | None:
    """The counterpart for whole numbers of an instruction for floats; None where there is none."""
    if name in _LIKE or name in _COMPARED:
        return f"whole_{name}"
    return name if name in ("copy", "where") else "copy" if name in _UNCHANGED else None


_X = "{t}x = bitcast double {x} to i64\n"
_Y = "{t}y = bitcast double {y} to i64\n"
_R = "\n{r} = bitcast i64 {t}r to double"


def _whole_operations(make: Callable) -> dict:
    """The operations on whole numbers; ``make`` makes one of LLVM's source and the number of operands."""
    found = {}
    for name, source in _LIKE.items():
        count = 2 if "{t}y" in source else 1
        found[f"whole_{name}"] = make(_X + _Y * (count - 1) + source + _R, count)
    for name, predicate in _COMPARED.items():
        source = f"{_X}{_Y}{{t}}c = icmp {predicate} i64 {{t}}x, {{t}}y\n{{r}} = uitofp i1 {{t}}c to double"
        found[f"whole_{name}"] = make(source, 2)
    found["narrow"] = make(_X + "{t}n = trunc i64 {t}x to i32\n{t}r = sext i32 {t}n to i64" + _R, 1)
    found["float64_of_whole"] = make(_X + "{r} = sitofp i64 {t}x to double", 1)
    found["float32_of_whole"] = make(_X + "{t}s = sitofp i64 {t}x to float\n{r} = fpext float {t}s to double", 1)
    found["int64_of_float"] = make("{t}r = fptosi double {x} to i64" + _R, 1)
    found["int32_of_float"] = make("{t}n = fptosi double {x} to i32\n{t}r = sext i32 {t}n to i64" + _R, 1)
    return found


# All instructions.

VECTOR = 256
"""Added to an operation: it is one on vectors."""

END = 255
"""The word after the last instruction."""

SHORT, LONG = 5, 10
"""Words of an instruction on numbers, and of one on vectors."""


class Operation(NamedTuple):
    """The computation of an instruction.

    Attributes:
        meaning: NumPy's function, by which the kernels that are it are found; None if it is none's.
        source: LLVM's, of ``{x}``, ``{y}`` and ``{z}`` into ``{r}``; ``{t}`` begins the names of temporaries.
        operands: their number.
    """

    meaning: Callable | None
    source: str
    operands: int = 2


def _truth(condition: str) -> str:
    return f"{{t}}c = {condition}\n{{r}} = uitofp i1 {{t}}c to double"


def _compare(predicate: str) -> str:
    return _truth(f"fcmp {predicate} double {{x}}, {{y}}")


def _first_if(predicate: str, or_nan: str) -> str:
    """The first of two if ``predicate`` holds, or if the one that is named is NaN; else the second."""
    # Of a NaN and a number the first NaN is chosen where the first operand is asked, so that NaN wins, and the number
    # where the second is. Of 0.0 and -0.0 the second is chosen, as NumPy does on x86.
    return f"""
{{t}}g = fcmp {predicate} double {{x}}, {{y}}
{{t}}n = fcmp uno double {{{or_nan}}}, {{{or_nan}}}
{{t}}k = or i1 {{t}}g, {{t}}n
{{r}} = select i1 {{t}}k, double {{x}}, double {{y}}"""


def _logical(operator: str) -> str:
    return f"""
{{t}}x = fcmp une double {{x}}, 0.0
{{t}}y = fcmp une double {{y}}, 0.0
{{t}}c = {operator} i1 {{t}}x, {{t}}y
{{r}} = uitofp i1 {{t}}c to double"""


def _intrinsic(name: str) -> str:
    return f"{{r}} = call double @llvm.{name}.f64(double {{x}})"


_INFINITY = "0x7FF0000000000000"
_ABSOLUTE = "{t}a = call double @llvm.fabs.f64(double {x})\n"

OF_TWO: dict[str, tuple[str, Callable]] = {
    "add": ("fadd", operator.add),
    "subtract": ("fsub", operator.sub),
    "multiply": ("fmul", operator.mul),
    "divide": ("fdiv", operator.truediv),
}


def _fused(first: str, second: str, is_left: bool) -> Operation:
    """An operation on two numbers, and another on the result and a third; each is rounded."""
    (made, of_two), (then, of_result) = OF_TWO[first], OF_TWO[second]
    operands = "{t}p, {z}" if is_left else "{z}, {t}p"
    return Operation(
        lambda x, y, z: of_result(of_two(x, y), z) if is_left else of_result(z, of_two(x, y)),
        f"{{t}}p = {made} double {{x}}, {{y}}\n{{r}} = {then} double {operands}",
        3,
    )


FUSED: dict[str, Operation] = {
    f"{first}_{second}_{'left' if is_left else 'right'}": _fused(first, second, is_left)
    for first in OF_TWO
    for second in OF_TWO
    for is_left in (True, False)
    if is_left or second in ("subtract", "divide")
}
"""Pairs of operations on numbers as one instruction, where only the second reads the result of the first."""

OPERATIONS: dict[str, Operation] = {
    "add": Operation(np.add, "{r} = fadd double {x}, {y}"),
    "subtract": Operation(np.subtract, "{r} = fsub double {x}, {y}"),
    "multiply": Operation(np.multiply, "{r} = fmul double {x}, {y}"),
    "divide": Operation(np.divide, "{r} = fdiv double {x}, {y}"),
    "negative": Operation(np.negative, "{r} = fneg double {x}", 1),
    "copy": Operation(np.positive, "{r} = bitcast double {x} to double", 1),
    "single": Operation(
        lambda x: np.float64(np.float32(x)),
        "{t}s = fptrunc double {x} to float\n{r} = fpext float {t}s to double",
        1,
    ),
    "absolute": Operation(np.absolute, _intrinsic("fabs"), 1),
    "sqrt": Operation(np.sqrt, _intrinsic("sqrt"), 1),
    "floor": Operation(np.floor, _intrinsic("floor"), 1),
    "ceil": Operation(np.ceil, _intrinsic("ceil"), 1),
    "trunc": Operation(np.trunc, _intrinsic("trunc"), 1),
    "rint": Operation(np.rint, _intrinsic("rint"), 1),
    "sign": Operation(
        np.sign,
        """
{t}p = fcmp ogt double {x}, 0.0
{t}m = fcmp olt double {x}, 0.0
{t}z = fadd double {x}, 0.0
{t}s = select i1 {t}m, double -1.0, double {t}z
{r} = select i1 {t}p, double 1.0, double {t}s""",
        1,
    ),
    "maximum": Operation(np.maximum, _first_if("ogt", or_nan="x")),
    "minimum": Operation(np.minimum, _first_if("olt", or_nan="x")),
    "fmax": Operation(np.fmax, _first_if("ogt", or_nan="y")),
    "fmin": Operation(np.fmin, _first_if("olt", or_nan="y")),
    "mod": Operation(np.mod, "{r} = call double @remainder(double {x}, double {y}, ptr %functions)"),
    "floor_divide": Operation(
        np.floor_divide, "{r} = call double @floor_divided(double {x}, double {y}, ptr %functions)"
    ),
    "signbit": Operation(np.signbit, "{t}x = bitcast double {x} to i64\n" + _truth("icmp slt i64 {t}x, 0"), 1),
    "equal": Operation(np.equal, _compare("oeq")),
    "not_equal": Operation(np.not_equal, _compare("une")),
    "less": Operation(np.less, _compare("olt")),
    "less_equal": Operation(np.less_equal, _compare("ole")),
    "greater": Operation(np.greater, _compare("ogt")),
    "greater_equal": Operation(np.greater_equal, _compare("oge")),
    "logical_and": Operation(np.logical_and, _logical("and")),
    "logical_or": Operation(np.logical_or, _logical("or")),
    "logical_xor": Operation(np.logical_xor, _logical("xor")),
    "logical_not": Operation(np.logical_not, _truth("fcmp oeq double {x}, 0.0"), 1),
    "isnan": Operation(np.isnan, _truth("fcmp uno double {x}, {x}"), 1),
    "isinf": Operation(np.isinf, _ABSOLUTE + _truth(f"fcmp oeq double {{t}}a, {_INFINITY}"), 1),
    "isfinite": Operation(np.isfinite, _ABSOLUTE + _truth(f"fcmp olt double {{t}}a, {_INFINITY}"), 1),
    "where": Operation(
        np.where, "{t}c = fcmp une double {x}, 0.0\n{r} = select i1 {t}c, double {y}, double {z}", operands=3
    ),
    "logaddexp": Operation(np.logaddexp, "{r} = call double @logaddexp(double {x}, double {y}, ptr %functions)"),
    **FUSED,
    **_whole_operations(functools.partial(Operation, None)),
}
"""The elementwise operations, by the ufuncs' names; ``single`` rounds a result to float32 in its place."""

SIDE_BY_SIDE = ("add", "subtract", "multiply", "divide", "negative", "absolute", "sqrt", "copy")
"""Those with loops of their own for operands that lie side by side, of which the processor takes several at once."""

CALLED = ("sum", "logsumexp", "argmax", "argmin", "whole_argmax", "whole_argmin")
"""Those of :data:`REDUCTIONS` that are functions of the machine's, with the same names there."""

REDUCTIONS = ("prod", "max", "min", *CALLED)
"""The operations on one vector that give a number."""

OF_ROWS = ("softmax", "log_softmax", "argsort", "whole_argsort")
"""The operations on one vector that give one: the last the positions of its elements in rising order."""


class Function(NamedTuple):
    """A function of the C library or of SciPy that the machine calls by its address.

    Attributes:
        meaning: NumPy's function, by which the kernels that are it are found; None for SciPy's.
        symbol: its name in the C library, or in ``scipy.special.cython_special``.
        source: LLVM's, as of :class:`Operation`, by which arrays have it, several elements at once; none where theirs
            is NumPy's or SciPy's loop.
        largest: the largest operand of that source.
    """

    meaning: Callable | None
    symbol: str
    operands: int = 1
    of_scipy: bool = False
    source: str = ""
    largest: float = math.inf


def _of_c(name: str) -> Function:
    if name in tile_functions.WAVES:
        return Function(getattr(np, name), name, source=tile_functions.WAVES[name], largest=tile_functions.LARGEST)
    return Function(getattr(np, name), name, source=tile_functions.FUNCTIONS.get(name, ""))


OF_ONE = """gammaln psi erf erfc erfinv ndtr expit i0 i1 i0e i1e k0 k1 k0e k1e j0 j1 y0 y1 gamma rgamma log_ndtr
ndtri ndtri_exp logit erfcx erfi erfcinv dawsn exp1 expi spence entr exprel cosm1 ellipk ellipkm1 ellipe zetac
ber bei berp beip loggamma gammasgn itstruve0 it2struve0 itmodstruve0 exp10 round sindg cosdg
tandg cotdg wrightomega""".split()
OF_PAIRS = """jv yv iv ive kv kve poch xlogy xlog1py rel_entr kl_div boxcox boxcox1p inv_boxcox
owens_t huber pseudo_huber powm1 ellipkinc ellipeinc gammainc gammaincc gammaincinv gammainccinv beta binom agm
struve modstruve pdtrik stdtridf""".split()
OF_SCIPY = {**dict.fromkeys(OF_ONE, 1), **dict.fromkeys(OF_PAIRS, 2)}
"""Functions of one and of two doubles in ``scipy.special.cython_special``, and their operands."""

FUNCTIONS: dict[str, Function] = {
    **{name: _of_c(name) for name in "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt".split()},
    **{f"arc{name}": Function(getattr(np, f"arc{name}"), f"a{name}") for name in "sin cos tan sinh cosh tanh".split()},
    "power": Function(np.power, "pow", 2),
    "arctan2": Function(np.arctan2, "atan2", 2),
    "hypot": Function(np.hypot, "hypot", 2),
    "fmod": Function(np.fmod, "fmod", 2),
    "nextafter": Function(np.nextafter, "nextafter", 2),
    **{name: Function(None, name, operands, of_scipy=True) for name, operands in OF_SCIPY.items()},
}

CALLS = ("c1", "c2", "scipy1", "scipy2")
"""The operations that call one of :data:`FUNCTIONS`, whose number is the operand after the last."""

ROWS: dict[str, tuple[str, int]] = {
    f"{name}{'' if n == 1 else n}": (name, n) for name in ("load", "store") for n in (1, 2, 3, 4)
}
"""Loads and stores of few numbers that lie side by side: which of the two, and how many."""

MATRICES = ("product", "factor", "solved", "inverse")
OTHERS = (
    "dot", *OF_ROWS, "pick", *MATRICES, "gather", *ROWS,
    "again", "unless", "index", "require", "outside",
)  # fmt: skip
"""``dot`` of two vectors; ``gather``: ``n`` words with the positions of its operands follow it; ``pick``: of a vector
at ``a`` the elements at the ``n`` positions, whole numbers from ``b`` on.

``product``, by BLAS, of the matrix of ``n`` rows and ``c`` columns at ``a`` and the one of ``c`` rows and ``sc``
columns at ``b``. ``sa`` and ``sb`` are the distances of their rows, whose elements lie side by side; negative of
columns that do.

By LAPACK, of a matrix of ``n`` rows whose columns lie one after the other at ``result``, in its place: ``factor``, with
the exchanges of rows at ``a``, 0 at ``b`` for a singular matrix and at ``c`` the sign of the exchanges; ``inverse``, of
such a factor, exchanges at ``a``, and room for ``n`` numbers at ``b``; ``solved``, of ``c`` right sides at ``result``,
factor at ``a``, exchanges at ``b``, and ``sa`` 1 for the transposed system.

Of positions: ``load`` copies a number from ``a + i * c`` and ``store`` from ``a`` to ``result + i * c``, ``i`` being
the whole number at ``b``; on vectors ``n`` numbers, with ``sa`` for ``c``. ``index``: the whole number at ``a``,
counted from the end where it is negative, as a position among ``b``; the program ends where it is none (``c`` is the
axis). Of loops: ``again`` goes back by ``a`` words unless the whole number at ``result`` is ``c``, and adds ``b`` to
it. Of branches: ``unless`` goes on by ``a`` words where the number at ``result`` is 0. ``require`` ends the
program where the number at ``result`` is 0: the reference executor then does all of it. ``outside`` ends it for the
time in which the kernel of that number runs.
"""

WAITING = 1 << 29
"""Part of the machine's result where a kernel should run: beside it its number from bit 8 on, and exceptions."""

FAILED = 1 << 30
"""The machine's result, instead of exceptions, if it ended before its time: NumPy raises an error there."""

NUMBERS: dict[str, int] = {name: i for i, name in enumerate((*OPERATIONS, *CALLS, *REDUCTIONS, *OTHERS))}
"""The number of each operation in the code."""

FIRST_FUNCTION = 2
"""Before the functions' addresses the table has those of ``feclearexcept`` and ``fetestexcept``."""

FUNCTION_NUMBERS: dict[str, int] = {name: i + FIRST_FUNCTION for i, name in enumerate(FUNCTIONS)}

_N = "int *"
_D = "d *"
ROUTINES: dict[str, str] = {
    "dgemm": f"char *, char *, {_N}, {_N}, {_N}, {_D}, {_D}, {_N}, {_D}, {_N}, {_D}, {_D}, {_N}",
    "dgetrf": f"{_N}, {_N}, {_D}, {_N}, {_N}, {_N}",
    "dgetrs": f"char *, {_N}, {_N}, {_D}, {_N}, {_N}, {_D}, {_N}, {_N}",
    "dgetri": f"{_N}, {_D}, {_N}, {_N}, {_D}, {_N}, {_N}",
}
"""Functions of BLAS and LAPACK, with their arguments, of which ``d`` are doubles."""

ROUTINE_NUMBERS: dict[str, int] = {name: i for i, name in enumerate(ROUTINES, FIRST_FUNCTION + len(FUNCTIONS))}
"""Their numbers in the table, after the others."""

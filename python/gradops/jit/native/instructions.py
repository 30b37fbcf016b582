"""The native machine's instruction set: for each instruction its opcode, its NumPy equivalent and its LLVM IR.

:mod:`.code` emits these instructions, and :mod:`.emitter` and :mod:`.machine_source` write the IR that executes them.

The machine's memory is a flat array of 8-byte cells. A float32 value is stored as the equal float64, a boolean as 0.0
or 1.0, and an integer as the bits of an int64. An instruction has five 32-bit words, ``(opcode, result, a, b, c)``, of
which the last four are usually cells. A vector instruction has five more, ``(n, stride of a, stride of b, stride of c,
exceptions)``, and its results are contiguous. The last word is the mask that LAPACK's instructions clear.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# Instructions on integers, which memory holds as the bits of an int64. For int32 the same instructions are followed by
# `narrow`, which wraps the result to 32 bits as NumPy does.

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
    # for divisors other than 0 and -1; the lowering rules ensure that
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
"""Instructions that leave integers unchanged, or work on any 8 bytes."""


def integer_instruction(name: str) -> str | None:
    """Return the integer counterpart of an instruction for floats, or None if integers lack it."""
    if name in _LIKE or name in _COMPARED:
        return f"whole_{name}"
    return name if name in ("copy", "where") else "copy" if name in _UNCHANGED else None


_X = "{t}x = bitcast double {x} to i64\n"
_Y = "{t}y = bitcast double {y} to i64\n"
_R = "\n{r} = bitcast i64 {t}r to double"


def _integer_operations(make: Callable) -> dict:
    """Return the operations on integers by name; ``make`` takes IR and the number of operands."""
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
"""Added to an opcode, it makes the instruction one on vectors."""

END = 255
"""The word after the last instruction."""

SHORT, LONG = 5, 10
"""The number of words of an instruction on numbers, and of a vector instruction."""


class Operation(NamedTuple):
    """An elementwise instruction.

    Attributes:
        meaning: the equivalent NumPy function, or None; an op with this kernel becomes this instruction.
        source: LLVM IR that computes ``{r}`` from ``{x}``, ``{y}`` and ``{z}``; ``{t}`` prefixes temporaries.
        operands: the number of operands.
    """

    meaning: Callable | None
    source: str
    operands: int = 2


def _truth(condition: str) -> str:
    return f"{{t}}c = {condition}\n{{r}} = uitofp i1 {{t}}c to double"


def _compare(predicate: str) -> str:
    return _truth(f"fcmp {predicate} double {{x}}, {{y}}")


def _selection(predicate: str, or_nan: str) -> str:
    """Return IR that selects ``x`` if ``predicate`` holds or ``or_nan`` is NaN, else ``y``.

    Args:
        or_nan: ``"x"`` if a NaN operand makes the result NaN, ``"y"`` if it is ignored.
    """
    # For 0.0 and -0.0 the second operand is selected, as NumPy does on x86.
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
    """Return an instruction for an operation whose result is an operand of another; both results are rounded.

    Args:
        is_left: True if the first result is the left operand of the second operation.
    """
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
"""Pairs of operations as one instruction, used if only the second operation reads the first one's result."""

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
    "maximum": Operation(np.maximum, _selection("ogt", or_nan="x")),
    "minimum": Operation(np.minimum, _selection("olt", or_nan="x")),
    "fmax": Operation(np.fmax, _selection("ogt", or_nan="y")),
    "fmin": Operation(np.fmin, _selection("olt", or_nan="y")),
    "mod": Operation(np.mod, "{r} = call double @modulo(double {x}, double {y}, ptr %functions)"),
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
    **_integer_operations(functools.partial(Operation, None)),
}
"""Elementwise instructions, named like NumPy's ufuncs; ``single`` rounds a result to float32 in place."""

SIDE_BY_SIDE = ("add", "subtract", "multiply", "divide", "negative", "absolute", "sqrt", "copy")
"""Operations with extra loops for contiguous operands, which LLVM vectorizes."""

CALLED = ("sum", "logsumexp", "argmax", "argmin", "whole_argmax", "whole_argmin")
"""The :data:`REDUCTIONS` that call a function of the same name in the machine's module."""

REDUCTIONS = ("prod", "max", "min", *CALLED)
"""Instructions from a vector to a number."""

OF_ROWS = ("softmax", "log_softmax", "argsort", "whole_argsort")
"""Instructions from a vector to a vector of the same length."""


class Function(NamedTuple):
    """A function of the C library or of SciPy that the machine calls by address.

    Attributes:
        meaning: the equivalent NumPy function, or None; an op with this kernel calls this function.
        symbol: the name in the C library, or in ``scipy.special.cython_special``.
        operands: the number of operands.
        of_scipy: True for SciPy's functions.
    """

    meaning: Callable | None
    symbol: str
    operands: int = 1
    of_scipy: bool = False


def _libm(name: str) -> Function:
    return Function(getattr(np, name), name)


OF_ONE = """gammaln psi erf erfc erfinv ndtr expit i0 i1 i0e i1e k0 k1 k0e k1e j0 j1 y0 y1 gamma rgamma log_ndtr
ndtri ndtri_exp logit erfcx erfi erfcinv dawsn exp1 expi spence entr exprel cosm1 ellipk ellipkm1 ellipe zetac
ber bei berp beip loggamma gammasgn itstruve0 it2struve0 itmodstruve0 exp10 round sindg cosdg
tandg cotdg wrightomega""".split()
OF_PAIRS = """jv yv iv ive kv kve poch xlogy xlog1py rel_entr kl_div boxcox boxcox1p inv_boxcox
owens_t huber pseudo_huber powm1 ellipkinc ellipeinc gammainc gammaincc gammaincinv gammainccinv beta binom agm
struve modstruve pdtrik stdtridf""".split()
OF_SCIPY = {**dict.fromkeys(OF_ONE, 1), **dict.fromkeys(OF_PAIRS, 2)}
"""Functions of one or two doubles in ``scipy.special.cython_special``, with the number of operands."""

FUNCTIONS: dict[str, Function] = {
    **{name: _libm(name) for name in ("exp", "log1p")},  # the first three are also called by C (runtime/functions.h)
    "fmod": Function(np.fmod, "fmod", 2),
    **{name: _libm(name) for name in "exp2 expm1 log log2 log10 sin cos tan sinh cosh tanh cbrt".split()},
    **{f"arc{name}": Function(getattr(np, f"arc{name}"), f"a{name}") for name in "sin cos tan sinh cosh tanh".split()},
    "power": Function(np.power, "pow", 2),
    "arctan2": Function(np.arctan2, "atan2", 2),
    "hypot": Function(np.hypot, "hypot", 2),
    "nextafter": Function(np.nextafter, "nextafter", 2),
    **{name: Function(None, name, operands, of_scipy=True) for name, operands in OF_SCIPY.items()},
}

CALLS = ("c1", "c2", "scipy1", "scipy2")
"""Instructions that call one of :data:`FUNCTIONS`, whose number follows the operands."""

ROWS: dict[str, tuple[str, int]] = {
    f"{name}{'' if n == 1 else n}": (name, n) for name in ("load", "store") for n in (1, 2, 3, 4)
}
"""Loads and stores of one to four contiguous numbers: the kind, and how many numbers."""

MATRICES = ("product", "factor", "solved", "inverse")
OTHERS = (
    "dot", *OF_ROWS, "pick", *MATRICES, "gather", *ROWS,
    "again", "unless", "index", "require", "outside",
)  # fmt: skip
"""The remaining instructions.

Vectors:

- ``dot``: the dot product of two vectors.
- ``softmax``, ``log_softmax``, ``argsort``: see :data:`OF_ROWS`.
- ``pick``: the elements of the vector at ``a`` whose ``n`` indices, integers, start at ``b``.
- ``gather``: copies from the ``n`` cells that the words after the instruction list.

Matrices, by BLAS: ``product`` multiplies the matrix of ``n`` rows and ``c`` columns at ``a`` by the one of ``c`` rows
and ``sc`` columns at ``b``. ``sa`` and ``sb`` are their row strides; if columns are contiguous instead of rows, minus
the column stride.

Matrices, by LAPACK; they have ``n`` rows and are column-major:

- ``factor``: factors the matrix at ``result`` in place, with row exchanges at ``a``, 0 at ``b`` if it is singular, and
  the sign of the permutation at ``c``.
- ``inverse``: inverts the factored matrix at ``result`` in place, with row exchanges at ``a`` and scratch space for
  ``n`` numbers at ``b``.
- ``solved``: solves for the ``c`` right-hand sides at ``result`` in place, with the factor at ``a`` and row exchanges
  at ``b``; ``sa`` is 1 for the transposed system.

Computed indices:

- ``load``: copies from cell ``a + i * c`` to ``result``, where ``i`` is the integer at ``b``; as a vector instruction
  ``n`` numbers, with ``sa`` instead of ``c``.
- ``store``: copies from ``a`` to ``result + i * c``, otherwise as ``load``.
- ``index``: makes the integer at ``a`` a nonnegative index into an axis (number ``c``) of size ``b``; execution ends if
  it is out of bounds.

Control flow:

- ``again``: if the integer at ``result`` is not ``c``, adds ``b`` to it and jumps back ``a`` words.
- ``unless``: jumps forward ``a`` words if the number at ``result`` is 0.
- ``require``: ends execution if the number at ``result`` is 0; the reference executor then repeats the run.
- ``outside``: suspends execution while Python calls the NumPy kernel number ``result``.
"""

WAITING = 1 << 29
"""Bit of the machine's result that requests a NumPy kernel; its number starts at bit 8, exceptions are below."""

FAILED = 1 << 30
"""The machine's result if it ended early: the reference executor must repeat the run."""

NUMBERS: dict[str, int] = {name: i for i, name in enumerate((*OPERATIONS, *CALLS, *REDUCTIONS, *OTHERS))}
"""The opcode of each instruction."""

_N = "int *"
_D = "d *"
ROUTINES: dict[str, str] = {
    "dgemm": f"char *, char *, {_N}, {_N}, {_N}, {_D}, {_D}, {_N}, {_D}, {_N}, {_D}, {_D}, {_N}",
    "dgetrf": f"{_N}, {_N}, {_D}, {_N}, {_N}, {_N}",
    "dgetrs": f"char *, {_N}, {_N}, {_D}, {_N}, {_N}, {_D}, {_N}, {_N}",
    "dgetri": f"{_N}, {_D}, {_N}, {_N}, {_D}, {_N}, {_N}",
}
"""Functions of BLAS and LAPACK, with the C types of their arguments, where ``d`` is ``double``."""

ROUTINE_NUMBERS: dict[str, int] = {name: i for i, name in enumerate(ROUTINES, 2)}
FUNCTION_NUMBERS: dict[str, int] = {name: i for i, name in enumerate(FUNCTIONS, 2 + len(ROUTINES))}
"""The numbers of :data:`ROUTINES` and :data:`FUNCTIONS` in the machine's table of functions.

Entries 0 and 1 are ``feclearexcept`` and ``fetestexcept``. C knows the first entries (``runtime/functions.h``).
"""

VECTOR_FUNCTIONS = 2 + len(ROUTINES) + len(FUNCTIONS)
"""The number of opcode 0's vector instruction in the machine's table of functions; the others follow."""

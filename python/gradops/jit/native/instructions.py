"""The native machine's instruction set: opcodes, operands and NumPy equivalents.

:mod:`.code` emits these instructions, and ``runtime/interpreter.c`` executes them. ``runtime/operations.h`` lists what
they compute, in the order of the opcodes; :func:`.machine.meaning` returns it as LLVM IR for compiled loops.

The machine's memory is a flat array of 8-byte cells. A float32 value is stored as the equal float64, a boolean as 0.0
or 1.0, and an integer as the bits of an int64. An instruction has five 32-bit words, ``(opcode, result, a, b, c)``, of
which the last four are usually cells. A vector instruction has four more, ``(n, stride of a, stride of b, stride of
c)``, and its results are contiguous.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# Instructions on integers, which memory holds as the bits of an int64. For int32 the same instructions are followed by
# `narrow`, which wraps the result to 32 bits as NumPy does.

WHOLES = (np.dtype("int64"), np.dtype("int32"))

_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_CONVERSIONS = ("narrow", "float64_of_whole", "float32_of_whole", "int64_of_float", "int32_of_float")
_OF_ONE = ("negative", "absolute", "sign", "bitwise_not")
_LIKE = """add subtract multiply negative absolute sign maximum minimum fmax fmin bitwise_and bitwise_or bitwise_xor
bitwise_not left_shift right_shift fmod floor_divide mod""".split()
_LIKE += _COMPARISONS
"""Instructions for floats that have an integer counterpart; divisors must not be 0 or -1, see the lowering rules."""

_UNCHANGED = ("floor", "ceil", "trunc", "rint", "copy", "where")
"""Instructions that leave integers unchanged, or work on any 8 bytes."""


def integer_instruction(name: str) -> str | None:
    """Return the integer counterpart of an instruction for floats, or None if integers lack it."""
    if name in _LIKE:
        return f"whole_{name}"
    return name if name in ("copy", "where") else "copy" if name in _UNCHANGED else None


# All instructions.

VECTOR = 256
"""Added to an opcode, it makes the instruction one on vectors."""

END = 255
"""The word after the last instruction."""

SHORT, LONG = 5, 9
"""The number of words of an instruction on numbers, and of a vector instruction."""


class Operation(NamedTuple):
    """An elementwise instruction.

    Attributes:
        meaning: the equivalent NumPy function, or None; an op with this kernel becomes this instruction.
        operands: the number of operands.
        calls: True if it calls a function of ``runtime/numbers.c``.
    """

    meaning: Callable | None
    operands: int = 2
    calls: bool = False


OF_TWO: dict[str, Callable] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
}


def _fused(first: str, second: str, is_left: bool) -> Operation:
    """Return an instruction for an operation whose result is an operand of another; both results are rounded.

    Args:
        is_left: True if the first result is the left operand of the second operation.
    """
    of_two, of_result = OF_TWO[first], OF_TWO[second]
    return Operation(lambda x, y, z: of_result(of_two(x, y), z) if is_left else of_result(z, of_two(x, y)), 3)


FUSED: dict[str, Operation] = {
    f"{first}_{second}_{'left' if is_left else 'right'}": _fused(first, second, is_left)
    for first in OF_TWO
    for second in OF_TWO
    for is_left in (True, False)
    if is_left or second in ("subtract", "divide")
}
"""Pairs of operations as one instruction, used if only the second operation reads the first one's result."""

SIDE_BY_SIDE = ("add", "subtract", "multiply", "divide", "negative", "copy", "absolute", "sqrt")
"""Operations with extra loops for contiguous operands, compiled with the interpreter."""

OPERATIONS: dict[str, Operation] = {
    "add": Operation(np.add),
    "subtract": Operation(np.subtract),
    "multiply": Operation(np.multiply),
    "divide": Operation(np.divide),
    "negative": Operation(np.negative, 1),
    "copy": Operation(np.positive, 1),
    "absolute": Operation(np.absolute, 1),
    "sqrt": Operation(np.sqrt, 1),
    "single": Operation(lambda x: np.float64(np.float32(x)), 1),
    **{name: Operation(getattr(np, name), 1) for name in ("floor", "ceil", "trunc", "rint", "sign")},
    **{name: Operation(getattr(np, name)) for name in ("maximum", "minimum", "fmax", "fmin")},
    **{name: Operation(getattr(np, name), calls=True) for name in ("mod", "floor_divide")},
    "signbit": Operation(np.signbit, 1),
    **{name: Operation(getattr(np, name)) for name in _COMPARISONS},
    **{f"logical_{name}": Operation(getattr(np, f"logical_{name}")) for name in ("and", "or", "xor")},
    "logical_not": Operation(np.logical_not, 1),
    **{name: Operation(getattr(np, name), 1) for name in ("isnan", "isinf", "isfinite")},
    "where": Operation(np.where, 3),
    "logaddexp": Operation(np.logaddexp, calls=True),
    **FUSED,
    **{f"whole_{name}": Operation(None, 1 if name in _OF_ONE else 2) for name in _LIKE},
    **dict.fromkeys(_CONVERSIONS, Operation(None, 1)),
}
"""Elementwise instructions, named like NumPy's ufuncs; ``single`` rounds a result to float32 in place."""

REDUCTIONS = ("prod", "max", "min", "sum", "logsumexp", "argmax", "argmin", "whole_argmax", "whole_argmin")
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
    **{name: _libm(name) for name in ("exp", "log", "log1p")},
    "fmod": Function(np.fmod, "fmod", 2),
    **{name: _libm(name) for name in "exp2 expm1 log2 log10 sin cos tan sinh cosh tanh cbrt".split()},
    **{f"arc{name}": Function(getattr(np, f"arc{name}"), f"a{name}") for name in "sin cos tan sinh cosh tanh".split()},
    "power": Function(np.power, "pow", 2),
    "arctan2": Function(np.arctan2, "atan2", 2),
    "hypot": Function(np.hypot, "hypot", 2),
    "nextafter": Function(np.nextafter, "nextafter", 2),
    **{name: Function(None, name, operands, of_scipy=True) for name, operands in OF_SCIPY.items()},
}

FUNCTIONS_USED = ("exp", "log", "log1p", "fmod")
"""The first of :data:`FUNCTIONS`, which C also calls by name (``runtime/functions.h``)."""

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

VECTOR_FUNCTIONS = 3
"""The number of opcode 0's vector instruction in the machine's table of functions; the others follow.

Entries 0 and 1 are ``feclearexcept`` and ``fetestexcept``, and entry 2 is the mask of the floating-point exceptions
that NumPy warns about (``runtime/functions.h``).
"""

ROUTINE_NUMBERS: dict[str, int] = {name: i for i, name in enumerate(ROUTINES, VECTOR_FUNCTIONS + VECTOR)}
FUNCTION_NUMBERS: dict[str, int] = {
    name: i for i, name in enumerate(FUNCTIONS, VECTOR_FUNCTIONS + VECTOR + len(ROUTINES))
}
"""The numbers of :data:`ROUTINES` and :data:`FUNCTIONS` in the machine's table of functions."""

"""Group steps on large arrays, so that each group is one pass over tiles that stay in the cache.

:func:`tiled` takes a program's steps and replaces each group by one step, whose function is a :class:`.tile_run.Tiles`.
The package's own :func:`lowered` calls it before small steps are lowered.

A group has a domain: a number of rows, and of elements in a row, which is one unless a step needs rows. An array of the
group is ``FULL``, a number for each row (``COLUMN``), one row (``ROW``), or a single number (``ONE``). Elementwise
steps on these become instructions, and so do reductions: to a number for each row, or to a part of the result for each
tile. Intermediate values that only the group reads never become arrays.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ... import _scipy, backends
from ...backends.numpy.base import function_of
from ...ops._dispatch import facts_of
from ...ops._registry import rule, rule_of
from ..array import Place
from ..program import Program
from ..reference import Reference
from ..steps import Step
from ..table import Rows, joined
from . import machine as machines
from . import tile_compiler, tile_run
from .code import BOOL, FLOATS
from .plan import LARGEST, LARGEST_CALL, Plan, joined_arrays
from .registry import known_of
from .tile_plan import (
    COLUMN,
    FULL,
    FUNCTIONS,
    IDENTITIES,
    ONE,
    OPERANDS,
    POWERS,
    PRODUCT,
    PRODUCTS,
    ROW,
    TILE,
    WAVES,
    Domain,
    Inner,
    Instruction,
    Operand,
    Work,
    Writing,
)
from .tile_run import PARALLEL, Loop, Tiles

FEWEST = 2
"""The fewest instructions of a group. A single one pays only if its loop beats NumPy's, or threads share it."""

NATIVE = "native"
"""The name of a group's step."""

_FUNCTIONS = {getattr(np, name): name for name in (*FUNCTIONS, *WAVES)}
"""Functions for which the machine has a vectorized loop, where NumPy's may compute one element at a time."""


class Factors(NamedTuple):
    """The factors of a product of a matrix, or of its transpose, with a vector."""

    matrix: Place
    is_turned: bool
    vector: Place


def tiled(program: Program, steps: list, wanted: set[int], machine: machines.Machine) -> list:
    """Replace groups of steps on large arrays by one step each.

    Args:
        program: the recorded program.
        steps: its steps; blocks of rows are on single numbers, and stay.
        wanted: the slots whose values the caller reads.
        machine: the machine that executes the groups.
    """
    arrays = [(place, value) for place, value in program.values.others.items() if isinstance(value, np.ndarray)]
    large = {place for place, value in arrays if value.size > LARGEST_CALL}
    if not large or not tile_run.are_known() or all(isinstance(s, Rows) or large.isdisjoint(s.places) for s in steps):
        return steps
    grouping = _Grouping(program, steps, wanted, machine, large)
    return grouping.steps() if grouping.domains else steps


class _Grouping:
    """Finds groups in a program's steps.

    Args:
        program, steps, wanted, machine: as in :func:`tiled`.
        large: the slots of large arrays.
    """

    def __init__(self, program: Program, steps: list, wanted: set[int], machine: machines.Machine, large: set[int]):
        self.program, self.given, self.wanted, self.machine = program, steps, wanted, machine
        self.joined = joined_arrays(program, steps)
        self.alias: dict[int, int] = {}
        """For each slot that is a view, the slot that it is a view of."""
        self.local: dict[int, tuple[Domain, str]] = {}
        """The domain and kind of each slot that a group computes."""
        self.turned: dict[int, Place] = {
            step.places[0]: step.arguments[0]
            for step in steps
            if (turned := rule_of("turned", step.name)) is not None and turned(self, step)
        }
        """For each slot that is a transpose, the matrix that it transposes."""
        self.upright: list[Place] = []
        self.domains = self._domains(large)

    @rule("turned", "transpose", "swapaxes", "moveaxis")
    def _is_transpose(self, step: Step) -> bool:
        source = step.arguments[0]
        if not isinstance(source, Place) or len(self.shape(source)) != 2:
            return False
        # A permutation of two axes may be the identity or the transpose, depending on its arguments; the strides tell.
        x = np.empty(self.shape(source))
        return step.function(x, *step.arguments[1:]).strides == x.T.strides

    # Domains.

    def _domains(self, large: set[int]) -> dict[int, Domain]:
        """Return the domain for arrays of each size."""
        plan = Plan(self.program, [step.uses for step in self.given])
        found: dict[int, Domain] = {}
        for step in self.given:
            if isinstance(step, Rows) or step.several or large.isdisjoint(step.places) and large.isdisjoint(step.uses):
                continue
            if self._reaches_joined(step):
                continue
            size = max(map(self.size, (*step.places, *[x for x in step.arguments if x.__class__ is Place])))
            if size > LARGEST or size > LARGEST_CALL and plan.why_not(step, step.uses) is not None:
                found.setdefault(size, Domain(size, 1))
                rows = self._rows(step, size)
                if rows and found[size].width == 1:
                    found[size] = Domain(rows, size // rows)
        return found

    def _rows(self, step: Step, size: int) -> int | None:
        """Return the number of rows that a step needs in its domain; None if it does not need rows."""
        value, own = self.program.value(step.places[0]), rule_of("tiles", step.name)
        if own in (_Grouping._reduction, _Grouping._softmax) and isinstance(step.arguments[0], Place):
            shape = self.shape(step.arguments[0])
            for k in range(1, len(shape)):
                axes = _axes(step, len(shape))
                if axes in (tuple(range(k)), tuple(range(k, len(shape)))):
                    return self._tileable_rows(math.prod(shape[:k]), size)
            return None
        if step.name in PRODUCTS:
            factors = self._factors(step)
            return factors and self._tileable_rows(self.shape(factors.matrix)[0], size)
        if np.size(value) != size:
            return None
        for x in step.arguments:
            shape = np.shape(self.example(x)) if isinstance(x, Place) else ()
            if 1 < math.prod(shape) < size:
                shape = _aligned(shape, value.shape)
                for k in range(1, len(shape)):
                    ones = math.prod(shape[:k]) == 1, math.prod(shape[k:]) == 1
                    if ones[0] and shape[k:] == value.shape[k:] or ones[1] and shape[:k] == value.shape[:k]:
                        return self._tileable_rows(math.prod(value.shape[:k]), size)
        return None

    def _tileable_rows(self, rows: int, size: int) -> int | None:
        """Return ``rows`` if a row fits into a few tiles and there are several rows, else None."""
        return rows if 1 < size // rows <= 4 * TILE and rows > 1 else None

    # Facts.

    def example(self, x):
        return self.program.value(x) if isinstance(x, Place) else x

    def shape(self, x) -> tuple[int, ...]:
        value = self.example(x)
        return value.shape if value.__class__ is np.ndarray else np.shape(value)

    def size(self, place: int) -> int:
        value = self.program.value(place)
        return value.size if value.__class__ is np.ndarray else np.size(value)

    def root(self, place: int) -> int:
        while place in self.alias:
            place = self.alias[place]
        return place

    def kind(self, own: tuple[int, ...], shape: tuple[int, ...], domain: Domain) -> str | None:
        """Return the kind of an operand in a domain, or None if it does not broadcast to the domain.

        Args:
            own: the shape of the operand.
            shape: the shape of the operation's result.
            domain: the domain.
        """
        size = math.prod(own)
        if size == 1:
            return ONE
        if own == shape or size == math.prod(shape) and _squeezed(own) == _squeezed(shape):
            found = FULL if size == domain.rows * domain.width else COLUMN
        else:
            own, found = _aligned(own, shape), None
            for k in range(1, len(shape)):
                if math.prod(shape[:k]) == domain.rows and math.prod(shape[k:]) == domain.width:
                    if own[:k] == shape[:k] and math.prod(own[k:]) == 1:
                        found = COLUMN
                    elif own[k:] == shape[k:] and math.prod(own[:k]) == 1:
                        found = ROW
        return found

    def source_kind(self, x: int, kind: str | None, domain: Domain) -> str | None:
        """Return the kind of the array that ``x`` is a view of, given the kind of ``x``; None if it has no kind."""
        while x in self.alias:
            source = self.alias[x]
            if self.size(source) != self.size(x):  # by broadcast_to()
                kind = self.kind(self.shape(Place(source)), self.shape(Place(x)), domain) if kind == FULL else None
            x = source
        return kind

    def operand(self, x, shape: tuple[int, ...], domain: Domain, dtype: np.dtype) -> Operand | None:
        """Return an argument as an operand of an operation with a result of ``shape``; None if that is impossible."""
        value = self.example(x)
        kind = self.kind(np.shape(value), shape, domain)
        if kind is None:
            return None
        if value is x:
            return Operand.number(x, dtype)
        root = Place(self.root(x))
        if root in self.folded:
            return Operand.number(self.folded[root], dtype)
        if kind != ONE:
            kind = self.source_kind(x, kind, domain) if value.dtype == dtype else None
            if kind is None:
                return None
        return Operand(root, kind, dtype)

    @functools.cached_property
    def folded(self) -> dict[int, Any]:
        """For each constant array whose elements are all equal, such as the initial gradient, that element."""
        same = {p: self.program.constants[p] for p in self.program.folded}
        known = {p: x for p, x in same.items() if np.ndim(x) and np.size(x) and x.dtype in FLOATS}
        return {p: x.flat[0] for p, x in known.items() if x.tobytes() == x.flat[0].tobytes() * x.size}

    def _constant(self, place: int) -> Any:
        """Return a constant for NumPy's steps; an array of equal elements is a view of one number."""
        x = self.program.constants[place]
        if place not in self.folded:
            return x
        return np.ndarray(x.shape, x.dtype, self.folded[place], strides=(0,) * x.ndim)

    def _reaches_joined(self, step: Step) -> bool:
        """True if a step reads or makes an array of :func:`.plan.joined_arrays`."""
        return bool(self.joined) and not self.joined.isdisjoint((*step.places, *step.uses))

    # Steps as instructions.

    def work(self, step) -> Work | None:
        """Return a step as instructions of a group; None if it cannot be part of a group."""
        if isinstance(step, Rows) or step.several or self._reaches_joined(step):
            return None
        value = self.program.value(step.places[0])
        if not isinstance(value, (np.ndarray, np.generic)) or value.dtype not in (*FLOATS, BOOL):
            return None
        own = rule_of("tiles", step.name)
        if own is not None:
            return own(self, step, value)
        domain = self._domain(value, step)
        if domain is None:
            return None
        operation = _operation(self, step)
        if operation is None:
            return None
        over = FULL if value.size == domain.rows * domain.width else COLUMN
        instructions: list[Instruction] = []
        for name, arguments, out in operation:
            made = self._instruction(name, arguments, out, value, domain, over)
            if made is None:
                return None
            instructions.append(made)
        return Work(domain, instructions, instructions[-1].operands[-1])

    def _domain(self, value, step: Step) -> Domain | None:
        size = np.size(value)
        for x in step.arguments:  # a number for each row, in a group whose arrays are larger
            made = self.local.get(self.root(x)) if isinstance(x, Place) else None
            if made and made[1] == COLUMN and made[0].width > 1 and made[0].rows == size:
                return made[0]
        return self.product_domains.get(size) or self.domains.get(size)

    @functools.cached_property
    def product_domains(self) -> dict[int, Domain]:
        """The domains of matrix-vector products by their number of rows, which steps on the vectors join."""
        found = {}
        for step in self.given:
            if not isinstance(step, Rows) and step.name in PRODUCTS:
                work = self._product(step, self.program.value(step.places[0]))
                if work is not None:
                    found[work.domain.rows] = work.domain
        return found

    def _instruction(self, ufunc, arguments, out, value, domain: Domain, over: str) -> Instruction | None:
        """Return the instruction of a ufunc, of ``np.where``, or of an integer power; None if it is unsupported."""
        given = [x.dtype if isinstance(x, Inner) else _dtype_of(self.example(x)) for x in arguments]
        if ufunc is np.where:
            dtypes: tuple[Any, ...] = (BOOL, value.dtype, value.dtype, value.dtype)
            if given[0] not in (BOOL, bool) or value.dtype not in FLOATS:
                return None
            loop = self._machine_loop(f"where{value.dtype.itemsize}", "where" if value.dtype == FLOATS[0] else "")
        elif isinstance(ufunc, int):
            dtypes, loop = (FLOATS[0], FLOATS[0]), self._machine_loop(f"power{ufunc}_tile", f"power{ufunc}")
        else:
            try:
                dtypes = ufunc.resolve_dtypes((*given, None))
            except TypeError:
                return None
            if any(d not in (*FLOATS, BOOL) for d in dtypes):
                return None
            found = self._loop(ufunc, *dtypes)
            if found is None:
                return None
            loop = found
        operands = []
        for x, dtype in zip(arguments, dtypes):
            if isinstance(x, Inner):
                operand = Operand(x, over, dtype) if x.dtype == dtype else None
            else:
                operand = self.operand(x, value.shape, domain, dtype)
            if operand is None:
                return None
            operands.append(operand)
        if isinstance(out, Inner):
            out.dtype = dtypes[-1]
        elif dtypes[-1] != value.dtype:
            return None
        return Instruction(loop, (*operands, Operand(out, over, dtypes[-1])), over)

    def _machine_loop(self, title: str, name: str = "", data: int = 0) -> Loop:
        """Return a loop of ``runtime/tile_loops.c``."""
        return Loop(self.machine.address(title), data, name)

    def _loop(self, ufunc: np.ufunc, *dtypes) -> Loop | None:
        """Return the machine's loop for a ufunc if there is one, else NumPy's.

        The machine's sine and cosine call NumPy's loop for large elements.
        """
        found, name = tile_run.loop(ufunc, *dtypes), _FUNCTIONS.get(ufunc)
        if found is None or name is None or dtypes[0] != FLOATS[0] or not machines.has_fused():
            return found
        if name in FUNCTIONS:
            return self._machine_loop(f"{name}_tile", name)
        return found if found.data else self._machine_loop(f"{name}_tile", data=found.address)

    @rule("tiles", "reshape", "expand_dims", "squeeze", "ravel", "broadcast_to", "real", "conj")
    def _alias(self, step: Step, value) -> None:
        """Return None: the result is a view of the operand, so there is nothing to compute."""

    @rule("tiles", "sum", "mean", "max", "min")
    def _reduction(self, step: Step, value) -> Work | None:
        x, *rest = step.arguments
        if not isinstance(x, Place) or any(r is not None for r in rest[2:]):
            return None
        shape = self.shape(x)
        size = math.prod(shape)
        domain = self._domain(self.example(x), step)
        if domain is None or value.dtype not in FLOATS or self.example(x).dtype != value.dtype:
            return None
        ufunc, axes = getattr(np, facts_of(step.name).folds or "add"), _axes(step, len(shape))
        of_columns = size != domain.rows * domain.width
        kind = None
        if len(axes) == len(shape):
            kind = ONE
        elif not of_columns:
            for k in range(1, len(shape)):
                if math.prod(shape[:k]) == domain.rows and domain.width > 1:
                    kind = {tuple(range(k)): ROW, tuple(range(k, len(shape))): COLUMN}.get(axes, kind)
        if kind is None:
            return None
        operand = self.operand(x, shape, domain, value.dtype)
        add, copy = self._reduction_loop(ufunc, value.dtype), tile_run.loop(np.positive, value.dtype, value.dtype)
        if operand is None or add is None or copy is None:
            return None
        out = Operand(step.places[0], kind, value.dtype)
        divisor = float(size / max(np.size(value), 1)) if step.name == "mean" else 1.0
        # A sum over rows is a product with a vector of ones, which computes 32 columns at a time. Products with 1 are
        # exact, so only the order differs from NumPy's sum: tiles have partial sums, and the last columns four.
        if (
            kind == ROW
            and operand.kind == FULL
            and ufunc is np.add
            and value.dtype == FLOATS[0]
            and machines.has_fused()
        ):
            ones = Operand(Inner(), COLUMN, value.dtype)
            fill = Instruction(copy, (Operand.number(1.0, value.dtype), ones), COLUMN)
            product = Instruction(self._machine_loop("vecmat_tile"), (operand, ones, out), PRODUCT)
            return Work(domain, [fill, product], out, ufunc, divisor)
        is_divided = kind == COLUMN and divisor != 1.0
        total = Operand(Inner(), COLUMN, value.dtype) if is_divided else out
        initial = copy, IDENTITIES[ufunc]
        instructions = [Instruction(add, (total, operand, total), COLUMN if of_columns else FULL, initial)]
        if kind != COLUMN:
            return Work(domain, instructions, out, ufunc, divisor)
        if is_divided:
            divide = tile_run.loop(np.divide, *[value.dtype] * 3)
            if divide is None:
                return None
            instructions.append(Instruction(divide, (total, Operand.number(divisor, value.dtype), out), COLUMN))
        return Work(domain, instructions, out)

    def _factors(self, step: Step) -> Factors | None:
        """Return the factors of a matrix-vector product; None if the step is another product."""
        first, second = step.arguments
        if not isinstance(first, Place) or not isinstance(second, Place):
            return None
        a, b = self.shape(first), self.shape(second)
        if len(a) == 1 and len(b) == 2:
            found = Factors(second, True, first)
        elif len(a) == 2 and (len(b) == 1 or len(b) == 2 and b[1] == 1):
            source = self._transposed(first)
            found = Factors(first, False, second) if source is None else Factors(source, True, second)
        else:
            return None
        return found if self.example(found.matrix).flags.c_contiguous else None

    def _transposed(self, matrix: Place) -> Place | None:
        """Return the matrix whose transpose this one is, or None; constants are compared by their values."""
        if matrix in self.program.constants and matrix not in self.turned and matrix not in self.upright:
            value = self.example(matrix)
            for place in self.upright:
                x = self.program.value(place)
                if x.shape == value.shape[::-1] and x.dtype == value.dtype and np.array_equal(x.T, value):
                    self.turned[matrix] = place
                    break
            else:
                self.upright.append(matrix)
        return self.turned.get(matrix)

    @rule("tiles", "matmul", "dot")
    def _product(self, step: Step, value) -> Work | None:
        """Return a matrix-vector product: a number for each row or, for the transpose, a sum over rows."""
        factors = self._factors(step)
        if factors is None or value.dtype not in FLOATS:
            return None
        matrix, is_turned, vector = factors
        domain = self.domains.get(self.size(matrix))
        if domain != self.shape(matrix) or any(self.example(x).dtype != value.dtype for x in (matrix, vector)):
            return None
        if self.source_kind(matrix, FULL, domain) != FULL:  # a broadcast view, whose elements are not all in memory
            return None
        loop, copy = (tile_run.loop(f, *[value.dtype] * (f.nin + 1)) for f in (np.matmul, np.positive))
        if loop is None or copy is None:
            return None
        if value.dtype == FLOATS[0] and machines.has_fused():
            loop = self._machine_loop("vecmat_tile" if is_turned else "matvec_tile")
        kind = self.source_kind(vector, COLUMN if is_turned else ROW, domain)
        source = Place(self.root(vector))
        instructions: list[Instruction] = []
        if source in self.folded or self.size(source) == 1:
            if not is_turned:
                return None
            known = self.folded.get(source)
            one = Operand(source, ONE, value.dtype) if known is None else Operand.number(known, value.dtype)
            operand = Operand(Inner(), COLUMN, value.dtype)
            instructions.append(Instruction(copy, (one, operand), COLUMN))
        elif kind is None or self.size(source) != self.size(vector):
            return None
        else:
            operand = Operand(source, kind, value.dtype)
        out = Operand(Place(step.places[0]), ROW if is_turned else COLUMN, value.dtype)
        of_all = Operand(Place(self.root(matrix)), FULL, value.dtype)
        instructions.append(Instruction(loop, (of_all, operand, out), PRODUCT))
        return Work(domain, instructions, out, np.add if is_turned else None)

    def _reduction_loop(self, ufunc: np.ufunc, dtype: np.dtype) -> Loop | None:
        """Return the loop of a reduction, the machine's own for sums of float64."""
        found = tile_run.loop(ufunc, dtype, dtype, dtype)
        if found and ufunc is np.add and dtype == FLOATS[0]:
            return self._machine_loop("sum_tile", "add", found.address)
        return found

    @rule("tiles", "softmax", "log_softmax", "logsumexp")
    def _softmax(self, step: Step, value) -> Work | None:
        """Return ``softmax``, ``log_softmax`` or ``logsumexp`` along rows as instructions."""
        x, domain = step.arguments[0], self._domain(self.example(step.arguments[0]), step)
        shape, dtype = self.shape(x), value.dtype
        if domain is None or dtype not in FLOATS or math.prod(shape) != domain.rows * domain.width:
            return None
        ndim, axes = len(shape), _axes(step, len(shape))
        k = ndim - len(axes)
        if axes != tuple(range(k, ndim)) or math.prod(shape[:k]) != domain.rows or domain.width == 1:
            return None
        operand = self.operand(x, shape, domain, dtype)
        if operand is None:
            return None
        instructions: list[Instruction] = []

        def call(ufunc, *operands: Operand, kind: str = FULL, out: Operand | None = None) -> Operand:
            product_domains = all(o.kind in (COLUMN, ONE) for o in operands)
            found = self._loop(ufunc, *[dtype] * (len(operands) + 1))
            out = out or Operand(Inner(), kind, dtype)
            assert found is not None
            instructions.append(Instruction(found, (*operands, out), COLUMN if product_domains else FULL))
            return out

        def reduce_rows(ufunc, x: Operand) -> Operand:
            out = Operand(Inner(), COLUMN, dtype)
            add, copy = self._reduction_loop(ufunc, dtype), tile_run.loop(np.positive, dtype, dtype)
            assert add is not None and copy is not None
            instructions.append(Instruction(add, (out, x, out), FULL, (copy, IDENTITIES[ufunc])))
            return out

        top = reduce_rows(np.maximum, operand)
        less = call(np.subtract, operand, top)
        powers = call(np.exp, less)
        total = reduce_rows(np.add, powers)
        result = Operand(Place(step.places[0]), COLUMN if step.name == "logsumexp" else FULL, dtype)
        if step.name == "softmax":
            call(np.divide, powers, total, out=result)
        elif step.name == "log_softmax":
            call(np.subtract, less, call(np.log, total, kind=COLUMN), out=result)
        else:  # `fmax` selects the maximum where it is infinite and the sum is NaN
            found = call(np.add, call(np.log, total, kind=COLUMN), top, kind=COLUMN)
            call(np.fmax, found, top, out=result)
        return Work(domain, instructions, result)

    # Groups.

    def steps(self) -> list:
        """Return all steps, reordered, with each group as one step."""
        # A group runs as one call, so nothing that it reads may be computed from its own results. Each step has a level
        # and reads only values of its level or below; a group consists of the steps of one level and domain. Within a
        # level, groups come first, then NumPy calls, which may read the groups' results. A step of a group that reads
        # the result of another group or of a NumPy call of this level moves one level up; values within the group's own
        # tiles do not count. A result that is combined from the tiles' parts is not within a tile: it is complete only
        # after all tiles.
        works: list[Work | None] = []
        level: dict[int, int] = {}
        maker: dict[int, Domain | None] = {}  # the domain of each value within a group's tiles
        levels = []
        for step in self.given:
            work = self.work(step)
            works.append(work)
            at = 0
            factors = self._factors(step) if work is not None and step.name in PRODUCTS else None
            for place in step.uses:
                if factors is not None and place != factors.vector:  # only the matrix is read through its transpose
                    place = self.turned.get(place, place)
                if place in level:
                    within = work is not None and self._is_within_tile(work, maker, self.root(place))
                    at = max(at, level[place] + (work is not None and not within))
            levels.append(at)
            for place in step.places:
                level[place] = at
            if work is not None:
                if work.part is None:
                    maker[step.places[0]] = work.domain
                    self.local[step.places[0]] = work.domain, work.result.kind
            elif not isinstance(step, Rows) and self._is_alias(step) and step.places[0] not in self.program.inputs:
                self.alias[step.places[0]] = step.arguments[0]
        return self._ordered(works, levels)

    def _is_alias(self, step: Step) -> bool:
        """Return True if the result has the bytes of its operand; ``real`` and ``conj`` of complex arrays do not."""
        operand = step.arguments[0]
        if rule_of("tiles", step.name) is not _Grouping._alias or not isinstance(operand, Place):
            return False
        dtypes = [_dtype_of(self.program.value(x)) for x in (step.places[0], operand)]
        return dtypes[0] == dtypes[1] and (step.name not in ("real", "conj") or dtypes[0].kind != "c")

    def _is_within_tile(self, work: Work, maker: dict[int, Domain | None], place: int) -> bool:
        """Return True if a step reads a value of its domain with the kind it has there, so only within the tile.

        For a square matrix, a number for each row may also be read as a row; each tile then needs all of its elements.
        """
        if maker.get(place) != work.domain:
            return False
        operands = [x for instruction in work.instructions for x in instruction.operands[:-1] if x.value == place]
        return all(x.kind == self.local[place][1] for x in operands)

    def _ordered(self, works: list[Work | None], levels: list[int]) -> list:
        groups: dict[tuple[int, Domain], list[int]] = {}
        for i, work in enumerate(works):
            if work is not None:
                groups.setdefault((levels[i], work.domain), []).append(i)
        groups = {key: members for key, members in groups.items() if self._is_worth(works, members)}
        within = {i for members in groups.values() for i in members}
        needed = self._needed(groups, works, within)
        found: list[list] = [[] for _ in range(max(levels, default=0) + 1)]
        for (at, domain), members in groups.items():
            found[at].append(self._group(domain, members, works, needed))
        for i, step in enumerate(self.given):
            if i not in within and not self._is_idle(step, needed):
                found[levels[i]].append(step)
        return list(itertools.chain.from_iterable(found))

    def _is_worth(self, works, members: list[int]) -> bool:
        """Return True if a group is faster than NumPy calls."""
        if sum(len(works[i].instructions) for i in members) >= FEWEST:
            return True
        return any(self.given[i].function in _FUNCTIONS or works[i].domain.rows >= PARALLEL for i in members)

    def _is_idle(self, step, needed: set[int]) -> bool:
        return not isinstance(step, Rows) and self._source(step) is not None and step.places[0] not in needed

    def _source(self, step: Step) -> int | None:
        """Return the slot that a step's result is a view or the transpose of, or None."""
        return self.alias.get(step.places[0], self.turned.get(step.places[0]))

    @functools.cached_property
    def views(self) -> dict[int, int]:
        """For each slot that is a view, the number of its step; complete only after all steps have a level."""
        of_arrays = [(i, step) for i, step in enumerate(self.given) if not isinstance(step, Rows)]
        return {step.places[0]: i for i, step in of_arrays if self._source(step) is not None}

    def _needed(self, groups, works, within: set[int]) -> set[int]:
        """Return the slots that must be arrays, because their readers include others than their group."""
        # Operands of NumPy calls must be arrays, and a view needs the array that it is a view of. The steps are visited
        # from the last to the first, as a view that is not needed itself needs nothing.
        needed = set(self.wanted)
        group_of = {self.given[i].places[0]: key for key, members in groups.items() for i in members}
        for key, members in groups.items():
            for i in members:
                for x in works[i].instructions:
                    for operand in x.operands[:-1]:
                        if isinstance(operand.value, Place) and group_of.get(operand.value) != key:
                            needed.add(operand.value)
        for i in range(len(self.given) - 1, -1, -1):
            step = self.given[i]
            if i not in within and not self._is_idle(step, needed):
                needed.update(step.uses)
        return needed

    def _group(self, domain: Domain, members: list[int], works: list, needed: set[int]) -> Step:
        steps = [self.given[i] for i in members]
        outputs = [step.places[0] for step in steps if step.places[0] in needed]
        done = [(step, works[i]) for step, i in zip(steps, members)]
        writing = Writing(self.program, domain, done, outputs, self._machine_loop("spread_tile", "copy"))
        plan, inputs, written = writing.plan()
        redone = self._numpy_steps(inputs, members)
        unread = {p for step in redone for p in step.uses if p in self.program.constants}.difference(inputs)
        constants = {p: self._constant(p) for p in unread}
        compiled = functools.partial(tile_compiler.compiled, plan, written, self.machine)
        reference = Reference(joined(redone[0].table, redone), inputs, list(map(Place, outputs)), constants)
        function = Tiles(self.machine, plan, reference, compiled)
        function.names = Counter(step.name for step in steps)
        return Step(NATIVE, function, tuple(map(Place, inputs)), tuple(outputs), True)

    def _numpy_steps(self, inputs: list[int], members: list[int]) -> list[Step]:
        """Return NumPy steps that compute the same as a group, including the views that they read."""
        found, known = set(members), {*inputs, *self.program.constants}
        read = [place for i in members for place in self.given[i].uses]
        while read:
            place = read.pop()
            i = self.views.get(place)
            if i is not None and i not in found and place not in known:
                found.add(i)
                read += self.given[i].uses
        return [self.given[i] for i in sorted(found)]


# Operations.


def _operation(grouping: _Grouping, step: Step) -> list[tuple[Any, tuple, Any]] | None:
    """Return an elementwise step as a list of functions, arguments and results; None if that is not possible.

    A function is a ufunc, ``np.where``, or an integer exponent.
    """
    out, arguments = step.places[0], step.arguments
    own = rule_of("ufuncs", step.name)  # for kernels of several ufuncs, or that are faster as others
    if own is not None:
        return own(grouping, out, *arguments)
    ufunc: Any = step.function
    if not isinstance(ufunc, np.ufunc):
        ufunc = function_of(backends.embedded().kernel(step.name))
    if isinstance(ufunc, str):
        ufunc = getattr(_scipy.special, ufunc, None)
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1 or ufunc.signature or known_of(step.name).limits:
        return None
    if len(arguments) != ufunc.nin or ufunc.nin >= OPERANDS:
        return None
    return [(ufunc, arguments, Place(out))]


@rule("ufuncs", "power")
def _power(grouping: _Grouping, out, x, exponent):
    known = grouping.program.constants.get(exponent) if isinstance(exponent, Place) else exponent
    if known is None or np.ndim(known):
        known = np.nan
    if known == 2:
        return [(np.multiply, (x, x), Place(out))]
    if known in POWERS and _dtype_of(grouping.example(x)) == FLOATS[0] and machines.has_fused():
        return [(int(known), (x,), Place(out))]
    return [(np.power, (x, exponent), Place(out))]


@rule("ufuncs", "softplus")
def _softplus(grouping: _Grouping, out, x):
    """Return ``logaddexp(x, 0)`` as several ufuncs; the loop of ``np.logaddexp`` is not vectorized."""
    size, less, small, rest, top = (Inner() for _ in range(5))
    return [
        (np.absolute, (x,), size),
        (np.negative, (size,), less),
        (np.exp, (less,), small),
        (np.log1p, (small,), rest),
        (np.maximum, (x, 0.0), top),
        (np.add, (top, rest), Place(out)),
    ]


@rule("ufuncs", "sigmoid")
def _sigmoid(grouping: _Grouping, out, x):
    less, power, total = Inner(), Inner(), Inner()
    return [
        (np.negative, (x,), less),
        (np.exp, (less,), power),
        (np.add, (1.0, power), total),
        (np.divide, (1.0, total), Place(out)),
    ]


@rule("ufuncs", "cast")
def _cast(grouping: _Grouping, out, x, dtype):
    if _dtype_of(grouping.example(x)) != BOOL or grouping.program.value(out).dtype not in FLOATS:
        return None
    return [(np.where, (x, 1.0, 0.0), Place(out))]


@rule("ufuncs", "where")
def _where(grouping: _Grouping, out, condition, x1=None, x2=None):
    return None if x1 is None or x2 is None else [(np.where, (condition, x1, x2), Place(out))]


@rule("ufuncs", "relu")
def _relu(grouping: _Grouping, out, x):
    return [(np.maximum, (x, 0.0), Place(out))]


def _dtype_of(value) -> Any:
    """Return the dtype of an array, or the type of a Python number, which adopts the dtype of other operands."""
    return value.dtype if isinstance(value, (np.ndarray, np.generic)) else type(value)


def _axes(step: Step, ndim: int) -> tuple[int, ...]:
    axis = step.arguments[1] if len(step.arguments) > 1 else None
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(a % ndim for a in (axis if isinstance(axis, (tuple, list)) else (axis,))))


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def _aligned(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (len(other) - len(shape)) + shape

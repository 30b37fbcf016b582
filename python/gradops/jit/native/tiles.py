"""Steps on large arrays that go together, as one pass over tiles that stay in the cache.

A group has a domain of so many rows of so many elements, one where nothing asks for rows. In it an array is
``FULL``, a number for each row (``COLUMN``), one row (``ROW``) or a number (``ONE``): steps that are elementwise
between these are instructions, and so are reductions, whose result is a number for each row of the tile, or a part for
each tile. What a group makes and only it reads never is an array.
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
from . import tile_compiler, tile_run, tile_source
from .code import BOOL, FLOATS
from .instructions import FUNCTIONS
from .plan import LARGEST, LARGEST_CALL, Plan
from .registry import known_of
from .tile_functions import POWERS
from .tile_plan import (
    COLUMN,
    FULL,
    IDENTITIES,
    ONE,
    PRODUCT,
    PRODUCTS,
    ROW,
    TILE,
    Domain,
    Inner,
    Instruction,
    Operand,
    Work,
    Writing,
)
from .tile_run import PARALLEL, Loop, Tiles

FEWEST = 2
"""Instructions of a group: one alone is no faster than NumPy's call, unless its loop is, or threads share it."""

NATIVE = "native"
"""The name of a group's step."""

_FUNCTIONS = {f.meaning: name for name, f in FUNCTIONS.items() if f.source}
"""Those that have loops of the machine's, which take several elements at once, where NumPy's may take one."""


class Factors(NamedTuple):
    """Of a product of a matrix, or of its transpose, and a vector."""

    matrix: Place
    is_turned: bool
    vector: Place


def tiled(program: Program, steps: list, wanted: set[int], machine: machines.Machine) -> list:
    """The steps, with groups of those on large arrays as one step each."""
    arrays = [(place, value) for place, value in program.values.others.items() if isinstance(value, np.ndarray)]
    large = {place for place, value in arrays if value.size > LARGEST_CALL}
    if not large or not tile_run.are_known() or all(isinstance(s, Rows) or large.isdisjoint(s.places) for s in steps):
        return steps
    grouping = _Grouping(program, steps, wanted, machine, large)
    return grouping.steps() if grouping.domains else steps


class _Grouping:
    """The steps of a program while groups are found."""

    def __init__(self, program: Program, steps: list, wanted: set[int], machine: machines.Machine, large: set[int]):
        self.program, self.given, self.wanted, self.machine = program, steps, wanted, machine
        self.alias: dict[int, int] = {}
        """The place of which another is a view, by the latter."""
        self.local: dict[int, tuple[Domain, str]] = {}
        """How a result lies in its group's domain."""
        self.turned: dict[int, Place] = {
            step.places[0]: step.arguments[0]
            for step in steps
            if (turned := rule_of("turned", step.name)) is not None and turned(self, step)
        }
        """The matrix of which another is the transpose, by the latter."""
        self.upright: list[Place] = []
        self.domains = self._domains(large)

    @rule("turned", "transpose", "swapaxes", "moveaxis")
    def _is_turned(self, step: Step) -> bool:
        source = step.arguments[0]
        if not isinstance(source, Place) or len(self.shape(source)) != 2:
            return False
        # Whether a permutation of two axes is the transpose depends on how it names them; NumPy says so by the strides.
        x = np.empty(self.shape(source))
        return step.function(x, *step.arguments[1:]).strides == x.T.strides

    # Domains.

    def _domains(self, large: set[int]) -> dict[int, Domain]:
        """The domain of arrays, by their size."""
        plan = Plan(self.program, [step.uses for step in self.given])
        found: dict[int, Domain] = {}
        for step in self.given:
            if isinstance(step, Rows) or step.several or large.isdisjoint(step.places) and large.isdisjoint(step.uses):
                continue
            size = max(map(self.size, (*step.places, *[x for x in step.arguments if x.__class__ is Place])))
            if size > LARGEST or size > LARGEST_CALL and plan.why_not(step, step.uses) is not None:
                found.setdefault(size, Domain(size, 1))
                rows = self._rows(step, size)
                if rows and found[size].width == 1:
                    found[size] = Domain(rows, size // rows)
        return found

    def _rows(self, step: Step, size: int) -> int | None:
        """The number of rows that a step asks for."""
        value, own = self.program.value(step.places[0]), rule_of("tiles", step.name)
        if own in (_Grouping._reduction, _Grouping._of_rows) and isinstance(step.arguments[0], Place):
            shape = self.shape(step.arguments[0])
            for k in range(1, len(shape)):
                axes = _axes(step, len(shape))
                if axes in (tuple(range(k)), tuple(range(k, len(shape)))):
                    return self._checked(math.prod(shape[:k]), size)
            return None
        if step.name in PRODUCTS:
            factors = self._factors(step)
            return factors and self._checked(self.shape(factors.matrix)[0], size)
        if np.size(value) != size:
            return None
        for x in step.arguments:
            shape = np.shape(self.example(x)) if isinstance(x, Place) else ()
            if 1 < math.prod(shape) < size:
                shape = _aligned(shape, value.shape)
                for k in range(1, len(shape)):
                    ones = math.prod(shape[:k]) == 1, math.prod(shape[k:]) == 1
                    if ones[0] and shape[k:] == value.shape[k:] or ones[1] and shape[:k] == value.shape[:k]:
                        return self._checked(math.prod(value.shape[:k]), size)
        return None

    def _checked(self, rows: int, size: int) -> int | None:
        """``rows`` where a row fits into a tile, more or less."""
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
        """How an operand lies in the domain of an operation, by the shapes of both; None if it does not."""
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

    def seen(self, x: int, kind: str | None, domain: Domain) -> str | None:
        """How what an array is a view of lies in the domain, where the array is of that kind."""
        while x in self.alias:
            source = self.alias[x]
            if self.size(source) != self.size(x):  # by broadcast_to()
                kind = self.kind(self.shape(Place(source)), self.shape(Place(x)), domain) if kind == FULL else None
            x = source
        return kind

    def operand(self, x, shape: tuple[int, ...], domain: Domain, dtype: np.dtype) -> Operand | None:
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
            kind = self.seen(x, kind, domain) if value.dtype == dtype else None
            if kind is None:
                return None
        return Operand(root, kind, dtype)

    @functools.cached_property
    def folded(self) -> dict[int, Any]:
        """The numbers that arrays are full of which are the same for all arguments, as a gradient begins with."""
        same = {p: self.program.constants[p] for p in self.program.folded}
        known = {p: x for p, x in same.items() if np.ndim(x) and np.size(x) and x.dtype in FLOATS}
        return {p: x.flat[0] for p, x in known.items() if x.tobytes() == x.flat[0].tobytes() * x.size}

    def _constant(self, place: int) -> Any:
        """What NumPy's steps read where tiles read a number, or the matrix whose transpose this is."""
        x = self.program.constants[place]
        if place not in self.folded:
            return x
        return np.ndarray(x.shape, x.dtype, self.folded[place], strides=(0,) * x.ndim)

    # Steps as instructions.

    def work(self, step) -> Work | None:
        """A step as instructions of a group; None where it cannot be in one."""
        if isinstance(step, Rows) or step.several:
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
        for x in step.arguments:  # numbers for each row, of a group whose arrays are larger
            made = self.local.get(self.root(x)) if isinstance(x, Place) else None
            if made and made[1] == COLUMN and made[0].width > 1 and made[0].rows == size:
                return made[0]
        return self.of_rows.get(size) or self.domains.get(size)

    @functools.cached_property
    def of_rows(self) -> dict[int, Domain]:
        """The domains of products with vectors, by the numbers of rows: vectors go with them."""
        found = {}
        for step in self.given:
            if not isinstance(step, Rows) and step.name in PRODUCTS:
                work = self._product(step, self.program.value(step.places[0]))
                if work is not None:
                    found[work.domain.rows] = work.domain
        return found

    def _instruction(self, ufunc, arguments, out, value, domain: Domain, over: str) -> Instruction | None:
        """The instruction of a ufunc, of ``where``, or of a power by a whole number."""
        given = [x.dtype if isinstance(x, Inner) else _dtype_of(self.example(x)) for x in arguments]
        if ufunc is np.where:
            dtypes: tuple[Any, ...] = (BOOL, value.dtype, value.dtype, value.dtype)
            if given[0] not in (BOOL, bool) or value.dtype not in FLOATS:
                return None
            loop = self._own(f"where{value.dtype.itemsize}", "where" if value.dtype == FLOATS[0] else "")
        elif isinstance(ufunc, int):
            dtypes, loop = (FLOATS[0], FLOATS[0]), self._own(f"power{ufunc}.tile", f"power{ufunc}")
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

    def _own(self, title: str, name: str = "", data: int = 0) -> Loop:
        """A loop of the machine's."""
        return Loop(self.machine.address(title), data, name)

    def _loop(self, ufunc: np.ufunc, *dtypes) -> Loop | None:
        """NumPy's loop, or the machine's, which a wave's calls for large elements."""
        found, name = tile_run.loop(ufunc, *dtypes), _FUNCTIONS.get(ufunc)
        if found is None or name is None or dtypes[0] != FLOATS[0] or not machines.has_fused():
            return found
        if FUNCTIONS[name].largest == math.inf:
            return self._own(f"{name}.tile", name)
        return found if found.data else self._own(f"{name}.tile", data=found.address)

    @rule("tiles", "reshape", "expand_dims", "squeeze", "ravel", "broadcast_to", "real", "conj")
    def _alias(self, step: Step, value) -> None:
        """Return None: the result is the operand seen otherwise, which is not computed."""

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
        add, copy = self._reducing(ufunc, value.dtype), tile_run.loop(np.positive, value.dtype, value.dtype)
        if operand is None or add is None or copy is None:
            return None
        out = Operand(step.places[0], kind, value.dtype)
        divisor = float(size / max(np.size(value), 1)) if step.name == "mean" else 1.0
        # A sum over rows is a product with ones, of which 32 columns are taken at once. Each number is rounded once, as
        # in NumPy's sum row by row; only the order is another one, as tiles have parts and the last columns four sums.
        if (
            kind == ROW
            and operand.kind == FULL
            and ufunc is np.add
            and value.dtype == FLOATS[0]
            and machines.has_fused()
        ):
            ones = Operand(Inner(), COLUMN, value.dtype)
            fill = Instruction(copy, (Operand.number(1.0, value.dtype), ones), COLUMN)
            product = Instruction(self._own("vecmat.tile"), (operand, ones, out), PRODUCT)
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
        """The factors of a product of a matrix and a vector; None where it is something else."""
        first, second = step.arguments
        if not isinstance(first, Place) or not isinstance(second, Place):
            return None
        a, b = self.shape(first), self.shape(second)
        if len(a) == 1 and len(b) == 2:
            found = Factors(second, True, first)
        elif len(a) == 2 and (len(b) == 1 or len(b) == 2 and b[1] == 1):
            source = self._turned(first)
            found = Factors(first, False, second) if source is None else Factors(source, True, second)
        else:
            return None
        return found if self.example(found.matrix).flags.c_contiguous else None

    def _turned(self, matrix: Place) -> Place | None:
        """The matrix of which this one is the transpose: of constants the one that is multiplied first."""
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
        """A product of a matrix and a vector: a number for each row, or of the transpose a sum over rows."""
        factors = self._factors(step)
        if factors is None or value.dtype not in FLOATS:
            return None
        matrix, is_turned, vector = factors
        domain = self.domains.get(self.size(matrix))
        if domain != self.shape(matrix) or any(self.example(x).dtype != value.dtype for x in (matrix, vector)):
            return None
        if self.seen(matrix, FULL, domain) != FULL:  # repeated rows or columns, which are not in memory
            return None
        loop, copy = (tile_run.loop(f, *[value.dtype] * (f.nin + 1)) for f in (np.matmul, np.positive))
        if loop is None or copy is None:
            return None
        if value.dtype == FLOATS[0] and machines.has_fused():
            loop = self._own("vecmat.tile" if is_turned else "matvec.tile")
        kind = self.seen(vector, COLUMN if is_turned else ROW, domain)
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

    def _reducing(self, ufunc: np.ufunc, dtype: np.dtype) -> Loop | None:
        """The loop of a reduction."""
        found = tile_run.loop(ufunc, dtype, dtype, dtype)
        if found and ufunc is np.add and dtype == FLOATS[0]:
            return self._own("sum.tile", "add", found.address)
        return found

    @rule("tiles", "softmax", "log_softmax", "logsumexp")
    def _of_rows(self, step: Step, value) -> Work | None:
        """``softmax`` and its like, of which each row is a distribution."""
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
            of_rows = all(o.kind in (COLUMN, ONE) for o in operands)
            found = self._loop(ufunc, *[dtype] * (len(operands) + 1))
            out = out or Operand(Inner(), kind, dtype)
            assert found is not None
            instructions.append(Instruction(found, (*operands, out), COLUMN if of_rows else FULL))
            return out

        def over_row(ufunc, x: Operand) -> Operand:
            out = Operand(Inner(), COLUMN, dtype)
            add, copy = self._reducing(ufunc, dtype), tile_run.loop(np.positive, dtype, dtype)
            assert add is not None and copy is not None
            instructions.append(Instruction(add, (out, x, out), FULL, (copy, IDENTITIES[ufunc])))
            return out

        top = over_row(np.maximum, operand)
        less = call(np.subtract, operand, top)
        powers = call(np.exp, less)
        total = over_row(np.add, powers)
        result = Operand(Place(step.places[0]), COLUMN if step.name == "logsumexp" else FULL, dtype)
        if step.name == "softmax":
            call(np.divide, powers, total, out=result)
        elif step.name == "log_softmax":
            call(np.subtract, less, call(np.log, total, kind=COLUMN), out=result)
        else:  # the largest where that is infinite
            found = call(np.add, call(np.log, total, kind=COLUMN), top, kind=COLUMN)
            call(np.fmax, found, top, out=result)
        return Work(domain, instructions, result)

    # Groups.

    def steps(self) -> list:
        """All steps in an order in which groups stand together, as one step each."""
        # A group runs as one call, so nothing that it reads may be computed from its own results. All steps have a
        # level: a step reads what is of its level or below, and groups are of the steps of one level and domain. Within
        # the level groups come first, then NumPy's calls, which may read what groups make. A step of a group that reads
        # what another group or a call of this level makes cannot run with it, and goes one level up; only what the
        # tiles themselves hold does not count. A part of a sum is such a value: it is whole once all tiles are done.
        works: list[Work | None] = []
        level: dict[int, int] = {}
        maker: dict[int, Domain | None] = {}  # of a value within a group's tiles
        levels = []
        for step in self.given:
            work = self.work(step)
            works.append(work)
            at = 0
            factors = self._factors(step) if work is not None and step.name in PRODUCTS else None
            for place in step.uses:
                if factors is not None and place != factors.vector:  # the vector is read as it is
                    place = self.turned.get(place, place)
                if place in level:
                    within = work is not None and self._is_of_tile(work, maker, self.root(place))
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
        """True if the result has its operand's bytes: of complex numbers ``real`` and ``conj`` have other ones."""
        operand = step.arguments[0]
        if rule_of("tiles", step.name) is not _Grouping._alias or not isinstance(operand, Place):
            return False
        dtypes = [_dtype_of(self.program.value(x)) for x in (step.places[0], operand)]
        return dtypes[0] == dtypes[1] and (step.name not in ("real", "conj") or dtypes[0].kind != "c")

    def _is_of_tile(self, work: Work, maker: dict[int, Domain | None], place: int) -> bool:
        """True if instructions take a value of their domain as it lies there, so that a tile has what it reads of it.

        Of a square matrix a number for each row may be taken as a row, all of which each tile reads.
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
        """True if a group is faster than NumPy's calls."""
        if sum(len(works[i].instructions) for i in members) >= FEWEST:
            return True
        return any(self.given[i].function in _FUNCTIONS or works[i].domain.rows >= PARALLEL for i in members)

    def _is_idle(self, step, needed: set[int]) -> bool:
        return not isinstance(step, Rows) and self._source(step) is not None and step.places[0] not in needed

    def _source(self, step: Step) -> int | None:
        """The array of which a step's result is a view."""
        return self.alias.get(step.places[0], self.turned.get(step.places[0]))

    @functools.cached_property
    def views(self) -> dict[int, int]:
        """The numbers of the steps whose results are views, by the places of these; once all aliases are known."""
        of_arrays = [(i, step) for i, step in enumerate(self.given) if not isinstance(step, Rows)]
        return {step.places[0]: i for i, step in of_arrays if self._source(step) is not None}

    def _needed(self, groups, works, within: set[int]) -> set[int]:
        """The places that must be arrays: those that others than their group read."""
        # What no one outside reads is never an array. So a group whose values a call of NumPy's reads must write them,
        # and a view of an array needs the array: from the last step to the first, as a view that is not needed itself
        # needs nothing.
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
        writing = Writing(self.program, domain, done, outputs, self._own("spread.tile", "copy"))
        plan, inputs, written = writing.plan()
        redone = self._redone(inputs, members)
        unread = {p for step in redone for p in step.uses if p in self.program.constants}.difference(inputs)
        constants = {p: self._constant(p) for p in unread}
        compiled = functools.partial(tile_compiler.compiled, plan, written, self.machine)
        reference = Reference(joined(redone[0].table, redone), inputs, list(map(Place, outputs)), constants)
        function = Tiles(self.machine, plan, reference, compiled)
        function.names = Counter(step.name for step in steps)
        return Step(NATIVE, function, tuple(map(Place, inputs)), tuple(outputs), True)

    def _redone(self, inputs: list[int], members: list[int]) -> list[Step]:
        """The steps of NumPy's that do the same, with those by which they see arrays otherwise."""
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
    """An elementwise step as ufuncs, or ``np.where``, with their arguments and results; None where it is not that."""
    out, arguments = step.places[0], step.arguments
    own = rule_of("ufuncs", step.name)  # of a kernel that is several functions of NumPy's, or is quicker as others
    if own is not None:
        return own(grouping, out, *arguments)
    ufunc: Any = step.function
    if not isinstance(ufunc, np.ufunc):
        ufunc = function_of(backends.embedded().kernel(step.name))
    if isinstance(ufunc, str):
        ufunc = getattr(_scipy.special, ufunc, None)
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1 or ufunc.signature or known_of(step.name).limits:
        return None
    if len(arguments) != ufunc.nin or ufunc.nin >= tile_source.OPERANDS:
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
    """NumPy's ``logaddexp(x, 0)``, whose loop computes one element at a time."""
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
    """The dtype of an array; the type of a number of Python's, which takes another's."""
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

"""Steps on large arrays that go together, as one pass over tiles that stay in the cache.

A group has a domain of so many rows of so many elements, one where nothing asks for rows. In it an array is
``FULL``, a number for each row (``COLUMN``), one row (``ROW``) or a number (``ONE``): steps that are elementwise
between these are instructions, and so are reductions, whose result is a number for each row of the tile, or a part for
each tile. What a group makes and only it reads never is an array.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import _scipy, backends
from ...backends.numpy.base import function_of
from ..array import Place
from ..program import Program
from ..scalar_blocks import Block
from ..steps import Step
from . import machine as machines
from . import tile_run, tile_source
from .code import BOOL, FLOATS
from .plan import LARGEST, LARGEST_CALL, Plan
from .registry import limits_of
from .tile_run import PARALLEL, Result, Tiles
from .tile_run import Plan as TilePlan

TILE = 1024
"""Elements of a tile."""

LARGE_TILE = 8192
"""The same where rows are multiplied by BLAS, whose calls take longer."""

FEWEST = 2
"""Instructions of a group: one alone is no faster than NumPy's call, unless its loop is, or threads share it."""

NATIVE = "native"
"""The name of a group's step."""

FULL, COLUMN, ROW, ONE, PRODUCT, SPREAD = "full", "column", "row", "one", "product", "spread"

_WAVES = {np.sin: "sin", np.cos: "cos"}

_ALIASES = frozenset(("reshape", "expand_dims", "squeeze", "ravel", "flatten", "broadcast_to", "real", "conj"))
"""Ops whose result is their operand seen otherwise, which is not computed."""

_REDUCTIONS = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum}
_TURNS = frozenset(("transpose", "swapaxes", "moveaxis", "matrix_transpose"))
_IDENTITIES = {np.add: 0.0, np.maximum: -np.inf, np.minimum: np.inf}


_PRODUCTS = frozenset(("matmul", "dot"))
_OF_ROWS = frozenset(("softmax", "log_softmax", "logsumexp"))


class Domain(NamedTuple):
    rows: int
    width: int


class Factors(NamedTuple):
    """Of a product of a matrix, or of its transpose, and a vector."""

    matrix: Place
    is_turned: bool
    vector: Place


class Operand(NamedTuple):
    """An operand of an instruction: a place, or a number's bytes; how it lies in the domain; its dtype."""

    value: Any
    kind: str
    dtype: np.dtype

    @classmethod
    def number(cls, x, dtype: np.dtype) -> Operand:
        """A number that is the same at each call."""
        # By its bytes, as operands are keys: the number 2.0 is equal to the place 2, and 0.0 to -0.0.
        return cls(np.asarray(x, dtype).tobytes(), ONE, dtype)


class Instruction(NamedTuple):
    """A loop, and its operands, of which the last is the result.

    Attributes:
        over: ``FULL``, or what it is done for alone: each row (``COLUMN``), a row's elements (``ROW``), once (``ONE``);
            a ``PRODUCT`` is of all at once, and ``SPREAD`` makes a ``FULL`` array of a row or a number for each.
        initial: of a reduction, whose result is an operand, too, the loop that copies and the number it begins with.
    """

    loop: tuple[int, int]
    operands: tuple[Operand, ...]
    over: str
    initial: tuple[tuple[int, int], float] | None = None

    def begun(self) -> list[Instruction]:
        """It, after the one that it begins with."""
        if self.initial is None:
            return [self]
        copy, number = self.initial
        out = self.operands[-1]
        return [Instruction(copy, (Operand.number(number, out.dtype), out), out.kind), self]


class Work(NamedTuple):
    """A step as instructions; ``part`` where its result is put together of the tiles' parts."""

    domain: Domain
    instructions: list[Instruction]
    result: Operand
    part: np.ufunc | None = None
    divisor: float = 1.0


def tiled(program: Program, steps: list, wanted: set[int], machine: machines.Machine) -> list:
    """The steps, with groups of those on large arrays as one step each."""
    large = {place for place, value in program.values.others.items() if np.size(value) > LARGEST_CALL}
    if not large or not tile_run.are_known() or all(isinstance(s, Block) or large.isdisjoint(s.places) for s in steps):
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
            if not isinstance(step, Block) and step.name in _TURNS and self._is_turned(step)
        }
        """The matrix of which another is the transpose, by the latter."""
        self.upright: list[Place] = []
        self.domains = self._domains(large)

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
            if isinstance(step, Block) or step.several or large.isdisjoint(step.places) and large.isdisjoint(step.uses):
                continue
            value = self.program.value(step.places[0])
            size = max([np.size(value), *(np.size(self.example(x)) for x in step.arguments if isinstance(x, Place))])
            if size > LARGEST or size > LARGEST_CALL and plan.why_not(step, step.uses) is not None:
                found.setdefault(size, Domain(size, 1))
                rows = self._rows(step, size)
                if rows and found[size].width == 1:
                    found[size] = Domain(rows, size // rows)
        return found

    def _rows(self, step: Step, size: int) -> int | None:
        """The number of rows that a step asks for."""
        value = self.program.value(step.places[0])
        if step.name in (*_REDUCTIONS, *_OF_ROWS) and isinstance(step.arguments[0], Place):
            shape = self.shape(step.arguments[0])
            for k in range(1, len(shape)):
                axes = _axes(step, len(shape))
                if axes in (tuple(range(k)), tuple(range(k, len(shape)))):
                    return self._checked(math.prod(shape[:k]), size)
            return None
        if step.name in _PRODUCTS:
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
        return np.shape(self.example(x))

    def size(self, place: int) -> int:
        return np.size(self.program.value(place))

    def root(self, place: int) -> int:
        while place in self.alias:
            place = self.alias[place]
        return place

    def kind(self, x, shape: tuple[int, ...], domain: Domain) -> str | None:
        """How an operand of an operation with a result of ``shape`` lies in the domain; None if it does not."""
        own = self.shape(x)
        size = math.prod(own)
        if size == 1:
            return ONE
        if size == math.prod(shape) and _squeezed(own) == _squeezed(shape):
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
                kind = self.kind(Place(source), self.shape(Place(x)), domain) if kind == FULL else None
            x = source
        return kind

    def operand(self, x, shape: tuple[int, ...], domain: Domain, dtype: np.dtype) -> Operand | None:
        kind = self.kind(x, shape, domain)
        if kind is None:
            return None
        if not isinstance(x, Place):
            return Operand.number(x, dtype)
        root = Place(self.root(x))
        if root in self.folded:
            return Operand.number(self.folded[root], dtype)
        if kind != ONE:
            kind = self.seen(x, kind, domain) if self.program.value(x).dtype == dtype else None
            if kind is None:
                return None
        return Operand(root, kind, dtype)

    @functools.cached_property
    def folded(self) -> dict[int, Any]:
        """The numbers that arrays are full of which are the same for all arguments, as a gradient begins with."""
        known = {p: x for p, x in self.program.folded if np.ndim(x) and np.size(x) and x.dtype in FLOATS}
        return {p: x.flat[0] for p, x in known.items() if x.tobytes() == x.flat[0].tobytes() * x.size}

    def _constant(self, place: int) -> Any:
        """What NumPy's steps read where tiles read a number, or the matrix whose transpose this is."""
        x = self.program.constants[place]
        return np.broadcast_to(self.folded[place], x.shape) if place in self.folded else x

    # Steps as instructions.

    def work(self, step) -> Work | None:
        """A step as instructions of a group; None where it cannot be in one."""
        if isinstance(step, Block) or step.several:
            return None
        value = self.program.value(step.places[0])
        if not isinstance(value, (np.ndarray, np.generic)) or value.dtype not in (*FLOATS, BOOL):
            return None
        if step.name in _REDUCTIONS:
            return self._reduction(step, value)
        if step.name in _OF_ROWS:
            return self._of_rows(step, value)
        if step.name in _PRODUCTS:
            return self._product(step, value)
        domain = self._domain(value, step)
        if domain is None or step.name in _ALIASES:
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
            if not isinstance(step, Block) and step.name in _PRODUCTS:
                work = self._product(step, self.program.value(step.places[0]))
                if work is not None:
                    found[work.domain.rows] = work.domain
        return found

    def _instruction(self, ufunc, arguments, out, value, domain: Domain, over: str) -> Instruction | None:
        """The instruction of a ufunc, of ``where``, or of a power by a whole number."""
        given = [x.dtype if isinstance(x, _Inner) else _dtype_of(self.example(x)) for x in arguments]
        if ufunc is np.where:
            dtypes: tuple[Any, ...] = (BOOL, value.dtype, value.dtype, value.dtype)
            if given[0] not in (BOOL, bool) or value.dtype not in FLOATS:
                return None
            loop = (self.machine.address(f"where{value.dtype.itemsize}"), 0)
        elif isinstance(ufunc, int):
            dtypes, loop = (FLOATS[0], FLOATS[0]), (self.machine.address(f"power{ufunc}.tile"), 0)
        else:
            try:
                dtypes = ufunc.resolve_dtypes((*given, None))
            except TypeError:
                return None
            if any(d not in (*FLOATS, BOOL) for d in dtypes):
                return None
            found = tile_run.loop(ufunc, *dtypes)
            if found is None:
                return None
            loop = found
            if ufunc in _WAVES and dtypes[0] == FLOATS[0] and not loop[1] and machines.has_fused():
                loop = (self.machine.address(f"{_WAVES[ufunc]}.tile"), loop[0])
        operands = []
        for x, dtype in zip(arguments, dtypes):
            if isinstance(x, _Inner):
                operand = Operand(x, over, dtype) if x.dtype == dtype else None
            else:
                operand = self.operand(x, value.shape, domain, dtype)
            if operand is None:
                return None
            operands.append(operand)
        if isinstance(out, _Inner):
            out.dtype = dtypes[-1]
        elif dtypes[-1] != value.dtype:
            return None
        return Instruction(loop, (*operands, Operand(out, over, dtypes[-1])), over)

    def _reduction(self, step: Step, value) -> Work | None:
        x, *rest = step.arguments
        if not isinstance(x, Place) or any(r is not None for r in rest[2:]):
            return None
        shape = self.shape(x)
        size = math.prod(shape)
        domain = self._domain(self.example(x), step)
        if domain is None or value.dtype not in FLOATS or self.example(x).dtype != value.dtype:
            return None
        ufunc, axes = _REDUCTIONS[step.name], _axes(step, len(shape))
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
            ones = Operand(_Inner(), COLUMN, value.dtype)
            fill = Instruction(copy, (Operand.number(1.0, value.dtype), ones), COLUMN)
            product = Instruction((self.machine.address("vecmat.tile"), 0), (operand, ones, out), PRODUCT)
            return Work(domain, [fill, product], out, ufunc, divisor)
        initial = copy, _IDENTITIES[ufunc]
        instructions = [Instruction(add, (out, operand, out), COLUMN if of_columns else FULL, initial)]
        if kind != COLUMN:
            return Work(domain, instructions, out, ufunc, divisor)
        if divisor != 1.0:
            divide = tile_run.loop(np.divide, *[value.dtype] * 3)
            if divide is None:
                return None
            instructions.append(Instruction(divide, (out, Operand.number(divisor, value.dtype), out), COLUMN))
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

    def _product(self, step: Step, value) -> Work | None:
        """A product of a matrix and a vector: a number for each row, or of the transpose a sum over rows."""
        factors = self._factors(step)
        if factors is None or value.dtype not in FLOATS:
            return None
        matrix, is_turned, vector = factors
        domain = self.domains.get(self.size(matrix))
        if domain != self.shape(matrix) or any(self.example(x).dtype != value.dtype for x in (matrix, vector)):
            return None
        loop, copy = (tile_run.loop(f, *[value.dtype] * (f.nin + 1)) for f in (np.matmul, np.positive))
        if loop is None or copy is None:
            return None
        if value.dtype == FLOATS[0] and machines.has_fused():
            loop = self.machine.address("vecmat.tile" if is_turned else "matvec.tile"), 0
        kind = self.seen(vector, COLUMN if is_turned else ROW, domain)
        source = Place(self.root(vector))
        instructions: list[Instruction] = []
        if source in self.folded or self.size(source) == 1:
            if not is_turned:
                return None
            known = self.folded.get(source)
            one = Operand(source, ONE, value.dtype) if known is None else Operand.number(known, value.dtype)
            operand = Operand(_Inner(), COLUMN, value.dtype)
            instructions.append(Instruction(copy, (one, operand), COLUMN))
        elif kind is None or self.size(source) != self.size(vector):
            return None
        else:
            operand = Operand(source, kind, value.dtype)
        out = Operand(Place(step.places[0]), ROW if is_turned else COLUMN, value.dtype)
        of_all = Operand(Place(self.root(matrix)), FULL, value.dtype)
        instructions.append(Instruction(loop, (of_all, operand, out), PRODUCT))
        return Work(domain, instructions, out, np.add if is_turned else None)

    def _reducing(self, ufunc: np.ufunc, dtype: np.dtype) -> tuple[int, int] | None:
        """The loop of a reduction."""
        found = tile_run.loop(ufunc, dtype, dtype, dtype)
        if found and ufunc is np.add and dtype == FLOATS[0]:
            return self.machine.address("sum.tile"), found[0]
        return found

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
            found = tile_run.loop(ufunc, *[dtype] * (len(operands) + 1))
            out = out or Operand(_Inner(), kind, dtype)
            assert found is not None
            instructions.append(Instruction(found, (*operands, out), COLUMN if of_rows else FULL))
            return out

        def over_row(ufunc, x: Operand) -> Operand:
            out = Operand(_Inner(), COLUMN, dtype)
            add, copy = self._reducing(ufunc, dtype), tile_run.loop(np.positive, dtype, dtype)
            assert add is not None and copy is not None
            instructions.append(Instruction(add, (out, x, out), FULL, (copy, _IDENTITIES[ufunc])))
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
            for place in step.uses:
                if work is not None and step.name in _PRODUCTS:
                    place = self.turned.get(place, place)
                if place in level:
                    within = work is not None and maker.get(self.root(place)) == work.domain
                    at = max(at, level[place] + (work is not None and not within))
            levels.append(at)
            for place in step.places:
                level[place] = at
            if work is not None:
                if work.part is None:
                    maker[step.places[0]] = work.domain
                    self.local[step.places[0]] = work.domain, work.result.kind
            elif not isinstance(step, Block) and step.name in _ALIASES and isinstance(step.arguments[0], Place):
                if step.places[0] not in self.program.inputs:
                    self.alias[step.places[0]] = step.arguments[0]
        return self._ordered(works, levels)

    def _ordered(self, works: list[Work | None], levels: list[int]) -> list:
        groups: dict[tuple[int, Domain], list[int]] = {}
        for i, work in enumerate(works):
            if work is not None:
                groups.setdefault((levels[i], work.domain), []).append(i)
        groups = {key: members for key, members in groups.items() if self._is_worth(works, members)}
        within = {i for members in groups.values() for i in members}
        needed = self._needed(groups, works, within)
        found: list = []
        for at in range(max(levels, default=0) + 1):
            for (_, domain), members in (x for x in groups.items() if x[0][0] == at):
                found.append(self._group(domain, [(self.given[i], works[i]) for i in members], needed))  # type: ignore[misc]
            for i, step in enumerate(self.given):
                if levels[i] == at and i not in within:
                    if not self._is_idle(step, needed):
                        found.append(step)
        return found

    def _is_worth(self, works, members: list[int]) -> bool:
        """True if a group is faster than NumPy's calls."""
        if sum(len(works[i].instructions) for i in members) >= FEWEST:
            return True
        return any(self.given[i].function in _WAVES or works[i].domain.rows >= PARALLEL for i in members)

    def _is_idle(self, step, needed: set[int]) -> bool:
        return not isinstance(step, Block) and self._source(step) is not None and step.places[0] not in needed

    def _source(self, step: Step) -> int | None:
        """The array of which a step's result is a view."""
        return self.alias.get(step.places[0], self.turned.get(step.places[0]))

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

    def _group(self, domain: Domain, members: list[tuple[Step, Work]], needed: set[int]) -> Step:
        outputs = [step.places[0] for step, _ in members if step.places[0] in needed]
        writing = _Writing(self.program, domain, members, outputs, self.machine.address("spread.tile"))
        plan, inputs = writing.plan()
        redone = self._redone(inputs, [step for step, _ in members])
        unread = {p for step in redone for p in step.uses if p in self.program.constants}.difference(inputs)
        constants = {p: self._constant(p) for p in unread}
        function = Tiles(self.machine, plan, redone, inputs, outputs, constants)
        function.names = Counter(step.name for step, _ in members)
        return Step(NATIVE, function, tuple(map(Place, inputs)), tuple(outputs), True)

    def _redone(self, inputs: list[int], members: list[Step]) -> list[Step]:
        """The steps of NumPy's that do the same, with those by which they see arrays otherwise."""
        known, found, own = {*inputs, *self.program.constants}, [], set(map(id, members))
        for step in self.given:
            if id(step) in own or not isinstance(step, Block) and self._source(step) in known:
                known.update(step.places)
                found.append(step)
        return found


class _Inner:
    """A value between the instructions of one step."""

    dtype: np.dtype


_SHORT = 16
"""Elements of a row from which on loops go along rows, not from row to row."""

_REPEATED = 64
"""The same from which on a number for each row, or a row, is read again and again, not repeated to an array."""


class _Writing:
    """The plan of one group while it is written."""

    def __init__(
        self, program: Program, domain: Domain, members: list[tuple[Step, Work]], outputs: list[int], spread: int
    ):
        self.program, self.domain, self.members, self.outputs = program, domain, members, outputs
        self.spread = spread
        is_product = any(step.name in _PRODUCTS for step, _ in members)
        self.per = max(1, (LARGE_TILE if is_product else TILE) // domain.width)
        self.tiles = -(-domain.rows // self.per)
        self.made = {step.places[0]: work for step, work in members}
        self.table: list[list[int]] = []
        self.rows: dict[Any, int] = {}
        self.inputs: dict[int, None] = {}
        self.arrays: list[tuple[int, int]] = []
        self.numbers: list[tuple[Any, int, np.dtype]] = []
        self.size = 0
        self.free: dict[tuple[str, int], list[int]] = {}

    def plan(self) -> tuple[TilePlan, list[int]]:
        """The plan, and the places of its arguments."""
        instructions, once = self._once_first([x for one in self._spread(self._distinct()) for x in one.begun()])
        last = {o.value: i for i, x in enumerate(instructions) for o in x.operands if self._is_local(o.value)}
        for place in (*self.outputs, *(x.operands[-1].value for x in instructions[:once])):
            last.pop(place, None)
        words: list[int] = []
        for i, instruction in enumerate(instructions):
            rows = [self._row(o) for o in instruction.operands[:-1]]
            out = instruction.operands[-1]
            dying = [o for o in dict.fromkeys(instruction.operands[:-1]) if last.get(o.value) == i and o != out]
            # A result may take the room of an operand that no one reads later, also within the instruction: a loop
            # reads an element before it writes its result there. That is so where both have the same elements at the
            # same places, as rooms of one kind and size do; the result of a sum over rows, or of a product, is of
            # another kind than what it reads.
            if out not in self.rows:
                for o in dying:
                    if self._is_room(out) and (o.kind, o.dtype.itemsize) == (out.kind, out.dtype.itemsize):
                        self.rows[out] = self.rows[o]
                        dying.remove(o)
                        break
            rows.append(self._row(out))
            for o in (*dying, *[out] * (last.get(out.value) == i)):
                self.free.setdefault((o.kind, o.dtype.itemsize), []).append(self.rows[o])
            words += self._words(instruction, rows)
        results = [self._result(place) for place in self.outputs]
        elements = self.domain.rows * self.domain.width
        head = [self.domain.rows, self.per, len(self.table), len(instructions), once]
        inputs = list(self.inputs)
        number = {place: i for i, place in enumerate(inputs)}
        # The addresses of a tile's operands stand at the beginning of the room.
        start = -(-8 * len(self.table) // 64) * 64
        for row in self.table:
            row[0] += start * row[1]
        plan = TilePlan(
            np.array([*head, *words], np.int64),
            np.array(self.table, np.int64),
            [(number[place], row) for place, row in self.arrays],
            [(Place(number[x]) if isinstance(x, Place) else x, row, dtype) for x, row, dtype in self.numbers],
            results,
            start + self.size,
            elements * len(instructions) >= PARALLEL,
        )
        return plan, inputs

    def _once_first(self, instructions: list[Instruction]) -> tuple[list[Instruction], int]:
        """The instructions, first those whose results are the same for all tiles, and the number of these."""
        writes = Counter(x.operands[-1].value for x in instructions)
        once: list[Instruction] = []
        rest: list[Instruction] = []
        for x in instructions:
            *given, out = x.operands
            # What a reduction begins with it writes over, so it is written twice.
            is_same = self._is_room(out) and writes[out.value] == 1
            is_same &= all(o.kind in (ROW, ONE) and o.value not in writes for o in given)
            (once if is_same else rest).append(x)
        return [*once, *rest], len(once)

    def _distinct(self) -> list[Instruction]:
        """The instructions, each once: of two that are equal the first one's result is both's."""
        found: list[Instruction] = []
        known: dict[Any, Any] = {}
        same: dict[Any, Any] = {}
        for _, work in self.members:
            for x in work.instructions:
                *given, out = [o._replace(value=same.get(o.value, o.value)) for o in x.operands]
                # Two steps may compute the same, as a function and its derivative do. The second one's result is then
                # the first one's, unless it is an array that the program reads, which must be there on its own. A
                # reduction reads its result, too, which is left out of the key.
                key = x.loop, x.over, x.initial, out.kind, out.dtype, *[o for o in given if o != out]
                if key in known and self._is_room(out):
                    same[out.value] = known[key]
                    continue
                if self._is_room(out):
                    known[key] = out.value
                found.append(x._replace(operands=(*given, out)))
        return found

    def _spread(self, instructions: list[Instruction]) -> list[Instruction]:
        """The instructions of short rows, with operands that are repeated as arrays, of which loops are quicker."""
        if not 1 < self.domain.width < _REPEATED:
            return instructions
        found: list[Instruction] = []
        known: dict[Operand, Operand] = {}
        for x in instructions:
            *given, out = x.operands
            for i, o in enumerate(given):
                if x.over == FULL and o != out and o.kind in (COLUMN, ROW) and o.dtype == FLOATS[0]:
                    if o not in known:
                        known[o] = Operand(_Inner(), FULL, o.dtype)
                        found.append(Instruction((self.spread, 0), (o, known[o]), SPREAD))
                    given[i] = known[o]
            found.append(x._replace(operands=(*given, out)))
        return found

    def _is_local(self, value) -> bool:
        if isinstance(value, Place):
            return value in self.made and self.made[value].part is None
        return isinstance(value, _Inner)

    def _is_room(self, o: Operand) -> bool:
        return self._is_local(o.value) and o.value not in self.outputs

    def _row(self, o: Operand) -> int:
        found = self.rows.get(o)
        if found is None:
            found = self.rows[o] = self._placed(o)
        return found

    def _placed(self, o: Operand) -> int:
        """The row of the table for an operand that is new."""
        size = o.dtype.itemsize
        across = {COLUMN: size, ROW: 0, ONE: 0}.get(o.kind, size * self.domain.width)
        if self._is_room(o):
            free = self.free.get((o.kind, size))
            if free:
                return free.pop()
            start, bytes_ = self.size, self.per * (self.domain.width if o.kind == FULL else 1) * size
            self.size += -(-bytes_ // 64) * 64
            return self._new([start, 1, 0, 0])
        if isinstance(o.value, Place) and o.value in self.made:
            if self.made[o.value].part:
                return self._new([0, 0, 0, size * (self.domain.width if o.kind == ROW else 1)])
            return self._new([0, 0, across, 0])
        row = self._new([0, 0, across, 0])
        if isinstance(o.value, Place):
            self.inputs[o.value] = None
        if o.kind == ONE:
            self.numbers.append((o.value, row, o.dtype))
        else:
            self.arrays.append((o.value, row))
        return row

    def _new(self, row: list[int]) -> int:
        self.table.append(row)
        return len(self.table) - 1

    def _words(self, instruction: Instruction, rows: list[int]) -> list[int]:
        operands, width = instruction.operands, self.domain.width
        along, across = [], []
        for o in operands:
            size = o.dtype.itemsize
            along.append(size if o.kind in (FULL, ROW) else 0)
            across.append({FULL: size * width, COLUMN: size}.get(o.kind, 0))
        nothing = [0] * len(operands)
        calls, counts, outer = (1, 0), [(0, width)], nothing
        inner = along
        if instruction.over == ONE:
            counts, inner = [(1, 0)], nothing
        elif instruction.over == ROW:
            counts = [(width, 0)]
        elif instruction.over == COLUMN:
            counts, inner = [(0, 1)], across
        elif instruction.over == PRODUCT:
            counts, inner = self._product(operands)
        elif instruction.over == SPREAD:
            counts, inner = [(0, 1), (width, 0)], [along[0], across[0]]
        elif any(o.kind not in (FULL, ONE) for o in operands):
            if width >= _SHORT:
                calls, counts, outer = (0, 1), [(width, 0)], across
            else:
                calls, counts, inner, outer = (width, 0), [(0, 1)], across, along
        words = [*instruction.loop, len(operands), *calls]
        for part, most in (
            ([n for pair in counts for n in pair], 2 * tile_source.COUNTS),
            (rows, tile_source.OPERANDS),
            (inner, tile_source.STEPS),
            (outer, tile_source.OPERANDS),
        ):
            words += [*part, *[0] * (most - len(part))]
        return words

    def _product(self, operands: tuple[Operand, ...]) -> tuple[list[tuple[int, int]], list[int]]:
        """Counts and strides of a tile's product with a vector, or of the product of its transpose."""
        size, width = operands[0].dtype.itemsize, self.domain.width
        near, far = (size, size), (size * width, size)
        rows, columns = (0, 1), (width, 0)
        if operands[-1].kind == COLUMN:
            # A loop of `np.matmul` has four counts (products, rows, inner elements, columns) and nine strides: from
            # product to product of its three operands, then two of each. A vector is a matrix with one column. For the
            # transpose the counts of rows and columns change places, and so do the strides of the matrix.
            return [(1, 0), rows, columns, (1, 0)], [0, 0, 0, *far, *near, *near]
        return [(1, 0), columns, rows, (1, 0)], [0, 0, 0, *far[::-1], *near, *near]

    def _result(self, place: int) -> Result:
        work, value = self.made[place], self.program.value(place)
        row = self._row(work.result)
        if work.part is None:
            return Result(row, value)
        parts = (self.tiles, self.domain.width) if work.result.kind == ROW else (self.tiles,)
        return Result(row, value, work.part, parts, work.divisor)


# Operations.


def _operation(grouping: _Grouping, step: Step) -> list[tuple[Any, tuple, Any]] | None:
    """An elementwise step as ufuncs, or ``np.where``, with their arguments and results; None where it is not that."""
    out, arguments = step.places[0], step.arguments
    if step.name in _COMPOSED:
        return _COMPOSED[step.name](grouping, out, *arguments)
    kernel = backends.embedded().kernel(step.name)
    ufunc = step.function if isinstance(step.function, np.ufunc) else function_of(kernel)
    if isinstance(ufunc, str):
        ufunc = getattr(_scipy.special, ufunc, None)
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1 or ufunc.signature or limits_of(step.name):
        return None
    if len(arguments) != ufunc.nin or ufunc.nin >= tile_source.OPERANDS:
        return None
    return [(ufunc, arguments, Place(out))]


def _power(grouping: _Grouping, out, x, exponent):
    known = grouping.program.constants.get(exponent) if isinstance(exponent, Place) else exponent
    if known is None or np.ndim(known):
        known = np.nan
    if known == 2:
        return [(np.multiply, (x, x), Place(out))]
    if known in tile_source.POWERS and _dtype_of(grouping.example(x)) == FLOATS[0] and machines.has_fused():
        return [(int(known), (x,), Place(out))]
    return [(np.power, (x, exponent), Place(out))]


def _softplus(grouping: _Grouping, out, x):
    """NumPy's ``logaddexp(x, 0)``, whose loop computes one element at a time."""
    size, less, small, rest, top = (_Inner() for _ in range(5))
    return [
        (np.absolute, (x,), size),
        (np.negative, (size,), less),
        (np.exp, (less,), small),
        (np.log1p, (small,), rest),
        (np.maximum, (x, 0.0), top),
        (np.add, (top, rest), Place(out)),
    ]


def _cast(grouping: _Grouping, out, x, dtype):
    if _dtype_of(grouping.example(x)) != BOOL or grouping.program.value(out).dtype not in FLOATS:
        return None
    return [(np.where, (x, 1.0, 0.0), Place(out))]


def _where(grouping: _Grouping, out, condition, x1=None, x2=None):
    return None if x1 is None or x2 is None else [(np.where, (condition, x1, x2), Place(out))]


_COMPOSED: dict[str, Callable] = {
    "power": _power,
    "softplus": _softplus,
    "cast": _cast,
    "where": _where,
    "relu": lambda grouping, out, x: [(np.maximum, (x, 0.0), Place(out))],
}
"""Ops whose kernels are several functions of NumPy's, or are quicker as others."""


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

"""Sparsity patterns: which elements of a program's results depend on which elements of some of its values.

:func:`dependence` goes through the rows once. The pattern of a value is an array of its shape, whose elements are
frozensets: the numbers of the source elements that the element depends on. A step that moves elements moves the sets,
by the same NumPy function; a step that combines elements takes unions. Only indices and conditions that are equal for
all arguments are read, so a pattern holds for all values of the arguments. In a step without a rule, each element of
the result depends on everything that the arguments depend on. ``functional/sparsity`` calls this.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends._keys import plain
from ..ops import _registry
from ..ops._dispatch import facts_of
from ..ops._matrices import is_vector
from ..ops._registry import rule
from .array import Place
from .liveness import last_uses, needed_rows
from .program import Program
from .steps import Step, places

NOTHING: frozenset = frozenset()


class Unions:
    """Unions of sets. Equal unions of the same two sets are one object, to save memory."""

    def __init__(self) -> None:
        self._known: dict[tuple, tuple] = {}
        self._elementwise = np.frompyfunc(self.union, 2, 1)

    def elementwise(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the unions of corresponding elements; the arrays are broadcast."""
        return _array(self._elementwise(first, second))

    def union(self, a: frozenset, b: frozenset) -> frozenset:
        """Return the union of two sets; one of the two if it contains the other."""
        if a is b or not b:
            return a
        if not a:
            return b
        if len(a) < len(b):
            a, b = b, a
        if len(a) > 8 or len(b) > 4:
            known = self._known.get((id(a), id(b)))
            if known is None:
                known = self._known[id(a), id(b)] = (a if b <= a else a | b), a, b  # holds both for their ids
            return known[0]
        return a if b <= a else a | b

    def union_all(self, sets) -> frozenset:
        """Return the union of any number of sets."""
        distinct = list({id(s): s for s in sets if s}.values())
        return distinct[0] if len(distinct) == 1 else NOTHING.union(*distinct)


def dependence(program: Program, outputs: list, sources: list[int]) -> list[np.ndarray]:
    """Return, for each output, the sets of elements of ``sources`` on which its elements depend.

    Args:
        outputs: places, or values that depend on nothing.
        sources: places; their elements are numbered consecutively.

    Returns:
        Object arrays of frozensets, in the outputs' shapes.
    """
    analysis = Analysis(program)
    start = 0
    for place in sources:
        shape = np.shape(program.value(place))
        analysis.found[place] = _singles(start, math.prod(shape)).reshape(shape)
        start += math.prod(shape)
    wanted = {p.index for p in outputs if isinstance(p, Place)}
    steps = list(needed_rows(program, wanted))
    last = last_uses(steps)
    for i, step in enumerate(steps):
        analysis.take(step)
        for place in step.uses:
            if last[place] == i and place not in wanted:
                analysis.found.pop(place, None)
    return [analysis.of(p) for p in outputs]


def _singles(start: int, size: int) -> np.ndarray:
    found = np.empty(size, object)
    found[:] = [frozenset((k,)) for k in range(start, start + size)]
    return found


class Analysis:
    """The patterns of a program's places, computed step by step; a place not in ``found`` depends on nothing."""

    def __init__(self, program: Program):
        self.program = program
        self.found: dict[int, np.ndarray] = {}
        self.unions = Unions()

    def of(self, x) -> np.ndarray:
        """Return the pattern of an argument."""
        if x.__class__ is Place:
            known = self.found.get(x.index)
            return self.empty(np.shape(self.program.value(x.index))) if known is None else known
        return self.empty(np.shape(x))

    def empty(self, shape: tuple) -> np.ndarray:
        found = np.empty(shape, object)
        found[...] = NOTHING
        return found

    def moves(self, x) -> bool:
        """True if an argument depends on the sources."""
        return x.__class__ is Place and x.index in self.found

    def known(self, x) -> Any:
        """Return the value of an argument if it is equal for all arguments of the program, else None."""
        if x.__class__ is Place:
            return self.program.constants.get(x.index)
        if isinstance(x, (list, tuple)) and places(x):
            return None
        return x

    def take(self, step: Step) -> None:
        """Compute the patterns of a step's results."""
        if not any(place in self.found for place in step.uses):
            return
        found = rule_of(step.name)
        result = NotImplemented if found is None else found(self, step, *step.arguments)
        if result is NotImplemented:
            result = self._full_dependence(step)
        for place, sets in zip(step.places, result if step.several else [result]):
            self.found[place] = np.broadcast_to(_array(sets), np.shape(self.program.value(place)))

    def _full_dependence(self, step: Step):
        used = [self.found[place] for place in step.uses if place in self.found]
        every = self.unions.union_all(s for sets in used for s in sets.flat)
        results = []
        for place in step.places:
            full = np.empty(np.shape(self.program.value(place)), object)
            full[...] = every
            results.append(full)
        return results if step.several else results[0]


def _array(sets) -> np.ndarray:
    """Return sets as an array; for arrays without dimensions NumPy's result may be a set."""
    if isinstance(sets, np.ndarray):
        return sets
    found = np.empty((), object)
    found[()] = sets
    return found


def rule_of(name: str) -> Callable | None:
    """Return an op's own rule, or the rule that follows from its facts.

    A rule is called as ``rule(analysis, step, *arguments)``. It returns the patterns of the step's results, or
    NotImplemented if each result element depends on all elements of the arguments.
    """
    own, facts = _registry.rule_of("pattern", name), facts_of(name)
    if own is not None:
        return own
    if facts.elementwise:
        return _elementwise
    if facts.moves:
        return _moved
    return _reduced if facts.reduces else None


def _elementwise(analysis: Analysis, step: Step, *xs):
    sets = [analysis.of(x) for x in xs if analysis.moves(x)]
    total = sets[0]
    for more in sets[1:]:
        total = analysis.unions.elementwise(total, more)
    return total


@rule("pattern", "multiply")
def _product(analysis: Analysis, step: Step, x1, x2):
    """Combine elementwise; where a constant factor is 0 the product depends on nothing."""
    total = _elementwise(analysis, step, x1, x2)
    for factor in (x1, x2):
        value = analysis.known(factor)
        # Only a factor that is equal for all arguments counts: a pattern must hold for all arguments, and a factor
        # that depends on them may be 0 for these only.
        if value is not None and not np.all(value):
            total = _masked(analysis, total, np.asarray(value) != 0)
    return total


def _masked(analysis: Analysis, sets, mask):
    shape = np.broadcast_shapes(sets.shape, mask.shape)
    return np.where(mask, np.broadcast_to(sets, shape), analysis.empty(()))


@rule("pattern", "where")
def _where(analysis: Analysis, step: Step, condition, x1=None, x2=None):
    if x1 is None or x2 is None:
        return NotImplemented
    chosen = analysis.known(condition)
    first, second = analysis.of(x1), analysis.of(x2)
    if chosen is None:
        return analysis.unions.elementwise(first, second)
    return np.where(np.asarray(chosen, bool), first, second)


def _moved(analysis: Analysis, step: Step, x, *settings):
    """Move the sets by NumPy's own function, which moves elements."""
    settings = tuple(map(analysis.known, settings))
    if any(s is None and given is not None for s, given in zip(settings, step.arguments[1:])):
        return NotImplemented  # indices that depend on the arguments
    return step.function(analysis.of(x), *settings)


@rule("pattern", "get_item")
def _get_item(analysis: Analysis, step: Step, x, key):
    key = _known_key(analysis, key)
    if key is NotImplemented:
        return key
    return _array(analysis.of(x)[key])


def _known_key(analysis: Analysis, key):
    parts = key if isinstance(key, tuple) else (key,)
    values = [analysis.known(part) for part in parts]
    if any(v is None and part is not None for v, part in zip(values, parts)):
        return NotImplemented
    return plain(tuple(values) if isinstance(key, tuple) else values[0])


@rule("pattern", "add_at", "set_at")
def _at(analysis: Analysis, step: Step, x, key, updates):
    key = _known_key(analysis, key)
    if key is NotImplemented:
        return key
    sets = np.array(analysis.of(x))
    positions = np.arange(sets.size).reshape(sets.shape)[key]
    flat = sets.reshape(-1)
    if step.name == "set_at":
        flat[positions] = analysis.empty(())
    more = np.broadcast_to(analysis.of(updates), np.shape(positions))
    union = analysis.unions.union
    for position, update in zip(np.ravel(positions), more.flat):
        flat[position] = union(flat[position], update)
    return flat.reshape(sets.shape)


@rule("pattern", "stack", "concatenate")
def _joined(analysis: Analysis, step: Step, xs, axis=0):
    return getattr(np, step.name)([analysis.of(x) for x in xs], axis)


def _rows(sets, axis) -> np.ndarray:
    """Return the sets as a matrix with one row per element of a reduction's result."""
    rank = sets.ndim
    axes = range(rank) if axis is None else [a % rank for a in (axis if isinstance(axis, tuple) else (axis,))]
    order = [a for a in range(rank) if a not in axes]
    count, width = (math.prod(sets.shape[a] for a in group) for group in (order, axes))
    return sets.transpose([*order, *axes]).reshape(count, width)


def _reduced(analysis: Analysis, step: Step, x, axis=None, *settings):
    sets = analysis.of(x)
    if not sets.ndim:
        return sets
    found = np.empty(np.shape(analysis.program.value(step.places[0])), object)
    found.reshape(-1)[:] = [analysis.unions.union_all(row) for row in _rows(sets, axis)]
    return found


@rule("pattern", "softmax", "log_softmax", "sort")
def _along(analysis: Analysis, step: Step, x, axis=-1, *settings):
    """Let each element depend on all elements of its line along ``axis``."""
    sets = analysis.of(x)
    if not sets.ndim:
        return sets
    if not isinstance(axis, int):
        return NotImplemented
    axis %= sets.ndim
    return np.broadcast_to(np.expand_dims(_united(analysis, sets, axis), axis), sets.shape)


@rule("pattern", "cumsum", "cumprod")
def _accumulated(analysis: Analysis, step: Step, x, axis=None, *settings):
    """Let each element of a line depend on the elements up to it."""
    sets = analysis.of(x)
    lines = sets.reshape(1, -1) if axis is None else np.moveaxis(sets, axis, -1) if sets.ndim else sets.reshape(1)
    shape = lines.shape
    union = analysis.unions.union
    found: np.ndarray = np.empty((math.prod(shape[:-1]), shape[-1]), object)
    for i, line in enumerate(lines.reshape(found.shape)):
        found[i] = list(itertools.accumulate(line, union))
    found = found.reshape(shape)
    return found.reshape(-1) if axis is None else np.moveaxis(found, -1, axis) if sets.ndim else found.reshape(())


@rule("pattern", "tril", "triu")
def _triangle(analysis: Analysis, step: Step, x, k=0):
    sets = analysis.of(x)
    return _masked(analysis, sets, step.function(np.ones(sets.shape, bool), k))


@rule("pattern", "matmul")
def _matmul(analysis: Analysis, step: Step, a, b):
    """Let element (i, j) depend on row i of the first matrix and column j of the second."""
    first, second = analysis.of(a), analysis.of(b)
    if not analysis.moves(a) or not analysis.moves(b):
        found = _constant_product(analysis, first, second, analysis.known(a), analysis.known(b))
        if found is not None:
            return found
    rows = _united(analysis, first, -1)
    columns = _united(analysis, second, -1 if second.ndim == 1 else -2)
    if first.ndim > 1 and second.ndim > 1:
        rows, columns = rows[..., :, None], columns[..., None, :]
    return analysis.unions.elementwise(rows, columns)


@rule("pattern", "solve", "solve_triangular")
def _solved(analysis: Analysis, step: Step, a, b, *settings):
    """Let each column of the solution depend on its right-hand side and the whole matrix."""
    matrix, sides = analysis.of(a), analysis.of(b)
    vector = is_vector(matrix.shape, sides.shape)
    sides = sides[..., None] if vector else sides
    whole = _united(analysis, _united(analysis, matrix, -1), -1)
    columns = analysis.unions.elementwise(whole[..., None], _united(analysis, sides, -2))[..., None, :]
    found = np.broadcast_to(columns, (*columns.shape[:-2], *sides.shape[-2:]))
    return found[..., 0] if vector else found


@rule("pattern", "cholesky", "det", "eigh", "expm", "inv", "qr", "slogdet", "svd")
def _matrix_function(analysis: Analysis, step: Step, x, *settings):
    """Let each element of the results depend on the whole matrix, but not on the others of a stack."""
    whole = _united(analysis, _united(analysis, analysis.of(x), -1), -1)
    results = []
    for place in step.places:
        shape = np.shape(analysis.program.value(place))
        own = whole.reshape(whole.shape + (1,) * (len(shape) - whole.ndim))
        results.append(np.broadcast_to(own, shape))
    return results if step.several else results[0]


def _united(analysis: Analysis, sets, axis: int) -> np.ndarray:
    lines = np.moveaxis(sets, axis, -1)
    found = np.empty(lines.shape[:-1], object)
    found.reshape(-1)[:] = [analysis.unions.union_all(row) for row in lines.reshape(found.size, lines.shape[-1])]
    return found


def _constant_product(analysis: Analysis, first, second, a, b):
    """Return the pattern of a product with a constant matrix that has zeros, from the nonzero elements only."""
    value = b if a is None else a
    if value is None or np.ndim(value) != 2 or np.count_nonzero(value) == np.size(value):
        return None
    sets = np.moveaxis(second, -2, -1) if a is not None and second.ndim > 1 else second if a is not None else first
    if sets.ndim > 2:
        return None
    used = [np.flatnonzero(line) for line in (value if a is not None else np.transpose(value))]
    lines = sets.reshape(-1, sets.shape[-1])
    found = np.empty((len(lines), len(used)), object)
    for i, line in enumerate(lines):
        found[i] = [analysis.unions.union_all(line[k]) for k in used]
    if sets.ndim == 1:
        return found[0]
    return found.T if a is not None else found


@rule("pattern", "segment_max", "segment_min")
def _segments(analysis: Analysis, step: Step, data, ids, count=None, *settings):
    positions = analysis.known(ids)
    if positions is None:
        return NotImplemented
    found = analysis.empty(np.shape(analysis.program.value(step.places[0])))
    sets = analysis.of(data)
    for row, i in enumerate(positions):
        if 0 <= i < len(found):  # slices: a single element would be an array in an array
            found[i : i + 1] = analysis.unions.elementwise(found[i : i + 1], sets[row : row + 1])
    return found

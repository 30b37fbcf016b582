"""Sparse Jacobians and Hessians: where they can be other than 0, and their elements from a few products.

The product with a vector is recorded as a program. The matrix can be other than 0 where the result depends on an
element of the vector: the pattern follows the derivative rules, so also those of a custom gradient. Columns are
coloured, and the program runs once for each colour: one product finds the columns of one colour (Curtis, Powell &
Reid 1974).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _scipy, ops
from ..autodiff import inplace, record, state
from ..autodiff.cotangents import whole
from ..autodiff.graph import Node, Rule, key
from ..autodiff.modes import recording
from ..autodiff.variable import data_of, is_active, wrap
from ..errors import ArgumentError, ArgumentTypeError, GradientError
from ..jit import scalars, sparsity
from ..jit.compiled import Compiled
from . import batched
from .point import Point, is_complex
from .structured import Flat, tensors_of


def of_columns(pattern) -> np.ndarray:
    """For each column of a SciPy CSC matrix a colour; those of one colour share no row. Greedily, in order."""
    rows, columns = pattern.shape
    if np.bincount(pattern.indices, minlength=rows).max(initial=0) == columns:
        return np.arange(columns)
    taken = [0] * rows  # the colours in each row, by their bits
    colors = np.zeros(columns, int)
    indices, starts = pattern.indices.tolist(), pattern.indptr.tolist()
    for j in range(columns):
        own, found = indices[starts[j] : starts[j + 1]], 0
        for i in own:
            found |= taken[i]
        color = ~found & found + 1  # the lowest bit that is not among those found
        for i in own:
            taken[i] |= color
        colors[j] = color.bit_length() - 1
    return colors


def star(pattern) -> np.ndarray:
    """For each column of a symmetric SciPy CSC matrix its colour in a star colouring. Greedily, by falling degree."""
    count = pattern.shape[0]
    rows, columns = positions(pattern)
    if np.array_equal(rows, columns):
        return np.zeros(count, int)
    indices, starts = pattern.indices.tolist(), pattern.indptr.tolist()
    colors = [-1] * count
    first: list[dict[int, int]] = [{} for _ in range(count)]  # by colour the first neighbour of it, or -1 for several
    barred: list[set] = [set() for _ in range(count)]  # the colours of hubs of stars that a vertex is a leaf of
    for v in np.argsort(-np.diff(pattern.indptr), kind="stable").tolist():
        neighbors = [w for w in indices[starts[v] : starts[v + 1]] if w != v and colors[w] >= 0]
        forbidden = {colors[w] for w in neighbors}
        often = _repeated([colors[w] for w in neighbors])
        for w in neighbors:
            forbidden |= first[w].keys() if colors[w] in often else barred[w]
        colors[v] = color = _least(forbidden)
        for w in neighbors:
            _neighbor(first, barred, w, v, color, colors[w])
            _neighbor(first, barred, v, w, colors[w], color)
    return np.array(colors, int)


def _repeated(values: list) -> set:
    seen: set = set()
    return {x for x in values if x in seen or seen.add(x)}  # type: ignore[func-returns-value]


def _neighbor(first: list, barred: list, hub: int, leaf: int, color: int, color_of_hub: int) -> None:
    """Note a neighbour of a vertex; from the second of one colour on the vertex is the hub of a star."""
    other = first[hub].get(color)
    if other is None:
        first[hub][color] = leaf
        return
    if other >= 0:
        barred[other].add(color_of_hub)
        first[hub][color] = -1
    barred[leaf].add(color_of_hub)


def _least(forbidden: set) -> int:
    """The smallest number that is not forbidden."""
    color = 0
    while color in forbidden:
        color += 1
    return color


def sparse_jacobian(at: Point, jvp: Callable, vjp: Callable, create_graph: bool, strict: bool, strategy: str | None):
    """The Jacobian as CSC matrices, by columns or rows, whichever have fewer colours.

    Raises:
        ArgumentError, ArgumentTypeError, GradientError: as of :func:`arrays`.
    """
    xs = arrays(at, create_graph)
    forwards = program(at.given, "jvp", jvp, xs, xs)
    found = forwards.analysis
    at.several_outputs = found.several
    if at.given.owner(Compiled) is not None:
        at.given.gave(found.structure, found.several)
    if strategy == "forward-mode" or strategy is None and found.by_columns.count <= found.by_rows.count:
        whole = found.by_columns.matrix(forwards, xs, xs)
    else:
        whole = found.by_rows.matrix(program(at.given, "vjp", vjp, xs, found.outputs), xs, found.outputs)
    rows = blocks(whole, found.outputs, xs)
    if strict:
        at.check_dependence([[bool(part.nnz) for part in row] for row in rows])
    return at.rows(rows)


def sparse_hessian(at: Point, hvp: Callable, create_graph: bool, strict: bool):
    """The Hessian as CSC matrices, from products with it for the colours of a star colouring.

    With a derivative of the user's own on the way it need not be symmetric; then it is found column by column.

    Raises:
        ArgumentError, ArgumentTypeError, GradientError: as of :func:`arrays`.
    """
    xs = arrays(at, create_graph)
    second = program(at.given, "hvp", hvp, xs, xs)
    found = second.analysis
    whole = (found.by_star if found.natural else found.by_columns).matrix(second, xs, xs)
    rows = blocks(whole, xs, xs)
    if strict:
        at.check_dependence([[any(bool(part.nnz) for part in row) for row in rows]])
    return tuple(map(tuple, rows)) if at.several else rows[0][0]


def arrays(at: Point, create_graph: bool) -> list[np.ndarray]:
    """The inputs, as NumPy's real arrays.

    Raises:
        ArgumentTypeError: tensors of another library, or complex numbers.
        ArgumentError: ``create_graph``.
        GradientError: variables that require a gradient, which the matrix would lose.
    """
    if not at.backend.is_tensor_type(np.ndarray):
        raise ArgumentTypeError(
            f"`{at.name}`: `sparse=True` needs NumPy arrays, as it reads dependences off a program of their "
            f"operations; got {at.backend.name} tensors.",
            argument="inputs",
            hint="pass NumPy arrays to a function made of gradops ops; or leave `sparse` out",
        )
    if any(map(is_complex, at.leaves)):
        raise ArgumentTypeError(f"`{at.name}`: `sparse=True` needs real inputs; got complex ones.", argument="inputs")
    if create_graph:
        raise ArgumentError(
            f"`{at.name}`: a sparse matrix has no gradient: `create_graph` does not go with `sparse`.",
            argument="create_graph",
        )
    if recording.get() and any(is_active(x) for x in at.leaves):
        raise GradientError(
            f"`{at.name}`: a sparse matrix has no gradient, and an input requires one, which would be lost.",
            argument="inputs",
            hint="pass `x.detach()`",
        )
    return [np.asarray(data_of(x)) for x in at.leaves]


class Plan:
    """The unit vectors that share a product, and the place in the products where each element is read.

    Args:
        colors: for each unit vector its colour.
        places: of each element of the pattern its row in the products, and their column.
    """

    def __init__(self, pattern, colors: np.ndarray, places: tuple):
        self.pattern, self.colors, self.places = pattern, colors, places
        self.count = int(colors.max(initial=-1)) + 1

    def matrix(self, run: Callable, xs: list, vs: list):
        """The matrix, from the products ``run([*xs, *vectors])`` for each colour; ``vs`` have the vectors' shapes."""
        products = compressed(run, xs, vs, self.colors)
        pattern = self.pattern
        return csc((products[self.places], pattern.indices.copy(), pattern.indptr.copy()), pattern.shape)


class Found:
    """The findings of tracing a product.

    Attributes:
        pattern: a CSC matrix of True where the matrix may be other than 0.
        outputs: arrays of the shapes and dtypes of the function's values.
        several: whether the function gives several; ``structure``: theirs, where they are no tuple.
        natural: whether all derivatives on the way are gradops' own.
    """

    def __init__(self, pattern, outputs: list, several: bool, structure, natural: bool):
        self.pattern, self.outputs, self.natural = pattern, outputs, natural
        self.several, self.structure = several, structure

    @functools.cached_property
    def by_columns(self) -> Plan:
        """Columns of one colour have no element in one row."""
        rows, columns = positions(self.pattern)
        colors = of_columns(self.pattern)
        return Plan(self.pattern, colors, (rows, colors[columns]))

    @functools.cached_property
    def by_rows(self) -> Plan:
        """Rows of one colour have no element in one column; the products are with the transpose."""
        rows, columns = positions(self.pattern)
        colors = of_columns(self.pattern.T.tocsc())
        return Plan(self.pattern, colors, (columns, colors[rows]))

    @functools.cached_property
    def by_star(self) -> Plan:
        """The plan for a symmetric matrix: an element is read where it, or its twin, is alone in its row and colour."""
        pattern = (self.pattern + self.pattern.T).tocsc()
        pattern.sort_indices()
        rows, columns = positions(pattern)
        colors = star(pattern)
        low, high = np.minimum(rows, columns), np.maximum(rows, columns)
        if not colors.any():  # a diagonal, or nothing: every element is alone
            return Plan(pattern, colors, (rows, colors[columns]))
        count = len(colors)
        often = np.unique(rows * count + colors[columns], return_inverse=True, return_counts=True)
        alone = often[2][often[1]] == 1
        read_low = alone[np.searchsorted(columns * count + rows, high * count + low)]
        places = np.where(read_low, low, high), colors[np.where(read_low, high, low)]
        return Plan(pattern, colors, places)


def csc(parts, shape):
    """A SciPy CSC matrix."""
    return _scipy.sparse.csc_matrix(parts, shape)


def positions(pattern) -> tuple[np.ndarray, np.ndarray]:
    """The rows and columns of a CSC matrix' elements, in its order."""
    return pattern.indices.astype(np.int64), np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.indptr))


def program(func: Flat, name: str, product: Callable, xs: list, vs: list) -> Any:
    """The compiled product ``(*xs, *vs)`` to the list of its parts, with a :class:`Found`.

    Of a function that ``jit`` made it is compiled once and for all, as the function itself.
    """
    owner = func.owner(Compiled)
    compiled = owner.derived.get(name) if owner is not None else None
    if compiled is None:
        compiled = _compiled(owner.f if owner is not None else func, product, len(xs))
        if owner is not None:
            owner.derived[name] = compiled
    return compiled.program(*xs, *vs)


def _compiled(func: Callable, product: Callable, count: int) -> Compiled:
    seen: dict[str, Any] = {}

    def watched(*xs):
        y, seen["structure"] = tensors_of(func(*xs))
        seen["several"] = isinstance(y, tuple)
        seen["outputs"] = [np.zeros(np.shape(data_of(part)), _dtype(part)) for part in _listed(y)]
        hooked = state.hooks or any(getattr(x, "_hooks", None) for x in xs)
        seen["natural"] = seen["natural"] and not hooked
        return y

    def traced(*arguments):
        seen["natural"] = True
        with watching(lambda node: seen.update(natural=seen["natural"] and is_natural(node.rule))):
            return list(_listed(product(watched, arguments[:count], arguments[count:])[1]))

    def analyse(program, outputs):
        sources = program.inputs[count:]
        return Found(
            pattern(program, outputs, sources), seen["outputs"], seen["several"], seen["structure"], seen["natural"]
        )

    return Compiled(traced, (), analyse)


@contextlib.contextmanager
def watching(watch: Callable, watchers: list = state.watchers):
    """A scope in which ``watch`` is called with the node of each operation that is recorded, or as others are."""
    watchers.append(watch)
    try:
        yield
    finally:
        watchers.remove(watch)


def is_natural(rule) -> bool:
    """True of gradops' own derivatives, not those that users define."""
    return rule.vjp is None or rule.vjp.__module__ in (record.__name__, inplace.__name__, scalars.__name__)


def _listed(y) -> list:
    return list(y) if isinstance(y, (tuple, list)) else [y]


def _dtype(y):
    return getattr(data_of(y), "dtype", float)


def pattern(program, outputs: list, sources: list[int]):
    """A CSC matrix of True where an element of ``outputs``, one after the other, depends on one of ``sources``."""
    found = sparsity.dependence(program, outputs, sources)
    rows = [s for sets in found for s in sets.reshape(-1).tolist()]
    lengths = np.fromiter(map(len, rows), int, len(rows))
    columns = np.fromiter(itertools.chain.from_iterable(rows), int, lengths.sum())
    shape = len(rows), sum(math.prod(np.shape(program.value(p))) for p in sources)
    order = np.argsort(columns, kind="stable")
    starts = np.cumsum(np.bincount(columns + 1, minlength=shape[1] + 1))
    return csc((np.ones(len(columns), bool), np.repeat(np.arange(len(rows)), lengths)[order], starts), shape)


def compressed(run: Callable, xs: list, vs: list, colors: np.ndarray) -> np.ndarray:
    """The products with the sum of the unit vectors of each colour, as columns."""
    found = []
    cuts = np.cumsum([v.size for v in vs])[:-1]
    for color in range(int(colors.max(initial=-1)) + 1):
        parts = np.split(colors == color, cuts)
        seeds = [part.reshape(v.shape).astype(v.dtype) for part, v in zip(parts, vs)]
        found.append(np.concatenate([np.ravel(part) for part in run([*xs, *seeds])]))
    return np.stack(found, axis=1) if found else np.zeros((0, 0))


def seeds(colors: np.ndarray, shapes: list[tuple]) -> list[np.ndarray]:
    """For each colour the sum of its unit vectors, cut into parts of these shapes: one upon the other."""
    of_colors = (colors == np.arange(int(colors.max(initial=-1)) + 1)[:, None]).astype(float)
    parts = np.split(of_colors, np.cumsum([math.prod(shape) for shape in shapes])[:-1], 1)
    return [part.reshape(len(part), *shape) for part, shape in zip(parts, shapes)]


def together(move: Callable, seeds: list[np.ndarray]):
    """The results of ``move``, a function of variables to one, for each row of seeds: one batch, which has a gradient.

    What does not depend on the seeds is the same for all members, and its gradient is the sum of theirs.
    """
    count = len(seeds[0])
    if count == 1:
        return ops.expand_dims(move(*(wrap(row[0]) for row in seeds)), 0)
    batched.register()
    with batched.deeper() as level:
        own = [wrap(batched.Batched(row, level)) for row in seeds]
        inside = set()
        for x in own:
            x.requires_grad = True  # for their results to be recorded, and known
            inside.add(key(x))

        def note(node: Node) -> None:
            within = [edge is None or key(edge) in inside for edge in node.edges]
            if any(edge is not None and of_batch for edge, of_batch in zip(node.edges, within)):
                inside.add(node.seq)
                if not all(within):
                    node.rule = _summed(node.rule, within, count, level)

        with watching(note):
            found = move(*own)
    rows = batched.members(data_of(found), count, level)
    if not is_active(found):
        return rows
    rule = Rule("members", vjps=(lambda g, saved, edge: batched.Batched(g, level),))
    return record.record(rule, (found._node or found,), (), rows)


def _summed(rule: Rule, within: list[bool], count: int, level: int) -> Rule:
    """The rule of an operation in a batch, with sums over its members for the edges that are not ``within`` it."""

    def vjp(g, saved, node):
        found = rule.pull(g, saved, node.edges) if rule.vjp is None else rule.vjp(g, saved, node)
        return [
            x if x is None or own else ops.sum(batched.members(whole(x), count, level), 0)
            for x, own in zip(found, within)
        ]

    return Rule(rule.name, vjp=vjp, slots=rule.slots, holomorphic=rule.holomorphic)


def blocks(matrix, outputs: list, inputs: list) -> list[list]:
    """The matrix cut by output and input."""
    rows = np.cumsum([0, *(y.size for y in outputs)])
    columns = np.cumsum([0, *(x.size for x in inputs)])
    if len(rows) == len(columns) == 2:
        return [[matrix]]
    return [
        [matrix[rows[i] : rows[i + 1], columns[j] : columns[j + 1]] for j in range(len(inputs))]
        for i in range(len(outputs))
    ]

"""``Batched``: a batch of arrays that looks like one member to the code that runs on it, as in JAX's ``vmap``.

It is a backend of its own, whose kernels run NumPy's kernels on the whole batch. A Jacobian calls one backward pass
with a ``Batched`` of all unit vectors: the derivative rules are linear in the upstream gradient, so they move all
vectors together, though they are written for one. :func:`vectorized_map` calls a function of the user this way.
Elementwise kernels broadcast over the batch. Other kernels have a rule for the batch's dimension, or run once for each
member. Code that reads values (a branch, NumPy's own functions) gets a :class:`Refused`, and the caller then computes
the rows one by one.

The values of a batch may be traced arrays or batches; then the ops themselves run on the whole batch. A batch inside
another has a higher level, and batches of lower levels are shared by all its members. The values may not be variables:
a derivative inside is not recorded, and its rule does not detach what the values were computed from.
"""

from __future__ import annotations

import contextlib
import functools
import math
import string
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from .. import _tree, backends
from .._scopes import changed
from ..backends import numpy as _kernels
from ..ops import conversion, joining, numpy_functions, operators, shaping
from ..ops._dispatch import Op, of_kernels, registry
from ..ops._registry import rule


class Refused(Exception):
    """Raised where code reads a value of a batch, as the members may differ."""

    def __init__(self, *_, **__):
        super().__init__()


class Batched:
    """Arrays of one shape, stacked along the first dimension of ``value``."""

    __slots__ = ("value", "level", "__weakref__")
    __array_priority__ = 500

    def __init__(self, value: Any, level: int = 0):
        self.value = value
        self.level = level

    shape = property(lambda self: self.value.shape[1:])
    dtype = property(lambda self: self.value.dtype)
    ndim = property(lambda self: self.value.ndim - 1)
    size = property(lambda self: math.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self):
        return (Batched(self.value[:, i], self.level) for i in range(len(self)))

    def _refuse(self, *_, **__):
        raise Refused

    __bool__ = __float__ = __int__ = __complex__ = __index__ = __array__ = item = tolist = numpy = _refuse
    __setitem__ = _described = _constant = _write = _refuse


def members(x, count: int, level: int | None = None) -> Any:
    """Return the members of a batch, stacked; any other value, or a batch of another level, is repeated."""
    if isinstance(x, Batched) and level in (None, x.level):
        return x.value
    return shaping.broadcast_to(x, (count, *conversion.shape(x)))


_depth: ContextVar[int] = ContextVar("gradops_batches", default=0)


@contextlib.contextmanager
def deeper():
    """A scope for one batch, as a context manager that gives its level; enclosing batches have lower levels."""
    with changed(_depth, _depth.get() + 1):
        yield _depth.get()


def vectorized_map(function: Callable, rows: list) -> list:
    """Return ``function``, which returns a list, applied to all rows at once; the results own their memory.

    Raises:
        Refused: ``function`` reads values. It may also raise another error that a Refused has led to.
    """
    register()
    with deeper() as level:
        found = function(*(Batched(x, level) for x in rows))
    # The caller may write to the results. A function that only moves elements returns a view of the rows. One that does
    # not read them returns a constant, which is broadcast to all members and has one memory for all.
    results = []
    for y in found:
        y = members(y, len(rows[0]), level)
        shared = isinstance(y, np.ndarray) and any(
            isinstance(x, np.ndarray) and np.may_share_memory(x, y) for x in rows
        )
        results.append(y.copy() if shared or isinstance(y, np.ndarray) and not y.flags.writeable else y)
    return results


def custom_vmap(function: Callable, rule: Callable, xs: list) -> list:
    """``function(*xs)``, a list; for batches the values of ``rule(size, batched, arrays)``."""
    level = max((x.level for x in xs if isinstance(x, Batched)), default=None)
    if level is None:
        return function(*xs)
    batched = [isinstance(x, Batched) and x.level == level for x in xs]
    arrays = [x.value if is_batch else x for x, is_batch in zip(xs, batched)]
    ys, out = rule(next(len(x) for x, is_batch in zip(arrays, batched) if is_batch), batched, arrays)
    return [Batched(y, level) if is_batch else y for y, is_batch in zip(ys, out)]


wraps = True


def is_tensor_type(kind: type) -> bool:
    return issubclass(kind, Batched)


def prepare(floatx: str) -> None:
    """Do nothing, as there is nothing to set up."""


def dtype_name(x: Batched) -> str:
    return x.dtype.name


def to_numpy(x: Batched):
    x._refuse()


def components(x) -> None:
    """Return None: no object of this backend holds tensors."""


def convert(value, dtype=None, like=None):
    """Convert as NumPy does; tensors of any library are constants, shared by all members."""
    if isinstance(value, Batched) or backends.backend_of(value) not in (None, backends.embedded()):
        return value if dtype is None else registry["cast"].call(value, dtype)
    if isinstance(value, (list, tuple)) and any(isinstance(v, Batched) for v in value):
        return _stack(registry["stack"].native(backends.embedded()), [convert(v, dtype) for v in value])
    return _kernels.base.convert(value, dtype)


def __getattr__(name: str) -> Any:
    kernel = backends.embedded().kernel(name)
    if name.startswith("_") or not callable(kernel):
        raise AttributeError(name)
    return _over_batch(name, kernel)


@functools.cache
def _over_batch(name: str, kernel: Callable) -> Callable:
    found = rule_of(registry.get(name))

    def call(*arguments):
        batches = [x for x in _tree.items(arguments) if isinstance(x, Batched)]
        # Batches of one level are combined member by member. Batches of different levels are independent: each member
        # of one is combined with each member of the other. So a lower batch is put into the members of the highest
        # one, and the op runs again on it. Combining members of different levels would give numbers of the right shape
        # from the wrong members whenever the sizes are equal.
        top: Any = max(batches, key=lambda x: x.level, default=None)
        if any(x.level != top.level for x in batches):
            arguments = _tree.map_items(functools.partial(_lifted, len(top.value), top.level), arguments)
        run = kernel if all(map(_is_numpys, _tree.items(arguments))) else registry[of_kernels[name]].call
        if top is None:
            return run(*arguments)
        result = NotImplemented if found is None else found(run, *arguments)
        if result is NotImplemented:
            result = _run_each(run, len(top.value), arguments)
        for y in _tree.items(result):
            if isinstance(y, Batched):
                if isinstance(y.value, Batched) and y.value.level >= top.level:
                    raise Refused  # an op's setting is a batch, which the op's rule does not handle
                y.level = top.level
        return result

    return call


def on_rows(op: Op, *arguments):
    """Apply an op to all rows of tensors at once; they may be variables. NotImplemented if the op has no rule.

    Args:
        arguments: a :class:`Batched` for each tensor.
    """
    found = rule_of(op)
    return NotImplemented if found is None else found(op.call, *arguments)


def _is_numpys(x) -> bool:
    """False for a tensor that NumPy's kernels do not accept."""
    value = x.value if isinstance(x, Batched) else x
    return isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "shape")


def _lifted(count: int, level: int, x):
    return Batched(members(x, count, level), level) if isinstance(x, Batched) else x


def _count(xs) -> int:
    """Return the number of members of the batches in a list."""
    return next(len(x.value) for x in xs if isinstance(x, Batched))


def _run_each(kernel: Callable, count: int, arguments: tuple):
    results = [kernel(*_member(arguments, i)) for i in range(count)]
    if isinstance(results[0], (list, tuple)):
        return [Batched(joining.stack(list(parts))) for parts in zip(*results)]
    return Batched(joining.stack(results))


def _member(value, i: int):
    if isinstance(value, Batched):
        return value.value[i]
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_member(v, i) for v in value)
    return value


# Rules for the batch's dimension --------------------------------------------------------------------------------------


def rule_of(entry: Op | None) -> Callable | None:
    """Return an op's own rule, or the rule that follows from its facts.

    A rule is called as ``rule(kernel, *arguments)`` with whole batches as arguments. It returns batches, or
    NotImplemented if the op must run once for each member.
    """
    if entry is None:
        return None
    if "batch" in entry.rules:
        return entry.rules["batch"]
    if entry.facts.elementwise and not entry.many:
        return functools.partial(_elementwise_at, entry.positions)
    return _reduced if entry.facts.reduces and len(entry.tensors) == 1 else None


def _elementwise_at(positions: tuple[int, ...], kernel, *arguments):
    """Apply a kernel that is elementwise in the arguments at ``positions``; the others are settings."""
    given = list(arguments)
    # NumPy aligns shapes at their ends, but the batch's dimension is the first: a batch of n numbers times an array of
    # n elements would be multiplied element by element. So the dimensions that a member lacks are inserted after the
    # batch's.
    rank = max(len(conversion.shape(given[p])) for p in positions)
    for p in positions:
        if isinstance(given[p], Batched):
            given[p] = _padded(given[p], rank)
    return Batched(kernel(*given))


def _elementwise(kernel, *xs):
    return _elementwise_at(tuple(range(len(xs))), kernel, *xs)


def _padded(x: Batched, rank: int) -> np.ndarray:
    """Return the values with dimensions of size 1 after the batch's, so that members have ``rank`` dimensions."""
    if x.ndim == rank:
        return x.value
    return x.value.reshape(len(x.value), *(1,) * (rank - x.ndim), *x.shape)


@rule("batch", "zeros_like", "ones_like")
def _template(kernel, x, *settings):
    """Return ``zeros_like`` or ``ones_like`` for one member; all members are equal."""
    return kernel(x.value[0], *settings)


def _axes(axis, rank: int) -> Any:
    """Return axes of a member as axes of the batch; None stands for all axes of the member."""
    if axis is None:
        return tuple(range(1, rank + 1))
    if isinstance(axis, (tuple, list)):
        return tuple(a % rank + 1 for a in axis)
    return axis % rank + 1


def _reduced(kernel, x, axis=None, *settings):
    return Batched(kernel(x.value, _axes(axis, x.ndim), *settings)) if x.ndim or axis is None else NotImplemented


@rule("batch", "cumsum", "cumprod")
def _along(kernel, x, axis=None, *settings):
    """Apply an op along one axis; without an axis it goes through the flattened members."""
    if axis is None:
        return Batched(kernel(x.value.reshape(len(x.value), -1), 1, *settings))
    return Batched(kernel(x.value, _axes(axis, x.ndim), *settings))


@rule("batch", "reshape")
def _reshape(kernel, x, newshape):
    shape = (newshape,) if isinstance(newshape, int) else tuple(newshape)
    if -1 in shape:
        known = math.prod(n for n in shape if n != -1)
        shape = tuple(x.size // known if n == -1 else n for n in shape)
    return Batched(kernel(x.value, (len(x.value), *shape)))


@rule("batch", "transpose")
def _transpose(kernel, x, axes=None):
    order = range(x.ndim)[::-1] if axes is None else axes
    return Batched(kernel(x.value, (0, *(a % x.ndim + 1 for a in order))))


@rule("batch", "swapaxes")
def _swapaxes(kernel, x, axis1, axis2):
    return Batched(kernel(x.value, axis1 % x.ndim + 1, axis2 % x.ndim + 1))


@rule("batch", "expand_dims")
def _expand_dims(kernel, x, axis):
    return Batched(kernel(x.value, _axes(axis, x.ndim + (1 if isinstance(axis, int) else len(axis)))))


@rule("batch", "squeeze")
def _squeeze(kernel, x, axis=None):
    if axis is None:
        return Batched(x.value.reshape(len(x.value), *(n for n in x.shape if n != 1)))
    return Batched(kernel(x.value, _axes(axis, x.ndim)))


@rule("batch", "broadcast_to")
def _broadcast_to(kernel, x, shape):
    return Batched(kernel(_padded(x, len(shape)), (len(x.value), *shape)))


@rule("batch", "flip")
def _flip(kernel, x, axis=None):
    return Batched(kernel(x.value, _axes(axis, x.ndim)))


@rule("batch", "get_item")
def _get_item(kernel, x, key):
    if not isinstance(x, Batched) or not _keeps_meaning(key):
        return NotImplemented
    return Batched(kernel(x.value, (slice(None), *_parts(key))))


@rule("batch", "add_at", "set_at")
def _at(kernel, x, key, updates):
    if any(isinstance(part, Batched) for part in _parts(key)):
        return _write_own(kernel, x, key, updates)
    if not isinstance(updates, Batched) or not _keeps_meaning(key):
        return NotImplemented
    whole = members(x, len(updates.value))
    place = (slice(None), *_parts(key))
    return Batched(kernel(whole, place, _padded(updates, whole[place].ndim - 1)))


def _write_own(kernel, x, key, updates):
    """Write to positions that differ by member; with the member's number they are index arrays of the whole batch."""
    parts = list(_parts(key))
    arrays = [i for i, part in enumerate(parts) if isinstance(part, (Batched, np.ndarray))]
    if any(not isinstance(part, slice) or part != slice(None) for i, part in enumerate(parts) if i not in arrays):
        return NotImplemented
    count = _count(parts)
    rank = max(len(conversion.shape(parts[i])) for i in arrays)
    for i in arrays:
        parts[i] = _padded(parts[i], rank) if isinstance(parts[i], Batched) else parts[i]
    x, updates = members(x, count), members(updates, count)
    if updates.ndim != x.ndim - len(arrays) + rank:
        return NotImplemented
    # The members' numbers, `np.arange(count)`, are an index array as well. With it the indexed dimensions come first in
    # any case, while in the updates they are where the member's own key puts them.
    together = arrays[-1] - arrays[0] < len(arrays)
    updates = shaping.moveaxis(updates, _axis_range(arrays[0] + 1 if together else 1, rank), _axis_range(1, rank))
    return Batched(kernel(x, (np.arange(count).reshape(-1, *[1] * rank), *parts), updates))


def _parts(key) -> tuple:
    return key if isinstance(key, tuple) else (key,)


def _keeps_meaning(key) -> bool:
    """True if a key keeps its meaning after a slice for the batch: apart from index arrays it has only slices."""
    # NumPy puts the dimensions of index arrays where the arrays are if these are adjacent, and first if not; an integer
    # next to an array counts as one. With a slice for the batch before the key, the batch's dimension would then come
    # after them, and the shape of the result might not show it.
    parts, slices = _parts(key), (slice, type(Ellipsis))
    if not any(isinstance(part, (list, np.ndarray)) for part in parts):
        return all(type(part) in (int, type(None), *slices) for part in parts)  # True and False are masks
    places = [i for i, part in enumerate(parts) if not isinstance(part, slices)]
    known = all(type(parts[i]) in (int, list, np.ndarray) for i in places)
    return known and places[-1] - places[0] < len(places)


@rule("batch", "take")
def _take(kernel, x, indices, axis=None):
    if not isinstance(indices, Batched):
        return _along(lambda x, axis: kernel(x, indices, axis), x, axis)
    if axis is None:
        x, axis = _map_value(lambda value, first: shaping.reshape(value, (*first, -1)), x), 0
    rank = len(conversion.shape(x))
    if not isinstance(x, Batched):
        return Batched(shaping.moveaxis(kernel(x, indices.value, axis), axis % rank, 0))
    count, rest = len(x.value), [i + 1 for i in range(rank) if i != axis % rank]
    lines = shaping.transpose(x.value, (0, axis % rank + 1, *rest))
    places = shaping.reshape(indices.value, (count, indices.size, *[1] * len(rest)))
    found = registry["take_along_axis"].call(lines, places, 1)
    found = shaping.reshape(found, (count, *indices.shape, *lines.shape[2:]))
    return Batched(shaping.moveaxis(found, _axis_range(1, indices.ndim), _axis_range(axis % rank + 1, indices.ndim)))


def _axis_range(start: int, count: int) -> list[int]:
    return list(range(start, start + count))


def _map_value(function: Callable, x):
    """Apply ``function`` to an array and its leading dimensions: none, or for a batch its own."""
    return Batched(function(x.value, (len(x.value),)), x.level) if isinstance(x, Batched) else function(x, ())


@rule("batch", "take_along_axis")
def _take_along_axis(kernel, x, indices, axis=None):
    if axis is None:
        return NotImplemented
    count, rank = _count((x, indices)), len(conversion.shape(x))
    return Batched(kernel(members(x, count), members(indices, count), axis % rank + 1))


@rule("batch", "where")
def _where(kernel, condition, x1=None, x2=None):
    return NotImplemented if x1 is None else _elementwise(kernel, condition, x1, x2)


@rule("batch", "stack")
def _stack(kernel, xs, axis=0):
    return _joined(kernel, xs, axis, 1)


@rule("batch", "concatenate")
def _concatenate(kernel, xs, axis=0):
    return _joined(kernel, xs, axis, 0)


def _joined(kernel, xs, axis, more: int):
    if not isinstance(xs, (list, tuple)) or axis is None:
        return NotImplemented
    count = _count(xs)
    whole = [members(x, count) for x in xs]
    rank = whole[0].ndim - 1 + more
    return Batched(kernel(whole, axis % rank + 1))


@rule("batch", "split")
def _split(kernel, x, indices_or_sections, axis=0):
    return [Batched(part) for part in kernel(x.value, indices_or_sections, axis % x.ndim + 1)]


@rule("batch", "unstack")
def _unstack(kernel, x, num=None, axis=0):
    return [Batched(part) for part in kernel(x.value, num, axis % x.ndim + 1)]


@rule("batch", "matmul")
def _matmul(kernel, a, b):
    rank_a, rank_b = (len(conversion.shape(x)) for x in (a, b))
    if rank_a > 2 or rank_b > 2:
        return _many_matmul(kernel, a, b, rank_a, rank_b)
    # Products of each member with one shared matrix are one product with a taller matrix, which is one BLAS call;
    # NumPy's product of stacks calls BLAS for each member.
    if not isinstance(b, Batched) and rank_b == 2:  # one product for the whole batch
        rows = a.value.reshape(math.prod(a.value.shape[:-1]), a.shape[-1])
        return Batched(kernel(rows, b).reshape(len(a.value), *a.shape[:-1], conversion.shape(b)[1]))
    if not isinstance(a, Batched) and rank_a == 2 and rank_b == 1:
        return Batched(kernel(b.value, a.T))
    return _many_matmul(kernel, a, b, rank_a, rank_b)


def _many_matmul(kernel, a, b, rank_a: int, rank_b: int):
    """Multiply stacks of matrices; vectors become rows or columns."""
    rank = max(rank_a, rank_b, 2)
    first, second = _as_matrices(a, rank_a, -2, rank), _as_matrices(b, rank_b, -1, rank)
    product = kernel(first, second)
    if rank_b == 1:
        product = product[..., 0]
    if rank_a == 1:
        product = product[..., 0] if rank_b == 1 else product[..., 0, :]
    return Batched(product)


def _as_matrices(x, rank: int, vector_axis: int, to: int) -> Any:
    value = x.value if isinstance(x, Batched) else x
    if rank == 1:
        value, rank = shaping.expand_dims(value, vector_axis), 2
    return _padded(Batched(value), to) if isinstance(x, Batched) else value


@rule("batch", "tensordot")
def _tensordot(kernel, a, b, axes=2):
    if isinstance(axes, int):
        rank = a.ndim
        axes = list(range(rank - axes, rank)), list(range(axes))
    first, second = ([x % y.ndim for x in (z if isinstance(z, (list, tuple)) else [z])] for z, y in zip(axes, (a, b)))
    if isinstance(a, Batched) and isinstance(b, Batched):
        return _many_tensordot(a, b, first, second)
    if isinstance(a, Batched):
        return Batched(kernel(a.value, b, ([x + 1 for x in first], second)))
    product = kernel(a, b.value, (first, [x + 1 for x in second]))
    return Batched(shaping.moveaxis(product, a.ndim - len(first), 0))


def _many_tensordot(a: Batched, b: Batched, first: list[int], second: list[int]):
    """Contract as matrix products; the dimensions that remain are rows and columns."""
    rows = [i for i in range(a.ndim) if i not in first]
    columns = [i for i in range(b.ndim) if i not in second]

    def matrices(x: Batched, before: list[int], after: list[int]):
        moved = shaping.transpose(x.value, (0, *(i + 1 for i in (*before, *after))))
        return shaping.reshape(
            moved, (len(x.value), *(math.prod(x.shape[i] for i in part) for part in (before, after)))
        )

    product = registry["matmul"].call(matrices(a, rows, first), matrices(b, second, columns))
    sizes = [a.shape[i] for i in rows] + [b.shape[i] for i in columns]
    return Batched(shaping.reshape(product, (len(a.value), *sizes)))


@rule("batch", "einsum")
def _einsum(kernel, subscripts, operands):
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    free = next((c for c in string.ascii_letters if c not in subscripts), None)
    if "..." in subscripts or not arrow or free is None:
        return NotImplemented
    batched = [isinstance(x, Batched) for x in operands]
    inputs = ",".join(free + part if own else part for part, own in zip(inputs.split(","), batched))
    return Batched(kernel(f"{inputs}->{free}{output}", [x.value if own else x for x, own in zip(operands, batched)]))


@rule("batch", "dot")
def _dot(kernel, a, b):
    rank_a, rank_b = (len(conversion.shape(x)) for x in (a, b))
    if not rank_a or not rank_b:
        return _elementwise(registry["multiply"].call, a, b)
    return _tensordot(registry["tensordot"].call, a, b, ([rank_a - 1], [max(rank_b - 2, 0)]))


@rule("batch", "softmax", "log_softmax", "sort", "argsort")
def _along_one(kernel, x, axis=-1, *settings):
    return NotImplemented if axis is None or not x.ndim else Batched(kernel(x.value, _axes(axis, x.ndim), *settings))


@rule("batch", "roll")
def _roll(kernel, x, shift, axis=None):
    if not isinstance(x, Batched) or isinstance(shift, Batched):
        return NotImplemented
    if axis is None:
        return Batched(kernel(x.value.reshape(len(x.value), -1), shift, 1).reshape(x.value.shape))
    return Batched(kernel(x.value, shift, _axes(axis, x.ndim)))


@rule("batch", "diagonal")
def _diagonal(kernel, x, offset=0, axis1=0, axis2=1):
    return Batched(kernel(x.value, offset, axis1 % x.ndim + 1, axis2 % x.ndim + 1))


@rule("batch", "cholesky", "det", "eigh", "inv", "qr", "slogdet", "svd", "tril", "triu")
def _matrix_function(kernel, x, *settings):
    if x.ndim < 2:
        return NotImplemented
    return _tree.map_items(Batched, kernel(x.value, *settings))


@rule("batch", "solve", "solve_triangular")
def _solve(kernel, a, b, *settings):
    """Solve each member's equations; with one matrix for all members, their right-hand sides become columns."""
    rank_a, rank_b = (len(conversion.shape(x)) for x in (a, b))
    if rank_a == rank_b and (rank_a > 2 or isinstance(a, Batched)):
        return Batched(kernel(*(members(x, _count((a, b))) for x in (a, b)), *settings))
    if rank_a != 2 or rank_b not in (1, 2):
        return NotImplemented
    if isinstance(a, Batched):
        return Batched(kernel(a.value, shaping.expand_dims(members(b, len(a.value)), -1), *settings)[..., 0])
    columns = shaping.moveaxis(b.value, 0, -1).reshape(b.shape[0], -1)
    found = kernel(a, columns, *settings).reshape(*b.shape, len(b.value))
    return Batched(shaping.moveaxis(found, -1, 0))


@functools.cache
def register() -> None:
    """Register batches as a backend and define their operators."""
    backends.register("batched", sys.modules[__name__], root="gradops.functional.batched")
    operators.give(Batched)
    operators.give_array_api(Batched)
    numpy_functions.give(Batched, Refused)

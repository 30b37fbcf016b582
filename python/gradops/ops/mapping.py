"""Mapping: user functions applied along dimensions. The loops that run them are in :mod:`.control`."""

from __future__ import annotations

import builtins
import functools
import re
from collections.abc import Callable
from typing import Any

from .. import _tree, backends
from .._functions import Transformed
from ..annotations import Axis, Function, Structure
from ..errors import ArgumentError, ArgumentTypeError, Given, ShapeError
from ._checks import broadcast_shapes, check_axis
from ._registry import public
from ._structures import NUMBERS, Recorded, any_variable, as_tensor, check_functions, owner_of, rows_of
from .control import scan, while_loop
from .conversion import cast, dtype, shape
from .indexing import get_item, take
from .joining import concatenate
from .properties import fits, known_sizes
from .shaping import broadcast_to, flip, reshape

FUNCTIONS = ("associative_scan", "map", "vectorize", "vectorized_map")
"""The functions here that are not an ``@op``, as they take structures of tensors and call functions."""


__family__ = """Mapped functions.

A function applied to each row or element, or between neighbours. Gradients also reach tensors that it closes over.

See Also:
    :func:`scan`, :func:`cumsum`, :func:`rearrange`.
"""


@public
def map(f: Function, xs: Structure) -> Structure:
    """``f`` applied to each row of ``xs`` in turn, with the results stacked.

    Args:
        f: a function of a row: a structure like ``xs``, without the first dimension.
        xs: tensors, or structures of them, to iterate over along the first dimension.

    Returns:
        The results of ``f``, stacked along a new first dimension.

    Raises:
        ShapeError: ``xs`` of different sizes, or without a first dimension.
        ArgumentError: ``xs`` without a tensor.

    Gradient:
        Through every call, to ``xs`` and what ``f`` closes over.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> def total(xs):
        ...     return ops.sum(ops.map(lambda x: x**2, xs))
        >>> print(gradops.grad(total)(np.array([1.0, 2.0, 3.0])))
        [2. 4. 6.]

    See Also:
        :func:`vectorized_map`, :func:`scan`.
    """
    check_functions("map", 1, f=f)
    if not _tree.leaves_of(xs):
        raise ArgumentError("`map`: `xs` must have at least one tensor.", argument="xs")
    return scan(lambda carry, x: (carry, f(x)), None, xs)[1]


@public
def vectorized_map(function: Function, elements: Structure) -> Structure:
    """``function`` applied to each row of ``elements``, vectorized if the library can, with the results stacked.

    ``jax.vmap``, ``torch.vmap`` and ``tf.vectorized_map`` run it; on NumPy and in :func:`gradops.jit`, the batched ops.
    For a function that reads values, and for variables, it is :func:`map`, which may call the function again.

    Args:
        function: a function of a row: a structure like ``elements``, without the first dimension.
        elements: tensors, or structures of them, to iterate over along the first dimension.

    Returns:
        The results of ``function``, stacked along a new first dimension.

    Raises:
        ShapeError: ``elements`` of different sizes, or without a first dimension.
        ArgumentError: ``elements`` without a tensor.

    Gradient:
        Through every call, to ``elements`` and what ``function`` closes over.

    Examples:
        Gradients of each example:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> w, xs, ys = np.array([1.0, -1.0]), np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([0.0, 1.0])
        >>> def loss(w, x, y):
        ...     return (ops.dot(w, x) - y) ** 2
        >>> print(ops.vectorized_map(lambda example: gradops.grad(loss)(w, *example), (xs, ys)))
        [[-2. -4.]
         [12.  0.]]

    See Also:
        :func:`gradops.vmap` for other dimensions and arguments; :func:`map`, one after the other; :func:`vectorize`.
    """
    check_functions("vectorized_map", function=function)
    rows, structure, count, owner = rows_of("vectorized_map", elements, "elements")
    if not rows:
        raise ArgumentError("`vectorized_map`: `elements` must have at least one tensor.", argument="elements")
    return map_rows("vectorized_map", lambda *leaves: function(_tree.unflatten(structure, leaves)), rows, count, owner)


by_batches: Callable | None = None
"""The kernel of :func:`vectorized_map` for libraries without one, registered by a floor above."""


def map_rows(
    name: str,
    function: Callable,
    rows: list,
    count: int | None,
    owner: backends.Backend,
    chunk_size: int | None = None,
    **settings,
):
    """Return ``function`` of the rows of tensors, vectorized or one after the other, stacked.

    Args:
        chunk_size: the most rows that are vectorized at once; None for all.
        settings: settings of the library's map, which is then the only way.
    """
    kernel = owner.kernel("vectorized_map") or by_batches
    if count != 0 and kernel is not None and (chunk_size != 1 or settings) and not any_variable(rows):
        if chunk_size is not None and (count is None or count > chunk_size):
            return _map_chunks(name, function, rows, count, owner, chunk_size, **settings)
        try:
            return vectorized_rows(name, function, rows, owner, **settings)
        except owner.unwinds:
            raise
        except Exception:
            if settings:
                raise
            # The loop below works, or raises the function's own error.
    return map(lambda leaves: function(*leaves), rows)


def vectorized_rows(name: str, function: Callable, rows: list, owner: backends.Backend, **settings):
    """Return ``function`` of the rows of tensors, stacked, in one call; ``settings`` are those of the library's map.

    Raises:
        Recorded: ``function`` returns a variable.
    """
    kernel: Any = owner.kernel("vectorized_map") or by_batches
    found: list[_tree.Structure] = []

    def flat(*leaves):
        given, result = _tree.flatten(function(*leaves))
        found.append(result)
        if any_variable(given):
            raise Recorded
        return [as_tensor(name, x, owner, "function") for x in given]

    leaves = kernel(flat, rows, **settings)
    return _tree.unflatten(found[-1], leaves)


def _map_chunks(
    name: str, function: Callable, rows: list, count: int | None, owner: backends.Backend, size: int, **settings
):
    """Return ``map_rows`` of full chunks, one after the other, followed by the remaining rows."""

    def chunk(xs: list, count: int | None):
        return map_rows(name, function, xs, count, owner, **settings)

    def run(rows):
        sizes = [shape(x) for x in rows]
        full = sizes[0][0] // size * size  # a tensor if a graph does not know the number of rows
        found = map(lambda xs: chunk(xs, size), [reshape(x[:full], (-1, size, *s[1:])) for x, s in zip(rows, sizes)])
        found = _tree.map_leaves(lambda y: reshape(y, (-1, *shape(y)[2:])), found)
        if count is None or full != count:
            rest = chunk([x[full:] for x in rows], None if count is None else count - full)
            found = _tree.map_leaves(lambda *parts: concatenate(list(parts)), found, rest)
        leaves, form = _tree.flatten(found)
        structure[:] = [form]
        return leaves

    structure: list[_tree.Structure] = []
    kernel = owner.kernel("map_chunks")
    try:
        leaves = run(rows) if kernel is None else kernel(run, rows)
    except Exception:
        if kernel is None:
            raise
        leaves = run(rows)  # works where a graph reads values, or raises the function's own error
    return _tree.unflatten(structure[0], leaves)


@public
def vectorize(pyfunc: Function, *, excluded=None, signature: str | None = None) -> Function:
    """A function that applies ``pyfunc`` to each element of its arguments, broadcast, as ``numpy.vectorize``.

    Args:
        pyfunc: a function of 0-d tensors, or of tensors as in ``signature``; :func:`vectorized_map` runs it.
        excluded: positions and names of arguments that are passed on unchanged.
        signature: the dimensions of ``pyfunc``'s arguments and results, such as ``"(m,n),(n)->(m)"``.

    Returns:
        A function of tensors, numbers and lists; its results have the broadcast dimensions first.

    Raises:
        ArgumentError: an invalid signature; from the returned function, a wrong number of arguments.
        ShapeError: from the returned function, arguments that do not broadcast or do not fit the signature.
        ArgumentTypeError: an ``excluded`` that is not a set.

    Gradient:
        Through every call, to the arguments and what ``pyfunc`` closes over.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([1.0, 3.0])
        >>> print(ops.vectorize(lambda a: a**2)(x))
        [1. 9.]
        >>> print(gradops.grad(lambda x: ops.sum(ops.vectorize(lambda a: a**2)(x)))(x))
        [2. 6.]
    """
    check_functions("vectorize", pyfunc=pyfunc)
    if not (excluded is None or isinstance(excluded, (list, tuple, set, frozenset))):
        raise ArgumentTypeError(
            "`vectorize`: `excluded` must be a set; got {given}.",
            argument="excluded",
            given=Given(repr(excluded), excluded),
        )
    left_out = frozenset(() if excluded is None else excluded)
    inputs = outputs = None
    if signature is not None:
        inputs, outputs = _parse_signature(signature)

    def vectorized(*arguments, **keywords):
        places: list = [i for i in range(len(arguments)) if i not in left_out]
        if inputs is not None and len(places) != len(inputs):
            raise ArgumentError(
                f"`vectorize`: the signature {signature!r} has {len(inputs)} arguments; got {len(places)}."
            )
        names = [name for name in keywords if name not in left_out]
        given = [arguments[i] for i in places] + [keywords[name] for name in names]
        owner = owner_of("vectorize", *given)
        tensors = [as_tensor("vectorize", x, owner, "the argument") for x in given]
        cores = [*(inputs or [()] * len(places)), *([()] * len(names))]
        loop = _loop_shape(signature, tensors, cores)

        def call(parts):
            every, named = list(arguments), dict(keywords)
            for i, x in zip(places, parts):
                every[i] = x
            named.update(zip(names, parts[len(places) :]))
            result = pyfunc(*every, **named)
            if outputs is not None and (len(outputs) > 1) != isinstance(result, (list, tuple)):
                raise ArgumentError(f"`vectorize`: {signature!r} gives {len(outputs)} results; the function did not.")
            return result

        if not loop:
            return call(tensors)
        rows = {}
        for i, (x, core) in enumerate(zip(tensors, cores)):
            own = shape(x)[len(shape(x)) - len(core) :] if core else ()
            if len(shape(x)) > len(core):  # an argument without dimensions to loop over is the same in each call
                rows[i] = reshape(broadcast_to(x, (*loop, *own)), (-1, *own))

        def one(row):
            return call([row[str(i)] if i in rows else x for i, x in enumerate(tensors)])

        result = vectorized_map(one, {str(i): x for i, x in rows.items()})
        return _tree.map_leaves(lambda y: reshape(y, (*loop, *shape(y)[1:])), result)

    return Transformed(vectorized, functools.partial(vectorize, excluded=excluded, signature=signature), pyfunc)


_GROUP = r"\(\s*(?:[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)?\s*\)"
_SIGNATURE = re.compile(rf"\s*{_GROUP}(?:\s*,\s*{_GROUP})*\s*->\s*{_GROUP}(?:\s*,\s*{_GROUP})*\s*\Z")


def _parse_signature(signature: str) -> list[list[tuple]]:
    if not isinstance(signature, str) or not _SIGNATURE.match(signature):
        raise ArgumentError(
            "`vectorize`: `signature` must be like '(m,n),(n)->(m)'; got {given}.",
            argument="signature",
            given=Given(repr(signature), signature),
        )
    return [
        [tuple(re.findall(r"\w+", group)) for group in re.findall(r"\(([^)]*)\)", side)]
        for side in signature.split("->")
    ]


def _loop_shape(signature, tensors, cores) -> tuple:
    """Return the shape to loop over: the broadcast shape of the arguments' dimensions before the signature's."""
    sizes: dict[str, int] = {}
    for x, core in zip(tensors, cores):
        own = shape(x)[len(shape(x)) - len(core) :] if core else ()
        if len(own) < len(core) or not all(fits((sizes.setdefault(name, n),), (n,)) for name, n in zip(core, own)):
            raise ShapeError(
                f"`vectorize`: shapes {', '.join(str(shape(t)) for t in tensors)} do not fit {signature!r}."
            )
    return broadcast_shapes(
        "vectorize",
        [f"arguments[{i}]" for i in range(len(tensors))],
        *(shape(x)[: len(shape(x)) - len(core)] for x, core in zip(tensors, cores)),
    )


@public
def associative_scan(f: Function, elems: Structure, reverse: bool = False, axis: Axis = 0) -> Structure:
    """Running results of an associative function along a dimension, in a logarithmic number of calls.

    Neighbours are combined in pairs; the running results of the pairs give all others (Blelloch 1990).

    Args:
        f: a function of two structures like ``elems`` that returns one, for many elements along ``axis`` at once;
            ``f(a, f(b, c))`` must equal ``f(f(a, b), c)``.
        elems: tensors of one size along ``axis``.
        reverse: whether to start from the end.

    Returns:
        ``elems[0]``, ``f(elems[0], elems[1])``, ``f(f(elems[0], elems[1]), elems[2])``, ... along ``axis``.

    Raises:
        AxisError: an axis out of range.
        ShapeError: different sizes along ``axis``.
        ArgumentError: a result of another structure.

    Gradient:
        Through every call, to ``elems`` and what ``f`` closes over.

    Examples:
        A product of all before each, and its derivative:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> x = np.array([1.0, 2.0, 3.0])
        >>> print(ops.associative_scan(ops.multiply, x))
        [1. 2. 6.]
        >>> print(gradops.grad(lambda x: ops.associative_scan(ops.multiply, x)[-1])(x))
        [6. 3. 2.]

    See Also:
        :func:`scan`, :func:`cumsum`, :func:`cumprod`.
    """
    check_functions("associative_scan", 2, f=f)
    leaves, structure = _tree.flatten(elems)
    if leaves and all(type(x) in NUMBERS for x in leaves):
        leaves, structure = [elems], _tree.LEAF
    owner = owner_of("associative_scan", *leaves)
    leaves = [as_tensor("associative_scan", x, owner, "elems") for x in leaves]
    if not leaves:
        raise ArgumentError("`associative_scan`: `elems` must have at least one tensor.", argument="elems")
    axes = [check_axis("associative_scan", axis, len(shape(x))) for x in leaves]
    shapes = [shape(x) for x in leaves]
    sizes = known_sizes(sizes[a] for sizes, a in zip(shapes, axes) if sizes)
    if () in shapes or len(sizes) > 1:
        raise ShapeError(
            "`associative_scan`: the tensors in `elems` must be of one size along `axis`; got shapes "
            f"{', '.join(map(str, shapes))}.",
            argument="elems",
        )

    def part(xs, start, stop=None, step=None):
        return [get_item(x, (slice(None),) * a + (slice(start, stop, step),)) for x, a in zip(xs, axes)]

    def combine(first, second):
        result, found = _tree.flatten(f(_tree.unflatten(structure, first), _tree.unflatten(structure, second)))
        if found != structure:
            raise ArgumentError(
                f"`associative_scan`: `f` must return what `elems` is, a structure {structure}; got {found}.",
                argument="f",
            )
        return result

    def run(xs):
        count = shape(xs[0])[axes[0]]
        if count < 2:
            return xs
        odd = run(combine(part(xs, 0, count - 1, 2), part(xs, 1, None, 2)))
        even = part(xs, 0, 1)
        if count > 2:
            later = combine(odd if count % 2 else part(odd, 0, -1), part(xs, 2, None, 2))
            even = [concatenate([a, b], i) for a, b, i in zip(even, later, axes)]
        half = (count + 1) // 2
        order = [i // 2 + (half if i % 2 else 0) for i in builtins.range(count)]
        return [take(concatenate([a, b], i), order, i) for a, b, i in zip(even, odd, axes)]

    def run_unknown(xs):
        """Return the results for a size that the graph does not know, by doubling the distance between operands."""
        count = shape(xs[0])[axes[0]]

        def double(far, xs):
            later = combine(part(xs, 0, count - far), part(xs, far, None))
            return 2 * far, [concatenate([a, b], i) for a, b, i in zip(part(xs, 0, far), later, axes)]

        return while_loop(lambda far, _: far < count, double, (cast(1, dtype(count)), xs))[1]

    if reverse:
        leaves = [flip(x, a) for x, a in zip(leaves, axes)]
    done = run(leaves) if sizes else run_unknown(leaves)
    if reverse:
        done = [flip(x, a) for x, a in zip(done, axes)]
    return _tree.unflatten(structure, done)


for _name in (
    "map_rows",
    *FUNCTIONS,
):  # TensorFlow's AutoGraph must not convert them: their Python loops are intended
    globals()[_name].autograph_info__ = None

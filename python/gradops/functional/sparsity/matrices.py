"""Sparse Jacobians and Hessians: where they may be nonzero, and their elements from a few products.

The product with a vector is recorded as a program. Where the program's result depends on an element of the vector, the
matrix may be nonzero; so the pattern follows the derivative rules, including custom gradients. Columns are then
coloured so that columns of one colour share no row, and one product per colour yields all elements (Curtis, Powell &
Reid 1974).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autodiff import state
from ...autodiff.modes import recording
from ...autodiff.variable import data_of, is_active
from ...errors import ArgumentError, ArgumentTypeError, GradientError
from ...jit.compiled import Compiled
from ...jit.rolling import is_natural
from ..point import Point, is_complex
from ..structured import Flat, tensors_of
from .patterns import Found, blocks, pattern
from .strategy import hessian_plan


def sparse_jacobian(at: Point, jvp: Callable, vjp: Callable, create_graph: bool, strict: bool, strategy: str | None):
    """Return the Jacobian as CSC matrices, compressed by columns or rows, whichever have fewer colours.

    Raises:
        ArgumentError, ArgumentTypeError, GradientError: see :func:`arrays`.
    """
    xs = arrays(at, create_graph)
    forwards = program(at.given, "jvp", jvp, xs, xs)
    found = forwards.analysis
    at.several_outputs = found.several
    if at.given.owner(Compiled) is not None:
        at.given.gave(found.structure, found.several)
    if strategy == "forward-mode" or strategy is None and found.column_plan.count <= found.row_plan.count:
        whole = found.column_plan.matrix(forwards, xs, xs)
    else:
        whole = found.row_plan.matrix(program(at.given, "vjp", vjp, xs, found.outputs), xs, found.outputs)
    rows = blocks(whole, found.outputs, xs)
    if strict:
        at.check_dependence([[bool(part.nnz) for part in row] for row in rows])
    return at.rows(rows)


def sparse_hessian(at: Point, hvp: Callable, create_graph: bool, strict: bool):
    """Return the Hessian as CSC matrices, from one Hessian-vector product for each colour of a star colouring.

    With custom derivatives the Hessian need not be symmetric; its columns are then coloured instead.

    Raises:
        ArgumentError, ArgumentTypeError, GradientError: see :func:`arrays`.
    """
    xs = arrays(at, create_graph)
    second = program(at.given, "hvp", hvp, xs, xs)
    found = second.analysis
    whole = hessian_plan(found).matrix(second, xs, xs)
    rows = blocks(whole, xs, xs)
    if strict:
        at.check_dependence([[any(bool(part.nnz) for part in row) for row in rows]])
    return tuple(map(tuple, rows)) if at.several else rows[0][0]


def arrays(at: Point, create_graph: bool) -> list[np.ndarray]:
    """Return the inputs, as real NumPy arrays.

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
            f"`{at.name}`: a sparse matrix has no gradient: `create_graph` cannot be combined with `sparse`.",
            argument="create_graph",
        )
    if recording.get() and any(is_active(x) for x in at.leaves):
        raise GradientError(
            f"`{at.name}`: a sparse matrix has no gradient, and an input requires one, which would be lost.",
            argument="inputs",
            hint="pass `x.detach()`",
        )
    return [np.asarray(data_of(x)) for x in at.leaves]


def program(func: Flat, name: str, product: Callable, xs: list, vs: list) -> Any:
    """Return the compiled product ``(*xs, *vs)``, a function that returns the list of its parts, with a :class:`Found`.

    For a function made by ``jit`` it is compiled once, like the function itself.
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
        with state.watching(lambda node: seen.update(natural=seen["natural"] and is_natural(node.rule))):
            return list(_listed(product(watched, arguments[:count], arguments[count:])[1]))

    def analyse(program, outputs):
        sources = program.inputs[count:]
        return Found(
            pattern(program, outputs, sources), seen["outputs"], seen["several"], seen["structure"], seen["natural"]
        )

    return Compiled(traced, (), analyse)


def _listed(y) -> list:
    return list(y) if isinstance(y, (tuple, list)) else [y]


def _dtype(y):
    return getattr(data_of(y), "dtype", float)

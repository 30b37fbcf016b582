"""Control flow: user functions applied by condition, in loops, and along dimensions.

Where values are known (NumPy, PyTorch, eager TensorFlow, variables), Python runs the functions. Gradients then flow as
in hand-written Python, also to tensors that the functions close over. Where values are traced, the library's own
primitives run: ``lax.scan``, ``lax.cond``, ``lax.while_loop`` on JAX, ``tf.while_loop``, ``tf.cond`` in TensorFlow's
graphs. A backend with such primitives defines them in its ``control`` module, on flat lists of tensors; they return
NotImplemented if Python should run instead. In functions compiled for NumPy the ``recorder``
(:mod:`gradops.jit.control`) records the calls.

A loop's state must keep its structure, shapes and dtypes, on every backend. Structures are nested tuples,
named tuples, lists and dicts of tensors.
"""

from __future__ import annotations

import builtins
import math

from .. import _tree, backends
from ..annotations import Function, Index, Integer, Structure, Tensor
from ..backends import tracing
from ..errors import ArgumentError, ArgumentTypeError
from ._checks import integer
from ._registry import public
from ._structures import (
    Recorded,
    State,
    any_variable,
    as_tensor,
    check_functions,
    is_variable,
    native,
    owner_of,
    recorded,
    rows_of,
    scalar,
    traceable,
    value_of,
)
from .conversion import cast, copy, dtype, shape
from .elementwise import equal, logical_and
from .indexing import where
from .joining import stack, unstack
from .properties import unknown
from .scattering import _zeros

FUNCTIONS = ("cond", "fori_loop", "scan", "switch", "while_loop")
"""The functions here that are not an ``@op``, as they take structures of tensors and call functions."""


__family__ = """Conditional branches.

One of several functions, chosen by a value. If the value is known, Python calls that function, so that gradients flow
as in hand-written Python, also to tensors that the function closes over. If the value is traced, the library's own
primitive chooses (``lax.cond``, ``tf.cond``).

See Also:
    :func:`where` for a choice by element; :func:`while_loop`.
"""


@public
def cond(pred: Tensor, true_fn: Function, false_fn: Function, *operands: Structure) -> Structure:
    """The result of ``true_fn(*operands)`` if ``pred``, else of ``false_fn(*operands)``.

    If ``pred`` is known, only one is called.

    Args:
        pred: a single truth value.
        true_fn, false_fn: functions of the operands. If ``pred`` is traced, so are both, and their results must have
            the same structure, shapes and dtypes.

    Returns:
        The result of the function that is called.

    Raises:
        ShapeError: several truth values.
        ArgumentTypeError: an argument that is no function.

    Gradient:
        Through the function that was called.

    Examples:
        >>> import gradops
        >>> from gradops import ops
        >>> def f(x):
        ...     return ops.cond(x > 0, lambda: x**2, lambda: -x)
        >>> print(gradops.grad(f)(3.0), gradops.grad(f)(-3.0))
        6.0 -1.0

    See Also:
        :func:`where` for a choice by element, :func:`switch` among several.
    """
    check_functions("cond", true_fn=true_fn, false_fn=false_fn)
    pred = scalar("cond", pred, "pred")
    known = value_of(pred, bool)
    if known is not None:
        return true_fn(*operands) if known else false_fn(*operands)
    return _branch("cond", pred, [lambda f=f: f(*operands) for f in (false_fn, true_fn)])


@public
def switch(index: Index, branches: Structure, *operands: Structure) -> Structure:
    """The result of ``branches[index](*operands)``, with the index clamped to the range of branches.

    Args:
        index: a single whole number.
        branches: a list of functions. If ``index`` is traced, so are all of them, and their results must have the same
            structure, shapes and dtypes.

    Returns:
        The result of the function that is called.

    Raises:
        ArgumentError: no branches.
        ArgumentTypeError: a branch that is no function, or an index that is no whole number.

    Gradient:
        Through the function that was called.

    Examples:
        >>> import gradops
        >>> from gradops import ops
        >>> def f(x, i):
        ...     return ops.switch(i, [lambda x: x**2, lambda x: x**3], x)
        >>> print(gradops.grad(f)(2.0, 0), gradops.grad(f)(2.0, 1))
        4.0 12.0
    """
    if not isinstance(branches, (list, tuple)) or not branches:
        raise ArgumentError("`switch`: `branches` must be a list of at least one function.", argument="branches")
    check_functions("switch", **{f"branches[{i}]": f for i, f in enumerate(branches)})
    index = scalar("switch", index, "index")
    if not isinstance(index, int) and dtype(index)[0] not in "iu":
        index = integer("switch", index, "index")
    known = value_of(index, int)
    if known is not None:
        return branches[builtins.max(0, builtins.min(known, len(branches) - 1))](*operands)
    return _branch("switch", index, [lambda f=f: f(*operands) for f in branches])


def _branch_as_read(op: str, index, functions: list) -> Structure:
    """``torch.compile`` keeps structures itself; the functions must not write to a list, nor return their inputs."""
    owner = owner_of(op, index)

    def of_tensors(function):
        return lambda: _tree.map_leaves(lambda x: copy(as_tensor(op, x, owner, "the result")), function())

    return owner.kernel("branch")(index, [of_tensors(f) for f in functions])


@tracing.read_as(_branch_as_read)
def _branch(op: str, index, functions: list) -> Structure:
    """Return the result of one of several functions, by an index or truth value known only when a program runs."""
    owner = owner_of(op, index)
    found: list[_tree.Structure] = []

    def leaves_of(function):
        def run():
            leaves, structure = _tree.flatten(function())
            if found and structure != found[0]:
                raise ArgumentError(
                    f"`{op}`: all functions must give the same structure; got {found[0]} and {structure}."
                )
            found.append(structure)
            return [as_tensor(op, x, owner, "the result") for x in leaves]

        return run

    leaves = choose(op, index, [leaves_of(f) for f in functions])
    return _tree.unflatten(found[0], leaves)


def choose(op: str, index, functions: list) -> list:
    """Return the tensors that one of several functions returns, chosen by a traced index or truth value."""
    owner = owner_of(op, index)
    leaves = recorded("branch", op, index, functions)
    if leaves is NotImplemented:
        leaves = native(owner, "branch", [index], index, [traceable(f) for f in functions])
    if leaves is NotImplemented:  # with variables, all functions are recorded and one result is selected
        choices = [f() for f in functions]
        leaves = choices[-1]
        for i in builtins.range(len(choices) - 2, -1, -1):
            takes = equal(index, False) if op == "cond" else index <= i
            leaves = [where(takes, a, b) for a, b in zip(choices[i], leaves)]
    return leaves


__family__ = """Loops.

Functions applied repeatedly. If values are known, the loop is Python's, so that gradients flow as in hand-written
Python, also to tensors that the functions close over. If values are traced, the loop is the library's own primitive
(``lax.scan``, ``lax.while_loop``, ``tf.while_loop``). ``jit`` on NumPy compiles a loop as one step.

See Also:
    :func:`map`, :func:`cond`, :func:`cumsum`, :func:`gradops.functional.fixed_point`.
"""


@public
def scan(
    f: Function,
    init: Structure,
    xs: Structure = None,
    length: Integer | None = None,
    reverse: bool = False,
    unroll: Integer = 1,
) -> tuple:
    """Apply ``f`` to a state and each row of ``xs`` in turn, collecting the second of its results.

    Args:
        f: ``carry, y = f(carry, x)``; ``x`` is None without ``xs``, ``y`` may be None.
        init: the first state; numbers become tensors. It must keep its structure, shapes and dtypes.
        xs: tensors, or structures of them, to iterate over along the first dimension.
        length: the number of rows; needed without ``xs``.
        reverse: go from the last row to the first; the results stay in the order of ``xs``.
        unroll: the number of steps that a compiled loop takes at once (JAX); True for all. (On NumPy a compiled loop is
            one step of the program; with True, each iteration is one.)

    Returns:
        The last state, and each ``y``, stacked along a new first dimension.

    Raises:
        ArgumentError: neither ``xs`` nor ``length``, a ``length`` that is not that of ``xs``, or a state that
            changes its structure or dtypes.
        ShapeError: a state that changes its shapes, ``xs`` of different sizes.

    Gradient:
        Through every step, to ``init``, ``xs`` and what ``f`` closes over.

    Examples:
        An exponential smoothing of a series, and its derivative by the rate:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> series = np.array([1.0, 3.0, 2.0, 5.0])
        >>> def smoothed(rate):
        ...     def step(level, x):
        ...         level = level + rate * (x - level)
        ...         return level, level
        ...     return ops.scan(step, np.array(0.0), series)[1]
        >>> print(smoothed(0.5))
        [0.5    1.75   1.875  3.4375]
        >>> print(gradops.grad(lambda rate: smoothed(rate)[-1])(0.5))
        4.0

    See Also:
        :func:`fori_loop`, :func:`while_loop`, :func:`associative_scan`, which runs in parallel.
    """
    check_functions("scan", 2, f=f)
    rows, row_structure, count, owner = rows_of("scan", xs, "xs")
    if not rows:
        if length is None:
            raise ArgumentError("`scan`: `length` is needed without `xs`.", argument="length")
        count = integer("scan", length, "length")
        owner = owner_of("scan", *_tree.leaves_of(init))
    elif not (length is None or count is None or unknown(length)) and integer("scan", length, "length") != count:
        raise ArgumentError(
            f"`scan`: `length` must be {count}, the number of rows of `xs`; got {length}.", argument="length"
        )
    owner = owner_of("scan", *rows, *_tree.leaves_of(init)) if rows else owner
    rows = [as_tensor("scan", x, owner, "xs") for x in rows]
    state = State("scan", init, owner, "init")
    y_structure: list[_tree.Structure] = []

    def step(carry: list, x: list) -> tuple[list, list]:
        result = f(state.pack(carry), _tree.unflatten(row_structure, x))
        if not isinstance(result, (list, tuple)) or len(result) != 2:
            raise ArgumentError("`scan`: `f` must return a pair of the next state and a result.", argument="f")
        leaves, structure = _tree.flatten(result[1])
        if y_structure and structure != y_structure[0]:
            raise ArgumentError(
                f"`scan`: `f` must give results of one structure; got {y_structure[0]} and {structure}.", argument="f"
            )
        y_structure.append(structure)
        return state.unpack(result[0]), [as_tensor("scan", y, owner, "f") for y in leaves]

    def traced(carry, x):
        carry, y = step(list(carry), list(x))
        if any_variable([*carry, *y]):
            raise Recorded
        return carry, y

    unroll = unroll if isinstance(unroll, bool) else integer("scan", unroll, "unroll")
    done = NotImplemented
    if unroll is not True and count is not None:
        done = recorded("scan", step, state.leaves, rows, count, bool(reverse))
    if done is NotImplemented:
        done = native(owner, "scan", [*state.leaves, *rows], traced, state.leaves, rows, count, bool(reverse), unroll)
    if done is NotImplemented:
        y_structure.clear()
        done = _scan_in_python(step, state.leaves, rows, count, bool(reverse), owner)
    carry, ys = done
    return state.pack(carry), _tree.unflatten(y_structure[0], ys)


def _scan_in_python(step, carry, rows, count, reverse, owner):
    parts = [unstack(x) for x in rows]
    if not count:
        # no rows: one step on zeros, which is discarded, gives the structure of the results
        _, ys = step(carry, [_zeros(x, shape(x)[1:]) for x in rows])
        return carry, [_zeros(y, (0, *shape(y))) for y in ys]
    results = []
    order = builtins.range(count - 1, -1, -1) if reverse else builtins.range(count)
    for i in order:
        carry, ys = step(carry, [part[i] for part in parts])
        results.append(ys)
    if reverse:
        results.reverse()
    return carry, [stack(list(column)) for column in zip(*results)]


@public
def while_loop(
    cond: Function, body: Function, loop_vars: Structure, maximum_iterations: Integer | None = None
) -> Structure:
    """Apply ``body`` to a state as long as ``cond`` holds.

    Args:
        cond: a function of the state to a single truth value. A tuple or list is passed as several arguments.
        body: a function of the state to the next, which must have the same structure, shapes and dtypes.
        loop_vars: the first state; numbers become tensors.
        maximum_iterations: the most steps. On JAX, a traced loop has a reverse-mode derivative only with this bound;
            without it gradops' derivatives raise a GradientError.

    Returns:
        The last state.

    Raises:
        ArgumentError: a state that changes its structure or dtypes.
        ShapeError: a state that changes its shapes, several truth values.

    Gradient:
        Through every step taken, to ``loop_vars`` and what ``body`` closes over.

    Examples:
        Newton's iteration for a square root, differentiated through its steps:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> def sqrt(a):
        ...     def goes_on(x):
        ...         return ops.abs(x * x - a) > 1e-12
        ...     return ops.while_loop(goes_on, lambda x: ((x + a / x) / 2,), (np.array(1.0),))[0]
        >>> print(sqrt(4.0).round(6), gradops.grad(sqrt)(4.0).round(6))
        2.0 0.25

    See Also:
        :func:`gradops.functional.fixed_point`, which need not record the steps; :func:`fori_loop`; :func:`scan`.
    """
    check_functions("while_loop", cond=cond, body=body)
    bound = None if maximum_iterations is None else integer("while_loop", maximum_iterations, "maximum_iterations")
    state = State("while_loop", loop_vars, owner_of("while_loop", *_tree.leaves_of(loop_vars)), "loop_vars")
    several = isinstance(loop_vars, (list, tuple))

    def given(function, leaves):
        value = state.pack(leaves)
        return function(*value) if several else function(value)

    def holds(leaves):
        return scalar("while_loop", given(cond, list(leaves)), "cond")

    def step(leaves):
        value = given(body, list(leaves))
        if several and len(loop_vars) == 1 and not isinstance(value, (list, tuple)):
            value = [value]
        return state.unpack(value)

    leaves, steps = state.leaves, 0
    while bound is None or steps < bound:
        go = holds(leaves)
        known = value_of(go, bool)
        if known is None:
            owner = backends.backend_of(go)
            if owner is not None and owner is not state.owner:  # plain numbers became tensors
                state = State("while_loop", state.pack(leaves), owner, "loop_vars")
                leaves = state.leaves
            left = None if bound is None else bound - steps
            done = recorded("while_loop", holds, step, leaves, left)
            if done is NotImplemented:
                done = native(state.owner, "while_loop", leaves, holds, traceable(step), leaves, left)
            if done is NotImplemented and left is not None and not any_variable(leaves):
                done = bounded(holds, step, leaves, left)
            if done is NotImplemented:
                raise ArgumentError(
                    "`while_loop`: variables cannot be recorded in a loop whose condition is traced.", argument="cond"
                )
            return state.pack(done)
        if not known:
            break
        leaves = step(leaves)
        steps += 1
    return state.pack(leaves)


def bounded(holds, step, leaves: list, bound: int) -> list:
    """``while_loop`` on leaves as two nested scans, each as long as the square root of the bound.

    The scans have a reverse-mode derivative, and the loop still ends soon after its condition is false.
    """
    side = math.isqrt(builtins.max(bound - 1, 0)) + 1
    owner = owner_of("while_loop", *leaves)

    def once(state, _):
        count, going, leaves = state
        within = logical_and(going, count < bound)
        going = cond(within, lambda: cast(holds(leaves), "bool"), lambda: within)
        return (count + 1, going, cond(going, lambda: step(leaves), lambda: leaves)), None

    def several(state, _):
        return cond(state[1], lambda: scan(once, state, None, side)[0], lambda: state), None

    start = (owner.convert(0), owner.convert(True), list(leaves))
    return scan(several, start, None, -(-bound // side) if bound else 0)[0][2]


@public
def fori_loop(lower: Integer, upper: Integer, body_fun: Function, init_val: Structure) -> Structure:
    """Apply ``body_fun`` to a state for each whole number from ``lower`` up to but without ``upper``.

    Args:
        lower, upper: whole numbers, or 0-d tensors of them.
        body_fun: a function of the number (a 0-d int64 tensor) and the state to the next state, which must
            have the same structure, shapes and dtypes.
        init_val: the first state; numbers become tensors.

    Returns:
        The last state.

    Raises:
        ArgumentError: a state that changes its structure or dtypes.
        ShapeError: a state that changes its shapes.

    Gradient:
        Through every step, to ``init_val`` and what ``body_fun`` closes over. (On JAX and in ``jit`` on NumPy, a
        loop with traced bounds has no reverse-mode derivative.)

    Examples:
        Compound interest, and how the result moves with the rate:

        >>> import gradops
        >>> from gradops import ops
        >>> def after_ten_years(rate):
        ...     return ops.fori_loop(0, 10, lambda year, money: money * (1 + rate), 100.0 + 0.0 * rate)
        >>> print(round(after_ten_years(0.03), 4))
        134.3916
        >>> print(gradops.grad(after_ten_years)(0.03).round(4))
        1304.7732

    See Also:
        :func:`scan`, which also collects a result of each step; :func:`while_loop`.
    """
    check_functions("fori_loop", 2, body_fun=body_fun)
    start, stop = (_bound(value, name) for value, name in ((lower, "lower"), (upper, "upper")))
    owner = owner_of("fori_loop", *_tree.leaves_of(init_val), *(v for v in (lower, upper) if not isinstance(v, int)))
    state = State("fori_loop", init_val, owner, "init_val")

    def step(i, leaves):
        return state.unpack(body_fun(i, state.pack(list(leaves))))

    bounds = [b if k is None else k for b, k in ((lower, start), (upper, stop))]
    done = recorded("fori_loop", step, state.leaves, *bounds)
    if done is NotImplemented:
        done = native(owner, "fori_loop", [*state.leaves, *bounds], *bounds, traceable(step), state.leaves)
    if done is NotImplemented:
        if start is None or stop is None:
            raise ArgumentError("`fori_loop`: variables cannot be recorded between bounds that are traced.")
        done = state.leaves
        for i in builtins.range(start, stop):
            done = step(owner.convert(i), done)
    return state.pack(done)


def _bound(value, name: str) -> int | None:
    value = scalar("fori_loop", value, name)
    if backends.backend_of(value) is None and not is_variable(value):
        return integer("fori_loop", value, name)
    if dtype(value)[0] not in "iu":
        raise ArgumentTypeError(
            f"`fori_loop`: `{name}` must be a whole number; got dtype {dtype(value)}.", argument=name
        )
    return value_of(value, int)


for _name in FUNCTIONS:  # TensorFlow's AutoGraph must not convert them: their Python loops are intended
    globals()[_name].autograph_info__ = None

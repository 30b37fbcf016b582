"""JAX: custom gradients in traced programs, as primitives with all the rules that JAX needs.

``jax.custom_vjp`` has no forward mode, and a loop that is differentiated twice ignores ``jax.custom_jvp``. So the
function is one primitive here and the map of its tangents another, linear one: its transpose is the user's gradient
function, and in forward mode it is evaluated as the transpose of the gradient function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, mlir

from ...errors import GradientError
from . import traces
from ._private import set_batcher, typeof

_rules: ContextVar[int] = ContextVar("rules", default=0)
"""The nesting depth of the gradient functions being traced."""

_ORDERS = 3


def staged(run, inputs: list) -> list:
    """Trace a custom derivative once as a program that takes its closure as arguments.

    A gradient function may call its own function, so the programs of all orders are nested. A function that closes over
    nothing is traced only when it is differentiated: the rules of an op often consist of such ops, whose rules consist
    of others.
    """
    avals = [typeof(x) for x in inputs]
    plain = jax.make_jaxpr(lambda *xs: run(*xs)[0])(*avals)
    closed = getattr(run, "is_closed", False) and not any(map(traces.is_tracer, plain.consts))
    program = _Untraced(run, avals, plain) if closed else _program(run, avals, plain)
    program.effects = plain.effects
    program.looks[(*avals, *map(typeof, program.closure))] = plain.out_avals
    return _own.bind(*inputs, *program.closure, program=program)


def _program(run, avals: list, plain, moving=None) -> _Program:
    """The program of a custom derivative for arguments with these abstract values; ``plain`` computes the values only.

    Args:
        moving: for each input, True if its gradient is needed; None means all.
    """
    count = len(avals)
    smooth = [jnp.issubdtype(v.dtype, jnp.inexact) for v in plain.out_avals]
    failure: list[Exception] = []
    given: list[bool] = []

    def both(*xs_and_ups):
        xs, ups = xs_and_ups[:count], iter(xs_and_ups[count:])
        values, pull = run(*xs)
        filled = [jnp.conj(next(ups)) if s else jnp.zeros(v.shape) for s, v in zip(smooth, values)]
        found = [cotangent(g, x) if m else None for g, x, m in zip(pull(filled), xs, moving or [True] * count)]
        given[:] = [g is not None for g in found]
        return values, [g for g in found if g is not None]

    within = _rules.set(_rules.get() + 1)
    try:
        if _rules.get() > _ORDERS:
            raise GradientError(f"in what JAX compiles, custom gradients have derivatives to order {_ORDERS}.")
        traced = jax.make_jaxpr(both)(*avals, *[v for v, s in zip(plain.out_avals, smooth) if s])
    except Exception as error:  # raised when the derivative is needed
        failure.append(error)
        traced = plain
    finally:
        _rules.reset(within)
    return _Program(traced, count, smooth, given, failure)


class _Untraced:
    """The program of a function that closes over nothing; it computes values only until it is differentiated.

    Attributes:
        rows: for each enclosing ``vmap``, innermost first, the arguments' batch axes and JAX's description of the axis.
    """

    closure = ()

    def __init__(self, run, avals: list, plain, rows: tuple = ()):
        self.run, self.avals, self.plain, self.rows = run, avals, plain, rows
        self.effects, self.looks = plain.effects, {}
        self.smooth = plain.out_avals
        self._traced: dict = {}

    def values(self, arguments):
        """The values, without residuals, which only :meth:`traced` has."""
        f = lambda *xs: list(self.run(*xs)[0])  # noqa: E731
        for axes, axis in self.rows:
            f = _vmap(axis, f, axes, 0)
        return f(*arguments), []

    def batched(self, axes: tuple, axis):
        return _Untraced(self.run, self.avals, self.plain, (*self.rows, (axes, axis)))

    def traced(self, moving: list):
        """The full program, for the inputs that have tangents."""
        key = tuple(moving)
        if key not in self._traced:
            program = _program(self.run, self.avals, self.plain, key)
            for axes, axis in self.rows:
                program = program.batched(axes, axis)
            self._traced[key] = program
        return self._traced[key]


class _Program:
    """A traced ``(inputs, upstreams) -> (values, gradients)``, split into the part without upstreams and the rest.

    Attributes:
        count: the number of inputs among the arguments; the closure follows them.
        smooth: for each result, True if it has an upstream gradient.
        given: for each input, True if it has a gradient.
        failure: the exception that the rule raised when it was traced.
        looks: the results' abstract values, by the abstract values of the arguments.
    """

    def __init__(self, closed, count: int, smooth: list, given: list, failure: list):
        self.count, self.smooth, self.given, self.failure = count, smooth, given, failure
        self.looks: dict = {}
        self.effects = closed.effects
        jaxpr, results = closed.jaxpr, len(smooth)
        held = [traces.is_tracer(c) for c in closed.consts]
        self.closure = [c for c, h in zip(closed.consts, held) if h]
        self.fixed = {v: c for v, c, h in zip(jaxpr.constvars, closed.consts, held) if not h}
        self.inputs = [*jaxpr.invars[:count], *[v for v, h in zip(jaxpr.constvars, held) if h]]
        self.upstreams = jaxpr.invars[count:]
        self.results, self.outputs = jaxpr.outvars[:results], jaxpr.outvars[results:]
        late, self.later = set(self.upstreams), []
        first = []
        for equation in jaxpr.eqns:
            if any(v in late for v in variables(equation.invars)):
                late.update(equation.outvars)
                self.later.append(equation)
            else:
                first.append(equation)
        self.later = _needed(self.later, set(variables(self.outputs)))
        needed = set(variables(self.outputs)) | {v for e in self.later for v in variables(e.invars)}
        made = set(self.inputs) | {v for e in first for v in e.outvars}
        self.residuals = [v for v in made if v in needed]
        self.first = _needed(first, set(variables(self.results)) | set(self.residuals))
        self.late = late

    def values(self, arguments):
        """The values, and the residuals for the gradients."""
        known = {**self.fixed, **dict(zip(self.inputs, arguments))}
        evaluate(self.first, known)
        return [read(v, known) for v in self.results], [known[v] for v in self.residuals]

    def gradients(self, residuals, upstreams):
        known = {**self.fixed, **dict(zip(self.residuals, residuals)), **dict(zip(self.upstreams, upstreams))}
        evaluate(self.later, known)
        found = iter([read(v, known) for v in self.outputs])
        return [next(found) if g else None for g in self.given]

    def batched(self, axes: tuple, axis):
        """The batched program, for arguments with the batch along ``axes``."""
        return _Rows(self, axes, axis)

    def varying(self, flags, results: bool = False) -> list:
        """Flags for the residuals, or the ``results``, that depend on the flagged arguments."""
        reached = {v for v, flag in zip(self.inputs, flags) if flag}
        for equation in self.first:
            if any(v in reached for v in variables(equation.invars)):
                reached.update(equation.outvars)
        return [not hasattr(v, "val") and v in reached for v in (self.results if results else self.residuals)]

    def linear(self) -> bool:
        """True if the rule is linear in its upstream gradients, without a constant term; judged by its operations."""
        zeros: set = set()

        def is_zero(atom):
            return not np.any(atom.val) if hasattr(atom, "val") else atom in zeros

        for equation in self.first:
            if equation.primitive.name in ("broadcast_in_dim", "convert_element_type") and is_zero(equation.invars[0]):
                zeros.update(equation.outvars)
        for equation in self.later:
            sums = equation.primitive.name in ("add", "sub", "add_any")
            if sums and not all(is_zero(v) or not hasattr(v, "val") and v in self.late for v in equation.invars):
                return False
        return all(is_zero(v) or not hasattr(v, "val") and v in self.late for v in self.outputs)


class _Rows:
    """A batched program: arguments have the batch along ``axes`` (None if shared), results along axis 0."""

    def __init__(self, program, axes: tuple, axis):
        self.program, self.axes, self.axis = program, axes, axis
        self.count, self.smooth, self.failure = program.count, program.smooth, program.failure
        self.effects, self.looks = program.effects, {}
        self.residual_axes = [0 if v else None for v in program.varying([a is not None for a in axes])]

    def values(self, arguments):
        out = ([0] * len(self.smooth), self.residual_axes)
        return _vmap(self.axis, self.program.values, (list(self.axes),), out)(list(arguments))

    def gradients(self, residuals, upstreams):
        found = _vmap(self.axis, self.program.gradients, (self.residual_axes, 0), 0)(list(residuals), list(upstreams))
        return [
            None if g is None else g.sum(0, dtype=g.dtype) if a is None else jnp.moveaxis(g, 0, a)
            for g, a in zip(found, self.axes)
        ]

    def batched(self, axes: tuple, axis):
        return _Rows(self, axes, axis)

    def varying(self, flags, results: bool = False):
        return self.program.varying(flags, results)

    def linear(self):
        return self.program.linear()


class _RowsOfTangents:
    """A program whose upstreams have the batch first; its residuals have it along ``axes`` (None if shared)."""

    def __init__(self, program, axes: list, axis):
        self.program, self.axes, self.axis = program, axes, axis
        self.linear = program.linear

    def gradients(self, residuals, upstreams):
        return _vmap(self.axis, self.program.gradients, (self.axes, 0), 0)(list(residuals), list(upstreams))


def _vmap(axis, f, inputs, outputs):
    how = {"axis_size": axis.size, "spmd_axis_name": axis.spmd_name}
    if isinstance(axis.name, (str, tuple)):
        how["axis_name"] = axis.name
    return jax.vmap(f, inputs, outputs, **{k: v for k, v in how.items() if v is not None})


# The primitives -------------------------------------------------------------------------------------------------------

_own = Primitive("gradops_custom_gradient")
_own.multiple_results = True
_pushed = Primitive("gradops_tangents")
"""The tangents of the results, linear in those of the inputs: the transpose of the gradient function."""
_pushed.multiple_results = True


@_own.def_impl
def _run(*arguments, program):
    return program.values(arguments)[0]


@_own.def_effectful_abstract_eval
def _looks(*avals, program):
    if avals not in program.looks:
        traced = jax.make_jaxpr(lambda *xs: program.values(xs)[0])(*avals)
        program.looks[avals] = traced.out_avals
    return list(program.looks[avals]), program.effects


def _differentiated(primals, tangents, *, program):
    moving = [type(t) is not ad.Zero and typeof(t).dtype != jax.dtypes.float0 for t in tangents]
    whole = program
    if isinstance(whole, _Untraced):
        program = whole.traced(moving)
    if program.failure:
        raise program.failure[0]
    closure = moving[program.count :]
    if any(closure) and any(program.varying([False] * program.count + closure, results=True)):
        raise closed_over()
    values, residuals = program.values(primals)
    if traces.tracing():
        values = _own.bind(*primals, program=whole)  # enclosing derivatives see the rule
    looks = [typeof(v).to_tangent_aval() for v in values]
    places = tuple(i for i, m in enumerate(moving[: program.count]) if m)
    if not places:  # only the rule reads the arguments with tangents
        return values, [ad.Zero(a) for a in looks]
    smooth = tuple(a for a, s in zip(looks, program.smooth) if s)
    moved = iter(_pushed.bind(*residuals, *[tangents[i] for i in places], program=program, places=places, looks=smooth))
    return values, [next(moved) if s else ad.Zero(a) for s, a in zip(program.smooth, looks)]


def _batch_program(axis, values, dims, *, program):
    if all(d is None for d in dims):
        return _own.bind(*values, program=program), [None] * len(program.smooth)
    rows = program.batched(tuple(dims), axis)
    return _own.bind(*values, program=rows), [0] * len(program.smooth)


@_pushed.def_impl
def _transposed(*arguments, program, places, looks):
    """The tangents, by the transpose of the rule."""
    count = len(arguments) - len(places)
    residuals, tangents = arguments[:count], dict(zip(places, arguments[count:]))
    which: list[int] = []

    def pulled(*upstreams):
        found = program.gradients(residuals, upstreams)
        which[:] = [i for i in places if found[i] is not None]
        return [found[i] for i in which]

    if not program.linear():
        raise _no_transpose()
    try:
        transpose = jax.linear_transpose(pulled, *looks)
        return list(transpose([tangents[i] for i in which]))
    except (NotImplementedError, TypeError, ValueError, AssertionError) as error:
        if isinstance(error, GradientError):
            raise
        raise _no_transpose() from error


def _no_transpose() -> GradientError:
    return GradientError(
        "forward mode takes the transpose of a custom gradient's gradient function, which is not linear in the "
        "upstream gradient.",
        argument="f",
        hint='use reverse mode (`grad()`, `vjp()`, `strategy="reverse-mode"`), or a gradient function that is linear',
    )


@_pushed.def_abstract_eval
def _tangents_look(*avals, program, places, looks):
    return list(looks)


def _pulled(upstreams, *arguments, program, places, looks):
    count = len(arguments) - len(places)
    filled = [jnp.zeros(u.aval.shape, u.aval.dtype) if type(u) is ad.Zero else u for u in upstreams]
    found = program.gradients(arguments[:count], filled)
    zeros = [ad.Zero(x.aval) for x in arguments[count:]]
    return [None] * count + [z if found[i] is None else found[i] for i, z in zip(places, zeros)]


def _push_twice(primals, tangents, *, program, places, looks):
    """Tangents of tangents: linear in the tangents, plus the rule's own derivative with respect to the residuals."""
    count, how = len(primals) - len(places), {"program": program, "places": places, "looks": looks}
    out = _pushed.bind(*primals, **how)
    parts = []
    if any(type(t) is not ad.Zero for t in tangents[count:]):
        ts = [jnp.zeros(t.aval.shape, t.aval.dtype) if type(t) is ad.Zero else t for t in tangents[count:]]
        parts.append(_pushed.bind(*primals[:count], *ts, **how))
    moving = [i for i, t in enumerate(tangents[:count]) if type(t) is not ad.Zero]
    if moving:

        def of_residuals(*xs):
            filled = list(primals)
            for i, x in zip(moving, xs):
                filled[i] = x
            return _transposed(*filled, **how)

        parts.append(jax.jvp(of_residuals, [primals[i] for i in moving], [tangents[i] for i in moving])[1])
    if not parts:
        return out, [ad.Zero(a) for a in looks]
    return out, [sum(ts[1:], ts[0]) for ts in zip(*parts)]


def _tangents_of_rows(axis, values, dims, *, program, places, looks):
    if all(d is None for d in dims):
        return _pushed.bind(*values, program=program, places=places, looks=looks), [None] * len(looks)
    count = len(values) - len(places)
    tangents = [
        jnp.broadcast_to(t, (axis.size, *t.shape)) if d is None else jnp.moveaxis(t, d, 0)
        for t, d in zip(values[count:], dims[count:])
    ]
    rows = _RowsOfTangents(program, list(dims[:count]), axis)
    many = jax.make_jaxpr(lambda *xs: [jnp.broadcast_to(x, (axis.size, *x.shape)) for x in xs])(*looks).out_avals
    found = _pushed.bind(*values[:count], *tangents, program=rows, places=places, looks=tuple(many))
    return found, [0] * len(looks)


ad.primitive_jvps[_own] = _differentiated
ad.primitive_jvps[_pushed] = _push_twice
ad.primitive_transposes[_pushed] = _pulled
set_batcher(_own, _batch_program)
set_batcher(_pushed, _tangents_of_rows)
mlir.register_lowering(_own, mlir.lower_fun(_run, multiple_results=True))
mlir.register_lowering(_pushed, mlir.lower_fun(_transposed, multiple_results=True))


def variables(atoms):
    return [v for v in atoms if not hasattr(v, "val")]


def read(atom, known: dict):
    return jnp.asarray(atom.val, atom.aval.dtype) if hasattr(atom, "val") else known[atom]


def _needed(equations: list, wanted: set) -> list:
    found = []
    for equation in reversed(equations):
        if equation.effects or any(v in wanted for v in equation.outvars):
            found.append(equation)
            wanted.update(variables(equation.invars))
    return found[::-1]


def evaluate(equations: list, known: dict, around: Callable = lambda apply, xs: apply(xs)) -> None:
    for equation in equations:
        params = equation.primitive.get_bind_params(equation.params)
        functions, params = params if isinstance(params, tuple) else ((), params)
        apply = functools.partial(_applied, equation.primitive, functions, params)
        with equation.ctx.manager:
            found = around(apply, [read(v, known) for v in equation.invars])
        for v, value in zip(equation.outvars, found if equation.primitive.multiple_results else [found]):
            known[v] = value


def _applied(primitive, functions, params: dict, xs):
    return primitive.bind(*functions, *xs, **params)


def closed_over() -> GradientError:
    return GradientError(
        "a function with a custom gradient uses an array that is being differentiated but is not an argument.",
        argument="f",
        hint="pass the array as an argument, or use `stop_gradient()` on it",
    )


def cotangent(g, x):
    if g is None or x.dtype.kind != "f" and not jnp.issubdtype(x.dtype, jnp.inexact):
        return None
    return jnp.conj(g) if jnp.iscomplexobj(g) else g

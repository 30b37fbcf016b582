"""JAX: derivatives, with custom gradients in three forms.

:func:`custom` uses the values alone if no transform runs, ``jax.custom_vjp`` in an eager derivative, and the primitive
of :mod:`.rules` while a program is traced and in forward mode. The derivatives themselves are JAX's.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re

import jax
import jax.numpy as jnp

from ... import _tree
from ...errors import GradientError
from ..interface import looked_at_a_value
from ..policy import NeedsPolicy, checkpoint_policy, derivative
from . import checkpointing, control, rules, traces
from ._private import CLOSED_OVER
from .checkpointing import checkpoint, checkpointed, named  # noqa: F401
from .traces import carried  # noqa: F401

stop = jax.lax.stop_gradient
residuals = checkpointing.residuals

cuts_results = not traces.supported
"""True if a scope cannot intercept operations, so only the results of a decorated function can be detached."""


def stopped():
    """A scope that makes the result of every operation a constant for the enclosing transforms."""
    return traces.watching(_cut)


def _cut(apply, xs):
    out = apply([stop(x) if traces.is_tracer(x) else x for x in xs])
    return [stop(y) for y in out] if isinstance(out, (list, tuple)) else stop(out)


def custom(run, inputs: list) -> list:
    """The values of ``run(*inputs) -> (values, pull)`` with ``pull`` as their derivative.

    While a program is traced, and in forward mode, the operation takes the closure of ``run`` as arguments: the
    closed-over values may be gone when the program is differentiated. It raises an error if they are being
    differentiated.

    JAX's cotangents of complex values are the conjugates of gradops' gradients.
    """
    if not traces.tracing():
        return run(*inputs)[0]
    if traces.staging() or traces.forward():
        return rules.staged(run, inputs)

    try:
        return list(_eager(len(inputs))(jax.tree_util.Partial(run), *inputs))
    except CLOSED_OVER as error:
        raise rules.closed_over() from error
    except (TypeError, NotImplementedError) as error:
        if not traces.refuses_forward(error):
            raise
    return rules.staged(run, inputs)


@functools.cache
def _eager(count: int):
    """``jax.custom_vjp`` of a function of ``run`` and ``count`` inputs; a single one, so that JAX can reuse its traces.

    JAX inspects the signature of each part at every call; setting it in advance is faster.
    """

    def values(run, *xs):
        return _values(run.func, xs)[0]

    def forward(run, *xs):
        return _eager_forward(run, xs)

    def backward(residuals, upstreams):
        return (None, *residuals.func.gradients(residuals.args, upstreams))

    inputs = ["run", *(f"x{i}" for i in range(count))]
    values.__signature__ = forward.__signature__ = _signature(inputs)
    backward.__signature__ = _signature(["residuals", "upstreams"])
    function = jax.custom_vjp(values)
    function.defvjp(forward, backward)
    return function


def _signature(names: list[str]) -> inspect.Signature:
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names])


def _values(run, xs) -> tuple:
    """The results of ``run``, copied if traced: JAX rejects a result that is a closed-over differentiated array."""
    values, pull = run(*xs)
    return [jnp.copy(v) if traces.is_tracer(v) else v for v in values], pull


def _eager_forward(run, xs):
    xs = [x if isinstance(x, jax.Array) else jnp.asarray(x) for x in xs]  # JAX passes Python numbers on unchanged
    values, pull = _values(run.func, xs)
    if not traces.tracing():
        return values, jax.tree_util.Partial(_Direct(pull, values, xs))
    smooth = [jnp.issubdtype(v.dtype, jnp.inexact) for v in values]
    given: list[bool] = []

    def rule(*upstreams):
        ups = iter(upstreams)
        filled = [jnp.conj(next(ups)) if s else jnp.zeros(v.shape) for s, v in zip(smooth, values)]
        found = [rules.cotangent(g, x) for g, x in zip(pull(filled), xs)]
        given.extend(g is not None for g in found)
        return [g for g in found if g is not None]

    closed = jax.make_jaxpr(rule)(*[v for v, s in zip(values, smooth) if s])
    residuals = jax.tree_util.Partial(_Rule(closed.jaxpr, tuple(given), tuple(smooth)), *closed.consts)
    return _eager(len(xs))(run, *xs), residuals  # enclosing derivatives see the rule


class _Direct:
    """A gradient function that closes over no traced values."""

    def __init__(self, pull, values, xs):
        self.pull = pull
        self.values = values
        self.xs = xs

    def __call__(self):
        raise NotImplementedError

    def gradients(self, constants, upstreams) -> tuple:
        ups = [_upstream(u, v) for u, v in zip(upstreams, self.values)]
        try:
            return tuple(rules.cotangent(g, x) for g, x in zip(self.pull(ups), self.xs))
        except CLOSED_OVER as error:
            raise rules.closed_over() from error


class _Rule:
    """A traced gradient function: a program, the inputs with a gradient, the outputs with an upstream gradient."""

    def __init__(self, jaxpr, given: tuple, smooth: tuple):
        self.jaxpr = jaxpr
        self.given = given
        self.smooth = smooth

    def __call__(self, *constants):
        raise NotImplementedError

    def gradients(self, constants, upstreams) -> tuple:
        ups = [u for u, s in zip(upstreams, self.smooth) if s]
        known = dict(zip([*self.jaxpr.constvars, *self.jaxpr.invars], [*constants, *ups]))
        rules.evaluate(self.jaxpr.eqns, known)
        found = iter([rules.read(v, known) for v in self.jaxpr.outvars])
        return tuple(next(found) if g else None for g in self.given)


def _upstream(u, value):
    if not hasattr(u, "dtype"):  # `jax.vjp`'s functions also accept Python numbers
        u = jnp.asarray(u, value.dtype)
    kind = u.dtype.kind  # "V" is JAX's float0, and a few float types, such as bfloat16
    if kind == "V" and u.dtype == jax.dtypes.float0:
        return jnp.zeros(value.shape)
    return jnp.conj(u) if kind == "c" else u


@contextlib.contextmanager
def _reverse_mode_errors():
    """Raise gradops' error where JAX has no reverse mode: for a loop with an unknown number of steps."""
    try:
        yield
    except ValueError as error:
        if "Reverse-mode differentiation does not work for lax.while_loop" not in str(error):
            raise
        raise GradientError(
            "on JAX a `while_loop`, or a `fori_loop` between traced bounds, has no reverse-mode derivative where it is "
            "traced, as in compiled functions and under a `gradient_checkpoint_scope()`: the number of its "
            "steps is not known.",
            hint="use `ops.fori_loop()` between numbers, `ops.scan()`, or `ops.while_loop(..., maximum_iterations=n)`",
        ) from error


@_reverse_mode_errors()
def value_and_grad(run, leaves: list) -> tuple:
    """The value of a scalar function and its gradients."""

    beside = _Auxiliary(getattr(run, "box", {}))

    def scalar(*xs):
        y = jnp.asarray(run(*xs))
        return y.reshape(()), (y, beside.arrays())

    both = functools.partial(jax.value_and_grad, argnums=tuple(range(len(leaves))), has_aux=True)
    if derivative.get() == "on":
        (_, (value, arrays)), gradients = both(scalar)(*leaves)
    else:
        token = derivative.set("ask")
        try:
            (_, (value, arrays)), gradients = both(scalar)(*leaves)
        except NeedsPolicy:
            derivative.set("on")
            (_, (value, arrays)), gradients = both(jax.checkpoint(scalar, policy=checkpoint_policy))(*leaves)
        finally:
            derivative.reset(token)
    beside.put(arrays)
    return value, [jnp.conj(g) if jnp.iscomplexobj(g) else g for g in gradients]


class _Auxiliary:
    """Auxiliary output of a function, whose arrays in ``box`` belong to a trace until JAX returns them."""

    def __init__(self, box: dict):
        self.box = box

    def arrays(self) -> list:
        leaves, self.form = _tree.flatten(self.box.get("aux"))
        self.leaves = [None if isinstance(x, jax.Array) else x for x in leaves]
        return [x for x in leaves if isinstance(x, jax.Array)]

    def put(self, arrays) -> None:
        found = iter(arrays)
        if "aux" in self.box:
            self.box["aux"] = _tree.unflatten(self.form, [next(found) if x is None else x for x in self.leaves])


@_reverse_mode_errors()
def pulling(at):
    beside = _Auxiliary(at.box)
    outputs, pull, arrays = jax.vjp(lambda *xs: (at.run(*xs), beside.arrays()), *at.leaves, has_aux=True)
    beside.put(arrays)
    return outputs, _conjugate_pullback(pull)


def _conjugate_pullback(pull):
    return _reverse_mode_errors()(lambda weights: [jnp.conj(g) for g in pull([jnp.conj(w) for w in weights])])


def pushing(at):
    outputs, push = jax.linearize(lambda *xs: at.run(*xs), *at.leaves)
    return outputs, lambda tangents: list(push(*tangents))


def linear_solve(matvec, b, solve, transpose_solve):
    return jax.lax.custom_linear_solve(matvec, b, solve, transpose_solve)


def vjp(at, v, create_graph: bool, strict: bool):
    outputs, pull = _pulling(at.run, at.leaves)
    products = pull(at.weights(v, outputs))
    check_dependence(at, strict)
    return at.outputs(outputs), at.inputs(products)


@_reverse_mode_errors()
def _pulling(run, leaves: list) -> tuple:
    """The outputs, and a function from gradients of the outputs to gradients of the inputs."""
    outputs, pull = jax.vjp(lambda *xs: run(*xs), *leaves)
    return outputs, _conjugate_pullback(pull)


def jvp(at, v, create_graph: bool, strict: bool):
    outputs, products = jax.jvp(lambda *xs: at.run(*xs), tuple(at.leaves), tuple(at.tangents(v)))
    check_dependence(at, strict)
    return at.outputs(outputs), at.outputs(products)


def check_dependence(at, strict: bool) -> None:
    if not strict:
        return
    jaxpr = jax.make_jaxpr(lambda *xs: at.run(*xs))(*at.leaves).jaxpr
    sources = {v: {i} for i, v in enumerate(jaxpr.invars)}
    for equation in jaxpr.eqns:
        reached = set().union(*(sources.get(v, ()) for v in rules.variables(equation.invars)))
        sources.update(dict.fromkeys(equation.outvars, reached))
    found = [set() if hasattr(v, "val") else sources.get(v, set()) for v in jaxpr.outvars]
    at.check_dependence([[i in reached for i in range(len(at.leaves))] for reached in found])


takes_cheaper = True


@_reverse_mode_errors()
def jacobian(at, create_graph: bool, strict: bool, vectorize: bool, strategy: str | None):
    def rows(transform):
        return transform(lambda *xs: at.run(*xs), argnums=tuple(range(len(at.leaves))))(*at.leaves)

    if any(jnp.iscomplexobj(x) for x in at.leaves):
        found = _complex_rows(at.run, at.leaves)
    elif strategy is None:
        outputs = jax.eval_shape(lambda *xs: at.run(*xs), *at.leaves)
        fewer_inputs = sum(x.size for x in at.leaves) < sum(y.size for y in outputs)
        try:
            found = rows(jax.jacfwd if fewer_inputs else jax.jacrev)
        except (TypeError, GradientError):  # no forward mode: `jax.custom_vjp`, or a rule that is not linear
            found = rows(jax.jacrev)
    else:
        found = rows(jax.jacfwd if strategy == "forward-mode" else jax.jacrev)
    check_dependence(at, strict)
    return at.rows([list(row) for row in found])


def _complex_rows(run, leaves: list) -> list:
    """The gradients of the outputs' elements with respect to complex inputs."""
    outputs, pull = _pulling(run, leaves)
    rows = []
    for j, y in enumerate(outputs):
        zeros = [jnp.zeros_like(z) for z in outputs]
        units = jnp.eye(y.size, dtype=y.dtype).reshape(y.size, *y.shape)
        moved = jax.vmap(lambda unit, j=j, zeros=zeros: pull([*zeros[:j], unit, *zeros[j + 1 :]]))(units)
        rows.append([g.reshape(*y.shape, *x.shape) for g, x in zip(moved, leaves)])
    return rows


def together(xs, ts) -> bool:
    return bool({id(traces.trace_of(t)) for t in ts} & {id(traces.trace_of(x)) for x in xs if traces.is_tracer(x)})


def records(x) -> bool:
    return traces.is_tracer(x)


@jax.tree_util.register_pytree_node_class
class _Result:
    """A result that keeps the order of dict keys, which JAX's own pytrees sort."""

    def __init__(self, leaves, form):
        self.leaves = leaves
        self.form = form

    def tree_flatten(self):
        """Put strings into the structure, because JAX has no arrays of them."""
        texts = tuple(x if isinstance(x, str) else None for x in self.leaves)
        return [x for x, text in zip(self.leaves, texts) if text is None], (self.form, texts)

    @classmethod
    def tree_unflatten(cls, kept, leaves):
        (form, texts), given = kept, iter(leaves)
        return cls([next(given) if text is None else text for text in texts], form)


_FORMAT = re.compile(r"format.*Tracer")
"""Matches Python's error for ``"%d" % x`` and ``f"{x:.2f}"`` of a tracer."""


def compile(f):
    """``jax.jit``, with gradops' errors in place of JAX's tracer errors."""
    compiled = jax.jit(lambda *arrays: _Result(*_tree.flatten(f(*arrays))))

    def call(*arrays):
        try:
            result = compiled(*arrays)
            return _tree.unflatten(result.form, result.leaves)
        except (*control.no_value, jax.errors.NonConcreteBooleanIndexError) as error:
            raise looked_at_a_value() from error
        except TypeError as error:
            if _FORMAT.search(str(error)):
                raise looked_at_a_value() from error
            raise

    return call

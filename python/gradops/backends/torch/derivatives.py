"""PyTorch: derivatives, with custom gradients as nodes of torch's autograd.

:func:`custom` attaches a gradient function to values: as a ``torch.autograd.Function`` in eager code, through
:mod:`.transforms` in ``torch.func``'s transforms and forward mode, and as :class:`_Compiled` in ``torch.compile``. The
derivatives themselves are PyTorch's; they are recorded for an enclosing derivative only where they depend on tensors
other than their inputs (:class:`.transforms.Others`), because recording costs time and memory.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import sys

import numpy as np
import torch
from torch.autograd.graph import get_gradient_edge
from torch.overrides import TorchFunctionMode

from ... import _tree
from ...errors import GradientError
from ..interface import GraphTooLongError, looked, looked_at_a_value
from . import _private, checkpointing, transforms
from .checkpointing import checkpoint, checkpointed, hooked, named, on_cpu  # noqa: F401
from .transforms import Others, reaches_others

results_of, active, eager = _private.results_of, _private.transforming, _private.eager
_recording = torch.is_grad_enabled
residuals = checkpointing.residuals


def stop(x):
    return x.detach()


@contextlib.contextmanager
def stopped():
    """A scope that stops recording for both backward and forward mode."""
    _check_kept("stop_gradient_scope")
    with torch.no_grad(), _private.forward_mode(False):
        yield


def forward_scope(value: bool):
    """A scope that switches forward mode on or off, if a level of it is open."""
    return _private.forward_mode(value) if _private.forward_level() >= 0 else contextlib.nullcontext()


def records_now() -> bool:
    return torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def record(value: bool) -> None:
    with _private.unseen():
        torch.set_grad_enabled(value)


followed = transforms.Followed


def use_one_thread() -> None:
    """Run the backward passes that this thread starts on this thread alone, on a GPU as well."""
    torch.autograd.set_multithreading_enabled(False)


def carried():
    """A function that returns a scope for another thread, to take over this thread's recording modes."""
    recording, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    stream = torch.cuda.current_stream() if torch.cuda.is_initialized() else None

    @contextlib.contextmanager
    def scope():
        differs = inference != torch.is_inference_mode_enabled()
        with torch.inference_mode(inference) if differs else contextlib.nullcontext():
            with torch.set_grad_enabled(recording), torch.cuda.stream(stream):
                yield

    return scope


def require(x) -> None:
    x.requires_grad_()


def _check_kept(what: str) -> None:
    """Raise in ``torch.jit.trace``, which records operations but not scopes; an ONNX file has no gradients to lose."""
    if torch.jit.is_tracing() and torch.is_grad_enabled() and not torch.onnx.is_in_onnx_export():
        raise GradientError(
            f"torch.jit.trace loses {what}: the traced function would have a different gradient.",
            hint="trace it under `torch.no_grad()`, for its values, or use `torch.compile`",
        )


class _Custom(torch.autograd.Function):
    """Values computed elsewhere, with ``pull`` as their derivative with respect to the inputs."""

    @staticmethod
    def forward(ctx, pull, values, *inputs):
        ctx.pull = pull
        return values[0].detach() if len(values) == 1 else tuple([v.detach() for v in values])

    @staticmethod
    def backward(ctx, *upstreams):
        return (None, None, *ctx.pull([*map(_given, upstreams)]))


class _CustomOfOne(torch.autograd.Function):
    """``_Custom`` for one value and one input, the most common case; passing one ``state`` saves building lists."""

    @staticmethod
    def forward(ctx, state, x):
        ctx.rule, value = state
        return x.clone() if value is None else value.detach()

    @staticmethod
    def backward(ctx, upstream):
        pull, residuals = ctx.rule
        return None, pull(_given(upstream), residuals)


class _CustomOfSome(torch.autograd.Function):
    """``_Custom`` for one value and several inputs."""

    @staticmethod
    def forward(ctx, state, *inputs):
        ctx.rule, value = state
        return value.detach()

    @staticmethod
    def backward(ctx, upstream):
        pull, residuals = ctx.rule
        return None, *pull(_given(upstream), residuals)


def _given(g):
    """A copy of a gradient for a user's function, which may write to it."""
    # `_lazy_clone` has no derivative for complex tensors, and copies a batch row by row.
    plain = g.__class__ is torch.Tensor and g.layout is torch.strided and not g.is_complex()
    return _lazy_clone(g) if plain and not transforms.wrapped(g) else g.clone()


_lazy_clone = _private.lazy_clone
_custom, _custom_of_one, _custom_of_some = map(_private.outside_of_transforms, (_Custom, _CustomOfOne, _CustomOfSome))


class _Compiled(torch.autograd.Function):
    """``_Custom`` for ``torch.compile``, which needs separate ``forward`` and ``setup_context``."""

    @staticmethod
    def forward(pull, count, *tensors):
        return tuple(v.view_as(v) for v in tensors[:count])

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.pull, ctx.count = inputs[:2]

    @staticmethod
    def backward(ctx, *upstreams):
        return (None, None, *([None] * ctx.count), *ctx.pull([u.clone() for u in upstreams]))


def custom(run, inputs: list) -> list:
    """The values of ``run(*inputs) -> (values, pull)`` with ``pull`` as their derivative."""
    if torch.compiler.is_compiling():
        if not _private.traces_custom_gradients and torch.compiler.is_dynamo_compiling():
            return _custom_outside_of_the_graph(run, inputs)
        return _custom_compiled(run, inputs)
    active = transforms.active()
    if active and (transforms.transforming() or any(map(transforms.is_dual, inputs))):
        return transforms.custom(run, inputs, reaches_others)
    values, pull = run(*inputs)
    if active and any(map(transforms.is_dual, values)):
        raise transforms.closure_error()
    return attach(values, pull, inputs)


def _custom_outside_of_the_graph(run, inputs: list) -> list:
    """``custom`` after a break of ``torch.compile``'s graph.

    With ``fullgraph=True`` PyTorch's error names this function.
    """
    return custom(run, inputs)


if not _private.traces_custom_gradients:  # importing PyTorch's compiler takes a second
    _custom_outside_of_the_graph = torch.compiler.disable(_custom_outside_of_the_graph)


def attach(values: list, pull, inputs) -> list:
    for i, v in enumerate(values):
        whole = _base(v)
        for x in inputs:
            if v is x or whole is not None and (whole is x or whole is _base(x)):  # an input, or a view of one
                values[i] = v.clone()
                break
    if not torch.is_grad_enabled():
        return values
    if reaches_others(values, inputs):
        raise transforms.closure_error()
    _check_kept("custom and scaled gradients")
    for x in inputs:
        if x.requires_grad:
            results = _custom(pull, values, *map(transforms.without_dead, inputs))
            return [results] if len(values) == 1 else results
    return values


def attach_one(value, pull, residuals, x):
    if not (x.requires_grad and _recording()):
        return attach([value], None, (x,))[0]
    if value is x:
        _check_kept("custom and scaled gradients")
        return _custom_of_one(((pull, residuals), None), without_dead(x))
    if _base(value) is not None:
        return attach([value], lambda upstreams: (pull(*upstreams, residuals),), (x,))[0]
    if not _is_of(value, (x,)) and reaches_others((value,), (x,)):
        raise transforms.closure_error()
    try:
        return _custom_of_one(((pull, residuals), value), without_dead(x))
    except RuntimeError:  # raised in `torch.jit.trace`; checking for it on each call takes time
        _check_kept("custom and scaled gradients")
        raise


def attach_to(value, pull, residuals, inputs):
    if not _recording() or _base(value) is not None or any(value is x for x in inputs):
        return attach([value], lambda upstreams: pull(*upstreams, residuals), inputs)[0]
    if not _is_of(value, inputs):
        if reaches_others((value,), inputs):
            raise transforms.closure_error()
        if not any(x.requires_grad for x in inputs):
            return value
    try:
        return _custom_of_some(((pull, residuals), value), *map(without_dead, inputs))
    except RuntimeError:  # see `attach_one`
        _check_kept("custom and scaled gradients")
        raise


def _is_of(value, inputs) -> bool:
    """True if one operation made ``value`` and all inputs of it that require a gradient are in ``inputs``."""
    node = value.grad_fn
    if node is None:
        return False
    for before, _ in node.next_functions:
        if before is None:
            continue
        leaf = before.variable if type(before) is _Leaf else None
        for x in inputs:
            if leaf is x if leaf is not None else before is x.grad_fn:
                break
        else:
            return False
    return True


_base, without_dead = _private.base, _private.without_dead
with torch.inference_mode(False), torch.enable_grad():  # gradops may be imported in any mode
    _Leaf = type(get_gradient_edge(torch.empty((), requires_grad=True)).node)


def apply(function, args: tuple):
    """``function.apply(*args)`` of a ``torch.autograd.Function``; only the values if a trace would lose its rule."""
    if torch.compiler.is_compiling() and not _keeps_rules([x for x in args if isinstance(x, torch.Tensor)]):
        return _tree.map_leaves(lambda y: y.detach() if isinstance(y, torch.Tensor) else y, function.apply(*args))
    return function.apply(*args)


def _keeps_rules(inputs: list) -> bool:
    """True if a trace keeps custom derivatives, False if only values are exported; raises if a rule would be lost."""
    if _private.transforms_active():
        raise GradientError(
            "torch.compile of a torch.func transform ignores custom gradients.",
            argument="f",
            hint="compile the function and use `backward()`, or take the transform out of `torch.compile`",
        )
    if not _private.exporting():
        return True
    if torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
        raise GradientError(
            "torch.export keeps values and no custom or scaled gradients.",
            argument="f",
            hint="export it under `torch.no_grad()`, for its values",
        )
    return False


def _custom_compiled(run, inputs: list) -> list:
    keeps_rules = _keeps_rules(inputs)
    values, pull = run(*inputs)
    if not keeps_rules:
        return [v.detach() for v in values]  # no gradient rather than a wrong one
    wanted = torch.is_grad_enabled() and any(x.requires_grad for x in inputs)
    if not wanted:
        return values
    inputs = [x.view_as(x) if any(x is y for y in inputs[:i]) else x for i, x in enumerate(inputs)]
    return list(_Compiled.apply(pull, len(values), *(v.detach() for v in values), *inputs))


def gradient(y, xs: list):
    if not y.requires_grad:
        raise GradientError("`y` does not require a gradient: nothing it was computed from does.", argument="y")
    return torch.autograd.grad(y, xs, retain_graph=True, create_graph=torch.is_grad_enabled(), allow_unused=True)


def _outside_inference_mode(derivative):
    """A decorator that runs a derivative outside of ``torch.inference_mode()``, where PyTorch's fail or are zeros."""

    @functools.wraps(derivative)
    def taken(at, *arguments):
        if not torch.is_inference_mode_enabled():
            return derivative(at, *arguments)
        with torch.inference_mode(False), torch.no_grad():
            if hasattr(at, "leaves"):
                at.leaves = _normal(at.leaves)
            found = derivative(at, *map(_normal, arguments))
        if type(found) is tuple and len(found) == 2 and callable(found[1]):  # `(outputs, pull)` or `(outputs, push)`
            return found[0], _outside_inference_mode(found[1])
        return found

    return taken


def _normal(x):
    """A differentiable copy of each inference tensor; other values unchanged."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(_normal, x))
    return x.clone() if isinstance(x, torch.Tensor) and x.is_inference() else x


@_outside_inference_mode
def value_and_grad(run, leaves: list) -> tuple:
    """The value of a scalar function and its gradients, connected to the tensors that it closes over."""
    if torch.compiler.is_compiling() or transforms.transforming() or any(map(transforms.is_dual, leaves)):
        return _value_and_grad_in_transform(run, leaves)
    recording = torch.is_grad_enabled()
    outer = recording and any(x.requires_grad for x in leaves)
    with torch.enable_grad():
        inputs = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in leaves]
        with _copied_on_the_graph(inputs):
            y = _tensor(run(*inputs), leaves[0])
        box = getattr(run, "box", {})
        if "aux" in box:
            box["aux"] = _tree.map_leaves(lambda x: _off_graph(x, inputs, outer), box["aux"])
        if not y.requires_grad:
            return y, [torch.zeros_like(x) for x in leaves]
        y, gradients, nested = _derive(y, inputs, lambda: _tensor(run(*inputs), leaves[0]), outer, recording)
        for x in inputs:
            x.gradops_done = True  # a constant for enclosing derivatives
    return (y if nested else y.detach()), _unshared(gradients, inputs)


@_outside_inference_mode
def pulling(at):
    """``pull`` calls ``torch.autograd.grad`` on one graph, or ``torch.func.vjp`` inside ``torch.func``'s transforms."""
    if torch.compiler.is_compiling() or transforms.transforming() or any(map(transforms.is_dual, at.leaves)):
        return _pulling_in_transform(at)
    outputs, inputs, nested = _graph_of(at)
    return _results(outputs, nested), lambda weights: _moved(outputs, inputs, weights, nested)


def _pulling_in_transform(at):
    rest: list = []

    def run(*xs):
        ys = tuple(at.run(*xs))
        found, form = _tree.flatten(at.box.get("aux"))
        rest[:] = form, [None if isinstance(x, torch.Tensor) else x for x in found]
        return ys, tuple([x for x in found if isinstance(x, torch.Tensor)])

    outputs, pull, tensors = torch.func.vjp(run, *at.leaves, has_aux=True)
    if "aux" in at.box:
        given = iter(tensors)
        at.box["aux"] = _tree.unflatten(rest[0], [next(given) if x is None else x for x in rest[1]])
    return list(outputs), lambda weights: list(pull(tuple(weights)))


@_outside_inference_mode
def pushing(at):
    """``push`` is the transpose of ``pull``, which is linear in its weights."""
    if torch.compiler.is_compiling() or transforms.transforming() or any(map(transforms.is_dual, at.leaves)):
        outputs, pull = _pulling_in_transform(at)
        push = torch.func.vjp(lambda *us: tuple(pull(us)), *map(torch.zeros_like, outputs))[1]
        return outputs, lambda tangents: list(push(tuple(tangents)))
    outputs, inputs, nested = _graph_of(at)
    points = [torch.zeros_like(y).requires_grad_() for y in outputs]
    for u in points:
        u.gradops_done = True
    pulled = _moved(outputs, inputs, points, True)
    return _results(outputs, nested), lambda tangents: _moved(pulled, points, tangents, nested)


def _graph_of(at):
    """The outputs, the inputs they were computed from, and True if enclosing derivatives see them."""
    recording = torch.is_grad_enabled()
    outer = recording and any(x.requires_grad for x in at.leaves)
    with torch.enable_grad():
        inputs = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in at.leaves]
        with _copied_on_the_graph(inputs):
            outputs = at.run(*inputs)
    if "aux" in at.box:
        at.box["aux"] = _tree.map_leaves(lambda x: _off_graph(x, inputs, outer), at.box["aux"])
    for x in inputs:
        x.gradops_done = True  # a constant for enclosing derivatives
    nested = outer or recording and reaches_others([y for y in outputs if y.requires_grad], inputs)
    return outputs, inputs, nested


def _results(outputs: list, nested: bool) -> list:
    return outputs if nested else [y.detach() for y in outputs]


def _moved(outputs: list, inputs: list, weights: list, nested: bool) -> list:
    """The product of ``weights`` with the Jacobian, recorded if an enclosing derivative may depend on it."""
    pairs = [(y, w) for y, w in zip(outputs, weights) if y.requires_grad]
    if not pairs:
        return [torch.zeros_like(x) for x in inputs]
    ys, ws = zip(*pairs)
    how = {"retain_graph": True, "allow_unused": True, "materialize_grads": True}
    recording = torch.is_grad_enabled()
    if not (nested or recording and any(w.requires_grad for w in ws)):
        others = Others(ys, inputs)
        with others if recording else contextlib.nullcontext():
            found = torch.autograd.grad(ys, inputs, ws, **how)
        if not (recording and others.found):
            return _unshared(found, [*inputs, *ws])[: len(inputs)]
    return _unshared(torch.autograd.grad(ys, inputs, ws, create_graph=True, **how), inputs)


def _value_and_grad_in_transform(run, leaves: list) -> tuple:
    """``value_and_grad`` by ``torch.func.grad``; ``box["aux"]`` leaves the transform as an additional output."""
    box = getattr(run, "box", {})
    rest: dict = {}

    def twice(*xs):
        y = _tensor(run(*xs), xs[0])
        found, rest["form"] = _tree.flatten(box.get("aux"))
        rest["others"] = [None if isinstance(x, torch.Tensor) else x for x in found]
        return y.reshape(()), (y, tuple([x for x in found if isinstance(x, torch.Tensor)]))

    positions = tuple(range(len(leaves)))
    gradients, (value, tensors) = torch.func.grad(twice, argnums=positions, has_aux=True)(*leaves)
    if "aux" in box:
        given = iter(tensors)
        box["aux"] = _tree.unflatten(rest["form"], [next(given) if x is None else x for x in rest["others"]])
    return value, list(gradients)


def _derive(y, inputs: list, again, outer: bool, recording: bool) -> tuple:
    """The value, its gradients, and True if they are recorded because they depend on tensors other than the inputs.

    Args:
        again: recomputes the value, if a hook turns out to have read a tensor from outside after the graph was freed.
        outer: True if the inputs themselves require gradients outside.
        recording: True if anything is recorded outside.
    """
    others = Others([y], inputs)
    how = {"allow_unused": True, "materialize_grads": True}
    if not (outer or recording and others.found):
        with others if recording else contextlib.nullcontext():
            gradients = torch.autograd.grad(y, inputs, retain_graph=recording and others.watched, **how)
        if not (recording and others.found):
            return y, gradients, False
        if not others.watched:
            y = again()
        recorded = torch.autograd.grad(y, inputs, create_graph=True, **how)
        if not reaches_others([g for g in recorded if g.requires_grad], inputs):  # tensors were read but not used
            return y, gradients, False
        return y, recorded, True
    return y, torch.autograd.grad(y, inputs, create_graph=True, **how), True


@contextlib.contextmanager
def _copied_on_the_graph(inputs):
    """A scope that makes copies of ``inputs`` depend on them; PyTorch would copy them to unrelated leaves."""
    plain = [x for x in inputs if type(x) is torch.Tensor and not transforms.wrapped(x)]
    for x in plain:
        x.__deepcopy__ = functools.partial(_deepcopy, x)
        x.__reduce_ex__ = functools.partial(_reduce, x)
    try:
        yield
    finally:
        for x in plain:
            del x.__deepcopy__, x.__reduce_ex__


def _deepcopy(x, memo: dict):
    return x.clone()


def _reduce(x, protocol: int) -> tuple:
    """Copy for ``copy.copy()`` by a view on the same memory.

    Pickle as PyTorch does, without the attributes set here.
    """
    if sys._getframe(1).f_code is copy.copy.__code__:
        return torch.Tensor.view_as, (x, x)
    return x.detach().requires_grad_(x.requires_grad).__reduce_ex__(protocol)


def _unshared(gradients, inputs: list) -> list:
    """Gradients that can be written to: PyTorch expands a number with strides of 0, and shares one sum among inputs."""
    if torch.compiler.is_compiling():
        return list(gradients)
    taken = set(map(_memory, inputs)) - {None}
    found = []
    for g in gradients:
        if g.layout is torch.strided and g.numel() > 1 and 0 in g.stride() or _memory(g) in taken:
            g = g.clone(memory_format=torch.contiguous_format)
        taken |= {_memory(g)} - {None}
        found.append(g)
    return found


def _memory(x):
    """The address of a tensor's memory; None if PyTorch does not report it."""
    try:
        storage = x.untyped_storage()
        return None if storage.device.type == "meta" else storage.data_ptr() or None
    except (RuntimeError, NotImplementedError):
        return None


def _off_graph(x, inputs: list, outer: bool):
    """An auxiliary output, detached from the graph of this derivative unless it depends on other tensors."""
    if outer or not isinstance(x, torch.Tensor) or not x.requires_grad or reaches_others([x], inputs):
        return x
    return x.detach()


own_tape = True


def records(x) -> bool:
    return x.requires_grad and torch.is_grad_enabled() or transforms.is_dual(x)


@_outside_inference_mode
def jacobian(at, create_graph: bool, strict: bool, vectorize: bool, strategy: str | None):
    if transforms.transforming():
        transform = torch.func.jacfwd if strategy == "forward-mode" else torch.func.jacrev
        return at.rows(transform(_outputs(at, strict), argnums=tuple(range(len(at.leaves))))(*at.leaves))
    how = {"vectorize": vectorize or strategy == "forward-mode", "strategy": strategy or "reverse-mode"}
    return _functional("jacobian", at.call, at, (), create_graph, strict, **how)


@_outside_inference_mode
def check_dependence(at, strict: bool) -> None:
    if not strict:
        return
    if transforms.transforming():
        _outputs(at, strict)
    outputs, inputs, _ = _graph_of(at)
    found = [
        torch.autograd.grad(y.sum(), inputs, retain_graph=True, allow_unused=True)
        if y.requires_grad
        else [None] * len(inputs)
        for y in outputs
    ]
    at.check_dependence([[g is not None for g in row] for row in found])


@_outside_inference_mode
def hessian(at, create_graph: bool, strict: bool, vectorize: bool, strategy: str):
    if any(x.is_complex() for x in at.leaves) or transforms.transforming():
        return NotImplemented
    how = {"vectorize": vectorize or strategy == "forward-mode", "outer_jacobian_strategy": strategy}
    return _functional("hessian", at.func, at, (), create_graph, strict, **how)


@_outside_inference_mode
def vjp(at, v, create_graph: bool, strict: bool):
    """``v`` is converted to what PyTorch accepts, tensors that are complex where the outputs are.

    Which outputs are complex is known only after the function has run, so it may run twice.
    """
    if transforms.transforming():
        outputs, pull = torch.func.vjp(_outputs(at, strict), *at.leaves)
        return at.outputs(outputs), at.inputs(pull(tuple(at.weights(v, list(outputs)))))

    def checked(*xs):
        y = at.func(*xs)
        weights = tuple(at.weights(v, list(_as_tuple(y))))
        if v is not None and not _are_like(taken, weights):
            raise _Weights(weights if isinstance(y, tuple) else weights[0])
        return y

    taken = v if _are_like(v) else None
    try:
        return _functional("vjp", checked, at, (taken,), create_graph, strict)
    except _Weights as found:
        taken = found.args[0]
        return _functional("vjp", checked, at, (taken,), create_graph, strict)


class _Weights(Exception):
    """Carries ``v``, converted to tensors of the outputs' kinds, out of the function being differentiated."""


def _are_like(given, outputs: tuple | None = None) -> bool:
    """True if all given values are tensors, complex where the outputs are."""
    given = given if isinstance(given, tuple) else (given,)
    pairs = zip(given, given if outputs is None else outputs)
    return all(isinstance(x, torch.Tensor) and x.is_complex() == y.is_complex() for x, y in pairs)


@_outside_inference_mode
def jvp(at, v, create_graph: bool, strict: bool):
    if transforms.transforming():
        outputs, products = torch.func.jvp(_outputs(at, strict), tuple(at.leaves), tuple(at.tangents(v)))
        return at.outputs(outputs), at.outputs(products)
    return _functional("jvp", at.func, at, (at.inputs(at.tangents(v)),), create_graph, strict)


@_outside_inference_mode
def hvp(at, v, create_graph: bool, strict: bool):
    if transforms.transforming():
        return NotImplemented
    return _functional("hvp", at.scalar, at, (at.inputs(at.tangents(v)),), create_graph, strict)


@_outside_inference_mode
def vhp(at, v, create_graph: bool, strict: bool):
    if transforms.transforming():
        return NotImplemented
    return _functional("vhp", at.scalar, at, (at.inputs(at.tangents(v)),), create_graph, strict)


def _outputs(at, strict: bool):
    """The function in the form that ``torch.func``'s transforms take: it returns a tuple."""
    if strict:
        raise GradientError(
            f"`{at.name}`: `strict` must be False inside torch.func's transforms, which do not report dependences.",
            argument="strict",
            hint="ask with `strict` outside of the transform",
        )

    def outputs(*xs):
        with torch.enable_grad(), transforms.forward_followed():
            return tuple(at.run(*xs))

    return outputs


def _functional(name: str, f, at, vectors: tuple, create_graph: bool, strict: bool, **how):
    """Call a function of ``torch.autograd.functional``; record the result if it depends on tensors from outside."""
    argument = at.inputs(at.leaves)
    inputs: list = []
    given = [*_as_tuple(argument), *(x for v in vectors if v is not None for x in _as_tuple(v))]
    found = torch.is_grad_enabled() and any(x.requires_grad for x in given)
    recording = torch.is_grad_enabled() and not (create_graph or found)
    forwards = "forward-mode" in (how.get("strategy"), how.get("outer_jacobian_strategy"))
    batched = recording and how.get("vectorize", False) and not forwards  # modes cannot intercept vectorized passes
    others: list[Others] = []

    def noted(*xs):
        with torch.enable_grad(), transforms.forward_followed(), _copied_on_the_graph(xs):
            y = f(*xs)
        inputs.extend(xs)
        if recording and not (batched or forwards):
            ys = [z for z in _as_tuple(y) if isinstance(z, torch.Tensor) and z.requires_grad]
            others.append(Others(ys, list(xs)))
            scope.enter_context(others[-1])
        return y

    def run(recorded: bool):
        return getattr(torch.autograd.functional, name)(noted, argument, *vectors, recorded, strict, **how)

    try:
        with contextlib.ExitStack() as scope:
            if recording and forwards:  # forward rules run while the function runs
                others.append(scope.enter_context(Others([], given)))
            result = run(create_graph or found or batched)
        again = any(x.found for x in others)
        if again:
            recording, inputs = False, []
            how = {"vectorize": False} if forwards else how  # PyTorch cannot record forward mode
            result = run(True)
        if again or batched:
            found = reaches_others([x for x in _tree.flatten(result)[0] if x.requires_grad], inputs)
    except RuntimeError as error:
        if isinstance(error, GradientError) or not any(
            words in str(error) for words in (f"to {name}", "user-provided")
        ):
            raise
        raise GradientError(f"`{name}`: {error}", argument="func") from error
    for x in inputs if not found or not any(x.requires_grad for x in _as_tuple(argument)) else ():
        for leaf in (x, *_leaves_of(x)):
            leaf.gradops_done = True  # a constant for enclosing derivatives
    parts, form = _tree.flatten(_nested_tuples(result, create_graph or found))
    return _tree.unflatten(form, _unshared(parts, given))


def _nested_tuples(result, recorded: bool):
    """Tuples in place of the lists of PyTorch's forward mode, detached unless ``recorded``."""
    if isinstance(result, (list, tuple)):
        return tuple(_nested_tuples(part, recorded) for part in result)
    return result if recorded else result.detach()


def _leaves_of(x):
    """The leaves that a view was made from."""
    stack = [x.grad_fn]
    while stack:
        node = stack.pop()
        if hasattr(node, "variable"):
            yield node.variable
        elif node is not None:
            stack.extend(next_node for next_node, _ in node.next_functions)


def _as_tuple(value) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _tensor(y, like):
    return y if isinstance(y, torch.Tensor) else torch.tensor(y, dtype=like.dtype, device=like.device)


def compile(f):
    """Compile ``f`` to graphs of torch operations, one for each signature of shapes, dtypes and devices.

    Tensors that require gradients, or belong to a transform, are passed to ``f`` itself, because a graph does not
    contain its custom gradients.
    """
    graphs: dict = {}

    def call(*tensors):
        if torch.is_grad_enabled() and any(x.requires_grad for x in tensors) or transforms.active():
            return f(*tensors)
        key = tuple((x.shape, x.dtype, x.device) for x in tensors)
        graph = graphs.get(key)
        if graph is None:
            graph = graphs[key] = _graph(f, tensors)
        return graph(*tensors)

    return call


knows_values = True

MAX_OPERATIONS = 10_000
"""The largest graph; PyTorch traces one in about ten seconds. Longer functions run uncompiled."""


class _Watched(TorchFunctionMode):
    """A scope that keeps traced tensors from being read into arrays, lists or strings, which ``make_fx`` allows.

    A decision (``if x > 0``, ``int(x)``) is passed to ``looks`` if it is set.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in _DECIDES and _private.is_traced(args[0]):

            def read(x):
                return _private.outside_of_graph(func, x)

            value = looked(args[0], read) if _private.depends_on_inputs(args[0]) else read(args[0])
            if value is not NotImplemented:
                return value
            raise looked_at_a_value()
        if func in _READS and _private.depends_on_inputs(args[0]):
            raise looked_at_a_value()
        return func(*args, **(kwargs or {}))


_READS, _DECIDES = (
    frozenset(getattr(torch.Tensor, name) for name in names.split())
    for names in (
        "numpy tolist __array__ __repr__ __format__ __dlpack__ __reduce_ex__",
        "__bool__ __int__ __index__ item",
    )
)


class _Limits(_private.DispatchMode):
    """A scope that limits a graph to ``MAX_OPERATIONS`` and treats sizes that depend on values as decisions.

    The number of true elements of a mask sets the size of ``x[mask]``. ``make_fx`` would assume the same size for all
    arguments.
    """

    operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operations += 1
        if self.operations > MAX_OPERATIONS:
            raise GraphTooLongError(MAX_OPERATIONS)
        if torch.Tag.dynamic_output_shape in func.tags:
            for mask in _masks(func, args):
                if _private.depends_on_inputs(mask):
                    counted = torch.count_nonzero(mask)
                    if looked(counted, lambda x: _private.outside_of_graph(int, x)) is NotImplemented:
                        raise looked_at_a_value()
        return func(*args, **(kwargs or {}))


def _masks(func, args):
    """The tensors whose values determine the size of a result."""
    if func is torch.ops.aten.index.Tensor:
        return [x for x in args[1] if x is not None and x.dtype in (torch.bool, torch.uint8)]
    if func is torch.ops.aten.masked_select.default:
        return args[1:2]
    if func is torch.ops.aten.nonzero.default:
        return args[:1]
    if any(isinstance(x, torch.Tensor) and _private.depends_on_inputs(x) for x in args):
        raise looked_at_a_value()
    return ()


def _graph(f, tensors):
    """``f`` traced by ``make_fx``, whose graphs return tensors only.

    The other results of ``f`` are saved separately.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    traced: dict = {}
    limits = _Limits()

    def tensors_of(*xs):
        with limits:
            traced["leaves"], traced["form"] = _tree.flatten(f(*xs))
        return [x for x in traced["leaves"] if isinstance(x, torch.Tensor)]

    try:
        with _Watched(), _private.described_by_one_mode():
            graph = make_fx(tensors_of)(*tensors)
    except Exception as error:
        if limits.operations > MAX_OPERATIONS:  # an error that passes through R comes back as another one
            raise GraphTooLongError(MAX_OPERATIONS) from error
        if not isinstance(error, RuntimeError) or "tracing tensor" not in str(error):
            raise
        raise looked_at_a_value() from error
    others = [None if isinstance(x, torch.Tensor) else x for x in traced.pop("leaves")]
    is_tensor = [x is None for x in others]
    form = traced.pop("form")

    def run(*xs):
        given = iter(graph(*xs))
        leaves = [next(given) if t else x.copy() if isinstance(x, np.ndarray) else x for t, x in zip(is_tensor, others)]
        return _tree.unflatten(form, leaves)

    return run

"""PyTorch: custom gradients in ``torch.func``'s transforms, in forward mode and inside other derivatives.

In a transform a gradient function's closure belongs to a level that has ended when the derivative is taken. So
:class:`_Rule` keeps only the inputs and runs the function again whenever its derivative is needed, with the same random
numbers. Such a rule is a function of inputs and upstream gradients, which PyTorch can vectorize and differentiate;
forward mode uses its transpose (Townsend 2017).

:class:`Others` finds the tensors beyond the inputs that a derivative depends on. The graph of a value shows most of
them. A gradient function such as ``lambda u: u * torch.cos(y)`` may read tensors that the value does not depend on, so
during a backward pass that is not recorded a mode observes what Python functions read.
"""

from __future__ import annotations

import contextlib
import functools
from operator import attrgetter

import torch
from torch.autograd import forward_ad
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import get_gradient_edge
from torch.overrides import TorchFunctionMode

from ...errors import GradientError
from ..tracing import compiling
from . import _private

wrapped, transforming, without_dead = _private.is_wrapped, _private.transforms_active, _private.without_dead
active = _private.transforming


def records(x) -> bool:
    """True if results computed from a tensor may be differentiated."""
    return x.requires_grad and torch.is_grad_enabled() or active()


def is_dual(x) -> bool:
    """True if a tensor, or the tensor that it is a batch element of, has a tangent."""
    if _private.forward_level() < 0:
        return False
    while _private.is_batched(x):  # PyTorch does not unpack batched tensors
        x = _private.unwrapped(x)
    return forward_ad.unpack_dual(x).tangent is not None


def primal(x):
    """A tensor without its tangent."""
    if _private.forward_level() < 0:
        return x
    if _private.is_batched(x):
        whole = primal(_private.unwrapped(x))
        return _private.add_batch_dimension(whole, _private.batched_dimension(x), _private.level_of(x))
    return forward_ad.unpack_dual(x).primal


def custom(run, inputs: list, reaches_others) -> list:
    """The values of ``run(*inputs) -> (values, pull)``, with ``pull`` as their derivative in both modes."""
    home = _batches()

    def rule(xs, upstreams):
        with _unmixed([*xs, *upstreams], home):
            return run(*xs)[1](upstreams)

    return again(lambda *xs: run(*xs)[0], rule, inputs, reaches_others)


def again(run, rule, inputs: list, reaches_others) -> list:
    """The values of ``run(*inputs)``, with ``rule(inputs, upstreams)`` as their derivative in both modes."""
    primals = [primal(x) for x in inputs]
    numbers = _Numbers(inputs)
    values = run(*primals)
    numbers.compare()
    mine = _layers(primals)
    others = any(reaches_others(xs, mine.get(level, [])) for level, xs in _layers(values).items())
    if others or any(map(is_dual, values)):
        raise closure_error()
    results = _Rule.apply(numbers.replayed(rule), len(values), *(v.detach() for v in values), *inputs)
    if not torch.is_grad_enabled():  # PyTorch respects this at the innermost level only
        results = [y.clone() for y in results]
    for mode in _checks:
        mode.know(results)
    return list(results)


def closure_error() -> GradientError:
    return GradientError(
        "a function with a custom gradient uses a tensor that requires a gradient but is not an argument; "
        "its gradient would be lost.",
        argument="f",
        hint="pass the tensor as an argument, or use `stop_gradient()` on it",
    )


class _Rule(torch.autograd.Function):
    """Values computed elsewhere, with ``rule`` as their derivative with respect to the inputs."""

    generate_vmap_rule = True

    @staticmethod
    def forward(rule, count, *tensors):
        return tuple(v.clone() for v in tensors[:count])

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.rule, ctx.count, *tensors = inputs
        ctx.looks = [(v.shape, v.dtype, v.device) for v in output]
        ctx.save_for_backward(*tensors[ctx.count :])
        ctx.save_for_forward(*tensors[ctx.count :])

    @staticmethod
    def backward(ctx, *upstreams):
        with forward_followed():
            gradients = ctx.rule(ctx.saved_tensors, [u.clone() for u in upstreams])
        return (None, None, *([None] * ctx.count), *gradients)

    @staticmethod
    def jvp(ctx, _rule, _count, *tangents):
        with _private.forward_mode(True):  # PyTorch switches it off here, so nested forward mode would give 0
            return _transposed(ctx.rule, [primal(x) for x in ctx.saved_tensors], tangents[ctx.count :], ctx.looks)


def _transposed(rule, xs, tangents, looks: list) -> tuple:
    """The tangents of the results: ``d/du <rule(xs, u), tangents>``, taken at 0 because the rule is linear in ``u``."""
    zeros = [torch.zeros(shape, dtype=dtype, device=device) for shape, dtype, device in looks]
    smooth = [i for i, z in enumerate(zeros) if z.is_floating_point() or z.is_complex()]
    pairs: list = []

    def pulled(*some):
        upstreams = list(zeros)
        for i, u in zip(smooth, some):
            upstreams[i] = u
        pairs[:] = [(g, t) for g, t in zip(rule(xs, upstreams), tangents) if g is not None and t is not None]
        return tuple(g for g, _ in pairs)

    pull = torch.func.vjp(pulled, *(zeros[i] for i in smooth))[1]
    if pairs:
        for i, t in zip(smooth, pull(tuple(t for _, t in pairs))):
            zeros[i] = t
    return tuple(z if i in smooth else None for i, z in enumerate(zeros))


# Derivatives that PyTorch's grad mode does not switch off -------------------------------------------------------------


def forward_followed():
    """A scope that lets ``torch.no_grad()`` stop tangents as well.

    PyTorch's forward mode ignores its grad mode, so forward and backward derivatives would differ.
    """
    if not (active() and torch.is_grad_enabled()) or compiling():
        return contextlib.nullcontext()
    return Followed(_forward_mode_off)


def _forward_mode_off():
    return functools.partial(_private.forward_mode(False).__exit__, None, None, None)


class Followed(TorchFunctionMode):
    """A scope that calls ``off()`` when grad mode is switched off, and the function it returned when it is on again.

    PyTorch's engine also sets the grad mode, invisibly to a mode like this: for the forward pass of a
    ``torch.autograd.Function`` and for a backward pass that is not recorded. These changes do not count.

    Attributes:
        end: the function that ``off()`` returned and the number of ``torch.func`` transforms around; None while grad
            mode is on.
        inside: the number of open scopes that switch recording on where the engine had switched it off.
        within: while grad mode is off, the number of open scopes that switch it off where the engine had switched it
            on; negative for transforms, which record their own derivatives only.
    """

    def __init__(self, off):
        super().__init__()
        self.off, self.end, self.inside, self.within = off, None, 0, 0

    def __exit__(self, *error):
        self._end()
        return super().__exit__(*error)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is not _private.set_grad_mode:
            return func(*args, **(kwargs or {}))
        before = torch.is_grad_enabled()
        func(*args, **(kwargs or {}))
        if before != torch.is_grad_enabled():
            self._changed(len(_private.interpreters() or ()))

    def _changed(self, depth: int) -> None:
        if torch.is_grad_enabled():
            if self.end is None:
                self.inside += 1
            elif self.within > 0 or depth > self.end[1]:
                self.within -= 1
            else:
                self._end()
        elif self.end is not None:
            self.within += 1
        elif self.inside:
            self.inside -= 1
        else:
            self.end = self.off(), depth

    def _end(self) -> None:
        if self.end is not None:
            self.end[0]()
            self.end = None


# Tensors that a rule may use ------------------------------------------------------------------------------------------


def _layers(xs) -> dict:
    """Tensors and the tensors wrapped inside them, by the level of the transform they belong to."""
    found: dict[int, list] = {}
    for x in map(without_dead, xs):
        while wrapped(x):
            found.setdefault(_private.level_of(x), []).append(x)
            x = _private.unwrapped(x)
        found.setdefault(0, []).append(x)
    return found


def _batches() -> tuple:
    """The levels and sizes of the active ``torch.func.vmap``s."""
    stack = [level for level in _private.interpreters() or () if level.key() == _private.vmap_type]
    return tuple((level.level(), _private.vmap_interpreter(level).batchSize()) for level in stack)


def _unmixed(known: list, home: tuple):
    """A scope that rejects tensors of a finished ``vmap``, which PyTorch would attribute to another one."""
    return contextlib.nullcontext() if not home or home == _batches() else _Unmixed(known)


class _Unmixed(TorchFunctionMode):
    def __init__(self, known: list):
        super().__init__()
        self.known: dict = {}
        self.know(known)

    def know(self, tensors) -> None:
        self.known.update((id(x), x) for x in tensors)

    def __enter__(self):
        _checks.append(self)
        return super().__enter__()

    def __exit__(self, *error):
        _checks.remove(self)
        return super().__exit__(*error)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        for x in _private.tree_leaves((args, kwargs)):
            if isinstance(x, torch.Tensor) and id(x) not in self.known and _holds_rows(x):
                raise GradientError(
                    "a function with a custom gradient uses a row of a `vmap` that is not an argument, and its "
                    "gradient is taken after the `vmap`.",
                    argument="f",
                    hint="pass the tensor as an argument",
                )
        result = func(*args, **(kwargs or {}))
        self.know(x for x in _private.tree_leaves(result) if isinstance(x, torch.Tensor))
        return result


_checks: list[_Unmixed] = []


def _holds_rows(x) -> bool:
    x = without_dead(x)
    while wrapped(x):
        if _private.is_batched(x):
            return True
        x = _private.unwrapped(x)
    return False


class _Numbers:
    """The states of torch's random generators before a function ran; restored for later runs if it drew numbers."""

    def __init__(self, inputs: list):
        self.devices = {x.device for x in inputs if x.device.type == "cuda"}
        self.before = self._states()

    def _states(self) -> list:
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state(d) for d in self.devices)]

    def compare(self) -> None:
        self.drawn = not all(map(torch.equal, self.before, self._states()))

    def replayed(self, rule):
        if not self.drawn:
            return rule

        def replaying(xs, upstreams):
            with torch.random.fork_rng(self.devices):
                torch.set_rng_state(self.before[0])
                for device, state in zip(self.devices, self.before[1:]):
                    torch.cuda.set_rng_state(state, device)
                return rule(xs, upstreams)

        return replaying


# Vectorized maps; torch.func handles loops and branches by tracing Python.

unwinds = (_private.end_of_recomputation,)


def vectorized_map(function, rows, randomness="different"):
    return torch.vmap(lambda *leaves: tuple(function(*leaves)), randomness=randomness)(*rows)


def custom_vmap(function, rule, xs: list) -> list:
    """``function(*xs)``, a list, by ``rule(size, batched, xs)`` for all rows of a ``torch.vmap``; no derivatives."""
    return list(_RowRule.apply(function, rule, *xs))


class _RowRule(torch.autograd.Function):
    """A function with a rule for all rows."""

    @staticmethod
    def forward(function, rule, *xs):
        return tuple(y.view_as(y) if any(y is x for x in xs) else y for y in function(*xs))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(*output)

    @staticmethod
    def backward(ctx, *upstreams):
        return (None,) * len(ctx.needs_input_grad)

    @staticmethod
    def vmap(info, places, function, rule, *xs):
        return _batched_result(rule, info.batch_size, places[2:], xs)


def _batched_result(rule, size: int, places, xs) -> tuple:
    batched = [place is not None for place in places]
    xs = [x if place is None else x.movedim(place, 0) for x, place in zip(xs, places)]
    ys, out = rule(size, batched, xs)
    return tuple(ys), tuple(0 if is_batch else None for is_batch in out)


def reduced_rows(rule, again, x, numbers):
    """A linear function of the rows ``x`` by ``rule(size, batched, [x, numbers])``; ``again`` is also its transpose."""
    return _ReducedRows.apply(rule, again, x, numbers)[0]


class _ReducedRows(torch.autograd.Function):
    """A reduction over rows. Derivatives inside of the map apply it again; those outside see the rule's operations."""

    @staticmethod
    def forward(rule, again, x, numbers):
        return (x.clone(),)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.again = inputs[1]

    @staticmethod
    def backward(ctx, upstream):
        return None, None, ctx.again(upstream), None

    @staticmethod
    def jvp(ctx, _rule, _again, tangent, _numbers):
        return (ctx.again(tangent),)

    @staticmethod
    def vmap(info, places, rule, again, x, numbers):
        return _batched_result(rule, info.batch_size, places[2:], [x, numbers])


# Derivatives inside others that depend on tensors beyond their inputs -------------------------------------------------


_node = attrgetter("grad_fn")


def reaches_others(ys, inputs) -> bool:
    """True if ``ys`` also depend on tensors that require gradients and are not inputs."""
    return _reaches_others(ys, inputs, set(map(_node, inputs)))


def _reaches_others(ys, inputs, seen: set) -> bool:
    """``reaches_others`` without the nodes in ``seen``; adds the visited nodes to ``seen``."""
    found = []  # grows while it is iterated over
    for y in ys:
        node = y.grad_fn
        if node is None:
            if y.requires_grad and _another(y, inputs):
                return True
        elif node not in seen:
            seen.add(node)
            found.append(node)
    for node in found:
        further = node.next_functions
        for next_node, _ in further:
            if next_node is not None and next_node not in seen:
                seen.add(next_node)
                found.append(next_node)
        if not further and (leaf := getattr(node, "variable", None)) is not None and _another(leaf, inputs):
            return True
    return False


def _another(leaf, inputs) -> bool:
    """True if a leaf is neither an input nor a constant left by a finished derivative."""
    base = _private.base(leaf)
    leaf = leaf if base is None else base  # a view made while nothing was recorded
    for x in inputs:
        if leaf is x:
            return False
    return not (hasattr(leaf, "gradops_done") or _same_place(leaf, inputs))


def _same_place(leaf, inputs) -> bool:
    """True if a leaf accumulates where an input does: hooks for saved tensors replace a leaf by another tensor."""
    leaves = [] if _private.transforming() else [x for x in inputs if x.requires_grad and x.grad_fn is None]
    place = get_gradient_edge(leaf).node if leaves else None
    return any(get_gradient_edge(x).node is place for x in leaves)


class Others(TorchFunctionMode):
    """A search for tensors beyond the inputs that given tensors, or the backward passes from them, depend on.

    A backward pass depends on the tensors that Python functions read in it. As a scope, this observes the passes of
    ``torch.autograd.grad``.

    Attributes:
        found: True if there are such tensors.
        watched: True if Python functions are known to take part in a pass.
    """

    def __init__(self, ys, inputs):
        super().__init__()
        self.inputs, self._seen = inputs, set(map(_node, inputs))
        self._passing, self._hooks = False, None
        self.found = _reaches_others(ys, inputs, self._seen)
        self.watched = any(isinstance(node, BackwardCFunction) for node in self._seen)

    def read(self, values) -> None:
        """Include the tensors among these values in the search."""
        if not (self.found or _private.is_below_autograd() or self._recomputing()):
            tensors = [x for x in values if isinstance(x, torch.Tensor) and x.requires_grad]
            tensors = [x for x in tensors if not _private.keeps_an_input(x)]  # the value depends on these anyway
            self.found = bool(tensors) and _reaches_others(tensors, self.inputs, self._seen)

    def _recomputing(self) -> bool:
        """True while a checkpoint reruns its function: the forward pass has already read the same tensors."""
        return self._passing and _private.top_saved_hooks(True) != self._hooks

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is not torch.autograd.grad or self._passing:
            for value in (*args, *kwargs.values()):
                self.read(value if isinstance(value, (list, tuple)) else (value,))
            return func(*args, **kwargs)
        if kwargs.get("create_graph") or kwargs.get("is_grads_batched"):
            found = func(*args, **kwargs)
            self.read(found)
            return found
        return self._pass(*args, **kwargs)

    def _pass(self, outputs, inputs, grad_outputs=None, retain_graph=None, materialize_grads=False, **_):
        """``torch.autograd.grad(allow_unused=True)`` with this mode on, which is off inside its own handler."""
        outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
        weights = [None] * len(outputs) if grad_outputs is None else _as_tuple(grad_outputs)
        weights = [torch.ones_like(y) if w is None else w for w, y in zip(weights, outputs)]
        self._passing, self._hooks = True, _private.top_saved_hooks(True)
        try:
            with self:
                found = _private.pass_of_engine(outputs, tuple(weights), bool(retain_graph), False, inputs, True, False)
        finally:
            self._passing = False
        return tuple(torch.zeros_like(x) if g is None and materialize_grads else g for g, x in zip(found, inputs))


def _as_tuple(values) -> tuple:
    return (values,) if isinstance(values, torch.Tensor) else tuple(values)

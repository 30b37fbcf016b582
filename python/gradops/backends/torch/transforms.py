"""PyTorch: custom gradients in ``torch.func``'s transformations, in forward mode and inside other derivatives.

There a function is run again wherever its derivative is needed, from its inputs alone: the closure of a gradient
function belongs to a transformation that is over by then. So a rule is a function of inputs and upstream
gradients, which PyTorch vectorises and differentiates as any other; forward mode takes its transpose
(Townsend 2017). Random numbers are the same in each run.

The graph of a value shows its dependences. A gradient function may read tensors that the value does not depend on, as
``lambda u: u * torch.cos(y)`` reads ``y``: while a pass runs that is not recorded, a mode sees the tensors that
Python's functions read.
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
    """True if a tensor, or the tensor that it is a row of, has a tangent."""
    if _private.forward_level() < 0:
        return False
    while _private.is_batched(x):  # PyTorch does not unpack rows
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
    """The values of ``run(*inputs) -> (values, pull)``, with ``pull`` as their derivative in every direction."""
    home = _batches()

    def rule(xs, upstreams):
        with _unmixed([*xs, *upstreams], home):
            return run(*xs)[1](upstreams)

    return again(lambda *xs: run(*xs)[0], rule, inputs, reaches_others)


def again(run, rule, inputs: list, reaches_others) -> list:
    """The values of ``run(*inputs)``, with ``rule(inputs, upstreams)`` as their derivative in every direction."""
    primals = [primal(x) for x in inputs]
    numbers = _Numbers(inputs)
    values = run(*primals)
    numbers.compare()
    mine = _layers(primals)
    others = any(reaches_others(xs, mine.get(level, [])) for level, xs in _layers(values).items())
    if others or any(map(is_dual, values)):
        raise closure_error()
    results = _Rule.apply(numbers.replayed(rule), len(values), *(v.detach() for v in values), *inputs)
    if not torch.is_grad_enabled():  # which PyTorch heeds at the innermost level alone
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
    """Values that came from elsewhere, with ``rule`` as their derivative for the inputs."""

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
        with _private.forward_mode(True):  # PyTorch's is off here: forward mode in forward mode would be 0
            return _transposed(ctx.rule, [primal(x) for x in ctx.saved_tensors], tangents[ctx.count :], ctx.looks)


def _transposed(rule, xs, tangents, looks: list) -> tuple:
    """The tangents of the results: ``d/du <rule(xs, u), tangents>``, at 0 as the rule is linear in ``u``."""
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


# Derivatives that PyTorch's grad mode does not reach ------------------------------------------------------------------


def forward_followed():
    """A scope in which a part of a forward derivative that is computed in ``torch.no_grad()`` has no tangents.

    PyTorch's forward mode does not heed its grad mode, so that it would give another derivative than a backward pass.
    """
    if not (active() and torch.is_grad_enabled()) or compiling():
        return contextlib.nullcontext()
    return Followed(_forward_mode_off)


def _forward_mode_off():
    return functools.partial(_private.forward_mode(False).__exit__, None, None, None)


class Followed(TorchFunctionMode):
    """A scope in which ``off()`` is called where the grad mode is turned off, and its result where it is on again.

    PyTorch's engine sets the grad mode, too, unseen from here, for the forward pass of a ``torch.autograd.Function``
    and for a pass that is not recorded: neither counts.

    Attributes:
        end: what ``off()`` gave, and the number of ``torch.func``'s transforms around; None where the mode is on.
        inside: the number of scopes that record inside of what the engine does not.
        within: while the mode is off, the number of scopes that are so inside of what records again unseen from here;
            negative for scopes of transforms, which record their own derivatives alone.
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
    """Tensors by the level of the transformation they belong to, with those inside them."""
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
    """A scope that refuses rows of a ``vmap`` that is over where PyTorch would take them for another's."""
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
    """The states of torch's random generators before a function ran, for the later runs where it drew any."""

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


# Rows at once; loops and branches are Python's.

unwinds = (_private.end_of_recomputation,)


def vectorized_map(function, rows):
    return torch.vmap(lambda *leaves: tuple(function(*leaves)), randomness="different")(*rows)


# Derivatives inside others, which depend on tensors beside their inputs -----------------------------------------------


_node = attrgetter("grad_fn")


def reaches_others(ys, inputs) -> bool:
    """True if ``ys`` also depend on tensors that require gradients and are not inputs."""
    return _reaches_others(ys, inputs, set(map(_node, inputs)))


def _reaches_others(ys, inputs, seen: set) -> bool:
    """The same, without the nodes already ``seen``, to which those found now are added."""
    found = []  # it grows as it is gone through
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
    """True if a leaf is neither an input nor a constant of a derivative that is over."""
    base = _private.base(leaf)
    leaf = leaf if base is None else base  # of a view that was made while nothing is recorded
    for x in inputs:
        if leaf is x:
            return False
    return not (hasattr(leaf, "gradops_done") or _same_place(leaf, inputs))


def _same_place(leaf, inputs) -> bool:
    """True if a leaf's gradient goes where an input's does: hooks for saved tensors make another tensor of a leaf."""
    leaves = [] if _private.transforming() else [x for x in inputs if x.requires_grad and x.grad_fn is None]
    place = get_gradient_edge(leaf).node if leaves else None
    return any(get_gradient_edge(x).node is place for x in leaves)


class Others(TorchFunctionMode):
    """A search for tensors other than inputs on which given tensors, or the backward passes from them, depend.

    A pass depends on the tensors that functions in Python read in it. As a scope this watches the passes that
    ``torch.autograd.grad`` does in it.

    Attributes:
        found: True if there are such tensors.
        watched: True if functions in Python are known to take part in a pass.
    """

    def __init__(self, ys, inputs):
        super().__init__()
        self.inputs, self._seen = inputs, set(map(_node, inputs))
        self._passing, self._hooks = False, None
        self.found = _reaches_others(ys, inputs, self._seen)
        self.watched = any(isinstance(node, BackwardCFunction) for node in self._seen)

    def read(self, values) -> None:
        """Search the tensors among these values, too."""
        if not (self.found or _private.below_autograd() or self._recomputing()):
            tensors = [x for x in values if isinstance(x, torch.Tensor) and x.requires_grad]
            tensors = [x for x in tensors if not _private.keeps_an_input(x)]  # which the value depends on
            self.found = bool(tensors) and _reaches_others(tensors, self.inputs, self._seen)

    def _recomputing(self) -> bool:
        """True if a checkpoint runs its function again, from leaves of its own: the value has read the same."""
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
        """``torch.autograd.grad(allow_unused=True)`` with the mode on, which PyTorch turns off in what a mode calls."""
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

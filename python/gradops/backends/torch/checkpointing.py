"""Checkpointing on PyTorch: saved-tensor hooks save handles in place of the tensors that a scope made.

All scopes share one pair of hooks. The hooks remain after a scope while its results are alive, so that later consumers
do not save them either. If the caller's own hooks were on the stack before, these apply again after the scope.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np
import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from ... import _call_sites, _tree
from ..._tree import items, map_items
from ...errors import BackendError, GradientError
from .. import checkpoint_policies as policies
from .. import tracing
from ..checkpoint_plan import Drawn, Handle, Input, Origin, Result, Step, arrays_held
from ..interface import Residual
from . import _private, transforms
from .base import dtype_name
from .checkpoint_plan import Storage, TorchPlan, busy, key_of, layout_of, storages


class Noting(_private.DispatchMode):
    """Notes the operations of a scope as steps of its plan."""

    def __init__(self, plan: TorchPlan):
        super().__init__()
        self.plan = plan

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if busy or torch.is_inference_mode_enabled():
            return func(*args, **kwargs)
        plan, tensors, facts = self.plan, _tensors(args, kwargs), _facts(func)
        drawn = Drawn([_generator(args, kwargs)]) if facts.draws else None
        written = _written_by(func, args, kwargs) if facts.writes else ()
        overwritten = written if facts.overwrites else ()
        keys = []

        def source(x):
            if not isinstance(x, torch.Tensor):
                return x
            keys.append(key_of(x))
            return plan.source(x, keys[-1], facts.reads and not any(x is t for t in overwritten))

        sources = map_items(source, (*args, *kwargs.values()) if kwargs else args)
        for t in written:
            plan.prepare_write(t, facts.counted)
        result = func(*args, **kwargs)
        if plan.policy.products and facts.name in _PRODUCTS:
            return result
        step = Step(plan, _positional(func, tuple(kwargs)) if kwargs else func, sources, drawn)
        plan.noted(step, (*args, *kwargs.values()))
        for t in written:
            plan.finish_write(t, step, facts.counted)
        for i, out in enumerate((result,) if isinstance(result, torch.Tensor) else items(result)):
            if isinstance(out, torch.Tensor) and not any(out is t for t in tensors):
                plan.remember(out, step, i, keys, facts.name in _BLANK)
        return result


_FACTS = frozenset("dim size stride numel nelement __len__ is_contiguous is_floating_point is_complex".split())
"""Functions that read no values."""

_GRADIENT = torch.Tensor.grad.__get__


class Watched(TorchFunctionMode):
    """Collects the tensors from outside that a function uses and does not write to.

    It sees PyTorch functions called from Python, at a tenth of the cost of observing operations below autograd.
    """

    def __init__(self):
        super().__init__()
        self.inputs: dict[int, Input] = {}
        self.made: dict[int, weakref.ref] = {}
        self.compiled = False  # True once it saw a compiled function

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if _private.is_called_from_compiled():  # the graph break makes its operations run one by one, visibly
            self.compiled = True
        name = getattr(func, "__name__", "")
        if name in _FACTS:
            return func(*args, **(kwargs or {}))
        if name == "__get__":
            result = func(*args)
            if not isinstance(result, torch.Tensor) or func == _GRADIENT:
                return result
        read, changes = _tensors(args, kwargs), _private.transforms_active()
        for t in map(_innermost, read) if changes else read:
            # A tensor made by a function in here is not an input. Its `id` may equal that of a freed tensor from
            # outside, so the reference is compared.
            if id(t) not in self.inputs:
                known = self.made.get(id(t))
                if (known is None or known() is not t) and not t.is_inference():
                    self.inputs[id(t)] = Input(TorchPlan, t.detach())
        if name != "__get__":
            result = func(*args, **(kwargs or {}))
        for out in (result,) if isinstance(result, torch.Tensor) else items(result):
            out = _innermost(out) if changes else out
            if isinstance(out, torch.Tensor) and id(out) not in self.inputs:
                self.made[id(out)] = weakref.ref(out)
        return result

    def __exit__(self, *error):
        super().__exit__(*error)
        self.inputs = {key: x for key, x in self.inputs.items() if x.version == _private.version(x.array)}
        self.made.clear()

    def check(self) -> None:
        """Raise if one of the tensors was written to since then."""
        for known in self.inputs.values():
            known.value({})


def _innermost(t):
    while isinstance(t, torch.Tensor) and _private.is_wrapped(t):
        t = _private.unwrapped(t)
    return t


def _positional(func, names: tuple):
    """``func`` as a function of positional arguments; it takes the last ones by name."""

    def call(*arguments):
        first = len(arguments) - len(names)
        return func(*arguments[:first], **dict(zip(names, arguments[first:])))

    return call


def _tensors(args, kwargs) -> list:
    """The tensors among the arguments, which are usually not nested."""
    found = []
    for x in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(x, torch.Tensor):
            found.append(x)
        elif isinstance(x, (list, tuple)):
            found += [y for y in items(x) if isinstance(y, torch.Tensor)]
    return found


_RUNNING = dict.fromkeys(
    ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit"), (3, 4)
)


_BLANK = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
_OVERWRITES = set(
    "copy_ fill_ zero_ bernoulli_ normal_ uniform_ random_ exponential_ geometric_ log_normal_ cauchy_".split()
)


_PRODUCTS = frozenset(
    "mm bmm mv dot vdot addmm addbmm baddbmm addmv addr linear convolution _scaled_mm "
    "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention".split()
)


def _is_view(func) -> bool:
    returned = [r.alias_info for r in _private.schema(func).returns]
    return any(a is not None and not a.is_write for a in returned)


def _overwrites(func) -> bool:
    """True if the values that an operation writes, in place or to ``out``, do not depend on the previous ones."""
    return func.overloadpacket.__name__ in _OVERWRITES or any(
        a.kwarg_only and a.alias_info is not None and a.alias_info.is_write for a in _private.schema(func).arguments
    )


_UNCOUNTED = {*_RUNNING, "rrelu_with_noise", "rrelu_with_noise_"}
"""Operations whose writes torch does not count: they write to the tensor that was saved just before."""


class _Facts(NamedTuple):
    """An operation's name, and facts about it.

    ``draws``: it draws random numbers; ``writes``: it may write to an argument; ``overwrites``: it does so whatever the
    argument held; ``reads``: it reads values; ``counted``: PyTorch counts its writes.
    """

    name: str
    draws: bool
    writes: bool
    overwrites: bool
    reads: bool
    counted: bool


@functools.cache
def _facts(func) -> _Facts:
    name = func.overloadpacket.__name__
    writes = _private.schema(func).is_mutable or name in _RUNNING
    draws = torch.Tag.nondeterministic_seeded in func.tags
    return _Facts(name, draws, writes, _overwrites(func), not _is_view(func), name not in _UNCOUNTED)


def _written_by(func, args, kwargs) -> list:
    """The tensors that an operation writes to."""
    written = []
    schema = _private.schema(func)
    if func.overloadpacket.__name__ == "set_":
        return []  # replaces the storage, writes no values (cuDNN's recurrent layers)
    if schema.is_mutable:
        for i, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                written.append(args[i] if i < len(args) else kwargs.get(argument.name))
    elif func.overloadpacket.__name__ in _RUNNING:  # not in its schema
        written = [args[i] for i in _RUNNING[func.overloadpacket.__name__] if i < len(args)]
    return [t for t in items(written) if isinstance(t, torch.Tensor)]


def _generator(args, kwargs) -> tuple:
    """Functions that get and set the state of the generator that a random operation draws from."""
    given = list(items((args, *kwargs.values())))
    own = [x for x in given if isinstance(x, torch.Generator)]
    places = [
        x.device if isinstance(x, torch.Tensor) else x for x in given if isinstance(x, (torch.Tensor, torch.device))
    ]
    device = places[0] if places else torch.device("cpu")
    if own:
        generator = own[0]
    elif device.type == "cpu":
        generator = torch.default_generator
    else:
        library = getattr(torch, device.type)
        generator = library.default_generators[library.current_device() if device.index is None else device.index]
    return generator.get_state, generator.set_state


def watched(run):
    """``run``, whose later calls draw the same numbers as the first, and check that nothing it used was written to.

    Only PyTorch's CPU generator is restored.
    """
    if not torch.is_grad_enabled() or torch.jit.is_tracing():  # a mode's variables would name values in its graph
        return run
    drawn = Drawn([(torch.default_generator.get_state, torch.default_generator.set_state)])
    used = Watched()
    called = False

    def watching(*xs):
        nonlocal called
        if called:
            used.check()
            with Watched() if used.compiled else contextlib.nullcontext():
                return drawn.again(run, xs)
        called = True
        with used:
            return run(*xs)

    return watching


class _Made(_private.DispatchMode):
    """Notes which operation made the memory of a tensor, and the line of the user's code."""

    def __init__(self, made: dict):
        super().__init__()
        self.made = made

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        known = set(map(key_of, _tensors(args, kwargs or {})))
        for out in items(result):
            if isinstance(out, torch.Tensor) and key_of(out) not in known:  # not a view
                self.made[key_of(out)] = f"output of {func.overloadpacket.__name__}", _call_sites.users_line()
        return result


def residuals(at, names: list[str]) -> list[Residual]:
    check_hooks("print_saved_residuals")
    inputs = [x.detach().requires_grad_() for x in at.leaves]
    made: dict = {key_of(x): (name, "") for x, name in zip(inputs, names)}
    found: list[Residual] = []
    seen: dict = {}
    handles: list[Handle] = []

    def see(t):
        if isinstance(t, Handle):
            handles.append(t)
            return
        key = key_of(t)
        if key not in seen:
            seen[key] = t
            where, line = made.get(key, ("constant", _call_sites.users_line()))
            found.append(Residual(dtype_name(t), tuple(t.shape), f"{where} at {line}" if line else where))

    token = _seeing.set(see)
    try:
        # Under other hooks a checkpoint scope would end with its block, see `checkpointed`.
        with torch.enable_grad(), saved_tensors_hooks(_pack, _unpack), _Made(made):
            outputs = at.run(*inputs)
        for array in arrays_held(handles):
            made.setdefault(key_of(array), ("saved by a checkpoint", ""))
            see(array)
    finally:
        _seeing.reset(token)
    del outputs
    return found


_seeing: ContextVar[Callable | None] = ContextVar("gradops_seeing_residuals", default=None)
"""A function that sees what a scope's hooks save; None outside of ``print_saved_residuals``."""


class _Local(threading.local):
    plan: TorchPlan | None = None
    lasting: saved_tensors_hooks | None = None

    def __init__(self):
        self.living: set[TorchPlan] = set()


_local = _Local()
_passes: dict[int, dict] = {}
"""The values that the running backward passes have recomputed, by torch's number of the pass."""


class _Stored:
    """A saved tensor, with the check for writes in place that torch leaves to hooks.

    ``handles`` of other scopes stand for the same tensor and take their value from it.
    """

    __slots__ = ("tensor", "version", "handles")

    def __init__(self, tensor, handles):
        self.tensor = tensor.detach()
        self.version = _private.version(tensor)
        self.handles = handles

    def get(self, done: dict):
        now = _private.version(self.tensor)
        if now != self.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{self.tensor.type()} of shape {list(self.tensor.shape)} is at version {now}; "
                f"expected version {self.version} instead."
            )
        for handle in self.handles:
            if not handle.stale:
                handle.plan.values(done).setdefault(handle, self.tensor)
        return self.tensor


def _pack(t):
    _maybe_retire()
    made = None if busy else storages.get(key_of(t))
    same: list[Handle] = []
    if made is not None and made.alive() and not made.filled_unseen:
        handle = _handle(made, t)
        if handle is not None:
            if (see := _seeing.get()) is not None:
                see(handle)
            return handle
        same = [h for h in made.handles if h.origin is not None and h.origin.get() is t]
    if (see := _seeing.get()) is not None:
        see(t)
    with busy, torch.no_grad():
        return _Stored(t, weakref.WeakSet(same) if same else ())


def _handle(made: Storage, t) -> Handle | None:
    layout, plan = layout_of(t), made.plan
    inside = _local.plan is plan
    if _local.plan is not None and not inside:
        return None  # an input of the open scope, which stores it
    for output in made.outputs:
        same = output.tensor() is t
        # Within the scope writes are steps, and `writer` is the last one that the value includes. After the scope they
        # are not noted, so a tensor that was written since then is saved, as in plain code.
        if not inside and output.version is not None and _private.version(t) != output.version:
            return None  # written since
        if same or layout[3:] == output.layout[3:]:
            if not inside and not same and _private.base(t) is None:
                return None  # a result of a write in place outside
            result = Result(output.step, output.index, None if output.layout == layout else layout, made.writer)
            handle = plan.handle(result, Origin(plan, output.tensor, _private.version(t)) if same else None)
            made.handles[handle] = layout
            handle.keep_as_step_says(t)
            return handle
    return None


def _unpack(stored):
    with busy:
        return stored.get(_pass()).detach()


def _pass() -> dict:
    """The values that the running backward pass has recomputed; an empty dict if a node is inspected outside of one."""
    task = _private.backward_number()
    if task == -1:
        return {}
    # Values are kept by torch's number of the pass, because several passes may run at once in torch's threads and hooks
    # are not told which one calls them. The callback at the end is not called if a pass fails: see
    # `_forget_failed_passes`.
    if task not in _passes:
        _private.after_backward(lambda: _passes.pop(task, None))
    return _passes.setdefault(task, {})


def hooked(pack, unpack):
    """``torch.autograd.graph.saved_tensors_hooks``, whose ``unpack`` may also return a NumPy array."""
    check_hooks("saved_tensors_hooks")

    def packed(x) -> tuple:
        return pack(x), x.dtype, x.device

    def unpacked(kept: tuple):
        found = unpack(kept[0])
        return torch.as_tensor(found, dtype=kept[1], device=kept[2]) if isinstance(found, np.ndarray) else found

    return saved_tensors_hooks(packed, unpacked)


def on_cpu(pin_memory: bool):
    """``torch.autograd.graph.save_on_cpu``."""
    check_hooks("save_on_cpu")
    return save_on_cpu(pin_memory)


def check_hooks(name: str) -> None:
    """Raise if hooks for saved tensors are not allowed here."""
    if not _private.takes_saved_hooks():
        raise GradientError(
            f"{name}: torch.func's transforms do not take hooks for saved tensors.",
            hint="leave the scope out there; `torch.autograd.grad` and `backward` work with it",
        )


def checkpoint(run, inputs: list, policy: policies.Policy, in_scope):
    """``run(*inputs)`` by torch's own checkpoint, or by :mod:`.transforms` under ``torch.func``, which allows no hooks.

    Torch's selective checkpoints rerun all operations that lead to a saved result, so policies use a scope, which
    reruns only the operations that are needed.
    """
    if tracing.compiling():
        return torch_checkpoint(run, *inputs, use_reentrant=False, **_selective(policy))
    if transforms.transforming() or any(map(transforms.is_dual, inputs)):
        return _tree.call_flat(_checkpoint_in_transform, run, inputs)
    if policy == policies.NOTHING:
        preserved = _private.has_accelerator() or not all(x.is_cpu for x in inputs)  # also other devices' generators
        return torch_checkpoint(watched(run), *inputs, use_reentrant=False, preserve_rng_state=preserved)
    result = in_scope(run, inputs)
    for x in _tree.flatten(result)[0]:
        if isinstance(x, torch.Tensor) and (made := storages.get(key_of(x))) is not None:
            made.forget()
            made.plan.end_if_over()
    _maybe_retire()
    return result


def _selective(policy: policies.Policy) -> dict:
    if policy.named:
        raise BackendError(
            "`checkpoint`: policies of names do not work in a graph of PyTorch's compiler, which keeps no names.",
            argument="policy",
            hint="use the policy 'products', or leave the names out",
        )
    return {"context_fn": _products_saved} if policy.products else {}


def _products_saved():
    return create_selective_checkpoint_contexts(_operation_policy)


def _operation_policy(_, func, *args, **kwargs):
    saved = func.overloadpacket.__name__ in _PRODUCTS
    return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE


def named(t, name: str):
    """Return ``t``, saved or not as the open scope's policy says for its name."""
    plan = None if tracing.compiling() else _local.plan
    made = plan.made(key_of(t)) if plan is not None and name in plan.policy.named else None
    if plan is None or made is None:
        return t
    how = plan.policy.saves(name)
    if not how:
        for output in list(made.outputs):
            plan.free(output.step, t)
        return t
    for output in made.outputs:
        output.step.offloaded = how == "offload"
    for handle, layout in made.handles.items():
        if not handle.stale:
            (handle.offload if how == "offload" else handle.keep)(plan.view(plan.stored(t), layout))
    if how != "offload":
        made.forget()
    return t


def _checkpoint_in_transform(run, inputs: list) -> list:
    """A checkpointed function in ``torch.func``'s transforms, which allow no hooks for saved tensors."""
    rule = functools.partial(_again, run)
    return transforms.again(run, rule, inputs, transforms.reaches_others)


def _again(run, xs, upstreams) -> list:
    """The gradients of ``run`` at ``xs``, by running it again."""
    xs = [_private.without_dead(x) for x in xs]  # unwrap tensors of finished transforms
    smooth = [i for i, x in enumerate(xs) if x.is_floating_point() or x.is_complex()]

    def of_smooth(*some):
        return tuple(run(*_tree.filled(xs, smooth, some)))

    found = iter(torch.func.vjp(of_smooth, *[xs[i] for i in smooth])[1](tuple(upstreams)))
    return [next(found) if i in smooth else None for i in range(len(xs))]


class checkpointed:
    """The outermost checkpoint scope of a thread."""

    def __enter__(self):
        return tracing.outside(self._enter)

    def _enter(self):
        _private.private.need(_private.CHECKPOINT, hint="use `gradops.checkpoint(f)`")
        check_hooks("gradient_checkpoint_scope")
        _forget_failed_passes()
        self.hooks, self.alone = None, False
        if not _ours_on_top():
            self.hooks = saved_tensors_hooks(_pack, _unpack)
            self.alone = _private.top_saved_hooks(False) is None
            self.hooks.__enter__()
        _local.plan = TorchPlan(_local.living, _maybe_retire)
        self.noting = Noting(_local.plan)
        self.noting.__enter__()
        return self

    def __exit__(self, *error):
        self.noting.__exit__(*error)
        _local.plan = None
        self.noting.plan.close()
        if self.hooks is not None:
            if self.alone and _local.living and _local.lasting is None:
                _local.lasting = self.hooks
            else:
                self.hooks.__exit__(None, None, None)
        _maybe_retire()


def _ours_on_top() -> bool:
    top = _private.top_saved_hooks(False)
    return top is not None and top[0] is _pack


def _forget_failed_passes() -> None:
    for task, done in list(_passes.items()):
        if not any(done.values()):
            _passes.pop(task, None)


def _maybe_retire() -> None:
    """Remove the hooks once nothing that a scope of this thread made is alive."""
    lasting = _local.lasting
    if lasting is None or busy or _local.plan is not None or _local.living or not _ours_on_top():
        return
    _forget_failed_passes()
    if _private.backward_number() != -1:
        return  # the pass would restore them at its end; retry at the next saved tensor
    _local.lasting = None
    lasting.__exit__(None, None, None)

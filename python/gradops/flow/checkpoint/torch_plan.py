"""What a scope on PyTorch made: a dispatch mode notes operations, below autograd.

Tensors are known by their storage, so views and results saved under other names are found too. Writes to tensors from
outside (running statistics) are recomputed on copies.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from .plan import Drawn, Handle, Input, Plan, Result, Source, Step, leaves, mapped

storages: dict[int | None, Storage] = {}
"""The storages that open and past scopes made, and that may still live."""


class _Busy(threading.local):
    """A scope of our own operations, in which nothing is noted or packed."""

    depth = 0

    def __enter__(self):
        self.depth += 1

    def __exit__(self, *error):
        self.depth -= 1

    def __bool__(self) -> bool:
        return self.depth > 0


busy = _Busy()


class TorchPlan(Plan):
    """What one scope made, and what it wrote to outside."""

    def __init__(self, dropped: Callable):
        super().__init__()
        self.dropped = dropped  # called when the user drops a tensor
        self.thread = threading.get_ident()
        self.written: dict[int | None, _Written] = {}

    @staticmethod
    def version(array):
        return array._version

    @staticmethod
    def changed(array, version):
        return array._version != version

    @staticmethod
    def view(array, layout):
        offset, shape, stride, *_ = layout
        return array.as_strided(shape, stride, offset)

    @contextlib.contextmanager
    def recomputing(self):
        with torch.no_grad(), torch.amp.autocast("cpu", enabled=False):
            yield

    def source(self, t) -> Source:
        """Where an argument comes from."""
        key = key_of(t)
        made = self.made(key)
        if made is not None:
            layout = layout_of(t)
            for output in made.outputs:
                if output.tensor() is t or output.layout == layout:
                    return Result(output.step, output.index, after=made.writer)
        written = self.written.get(key)
        if written is not None and not written.ref.expired():
            return _Copied(written, layout_of(t))
        return _input(t)

    def made(self, key) -> Storage | None:
        """The living storage of that key, if this scope made it."""
        made = storages.get(key)
        return made if made is not None and made.plan is self and made.alive() else None

    def before_write(self, t) -> None:
        key = key_of(t)
        made = self.made(key)
        if made is not None:
            for handle in made.handles:
                handle.stale = True
            made.handles.clear()
        elif key not in self.written or self.written[key].ref.expired():
            self.written[key] = _Written(t.untyped_storage())

    def after_write(self, t, step: Step) -> None:
        key = key_of(t)
        (self.made(key) or self.written[key]).writer = step

    def remember(self, out, step: Step, index: int, arguments: list) -> None:
        key = key_of(out)
        if key is None:
            return
        made = self.made(key)
        if made is None:
            if any(key_of(x) == key for x in arguments):
                return  # a view of what came from outside
            made = storages[key] = Storage(self, out.untyped_storage())
        made.outputs.append(Output(out, step, index, self.dropped))


class Storage:
    """A storage that a scope made: the tensors on it, and the last step that wrote to it."""

    def __init__(self, plan: TorchPlan, storage):
        self.ref = StorageWeakRef(storage)
        self.plan = plan
        self.outputs: list[Output] = []
        self.writer: Step | None = None
        self.handles: weakref.WeakSet[Handle] = weakref.WeakSet()

    def alive(self) -> bool:
        return not self.ref.expired()


class Output:
    """A tensor that a step returned: where it lies on its storage, and its version when the scope was left."""

    __slots__ = ("tensor", "step", "index", "layout", "version")

    def __init__(self, tensor, step: Step, index: int, dropped: Callable):
        self.tensor = weakref.ref(tensor, dropped)
        self.step = step
        self.index = index
        self.layout = layout_of(tensor)
        self.version: int | None = None


class _Written:
    """A storage from outside that the scope wrote to, as it was before."""

    def __init__(self, storage):
        self.ref = StorageWeakRef(storage)
        self.storage = storage.clone()
        self.writer: Step | None = None


class _Copied(Source):
    """A tensor from outside that the scope writes to: on a copy of its storage from before."""

    __slots__ = ("written", "layout", "after")

    def __init__(self, written: _Written, layout: tuple):
        self.written = written
        self.layout = layout
        self.after = written.writer

    def steps(self):
        return () if self.after is None else (self.after,)

    def value(self, results):
        if self.written not in results:
            results[self.written] = self.written.storage.clone()
        storage = results[self.written]
        offset, shape, stride, dtype, *_ = self.layout
        return torch.empty(0, dtype=dtype, device=storage.device).set_(storage, offset, shape, stride)


def _input(t) -> Input:
    with _counting():
        return Input(TorchPlan, t.detach())


def _counting():
    """Inside a dispatch mode, a scope in which views share their version counters."""
    return torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.ADInplaceOrView, False)


def layout_of(t) -> tuple:
    return t.storage_offset(), tuple(t.shape), t.stride(), t.dtype, t.is_conj(), t.is_neg()


def key_of(t) -> int | None:
    try:
        return t.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return None


# What operations do ---------------------------------------------------------------------------------------------------


class Noting(TorchDispatchMode):
    """Notes the operations of a scope."""

    def __init__(self, plan: TorchPlan):
        super().__init__()
        self.plan = plan

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if busy or torch.is_inference_mode_enabled():
            return func(*args, **kwargs)
        plan, tensors = self.plan, _tensors(args, kwargs)
        drawn = Drawn([_generator(args, kwargs)]) if torch.Tag.nondeterministic_seeded in func.tags else None
        written = _written_by(func, args, kwargs)
        for t in written:
            plan.before_write(t)
        sources = mapped((args, *kwargs.values()), lambda x: plan.source(x) if isinstance(x, torch.Tensor) else x)
        result = func(*args, **kwargs)
        step = Step(plan, func, sources[0], dict(zip(kwargs, sources[1:])), drawn)
        for t in written:
            plan.after_write(t, step)
        for i, out in enumerate(leaves(result)):
            if isinstance(out, torch.Tensor) and not any(out is t for t in tensors):
                plan.remember(out, step, i, tensors)
        return result


class Watched(TorchDispatchMode):
    """Notes the tensors from outside that the operations in it use and do not write to."""

    def __init__(self):
        super().__init__()
        self.inputs: dict[int, Input] = {}
        self.made: dict[int, weakref.ref] = {}
        self.written: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.written.update(map(id, _written_by(func, args, kwargs)))
        for t in _tensors(args, kwargs):
            if id(t) not in self.inputs and not t.is_inference():
                made = self.made.get(id(t))
                if made is None or made() is not t:
                    self.inputs[id(t)] = _input(t)
        result = func(*args, **kwargs)
        for out in leaves(result):
            if isinstance(out, torch.Tensor) and id(out) not in self.inputs:
                self.made[id(out)] = weakref.ref(out)
        return result

    def check(self) -> None:
        """Raise if one was written to since."""
        for key, known in self.inputs.items():
            if key not in self.written:
                known.value({})


def _tensors(args, kwargs) -> list:
    return [x for x in leaves((args, *kwargs.values())) if isinstance(x, torch.Tensor)]


_RUNNING = dict.fromkeys(
    ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit"), (3, 4)
)


def _written_by(func, args, kwargs) -> list:
    """The tensors that an operation writes to."""
    written = []
    schema = func._schema
    if schema.is_mutable:
        for i, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                written.append(args[i] if i < len(args) else kwargs.get(argument.name))
    elif func.overloadpacket.__name__ in _RUNNING:  # its schema does not say so
        written = [args[i] for i in _RUNNING[func.overloadpacket.__name__] if i < len(args)]
    return [t for t in leaves(written) if isinstance(t, torch.Tensor)]


def _generator(args, kwargs) -> tuple:
    """How to get and set the state of the generator that a random operation draws from."""
    given = list(leaves((args, *kwargs.values())))
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
    """``run``, whose later calls check that nothing was written to that the first one used."""
    if not torch.is_grad_enabled():
        return run
    used: list[Watched] = []

    def watching(*xs):
        if used:
            used[0].check()
            return run(*xs)
        used.append(Watched())
        with used[0]:
            return run(*xs)

    return watching

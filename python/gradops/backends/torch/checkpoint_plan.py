"""The plan of a scope on PyTorch: the tensors that it made, and the tensors from outside that it read and wrote.

Tensors are identified by their storage, so that views, and results saved under other names, are found. Writes to
tensors from outside, such as running statistics, are recomputed on copies.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ..checkpoint_plan import Handle, Input, Plan, Result, Source, Step
from . import _private

storages: dict[int | None, Storage] = {}
"""The storages that open and past scopes made and that may still be alive."""


def _nothing() -> None:
    """A reference to nothing."""


class _Busy(threading.local):
    """A scope for our own operations: nothing is noted or packed in it."""

    depth = 0

    def __enter__(self):
        self.depth += 1

    def __exit__(self, *error):
        self.depth -= 1

    def __bool__(self) -> bool:
        return self.depth > 0


busy = _Busy()


class TorchPlan(Plan):
    """The tensors that one scope made, and the tensors from outside that it wrote to."""

    def __init__(self, living: set[TorchPlan], over: Callable):
        super().__init__()
        self.open = True
        self.living = living  # the plans of this thread whose results are alive
        self.living.add(self)
        self.over = over  # called when no result of this plan is alive
        self.storages: set[Storage] = set()
        self.outside: dict[int | None, weakref.WeakSet[_Outside]] = {}
        self.written: dict[int | None, _Written] = {}
        self.seen: dict[int, tuple[Callable, int | None, Callable]] = {}
        """References to tensors from outside, their storages, and references to their sources, by ``id``."""

    def close(self) -> None:
        """Leave the scope: record the versions of living tensors, and forget storages that the user dropped."""
        self.open = False
        self.written.clear()
        self.seen.clear()
        self.recent.clear()
        for made in list(self.storages):
            for output in made.outputs:
                t = output.tensor()
                if t is not None:
                    output.version = _private.version(t)
            made.forget_if_dropped()
        self.end_if_over()

    def end_if_over(self) -> None:
        if not (self.open or self.storages):
            self.living.discard(self)

    @staticmethod
    def version(array):
        return _private.version(array)

    @staticmethod
    def changed(array, version):
        return _private.version(array) != version

    @staticmethod
    def view(array, layout):
        offset, shape, stride, *_ = layout
        return array.as_strided(shape, stride, offset)

    @staticmethod
    def moved_to_cpu(array):
        device = array.device
        with busy, torch.no_grad():
            return array.cpu(), lambda copy: copy.to(device)

    @staticmethod
    def memory(array):
        return key_of(array)

    @staticmethod
    def stored(array):
        with busy, torch.no_grad():
            return array.detach()

    @contextlib.contextmanager
    def recomputing(self):
        # some kernels (LSTMs) save values for a backward pass only in grad mode; nothing here requires a gradient
        with torch.enable_grad(), contextlib.ExitStack() as stack:
            for kind in ("cpu", "cuda", "xpu"):
                if torch.is_autocast_enabled(kind):  # the noted arguments are already cast
                    stack.enter_context(torch.amp.autocast(kind, enabled=False))
            yield

    def source(self, t, key: int | None, reads: bool) -> Source:
        """The source of an argument on the storage ``key``; ``reads`` is True if the operation reads its values."""
        made = self.made(key)
        if made is not None and made.filled_unseen and reads:
            made.forget()
        elif made is not None:
            layout = None
            for output in made.outputs:
                if output.tensor() is not t:
                    layout = layout or layout_of(t)
                    if output.layout != layout:
                        continue
                return Result(output.step, output.index, after=made.writer)
        known, place, outside = self.seen.get(id(t), (_nothing, None, _nothing))
        found = outside() if place == key and known() is t else None
        if found is None or not found.is_of(t):
            found = _Outside(t, self.written.get(key))
            self.outside.setdefault(key, weakref.WeakSet()).add(found)
            self.seen[id(t)] = weakref.ref(t), key, weakref.ref(found)
        return found

    def made(self, key) -> Storage | None:
        """The living storage with that key, if this scope made it."""
        made = storages.get(key)
        return made if made is not None and made.plan is self and made.alive() else None

    def prepare_write(self, t, counted: bool) -> None:
        """Prepare a write; ``counted`` is True if torch counts it, otherwise saved tensors have the values after it."""
        key = key_of(t)
        made = self.made(key)
        if made is not None:
            if counted:
                layout = layout_of(t)
                for handle in [h for h, its in made.handles.items() if overlap(its, layout)]:
                    handle.stale = True
                    del made.handles[handle]
        # A tensor from outside (a running mean) must not change a second time when the scope is recomputed. Its storage
        # is copied before the first write; sources noted earlier are moved to that copy, and each recomputation works
        # on its own copy.
        elif key not in self.written or self.written[key].ref.expired():
            written = self.written[key] = _Written(t.untyped_storage())
            for source in self.outside.pop(key, ()):  # earlier reads also use the copy
                source.move(written, None)

    def finish_write(self, t, step: Step, counted: bool) -> None:
        key = key_of(t)
        made = self.made(key)
        (made or self.written[key]).writer = step
        if made is not None and not counted:
            for handle, layout in made.handles.items():
                if overlap(layout, layout_of(t)):
                    handle.result.after = step

    def remember(self, out, step: Step, index: int, arguments: list, blank: bool) -> None:
        """Note a result of a step; ``arguments`` are the storages of the step's arguments."""
        key = key_of(out)
        if key is None:
            return
        made = self.made(key)
        if made is None:
            if key in arguments:
                return  # a view of a tensor from outside
            if key in storages:  # the address of a freed storage was reused
                storages[key].forget()
            made = storages[key] = Storage(self, key, out.untyped_storage(), blank)
        made.add(out, step, index)


class Storage:
    """A storage that a scope made: the tensors on it, the last step that wrote to it, and the layouts of handles."""

    def __init__(self, plan: TorchPlan, key: int, storage, blank: bool):
        self.key = key
        self.ref = StorageWeakRef(storage)
        self.plan = plan
        self.blank = blank  # True if it was made without initial values
        self.outputs: list[Output] = []
        self.held: set[int] = set()  # ids of living references to the outputs' tensors
        self.writer: Step | None = None
        self.handles: weakref.WeakKeyDictionary[Handle, tuple] = weakref.WeakKeyDictionary()
        plan.storages.add(self)

    def alive(self) -> bool:
        return bool(self.held) or not self.ref.expired()

    def add(self, out, step: Step, index: int) -> None:
        output = Output(out, step, index, self._dropped)
        self.outputs.append(output)
        self.held.add(id(output.tensor))

    def _dropped(self, tensor: weakref.ref) -> None:
        self.held.discard(id(tensor))
        if not self.plan.open and self.forget_if_dropped():
            self.plan.end_if_over()
            self.plan.over()

    def forget_if_dropped(self) -> bool:
        """Forget this storage if all tensors on it are gone; returns True if they are."""
        if self.held:
            return False
        self.forget()
        return True

    def forget(self) -> None:
        if storages.get(self.key) is self:
            del storages[self.key]
        self.plan.storages.discard(self)
        self.outputs.clear()  # their references call this method

    @property
    def filled_unseen(self) -> bool:
        """True if any values were written by no visible operation, as by ``at::tensor`` in C++ and by NumPy."""
        return self.blank and self.writer is None


class Output:
    """A tensor that a step returned, with its layout on the storage, and its version when the scope was left."""

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


class _Outside(Source):
    """A tensor from outside; if the scope writes to it, the tensor on a copy of its storage from before."""

    __slots__ = ("input", "written", "layout", "after", "__weakref__")

    def __init__(self, t, written: _Written | None):
        self.layout: tuple = ()
        self.written: _Written | None = None
        self.after: Step | None = None
        if written is None or written.ref.expired():
            self.input: Input | None = outside_input(t)
        else:
            self.layout, self.input = layout_of(t), None
            self.move(written, written.writer)

    def is_of(self, t) -> bool:
        """True if the tensor, which is on the same storage, is unchanged."""
        known = self.input
        return known is not None and known.version == _private.version(t) and layout_of(known.array) == layout_of(t)

    def move(self, written: _Written, after: Step | None) -> None:
        if self.input is not None:
            self.layout = layout_of(self.input.array)
        self.input, self.written, self.after = None, written, after

    def steps(self):
        return () if self.after is None else (self.after,)

    def saved(self):
        return None if self.input is None else self.input.array

    def value(self, results):
        if self.input is not None:
            return self.input.value(results)
        assert self.written is not None
        if self.written not in results:
            results[self.written] = self.written.storage.clone()
        storage = results[self.written]
        offset, shape, stride, dtype, *_ = self.layout
        return torch.empty(0, dtype=dtype, device=storage.device).set_(storage, offset, shape, stride)


def outside_input(t) -> Input:
    with _counting():
        return Input(TorchPlan, t.detach())


def _counting():
    """Inside a dispatch mode, a scope whose views share their version counters."""
    return _private.exclude_keys(_private.dispatch_keys.ADInplaceOrView, False)


def layout_of(t) -> tuple:
    return t.storage_offset(), tuple(t.shape), t.stride(), t.dtype, t.is_conj(), t.is_neg()


def overlap(one: tuple, other: tuple) -> bool:
    """True if two tensors on one storage share elements; interleaved parts of a split share none."""
    first, second = _box(one), _box(other)
    if first is None or second is None or first[0] != second[0]:
        first, second = ((), [_range(one)]), ((), [_range(other)])
    return one[3] != other[3] or all(a < d and c < b for (a, b), (c, d) in zip(first[1], second[1]))


def _range(layout: tuple) -> tuple[int, int]:
    offset, shape, stride, *_ = layout
    return offset, offset + sum((n - 1) * s for n, s in zip(shape, stride)) + 1


def _box(layout: tuple) -> tuple[tuple, list] | None:
    """The strides of a tensor and its range along each; None if it wraps around an end."""
    offset, shape, stride, *_ = layout
    dims = sorted(((s, n) for s, n in zip(stride, shape) if n > 1 and s > 0), reverse=True)
    box, longer = [], None
    for s, n in dims:
        start, offset = divmod(offset, s)
        if longer is not None and (start + n) * s > longer:
            return None
        box.append((start, start + n))
        longer = s
    return tuple(s for s, _ in dims), [*box, (offset, offset + 1)]


def key_of(t) -> int | None:
    try:
        return _private.storage_key(t.untyped_storage())
    except (RuntimeError, NotImplementedError):
        return None

"""PyTorch: checkpointing by recipe. What is made in a scope is remembered as how to make it again.

A dispatch mode notes each operation in the scope as a ``_Step``, below autograd. One pair of saved-tensor
hooks, the same for all scopes, stores a ``_Handle`` in place of a tensor that a step made; the first
handle asked for in a backward pass recomputes what all living handles of its recipe need, in order.

- Tensors are known by their storage, so views and results saved under other names are found too.
- A random operation's generator state is kept with its step. Writes to tensors from outside (running
  statistics) are recomputed on copies.
- The hooks stay after the scope while what it made lives, so that later consumers do not store it either,
  unless the caller's own hooks were on the stack before: then theirs hold again after the scope.
- A write in place that would make a recomputed value wrong is an error.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from ...errors import GradientError


class _Local(threading.local):
    def __init__(self):
        self.recipe: _Recipe | None = None
        self.lasting: saved_tensors_hooks | None = None
        self.busy = 0


_local = _Local()
_made: dict[int, _Storage] = {}
_top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)


class _Storage:
    """A storage that a scope made: the tensors on it, and the steps that wrote it."""

    def __init__(self, recipe, storage):
        self.ref = StorageWeakRef(storage)
        self.recipe = recipe
        self.outputs: list[_Output] = []
        self.writer: _Step | None = None
        self.handles: list[weakref.ref] = []

    def alive(self) -> bool:
        return not self.ref.expired()


class _Output:
    """A tensor that a step returned: where it lies on its storage."""

    __slots__ = ("tensor", "step", "index", "layout", "version")

    def __init__(self, tensor, step, index):
        self.tensor = weakref.ref(tensor, _maybe_retire)
        self.step = step
        self.index = index
        self.layout = _layout(tensor)
        self.version: int | None = None


def _layout(t) -> tuple:
    return t.storage_offset(), tuple(t.shape), t.stride(), t.dtype, t.is_conj(), t.is_neg()


class _Step:
    """One operation: what to run, with references in place of what earlier steps made."""

    __slots__ = ("func", "leaves", "form", "seq", "after", "generator", "recipe", "__weakref__")

    def __init__(self, recipe, func, leaves, form, after, generator):
        self.recipe = recipe
        self.func = func
        self.leaves = leaves
        self.form = form
        self.after = after
        self.generator = generator
        recipe.count += 1
        self.seq = recipe.count

    def sources(self) -> list[_Step]:
        return [leaf.step for leaf in self.leaves if leaf.__class__ is _Ref] + self.after

    def run(self, done: dict, copies: dict):
        leaves = [_value(leaf, done, copies) for leaf in self.leaves]
        args, kwargs = tree_unflatten(leaves, self.form)
        if self.generator is None:
            result = self.func(*args, **kwargs)
        else:
            generator, state = self.generator
            now = generator.get_state()
            generator.set_state(state)
            try:
                result = self.func(*args, **kwargs)
            finally:
                generator.set_state(now)
        return tree_flatten(result)[0]


def _value(leaf, done, copies):
    if leaf.__class__ is _Ref:
        return done[leaf.step][leaf.index]
    if leaf.__class__ is _Input:
        if leaf.tensor._version != leaf.version:
            raise GradientError(
                "a tensor that a checkpointed operation used was modified by an inplace operation; the operation "
                f"cannot be recomputed (version {leaf.tensor._version}; expected version {leaf.version})."
            )
        return leaf.tensor
    if leaf.__class__ is _Copied:
        if leaf.key not in copies:
            copies[leaf.key] = leaf.key.storage.clone()
        offset, shape, stride, dtype, *_ = leaf.layout
        return torch.empty(0, dtype=dtype, device=copies[leaf.key].device).set_(copies[leaf.key], offset, shape, stride)
    return leaf


class _Ref:
    """An earlier step's result."""

    __slots__ = ("step", "index")

    def __init__(self, step, index):
        self.step = step
        self.index = index


class _Input:
    """A tensor from outside: its values, and the version that says that they are still the same."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor):
        with _counting():
            self.tensor = tensor.detach()
        self.version = self.tensor._version


def _counting():
    """Inside a dispatch mode, a scope in which views share their version counters."""
    return torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.ADInplaceOrView, False)


class _Copied:
    """A tensor from outside that the scope writes to: on a copy of its storage from before."""

    __slots__ = ("key", "layout")

    def __init__(self, key, layout):
        self.key = key
        self.layout = layout


class _Written:
    """A storage from outside that the scope wrote to."""

    def __init__(self, storage):
        self.ref = StorageWeakRef(storage)
        self.storage = storage.clone()
        self.writer: _Step | None = None


class _Handle:
    """Stands for a tensor that was not stored."""

    __slots__ = ("recipe", "step", "index", "layout", "origin", "value", "task", "stale", "__weakref__")

    def __init__(self, recipe, step, index, layout, after, origin):
        self.recipe = recipe
        self.step = (step, after)
        self.index = index
        self.layout = layout
        self.origin = origin
        self.value: Any = None
        self.task: int | None = None
        self.stale = False

    def is_of(self, t) -> bool:
        return self.origin is not None and self.origin[0]() is t and self.origin[1] == t._version

    def living(self):
        """The tensor itself, while the caller keeps it as it was."""
        if self.origin is None:
            return None
        tensor, version = self.origin[0](), self.origin[1]
        return tensor.detach() if tensor is not None and tensor._version == version else None


class _Kept:
    """A tensor stored as it is, with the check for writes in place that torch leaves to hooks.

    ``handles`` of other scopes stand for the same tensor: what is stored need not be computed again for them.
    """

    __slots__ = ("tensor", "version", "handles")

    def __init__(self, tensor, handles=()):
        self.tensor = tensor.detach()
        self.version = tensor._version
        self.handles = handles

    def share(self, task: int) -> None:
        """Give the tensor to the handles that will ask for it in this backward pass."""
        for ref in self.handles:
            handle = ref()
            if handle is not None and handle.task != task and not handle.stale:
                with handle.recipe.lock:
                    handle.value, handle.task = self.tensor, task
                _release_after(handle.recipe, task)


class _Recipe(TorchDispatchMode):
    """What one scope made; the dispatch mode that notes it."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.thread = threading.get_ident()
        self.lock = threading.RLock()
        self.handles: weakref.WeakSet[_Handle] = weakref.WeakSet()
        self.written: dict[int, _Written] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if _local.busy or torch.is_inference_mode_enabled():
            return func(*args, **kwargs)
        leaves, form = tree_flatten((args, kwargs))
        generator = _generator(func, leaves) if torch.Tag.nondeterministic_seeded in func.tags else None
        places = _written_places(func, args, kwargs, leaves)
        for i in places:
            self._before_write(leaves[i])
        noted, after = [], []
        for leaf in leaves:
            noted.append(self._reference(leaf, after) if isinstance(leaf, torch.Tensor) else leaf)
        result = func(*args, **kwargs)
        step = _Step(self, func, noted, form, after, generator)
        for i in places:
            self._after_write(leaves[i], step)
        for i, out in enumerate(tree_flatten(result)[0]):
            if isinstance(out, torch.Tensor) and not any(out is leaf for leaf in leaves):
                self._remember(out, step, i, leaves)
        return result

    def _reference(self, t, after: list):
        key = _key(t)
        made = _made.get(key)
        if made is not None and made.recipe is self and made.alive():
            if made.writer is not None:
                after.append(made.writer)
            for output in made.outputs:
                if output.tensor() is t or output.layout == _layout(t):
                    return _Ref(output.step, output.index)
        written = self.written.get(key)
        if written is not None and not written.ref.expired():
            if written.writer is not None:
                after.append(written.writer)
            return _Copied(written, _layout(t))
        return _Input(t)

    def _before_write(self, t) -> None:
        key = _key(t)
        made = _made.get(key)
        if made is not None and made.recipe is self and made.alive():
            for ref in made.handles:
                if ref() is not None:
                    ref().stale = True
            made.handles.clear()
        elif key not in self.written or self.written[key].ref.expired():
            self.written[key] = _Written(t.untyped_storage())

    def _after_write(self, t, step) -> None:
        key = _key(t)
        made = _made.get(key)
        if made is not None and made.recipe is self and made.alive():
            made.writer = step
        else:
            self.written[key].writer = step

    def _remember(self, out, step, index, leaves) -> None:
        key = _key(out)
        if key is None:
            return
        made = _made.get(key)
        if made is None or not made.alive() or made.recipe is not self:
            if any(isinstance(x, torch.Tensor) and _key(x) == key for x in leaves):
                return  # a view of what came from outside
            made = _made[key] = _Storage(self, out.untyped_storage())
        made.outputs.append(_Output(out, step, index))

    def recompute(self, asked: _Handle, task: int) -> None:
        with self.lock:
            if asked.value is not None and asked.task == task:
                return
            if asked.stale:
                raise GradientError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation "
                    "in the checkpoint scope that made it."
                )
            handles = []
            for handle in list(self.handles):
                if not handle.stale and (handle.value is None or handle.task != task):
                    handle.value, handle.task = handle.living(), task
                    if handle.value is None:
                        handles.append(handle)
            wanted: dict[_Step, list[_Handle]] = {}
            for handle in handles:
                step, after = handle.step
                wanted.setdefault(after if after is not None and after.seq > step.seq else step, []).append(handle)
            needed, stack = set(), [s for h in handles for s in h.step if s is not None]
            while stack:
                step = stack.pop()
                if step not in needed:
                    needed.add(step)
                    stack.extend(step.sources())
            ordered = sorted(needed, key=lambda s: s.seq)
            last: dict[_Step, _Step] = {}
            for step in ordered:
                for source in step.sources():
                    last[source] = step
            for moment, found in wanted.items():
                for handle in found:
                    if handle.step[0] in last and last[handle.step[0]].seq < moment.seq:
                        last[handle.step[0]] = moment
            frees: dict[_Step, list[_Step]] = {}
            for source, step in last.items():
                frees.setdefault(step, []).append(source)
            done: dict[_Step, Any] = {}
            copies: dict = {}
            for step in ordered:
                done[step] = step.run(done, copies)
                for handle in wanted.get(step, ()):
                    handle.value, handle.task = _on(done[handle.step[0]][handle.index], handle.layout), task
                for source in frees.get(step, ()):
                    done.pop(source, None)
                if step not in last and all(h.step[0] is not step or h.value is not None for h in handles):
                    done.pop(step, None)


class Watched(TorchDispatchMode):
    """Notes the tensors from outside that the operations in it use and do not write to."""

    def __init__(self):
        super().__init__()
        self.inputs: dict[int, _Input] = {}
        self.made: dict[int, weakref.ref] = {}
        self.written: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        leaves, _ = tree_flatten((args, kwargs))
        self.written.update(id(leaves[i]) for i in _written_places(func, args, kwargs, leaves))
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor) and id(leaf) not in self.inputs and not leaf.is_inference():
                made = self.made.get(id(leaf))
                if made is None or made() is not leaf:
                    self.inputs[id(leaf)] = _Input(leaf)
        result = func(*args, **kwargs)
        for out in tree_flatten(result)[0]:
            if isinstance(out, torch.Tensor) and id(out) not in self.inputs:
                self.made[id(out)] = weakref.ref(out)
        return result

    def check(self) -> None:
        """Raise if one was written to since."""
        for key, known in self.inputs.items():
            if key not in self.written:
                _value(known, {}, {})


def _on(t, layout):
    """The tensor of a layout on a recomputed one's storage."""
    if layout is None:
        return t
    offset, shape, stride, *_ = layout
    return t.as_strided(shape, stride, offset)


def _key(t) -> int | None:
    try:
        return t.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return None


_RUNNING = dict.fromkeys(
    ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit"), (3, 4)
)


def _written_places(func, args, kwargs, leaves) -> list[int]:
    """The positions in ``leaves`` of the tensors that an operation writes to."""
    written = []
    schema = func._schema
    if schema.is_mutable:
        for i, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = args[i] if i < len(args) else kwargs.get(argument.name)
                written.extend(value if isinstance(value, (list, tuple)) else [value])
    elif func.overloadpacket.__name__ in _RUNNING:  # its schema does not say so
        written = [args[i] for i in _RUNNING[func.overloadpacket.__name__] if i < len(args)]
    written = [w for w in written if isinstance(w, torch.Tensor)]
    return [i for i, leaf in enumerate(leaves) if any(leaf is w for w in written)]


def _generator(func, leaves):
    """The generator that a random operation draws from, and its state."""
    for leaf in leaves:
        if isinstance(leaf, torch.Generator):
            return leaf, leaf.get_state()
    device = torch.device("cpu")
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            device = leaf.device
            break
        if isinstance(leaf, torch.device):
            device = leaf
    if device.type == "cpu":
        generator = torch.default_generator
    else:
        library = getattr(torch, device.type)
        index = device.index if device.index is not None else library.current_device()
        generator = library.default_generators[index]
    return generator, generator.get_state()


def _pack(t):
    key = None if _local.busy else _key(t)
    made = None if key is None else _made.get(key)
    same: list = []
    if made is not None and made.alive():
        handle = _handle(made, t)
        if handle is not None:
            return handle
        same = [ref for ref in made.handles if ref() is not None and ref().is_of(t)]
    _local.busy += 1
    try:
        with torch.no_grad():
            return _Kept(t, same)
    finally:
        _local.busy -= 1


def _handle(made: _Storage, t) -> _Handle | None:
    layout = _layout(t)
    recipe = made.recipe
    inside = _local.recipe is recipe
    if _local.recipe is not None and not inside:
        return None  # an input of the open scope, which stores it
    for output in made.outputs:
        same = output.tensor() is t
        if not inside and output.version is not None and t._version != output.version:
            return None  # written since
        if same or output.layout == layout or layout[3:] == output.layout[3:]:
            if not inside and not same and t._base is None:
                return None  # a result of a write in place outside
            exact = output.layout == layout
            for ref in made.handles:
                known = ref()
                if (
                    known is not None
                    and known.step == (output.step, made.writer)
                    and known.layout == (None if exact else layout)
                ):
                    return known
            origin = (output.tensor, t._version) if same else None
            handle = _Handle(recipe, output.step, output.index, None if exact else layout, made.writer, origin)
            made.handles.append(weakref.ref(handle))
            recipe.handles.add(handle)
            return handle
    return None


def _unpack(kept):
    task = torch._C._current_graph_task_id()
    if kept.__class__ is _Kept:
        if kept.tensor._version != kept.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{kept.tensor.type()} of shape {list(kept.tensor.shape)} is at version {kept.tensor._version}; "
                f"expected version {kept.version} instead."
            )
        if kept.handles and task != -1:
            kept.share(task)
        return kept.tensor
    value = kept.value
    if value is not None and kept.task == task and task != -1:
        return value
    recipe = kept.recipe
    if task != -1:
        _release_after(recipe, task)
    _local.busy += 1
    try:
        with torch.no_grad(), torch.amp.autocast("cpu", enabled=False):
            recipe.recompute(kept, task)
        value = kept.value
    finally:
        _local.busy -= 1
        if task == -1:
            _release(recipe, task)
    return value


def _release_after(recipe: _Recipe, task: int) -> None:
    torch.autograd.Variable._execution_engine.queue_callback(lambda: _release(recipe, task))


def _release(recipe: _Recipe, task: int) -> None:
    with recipe.lock:
        for handle in list(recipe.handles):
            if handle.task == task:
                handle.value = handle.task = None


class scope:
    """The outermost checkpoint scope of a thread."""

    def __enter__(self):
        if _is_nested():
            raise GradientError(
                "gradient_checkpoint_scope: torch.func's transforms do not take hooks for saved tensors.",
                hint="leave the scope out there; `torch.autograd.grad` and `backward` work with it",
            )
        _purge()
        self.hooks, self.alone = None, False
        if not _ours_on_top():
            self.hooks = saved_tensors_hooks(_pack, _unpack)
            self.alone = _top is not None and _top(False) is None
            self.hooks.__enter__()
        self.recipe = _local.recipe = _Recipe()
        self.recipe.__enter__()
        return self

    def __exit__(self, *error):
        self.recipe.__exit__(*error)
        _local.recipe = None
        alive = _purge()
        for made in list(_made.values()):
            if made.recipe is self.recipe:
                for output in made.outputs:
                    t = output.tensor()
                    if t is not None:
                        output.version = t._version
        self.recipe.written.clear()
        if self.hooks is not None:
            if self.alone and alive and _local.lasting is None:
                _local.lasting = self.hooks
            else:
                self.hooks.__exit__(None, None, None)
        _maybe_retire()


def _is_nested() -> bool:
    return not torch._C._autograd._saved_tensors_hooks_is_enabled()


def _ours_on_top() -> bool:
    top = _top(False) if _top is not None else None
    return top is not None and top[0] is _pack


def _purge() -> bool:
    """Forget what is gone; whether anything is left that this thread's scopes made."""
    here, mine = threading.get_ident(), False
    for key, made in list(_made.items()):
        if not made.alive() or all(output.tensor() is None for output in made.outputs):
            _made.pop(key, None)
        elif made.recipe.thread == here:
            mine = True
    return mine


def _maybe_retire(_=None) -> None:
    """Take the hooks off the stack once nothing that a scope made lives."""
    lasting = _local.lasting
    if lasting is None or _local.busy or _local.recipe is not None or _purge() or not _ours_on_top():
        return
    if torch._C._current_graph_task_id() != -1:
        return
    _local.lasting = None
    lasting.__exit__(None, None, None)

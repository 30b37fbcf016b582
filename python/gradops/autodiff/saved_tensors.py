"""Hooks for the tensors saved by nodes: pack them in the forward pass, unpack them in the backward pass.

A packed value is a :class:`Kept` in the node's ``saved``. Handles of checkpoints save no value and get no hook.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from .. import backends
from .._scopes import Ends, Scope, changed
from ..errors import GradientError, TypeOf
from ..ops import conversion
from ..ops._checks import check_flags
from ..ops._structures import check_functions
from . import state
from .modes import enter_native, recording
from .variable import data_of

_hooks: ContextVar[tuple[Callable, Callable] | None] = ContextVar("gradops_saved_tensors_hooks", default=None)
_ends = Ends("gradops_saved_tensors_scopes")
_counting = threading.Lock()
_open = 0
"""The number of open scopes in all threads; without one, nodes look up no hook."""


class saved_tensors_hooks(Scope):
    """A scope whose operations save ``pack_hook(x)`` for the backward pass, in place of a tensor ``x``.

    The backward pass calls ``unpack_hook`` with the saved object, once for each operation that saved it. Use it as a
    context manager or a decorator, to store tensors on disk, compressed or in another precision. In nested scopes the
    innermost hooks are called. After ``torch.autograd.graph.saved_tensors_hooks``.

    On variables the hooks get arrays of the variable's library, also inputs and results; on PyTorch tensors PyTorch
    calls them. JAX and TensorFlow tensors that are not variables get no hooks, because these libraries do not say what
    they save; nor do values that a gradient function closes over, and values that a checkpoint recomputes.

    Args:
        pack_hook: a function of a tensor that returns any object. It must not write to the tensor.
        unpack_hook: a function of that object that returns a tensor of the same library, shape and dtype, or a NumPy
            array of the same shape.

    Raises:
        ArgumentTypeError: a hook is not a function.
        GradientError: inside ``torch.func``'s transforms, which allow no hooks; in the backward pass, ``unpack_hook``
            returns another kind of tensor, or one that was written in place since it was packed.

    Gradient:
        That of the unpacked values; derivatives of higher order as well.

    Examples:
        Values are saved in half the precision:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import autodiff, ops
        >>> def halved(x):
        ...     return ops.cast(x, "float32")
        >>> def restored(x):
        ...     return ops.cast(x, "float64")
        >>> x = gradops.Variable(np.array([1.0, 2.0]), requires_grad=True)
        >>> with autodiff.saved_tensors_hooks(halved, restored):
        ...     y = ops.sum(ops.exp(x))
        >>> y.backward()
        >>> print(x.grad.numpy().round(4))
        [2.7183 7.3891]

    See Also:
        :class:`save_on_cpu`; :func:`gradops.checkpoint`, which saves less; :func:`gradops.print_saved_residuals`.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]):
        check_functions("saved_tensors_hooks", pack_hook=pack_hook, unpack_hook=unpack_hook)
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for backend in backends.loaded_backends():
                if backend.derivatives.native:
                    enter_native(backend.name, self._native(backend.derivatives), stack)
            token = _hooks.get()
            _hooks.set((self.pack_hook, self.unpack_hook))
            stack.callback(_hooks.set, token)
            _count(1)
            stack.callback(_count, -1)
            _ends.push(self, stack.pop_all().close)
        return self

    def __exit__(self, *error):
        _ends.leave(self)

    def _again(self):
        return saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def _native(self, derivatives) -> contextlib.AbstractContextManager:
        return derivatives.hooked(self.pack_hook, self.unpack_hook)


class save_on_cpu(saved_tensors_hooks):
    """Scope with saved tensors in the memory of the CPU; the backward pass moves them back.

    Args:
        pin_memory: keep PyTorch's copies in pinned memory, from which they move back faster.

    Raises:
        ArgumentTypeError: ``pin_memory`` is not True or False.
        GradientError: inside ``torch.func``'s transforms.

    Gradient:
        Unchanged. See :class:`saved_tensors_hooks` for the tensors it applies to. After
        ``torch.autograd.graph.save_on_cpu``.

    Examples:
        >>> import gradops
        >>> from gradops import autodiff
        >>> x = gradops.Variable(2.0, requires_grad=True)
        >>> with autodiff.save_on_cpu():
        ...     y = x**3
        >>> y.backward()
        >>> print(x.grad.numpy())
        12.0

    See Also:
        :class:`saved_tensors_hooks`; :func:`gradops.save_and_offload_only_these_names`.
    """

    def __init__(self, pin_memory: bool = False):
        check_flags("save_on_cpu", pin_memory=pin_memory)
        super().__init__(copy_to_cpu, restore_to_device)
        self.pin_memory = pin_memory

    def _again(self):
        return save_on_cpu(self.pin_memory)

    def _native(self, derivatives) -> contextlib.AbstractContextManager:
        return derivatives.on_cpu(self.pin_memory)


def copy_to_cpu(x) -> tuple:
    """An array in the memory of the CPU, and the place it came from; None for an array that is there or is traced."""
    place = getattr(x, "sharding", None) or getattr(x, "device", None)
    if place is None or "cpu" in str(place).lower():
        return x, None
    return backends.backend_of(x).place(x, "cpu"), place


def restore_to_device(packed: tuple):
    x, place = packed
    return x if place is None else backends.backend_of(x).place(x, place)


def _count(change: int) -> None:
    global _open
    with _counting:
        _open += change
        if not _open:
            state.packers.remove(_pack)
        elif _pack not in state.packers:
            state.packers.append(_pack)  # after a checkpoint's, whose handles it leaves alone


def _pack(saved: tuple) -> tuple:
    hooks = _hooks.get()
    if hooks is None:
        return saved
    with changed(_hooks, None), changed(recording, False):
        return state.Packed([_packed(v, *hooks) for v in saved])


def _packed(value, pack: Callable, unpack: Callable):
    if type(value) is list:
        return [_packed(v, pack, unpack) for v in value]
    return value if backends.backend_of(value) is None else Kept(value, pack, unpack)


class Kept(state.Kept):
    """The result of a hook, in place of a saved array."""

    __slots__ = ("packed", "unpack", "look", "seq")

    def __init__(self, array, pack: Callable, unpack: Callable):
        self.look = _look(array)
        self.packed, self.unpack = pack(array), unpack
        self.seq = state.clock()

    def get(self, done: dict) -> Any:
        with changed(_hooks, None), changed(recording, False):
            given = self.unpack(self.packed)
        found = data_of(given)
        if isinstance(found, np.ndarray):
            library, dtype, _ = self.look
            found = backends.lookup(library).convert(found, dtype)
        look = None if backends.backend_of(found) is None else _look(found)
        if look != self.look:
            library, dtype, shape = self.look
            other = "" if look is None else f" of dtype {look[1]} and shape {look[2]}"
            raise GradientError(
                f"`unpack_hook` must return what `pack_hook` got, a {library} array of dtype {dtype} and shape {shape};"
                f" got {{given}}{other}.",
                argument="unpack_hook",
                given=TypeOf(given),
            )
        if isinstance(found, np.ndarray) and state.written_since(found, self.seq):
            raise GradientError(
                f"a saved tensor of shape {self.look[2]}, which `pack_hook` did not copy, was written in place since.",
                argument="pack_hook",
                hint="write to a `clone()`, or return a copy",
            )
        return found


def _look(array) -> tuple:
    return backends.backend_of(array).name, conversion.dtype(array), tuple(array.shape)

"""Checkpointing, which trades time for memory: results of a scope or function are recomputed in the backward pass.

:func:`checkpoint` wraps a function and uses the library's own checkpoints. :class:`gradient_checkpoint_scope` marks a
block: :mod:`.plan` notes its operations and recomputes results on demand, on the tape (:mod:`.tape`) and on PyTorch.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from ... import _tree, backends
from ..._functions import Transformed, hint_arguments
from ..._scopes import Ends, changed
from ...annotations import P, R, X
from ...autodiff.derivatives import derivatives_of
from ...autodiff.modes import enter_native
from ...autodiff.variable import Variable, data_of
from ...backends import checkpoint_policies as policies
from ...backends import interface, tracing
from ...backends.checkpoint_plan import Drawn
from ...backends.checkpoint_policies import (
    save_and_offload_only_these_names,
    save_anything_except_these_names,
    save_from_both_policies,
    save_only_these_names,
)
from ...backends.policy import checkpoint_policy
from ...errors import ArgumentError, ArgumentTypeError, TypeOf
from ...ops import _checks
from ...ops._structures import check_functions
from ..custom import _read
from ..elementary import _Scope
from ..gradient_functions import is_tensor
from . import tape


class gradient_checkpoint_scope(_Scope):
    """A scope whose tensors are not saved for the backward pass, but recomputed in it.

    Use it as ``with gradient_checkpoint_scope():`` or as a decorator, on functions, coroutines and generators::

        with gradient_checkpoint_scope():
            x = a + b
        y = x * c

    Neither the scope nor consumers of ``x`` outside save it: it is freed when the caller drops it, and recomputed
    once in a backward pass, for the gradient of ``c``. A value that the scope takes from outside is saved,
    even if another scope made it. A nested scope is part of the outer one. Random operations give the same values
    again and leave the generators unchanged.

    Coverage:

    - PyTorch: every operation, below autograd and autocast, and consumers in the scope's thread. If the caller had
      entered ``saved_tensors_hooks`` before, only consumers inside the scope. In a graph of ``torch.compile``
      the scope has no effect, because the compiler decides what to save: use :func:`checkpoint` there;
    - variables over NumPy, JAX and TensorFlow arrays: every operation of gradops;
    - JAX: every operation, under ``gradops.grad``, which then traces the function, or under
      ``jax.checkpoint(f, policy=gradops.checkpoint_policy)``. Otherwise the scope has no effect;
    - TensorFlow's tape saves the values it records, so a TensorFlow operation in the scope raises an error under it.

    The gradient function of a :func:`custom_gradient` keeps the values it closes over.

    Raises:
        BackendError: a TensorFlow operation under an active ``tf.GradientTape`` or in a graph: use :func:`checkpoint`.
        GradientError: in the backward pass, if a needed value was written in place since then. Writes through PyTorch's
            ``.data`` or by NumPy are not detected, as in PyTorch itself.

    Gradient:
        Unchanged; after RETURNN's ``gradient_checkpoint_scope`` and Chen et al. (2016).

    Examples:
        >>> import gradops
        >>> from gradops import ops
        >>> def loss(w):
        ...     with gradops.gradient_checkpoint_scope():
        ...         scaled = w * 1.1
        ...     return ops.sum(scaled**2)
        >>> print(gradops.grad(loss)(ops.array([1.0, 2.0])))
        [2.42 4.84]

    See Also:
        :func:`checkpoint` for a function, also on TensorFlow.
    """

    _ends = Ends("gradops_checkpoint_scopes")

    # PyTorch's compiler decides what a graph saves, so it reads the scope's operations unchanged.
    @tracing.read_as(lambda self: self)
    def __enter__(self):
        return super().__enter__()

    @tracing.left_out
    def __exit__(self, *error):
        super().__exit__(*error)

    def _begin(self) -> contextlib.ExitStack:
        with contextlib.ExitStack() as stack:
            if tape.current.get() is not None or _part_of_a_scope.get():
                return stack.pop_all()
            tape.start()
            plan = tape.TapePlan()
            tape.current.set(plan)
            stack.callback(tape.current.set, None)
            stack.callback(plan.recent.clear)
            for backend in backends.loaded_backends():
                if backend.derivatives.native:
                    enter_native(backend.name, backend.derivatives.checkpointed(), stack)
            return stack.pop_all()


@hint_arguments
def checkpoint(f: Callable[P, R], policy: policies.Policy | str | None = None) -> Transformed[P, R]:
    """``f``, saving only its arguments and what ``policy`` selects for the backward pass, which runs ``f`` again.

    Args:
        f: a function of tensors, variables, nested structures of them, and anything else, that returns tensors.
            It may close over tensors that need a gradient. On PyTorch, TensorFlow and JAX its code runs twice; on
            variables its operations do, as in :func:`gradient_checkpoint_scope`. JAX traces it.
        policy: the results that are saved and not recomputed. ``"nothing"`` is the same as None;
            ``"products"`` saves matrix products and convolutions; ``"everything"`` is ``f`` itself;
            :func:`save_only_these_names` and :func:`save_anything_except_these_names` select the names that
            :func:`checkpoint_name` gives to values in ``f``. The outer one of nested checkpoints sets the policy.
            Under ``torch.func`` nothing is saved, whatever the policy.

    Returns:
        A function of the same arguments. Random numbers are the same in both runs: torch's, NumPy's and
        TensorFlow's generators, and those in ``generators``, are restored for the second run.

    Raises:
        GradientError: (a RuntimeError) in the backward pass, if a torch tensor or a variable that ``f`` used was
            written in place since then. A TensorFlow variable that was assigned since then is used with its new value.
            Reads by a PyTorch extension are detected only in calls from Python.
        ArgumentError: an unknown ``policy``.
        BackendError: a ``policy`` for TensorFlow tensors, or a policy of names in ``torch.compile``.
        ArgumentTypeError: ``f`` is not a function.

    Gradient:
        Unchanged; natively ``torch.utils.checkpoint`` and ``jax.checkpoint``.

    Examples:
        The gradient is the same, but no intermediate value of the function is saved:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> @gradops.checkpoint
        ... def block(x):
        ...     return ops.tanh(ops.sin(x) * x)
        >>> x = np.array([0.5, 1.0])
        >>> print(gradops.grad(lambda x: ops.sum(block(block(x))))(x).round(4))
        [0.3994 0.7081]

        Matrix products are saved; only cheap operations are recomputed:

        >>> def layer(x, w):
        ...     return ops.sum(ops.tanh(x @ w))
        >>> light = gradops.checkpoint(layer, policy="products")
        >>> print(gradops.grad(light)(x, np.array([[1.0, 0.0], [0.0, 2.0]])).round(4))
        [0.7864 0.1413]

    See Also:
        :func:`save_only_these_names`, :func:`save_anything_except_these_names`, :func:`checkpoint_name`,
        :func:`gradient_checkpoint_scope` for a block of code, :func:`checkpoint_policy` inside of
        ``jax.checkpoint``.
    """
    if not callable(f):
        raise ArgumentTypeError("`f` must be a function; got {f}.", argument="f", f=TypeOf(f))
    chosen = policies.policy_of(policy)
    if chosen == policies.EVERYTHING:
        return Transformed(f, checkpoint, f, chosen)
    in_scope = functools.partial(_run_in_scope, policy=chosen)

    def checkpointed(*args, **kwargs):
        whole, inputs = f, [] if kwargs else [_read(x) for x in args]
        if kwargs or not all(map(is_tensor, inputs)):
            whole, inputs = _tensor_function(f, args, kwargs)
        backend = backends.common_with_text({type(data_of(x)) for x in inputs}, "checkpoint")
        derivatives = interface.tape if backend is None else derivatives_of(backend, inputs)
        run = _drawing_again(whole) if derivatives.native else whole
        return derivatives.checkpoint(run, inputs, chosen, in_scope)

    return Transformed(checkpointed, checkpoint, f, chosen)


def checkpoint_sequential(functions, segments: int, x, policy: policies.Policy | str | None = None) -> Any:
    """The value of functions applied one after the other, in segments that are checkpointed, except the last.

    Args:
        functions: a list of functions of one argument, or an iterable of them such as ``torch.nn.Sequential``.
        segments: the number of segments, of equal length; the last one also gets the rest. The square root of the
            number of functions saves the least.
        x: the argument of the first function: a tensor, a variable, or a structure of them.
        policy: see :func:`checkpoint`.

    Returns:
        The value of the last function.

    Raises:
        ArgumentTypeError: ``functions`` are not functions, or ``segments`` is not an integer.
        ArgumentError: no functions, ``segments`` is not between 1 and their number, or ``policy`` is unknown.

    Gradient:
        Unchanged; after ``torch.utils.checkpoint.checkpoint_sequential``.

    Examples:
        Ten layers; of three segments, two save their first value only:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> layers = [lambda x: ops.sin(x) + 0.1] * 10
        >>> def loss(x):
        ...     return ops.sum(gradops.checkpoint_sequential(layers, 3, x))
        >>> print(gradops.grad(loss)(np.array([0.1, 0.2])).round(4))
        [0.2103 0.1474]

    See Also:
        :func:`checkpoint`.
    """
    try:
        functions = list(functions)
    except TypeError:
        raise ArgumentTypeError(
            "`checkpoint_sequential`: `functions` must be a list of functions; got {functions}.",
            argument="functions",
            functions=TypeOf(functions),
        ) from None
    check_functions("checkpoint_sequential", **{f"functions[{i}]": f for i, f in enumerate(functions)})
    segments = _checks.integer("checkpoint_sequential", segments, "segments", 1)
    if segments > len(functions):
        raise ArgumentError(
            f"`checkpoint_sequential`: `segments` must be at most {len(functions)}, the number of functions; "
            f"got {segments}.",
            argument="segments",
        )

    def run(start: int, stop: int) -> Callable:
        return lambda x: functools.reduce(lambda value, f: f(value), functions[start:stop], x)

    size = len(functions) // segments
    last = size * (segments - 1)
    for start in range(0, last, size):
        x = checkpoint(run(start, start + size), policy)(x)
    return run(last, len(functions))(x)


def _tensor_function(f: Callable, args: tuple, kwargs: dict) -> tuple[Callable, list]:
    """A call of ``f`` as a function of the tensors among its arguments only, and these tensors."""
    leaves, form = _tree.flatten((args, kwargs))
    leaves = [_read(leaf) for leaf in leaves]
    places = [i for i, x in enumerate(leaves) if is_tensor(x)]

    def whole(*xs):
        a, k = _tree.unflatten(form, _tree.filled(leaves, places, xs))
        return f(*a, **k)

    return whole, [leaves[i] for i in places]


def checkpoint_name(x: X, name: str) -> X:
    """``x`` with a name; the policy of a :func:`checkpoint` decides by the name whether to save it.

    Args:
        x: a tensor, a variable, or a nested structure of them. Name it where it is made: operations that used it before
            may save it, or recompute it.
        name: a string.

    Returns:
        The same values. Outside of a checkpoint, and under a policy without names, this has no effect.

    Raises:
        ArgumentTypeError: ``name`` is not a string.

    Gradient:
        Unchanged; natively ``jax.ad_checkpoint.checkpoint_name``.

    Examples:
        >>> import gradops
        >>> def f(x):
        ...     square = gradops.checkpoint_name(x**2, "square")
        ...     return square**2
        >>> print(gradops.grad(gradops.checkpoint(f, policy=gradops.save_only_these_names("square")))(2.0))
        32.0

    See Also:
        :func:`save_only_these_names`, :func:`save_anything_except_these_names`.
    """
    policies.named(name, "name")
    leaves, form = _tree.flatten(x)
    return _tree.unflatten(form, [_named(leaf, name) for leaf in leaves])


def _named(x, name: str):
    if isinstance(x, Variable):
        return tape.named(x, name)
    x = backends.held(x)
    backend = backends.backend_of(x)
    return x if backend is None else backend.derivatives.named(x, name)


@tracing.read_as(lambda run: run)
def _drawing_again(run: Callable) -> Callable:
    """``run``, whose second call draws the same random numbers, and counts as part of the scopes of its first call."""
    drawn, within = Drawn(generators), tape.open_plan() is not None
    called = drew = False

    def repeated(*xs):
        nonlocal called, drew
        if called:
            with changed(_part_of_a_scope, within):
                return drawn.again(run, xs) if drew else run(*xs)
        called = True
        result = run(*xs)
        drew = drawn.are_other()
        return result

    return repeated


_part_of_a_scope: ContextVar[bool] = ContextVar("gradops_part_of_a_scope", default=False)
"""True while a function that first ran in a scope runs again: scopes opened in it are part of that outer scope."""


def _run_in_scope(run: Callable, inputs: list, policy: policies.Policy):
    with changed(policies.current, policy), gradient_checkpoint_scope():
        result = run(*inputs)
    tape.forget([x.data for x in _tree.flatten(result)[0] if isinstance(x, Variable)])
    return result


interface.register_on_tape(lambda run, inputs, policy, in_scope: in_scope(run, inputs), "checkpoint")


__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policy",
    "checkpoint_sequential",
    "generators",
    "gradient_checkpoint_scope",
    "save_and_offload_only_these_names",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
]


class _NumpyState:
    """The state of NumPy's global generator, copied only when its memory has changed, as a copy takes 50 us."""

    def __init__(self):
        self._generator: Any = None
        self._memory: list[memoryview] = []
        self._seen: list[memoryview] = []
        self._state: dict[str, Any] = {}

    def get(self) -> dict[str, Any]:
        generator = np.random.get_bit_generator()  # type: ignore[attr-defined]
        if type(generator) is not np.random.MT19937 or sys.implementation.name != "cpython":
            return np.random.get_state(legacy=False)
        if self._generator is not generator:
            # The owner of `np.random.normal`, ..., stores a spare normal number, as normals are drawn in pairs.
            owner: Any = np.random.normal.__self__  # type: ignore[attr-defined]
            header = object.__basicsize__  # the reference count, which changes by itself
            own = id(owner) + header, type(owner).__basicsize__ - header
            self._generator = generator
            places = [(generator.ctypes.state_address, 625 * 4), own]
            self._memory = [part for place in places for part in _words(*place)]
            self._seen = []
        # Compare memory in place: copying to new bytes would allocate that size at each call.
        if self._memory != self._seen:
            self._seen = [memoryview(bytes(x)).cast(x.format) for x in self._memory]  # type: ignore[call-overload]
            self._state = np.random.get_state(legacy=False)
        return self._state


def _words(start: int, size: int) -> list[memoryview]:
    """The memory from an address on as eight-byte words, which are compared at once, and the remaining bytes."""
    whole = memoryview((ctypes.c_char * size).from_address(start)).cast("B")
    return [whole[: size // 8 * 8].cast("Q"), whole[size // 8 * 8 :]]


generators: list[tuple[Callable, Callable]] = [(_NumpyState().get, lambda state: np.random.set_state(state))]
"""Pairs of functions that get and set a generator's state, restored when :func:`checkpoint` runs a function again."""

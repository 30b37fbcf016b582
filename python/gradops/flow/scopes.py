"""``stop_gradient_scope``: values made inside have no gradient to values outside."""

from __future__ import annotations

import contextlib
import functools

from .. import backends
from .._scopes import Ends, PlainScope
from ..autodiff import modes
from ..autodiff.modes import recording
from ..backends import tracing
from .elementary import stop_gradient


class _Scope(PlainScope):
    """A scope of the thread or task: ``_begin`` starts it and gives the stack that ends it."""

    _ends: Ends
    _decorating = False

    def __enter__(self):
        self._ends.push(self, self._begin().close)
        return self

    def __exit__(self, *error):
        self._ends.leave(self)

    def _again(self):
        again = type(self)()
        again._decorating = True
        return again

    def _begin(self) -> contextlib.ExitStack:
        raise NotImplementedError


class stop_gradient_scope(_Scope):
    """Scope whose results have no gradient to values from outside.

    Use as ``with stop_gradient_scope():`` or as decorator, with or without parentheses, on functions,
    coroutines and generators. Scopes nest, are local to the thread or task, and end on errors. As
    decorator of a generator the scope holds while the generator runs, not between its values; a ``with``
    in a generator holds until the block is left, also for the caller, as ``torch.no_grad`` does.

    Coverage:

    - variables and PyTorch: every operation, forward-mode derivatives of PyTorch included;
    - TensorFlow: every operation, for the tapes and forward accumulators that are active when the scope
      is entered, eager and in ``tf.function`` (there also for derivatives taken through the function).
      Tapes that are opened inside record the operations inside;
    - JAX: every operation of gradops and of ``jax.numpy``, under ``jax.grad``, ``jit``, ``vmap`` and
      ``scan``. Derivatives taken inside the scope by ``jax.grad`` work and are constants outside.

    Raises:
        BackendError: a version of JAX or TensorFlow in which the scope cannot see the active transformation
            or tape; as a decorator it works with any.

    Gradient:
        None from inside to outside; after RETURNN's ``stop_gradient_scope``.

    Examples:
        >>> import gradops
        >>> def loss(w):
        ...     with gradops.stop_gradient_scope():
        ...         target = 2.0 * w
        ...     return (w - target) ** 2
        >>> print(gradops.grad(loss)(3.0))
        -6.0

    See Also:
        :func:`stop_gradient` for one value, :func:`gradops.autodiff.no_grad`, which has no gradient inside either.
    """

    @tracing.read_as(tracing.stop)
    def __enter__(self):
        modes.entered(self, self._begin().close)
        return self

    @tracing.read_as(tracing.go_on)
    def __exit__(self, *error):
        modes.left(self)

    def _begin(self) -> contextlib.ExitStack:
        with contextlib.ExitStack() as stack:
            stack.callback(modes.restorer(modes.torch_before()))
            recording.set(False)
            for backend in backends.in_use():
                if not (self._decorating and backend.derivatives.cuts_results):
                    modes.enter_native(backend.name, backend.derivatives.stopped(), stack)
            return stack.pop_all()

    def __call__(self, function):
        decorated = super().__call__(function)
        if not any(backend.derivatives.cuts_results for backend in backends.in_use()):
            return decorated

        @functools.wraps(decorated)
        def wrapped(*args, **kwargs):
            return stop_gradient(decorated(*args, **kwargs))

        return wrapped

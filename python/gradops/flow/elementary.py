"""Stopping, scaling and requesting gradients, of single values and of everything computed in a scope."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _tree, backends
from .._scopes import Ends, PlainScope
from ..annotations import Axes, Input, X
from ..autodiff import gradients, modes
from ..autodiff.modes import recording
from ..autodiff.variable import Variable, data_of, differentiable, no_gradient_error
from ..backends import tracing
from ..errors import GRAD, VARIABLE, ArgumentError, GradientError, TypeOf
from ..ops import _checks, conversion, creation, elementwise, indexing, reductions
from ..ops._registry import functions
from ..ops._symbolic import call_symbolically
from .custom import custom_gradient
from .gradient_functions import is_tensor


def stop_gradient(variable: X) -> X:
    """``variable`` as a constant: no gradient flows back through it.

    Args:
        variable: a tensor, a variable, or a nested structure of them; also a ragged or sparse tensor, which keeps its
            structure.

    Returns:
        The same values: a new variable for a variable, the argument itself for NumPy arrays and numbers.

    Gradient:
        None.

    Examples:
        A target that the loss must not move, such as the output of a second network:

        >>> import gradops
        >>> def loss(w):
        ...     target = gradops.stop_gradient(2.0 * w)
        ...     return (w - target) ** 2
        >>> print(gradops.grad(loss)(3.0))
        -6.0

        The straight-through estimator rounds values and passes gradients unchanged (Bengio et al. 2013):

        >>> from gradops import ops
        >>> def rounded(x):
        ...     return x + gradops.stop_gradient(ops.round(x) - x)
        >>> print(rounded(1.7), gradops.grad(lambda x: rounded(x) ** 2)(1.7))
        2.0 4.0

    See Also:
        :func:`stop_gradient_scope` for everything computed in a block, :func:`scaled_gradient`,
        :func:`custom_gradient`.
    """
    leaves, form = _tree.flatten(variable)
    return _tree.unflatten(form, [_stop(x) for x in leaves])


def _stop(x):
    if isinstance(x, Variable):
        return x.detach()
    x = backends.held(x)
    backend = backends.backend_of(x)
    if backend is not None:
        return backend.derivatives.stop(x)
    if backends.is_symbolic(x):
        return call_symbolically("stop_gradient", [x])
    parts = backends.components(x)
    return x if parts is None else _rebuilt(parts, _stop)


def _rebuilt(parts: tuple[list, Callable], change: Callable):
    """Rebuild a ragged or sparse tensor after changing its differentiable components."""
    tensors, rebuild = parts
    return rebuild([change(x) if is_tensor(x) and differentiable(x) else x for x in tensors])


def scaled_gradient(x: X, scale: Input) -> X:
    """``x``, with the gradient that flows back through it multiplied by ``scale``.

    Args:
        x: a tensor, a variable, or a nested structure of them; every leaf is scaled. A ragged or sparse tensor keeps
            its structure; for it, ``scale`` is a number.
        scale: a number or a tensor that broadcasts to ``x``; it gets no gradient itself. A negative scale
            reverses the gradient (Ganin & Lempitsky 2015). Where it is 0, the gradient is 0 even if it was
            infinite; ``x`` stays connected, so ``backward()`` works even if nothing else needs a gradient.

    Returns:
        The values of ``x``.

    Raises:
        ShapeError: ``scale`` does not broadcast to the shape of ``x``.
        ArgumentError: ``scale`` is not a number, for a ragged or sparse tensor.

    Gradient:
        ``g * scale``; after RETURNN's ``scaled_gradient``.

    Examples:
        Gradient reversal: the preceding layers learn to increase the loss (Ganin & Lempitsky 2015):

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> def adversarial(features, classifier):
        ...     return ops.sum(classifier * gradops.scaled_gradient(features, -0.5))
        >>> features, classifier = np.array([1.0, 2.0]), np.array([3.0, 4.0])
        >>> for gradient in gradops.grad(adversarial, argnums=(0, 1))(features, classifier):
        ...     print(gradient)
        [-1.5 -2. ]
        [1. 2.]

    See Also:
        :func:`scaled_gradient_ext`, which can also add to the gradient; :func:`stop_gradient`;
        :func:`custom_gradient` for any other change.
    """
    return _scaled(x, scale)


@tracing.read_as(lambda x, scale: scaled_gradient_ext(x, scale=scale))
def _scaled(x, scale):
    if is_tensor(x):
        if isinstance(scale, np.generic):  # like a number, it does not change the gradient's dtype
            scale = scale.item()
        if type(scale) in (int, float):
            return _scale_function(scale)(x)
    return scaled_gradient_ext(x, scale=scale)


def scaled_gradient_ext(
    x: X, *, scale: Input, shift: Input | None = None, scale_shift_by_sum_over_axis: Axes = None
) -> X:
    """``x``, with the gradient ``g`` that flows back through it changed to ``g * scale + shift * m``.

    Args:
        x: a tensor, a variable, or a nested structure of them; for a ragged or sparse tensor see
            :func:`scaled_gradient`.
        scale: a number or a tensor that broadcasts to ``x``.
        shift: a number or a tensor that broadcasts to ``x``; None adds nothing.
        scale_shift_by_sum_over_axis: an axis, or several: ``m`` is the sum of ``abs(g)`` over them, with
            these axes kept at size 1. If None, ``m`` is 1.

    Returns:
        The values of ``x``.

    Raises:
        ShapeError: ``scale`` or ``shift`` does not broadcast to the shape of ``x``.
        AxisError: an axis out of range.

    Gradient:
        The formula above, and its own derivative at higher orders; after RETURNN's ``scaled_gradient_ext``.

    Examples:
        Half the gradient, plus a tenth of the gradient's L1 norm in each row:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> weights = np.array([[1.0, -3.0], [2.0, 2.0]])
        >>> def loss(x):
        ...     y = gradops.scaled_gradient_ext(x, scale=0.5, shift=0.1, scale_shift_by_sum_over_axis=1)
        ...     return ops.sum(weights * y)
        >>> print(gradops.grad(loss)(np.zeros((2, 2))))
        [[ 0.9 -1.1]
         [ 1.4  1.4]]

    See Also:
        :func:`scaled_gradient`, :func:`custom_gradient`.
    """
    if backends.backend_of(x) is None and not isinstance(x, Variable):
        if backends.is_symbolic(x):
            keywords = {"scale": scale, "shift": shift, "scale_shift_by_sum_over_axis": scale_shift_by_sum_over_axis}
            return call_symbolically("scaled_gradient_ext", [x], keywords)
        if isinstance(x, dict) or isinstance(x, (list, tuple)) and any(map(_holds, _tree.leaves_of(x))):
            options: dict[str, Any] = {"shift": shift, "scale_shift_by_sum_over_axis": scale_shift_by_sum_over_axis}
            change = lambda leaf: scaled_gradient_ext(leaf, scale=scale, **options)  # noqa: E731
            return _tree.map_leaves(lambda leaf: change(leaf) if _checks.is_numeric(leaf) or _holds(leaf) else leaf, x)
        parts = backends.components(x)
        if parts is not None:  # a ragged or sparse tensor
            _check_scale_only(x, scale, shift, scale_shift_by_sum_over_axis)
            return _rebuilt(parts, lambda values: _scaled(values, scale))
        x = conversion.convert_to_tensor(x)
    elif backends.components(x) is not None:
        _check_scale_only(x, scale, shift, scale_shift_by_sum_over_axis)
    shape, rank = conversion.shape(x), conversion.ndim(x)
    scale, shift = _constant(scale), _constant(shift)
    for name, value in (("scale", scale), ("shift", shift)):
        if value is not None and not isinstance(value, (int, float)):
            if not _checks.is_numeric(value):
                plain = shift is None and scale_shift_by_sum_over_axis is None
                raise _checks.not_a_tensor("scaled_gradient" if plain else "scaled_gradient_ext", name, value)
            size = conversion.shape(value)
            wanted = tuple(shape)[len(shape) - len(size) :]
            if len(size) > len(shape) or any(s not in (1, w) for s, w in zip(size, wanted)):
                raise _checks.ShapeError(
                    f"`{name}` must broadcast to the shape {tuple(shape)} of `x`; got {tuple(size)}.", argument=name
                )
    axes = scale_shift_by_sum_over_axis
    if axes is not None:
        axes = _checks.check_axes("scaled_gradient_ext", axes, rank, "scale_shift_by_sum_over_axis")

    def pull(upstream):
        if shift is None:
            return _times(upstream, scale)
        if backends.components(upstream) is not None:  # PyTorch's sparse gradient of an embedding
            upstream = upstream.to_dense()
        g = _times(upstream, scale)
        if axes is None:
            return elementwise.add(g, shift)
        return elementwise.add(g, _times(reductions.sum(elementwise.abs(upstream), axes, True), shift))

    return custom_gradient(lambda x: (x, pull))(x)


def _holds(x) -> bool:
    return is_tensor(x) or backends.components(x) is not None


def _check_scale_only(x, scale, shift, axes) -> None:
    """Raise if a ragged or sparse tensor's gradient is to change by more than a number."""
    plain = shift is None and axes is None
    if not plain or _checks.is_numeric(scale) and conversion.shape(scale) != ():
        name = "scaled_gradient" if plain else "scaled_gradient_ext"
        came = "several numbers as `scale`" if plain else "a `shift` or an axis"
        raise ArgumentError(
            f"`{name}`: the gradient of a ragged or sparse tensor can be scaled by a number only; got {came} for a "
            "{x}.",
            argument="scale" if plain else "shift",
            hint="change the gradient of the tensor that holds its values, and make it of this tensor",
            x=TypeOf(x),
        )


def _scale_function(scale: int | float):
    """The function that scales a gradient by this number; cached, because making it costs more than calling it."""
    key = type(scale), scale
    known = _of_numbers.get(key)
    if known is None:
        if len(_of_numbers) > 100:  # bounds the cache if the number changes at every step
            _of_numbers.clear()

        def pull(upstream):
            return _times(upstream, scale)

        known = _of_numbers[key] = custom_gradient(lambda x: (x, pull))
    return known


_of_numbers: dict = {}


def _constant(value):
    return value if value is None or isinstance(value, (int, float)) else stop_gradient(value)


def _times(g, scale):
    """``g * scale``, but 0 where ``scale`` is 0 even if ``g`` is infinite; it stays connected to ``g``."""
    # `g * 0` would be NaN for an infinite gradient, and new zeros would not be connected to anything.
    number = isinstance(scale, (int, float))
    if number and scale != 0:
        return elementwise.multiply(g, scale)
    parts = backends.components(g)  # of a sparse gradient, for which PyTorch has no `where`
    if parts is not None and (number or conversion.shape(scale) == ()):
        return _rebuilt(parts, lambda values: _times(values, scale))
    g = g if parts is None else g.to_dense()
    if number:
        return indexing.where(creation.zeros_like(g, "bool"), g, 0)
    return elementwise.multiply(indexing.where(elementwise.equal(scale, 0), 0, g), scale)


functions.update(stop_gradient=stop_gradient, scaled_gradient_ext=scaled_gradient_ext)


def set_requires_gradient(x) -> None:
    """Request gradients of ``x`` from here on, in place.

    Marks a variable or a torch tensor; a TensorFlow tensor is watched by the active tapes.

    Raises:
        GradientError: a NumPy or JAX array, which cannot be marked: make it a ``Variable``.
        ArgumentTypeError: an integer or bool dtype.

    Examples:
        >>> import gradops
        >>> x = gradops.Variable(3.0)
        >>> gradops.set_requires_gradient(x)
        >>> y = x**2
        >>> print(gradops.gradient(y, x).item())
        6.0

    See Also:
        :class:`gradops.Variable`, :func:`gradient`, :func:`stop_gradient`.
    """
    if isinstance(x, Variable):
        x.requires_grad_()
        return
    x = backends.held(x)
    backend = backends.backend_of(x)
    if backend is None:
        raise GradientError(
            "`x` must be a variable or a tensor whose library can mark it; got a {x}.",
            argument="x",
            hint="make it a variable: {variable}",
            variable=VARIABLE,
            x=TypeOf(x),
        )
    if not differentiable(x):
        raise no_gradient_error(backend.dtype_name(x))
    backend.derivatives.require(x)


def gradient_of(y, x):
    """The gradient of a tensor ``y``: see :func:`gradops.gradient`."""
    leaves, form = _tree.flatten(x)
    y, leaves = backends.held(y), [backends.held(leaf) for leaf in leaves]
    if not leaves:
        raise ArgumentError("`x` must hold at least one tensor.", argument="x")
    kind = data_of(y)
    if not isinstance(kind, str) and conversion.size(y) != 1:
        raise GradientError(
            f"`y` must be a scalar; got shape {conversion.shape(y)}.",
            argument="y",
            hint="reduce it with `sum()`, or use `gradops.functional.jacobian()`",
        )
    return _tree.unflatten(form, list(_gradients(y, leaves)))


def _gradients(y, leaves: list):
    if isinstance(y, Variable):
        return gradients.grad(y, leaves, retain_graph=True, create_graph=recording.get(), allow_unused=True)
    backend = backends.backend_of(y)
    if backend is None:
        raise GradientError(
            "`y` is a number, which does not know what it was computed from.",
            argument="y",
            hint="make `x` a variable: {variable}, or use {grad}",
            variable=VARIABLE,
            grad=GRAD,
        )
    return backend.derivatives.gradient(y, leaves)


# ``stop_gradient_scope``: values made inside have no gradient to values outside ---------------------------------------


class _Scope(PlainScope):
    """A thread- or task-local scope; ``_begin`` starts it and returns the exit stack that ends it."""

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
    """A scope whose results have no gradient with respect to values from outside.

    Use it as ``with stop_gradient_scope():`` or as a decorator, with or without parentheses, on functions,
    coroutines and generators. Scopes can be nested, are local to the thread or task, and end on errors. As
    the decorator of a generator the scope is active while the generator runs, not between its values; a ``with``
    in a generator is active until the block is left, also for the caller, like ``torch.no_grad``.

    Coverage:

    - variables and PyTorch: every operation, including forward-mode derivatives of PyTorch;
    - TensorFlow: every operation, for the tapes and forward accumulators that are active when the scope
      is entered, eager and in ``tf.function`` (there also for derivatives taken through the function).
      Tapes opened inside record the operations inside;
    - JAX: every operation of gradops and of ``jax.numpy``, under ``jax.grad``, ``jit``, ``vmap`` and
      ``scan``. Derivatives taken inside the scope by ``jax.grad`` work and are constants outside.

    Raises:
        BackendError: the version of JAX or TensorFlow does not let the scope see the active transform or
            tape. The decorator works with all versions.

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
        :func:`stop_gradient` for one value, :func:`gradops.autodiff.no_grad`, which also records nothing inside.
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
            modes.set_recording(False)
            for backend in backends.loaded_backends():
                if not (self._decorating and backend.derivatives.cuts_results):
                    modes.enter_native(backend.name, backend.derivatives.stopped(), stack)
            return stack.pop_all()

    def __call__(self, function):
        decorated = super().__call__(function)
        if not any(backend.derivatives.cuts_results for backend in backends.loaded_backends()):
            return decorated

        @functools.wraps(decorated)
        def wrapped(*args, **kwargs):
            return stop_gradient(decorated(*args, **kwargs))

        return wrapped

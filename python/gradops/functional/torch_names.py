"""Names of ``torch.func`` for derivatives that have another name here, and its functions for modules."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .._functions import Transformed
from ..annotations import P
from ..errors import ArgumentError, ArgumentTypeError, TypeOf
from . import transformations
from .reverse import value_and_grad


def jacrev(
    f: Callable[P, Any],
    argnums: int | str | tuple[int | str, ...] = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Transformed:
    """A function that returns the Jacobian of ``f``, by reverse mode.

    Args:
        f, argnums, has_aux, chunk_size: see :func:`gradops.jacobian`, with ``strategy="reverse-mode"``.

    Returns:
        See :func:`gradops.jacobian`.

    Raises:
        The errors of :func:`gradops.jacobian`.

    Gradient:
        See :func:`jacobian`. After ``torch.func.jacrev`` and ``jax.jacrev``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops.functional import jacrev
        >>> print(jacrev(np.square)(np.array([1.0, 2.0])))
        [[2. 0.]
         [0. 4.]]
        >>> print(gradops.jacobian(np.square)(np.array([1.0, 2.0])))
        [[2. 0.]
         [0. 4.]]

    See Also:
        :func:`jacfwd`, for more outputs than inputs; :func:`jacobian`, with PyTorch's other form.
    """
    return transformations.jacobian(f, argnums, has_aux, "reverse-mode", chunk_size)


def jacfwd(
    f: Callable[P, Any],
    argnums: int | str | tuple[int | str, ...] = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Transformed:
    """A function that returns the Jacobian of ``f``, by forward mode.

    Args:
        f, argnums, has_aux, chunk_size: see :func:`gradops.jacobian`, with ``strategy="forward-mode"``.

    Returns:
        See :func:`gradops.jacobian`.

    Raises:
        The errors of :func:`gradops.jacobian`.

    Gradient:
        See :func:`jacobian`. After ``torch.func.jacfwd`` and ``jax.jacfwd``.

    Examples:
        The Hessian, forward over reverse:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> from gradops.functional import jacfwd, jacrev
        >>> print(jacfwd(jacrev(lambda x: ops.sum(x**3)))(np.array([1.0, 2.0])))
        [[ 6.  0.]
         [ 0. 12.]]
        >>> print(gradops.hessian(lambda x: ops.sum(x**3))(np.array([1.0, 2.0])))
        [[ 6.  0.]
         [ 0. 12.]]

    See Also:
        :func:`jacrev`, for more inputs than outputs; :func:`jacobian`, with PyTorch's other form.
    """
    return transformations.jacobian(f, argnums, has_aux, "forward-mode", chunk_size)


def grad_and_value(
    f: Callable[P, Any], argnums: int | str | tuple[int | str, ...] = 0, has_aux: bool = False
) -> Transformed:
    """A function that returns the gradient of ``f`` and its value.

    Args:
        f, argnums, has_aux: see :func:`gradops.value_and_grad`.

    Returns:
        A function of the same arguments as ``f`` that returns ``(gradient, value)``, or ``(gradient, (value, aux))``.

    Raises:
        The errors of :func:`gradops.value_and_grad`.

    Gradient:
        See :func:`gradops.value_and_grad`. After ``torch.func.grad_and_value``.

    Examples:
        >>> from gradops.functional import grad_and_value, value_and_grad
        >>> print(*grad_and_value(lambda x: x**2)(3.0))
        6.0 9.0
        >>> print(*value_and_grad(lambda x: x**2)(3.0))
        9.0 6.0

    See Also:
        :func:`value_and_grad`, JAX's order.
    """
    both = value_and_grad(f, argnums, has_aux)._call

    def gradient_and_value(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return Transformed(gradient_and_value, grad_and_value, f, argnums, has_aux)


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights: bool = True, strict: bool = False
):
    """The value of a PyTorch module with other parameters and buffers than its own.

    Args:
        module: a ``torch.nn.Module``.
        parameter_and_buffer_dicts: a dict from names to tensors, as ``dict(module.named_parameters())``, or a tuple of
            dicts with different names.
        args, kwargs: the arguments of the module; a single argument may be given without a tuple.
        tie_weights, strict: see ``torch.func.functional_call``.

    Returns:
        The module's value. The module is unchanged.

    Raises:
        ArgumentTypeError: ``module`` is not a module of PyTorch. On the other libraries parameters are arguments of
            functions already; Keras has ``model.stateless_call``, Flax ``model.apply``.

    Gradient:
        Through the module, to the tensors given. This is ``torch.func.functional_call``.

    Examples:
        Gradients for each example of a batch (this example needs ``gradops[torch]``):

        >>> import torch
        >>> import gradops
        >>> from gradops.functional import functional_call
        >>> model = torch.nn.Linear(2, 1, bias=False)
        >>> p = {"weight": torch.tensor([[1.0, 2.0]])}
        >>> def loss(p, x):
        ...     return functional_call(model, p, x)[0] ** 2
        >>> print(gradops.vmap(gradops.grad(loss), (None, 0))(p, torch.eye(2))["weight"].tolist())
        [[[2.0, 0.0]], [[0.0, 4.0]]]

    See Also:
        :func:`stack_module_state`, for ensembles.
    """
    torch = _torch_of("functional_call", "module", module)
    return torch.func.functional_call(
        module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of PyTorch modules of one class, stacked, for :func:`gradops.vmap`.

    Args:
        models: a list of ``torch.nn.Module`` of one class, all in training or all in evaluation mode.

    Returns:
        ``(parameters, buffers)``, dicts from names to tensors with a first dimension for the models. The parameters are
        new leaves that require gradients.

    Raises:
        ArgumentTypeError: ``models`` are not modules of PyTorch.
        ArgumentError: ``models`` is empty. RuntimeError, ValueError: see ``torch.func.stack_module_state``.

    Gradient:
        To the stacked parameters.

    Examples:
        An ensemble as one function (this example needs ``gradops[torch]``):

        >>> import torch
        >>> import gradops
        >>> from gradops.functional import functional_call, stack_module_state
        >>> models = [torch.nn.Linear(2, 1) for _ in range(3)]
        >>> p, b = stack_module_state(models)
        >>> def loss(p, b, x):
        ...     return functional_call(models[0], (p, b), x).sum()
        >>> slopes = gradops.vmap(gradops.grad(loss), (0, 0, None))(p, b, torch.ones(2))
        >>> print(slopes["weight"].shape, slopes["bias"].tolist())
        torch.Size([3, 1, 2]) [[1.0], [1.0], [1.0]]

    See Also:
        :func:`functional_call`.
    """
    models = list(models) if isinstance(models, (list, tuple)) else models
    if isinstance(models, list) and not models:  # PyTorch, which refuses it too, may not be imported
        raise ArgumentError("`stack_module_state`: `models` must hold at least one module.", argument="models")
    torch = _torch_of("stack_module_state", "models", *(models if isinstance(models, list) else [models]))
    return torch.func.stack_module_state(models)


def _torch_of(name: str, argument: str, *modules) -> Any:
    """PyTorch, if all of ``modules`` are its modules."""
    torch: Any = sys.modules.get("torch")  # a module exists only if PyTorch has been imported
    for module in modules:
        if torch is None or not isinstance(module, torch.nn.Module):
            raise ArgumentTypeError(
                f"`{name}`: `{argument}` must be modules of PyTorch; got {{module}}.",
                argument=argument,
                hint="Keras has `model.stateless_call`, Flax `model.apply`",
                module=TypeOf(module),
            )
    return torch

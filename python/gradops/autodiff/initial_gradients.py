"""The starting gradients of a backward pass, for the tape and for torch: one for each root, checked and converted."""

from __future__ import annotations

from .. import backends, dtypes
from ..errors import VARIABLE, ArgumentError, ArgumentTypeError, GradientError, ShapeError, TypeOf
from ..ops import conversion
from ..ops._checks import plain_hint

NAMES = ("variables", "grad_variables")


def pair(roots: list, given: list | None, names: tuple[str, str] = NAMES) -> list:
    """A gradient, or None, for each of ``roots``: variables or torch tensors.

    Args:
        names: the names of the caller's arguments.

    Raises:
        ArgumentError: no roots, or another number of gradients.
        GradientError: a root that requires no gradient.
    """
    if not roots:
        raise ArgumentError(f"`{names[0]}` must not be empty.", argument=names[0])
    given = [None] * len(roots) if given is None else given
    if len(given) != len(roots):
        raise ArgumentError(
            f"`{names[1]}` must have one entry for each of `{names[0]}`: expected {len(roots)}, got {len(given)}.",
            argument=names[1],
        )
    for root in roots:
        if not getattr(root, "requires_grad", True):
            raise GradientError(
                f"`{names[0]}` does not require a gradient: nothing it was computed from does.",
                argument=names[0],
                hint="begin from {variable}",
                variable=VARIABLE,
            )
    return given


def tensor(data, given, names: tuple[str, str] = NAMES):
    """A gradient as a tensor of the library and dtype of ``data``, its root; a tensor is returned unchanged.

    Raises:
        ArgumentTypeError: a gradient that is neither tensor nor number.
    """
    owner = backends.backend_of(data)
    if hasattr(given, "requires_grad") or backends.backend_of(given) is not None or owner is None:
        return given
    try:
        return owner.convert(given, owner.dtype_name(data), like=data)
    except (TypeError, ValueError) as error:
        raise no_gradient(names[1], given) from error


def no_gradient(name: str, given) -> ArgumentTypeError:
    """The error for an argument that should be a gradient but is neither tensor nor number."""
    return ArgumentTypeError(
        f"`{name}` must be tensors or numbers; got {{given}}.",
        argument=name,
        hint=plain_hint(given),
        given=TypeOf(given),
    )


def check(root, given, names: tuple[str, str] = NAMES) -> None:
    """Check that ``root`` is a single real number, or that ``given`` has its shape.

    Raises:
        GradientError: several numbers or a complex one, and no gradient for them.
        ShapeError: a gradient of another shape.
    """
    if given is None and conversion.size(root) != 1:
        raise GradientError(
            f"`{names[1]}` is needed for a non-scalar of shape {tuple(root.shape)}.",
            argument=names[1],
            hint="reduce it to a scalar, or pass the gradient to start from",
        )
    if given is None and conversion.dtype(root) in dtypes.COMPLEX:
        raise GradientError(
            f"`{names[1]}` is needed for a complex number: only real numbers have a default one.",
            argument=names[1],
            hint="take its real part or absolute value, or pass the gradient to start from",
        )
    if given is not None and tuple(given.shape) != tuple(root.shape):
        raise ShapeError(
            f"`{names[1]}` must have the shape {tuple(root.shape)} of `{names[0]}`; got {tuple(given.shape)}.",
            argument=names[1],
        )
    if given is not None and conversion.dtype(given) in dtypes.COMPLEX and conversion.dtype(root) not in dtypes.COMPLEX:
        raise ArgumentTypeError(
            f"`{names[1]}` must be real, as `{names[0]}` is; got dtype {conversion.dtype(given)}.",
            argument=names[1],
            hint="take `real()` of it",
        )

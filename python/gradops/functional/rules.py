"""``custom_vjp``: a custom gradient by JAX's names, a forward function with residuals and a backward function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, overload

from .. import _functions, _tree
from ..annotations import P, R
from ..errors import GradientError, TypeOf
from ..flow import custom_gradient
from ..flow.gradient_functions import _align, is_tensor
from ..flow.signatures import Arguments
from ..ops import _checks
from ..ops._structures import check_functions
from .symbolic_zeros import CustomVJPPrimal, SymbolicZero, connected, symbolic_zero
from .transformations import _moves, arguments_by_position, with_fixed


class custom_vjp(_functions.Made, Generic[P, R], is_public=True):
    """A function with a custom derivative in reverse mode: a forward function and a backward one.

    Put ``@custom_vjp`` before the function, and call ``f.defvjp(fwd, bwd)``. ``fwd`` takes the arguments of the
    function and returns its value and residuals, anything that the backward function needs. ``bwd(residuals,
    cotangent)`` gets a cotangent in the structure of the value. It returns a tuple with a cotangent for each argument,
    in its structure, or None. Methods can be decorated. After ``jax.custom_vjp``.

    Args:
        fun: a function of tensors, structures of tensors, and anything else, that returns a tensor or a structure of
            tensors.
        nondiff_argnums: the positions of arguments without a derivative. ``bwd`` gets them first, before the residuals;
            ``fwd`` gets all arguments in their order.

    Returns:
        A function of the same arguments.

    Raises:
        GradientError: the function is called without rules; ``fwd`` does not return a pair; or, from a derivative,
            ``bwd`` does not return a tuple with a cotangent for each argument.
        ArgumentTypeError: ``fun`` is not a function, or ``nondiff_argnums`` are not positions.

    Gradient:
        That of ``bwd``, in reverse and forward mode (by its transpose), to any order, as far as ``fwd`` and ``bwd`` are
        differentiable: the function becomes a :func:`gradops.custom_gradient`. ``fwd`` runs where an argument may be
        differentiated, ``fun`` elsewhere. A gradient of complex numbers is ``dL/dRe + i dL/dIm``, also on JAX.

    Examples:
        A gradient that is clipped, with a limit that has none:

        >>> import gradops
        >>> from gradops import ops
        >>> @gradops.custom_vjp
        ... def clipped(limit, x):
        ...     return x
        >>> def forward(limit, x):
        ...     return x, limit
        >>> def backward(limit, g):
        ...     return None, ops.clip(g, -limit, limit)
        >>> clipped.defvjp(forward, backward)
        >>> print(gradops.grad(lambda x: 5.0 * clipped(1.0, x))(2.0))
        1.0

        An argument that is not a tensor:

        >>> apply = gradops.custom_vjp(lambda f, x: f(x), nondiff_argnums=(0,))
        >>> apply.defvjp(lambda f, x: (f(x), x), lambda f, x, g: (g * f(x),))
        >>> print(gradops.grad(lambda x: apply(ops.exp, x))(0.0))
        1.0

    See Also:
        :func:`gradops.custom_gradient`, one function with both parts; :class:`gradops.custom_jvp`, whose rule is given
        in forward mode.
    """

    def __init__(self, fun: Callable[P, R], nondiff_argnums: int | tuple[int, ...] = ()):
        check_functions("custom_vjp", fun=fun)
        positions = nondiff_argnums if isinstance(nondiff_argnums, (tuple, list)) else (nondiff_argnums,)
        self.nondiff_argnums = tuple([_checks.integer("custom_vjp", i, "nondiff_argnums", 0) for i in positions])
        self.rules: tuple | None = None
        functools.update_wrapper(self, fun)
        self.fun, self._arguments = fun, Arguments(fun)

    @overload
    def __get__(self, instance: None, owner=None) -> custom_vjp[P, R]: ...
    @overload
    def __get__(self, instance: object, owner=None) -> Callable[..., R]: ...
    def __get__(self, instance, owner=None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _made_of(self) -> tuple[Callable, tuple]:
        return _custom_vjp, (self.fun, self.nondiff_argnums, self.rules)

    def __repr__(self) -> str:
        return f"<gradops custom_vjp of {getattr(self.fun, '__qualname__', self.fun)}>"

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False) -> None:
        """Set the rules.

        Args:
            fwd, bwd: see :class:`custom_vjp`.
            symbolic_zeros: True if ``fwd`` gets a :class:`gradops.functional.CustomVJPPrimal` for each tensor, which
                says if it may be differentiated, and ``bwd`` a :class:`gradops.functional.SymbolicZero` for parts of
                the value that have no cotangent, such as integers.
        """
        check_functions("custom_vjp.defvjp", fwd=fwd, bwd=bwd)
        _checks.check_flags("custom_vjp.defvjp", symbolic_zeros=symbolic_zeros)
        self.rules = fwd, bwd, symbolic_zeros

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        fun: Callable = self.fun
        if self.rules is None:
            raise GradientError(
                f"the `custom_vjp` function {getattr(self.fun, '__name__', self.fun)!r} has no rules.",
                argument="fun",
                hint="give it rules by `f.defvjp(fwd, bwd)`",
            )
        fwd, bwd, symbolic = self.rules
        given = arguments_by_position("custom_vjp", self._arguments, args, kwargs)
        fixed = [given[i] for i in self.nondiff_argnums]
        primals = [x for i, x in enumerate(given) if i not in self.nondiff_argnums]
        leaves, form = _tree.flatten(primals)
        places = [i for i, x in enumerate(leaves) if _moves(x)]
        perturbed = [i in places and connected(x) for i, x in enumerate(leaves)]
        if not any(perturbed):
            return fun(*given)

        def run(*xs):
            values = _tree.filled(leaves, places, xs)
            if symbolic:
                values = [CustomVJPPrimal(x, p) if is_tensor(x) else x for x, p in zip(values, perturbed)]
            made = fwd(*with_fixed(self.nondiff_argnums, fixed, _tree.unflatten(form, values)))
            if not isinstance(made, (tuple, list)) or len(made) != 2:
                raise GradientError(
                    "the `fwd` of a `custom_vjp` must return a pair of the value and the residuals; got {given}.",
                    argument="fwd",
                    given=TypeOf(made),
                )
            value, residuals = made
            zeros = [None if _moves(y) or type(y) is float else symbolic_zero(y) for y in _tree.leaves_of(value)]

            def pull(upstream):
                if symbolic and any(zeros):
                    cotangents, its = _tree.flatten(upstream)
                    upstream = _tree.unflatten(its, [u if z is None else z for u, z in zip(cotangents, zeros)])
                found = _cotangents(bwd(*fixed, residuals, upstream), primals)
                return tuple([None if isinstance(found[i], SymbolicZero) else found[i] for i in places])

            return value, pull

        return custom_gradient(run)(*[leaves[i] for i in places])


def _cotangents(result, primals: list) -> list:
    """A cotangent, or None, for each leaf of the arguments."""
    if not isinstance(result, (tuple, list)) or len(result) != len(primals):
        count = f" of {len(result)}" if isinstance(result, (tuple, list)) else ""
        raise GradientError(
            f"the `bwd` of a `custom_vjp` must return a tuple of {len(primals)} cotangents, one for each argument that "
            f"is differentiated; got {{given}}{count}.",
            argument="bwd",
            hint="return {None} for an argument without one; a single cotangent is a tuple of one, `(g,)`",
            given=TypeOf(result),
        )
    found: list = []
    for value, part in zip(primals, result):
        _align(value, part, found)
    return found


def _custom_vjp(fun: Callable, nondiff_argnums: tuple[int, ...], rules: tuple | None) -> custom_vjp:
    made: custom_vjp = custom_vjp(fun, nondiff_argnums)
    made.rules = rules
    return made

"""``custom_vjp`` and ``custom_vmap``: functions with rules for their cotangents, and for all rows of a map."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from .. import _functions, _tree
from .._scopes import changed
from ..annotations import P, R
from ..errors import ArgumentError, GradientError, TypeOf
from ..flow import custom_gradient
from ..flow.gradient_functions import _align, is_tensor
from ..flow.signatures import Arguments
from ..ops import _checks
from ..ops._structures import check_functions
from .row_rules import call_by_rule
from .symbolic_zeros import CustomVJPPrimal, SymbolicZero, connected, moves, symbolic_zero
from .transformations import all_arguments, arguments_by_position, fixed_positions, vjp

_running: ContextVar[tuple] = ContextVar("gradops_running_rules", default=())
"""The functions whose ``fwd`` is running, outermost first."""


class custom_vjp(_functions.Made[P, R], is_public=True):
    """A function with a custom derivative in reverse mode: a forward function and a backward one.

    Put ``@custom_vjp`` before the function, and call ``f.defvjp(fwd, bwd)``. ``fwd`` takes the arguments of the
    function and returns its value and residuals, anything that the backward function needs. ``bwd(residuals,
    cotangent)`` gets a cotangent in the structure of the value. It returns a tuple with a cotangent for each argument,
    in its structure, or None. Methods can be decorated. After ``jax.custom_vjp``.

    Args:
        fun: a function of tensors, structures of tensors, and anything else, that returns a tensor or a structure of
            tensors.
        nondiff_argnums, nondiff_argnames: the positions or names of arguments without a derivative. ``bwd`` gets them
            first, before the residuals; ``fwd`` gets all arguments in their order.

    Returns:
        A function of the same arguments.

    Raises:
        GradientError: the function is called without rules; ``fwd`` does not return a pair; or, from a derivative,
            ``bwd`` does not return a tuple with a cotangent for each argument.
        ArgumentTypeError: ``fun`` is not a function, or ``nondiff_argnums`` are not positions. ArgumentError: ``fun``
            has no argument of a name in ``nondiff_argnames``.

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

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | tuple[int, ...] = (),
        nondiff_argnames: str | tuple[str, ...] = (),
    ):
        check_functions("custom_vjp", fun=fun)
        self.nondiff_argnums = fixed_positions("custom_vjp", fun, nondiff_argnums, nondiff_argnames)
        self.rules: tuple | None = None
        functools.update_wrapper(self, fun)
        self.fun, self._arguments = fun, Arguments(fun)

    def __getattr__(self, name: str):
        return inner_rule_setter(self, name)

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
        places = [i for i, x in enumerate(leaves) if is_tensor(x)]
        perturbed = [moves(x) and connected(x) for x in leaves]
        if not any(perturbed):
            return fun(*given)

        def forward(xs) -> tuple[Any, Any]:
            values = _tree.filled(leaves, places, xs)
            if symbolic:
                values = [CustomVJPPrimal(x, p) if _checks.is_numeric(x) else x for x, p in zip(values, perturbed)]
            with changed(_running, (*_running.get(), self)):
                made = fwd(*all_arguments(self.nondiff_argnums, fixed, _tree.unflatten(form, values)))
            if not isinstance(made, (tuple, list)) or len(made) != 2:
                raise GradientError(
                    "the `fwd` of a `custom_vjp` must return a pair of the value and the residuals; got {given}.",
                    argument="fwd",
                    given=TypeOf(made),
                )
            return made[0], made[1]

        def backward(value, residuals, upstream) -> tuple:
            if symbolic:
                leaves, its = _tree.flatten(upstream)
                pairs = zip(leaves, _tree.leaves_of(value))
                upstream = _tree.unflatten(
                    its, [u if moves(y) or type(y) is float else symbolic_zero(y) or u for u, y in pairs]
                )
            found = _cotangents(bwd(*fixed, residuals, upstream), primals)
            found = [g if p and not isinstance(g, SymbolicZero) else None for g, p in zip(found, perturbed)]
            return tuple([found[i] for i in places])

        def run(*xs):
            if self not in _running.get():
                value, residuals = forward(xs)
                return value, lambda upstream: backward(value, residuals, upstream)
            # `fwd` calls its own function. Another call of `fwd` for its value would call it again, without end.
            values = _tree.unflatten(form, _tree.filled(leaves, places, xs))
            value = fun(*all_arguments(self.nondiff_argnums, fixed, values))
            return value, lambda upstream: backward(*forward(xs), upstream)

        return custom_gradient(run)(*[leaves[i] for i in places])


def inner_rule_setter(function, name: str):
    """The method ``name`` that sets a rule of the function inside of ``function``, which has another kind of rule.

    Raises:
        AttributeError: there is no such method.
    """
    inner = vars(function).get("fun")
    if name in ("def_vmap", "defjvp", "defjvps", "defvjp") and hasattr(inner, name):
        return getattr(inner, name)
    raise AttributeError(f"{type(function).__name__!r} object has no attribute {name!r}")


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


class custom_vmap(_functions.Made[P, R], is_public=True):
    """A function with a rule of its own for :func:`gradops.vmap`.

    Put ``@custom_vmap`` before the function and ``@f.def_vmap`` before its rule. ``rule(axis_size, in_batched, *args)``
    gets the number of rows; for each argument, in its structure, True if it has rows; and the arguments, whose rows are
    along the first dimension. It returns the values of all rows and, in their structure, True for each value with rows
    along the first dimension. After ``jax.custom_batching.custom_vmap``.

    Args:
        fun: a function of tensors and structures of tensors that returns a tensor or a structure of tensors.

    Returns:
        A function of the same arguments.

    Raises:
        GradientError: the function is called without a rule, or the rule does not return a pair.
        ArgumentError: from ``vmap``: the rule's second value has another structure than the first.

    Gradient:
        That of ``fun``; the rule computes values only. To give the gradient a rule, decorate the function by
        :class:`gradops.custom_vjp` as well. The rule is used on NumPy, PyTorch and JAX, also by ``torch.vmap`` and
        ``jax.vmap`` themselves. TensorFlow has no such rules: there, and where ``vmap`` runs row by row, ``fun`` is
        called.

    Examples:
        One product with a matrix for all rows:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> a = np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> @gradops.custom_vmap
        ... def product(x):
        ...     return ops.matmul(a, x)
        >>> @product.def_vmap
        ... def rule(axis_size, in_batched, x):
        ...     print("all", axis_size, "rows")
        ...     return ops.matmul(x, a.T), True
        >>> print(gradops.vmap(product)(np.eye(2)))
        all 2 rows
        [[1. 3.]
         [2. 4.]]
        >>> print(gradops.grad(lambda x: ops.sum(product(x)))(np.ones(2)))
        [4. 6.]

    See Also:
        :func:`gradops.vmap`; :class:`gradops.custom_vjp`.
    """

    def __init__(self, fun: Callable[P, R]):
        check_functions("custom_vmap", fun=fun)
        self.rule: Callable | None = None
        functools.update_wrapper(self, fun)
        self.fun, self._arguments = fun, Arguments(fun)

    def __getattr__(self, name: str):
        return inner_rule_setter(self, name)

    def _made_of(self) -> tuple[Callable, tuple]:
        return _custom_vmap, (self.fun, self.rule)

    def __repr__(self) -> str:
        return f"<gradops custom_vmap of {getattr(self.fun, '__qualname__', self.fun)}>"

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Set the rule, ``vmap_rule(axis_size, in_batched, *args)``. Returns it, to be a decorator."""
        check_functions("custom_vmap.def_vmap", vmap_rule=vmap_rule)
        self.rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        rule = self.rule
        fun: Callable = self.fun
        if rule is None:
            raise GradientError(
                f"the `custom_vmap` function {getattr(self.fun, '__name__', self.fun)!r} has no rule.",
                argument="fun",
                hint="give it one by `f.def_vmap(rule)`",
            )
        leaves, form = _tree.flatten(arguments_by_position("custom_vmap", self._arguments, args, kwargs))
        box: dict[str, Any] = {}

        def flat(*xs):
            found, box["form"] = _tree.flatten(fun(*_tree.unflatten(form, _tree.filled(leaves, places, xs))))
            return found

        def batched_flat(size: int, in_batched: list, xs: list) -> tuple[list, list]:
            have = _tree.filled([False] * len(leaves), places, in_batched)
            given = _tree.unflatten(form, _tree.filled(leaves, places, xs))
            made = rule(size, list(_tree.unflatten(form, have)), *given)
            if not isinstance(made, (tuple, list)) or len(made) != 2:
                raise GradientError(
                    "the rule of a `custom_vmap` must return a pair of the values and True for each that has rows; got "
                    "{given}.",
                    argument="rule",
                    given=TypeOf(made),
                )
            ys, box["form"] = _tree.flatten(made[0])
            out, its = _tree.flatten(made[1])
            if its != box["form"]:
                raise ArgumentError(
                    f"the rule of a `custom_vmap` must return True or False for each value, in the structure "
                    f"{box['form']}; got {its}.",
                    argument="rule",
                )
            return ys, out

        places = [i for i, x in enumerate(leaves) if is_tensor(x)]

        def gradient(xs: list, moved: list[int], upstream) -> tuple:
            back = vjp(lambda *moving: flat(*_tree.filled(xs, moved, moving)), *[xs[i] for i in moved])[1]
            return back(upstream)

        values = call_by_rule(flat, batched_flat, [leaves[i] for i in places], gradient)
        return _tree.unflatten(box["form"], values)


def _custom_vmap(fun: Callable, rule: Callable | None) -> custom_vmap:
    made: custom_vmap = custom_vmap(fun)
    made.rule = rule
    return made

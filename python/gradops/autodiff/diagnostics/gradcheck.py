"""``gradcheck``: comparison of analytic and numeric derivatives, on every backend.

A function's Jacobian is computed twice: row by row with vector-Jacobian products, and column by column with
central differences. A complex number counts as two real ones throughout, so holomorphy is not assumed: a gradient
is dL/dRe + i dL/dIm of a real loss.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from ... import _tree, backends, dtypes
from ..._display import track
from ...errors import ArgumentError, ArgumentTypeError, GradientError, Position
from ...ops import conversion
from ...ops._checks import check_flags, describe
from ...ops._structures import check_functions
from ..variable import Variable, wrap
from .jacobians import (
    Kind,
    analytic_jacobian,
    as_tuple,
    checked_places,
    compare,
    directions,
    evaluate,
    is_differentiable,
    like,
    moved,
    numeric_jacobians,
    overlaps,
    pull_back,
    pull_batch,
    puller,
    push_forward,
    random_array,
    random_like,
    real_count,
    real_size,
    reals,
    to_numpy,
)

__all__ = ["gradcheck", "gradgradcheck"]

jvp: Any = None
"""``functional.jvp``, for libraries with derivatives of their own, registered by a floor above."""

_STEPS = {  # dtype of the parts: step, absolute and relative tolerance
    "float64": (1e-6, 1e-5, 1e-3),
    "float32": (5e-3, 1e-3, 1e-2),
    "float16": (6e-2, 5e-2, 5e-2),
    "bfloat16": (2e-1, 2e-1, 2e-1),
}


def gradcheck(
    func: Callable,
    inputs,
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    fast_mode: bool = False,
    progress: bool | None = None,
    check_forward_ad: bool = False,
    check_batched_grad: bool = False,
) -> bool:
    """Check the gradients of ``func`` against finite differences.

    Args:
        func: a function of tensors that returns a tensor or a tuple of tensors. Outputs off the tape (a number, or a
            plain array if the inputs are variables) count as having gradient 0.
        inputs: a tensor or a tuple. Checked are the variables and torch tensors that require a gradient; or, of NumPy,
            JAX or TensorFlow arrays, all floating ones. Other values are passed on.
        eps: the step. The defaults of ``eps``, ``atol`` and ``rtol`` depend on the inputs' dtype.
        atol, rtol: the tolerance ``atol + rtol * abs(numeric)`` between analytic and numeric values.
        raise_exception: whether to raise an error or return False.
        nondet_tol: the largest difference allowed between two evaluations at the same inputs.
        check_undefined_grad: also check that outputs without an upstream gradient count as zero.
        check_grad_dtypes: also check that gradients have their inputs' dtypes.
        fast_mode: check one random direction instead of each element: faster, but blind to errors that cancel out.
        progress: whether to show progress (with rich, if installed); by default for large inputs in a terminal.
        check_forward_ad: also check the derivatives by forward mode, as :func:`gradops.jvp` computes them.
        check_batched_grad: also check that gradients for several upstream gradients at once
            (``grad(is_grads_batched=True)``, :func:`gradops.vmap`) equal the gradients for one after the other.

    Returns:
        True; False if a check fails and ``raise_exception`` is false.

    Raises:
        GradientError: (a RuntimeError) analytic and numeric values differ or are NaN (the error lists both), gradients
            change from call to call, or undefined gradients are not treated as zero.
        ArgumentError: there is no input to check.

    Gradient:
        None; after ``torch.autograd.gradcheck``.

    Examples:
        >>> import numpy as np
        >>> import gradops
        >>> from gradops import autodiff, ops
        >>> autodiff.gradcheck(lambda x: ops.sum(ops.exp(x) * x), (np.array([0.5, -1.0]),))
        True

        A wrong gradient is found:

        >>> wrong = gradops.custom_gradient(lambda x: (x * x, lambda upstream: upstream * x))
        >>> autodiff.gradcheck(wrong, (np.array([3.0]),), raise_exception=False)
        False

    See Also:
        :func:`gradgradcheck` for second derivatives, :func:`gradops.custom_gradient`.
    """
    _check_arguments(
        "gradcheck",
        func,
        {"eps": eps, "atol": atol, "rtol": rtol, "nondet_tol": nondet_tol},
        raise_exception=raise_exception,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        fast_mode=fast_mode,
        check_forward_ad=check_forward_ad,
        check_batched_grad=check_batched_grad,
    )
    try:
        _check(
            func,
            as_tuple(inputs),
            eps,
            atol,
            rtol,
            nondet_tol,
            check_undefined_grad,
            check_grad_dtypes,
            fast_mode,
            progress,
            check_forward_ad,
            check_batched_grad,
        )
    except GradientError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable,
    inputs,
    grad_outputs=None,
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    fast_mode: bool = False,
    progress: bool | None = None,
) -> bool:
    """Check second derivatives: the gradients of ``func``'s gradients for its inputs and upstream gradients.

    Args:
        grad_outputs: the upstream gradients; random ones by default.
        gen_non_contig_grad_outputs: make the random ones of NumPy arrays that are not contiguous.

    The other arguments, the result and the errors are as in :func:`gradcheck`.

    Examples:
        >>> import numpy as np
        >>> from gradops import autodiff, ops
        >>> autodiff.gradgradcheck(lambda x: ops.sin(x) * x, (np.array([0.5, 2.0]),))
        True

    See Also:
        :func:`gradcheck` for first derivatives.
    """
    _check_arguments(
        "gradgradcheck",
        func,
        {"eps": eps, "atol": atol, "rtol": rtol, "nondet_tol": nondet_tol},
        gen_non_contig_grad_outputs=gen_non_contig_grad_outputs,
        raise_exception=raise_exception,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        fast_mode=fast_mode,
    )
    values = as_tuple(inputs)
    kind = Kind(values)
    places = checked_places(values, kind)
    outputs = as_tuple(evaluate(func, values))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        grad_outputs = tuple(
            random_like(rng, y, kind, gen_non_contig_grad_outputs) for y in outputs if is_differentiable(y)
        )
    upstream = as_tuple(grad_outputs)
    count = len(values)

    def first(*everything):
        xs, gs = everything[:count], everything[count:]
        gradients = pull_back(func, xs, places, kind, list(gs), create=True)
        return tuple(gradients)

    return gradcheck(
        first,
        (*values, *upstream),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        fast_mode=fast_mode,
        progress=progress,
    )


def _check_arguments(name: str, func, numbers: dict, **flags) -> None:
    check_functions(name, func=func)
    check_flags(name, **flags)
    for argument, value in numbers.items():
        if value is not None and not (isinstance(value, Real) and not isinstance(value, bool) and float(value) >= 0):
            raise ArgumentTypeError(
                f"`{name}`: `{argument}` must be a number of at least 0; got {{value}}.",
                argument=argument,
                value=describe(value),
            )


def _check(func, values, eps, atol, rtol, nondet_tol, undefined, grad_dtypes, fast, progress, forward, batched) -> None:
    kind = Kind(values)
    if kind.wrapped:
        values = tuple(wrap(v) if backends.backend_of(v) is not None else v for v in values)
        for v in values:
            if isinstance(v, Variable) and is_differentiable(v):
                v.requires_grad = True
        kind = Kind(values)
    places = checked_places(values, kind)
    names = [dtypes.real_of(conversion.dtype(values[i])) for i in places]
    worst = min(names, key=lambda n: _STEPS[n][0] * -1)
    steps = _STEPS[worst]
    eps, atol, rtol = (d if v is None else v for v, d in zip((eps, atol, rtol), steps))
    outputs = as_tuple(evaluate(func, values))
    flat = [to_numpy(y) for y in outputs]
    again = [to_numpy(y) for y in as_tuple(evaluate(func, values))]
    for i, (a, b) in enumerate(zip(flat, again)):
        if not np.allclose(a, b, rtol=0, atol=nondet_tol, equal_nan=True):
            raise GradientError(
                f"gradcheck: output {{i}} differs from call to call by {np.max(np.abs(a - b)):.3g}: "
                f"the function is not deterministic.",
                i=Position(i),
                hint="fix its random seed, or allow it with `nondet_tol`",
            )
    for i in places:
        if overlaps(values[i]):
            raise ArgumentError(
                "gradcheck: input {i} shares memory between its elements.", argument="inputs", i=Position(i)
            )
    # A plain float is off the tape, with gradient 0; the check fails if it depends on the inputs.
    wanted = [k for k, y in enumerate(outputs) if is_differentiable(y) or isinstance(y, (float, complex))]
    if not wanted:
        return
    if fast:
        _check_fast(func, values, places, kind, flat, wanted, eps, atol, rtol)
    else:
        _check_slow(func, values, places, kind, flat, wanted, eps, atol, rtol, nondet_tol, grad_dtypes, progress)
    if forward:
        _check_forward(func, values, places, kind, flat, wanted, eps, atol, rtol, fast)
    if batched:
        _check_batched(func, values, places, kind, flat, wanted, atol, rtol)
    if undefined and len(wanted) > 1:
        _check_undefined(func, values, places, kind, flat, wanted, atol, rtol)


def _check_forward(func, values, places, kind, flat, wanted, eps, atol, rtol, fast) -> None:
    """Check forward mode in each direction of each input, or with ``fast`` in a random one."""
    rng = np.random.default_rng(0)

    def run(*xs):
        outputs = as_tuple(func(*_tree.filled(values, places, xs)))
        return tuple(outputs[k] for k in wanted)

    inputs = tuple(values[i] for i in places)
    for j, i in enumerate(places):
        shape = tuple(values[i].shape)
        columns: list[list] = [[] for _ in wanted]
        numeric: list[list] = [[] for _ in wanted]
        is_complex = "complex" in conversion.dtype(values[i])
        for direction in [random_array(rng, shape, is_complex)] if fast else directions(values[i]):
            tangents = [like(direction if n == j else np.zeros(tuple(x.shape)), x) for n, x in enumerate(inputs)]
            products = push_forward(run, inputs, tangents) if kind.on_tape else jvp(run, inputs, tuple(tangents))[1]
            up, down = (moved(func, values, i, s * eps * direction) for s in (1, -1))
            for n, k in enumerate(wanted):
                columns[n].append(reals(to_numpy(products[n])))
                numeric[n].append(reals((up[k] - down[k]) / (2 * eps)))
        for n, k in enumerate(wanted):
            compare(
                np.array(columns[n]), np.array(numeric[n]), k, i, values[i], flat[k], atol, rtol, "forward derivative"
            )


def _check_batched(func, values, places, kind, flat, wanted, atol, rtol) -> None:
    """Check the gradients for two upstream gradients of each output at once."""
    rng = np.random.default_rng(0)
    pull = puller(func, values, places, kind)
    for k in wanted:
        rows = np.stack([random_array(rng, flat[k].shape, np.iscomplexobj(flat[k])) for _ in range(2)])
        single = [pull([row if n == k else None for n in range(len(flat))]) for row in rows]
        try:
            batch = pull_batch(func, values, places, kind, k, rows)
        except Exception as error:
            raise GradientError(
                f"gradcheck: several upstream gradients at once of output {{k}} raise an error: {error}", k=Position(k)
            ) from error
        for j, i in enumerate(places):
            for n, found in enumerate(single):
                one, row = (
                    np.zeros(tuple(values[i].shape)) if g is None else to_numpy(g) for g in (found[j], batch[j])
                )
                if not np.allclose(one, row[n] if batch[j] is not None else row, rtol=rtol, atol=atol, equal_nan=True):
                    raise GradientError(
                        "gradcheck: the gradient of output {k} for input {i} differs if several upstream gradients are "
                        "propagated at once.",
                        k=Position(k),
                        i=Position(i),
                    )


def _check_slow(func, values, places, kind, flat, wanted, eps, atol, rtol, nondet_tol, grad_dtypes, progress) -> None:
    sizes = [real_size(values[i]) for i in places]
    rows = sum(real_count(flat[k]) for k in wanted)
    total = 2 * sum(sizes) + 2 * rows
    with track(total, "gradcheck", progress) as advance:
        numeric = numeric_jacobians(func, values, places, flat, eps, advance)
        for k in wanted:
            analytic = analytic_jacobian(func, values, places, kind, flat, k, advance, grad_dtypes)
            repeated = analytic_jacobian(func, values, places, kind, flat, k, advance, False)
            for j, i in enumerate(places):
                if not np.allclose(analytic[j], repeated[j], rtol=0, atol=nondet_tol, equal_nan=True):
                    raise GradientError(
                        "gradcheck: the gradient of output {k} for input {i} differs from pass to pass by "
                        f"{np.max(np.abs(analytic[j] - repeated[j])):.3g}: it is not deterministic.",
                        k=Position(k),
                        i=Position(i),
                        hint="allow it with `nondet_tol`",
                    )
                compare(analytic[j], numeric[j][k], k, i, values[i], flat[k], atol, rtol)


def _check_fast(func, values, places, kind, flat, wanted, eps, atol, rtol) -> None:
    rng = np.random.default_rng(0)
    upstream: list = [None] * len(flat)
    for k in wanted:
        upstream[k] = random_array(rng, flat[k].shape, np.iscomplexobj(flat[k]))
    gradients = puller(func, values, places, kind)(upstream)
    for i, g in zip(places, gradients):
        direction = random_array(rng, tuple(values[i].shape), "complex" in conversion.dtype(values[i]))
        direction /= max(1e-12, float(np.sqrt(np.sum(np.abs(direction) ** 2))))
        up, down = (moved(func, values, i, s * eps * direction) for s in (1, -1))
        numeric = sum(float(np.sum(reals(upstream[k]) * reals((up[k] - down[k]) / (2 * eps)))) for k in wanted)
        analytic = 0.0 if g is None else float(np.sum(reals(to_numpy(g)) * reals(direction)))
        size = sum(upstream[k].size for k in wanted)
        if not abs(analytic - numeric) <= atol * max(1.0, size**0.5) + rtol * abs(numeric):
            raise GradientError(
                "gradcheck: along a random direction of input {i} the derivative is wrong: "
                f"analytic {analytic:.8g}, numeric {numeric:.8g}.",
                hint="`fast_mode=False` shows where",
                i=Position(i),
            )


def _check_undefined(func, values, places, kind, flat, wanted, atol, rtol) -> None:
    """Check that a missing upstream gradient of one of several outputs counts as zero."""
    rng = np.random.default_rng(0)
    pull = puller(func, values, places, kind)
    upstream = [random_array(rng, y.shape, np.iscomplexobj(y)) if k in wanted else None for k, y in enumerate(flat)]
    for k in wanted:
        without, zero = list(upstream), list(upstream)
        without[k], zero[k] = None, 0 * upstream[k]
        try:
            first, second = pull(without), pull(zero)
        except Exception as error:
            raise GradientError(
                f"gradcheck: an undefined gradient of output {{k}} raises an error: {error}", k=Position(k)
            ) from error
        for i, a, b in zip(places, first, second):
            a, b = (np.zeros(tuple(values[i].shape)) if g is None else to_numpy(g) for g in (a, b))
            if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
                raise GradientError(
                    "gradcheck: an undefined gradient of output {k} must count as zero; for input {i} it does not.",
                    k=Position(k),
                    i=Position(i),
                )

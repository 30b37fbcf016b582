"""``gradcheck``: analytic derivatives beside numeric ones, on every backend.

A function's Jacobian is found twice: row by row with vector-Jacobian products, and column by column with
central differences. A complex number counts as two real ones throughout, so no assumption about
holomorphy is made: gradients are those of real losses, dL/dRe + i dL/dIm.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import backends, dtypes
from .autodiff.engine import grad as tape_grad
from .autodiff.modes import enable_grad, no_grad
from .autodiff.variable import Variable, wrap
from .errors import ArgumentError, GradientError
from .ops import conversion

__all__ = ["gradcheck", "gradgradcheck"]

_STEPS = {  # dtype of the parts: step, absolute and relative tolerance
    "float64": (1e-6, 1e-5, 1e-3),
    "float32": (5e-3, 1e-3, 1e-2),
    "float16": (6e-2, 5e-2, 5e-2),
    "bfloat16": (2e-1, 2e-1, 2e-1),
}
_LARGE = 2000
"""From how many evaluations on progress is shown."""


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
) -> bool:
    """Check the gradients of ``func`` against finite differences.

    Args:
        func: a function of tensors to a tensor or a tuple of them. An output that is a number, or an array beside
            variables, counts as having gradient 0.
        inputs: a tensor or a tuple: variables or torch tensors, of which those are checked that require a
            gradient; or arrays of NumPy, JAX or TensorFlow, of which all floating ones are. What is no
            tensor is passed on.
        eps: the step; by default by the inputs' dtype, as are ``atol`` and ``rtol``.
        atol, rtol: how far analytic and numeric may differ: ``atol + rtol * abs(numeric)``.
        raise_exception: raise, or return False.
        nondet_tol: how far two evaluations of the same may differ.
        check_undefined_grad: also check that of several outputs some may have no gradient.
        check_grad_dtypes: also check that gradients have their inputs' dtypes.
        fast_mode: one random direction instead of each element: quick, and blind to what cancels out.
        progress: show how far it is (with rich, if installed); by default on large inputs in a terminal.

    Returns:
        True, or False if wrong and ``raise_exception`` is false.

    Raises:
        GradientError: (a RuntimeError) a difference or NaN, with analytic beside numeric values; gradients that change
            from call to call; undefined gradients that are not taken as zero.
        ArgumentError: no input to check.

    Gradient:
        None; after ``torch.autograd.gradcheck``.
    """
    try:
        _check(
            func,
            _tuple(inputs),
            eps,
            atol,
            rtol,
            nondet_tol,
            check_undefined_grad,
            check_grad_dtypes,
            fast_mode,
            progress,
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
    """Check the gradients of the gradients of ``func``, with respect to its inputs and the upstream gradients.

    Args:
        grad_outputs: upstream gradients to check at; random ones by default.
        gen_non_contig_grad_outputs: make those random ones of NumPy arrays with gaps between the elements.

    The rest is as of :func:`gradcheck`.
    """
    values = _tuple(inputs)
    kind = _kind(values)
    places = _checked(values, kind)
    outputs = _tuple(_call(func, values))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        grad_outputs = tuple(
            _random_like(rng, y, kind, gen_non_contig_grad_outputs) for y in outputs if _is_differentiable(y)
        )
    upstream = _tuple(grad_outputs)
    count = len(values)

    def first(*everything):
        xs, gs = everything[:count], everything[count:]
        gradients = _pull(func, xs, places, kind, list(gs), create=True)
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


def _check(func, values, eps, atol, rtol, nondet_tol, undefined, grad_dtypes, fast, progress) -> None:
    kind = _kind(values)
    if kind == "numpy":
        values = tuple(wrap(v) if backends.of(v) is not None else v for v in values)
        for v in values:
            if isinstance(v, Variable) and _is_differentiable(v):
                v.requires_grad = True
        kind = "variable"
    places = _checked(values, kind)
    names = [dtypes.real_of(conversion.dtype(values[i])) for i in places]
    worst = min(names, key=lambda n: _STEPS[n][0] * -1)
    steps = _STEPS[worst]
    eps, atol, rtol = (d if v is None else v for v, d in zip((eps, atol, rtol), steps))
    outputs = _tuple(_call(func, values))
    flat = [_numpy(y) for y in outputs]
    again = [_numpy(y) for y in _tuple(_call(func, values))]
    for i, (a, b) in enumerate(zip(flat, again)):
        if not np.allclose(a, b, rtol=0, atol=nondet_tol, equal_nan=True):
            raise GradientError(
                f"gradcheck: output {i} differs from call to call by {np.max(np.abs(a - b)):.3g}: "
                f"the function is not deterministic.",
                hint="fix its random seed, or allow it with `nondet_tol`",
            )
    for j, i in enumerate(places):
        if _overlaps(values[i]):
            raise ArgumentError(f"gradcheck: input {i} shares memory between its elements.", argument="inputs")
        del j
    # A float that is no tensor is off the tape: gradient 0, which is wrong if it depends on the inputs.
    wanted = [k for k, y in enumerate(outputs) if _is_differentiable(y) or isinstance(y, (float, complex))]
    if not wanted:
        return
    if fast:
        _check_fast(func, values, places, kind, flat, wanted, eps, atol, rtol)
    else:
        _check_slow(func, values, places, kind, flat, wanted, eps, atol, rtol, nondet_tol, grad_dtypes, progress)
    if undefined and len(wanted) > 1:
        _check_undefined(func, values, places, kind, flat, wanted, atol, rtol)


def _check_slow(func, values, places, kind, flat, wanted, eps, atol, rtol, nondet_tol, grad_dtypes, progress) -> None:
    sizes = [_real_size(values[i]) for i in places]
    rows = sum(_real_count(flat[k]) for k in wanted)
    total = 2 * sum(sizes) + 2 * rows
    tick = _progress(total, progress)
    with tick:
        numeric = _numeric(func, values, places, flat, eps, tick)
        for k in wanted:
            analytic = _analytic(func, values, places, kind, flat, wanted, k, tick, grad_dtypes)
            repeated = _analytic(func, values, places, kind, flat, wanted, k, tick, False)
            for j, i in enumerate(places):
                if not np.allclose(analytic[j], repeated[j], rtol=0, atol=nondet_tol, equal_nan=True):
                    raise GradientError(
                        f"gradcheck: the gradient of output {k} for input {i} differs from pass to pass by "
                        f"{np.max(np.abs(analytic[j] - repeated[j])):.3g}: it is not deterministic.",
                        hint="allow it with `nondet_tol`",
                    )
                _compare(analytic[j], numeric[j][k], k, i, values[i], flat[k], atol, rtol)


def _compare(analytic, numeric, k: int, i: int, x, y, atol: float, rtol: float) -> None:
    wrong = ~(np.abs(analytic - numeric) <= atol + rtol * np.abs(numeric))
    if not wrong.any():
        return
    order = np.argsort(-np.nan_to_num(np.abs(analytic - numeric), nan=np.inf).ravel(), kind="stable")
    lines = [f"{'input element':>20} {'output element':>20} {'analytic':>16} {'numeric':>16}"]
    for flat_place in order[: min(12, int(wrong.sum()))]:
        row, column = np.unravel_index(flat_place, wrong.shape)
        lines.append(
            f"{_place(row, x):>20} {_place(column, y):>20} {analytic[row, column]:>16.8g} {numeric[row, column]:>16.8g}"
        )
    more = int(wrong.sum()) - len(lines) + 1
    raise GradientError(
        f"gradcheck: the gradient of output {k} for input {i} is wrong at {int(wrong.sum())} of {wrong.size} places "
        f"(tolerance {atol:g} + {rtol:g} * |numeric|):\n"
        + "\n".join(lines)
        + (f"\n... and {more} more" if more > 0 else ""),
        hint=_hint(analytic, numeric),
    )


def _hint(analytic, numeric) -> str | None:
    """What may be the reason for a wrong gradient."""
    if np.isnan(analytic).any() or np.isnan(numeric).any():
        return "NaN is no gradient: take inputs from where the function is defined and smooth"
    if not analytic.any():
        return (
            "the output does not depend on the input for the tape: was it made a number or an array on the way "
            "(`float()`, `.item()`, `numpy()`, R's `as.numeric()`), or its gradient stopped?"
        )
    return None


def _place(index: int, x) -> str:
    """A real element's position: of a complex tensor with its part."""
    part = ""
    if "complex" in conversion.dtype(x):
        index, which = divmod(int(index), 2)
        part = (" Re", " Im")[which]
    where = np.unravel_index(int(index), tuple(x.shape)) if tuple(x.shape) else ()
    return "[" + ", ".join(map(str, where)) + "]" + part


def _numeric(func, values, places, flat, eps, tick) -> list[list[np.ndarray]]:
    """Central differences: for each input and output a matrix of (real elements of the input, of the output)."""
    found = []
    for i in places:
        columns = [np.zeros((_real_size(values[i]), _real_count(y)), float) for y in flat]
        for row, direction in enumerate(_directions(values[i])):
            up = _moved(func, values, i, eps * direction)
            down = _moved(func, values, i, -eps * direction)
            for k, (a, b) in enumerate(zip(up, down)):
                columns[k][row] = _reals((np.asarray(a) - np.asarray(b)) / (2 * eps))
            tick.advance(2)
        found.append(columns)
    return found


def _moved(func, values, i: int, by) -> list[np.ndarray]:
    moved = list(values)
    moved[i] = _changed(values[i], _numpy(values[i]) + by)
    return [_numpy(y) for y in _tuple(_call(func, moved))]


def _directions(x) -> Iterable[np.ndarray]:
    shape, is_complex = tuple(x.shape), "complex" in conversion.dtype(x)
    for position in np.ndindex(*shape):
        for unit in (1.0, 1j) if is_complex else (1.0,):
            direction = np.zeros(shape, complex if is_complex else float)
            direction[position] = unit
            yield direction


def _analytic(func, values, places, kind, flat, wanted, k: int, tick, grad_dtypes: bool) -> list[np.ndarray]:
    """The gradient of each real element of output ``k``: matrices of (real elements of the input, of the output)."""
    found = [np.zeros((_real_size(values[i]), _real_count(flat[k])), float) for i in places]
    pull = _puller(func, values, places, kind)
    y = flat[k]
    for column, direction in enumerate(_directions(y)):
        upstream: list = [None] * len(flat)
        upstream[k] = direction
        for j, (i, g) in enumerate(zip(places, pull(upstream))):
            if g is not None:
                if grad_dtypes and conversion.dtype(g) != conversion.dtype(values[i]):
                    raise GradientError(
                        f"gradcheck: the gradient for input {i} has dtype {conversion.dtype(g)}; "
                        f"the input has {conversion.dtype(values[i])}."
                    )
                if tuple(g.shape) != tuple(values[i].shape):
                    raise GradientError(
                        f"gradcheck: the gradient for input {i} has shape {tuple(g.shape)}; "
                        f"the input has {tuple(values[i].shape)}."
                    )
                found[j][:, column] = _reals(_numpy(g))
        tick.advance(1)
    del wanted
    return found


def _check_fast(func, values, places, kind, flat, wanted, eps, atol, rtol) -> None:
    rng = np.random.default_rng(0)
    upstream: list = [None] * len(flat)
    for k in wanted:
        upstream[k] = _random(rng, flat[k].shape, np.iscomplexobj(flat[k]))
    gradients = _puller(func, values, places, kind)(upstream)
    for i, g in zip(places, gradients):
        direction = _random(rng, tuple(values[i].shape), "complex" in conversion.dtype(values[i]))
        direction /= max(1e-12, float(np.sqrt(np.sum(np.abs(direction) ** 2))))
        up, down = (_moved(func, values, i, s * eps * direction) for s in (1, -1))
        numeric = sum(float(np.sum(_reals(upstream[k]) * _reals((up[k] - down[k]) / (2 * eps)))) for k in wanted)
        analytic = 0.0 if g is None else float(np.sum(_reals(_numpy(g)) * _reals(direction)))
        size = sum(upstream[k].size for k in wanted)
        if not abs(analytic - numeric) <= atol * max(1.0, size**0.5) + rtol * abs(numeric):
            raise GradientError(
                f"gradcheck: along a random direction of input {i} the derivative is wrong: "
                f"analytic {analytic:.8g}, numeric {numeric:.8g}.",
                hint="`fast_mode=False` shows where",
            )


def _check_undefined(func, values, places, kind, flat, wanted, atol, rtol) -> None:
    """Of several outputs each may be without gradient, which must count as zero."""
    rng = np.random.default_rng(0)
    pull = _puller(func, values, places, kind)
    upstream = [_random(rng, y.shape, np.iscomplexobj(y)) if k in wanted else None for k, y in enumerate(flat)]
    for k in wanted:
        without, zero = list(upstream), list(upstream)
        without[k], zero[k] = None, 0 * upstream[k]
        try:
            first, second = pull(without), pull(zero)
        except Exception as error:
            raise GradientError(
                f"gradcheck: a gradient that is undefined (of output {k}) is not taken: {error}"
            ) from error
        for i, a, b in zip(places, first, second):
            a, b = (np.zeros(tuple(values[i].shape)) if g is None else _numpy(g) for g in (a, b))
            if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
                raise GradientError(
                    f"gradcheck: an undefined gradient of output {k} must count as zero; for input {i} it does not."
                )


# What differs between backends.


def _kind(values) -> str:
    """``"variable"``, ``"torch"``, ``"numpy"``, ``"jax"`` or ``"tensorflow"``."""
    if any(isinstance(v, Variable) for v in values):
        return "variable"
    owner = backends.common([type(v) for v in values], "gradcheck")
    if owner is None:
        raise ArgumentError("gradcheck: no input is a tensor.", argument="inputs")
    return owner.name


def _checked(values, kind: str) -> list[int]:
    tensors = [i for i, v in enumerate(values) if isinstance(v, Variable) or backends.of(v) is not None]
    if kind in ("variable", "torch"):
        places = [i for i in tensors if getattr(values[i], "requires_grad", False)]
    else:
        places = [i for i in tensors if _is_differentiable(values[i])]
    if not places:
        raise ArgumentError("gradcheck: no input requires a gradient.", argument="inputs")
    return places


def _is_differentiable(y) -> bool:
    return (isinstance(y, Variable) or backends.of(y) is not None) and dtypes.is_floating(conversion.dtype(y))


def _call(func, values):
    with no_grad():
        return func(*values)


def _puller(func, values, places, kind: str) -> Callable:
    """``pull(upstream)`` to the gradients for the inputs; None upstream is no gradient."""

    def pull(upstream):
        return _pull(func, values, places, kind, upstream, create=False)

    return pull


def _pull(func, values, places, kind: str, upstream: list, create: bool) -> list:
    if kind == "numpy":
        values = tuple(wrap(v) if backends.of(v) is not None else v for v in values)
        for i in places:
            values[i].requires_grad = True
    if kind in ("numpy", "variable", "torch"):
        with enable_grad():
            fresh = list(values)
            if not create:
                for i in places:
                    fresh[i] = _leaf(values[i])
            outputs = list(_tuple(func(*fresh)))
            if create:
                outputs = [y for y in outputs if _is_differentiable(y)]
            pairs = [(y, g) for y, g in zip(outputs, upstream) if g is not None and getattr(y, "requires_grad", False)]
            targets = [fresh[i] for i in places]
            if not pairs:
                return [_zeros(t) for t in targets] if create else [None] * len(places)
            gradients = tape_grad(
                [y for y, _ in pairs],
                targets,
                [g if create else _like(g, y) for y, g in pairs],
                create_graph=create,
                allow_unused=True,
                materialize_grads=create,
            )
            return list(gradients)
    if kind == "jax":
        return _pull_jax(func, values, places, upstream, create)
    return _pull_tensorflow(func, values, places, upstream, create)


def _pull_jax(func, values, places, upstream, create) -> list:
    import jax
    import jax.numpy as jnp

    def chosen(*xs):
        filled = list(values)
        for i, x in zip(places, xs):
            filled[i] = x
        outputs = _tuple(func(*filled))
        if create:
            return tuple(y for y in outputs if _is_differentiable(y))
        return tuple(y if backends.of(y) is not None else jnp.asarray(y) for y in outputs)

    ys, pull = jax.vjp(chosen, *(values[i] for i in places))
    cotangents = []
    for y, g in zip(ys, upstream):
        if not jnp.issubdtype(y.dtype, jnp.inexact):
            cotangents.append(np.zeros(y.shape, jax.dtypes.float0))
        else:
            cotangents.append(jnp.conj(jnp.zeros_like(y) if g is None else jnp.asarray(g, y.dtype)))
    return [jnp.conj(g) for g in pull(tuple(cotangents))]


def _pull_tensorflow(func, values, places, upstream, create) -> list:
    import tensorflow as tf

    with tf.GradientTape() as tape:
        xs = [values[i] for i in places]
        for x in xs:
            tape.watch(x)
        outputs = [tf.convert_to_tensor(y) for y in _tuple(func(*values))]
        if create:
            outputs = [y for y in outputs if _is_differentiable(y)]
    pairs = [(y, tf.cast(g, y.dtype)) for y, g in zip(outputs, upstream) if g is not None]
    gradients = tape.gradient([y for y, _ in pairs], xs, [g for _, g in pairs])
    gradients = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
    return [tf.zeros_like(x) if g is None and create else g for x, g in zip(xs, gradients)]


def _leaf(x):
    if isinstance(x, Variable):
        leaf = wrap(x.data)
        leaf.requires_grad = True
        return leaf
    return x.detach().requires_grad_()


def _zeros(x):
    from .ops.creation import zeros_like

    return zeros_like(x)


def _like(array: np.ndarray, x):
    """A NumPy array as a tensor of ``x``'s library and dtype."""
    data = x.data if isinstance(x, Variable) else x
    owner: Any = backends.of(data)
    return owner.convert(array, conversion.dtype(data), like=data)


def _changed(x, array: np.ndarray):
    """``x`` with other values."""
    changed = _like(array.reshape(tuple(x.shape)), x)
    if isinstance(x, Variable):
        changed = wrap(changed)
    if getattr(x, "requires_grad", False):
        changed.requires_grad = True
    return changed


def _numpy(x) -> np.ndarray:
    data = x.data if isinstance(x, Variable) else x
    owner = backends.of(data)
    if owner is None:
        return np.asarray(data)
    if owner.name == "torch":
        data = data.detach().resolve_conj()
    array = owner.to_numpy(data)
    return array.astype(complex if array.dtype.kind == "c" else float)


def _random(rng, shape, is_complex: bool) -> np.ndarray:
    g = np.asarray(rng.standard_normal(shape))
    return g + 1j * rng.standard_normal(shape) if is_complex else g


def _random_like(rng, y, kind: str, gaps: bool):
    g = _random(rng, tuple(y.shape), "complex" in conversion.dtype(y))
    if kind in ("numpy", "variable") and gaps and g.ndim:
        wide = np.zeros((*g.shape[:-1], 2 * g.shape[-1]), g.dtype)
        wide[..., ::2] = g
        g = wide[..., ::2]
    upstream = _like(g, y)
    if kind in ("variable", "torch"):
        upstream = wrap(upstream) if kind == "variable" else upstream
        upstream.requires_grad = True
    return upstream


def _reals(array) -> np.ndarray:
    """The elements in a row, a complex one as its two parts."""
    array = np.ascontiguousarray(array).reshape(-1)
    return array.view(float) if array.dtype.kind == "c" else array.astype(float)


def _real_count(array: np.ndarray) -> int:
    return array.size * (2 if np.iscomplexobj(array) else 1)


def _real_size(x) -> int:
    return conversion.size(x) * (2 if "complex" in conversion.dtype(x) else 1)


def _overlaps(x) -> bool:
    data = x.data if isinstance(x, Variable) else x
    if isinstance(data, np.ndarray) or type(data).__module__ == "torch":
        strides = data.strides if isinstance(data, np.ndarray) else data.stride()
        return any(s == 0 and n > 1 for s, n in zip(strides, data.shape))
    return False


def _tuple(value) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


class _Ticks:
    """Progress that nobody sees."""

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        pass

    def advance(self, count: int) -> None:
        pass


class _Bar(_Ticks):
    """Progress on standard error, by rich if it is installed, else in lines of percents."""

    def __init__(self, total: int):
        self.total, self.done, self.shown = total, 0, -1
        self.bar: Any = None

    def __enter__(self):
        host = importlib.import_module("gradops.functional._progress").host
        if host is not None:
            self.bar = host()
            self.task = self.bar.add_task("gradcheck", total=self.total)
            return self
        try:
            rich = importlib.import_module("rich.progress")
            console = importlib.import_module("rich.console").Console(file=sys.stderr)
            self.bar = rich.Progress(console=console, transient=True)
            self.task = self.bar.add_task("gradcheck", total=self.total)
            self.bar.start()
        except ImportError:
            self.bar = None
        return self

    def __exit__(self, *error) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, count: int) -> None:
        self.done += count
        if self.bar is not None:
            self.bar.advance(self.task, count)
            return
        tenth = 10 * self.done // max(1, self.total)
        if tenth != self.shown:
            self.shown = tenth
            print(f"gradcheck: {10 * tenth}%", file=sys.stderr)


def _progress(total: int, wanted: bool | None) -> _Ticks:
    if wanted is None:
        host = importlib.import_module("gradops.functional._progress").host
        wanted = total > _LARGE and (host is not None or sys.stderr.isatty())
    return _Bar(total) if wanted else _Ticks()

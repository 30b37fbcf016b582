"""Jacobians for gradcheck, by finite differences and by backward passes, and their comparison, on any library."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ... import _tree, backends, dtypes
from ...errors import ArgumentError, Element, GradientError, Position
from ...ops import conversion, elementwise, mapping, reductions
from ...ops.creation import zeros_like
from .. import forward_ad
from ..gradients import grad
from ..modes import ensured_recording, no_grad
from ..variable import Variable, data_of, wrap

# Helpers of gradcheck for tensors of any library: read, change and count their real elements.


class Kind:
    """How inputs are differentiated: by their library's ``derivatives``, or by the tape.

    Attributes:
        says: whether the inputs have ``requires_grad``, which selects those to differentiate.
        wrapped: whether the inputs are arrays that must be wrapped in variables for the tape.
    """

    def __init__(self, values):
        self.variables = any(isinstance(v, Variable) for v in values)
        owner: Any = None if self.variables else backends.common([type(v) for v in values], "gradcheck")
        if owner is None and not self.variables:
            raise ArgumentError("gradcheck: no input is a tensor.", argument="inputs")
        derivatives: Any = getattr(owner, "derivatives", None)
        self.derivatives = derivatives
        self.says = self.variables or derivatives.own_tape
        self.wrapped = not self.says and not derivatives.native
        self.on_tape = self.says or self.wrapped


def checked_places(values, kind: Kind) -> list[int]:
    tensors = [i for i, v in enumerate(values) if isinstance(v, Variable) or backends.backend_of(v) is not None]
    if kind.says:
        places = [i for i in tensors if getattr(values[i], "requires_grad", False)]
    else:
        places = [i for i in tensors if is_differentiable(values[i])]
    if not places:
        raise ArgumentError(
            "`gradcheck`: no input requires a gradient.",
            argument="inputs",
            hint="give floating or complex tensors, or variables that require a gradient",
        )
    return places


def is_differentiable(y) -> bool:
    return (isinstance(y, Variable) or backends.backend_of(y) is not None) and dtypes.is_floating(conversion.dtype(y))


def evaluate(func, values):
    with no_grad():
        return func(*values)


def leaf(x):
    if isinstance(x, Variable):
        leaf = wrap(x.data)
        leaf.requires_grad = True
        return leaf
    return x.detach().requires_grad_()


def like(array: np.ndarray, x):
    """Return a NumPy array as a tensor of ``x``'s library and dtype."""
    data = data_of(x)
    owner: Any = backends.backend_of(data)
    return owner.convert(array, conversion.dtype(data), like=data)


def changed(x, array: np.ndarray):
    """Return ``x`` with the values of ``array``."""
    changed = like(array.reshape(tuple(x.shape)), x)
    if isinstance(x, Variable):
        changed = wrap(changed)
    if getattr(x, "requires_grad", False):
        changed.requires_grad = True
    return changed


def to_numpy(x) -> np.ndarray:
    data = data_of(x)
    owner = backends.backend_of(data)
    if owner is None:
        return np.asarray(data)
    array = owner.to_numpy(data)
    return array.astype(complex if array.dtype.kind == "c" else float)


def random_array(rng, shape, is_complex: bool) -> np.ndarray:
    g = np.asarray(rng.standard_normal(shape))
    return g + 1j * rng.standard_normal(shape) if is_complex else g


def random_like(rng, y, kind: Kind, gaps: bool):
    g = random_array(rng, tuple(y.shape), "complex" in conversion.dtype(y))
    if (kind.variables or kind.wrapped) and gaps and g.ndim:
        wide = np.zeros((*g.shape[:-1], 2 * g.shape[-1]), g.dtype)
        wide[..., ::2] = g
        g = wide[..., ::2]
    upstream = like(g, y)
    if kind.says:
        upstream = wrap(upstream) if kind.variables else upstream
        upstream.requires_grad = True
    return upstream


def reals(array) -> np.ndarray:
    """Return the elements as a vector of real numbers; a complex element gives two."""
    array = np.ascontiguousarray(array).reshape(-1)
    return array.view(float) if array.dtype.kind == "c" else array.astype(float)


def real_count(array: np.ndarray) -> int:
    return array.size * (2 if np.iscomplexobj(array) else 1)


def real_size(x) -> int:
    return conversion.size(x) * (2 if "complex" in conversion.dtype(x) else 1)


def overlaps(x) -> bool:
    data = data_of(x)
    strides = data.stride() if hasattr(data, "stride") else getattr(data, "strides", ())
    return any(s == 0 and n > 1 for s, n in zip(strides, data.shape))


def as_tuple(value) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


# Jacobians by finite differences and by backward passes, and their comparison.


def numeric_jacobians(func, values, places, flat, eps, advance) -> list[list[np.ndarray]]:
    """Return numeric Jacobians: for each input and output a matrix of (real elements of the input, of the output)."""
    found = []
    for i in places:
        columns = [np.zeros((real_size(values[i]), real_count(y)), float) for y in flat]
        for row, direction in enumerate(directions(values[i])):
            up = moved(func, values, i, eps * direction)
            down = moved(func, values, i, -eps * direction)
            for k, (a, b) in enumerate(zip(up, down)):
                columns[k][row] = reals((np.asarray(a) - np.asarray(b)) / (2 * eps))
            advance(2)
        found.append(columns)
    return found


def moved(func, values, i: int, by) -> list[np.ndarray]:
    moved = list(values)
    moved[i] = changed(values[i], to_numpy(values[i]) + by)
    return [to_numpy(y) for y in as_tuple(evaluate(func, moved))]


def directions(x) -> Iterable[np.ndarray]:
    shape, is_complex = tuple(x.shape), "complex" in conversion.dtype(x)
    for position in np.ndindex(*shape):
        for unit in (1.0, 1j) if is_complex else (1.0,):
            direction = np.zeros(shape, complex if is_complex else float)
            direction[position] = unit
            yield direction


def analytic_jacobian(func, values, places, kind, flat, k: int, advance, grad_dtypes: bool) -> list[np.ndarray]:
    """Return the gradients of output ``k``: for each input a matrix of (real elements of the input, of the output)."""
    found = [np.zeros((real_size(values[i]), real_count(flat[k])), float) for i in places]
    pull = puller(func, values, places, kind)
    y = flat[k]
    for column, direction in enumerate(directions(y)):
        upstream: list = [None] * len(flat)
        upstream[k] = direction
        for j, (i, g) in enumerate(zip(places, pull(upstream))):
            if g is not None:
                if grad_dtypes and conversion.dtype(g) != conversion.dtype(values[i]):
                    raise GradientError(
                        f"gradcheck: the gradient for input {{i}} has dtype {conversion.dtype(g)}; "
                        f"the input has {conversion.dtype(values[i])}.",
                        i=Position(i),
                    )
                if tuple(g.shape) != tuple(values[i].shape):
                    raise GradientError(
                        f"gradcheck: the gradient for input {{i}} has shape {tuple(g.shape)}; "
                        f"the input has {tuple(values[i].shape)}.",
                        i=Position(i),
                    )
                found[j][:, column] = reals(to_numpy(g))
        advance(1)
    return found


def puller(func, values, places, kind: Kind) -> Callable:
    """Return ``pull(upstream)``, which gives the inputs' gradients; None in ``upstream`` means no gradient."""

    def pull(upstream):
        return pull_back(func, values, places, kind, upstream, create=False)

    return pull


def pull_back(func, values, places, kind: Kind, upstream: list, create: bool) -> list:
    if kind.wrapped:
        values = tuple(wrap(v) if backends.backend_of(v) is not None else v for v in values)
        for i in places:
            values[i].requires_grad = True
    if kind.on_tape:
        with ensured_recording():
            fresh = list(values)
            if not create:
                for i in places:
                    fresh[i] = leaf(values[i])
            outputs = list(as_tuple(func(*fresh)))
            if create:
                outputs = [y for y in outputs if is_differentiable(y)]
            pairs = [(y, g) for y, g in zip(outputs, upstream) if g is not None and getattr(y, "requires_grad", False)]
            targets = [fresh[i] for i in places]
            if not pairs:
                return [zeros_like(t) for t in targets] if create else [None] * len(places)
            gradients = grad(
                [y for y, _ in pairs],
                targets,
                [g if create else like(g, y) for y, g in pairs],
                create_graph=create,
                allow_unused=True,
                materialize_grads=create,
            )
            return list(gradients)
    return _pull_natively(kind.derivatives, func, values, places, upstream, create)


def push_forward(func, inputs, tangents) -> list:
    """Return the tangents of the outputs, by PyTorch's own forward mode or the tape's."""
    with ensured_recording(), forward_ad.dual_level():
        outputs = as_tuple(func(*map(forward_ad.make_dual, inputs, tangents)))
        found = [forward_ad.unpack_dual(y).tangent for y in outputs]
    return [np.zeros(to_numpy(y).shape) if t is None else t for t, y in zip(found, outputs)]


def pull_batch(func, values, places, kind: Kind, k: int, rows: np.ndarray) -> list:
    """Return the inputs' gradients for several upstream gradients of output ``k`` at once."""
    if kind.on_tape:
        with ensured_recording():
            fresh = _tree.filled(values, places, [leaf(values[i]) for i in places])
            y = as_tuple(func(*fresh))[k]
            if not getattr(y, "requires_grad", False):
                return [None] * len(places)
            targets = [fresh[i] for i in places]
            return list(grad(y, targets, like(rows, y), allow_unused=True, is_grads_batched=True))
    owner: Any = backends.backend_of(values[places[0]])
    upstream = like(rows, as_tuple(evaluate(func, values))[k])
    count = len(as_tuple(evaluate(func, values)))

    def one(row):
        return tuple(
            _pull_natively(kind.derivatives, func, values, places, [*[None] * k, row, *[None] * (count - k - 1)], False)
        )

    return list(mapping.map_rows("gradcheck", one, [upstream], len(rows), owner))


def _pull_natively(derivatives, func, values, places, upstream, create) -> list:
    """Return gradients by the library's own derivatives, of the real product of outputs and cotangents."""

    def product(*xs):
        outputs = [y for y in as_tuple(func(*_tree.filled(values, places, xs))) if is_differentiable(y) or not create]
        parts = [_real_product(g, y) for y, g in zip(outputs, upstream) if g is not None and is_differentiable(y)]
        return functools.reduce(elementwise.add, parts) if parts else 0.0

    return derivatives.value_and_grad(product, [values[i] for i in places])[1]


def _real_product(g, y):
    g = backends.backend_of(y).convert(g, conversion.dtype(y)) if isinstance(g, np.ndarray) else g
    return reductions.sum(elementwise.real(elementwise.multiply(elementwise.conj(g), y)))


def compare(analytic, numeric, k: int, i: int, x, y, atol: float, rtol: float, what: str = "gradient") -> None:
    wrong = ~(np.abs(analytic - numeric) <= atol + rtol * np.abs(numeric))
    if not wrong.any():
        return
    order = np.argsort(-np.nan_to_num(np.abs(analytic - numeric), nan=np.inf).ravel(), kind="stable")
    places: dict = {}
    lines = [f"{'input element':>20} {'output element':>20} {'analytic':>16} {'numeric':>16}"]
    for flat_place in order[: min(12, int(wrong.sum()))]:
        row, column = np.unravel_index(flat_place, wrong.shape)
        at = len(lines)
        places |= {f"of_x_{at}": _place(row, x), f"of_y_{at}": _place(column, y)}
        lines.append(
            f"{{of_x_{at}:>20}} {{of_y_{at}:>20}} {analytic[row, column]:>16.8g} {numeric[row, column]:>16.8g}"
        )
    count = int(wrong.sum())
    more = count - len(lines) + 1
    raise GradientError(
        f"gradcheck: the {what} of output {{k}} for input {{i}} is wrong at {count} of {wrong.size} places "
        f"(tolerance {atol:g} + {rtol:g} * |numeric|):\n"
        + "\n".join(lines)
        + (f"\n... and {more} more" if more > 0 else ""),
        hint=_hint(analytic, numeric),
        k=Position(k),
        i=Position(i),
        **places,
    )


def _hint(analytic, numeric) -> str | None:
    """Return a possible reason for a wrong gradient, or None."""
    if np.isnan(analytic).any() or np.isnan(numeric).any():
        return "NaN is not a gradient: choose inputs where the function is defined and smooth"
    if not analytic.any():
        return (
            "on the tape the output does not depend on the input: was a value converted to a number or an array "
            "(`float()`, `.item()`, `numpy()`, R's `as.numeric()`), or its gradient stopped?"
        )
    return None


def _place(index: int, x) -> Element:
    """Return the position of a real element, for a complex tensor with its part."""
    part = ""
    if "complex" in conversion.dtype(x):
        index, which = divmod(int(index), 2)
        part = (" Re", " Im")[which]
    where = np.unravel_index(int(index), tuple(x.shape)) if tuple(x.shape) else ()
    return Element(tuple(map(int, where)), part)

"""Text as a backend of ``gradops.ops``: its kernels, and the handling of feedback in backward passes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import backends
from ..autodiff import state
from ..autodiff.variable import Variable, wrap
from ..errors import ArgumentTypeError, AxisError, BackendError, Code, GradientError, Position, ShapeError, TypeOf
from . import methods, values  # noqa: F401
from .values import Feedback, Text, Texts, Verdict, add, aligned, both, convert, feedback


def _prepare(floatx: str) -> None:
    raise BackendError('"text" cannot be the default backend.', argument="name")


def _sum(x, axis=None, keepdims=False):
    if isinstance(x, Feedback):
        return x
    rank = len(x.shape)
    for one in () if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,):
        if not -rank <= one < rank:
            raise _axis_error(x, one)
    if isinstance(x, Texts):
        total = Text("".join(x), x.roles)
        return Texts([total]) if keepdims else total
    return x


def _axis_error(x, axis: int) -> AxisError:
    return AxisError(f"`axis` {{position}} is out of range: {_sizes(x)}.", argument="axis", position=Position(axis))


def _concatenate(xs, axis=0):
    if any(isinstance(x, Feedback) for x in xs):
        return Feedback(said for x in xs for said in x)
    if any(isinstance(x, Text) for x in xs):
        raise ShapeError(
            "`concatenate`: one text has no dimension to join along.",
            argument="xs",
            hint="{several} makes several texts of single ones, {one} one text",
            several=Code("`ops.stack`", "`c()`"),
            one=Code("`text.join`", "`text_join()`"),
        )
    return Texts([t for x in xs for t in x])


def _split(x, indices_or_sections, axis=0):
    if not isinstance(x, Feedback):
        raise BackendError("`split`: use {split} for text.", split=Code("`gradops.text.split`", "`text_split()`"))
    count = indices_or_sections
    edges = list(range(1, count)) if isinstance(count, int) else list(count)
    starts, ends = [0, *edges], [*edges, None]
    return [x.at(_position_range(start, end)) for start, end in zip(starts, ends)]


def _position_range(start: int, end: int | None) -> Callable:
    return lambda places: places and tuple(p - start for p in places if p >= start and (end is None or p < end))


def _get_item(x, key):
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if isinstance(x, Feedback):
        return x.whole()
    if not isinstance(key, (int, slice)):
        places = np.asarray(key)
        if places.ndim and isinstance(x, Texts) and places.dtype.kind in "iub":
            return Texts([x[i] for i in np.arange(len(x))[places].tolist()])
        if places.ndim or places.dtype.kind not in "iu":
            several = "several texts have positions: a whole number, a slice or a list of numbers"
            one = "one text has positions of characters: a whole number or a slice"
            raise AxisError(f"{several if isinstance(x, Texts) else one}; got {key!r}.", argument="key")
        key = places.item()
    if isinstance(key, int) and not -len(x) <= key < len(x):
        raise AxisError(f"position {{position}} is out of range: {_sizes(x)}.", argument="key", position=Position(key))
    return x[key] if isinstance(x, Texts) else Text(str(x)[key], x.roles)


def _add_at(x, key, updates):
    """Return feedback ``x`` plus the remarks of ``updates``, moved to the positions that ``key`` selects."""
    said = feedback(updates)
    if isinstance(x, Feedback) and x.size is not None:
        if isinstance(key, tuple) and len(key) == 1:
            (key,) = key
        read = np.arange(x.size)[key if isinstance(key, slice) else np.asarray(key)]
        if read.ndim == 0:
            said = said.at(lambda places: (int(read),))
        else:
            order = read.tolist()
            said = said.at(lambda places: tuple(order if places is None else (order[p] for p in places)))
        return both(x, said)
    return both(feedback(x), said.whole())


def _take(x, indices, axis=None):
    if axis not in (None, 0, -1) or not x.shape:
        raise _axis_error(x, axis)
    return _get_item(x, indices)


def _reshape(x, newshape):
    shape = tuple(newshape) if isinstance(newshape, (tuple, list)) else (newshape,)
    if isinstance(x, Feedback):
        return x if shape else x.whole()
    count = len(x) if isinstance(x, Texts) else 1
    if shape == () and count == 1:
        return x[0] if isinstance(x, Texts) else x
    if shape in ((-1,), (count,)):
        return x if isinstance(x, Texts) else Texts([x])
    raise _shape_error("reshape", x, f"the shape {shape}", "newshape")


def _broadcast_to(x, shape):
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if isinstance(x, Feedback):
        return x.whole()
    if shape == tuple(x.shape):
        return x
    if len(shape) == 1 and (isinstance(x, Text) or len(x) == 1):
        return Texts([x if isinstance(x, Text) else x[0]] * shape[0])
    raise _shape_error("broadcast_to", x, f"the shape {shape}", "shape")


def _shape_error(name: str, x, wanted: str, argument: str | None = None) -> ShapeError:
    return ShapeError(
        f"`{name}`: {_sizes(x)} and cannot have {wanted}.",
        argument=argument,
        hint="texts are one or several, without further dimensions; {pick} picks, repeats and reorders them",
        pick=Code("`x[[0, 0, 1]]`", "`x[c(1, 1, 2)]`"),
    )


def _expand_dims(x, axis):
    if isinstance(x, Feedback):
        return x
    if isinstance(x, Text) and axis in (0, -1, (0,), (-1,)):
        return Texts([x])
    raise _shape_error("expand_dims", x, "one more dimension")


def _squeeze(x, axis=None):
    if isinstance(x, (Feedback, Text)) and axis is None:
        return x
    if isinstance(x, Texts) and len(x) == 1 and axis in (None, 0, -1, (0,), (-1,)):
        return x[0]
    if isinstance(x, Texts) and axis is None:
        return x
    raise ShapeError(
        f"`squeeze`: {_sizes(x)} has no dimension {{axis}} of size 1.", argument="axis", axis=Position(axis)
    )


def _transpose(x, axes=None):
    if axes is None or isinstance(x, Feedback) or sorted(axes) == list(range(len(x.shape))):
        return x
    raise AxisError(f"`axes` {tuple(axes)} do not fit: {_sizes(x)}.", argument="axes")


def _stack(xs, axis=0):
    if any(isinstance(x, Feedback) for x in xs):
        return Feedback(said.at((i,)) for i, x in enumerate(xs) for said in x)
    if any(isinstance(x, Texts) for x in xs):
        raise ShapeError("`stack`: single texts can be stacked; several are joined by `concatenate`.", argument="xs")
    return Texts(xs)


def _sizes(x) -> str:
    return "this is one text" if isinstance(x, Text) else f"these are {len(x)} texts in one dimension"


def _compared(name: str, compare: Callable) -> Callable:
    def kernel(x1, x2):
        for x in (x1, x2):
            if not isinstance(x, (Text, Texts)):
                raise ArgumentTypeError(
                    f"`{name}`: text compares with text only; got {{x}}.",
                    hint="compare `x.item()`, or make a text of the number",
                    x=TypeOf(x),
                )
        if isinstance(x1, Texts) or isinstance(x2, Texts):
            return np.array([compare(str(a), str(b)) for a, b in aligned(name, x1, x2)])
        return np.bool_(compare(str(x1), str(x2)))

    return kernel


def _zeros(shape=(), *_, **__):
    """Return empty feedback on as many texts as ``shape`` says."""
    nothing = Feedback()
    nothing.size = shape[0] if len(shape) else None
    return nothing


_module: Any = SimpleNamespace(
    verdict=lambda x: Verdict(str(x), x.roles) if isinstance(x, Text) else x,
    is_tensor_type=lambda kind: issubclass(kind, (Text, Texts)),
    convert=convert,
    dtype_name=lambda x: "str",
    to_numpy=lambda x: np.array(str(x) if isinstance(x, Text) else list(map(str, x))),
    prepare=_prepare,
    add=add,
    sum=_sum,
    concatenate=_concatenate,
    stack=_stack,
    split=_split,
    take=_take,
    get_item=_get_item,
    add_at=_add_at,
    zeros=_zeros,
    zeros_like=lambda x, *_, **__: _zeros(x.shape),
    equal=_compared("equal", operator.eq),
    not_equal=_compared("not_equal", operator.ne),
    reshape=_reshape,
    broadcast_to=_broadcast_to,
    expand_dims=_expand_dims,
    squeeze=_squeeze,
    transpose=_transpose,
    copy=lambda x: x,
    array=lambda x, *_: x,
)
# `methods` is imported first: once text is registered, another thread may make a text and call its methods.
backends.register("text", _module, root=values.__name__, partial=True)


# Feedback in the engine: the start of a pass, and accumulation in leaves ----------------------------------------------


def first_feedback(root: Variable, value) -> Feedback:
    """Return the feedback that a backward pass starts from.

    Raises:
        GradientError: no feedback was given, and ``root`` is not the verdict of an evaluator.
    """
    if value is None and isinstance(root.data, Verdict):
        value = str(root.data)
    if value is None:
        raise GradientError(
            "a text has no gradient to start from.",
            argument="gradient",
            hint="say what to feed back: {call}",
            call=Code('`text.backward("shorter, please")`', '`backward(text, "shorter, please")`'),
        )
    return feedback(value, root.role)


def merge(leaf: Variable, value) -> Variable | None:
    """Return ``leaf.grad`` with the feedback of another pass added.

    Remarks that an earlier pass made in the same words are added again. Without remarks the gradient is unchanged.
    """
    said = feedback(value, leaf.role)
    if not leaf.shape:
        said = said.whole()
    if not len(said):
        return leaf._grad
    if leaf._grad is not None:
        said = Feedback((*leaf._grad.data, *said))
    grad = wrap(said)
    grad._role = f"feedback on {leaf.role}" if leaf.role else "feedback"
    return grad


def fit(g, data):
    """Return feedback ``g`` for ``data``; on a single text the remarks lose their positions."""
    return g if data.shape else feedback(g).whole()


state.special[str] = state.Special(seed=first_feedback, convert=feedback, accumulate=merge, fit=fit)

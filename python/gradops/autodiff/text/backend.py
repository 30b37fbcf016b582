"""Text as a backend of ``gradops.ops``: kernels under the ops' own names."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ... import backends
from ...errors import BackendError
from . import values
from .values import Feedback, Text, Texts, add, convert, feedback


def _prepare(floatx: str) -> None:
    raise BackendError('"text" cannot be the default backend.', argument="name")


def _sum(x, axis=None, keepdims=False):
    return Text("".join(x), x.roles) if isinstance(x, Texts) else x


def _concatenate(xs, axis=0):
    if any(isinstance(x, Feedback) for x in xs):
        return sum(map(feedback, xs), Feedback())
    return Texts([t for x in xs for t in (x if isinstance(x, Texts) else (x,))])


def _split(x, indices_or_sections, axis=0):
    if isinstance(x, Feedback):
        several = indices_or_sections
        return [x] * (several if isinstance(several, int) else len(several) + 1)
    raise BackendError("`split`: use `gradops.autodiff.text.split` for text.")


def _get_item(x, key):
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if not isinstance(key, (int, slice)):
        places = np.asarray(key)
        if places.ndim and isinstance(x, Texts):
            return type(x)([x[i] for i in np.arange(len(x))[places].tolist()])
        key = places.item()
    return x[key] if isinstance(x, Texts) else Text(str(x)[key], x.roles)


def _compared(compare: Callable) -> Callable:
    def kernel(x1, x2):
        if isinstance(x1, Texts) or isinstance(x2, Texts):
            count = len(x1 if isinstance(x1, Texts) else x2)
            pairs = zip(*(x if isinstance(x, Texts) else [x] * count for x in (x1, x2)))
            return np.array([compare(str(a), str(b)) for a, b in pairs])
        return np.bool_(compare(str(x1), str(x2)))

    return kernel


def _same(x, *_, **__):
    return x


def _nothing(*_, **__):
    return Feedback()


_module: Any = SimpleNamespace(
    is_tensor_type=lambda kind: issubclass(kind, (Text, Texts)),
    convert=convert,
    dtype_name=lambda x: "str",
    to_numpy=lambda x: np.array(str(x) if isinstance(x, Text) else list(map(str, x))),
    prepare=_prepare,
    add=add,
    sum=_sum,
    concatenate=_concatenate,
    stack=lambda xs, axis=0: Texts(xs),
    split=_split,
    get_item=_get_item,
    add_at=lambda x, key, updates: feedback(x) + feedback(updates),
    zeros=_nothing,
    zeros_like=_nothing,
    equal=_compared(lambda a, b: a == b),
    not_equal=_compared(lambda a, b: a != b),
    less=_compared(lambda a, b: a < b),
    greater=_compared(lambda a, b: a > b),
    **dict.fromkeys(("copy", "reshape", "broadcast_to", "expand_dims", "squeeze", "transpose", "array"), _same),
)
backends.register("text", _module, root=values.__name__)

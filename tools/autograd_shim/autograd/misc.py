"""autograd's ``flatten`` and ``const_graph``.

``const_graph`` is gradops' ``jit``.
"""

from __future__ import annotations

import functools

import gradops
import gradops.numpy as np
from gradops import _tree


def const_graph(fun, *args, **kwargs):
    return gradops.jit(functools.partial(fun, *args, **kwargs))


def flatten(value):
    leaves, form = _tree.flatten(value)
    shapes = [np.shape(x) for x in leaves]
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)]).tolist()

    def unflatten(vector):
        parts = [np.reshape(vector[i:j], shape) for i, j, shape in zip(ends, ends[1:], shapes)]
        return _tree.unflatten(form, parts)

    return np.concatenate([np.reshape(x, (-1,)) for x in leaves]), unflatten

"""autograd's ``convolve`` along some axes, by ``gradops.scipy.signal.convolve``.

The result has the dimensions of ``A`` and then of ``B`` that are neither convolved nor summed, then the convolved ones.
"""

from __future__ import annotations

import gradops.numpy as np
from gradops.scipy import signal


def convolve(A, B, axes=None, dot_axes=((), ()), mode="full"):
    if axes is None:
        return signal.convolve(A, B, mode)
    own = [[i for i in range(x.ndim) if i not in (*a, *d)] for x, a, d in zip((A, B), axes, dot_axes)]
    ordered = [np.transpose(x, (*o, *d, *a)) for x, o, d, a in zip((A, B), own, dot_axes, axes)]
    (a, b), n = [x.reshape(-1, *x.shape[len(o) :]) for x, o in zip(ordered, own)], len(dot_axes[0])
    summed = list(np.ndindex(*a.shape[1 : n + 1]))

    def one(x, y):
        return sum(signal.convolve(x[at], y[at], mode) if axes[0] else x[at] * y[at] for at in summed)

    found = np.stack([np.stack([one(x, y) for y in b]) for x in a])
    kept = [x.shape[i] for x, o in zip((A, B), own) for i in o]
    return found.reshape(*kept, *found.shape[2:])

"""NumPy kernels: windows: pooling, and blocks as columns."""

import itertools

import numpy as np

from .convolution import padded, windows


def _last(x, channels_first):
    return np.moveaxis(x, 1, -1) if channels_first else x


def _first(x, channels_first):
    return np.ascontiguousarray(np.moveaxis(x, -1, 1)) if channels_first else x


def _tap(x, axis, tap, stride, count):
    """The elements along ``axis`` under a tap of the window."""
    return x[(slice(None),) * axis + (slice(tap, tap + (count - 1) * stride + 1, stride),)]


def _reduced(ufunc, x, window, strides):
    for axis, (k, s) in enumerate(zip(window, strides), 1):
        count = (x.shape[axis] - k) // s + 1
        if k == 1:
            x = _tap(x, axis, 0, s, count)
            continue
        y = ufunc(_tap(x, axis, 0, s, count), _tap(x, axis, 1, s, count))
        for tap in range(2, k):
            ufunc(y, _tap(x, axis, tap, s, count), out=y)
        x = y
    return x


def _around(x, padding, value):
    return padded(x, padding, value) if any(map(any, padding)) else x


def window_max(x, window, strides, padding, channels_first):
    x = _around(_last(x, channels_first), padding, -np.inf)
    return _first(_reduced(np.maximum, x, window, strides), channels_first)


def window_positions(x, y, window, strides, padding, channels_first):
    steps = np.cumprod((1, *x.shape[:0:-1]))[::-1]
    steps = (steps[0], *steps[2:], steps[1]) if channels_first else tuple(steps)
    x, y = _last(x, channels_first), _last(y, channels_first)
    values, places = _around(x, padding, np.nan), y.shape[1:-1]
    taps = list(itertools.product(*map(range, window)))
    # A tap's rank is the higher the earlier it comes; 0 is none.
    ranks = np.arange(len(taps), -1, -1).astype(np.min_scalar_type(len(taps)))
    found = np.zeros(y.shape, ranks.dtype)
    for rank, tap in zip(ranks, taps):
        key = (slice(None), *(slice(t, t + (n - 1) * s + 1, s) for t, s, n in zip(tap, strides, places)))
        np.maximum(found, (values[key] == y) * rank, out=found)
    if not found.all():
        inside = [np.maximum(b - np.arange(n) * s, 0) for n, s, (b, _) in zip(places, strides, padding)]
        inside = ranks[np.ravel_multi_index(np.meshgrid(*inside, indexing="ij"), window)]
        found = np.where(found == 0, inside[..., None], found)
    chosen = np.array([0, *(np.dot(tap, steps[1:-1]) for tap in reversed(taps))], np.int64)[found]
    scales = [(1, 0), *zip(strides, (b for b, _ in padding)), (1, 0)]
    for axis, (n, step, (s, before)) in enumerate(zip(y.shape, steps, scales)):
        chosen += ((np.arange(n) * s - before) * step).reshape([-1 if a == axis else 1 for a in range(y.ndim)])
    return _first(chosen, channels_first)


def window_sum(x, window, strides, padding, channels_first):
    x = _around(_last(x, channels_first), padding, 0)
    return _first(_reduced(np.add, x, window, strides), channels_first)


def window_spread(y, sizes, window, strides, padding, channels_first):
    x = _last(y, channels_first)
    for axis, (n, k, s, (before, after)) in enumerate(zip(sizes, window, strides, padding), 1):
        count = x.shape[axis]
        wide = np.zeros((*x.shape[:axis], n + before + after, *x.shape[axis + 1 :]), x.dtype)
        for tap in range(k):
            _tap(wide, axis, tap, s, count)[...] += x
        x = wide[(slice(None),) * axis + (slice(before, before + n),)]
    return _first(np.ascontiguousarray(x), channels_first)


def window_columns(x, window, strides, padding, dilation):
    image = padded(x.reshape(-1, *x.shape[2:], 1), [(p, p) for p in padding])
    view = windows(image, window, strides, dilation)[..., 0]
    columns = np.ascontiguousarray(np.transpose(view, (0, 3, 4, 1, 2)))
    return columns.reshape(len(x), x.shape[1] * window[0] * window[1], view.shape[1] * view.shape[2])


def column_sums(x, sizes, window, strides, padding, dilation):
    channels = x.shape[1] // (window[0] * window[1])
    image = np.zeros((len(x) * channels, *(n + 2 * p for n, p in zip(sizes, padding)), 1), x.dtype)
    view = windows(image, window, strides, dilation)[..., 0]
    parts = x.reshape(len(image), *window, *view.shape[1:3])
    for i, j in np.ndindex(*window):
        view[..., i, j] += parts[:, i, j]
    (height, width), (above, left) = sizes, padding
    image = image[:, above : above + height, left : left + width]
    return np.ascontiguousarray(image).reshape(len(x), channels, height, width)

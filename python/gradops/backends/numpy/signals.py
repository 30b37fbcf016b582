"""NumPy kernels: convolutions, pooling, Fourier transforms.

Convolutions are matrix products over patches gathered a few MiB at a time, with channels last. Depthwise convolutions,
which would be products with single columns, add up the taps of the window instead.
"""

import itertools

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ... import _scipy
from .base import floats, promoted

# Convolutions

MAX_PATCH_BYTES = 2**25
"""The largest number of bytes of patches that are gathered at once."""
BLOCK_BYTES = 2**18
"""The default number of bytes of patches or products in a block: they stay in the cache."""
MIN_BLOCK_PATCHES = 256
"""The number of patches in a block from which matrix products run at full speed."""


def conv_to_output(inputs, kernel, strides, padding, dilation, groups, channels_first):
    x, kernel, dtype = _prepared(inputs, kernel)
    x = _last(x, channels_first)
    if groups == 1:
        y = _output(padded(x, padding), kernel, strides, dilation)
    elif kernel.shape[-2] == 1:
        y = _depthwise_output(padded(x, padding), kernel, strides, dilation)
    else:
        parts = zip(np.split(x, groups, -1), np.split(kernel, groups, -1))
        y = np.concatenate([_output(padded(a, padding), k, strides, dilation) for a, k in parts], -1)
    return _first(y, channels_first, dtype)


def conv_to_inputs(outputs, kernel, sizes, strides, padding, dilation, groups, channels_first):
    y, kernel, dtype = _prepared(outputs, kernel)
    y = _last(y, channels_first)
    if groups == 1:
        x = _inputs(y, kernel, sizes, strides, padding, dilation)
    elif kernel.shape[-2] == 1:
        x = _depthwise_inputs(y, kernel, sizes, strides, padding, dilation, groups)
    else:
        parts = zip(np.split(y, groups, -1), np.split(kernel, groups, -1))
        x = np.concatenate([_inputs(b, k, sizes, strides, padding, dilation) for b, k in parts], -1)
    return _first(x, channels_first, dtype)


def conv_to_kernel(inputs, outputs, sizes, strides, padding, dilation, groups, channels_first):
    x, y, dtype = _prepared(inputs, outputs)
    x, y = _last(x, channels_first), _last(y, channels_first)
    if groups == 1:
        kernel = _kernel(padded(x, padding), y, sizes, strides, dilation)
    elif groups == x.shape[-1]:
        kernel = _depthwise_kernel(padded(x, padding), y, sizes, strides, dilation)
    else:
        parts = zip(np.split(x, groups, -1), np.split(y, groups, -1))
        kernel = np.concatenate([_kernel(padded(a, padding), b, sizes, strides, dilation) for a, b in parts], -1)
    return kernel.astype(dtype, copy=False)


def _output(x, kernel, strides, dilation):
    """Multiply the patches by the kernel as a matrix."""
    patches = windows(x, kernel.shape[:-2], strides, dilation)
    matrix = kernel.reshape(-1, kernel.shape[-1])
    places = patches.shape[: x.ndim - 1]
    y = np.empty((*places, kernel.shape[-1]), x.dtype)
    for block, rows in _rows(patches, places):
        np.matmul(rows, matrix, out=y[block].reshape(-1, kernel.shape[-1]))
    return y


def _inputs(y, kernel, sizes, strides, padding, dilation):
    window, (depth, filters) = kernel.shape[:-2], kernel.shape[-2:]
    if all(s == 1 for s in strides):
        return _output(_spread(y, window, sizes, padding, dilation), _turned(kernel), strides, dilation)
    x, inside = _room(y, sizes, depth, padding)
    patches = windows(x, window, strides, dilation, y.shape[1:-1])
    matrix = np.ascontiguousarray(kernel.reshape(-1, filters).T)
    for block in _blocks_of_rows(y.shape[:-1], matrix.shape[1] * x.itemsize):
        here = patches[block]
        columns = (y[block].reshape(-1, filters) @ matrix).reshape(here.shape)
        for tap in np.ndindex(*window):
            # Adding in place is safe: windows overlap, but never at the same tap.
            here[(Ellipsis, *tap, slice(None))] += columns[(Ellipsis, *tap, slice(None))]
    return x[inside]


def _kernel(x, y, sizes, strides, dilation):
    patches = windows(x, sizes, strides, dilation, y.shape[1:-1])
    y = np.ascontiguousarray(y)
    matrix = np.zeros((int(np.prod(sizes)) * x.shape[-1], y.shape[-1]), x.dtype)
    for block, rows in _rows(patches, y.shape[:-1]):
        matrix += rows.T @ y[block].reshape(-1, y.shape[-1])
    return matrix.reshape(*sizes, x.shape[-1], y.shape[-1])


def _blocks_of_rows(places, row):
    return pieces(places, row, min(max(BLOCK_BYTES, MIN_BLOCK_PATCHES * row), MAX_PATCH_BYTES))


def _rows(patches, places):
    """Yield blocks of output positions, each with its patches as the rows of a matrix."""
    width = int(np.prod(patches.shape[len(places) :]))
    held = None
    for block in _blocks_of_rows(places, width * patches.itemsize):
        here = patches[block]
        if here.flags.c_contiguous:
            yield block, here.reshape(-1, width)
            continue
        if held is None:
            held = np.empty(here.size, patches.dtype)
        rows = held[: here.size]
        np.copyto(rows.reshape(here.shape), here)
        yield block, rows.reshape(-1, width)


def _turned(kernel):
    """The kernel flipped in space, with channels and filters exchanged: the transposed convolution's kernel."""
    count = kernel.ndim - 2
    return np.ascontiguousarray(np.swapaxes(kernel[(slice(None, None, -1),) * count], -1, -2))


def _spread(y, window, sizes, padding, dilation):
    """Pad ``y`` so that its convolution with the flipped kernel has the inputs' ``sizes``."""
    reach = [(k - 1) * d for k, d in zip(window, dilation)]
    return padded(y, [(r - b, n + b - m) for r, n, m, (b, _) in zip(reach, sizes, y.shape[1:], padding)])


def _room(y, sizes, channels, padding):
    """A padded array of zeros to accumulate in, and the key of its part without padding."""
    outer = [n + max(b, 0) + max(a, 0) for n, (b, a) in zip(sizes, padding)]
    inside = tuple(slice(max(b, 0), max(b, 0) + n) for n, (b, _) in zip(sizes, padding))
    return np.zeros((len(y), *outer, channels), y.dtype), (slice(None), *inside)


def _repeated(x, filters):
    """The channels, each repeated once for each of its filters."""
    return x if filters == x.shape[-1] else np.repeat(x, filters // x.shape[-1], -1)


def _taps(kernel, places):
    """The kernel's filters, repeated along the last spatial dimension so that products run over long rows."""
    return np.repeat(kernel, places[-1], -2)


def _depthwise_output(x, kernel, strides, dilation):
    """Add up the products with each tap of the window; ``kernel`` has one channel."""
    window = kernel.shape[:-2]
    x = _repeated(x, kernel.shape[-1])
    patches = windows(x, window, strides, dilation)
    places = patches.shape[: x.ndim - 1]
    taps = _taps(kernel, places)
    y = np.empty((*places, x.shape[-1]), x.dtype)
    for block in _whole_rows(places, x):
        here, total = patches[block], y[block]
        product = np.empty_like(total)
        for i, tap in enumerate(np.ndindex(*window)):
            np.multiply(here[(Ellipsis, *tap, slice(None))], taps[tap], out=product if i else total)
            if i:
                total += product
    return y


def _depthwise_inputs(y, kernel, sizes, strides, padding, dilation, channels):
    window = kernel.shape[:-2]
    if all(s == 1 for s in strides):
        flipped = kernel[(slice(None, None, -1),) * len(window)]
        x = _depthwise_output(_spread(y, window, sizes, padding, dilation), flipped, strides, dilation)
    else:
        x, inside = _room(y, sizes, y.shape[-1], padding)
        patches = windows(x, window, strides, dilation, y.shape[1:-1])
        taps = _taps(kernel, y.shape[:-1])
        for block in _whole_rows(y.shape[:-1], y):
            here, part = patches[block], y[block]
            for tap in np.ndindex(*window):
                here[(Ellipsis, *tap, slice(None))] += part * taps[tap]
        x = x[inside]
    return x.reshape(*x.shape[:-1], channels, x.shape[-1] // channels).sum(-1)


def _depthwise_kernel(x, y, sizes, strides, dilation):
    x = _repeated(x, y.shape[-1])
    patches = windows(x, sizes, strides, dilation, y.shape[1:-1])
    kernel = np.zeros((*sizes, 1, y.shape[-1]), x.dtype)
    for block in _whole_rows(y.shape[:-1], y):
        here, part = patches[block], y[block]
        for tap in np.ndindex(*sizes):
            kernel[tap] += (here[(Ellipsis, *tap, slice(None))] * part).reshape(-1, y.shape[-1]).sum(0)
    return kernel


def _whole_rows(places, x):
    """Blocks that do not split the last spatial dimension."""
    return pieces(places[:-1], places[-1] * x.shape[-1] * x.itemsize, BLOCK_BYTES)


def _prepared(first, second):
    """Both tensors in the dtype to compute in (float32 for float16), and the dtype of the result."""
    first, second = (floats(t) for t in promoted(first, second))
    if first.dtype == np.float16:
        return first.astype(np.float32), second.astype(np.float32), first.dtype
    return first, second, first.dtype


def _last(x, channels_first):
    return np.moveaxis(x, 1, -1) if channels_first else x


def _first(x, channels_first, dtype=None):
    x = np.ascontiguousarray(np.moveaxis(x, -1, 1)) if channels_first else x
    return x if dtype is None else x.astype(dtype, copy=False)


def padded(x, padding, value=0):
    """``x`` of shape ``(batch, *sizes, channels)`` padded with a constant; negative padding crops."""
    if not any(map(any, padding)):
        return np.ascontiguousarray(x)
    shape = (len(x), *(n + b + a for n, (b, a) in zip(x.shape[1:], padding)), x.shape[-1])
    out = np.full(shape, value, x.dtype) if value else np.zeros(shape, x.dtype)
    to, of = [slice(None)], [slice(None)]
    for n, (b, a) in zip(x.shape[1:], padding):
        to.append(slice(max(b, 0), max(b, 0) + n + min(b, 0) + min(a, 0)))
        of.append(slice(max(-b, 0), n + min(a, 0)))
    out[tuple(to)] = x[tuple(of)]
    return out


def windows(x, window, strides, dilation, places=None):
    """A view of shape ``(batch, *places, *window, channels)`` into ``x`` of shape ``(batch, *sizes, channels)``."""
    if places is None:
        places = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[1:], window, strides, dilation)]
    steps = x.strides[1:-1]
    return as_strided(
        x,
        (x.shape[0], *places, *window, x.shape[-1]),
        (
            x.strides[0],
            *(step * s for step, s in zip(steps, strides)),
            *(step * d for step, d in zip(steps, dilation)),
            x.strides[-1],
        ),
    )


def pieces(shape, item, limit):
    """Keys that split an array of ``shape`` into contiguous blocks of at most ``limit`` bytes, ``item`` per element."""
    if 0 in shape:
        return
    axis = len(shape) - 1
    while axis and item * shape[axis] <= limit:
        item *= shape[axis]
        axis -= 1
    step = max(1, limit // max(item, 1))
    for outer in np.ndindex(*shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*outer, slice(start, start + step))


# Pooling, and blocks as columns.


def _tap(x, axis, tap, stride, count):
    """The elements along ``axis`` that lie under one tap of the window."""
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


def _pad_if_needed(x, padding, value):
    return padded(x, padding, value) if any(map(any, padding)) else x


def window_max(x, window, strides, padding, channels_first):
    x = _pad_if_needed(_last(x, channels_first), padding, -np.inf)
    return _first(_reduced(np.maximum, x, window, strides), channels_first)


def window_positions(x, y, window, strides, padding, channels_first):
    steps = np.cumprod((1, *x.shape[:0:-1]))[::-1]
    steps = (steps[0], *steps[2:], steps[1]) if channels_first else tuple(steps)
    x, y = _last(x, channels_first), _last(y, channels_first)
    values, places = _pad_if_needed(x, padding, np.nan), y.shape[1:-1]
    taps = list(itertools.product(*map(range, window)))
    # The earlier a tap, the higher its rank, so that the maximum finds the first one; rank 0 means no tap.
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
    x = _pad_if_needed(_last(x, channels_first), padding, 0)
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


# Fourier transforms with SciPy, which keeps single precision, and complex numbers.


def _full(x):
    x = floats(x)
    return x.astype(np.float32) if x.dtype == np.float16 else x


def view_as_complex(x):
    x = np.ascontiguousarray(_full(x))
    return x.view(np.result_type(x.dtype, np.complex64))[..., 0]


def fft_complex(x, dimensions=1, inverse=False):
    function = _scipy.fft.ifftn if inverse else _scipy.fft.fftn
    return function(_full(x), axes=tuple(range(-dimensions, 0)))


def rfft_complex(x, fft_length):
    return _scipy.fft.rfft(_full(x), fft_length)


def irfft_complex(x, fft_length):
    return _scipy.fft.irfft(_full(x), fft_length)

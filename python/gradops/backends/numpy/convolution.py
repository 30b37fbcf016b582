"""NumPy kernels: convolution as matrix products, over patches gathered a few MiB at a time.

Inside, channels come last. Where each channel is convolved by itself there are no matrices: the taps of
the window are added one by one.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .base import floats, promoted

PATCHES = 2**25
"""How many bytes of patches there are at most at once."""
CACHED = 2**18
"""How many bytes of patches or products there are at once if nothing speaks for more."""
ROWS = 256
"""How many patches there should be at once for a fast matrix product."""


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
    """Patches times the kernel as a matrix."""
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
            # Windows overlap, but not where they have the same tap.
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
    return pieces(places, row, min(max(CACHED, ROWS * row), PATCHES))


def _rows(patches, places):
    """Blocks of places, and the patches there as the rows of a matrix."""
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
    """A kernel flipped, with channels and filters exchanged."""
    count = kernel.ndim - 2
    return np.ascontiguousarray(np.swapaxes(kernel[(slice(None, None, -1),) * count], -1, -2))


def _spread(y, window, sizes, padding, dilation):
    """``y`` with the zeros around it whose convolution with the turned kernel has the inputs' ``sizes``."""
    reach = [(k - 1) * d for k, d in zip(window, dilation)]
    return padded(y, [(r - b, n + b - m) for r, n, m, (b, _) in zip(reach, sizes, y.shape[1:], padding)])


def _room(y, sizes, channels, padding):
    """Zeros to add to, zeros around them included, and the key of what is inside."""
    outer = [n + max(b, 0) + max(a, 0) for n, (b, a) in zip(sizes, padding)]
    inside = tuple(slice(max(b, 0), max(b, 0) + n) for n, (b, _) in zip(sizes, padding))
    return np.zeros((len(y), *outer, channels), y.dtype), (slice(None), *inside)


def _repeated(x, filters):
    """The channels, each as often as it has filters."""
    return x if filters == x.shape[-1] else np.repeat(x, filters // x.shape[-1], -1)


def _taps(kernel, places):
    """The kernel's filters, repeated along the last dimension of places, so that products have long rows."""
    return np.repeat(kernel, places[-1], -2)


def _depthwise_output(x, kernel, strides, dilation):
    """The products with each tap of the window, added up; ``kernel`` has one channel."""
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
    """Blocks that do not cut the last dimension of places."""
    return pieces(places[:-1], places[-1] * x.shape[-1] * x.itemsize, CACHED)


def _prepared(first, second):
    """Both tensors in the dtype to compute in (float16 in float32), and the dtype of the result."""
    first, second = (floats(t) for t in promoted(first, second))
    if first.dtype == np.float16:
        return first.astype(np.float32), second.astype(np.float32), first.dtype
    return first, second, first.dtype


def _last(x, channels_first):
    return np.moveaxis(x, 1, -1) if channels_first else x


def _first(x, channels_first, dtype):
    x = np.ascontiguousarray(np.moveaxis(x, -1, 1)) if channels_first else x
    return x.astype(dtype, copy=False)


def padded(x, padding, value=0):
    """``x`` of shape ``(batch, *sizes, channels)`` with constants around it; negative padding crops."""
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
    """A view of shape ``(batch, *places, *window, channels)`` of ``(batch, *sizes, channels)``."""
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
    """Keys that cut an array of ``shape`` into contiguous blocks of at most ``limit`` bytes, ``item`` an element."""
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

"""PyTorch kernels: shape, creation, joining, sorting, random numbers, indexing."""

import contextlib
import itertools
from types import EllipsisType

import numpy as np
import torch

from ... import dtypes
from .._keys import cuts, dimensions, distinct, inserted, is_array, parts_of, separated, turns
from ..array.shaping import extreme
from ..tracing import constant
from . import _private
from .base import axes_of, dtype_name, has_values, native_dtype, promoted, to_numpy, together

# Shape, creation, joining, sorting.

tril, triu = torch.tril, torch.triu


def expand_dims(x, axis):
    for a in inserted(axis, x.ndim):
        x = x.unsqueeze(a)
    return x


def squeeze(x, axis=None):
    if axis is None:
        return torch.squeeze(x)
    axes = axes_of(x, axis)
    if any(x.shape[a] != 1 for a in axes):
        raise ValueError(f"only dimensions of size 1 can be left out; the shape is {tuple(x.shape)}")
    return torch.squeeze(x, axes)


def flip(x, axis=None):
    return torch.flip(x, axes_of(x, axis))


def roll(x, shift, axis=None):
    return torch.roll(x, *turns(shift, axis if x.ndim else axes_of(x, axis) or None))


def view(x, dtype=None):
    if dtype is None:
        return x
    target = native_dtype(dtype)
    if target is x.dtype:
        return x
    return (x if x.dtype.itemsize == target.itemsize else x.contiguous()).detach().view(target)


@constant
def _rounded(number, floatx: str):
    """A number rounded to the precision of ``floatx``."""
    return torch.tensor(number, dtype=native_dtype(floatx)).item()


def _number(value):
    """The Python number of ``value``; an integer is returned unchanged, as Dynamo may not know its value."""
    if isinstance(value, int):
        return value
    return value.item() if isinstance(value, torch.Tensor) else _rounded(value, dtypes.floatx())


def arange(start, stop=None, step=None, dtype=None):
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    values = list(map(_number, (start, stop, step)))
    if dtype is None:
        dtype = "int64" if all(isinstance(v, int) for v in values) else dtypes.floatx()
    start, stop, step = values
    if step and (stop - start) / step <= 0:
        stop = start  # torch rejects a range in the wrong direction
    made = native_dtype(dtype)
    if made is torch.bool or made.is_complex:
        return torch.arange(start, stop, step).to(made)
    return torch.arange(start, stop, step, dtype=made)


arange.takes_numbers = True  # receives Python numbers: torch.compile does not know a tensor's value


def eye(N, M=None, k=0, dtype=None):
    rows, columns = torch.arange(N)[:, None], torch.arange(N if M is None else M)[None]
    return (columns - rows == k).to(native_dtype(dtype or dtypes.floatx()))


def concatenate(xs, axis=0):
    return torch.cat(together(xs), axis)


def stack(xs, axis=0):
    return torch.stack(together(xs), axis)


def split(x, indices_or_sections, axis=0):
    size = x.shape[axis]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or size % indices_or_sections:
            raise ValueError(f"{indices_or_sections} sections do not divide a dimension of {size}")
        sizes = [size // indices_or_sections] * indices_or_sections
    else:
        places = [0, *cuts(indices_or_sections, size), size]
        sizes = [end - start for start, end in itertools.pairwise(places)]
    return list(torch.split(x, sizes, axis))  # its gradient is a single concatenation


def unstack(x, num=None, axis=0):
    return list(torch.unbind(x, axis))


def _ordered(x, axis):
    if axis is None:
        x, axis = x.reshape(-1), 0
    return torch.sort(x, dim=axis, stable=True)


def sort(x, axis=-1):
    return _ordered(x, axis)[0]


def argsort(x, axis=-1):
    return _ordered(x, axis)[1]


def searchsorted(sorted_sequence, values, side="left"):
    sequence, values = promoted(sorted_sequence, values)
    if sequence.dtype is torch.bool:
        sequence, values = sequence.to(torch.uint8), values.to(torch.uint8)
    return torch.searchsorted(sequence.contiguous(), values.contiguous(), side=side)


# Random numbers. They are drawn outside of compiled graphs, whose generator would continue at each call.


def _generator(like, seed):
    return torch.Generator(like.device).manual_seed(seed)


@contextlib.contextmanager
def _seeded(device, seed):
    """A scope that seeds a device's global generator; generators of other devices continue."""
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng([device] if on_gpu else []):
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)
        yield


def random_uniform(like, shape, seed):
    with _private.untraced():
        return torch.rand(tuple(shape), generator=_generator(like, seed), dtype=like.dtype, device=like.device)


def random_normal(like, shape, seed):
    with _private.untraced():
        return torch.randn(tuple(shape), generator=_generator(like, seed), dtype=like.dtype, device=like.device)


def random_gamma(like, alpha, shape, seed):
    with _private.untraced(), _seeded(like.device, seed):
        alpha = alpha.to(like.dtype).expand(tuple(shape))
        return torch.distributions.Gamma(alpha, torch.ones_like(alpha)).sample()


def random_binomial(like, counts, probabilities, shape, seed):
    with _private.untraced():
        shape = tuple(shape)
        counts, probabilities = (x.to(like.dtype).expand(shape).contiguous() for x in (counts, probabilities))
        return torch.binomial(counts, probabilities, generator=_generator(like, seed))


# Indexing, by NumPy's rules -------------------------------------------------------------------------------------------


def native_key(x, key):
    """``x`` and a key in torch's form: arrays become tensors, and negative steps are gathered first."""
    if type(key) in (int, slice) and (type(key) is int or key.step is None or key.step > 0):
        return x, key
    parts = [_native(p, x.device) if is_array(p) else p for p in parts_of(key)]
    if any(isinstance(p, torch.Tensor) and (p.ndim or p.dtype is torch.bool) for p in parts):
        # NumPy treats ints next to arrays as arrays, which decides where the arrays' dimensions go
        parts = [_vector(p, x.device) if type(p) is int or isinstance(p, torch.Tensor) else p for p in parts]
    if any(isinstance(p, slice) and p.step is not None and p.step < 0 for p in parts):
        dim, rest = 0, x.ndim - sum(dimensions(p) for p in parts if p is not Ellipsis)
        for i, p in enumerate(parts):
            if isinstance(p, slice) and p.step is not None and p.step < 0:
                chosen = torch.tensor(list(range(*p.indices(x.shape[dim]))), dtype=torch.int64, device=x.device)
                x = torch.index_select(x, dim, chosen)
                parts[i] = slice(None)
            dim += rest if p is Ellipsis else dimensions(p)
    return x, tuple(parts)


def _vector(part, device):
    """An int or 0-d integer tensor as a vector of length 1; other parts unchanged."""
    if isinstance(part, torch.Tensor):
        return part if part.ndim or part.dtype is torch.bool else part.reshape(1)
    return torch.tensor([part], device=device)


def _native(part, device):
    if isinstance(part, (bool, torch.Tensor)):
        return part
    return torch.as_tensor(np.asarray(part), device=device)


def get_item(x, key):
    x, key = native_key(x, key)
    return _arrays_first(x, key) if type(key) is tuple and any(isinstance(p, EllipsisType) for p in key) else x[key]


def _arrays_first(x, key):
    """``x[key]`` with NumPy's order of dimensions if an empty ``...`` separates arrays; torch drops the ``...``."""
    y, rest = x[key], [p for p in key if p is not Ellipsis]
    arrays = [i for i, p in enumerate(rest) if is_array(p)]
    if not arrays or x.ndim > sum(map(dimensions, rest)) or separated(rest) or not separated(key):
        return y
    first, width = arrays[0], y.ndim - (len(rest) - len(arrays))
    return y.movedim(list(range(first, first + width)), list(range(width)))


def _whole(indices):
    if indices.is_floating_point() or indices.is_complex():
        raise IndexError("positions must be whole numbers")
    return indices.to(torch.int64)


def take(x, indices, axis=None):
    if axis is None:
        x, axis = x.reshape(-1), 0
    indices = _whole(indices)
    size = x.shape[axis]
    flat = torch.where(indices < 0, indices + size, indices).reshape(-1)
    axis = axis % x.ndim
    out = torch.index_select(x, axis, flat)
    return out.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def take_along_axis(x, indices, axis=None):
    if axis is None:
        x, indices, axis = x.reshape(-1), indices.reshape(-1), 0
    if x.ndim != indices.ndim:
        raise ValueError("`x` and `indices` must have as many dimensions as each other")
    indices, size = _whole(indices), x.shape[axis]
    # torch does not check the range of positions that are broadcast
    if indices.device.type == "cpu" and has_values(indices):
        known = indices.detach().numpy()  # a graph being traced would record torch's comparisons
        if ((known < -size) | (known >= size)).any():
            raise IndexError("index out of range")
    return torch.take_along_dim(x, torch.where(indices < 0, indices + size, indices), axis)


def _rows(key) -> bool:
    """True if a key is one integer tensor, which selects whole rows."""
    return isinstance(key, torch.Tensor) and key.dtype in (torch.int64, torch.int32)


def _flat_positions(x, key):
    """The positions of the elements of ``x[key]`` in the flattened ``x``."""
    return get_item(torch.arange(x.numel(), device=x.device).reshape(x.shape), key)


def _own(x):
    """Give each element of ``x`` its own address: PyTorch's compiled code adds to all elements that share one."""
    return x.contiguous()


def add_at(x, key, updates):
    updates = torch.as_tensor(updates, device=x.device).to(x.dtype)
    if x.dtype in (torch.float16, torch.bfloat16):  # half-precision sums stop growing
        return add_at(x.float(), key, updates.float()).to(x.dtype)
    if _rows(key) and key.ndim == 1 and x.ndim:
        rows = torch.where(key < 0, key + x.shape[0], key)
        return _own(x).index_add(0, rows, torch.broadcast_to(updates, (*rows.shape, *x.shape[1:])))
    flat = _flat_positions(x, key)
    updates = torch.broadcast_to(updates, flat.shape)
    return _own(x.reshape(-1)).index_add(0, flat.reshape(-1), updates.reshape(-1)).reshape(x.shape)


def set_at(x, key, updates):
    flat = _flat_positions(x, key)
    updates = torch.broadcast_to(torch.as_tensor(updates, device=x.device).to(x.dtype), flat.shape).reshape(-1)
    flat = flat.reshape(-1)
    if not distinct(
        tuple(_native(p, x.device) if is_array(p) else p for p in parts_of(key))
    ):  # the last of several values for a position wins, also in the gradient
        order = torch.arange(flat.numel(), device=x.device)
        last = torch.full((x.numel(),), -1, device=x.device).scatter_reduce(0, flat, order, "amax")
        last = last[last >= 0]
        flat, updates = flat[last], updates[last]
    return _own(x.reshape(-1)).index_copy(0, flat, updates).reshape(x.shape)


# Scattering.


def _segments(reduce, smallest):
    def kernel(data, segment_ids, num_segments=None, sorted=False):
        if num_segments is None:
            num_segments = int(to_numpy(segment_ids).max()) + 1 if segment_ids.numel() else 0
        inside = (segment_ids >= 0) & (segment_ids < num_segments)
        ids = torch.where(inside, segment_ids, num_segments).to(torch.int64)
        ids = ids.reshape(-1, *[1] * (data.ndim - 1)).expand(data.shape)
        start = (num_segments + 1, *data.shape[1:])
        start = torch.full(start, extreme(dtype_name(data), smallest), dtype=data.dtype, device=data.device)
        return start.scatter_reduce(0, ids, data, reduce)[:num_segments]

    return kernel


segment_max = _segments("amax", True)
segment_min = _segments("amin", False)


def product_by_segment(data, ids, count):
    """Running products within each segment of sorted rows, by doubling steps; correct in every transform.

    ``scatter_reduce(..., "prod")`` has tangents of 0 and reads values in the backward pass.
    """
    order = torch.argsort(ids, stable=True)
    ids, data = ids[order], data[order]
    column, step = (-1, *[1] * (data.ndim - 1)), 1
    while step < data.shape[0]:
        joined = (ids[step:] == ids[:-step]).reshape(column)
        data = torch.cat([data[:step], data[step:] * torch.where(joined, data[:-step], 1)])
        step *= 2
    if not data.shape[0]:
        return torch.ones((count, *data.shape[1:]), dtype=data.dtype, device=data.device)
    segments = torch.arange(count, device=ids.device)
    last = (ids <= segments.reshape(-1, 1)).sum(1) - 1
    there = (last >= 0) & (ids[last.clamp(min=0)] == segments)
    return torch.where(there.reshape(column), data[last.clamp(min=0)], 1)

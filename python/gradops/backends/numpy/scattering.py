"""NumPy kernels: scattering."""

import numpy as np


def extreme(dtype, smallest: bool, real: bool | None = None):
    """What every element is at least (or at most): what is left of an empty segment."""
    if dtype.kind == "f" if real is None else real:
        return -np.inf if smallest else np.inf
    if dtype.kind == "b":
        return not smallest
    return np.iinfo(dtype).min if smallest else np.iinfo(dtype).max


def _segments(ufunc, smallest):
    def kernel(data, segment_ids, num_segments=None, sorted=False):
        if num_segments is None:
            num_segments = int(segment_ids.max()) + 1 if segment_ids.size else 0
        inside = (segment_ids >= 0) & (segment_ids < num_segments)
        out = np.full((num_segments, *data.shape[1:]), extreme(data.dtype, smallest), data.dtype)
        ufunc.at(out, segment_ids[inside], data[inside])
        return out

    return kernel


segment_max = _segments(np.maximum, True)
segment_min = _segments(np.minimum, False)

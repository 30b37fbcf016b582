"""Cases: windows."""

import hypothesis.strategies as st
import numpy as np
from parity import Case, arrays, inputs
from scipy.signal import windows

POINTS = st.sampled_from([0, 1, 2, 5, 8]).map(np.array)


def symmetric(window):
    return lambda x, *beta, **k: window(int(x), **k) if x else np.zeros(0)


CASES = [
    Case("bartlett", inputs(x=POINTS), symmetric(windows.bartlett)),
    Case("blackman", inputs(x=POINTS), symmetric(windows.blackman)),
    Case("hamming", inputs(x=POINTS), symmetric(windows.hamming)),
    Case("hanning", inputs(x=POINTS), symmetric(windows.hann)),
    Case("kaiser", inputs(x=POINTS, beta=arrays((), 0.5, 9)), symmetric(windows.kaiser), ["beta"], rtol=1e-5),
    Case(
        "kaiser",
        inputs(x=np.array(6.0), beta=st.sampled_from([0, 5])),
        symmetric(windows.kaiser),
        label="numbers",
        rtol=1e-5,
    ),
]

"""Examples of ``gradops.scipy.signal.windows``."""

ROWS = """
gaussian(4, std) by std = 1.0 -> [0.730468 0.220624 0.220624 0.730468]
general_gaussian(4, p, 1.0) by p = 1.5 -> [-0.253137  0.081394  0.081394 -0.253137]
exponential(4, tau=tau) by tau = 2.0 -> [0.177137 0.09735  0.09735  0.177137]

general_cosine(4, a) by a = np.array([0.5, 0.5]) -> [[ 1.  -1. ]
     [ 1.   0.5]
     [ 1.   0.5]
     [ 1.  -1. ]]
general_hamming(4, alpha) by alpha = 0.5 -> [2.  0.5 0.5 2. ]
kaiser(4, beta) by beta = 5.0 -> [-0.032797 -0.044792 -0.044792 -0.032797]
also get_window kaiser_bessel_derived

see gradops.scipy.signal.windows.general_cosine
hann: ops.sum(windows.hann(3) * x) ** 2 at x = np.array([1.0, 2.0, 4.0]) -> [0. 4. 0.]
also hamming blackman blackmanharris nuttall flattop bartlett barthann triang parzen bohman boxcar cosine tukey

see gradops.scipy.signal.windows.kaiser
also chebwin taylor dpss lanczos
"""

"""``scipy.signal``: convolution, filters, spectra, waveforms and windows, with SciPy's names.

Derivatives are by the data and by the parameters that each function names: filter coefficients, frequencies, parameters
of waveforms. Filter design and peak finding take and return known numbers, as in SciPy. Next to a tensor of PyTorch,
JAX or TensorFlow, lists and NumPy arrays are constants of its precision.

Examples:
    >>> import numpy as np
    >>> import gradops
    >>> from gradops import ops
    >>> from gradops.scipy import signal
    >>> x = np.array([1.0, 0.0, 0.0, 0.0])
    >>> print(signal.lfilter([0.5], [1.0, -0.5], x))
    [0.5    0.25   0.125  0.0625]
    >>> print(gradops.grad(lambda a: signal.lfilter([0.5], ops.stack([1.0, a]), x)[-1])(-0.5))
    -0.375

See Also:
    :func:`gradops.ops.conv`, :func:`gradops.ops.stft`; ``gradops.scipy.fft``, ``gradops.scipy.ndimage``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._names import namespace, places

if TYPE_CHECKING:
    from . import windows as windows
    from .convolution import *  # noqa: F403
    from .design import *  # noqa: F403
    from .filters import *  # noqa: F403
    from .frequencies import *  # noqa: F403
    from .responses import *  # noqa: F403
    from .sampling import *  # noqa: F403
    from .smoothing import *  # noqa: F403
    from .spectra import *  # noqa: F403
    from .waveforms import *  # noqa: F403

_PLACES = places("""
    convolution: choose_conv_method convolve convolve2d correlate correlate2d correlation_lags deconvolve
        fftconvolve oaconvolve upfirdn
    design: abcd_normalize argrelextrema argrelmax argrelmin band_stop_obj bessel besselap bilinear bilinear_zpk
        buttap butter buttord cheb1ap cheb1ord cheb2ap cheb2ord cheby1 cheby2 check_COLA check_NOLA
        cont2discrete czt_points ellip ellipap ellipord find_peaks find_peaks_cwt findfreqs firls firwin firwin2
        gammatone get_window iircomb iirdesign iirfilter iirnotch iirpeak invres invresz kaiser_atten
        kaiser_beta kaiserord lp2bp lp2bp_zpk lp2bs lp2bs_zpk lp2hp lp2hp_zpk lp2lp lp2lp_zpk max_len_seq
        minimum_phase normalize peak_prominences peak_widths place_poles remez residue residuez sos2tf sos2zpk
        ss2tf ss2zpk tf2sos tf2ss tf2zpk unique_roots unit_impulse zpk2sos zpk2ss zpk2tf
    filters: filtfilt lfilter lfilter_zi lfiltic sosfilt sosfilt_zi sosfiltfilt
    frequencies: czt lombscargle vectorstrength zoom_fft
    responses: freqs freqs_zpk freqz freqz_sos freqz_zpk group_delay sosfreqz
    sampling: decimate resample resample_poly
    smoothing: detrend envelope hilbert hilbert2 medfilt medfilt2d order_filter savgol_coeffs savgol_filter
        wiener
    spectra: coherence csd istft periodogram spectrogram stft welch
    waveforms: chirp gauss_spline gausspulse sawtooth square sweep_poly
""")

__all__ = [*_PLACES, "windows"]

REFUSED = {
    **dict.fromkeys(
        "lti dlti StateSpace TransferFunction ZerosPolesGain bode dbode freqresp dfreqresp".split(),
        "systems hold SciPy's own arrays; use coefficients: `freqz`, `freqs`, `lfilter`",
    ),
    **dict.fromkeys(
        "impulse dimpulse step dstep dlsim".split(),
        "systems hold SciPy's own arrays; `lfilter` of an impulse, a step or a signal gives the response",
    ),
    "lsim": "systems hold SciPy's own arrays; use `gradops.scipy.integrate.solve_ivp`",
    **dict.fromkeys("CZT ZoomFFT".split(), "use the functions `czt` and `zoom_fft`"),
    **dict.fromkeys(
        "ShortTimeFFT closest_STFT_dual_window".split(), "the class holds SciPy's own arrays; use `stft` and `istft`"
    ),
    **dict.fromkeys(
        "cspline1d cspline2d qspline1d qspline2d spline_filter symiirorder1 symiirorder2".split(),
        "use `gradops.scipy.ndimage.spline_filter1d`, or `lfilter` forwards and backwards",
    ),
    **dict.fromkeys(
        "cspline1d_eval qspline1d_eval".split(),
        "use `gradops.scipy.ndimage.map_coordinates`, which takes coordinates and values",
    ),
    "sepfir2d": "use `gradops.scipy.ndimage.convolve1d` along each axis, with `mode='mirror'`",
    "firwin_2d": "use `firwin` for each axis and `gradops.ops.outer`",
    "whittaker_henderson": "use `gradops.scipy.linalg.solveh_banded` of `I + lamb * D.T @ D`, with differences `D`",
    "BadCoefficients": "it is a warning of SciPy's",
}
__dir__, __getattr__ = namespace(__name__, __all__, REFUSED, _PLACES)

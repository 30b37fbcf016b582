"""Examples of ``gradops.scipy.signal`` and its ``windows``."""

ROWS = """
see gradops.ops.conv
convolve(x, [1.0, 2.0])[1] at x = np.array([1.0, 2.0, 4.0]) -> [2. 1. 0.]
correlate(x, [1.0, 2.0])[1] at x = np.array([1.0, 2.0, 4.0]) -> [1. 2. 0.]
fftconvolve(x, [1.0, 2.0])[0] ** 2 at x = np.array([1.0, 2.0]) -> [2. 0.]
oaconvolve(x, [1.0, 2.0])[0] ** 2 at x = np.array([1.0, 2.0]) -> [2. 0.]
convolve2d(x, [[1.0, 2.0]])[0, 1] at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[2. 1.]
     [0. 0.]]
correlate2d(x, [[1.0, 2.0]])[0, 1] at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[1. 2.]
     [0. 0.]]
deconvolve([1.0, 3.0, 2.0], d)[0] by d = np.array([1.0, 1.0]) -> [[-1.  0.]
     [-1. -1.]]
upfirdn([1.0, 0.5], x, up=2) by x = np.array([1.0, 2.0]) -> [[1.  0. ]
     [0.5 0. ]
     [0.  1. ]
     [0.  0.5]]
also choose_conv_method correlation_lags

see gradops.scipy.signal.butter
lfilter: signal.lfilter([b], [1.0, -0.5], [1.0, 0.0, 0.0]) by b = 0.5 -> [1.   0.5  0.25]
lfilter_zi: signal.lfilter_zi([b, b], [1.0, -0.5]) by b = 0.5 -> [3.]
lfiltic([0.5], [1.0, -0.5], y) by y = np.array([2.0]) -> [[0.5]]
filtfilt([0.5, 0.5], [1.0], x, padlen=1)[1] at x = np.array([1.0, 2.0, 4.0]) -> [0.25 0.5  0.25]
sosfilt([[0.5, 0.0, 0.0, 1.0, -0.5, 0.0]], x)[2] at x = np.array([1.0, 2.0, 4.0]) -> [0.125 0.25  0.5  ]
sosfilt_zi([[b, 0.0, 0.0, 1.0, -0.5, 0.0]]) by b = 0.5 -> [[1. 0.]]
sosfiltfilt([[0.5, 0.5, 0, 1, 0, 0]], x, padlen=1)[1] at x = np.array([1.0, 2.0, 4.0]) -> [0.25 0.5  0.25]

freqz: abs(signal.freqz([b, 0.5], worN=[1.0])[1][0]) at b = 0.3 -> 0.804635
freqz_sos: abs(signal.freqz_sos([[b, 0.5, 0.0, 1.0, 0.0, 0.0]], worN=[1.0])[1][0]) at b = 0.3 -> 0.804635
sosfreqz: abs(signal.sosfreqz([[b, 0.5, 0.0, 1.0, 0.0, 0.0]], worN=[1.0])[1][0]) at b = 0.3 -> 0.804635
freqz_zpk: abs(signal.freqz_zpk([], [p], 1.0, worN=[1.0])[1][0]) at p = 0.5 -> 0.067409
freqs: abs(signal.freqs([1.0], [a, 1.0], worN=[1.0])[1][0]) at a = 0.5 -> -0.357771
freqs_zpk: abs(signal.freqs_zpk([], [p], 1.0, worN=[1.0])[1][0]) at p = -0.5 -> 0.357771
group_delay(([b, 0.5], [1.0]), w=[1.0])[1][0] at b = 1.0 -> -0.261355
also findfreqs

see gradops.scipy.fft.fft
czt: abs(signal.czt(x)[1]) ** 2 at x = np.array([1.0, 2.0, 4.0]) -> [-4. -1.  5.]
zoom_fft: abs(signal.zoom_fft(x, [0.1, 0.5], 2)[1]) at x = np.array([1.0, 2.0, 4.0]) -> [0.170724 0.897489 0.884337]
lombscargle(np.arange(3.0), y, np.array([1.0, 2.0]))[0] at y = np.array([0.0, 1.0, 0.5]) -> [0.183289 0.801937 0.683289]
vectorstrength(t, 2.0)[0] at t = np.array([0.1, 2.0, 4.3]) -> [ 0.105232  0.422045 -0.527277]
also czt_points

see gradops.scipy.ndimage.zoom
resample(x, 2)[0] at x = np.array([1.0, 2.0, 4.0, 3.0]) -> [ 0.75  0.25 -0.25  0.25]
resample_poly(x, 2, 1)[1] at x = np.array([1.0, 2.0, 4.0]) -> [ 0.633401  0.633401 -0.20186 ]
decimate(x, 2, 2, "fir")[1] at x = np.array([1.0, 2.0, 4.0]) -> [0.       0.046221 0.907557]

see gradops.scipy.ndimage.median_filter
savgol_filter(x, 3, 1)[1] at x = np.array([1.0, 2.0, 4.0]) -> [0.333333 0.333333 0.333333]
medfilt(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [0. 1. 0.]
medfilt2d(x, 1) by x = np.array([[2.0]]) -> [[[[1.]]]]
order_filter(x, np.ones(3), 0)[1] at x = np.array([1.0, 2.0, 4.0]) -> [1. 0. 0.]
wiener(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [0.333333 0.333333 0.333333]
detrend(x)[0] at x = np.array([1.0, 2.0, 4.0]) -> [ 0.166667 -0.333333  0.166667]

hilbert: abs(signal.hilbert(x)[1]) at x = np.array([1.0, 2.0, 4.0]) -> [-0.377964  0.755929  0.377964]
hilbert2: abs(signal.hilbert2(x)[0, 1]) at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[0.25 0.25]
     [0.25 0.25]]
envelope(x)[0][1] at x = np.array([1.0, 2.0, 4.0]) -> [-0.503953 -0.125988  0.629941]

periodogram(x)[1][1] at x = np.array([1.0, 2.0, 4.0, 3.0]) -> [-3. -1.  3.  1.]
welch(x, nperseg=4)[1][1] at x = np.array([1.0, 2.0, 4.0, 3.0]) -> [-1.       -1.666667  3.       -0.333333]
csd: abs(signal.csd(x, np.arange(3.0), nperseg=3)[1][1]) at x = np.arange(3.0) -> [-0.166667 -0.666667  0.833333]
coherence
    >>> at_quarter = lambda x: signal.coherence(x, np.arange(6.0) ** 2, nperseg=4)[1][1]
    >>> print(gradops.grad(at_quarter)(np.array([0.0, 1.0, 3.0, 2.0, 1.0, 0.0])).round(3))
    [ 0.016  0.127 -0.088  0.008  0.119 -0.183]
spectrogram(x, nperseg=4)[2][1, 0] at x = np.array([1.0, 2.0, 4.0, 3.0]) -> [-0.5      -1.833333  1.5       0.833333]
stft: abs(signal.stft(x, nperseg=4)[2][1, 1]) at x = np.array([1.0, 2.0, 4.0]) -> [0.  0.  0.5]
istft(Z, nperseg=2)[1] by Z = np.array([[1.0, 2.0], [0.5, 1.0]]) -> [[[ 0.5  0. ]
      [-0.5  0. ]]]
also check_COLA check_NOLA

chirp(t, 1.0, 2.0, 3.0) at t = 0.3 -> -6.755711
gausspulse(t, fc=2.0) at t = 0.3 -> 6.612857
sweep_poly(t, [1.0, 2.0]) at t = 0.3 -> 11.418788
sawtooth(t) at t = 0.3 -> 0.31831
square(t) at t = 0.3 -> 0.0
gauss_spline(t, 3) at t = 0.3 -> -0.543355
also unit_impulse max_len_seq

see gradops.scipy.signal.lfilter gradops.scipy.signal.sosfilt gradops.scipy.signal.freqz
butter: signal.lfilter(*signal.butter(2, 0.3), x)[2] at x = np.ones(3) -> [0.36481  0.360253 0.131106]
cheby1: signal.lfilter(*signal.cheby1(2, 1.0, 0.3), x)[2] at x = np.ones(3) -> [0.380319 0.383369 0.138225]
cheby2: signal.lfilter(*signal.cheby2(2, 40.0, 0.3), x)[2] at x = np.ones(3) -> [0.031275 0.015995 0.013729]
ellip: signal.lfilter(*signal.ellip(2, 1.0, 40.0, 0.3), x)[2] at x = np.ones(3) -> [0.37991  0.378889 0.144476]
bessel: signal.lfilter(*signal.bessel(2, 0.3), x)[2] at x = np.ones(3) -> [0.325325 0.326166 0.121195]
iirfilter: signal.lfilter(*signal.iirfilter(2, 0.3, btype="low"), x)[1] at x = np.ones(2) -> [0.360253 0.131106]
iirdesign: signal.lfilter(*signal.iirdesign(0.2, 0.5, 1.0, 20.0), x)[1] at x = np.ones(2) -> [0.184361 0.143172]
iirnotch: signal.lfilter(*signal.iirnotch(0.3, 5.0), x)[2] at x = np.ones(3) -> [ 0.058184 -0.092759  0.913636]
iirpeak: signal.lfilter(*signal.iirpeak(0.3, 5.0), x)[2] at x = np.ones(3) -> [-0.058184  0.092759  0.086364]
iircomb: signal.lfilter(*signal.iircomb(0.5, 5.0), x)[2] at x = np.ones(3) -> [0.       0.       0.754763]
also gammatone

see gradops.scipy.signal.convolve gradops.scipy.signal.upfirdn
firwin: signal.convolve(x, signal.firwin(3, 0.3))[2] at x = np.ones(3) -> [0.060379 0.879242 0.060379]
firwin2: signal.convolve(x, signal.firwin2(3, [0, 0.5, 1], [1, 1, 0]))[1] at x = np.ones(2) -> [0.75     0.017071]
firls: signal.convolve(x, signal.firls(3, [0, 0.3, 0.6, 1], [1, 1, 0, 0]))[1] at x = np.ones(2) -> [0.466661 0.29486 ]
remez: signal.convolve(x, signal.remez(3, [0, 0.1, 0.3, 0.5], [1, 0]))[1] at x = np.ones(2) -> [0.361803 0.276393]
savgol_coeffs: signal.convolve(x, signal.savgol_coeffs(3, 1))[2] at x = np.ones(3) -> [0.333333 0.333333 0.333333]
also minimum_phase kaiserord kaiser_beta kaiser_atten

see gradops.scipy.signal.butter
also buttord cheb1ord cheb2ord ellipord buttap cheb1ap cheb2ap ellipap besselap band_stop_obj

see gradops.scipy.signal.freqz
also tf2zpk tf2sos tf2ss zpk2tf zpk2sos zpk2ss sos2tf sos2zpk ss2tf ss2zpk
also abcd_normalize normalize cont2discrete place_poles residue residuez invres invresz unique_roots
also bilinear bilinear_zpk lp2lp lp2hp lp2bp lp2bs lp2lp_zpk lp2hp_zpk lp2bp_zpk lp2bs_zpk

see gradops.scipy.ndimage.maximum_filter
find_peaks: x[signal.find_peaks(ops.stop_gradient(x))[0]].sum() at x = np.array([1.0, 4.0, 2.0]) -> [0. 1. 0.]
argrelmax: x[signal.argrelmax(ops.stop_gradient(x))].sum() at x = np.array([1.0, 4.0, 2.0]) -> [0. 1. 0.]
argrelmin: x[signal.argrelmin(ops.stop_gradient(x))].sum() at x = np.array([4.0, 1.0, 2.0]) -> [0. 1. 0.]
argrelextrema: x[signal.argrelextrema(ops.stop_gradient(x), np.greater)].sum() at x = np.eye(3)[1] -> [0. 1. 0.]
also find_peaks_cwt peak_prominences peak_widths

see gradops.scipy.signal.windows.kaiser
also get_window
"""

WINDOWS = """
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

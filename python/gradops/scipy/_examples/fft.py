"""Examples of ``gradops.scipy.fft``: mostly derivatives of power at a frequency."""

ROWS = """
fft: abs(fft.fft(x)[1]) ** 2 at x = np.array([1.0, 2.0, 4.0]) -> [-4. -1.  5.]
ifft: abs(fft.ifft(x)[1]) ** 2 at x = np.array([1.0, 2.0, 4.0]) -> [-0.444444 -0.111111  0.555556]
rfft: abs(fft.rfft(x)[1]) ** 2 at x = np.array([1.0, 2.0, 4.0]) -> [-4. -1.  5.]
irfft(x) by x = np.array([1.0, 2.0]) -> [[ 0.5  0.5]
     [ 0.5 -0.5]]
hfft(x) by x = np.array([1.0, 2.0]) -> [[ 1.  1.]
     [ 1. -1.]]
ihfft: fft.ihfft(x).real by x = np.array([1.0, 2.0, 4.0]) -> [[ 0.333333  0.333333  0.333333]
     [ 0.333333 -0.166667 -0.166667]]

fft2: abs(fft.fft2(x)[0, 1]) ** 2 at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[-6.  6.]
     [-6.  6.]]
ifft2: abs(fft.ifft2(x)[0, 1]) ** 2 at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[-0.375  0.375]
     [-0.375  0.375]]
rfft2: abs(fft.rfft2(x)[0, 1]) ** 2 at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[-6.  6.]
     [-6.  6.]]
irfft2(x)[0, 1] at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[ 0.25 -0.25]
     [ 0.25 -0.25]]
hfft2(x)[0, 1] at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[ 1. -1.]
     [ 1. -1.]]
ihfft2: fft.ihfft2(x)[0, 1].real at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[ 0.25 -0.25]
     [ 0.25 -0.25]]

fftn: abs(fft.fftn(x)[0, 1]) ** 2 at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[-6.  6.]
     [-6.  6.]]
ifftn: abs(fft.ifftn(x)[0, 1]) ** 2 at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[-0.375  0.375]
     [-0.375  0.375]]
rfftn: abs(fft.rfftn(x)[0, 1]) ** 2 at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[-6.  6.]
     [-6.  6.]]
irfftn(x)[0, 1] at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[ 0.25 -0.25]
     [ 0.25 -0.25]]
hfftn(x)[0, 1] at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[ 1. -1.]
     [ 1. -1.]]
ihfftn: fft.ihfftn(x)[0, 1].real at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[ 0.25 -0.25]
     [ 0.25 -0.25]]

dct(x)[1] at x = np.array([1.0, 2.0, 4.0]) -> [ 1.732051  0.       -1.732051]
idct(x)[1] at x = np.array([1.0, 2.0, 4.0]) -> [ 0.166667  0.       -0.333333]
dst(x)[0] at x = np.array([1.0, 2.0, 4.0]) -> [1. 2. 1.]
idst(x)[1] at x = np.array([1.0, 2.0, 4.0]) -> [ 0.333333  0.       -0.166667]

dctn(x)[0, 1] at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[ 2.828427 -2.828427]
     [ 2.828427 -2.828427]]
idctn(x)[0, 1] at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[ 0.0625   -0.088388]
     [ 0.088388 -0.125   ]]
dstn(x)[0, 1] at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[ 2.828427 -2.828427]
     [ 2.828427 -2.828427]]
idstn(x)[0, 1] at x = np.array([[1.0, 2.0], [3.0, 5.0]]) -> [[ 0.125    -0.088388]
     [ 0.088388 -0.0625  ]]

fht(a, 0.5, 0.0)[1] at a = np.array([1.0, 2.0, 4.0]) -> [-0.129004  0.14855   0.980454]
ifht(A, 0.5, 0.0)[1] at A = np.array([1.0, 2.0, 4.0]) -> [-0.129004  0.14855   0.980454]
also fhtoffset

fftshift(x)[0] at x = np.array([1.0, 2.0, 4.0]) -> [0. 0. 1.]
ifftshift(x)[0] at x = np.array([1.0, 2.0, 4.0]) -> [0. 1. 0.]
also fftfreq rfftfreq

see gradops.scipy.fft.fft
also next_fast_len prev_fast_len
"""

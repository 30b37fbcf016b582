"""Examples of ``gradops.scipy.ndimage``."""

ROWS = """
see gradops.scipy.signal.convolve
correlate1d([1.0, 2.0, 4.0], w)[1] at w = np.array([1.0, 0.0, -1.0]) -> [1. 2. 4.]
convolve1d([1.0, 2.0, 4.0], w)[1] at w = np.array([1.0, 0.0, -1.0]) -> [4. 2. 1.]
correlate(x, [[1.0, 2.0]])[0, 1] at x = np.array([[3.0, 5.0]]) -> [[1. 2.]]
convolve(x, [[1.0, 2.0]])[0, 0] at x = np.array([[3.0, 5.0]]) -> [[2. 1.]]

prewitt(x)[1] at x = np.array([1.0, 2.0, 4.0]) -> [-1.  0.  1.]
sobel(x)[1] at x = np.array([1.0, 2.0, 4.0]) -> [-1.  0.  1.]
laplace(x)[1] at x = np.array([1.0, 2.0, 4.0]) -> [ 1. -2.  1.]
generic_laplace
    >>> def second(x, axis, output, mode, cval):
    ...     return ndimage.correlate1d(x, [1.0, -2.0, 1.0], axis, output, mode, cval)
    >>> print(gradops.grad(lambda x: ndimage.generic_laplace(x, second)[1])(np.array([1.0, 2.0, 4.0])))
    [ 1. -2.  1.]
generic_gradient_magnitude(x, ndimage.sobel)[1] at x = np.array([1.0, 2.0, 4.0]) -> [-1.  0.  1.]

gaussian_filter1d([0.0, 1.0, 0.0], sigma)[1] at sigma = 0.8 -> -0.608794
gaussian_filter(x, 0.8)[0, 0] at x = np.eye(2) -> [[0.529151 0.198277]
     [0.198277 0.074296]]
gaussian_laplace(x, 0.8)[1] at x = np.array([1.0, 2.0, 4.0]) -> [ 0.380397 -0.761191  0.380397]
gaussian_gradient_magnitude(x, 0.8)[1] at x = np.array([1.0, 2.0, 4.0]) -> [-0.425205  0.        0.425205]
uniform_filter1d(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [0.333333 0.333333 0.333333]
uniform_filter(x, 2)[1, 1] at x = np.eye(2) -> [[0.25 0.25]
     [0.25 0.25]]

see gradops.scipy.interpolate.RegularGridInterpolator
map_coordinates([0.0, 1.0, 4.0, 9.0], [[at]])[0] at at = 1.5 -> 2.7
shift([0.0, 1.0, 4.0, 9.0], by)[2] at by = 0.5 -> -2.7
zoom(x, 2, order=1)[1] at x = np.array([1.0, 2.0]) -> [0.666667 0.333333]
rotate(np.eye(3), angle, reshape=False, order=1)[0, 1] at angle = 30.0 -> 0.002338
affine_transform([0.0, 1.0, 4.0, 9.0], [a])[1] at a = 1.5 -> 2.7
spline_filter1d(x)[1] at x = np.array([1.0, 2.0, 4.0]) -> [-0.5  2.  -0.5]
spline_filter(x)[0, 0] at x = np.eye(2) -> [[ 4. -2.]
     [-2.  1.]]

see gradops.ops.segment_sum
sum(x, [1, 1, 2], [1, 2]) by x = np.array([1.0, 3.0, 4.0]) -> [[1. 1. 0.]
     [0. 0. 1.]]
sum_labels(x, [1, 1, 2], 1) at x = np.array([1.0, 3.0, 4.0]) -> [1. 1. 0.]
mean(x, [1, 1, 2], 1) at x = np.array([1.0, 3.0, 4.0]) -> [0.5 0.5 0. ]
variance(x, [1, 1, 2], 1) at x = np.array([1.0, 3.0, 4.0]) -> [-1.  1.  0.]
standard_deviation(x, [1, 1, 2], 1) at x = np.array([1.0, 3.0, 4.0]) -> [-0.5  0.5  0. ]
center_of_mass(x, [1, 1, 2], 1)[0] at x = np.array([1.0, 3.0, 4.0]) -> [-0.1875  0.0625  0.    ]

maximum(x, [1, 1, 2], 1) at x = np.array([1.0, 3.0, 4.0]) -> [0. 1. 0.]
minimum(x, [1, 1, 2], 1) at x = np.array([1.0, 3.0, 4.0]) -> [1. 0. 0.]
median(x, [1, 1, 2], 1) at x = np.array([1.0, 3.0, 4.0]) -> [0.5 0.5 0. ]
maximum_position: x[ndimage.maximum_position(ops.stop_gradient(x))] at x = np.array([1.0, 3.0, 2.0]) -> [0. 1. 0.]
minimum_position: x[ndimage.minimum_position(ops.stop_gradient(x))] at x = np.array([1.0, 3.0, 2.0]) -> [1. 0. 0.]
also extrema histogram

see gradops.scipy.fft.fft
fourier_gaussian([4.0, 2.0, 2.0], sigma)[1] at sigma = 0.5 -> -2.535062
fourier_uniform([4.0, 2.0, 2.0], size)[1] at size = 1.5 -> -0.848826
fourier_shift: ndimage.fourier_shift([4.0, 2.0, 2.0], shift)[1].real at shift = 0.5 -> -3.627599

minimum_filter(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [1. 0. 0.]
maximum_filter(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [0. 0. 1.]
minimum_filter1d(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [1. 0. 0.]
maximum_filter1d(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [0. 0. 1.]
median_filter(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [0. 1. 0.]
rank_filter(x, 0, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [1. 0. 0.]
percentile_filter(x, 50, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [0. 1. 0.]

grey_erosion(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [1. 0. 0.]
grey_dilation(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [0. 0. 1.]
grey_opening(x, 3) by x = np.array([1.0, 2.0, 4.0]) -> [[1. 0. 0.]
     [0. 1. 0.]
     [0. 1. 0.]]
grey_closing(x, 3) by x = np.array([1.0, 2.0, 4.0]) -> [[0. 1. 0.]
     [0. 1. 0.]
     [0. 0. 1.]]
white_tophat(x, 3) by x = np.array([1.0, 4.0, 2.0]) -> [[ 0.  0.  0.]
     [ 0.  1. -1.]
     [ 0.  0.  0.]]
black_tophat(x, 3) by x = np.array([4.0, 1.0, 2.0]) -> [[ 0.  0.  0.]
     [ 0. -1.  1.]
     [ 0.  0.  0.]]
morphological_gradient(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [-1.  0.  1.]
morphological_laplace(x, 3)[1] at x = np.array([1.0, 2.0, 4.0]) -> [ 1. -2.  1.]

see gradops.scipy.ndimage.grey_erosion gradops.scipy.ndimage.grey_dilation
also binary_erosion binary_dilation binary_opening binary_closing binary_hit_or_miss
also binary_fill_holes binary_propagation generate_binary_structure iterate_structure

see gradops.scipy.ndimage.sum
label: ndimage.sum(x, ndimage.label([1, 1, 0, 1])[0], 2) at x = np.arange(4.0) -> [0. 0. 0. 1.]
also find_objects value_indices watershed_ift
also distance_transform_edt distance_transform_cdt distance_transform_bf
"""

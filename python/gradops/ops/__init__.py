"""Every op, on the tensors of every backend: ``gradops.ops.exp(x)``."""

# ruff: noqa: F401, F403, F405

from . import _reasons, image, linalg, nn
from .activations import *
from .attention import *
from .bitwise import *
from .blocks import *
from .bounds import *
from .comparison import *
from .complex_numbers import *
from .control import *
from .conversion import *
from .convolution import *
from .creation import *
from .ctc import *
from .decompositions import *
from .diagonals import *
from .elementwise import *
from .encoding import *
from .extending import *
from .fourier import *
from .indexing import *
from .joining import *
from .losses import *
from .mapping import *
from .nanstatistics import *
from .normalization import *
from .norms import *
from .pooling import *
from .products import *
from .properties import *
from .quantiles import *
from .rearranging import *
from .reductions import *
from .scattering import *
from .sequences import *
from .sets import *
from .shaping import *
from .sorting import *
from .spacing import *
from .special import *
from .statistics import *
from .systems import *
from .windows import *

# The public ops: the rows of tools/ops.csv. What else the families define is for the rules of the tape.
# fmt: off
__all__ = [
    "abs", "absolute", "adaptive_average_pool", "adaptive_max_pool", "add", "all", "allclose", "amax", "amin",
    "angle", "any", "append", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "argmax", "argmin", "argpartition", "argsort", "array", "array_split", "associative_scan", "average",
    "average_pool", "bartlett", "batch_normalization", "binary_crossentropy", "bincount", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "blackman", "broadcast_to", "cast", "categorical_crossentropy", "cbrt", "cdist", "ceil", "celu", "cholesky",
    "cholesky_inverse", "clip", "concatenate", "cond", "conj", "conjugate", "conv", "conv_transpose",
    "convert_to_numpy", "convert_to_tensor", "copy", "corrcoef", "correlate", "cos", "cosh", "count_nonzero",
    "cross", "ctc_decode", "ctc_loss", "cumprod", "cumsum", "custom_gradient", "deg2rad", "depth_to_space",
    "depthwise_conv", "det", "diag", "diagflat", "diagonal", "diff", "digitize", "divide", "divide_no_nan", "dot",
    "dot_product_attention", "dsplit", "dstack", "dtype", "eig", "eigh", "einsum", "elu", "empty", "empty_like",
    "equal", "erf", "erfc", "erfinv", "exp", "exp2", "expand_dims", "expm1", "extract_sequences", "eye", "fabs",
    "fft", "fft2", "flip", "fliplr", "flipud", "floor", "floor_divide", "fmax", "fmin", "fmod", "fold", "fori_loop",
    "full", "full_like", "gcd", "gelu", "geomspace", "get_item", "glu", "greater", "greater_equal", "hamming",
    "hanning", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "heaviside", "histogram",
    "hsplit", "hstack", "hypot", "i0", "identity", "ifft2", "imag", "image", "in_top_k", "inner", "inv", "irfft",
    "is_tensor", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "istft",
    "kaiser", "kron", "layer_normalization", "lcm", "ldexp", "leaky_relu", "left_shift", "less", "less_equal",
    "linspace", "log", "log10", "log1p", "log2", "log_sigmoid", "log_softmax", "logaddexp", "logaddexp2", "logdet",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logspace", "logsumexp", "lstsq", "lu_factor", "map",
    "matmul", "matrix_rank", "max", "max_pool", "maximum", "mean", "median", "meshgrid", "min", "minimum", "mod",
    "moments", "moveaxis", "multi_hot", "multiply", "nan_to_num", "nanargmax", "nanargmin", "nancumprod",
    "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd",
    "nansum", "nanvar", "ndim", "negative", "nextafter", "nn", "nonzero", "norm", "normalize", "not_equal",
    "one_hot", "ones", "ones_like", "outer", "pad", "percentile", "pinv", "polar", "power", "prod", "psnr", "ptp",
    "qr", "quantile", "rad2deg", "ravel", "real", "rearrange", "reciprocal", "relu", "relu6", "repeat", "reshape",
    "rfft", "right_shift", "rms_normalization", "roll", "rot90", "round", "rsqrt", "saturate_cast", "scan",
    "scatter", "scatter_update", "searchsorted", "segment_max", "segment_min", "segment_prod", "segment_sum",
    "select", "selu", "separable_conv", "shape", "sigmoid", "sign", "signbit", "silu", "sin", "sinc", "sinh",
    "size", "slice", "slice_update", "slogdet", "soft_shrink", "softmax", "softplus", "softsign", "solve",
    "solve_triangular", "sort", "space_to_depth", "sparse_categorical_crossentropy", "sparse_plus",
    "sparse_sigmoid", "sparsemax", "split", "sqrt", "square", "squareplus", "squeeze", "stack", "std", "stft",
    "stop_gradient", "subtract", "sum", "svd", "swapaxes", "swish", "switch", "take", "take_along_axis", "tan",
    "tanh", "tanh_shrink", "tensordot", "threshold", "tile", "top_k", "trace", "transpose", "trapezoid", "tri",
    "tril", "triu", "true_divide", "trunc", "unfold", "unique", "unravel_index", "unstack", "vander", "var", "vdot",
    "vectorize", "vectorized_map", "view", "view_as_complex", "view_as_real", "vsplit", "vstack", "where",
    "while_loop", "zeros", "zeros_like",
]
# fmt: on


def __dir__() -> list[str]:
    return __all__

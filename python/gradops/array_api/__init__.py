"""The Python array API standard, version 2024.12, for arrays of four libraries and for variables.

``v.__array_namespace__()`` of a variable is this module, so code that is written to the standard, including much of
SciPy and scikit-learn, can be differentiated. Functions return arrays of their arguments' library. Functions that
create arrays return the default library's, or those of the library of ``device=x.device`` (variables for a variable's
device); in functions being differentiated or compiled, they return arrays that accept variables. Dtypes equal each
library's. In addition to the standard's extensions ``fft`` and ``linalg`` there is ``special``,
:mod:`gradops.scipy.special`, where SciPy looks for an array library's own functions. All names are available from NumPy
2.1 on.

Gradient:
    Like the same functions in :mod:`gradops.ops`, and NumPy's functions on variables.

Examples:
    >>> import numpy as np
    >>> import gradops
    >>> def spread(x):
    ...     xp = x.__array_namespace__()
    ...     return xp.linalg.vector_norm(x - xp.mean(x)) / xp.max(xp.abs(x))
    >>> print(gradops.grad(spread)(np.array([1.0, 2.0, 4.0])).round(3))
    [-0.154 -0.039  0.058]

See Also:
    :mod:`gradops.numpy`, which has NumPy's names and arguments.
"""

import numpy as _np

from .._names import namespace
from . import _creation, _dtypes, _functions, fft, linalg
from ._functions import functions

__array_api_version__ = "2024.12"
_FUNCTIONS = functions("""
abs acos acosh add all any argmax argmin asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift
bitwise_or bitwise_right_shift bitwise_xor broadcast_to ceil concat conj copysign cos cosh
count_nonzero cumulative_prod cumulative_sum diff divide empty_like equal exp expand_dims expm1 flip floor floor_divide
full_like greater greater_equal hypot imag isfinite isin isinf isnan less less_equal log log10 log1p log2 logaddexp
logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum mean min minimum moveaxis
multiply negative nextafter nonzero not_equal ones_like permute_dims positive pow prod real reciprocal remainder repeat
reshape roll round searchsorted sign signbit sin sinh sqrt square squeeze stack std subtract sum take take_along_axis
tan tanh tensordot tile tril triu trunc unique_all unique_counts unique_inverse unique_values unstack var vecdot where
zeros_like
""")
_OF_NO_ARRAY = {name: getattr(_np, name) for name in ("e", "inf", "nan", "newaxis", "pi")}
_DTYPES = {name: _dtypes.DType(name) for name in _dtypes.NAMES}
_WRITTEN = {name: getattr(module, name) for module in (_dtypes, _creation, _functions) for name in module.__all__}
_NAMES = {**_OF_NO_ARRAY, **_DTYPES, **_FUNCTIONS, **_WRITTEN, "fft": fft, "linalg": linalg}
globals().update(_NAMES)
__array_namespace_info__ = _dtypes.Info
__all__ = sorted([*_NAMES, "special"])
__dir__, __getattr__ = namespace(__name__, later=("special",))

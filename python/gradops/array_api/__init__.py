"""The Python array API standard, version 2024.12, on four libraries' arrays and on variables.

``v.__array_namespace__()`` of a variable is this module, so code that is written to the standard, as much of SciPy and
scikit-learn, differentiates. The functions give arrays of the library of their arguments; functions that make arrays
give the default library's, those of the library of ``device=x.device`` where it is given (of a variable's: variables),
and in functions that are differentiated or compiled arrays that take variables. Dtypes are equal to each library's.
Beside the standard's extensions ``fft`` and ``linalg`` there is ``special``, :mod:`gradops.scipy.special`, where SciPy
looks for the functions of an array's own library. It needs NumPy 2.1 or later for all names.

Gradient:
    As of the same functions in :mod:`gradops.ops` and of NumPy's on variables.

Examples:
    >>> import numpy as np
    >>> import gradops
    >>> def spread(x):
    ...     xp = x.__array_namespace__()
    ...     return xp.linalg.vector_norm(x - xp.mean(x)) / xp.max(xp.abs(x))
    >>> print(gradops.grad(spread)(np.array([1.0, 2.0, 4.0])).round(3))
    [-0.154 -0.039  0.058]

See Also:
    :mod:`gradops.numpy`, whose names and arguments are NumPy's.
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

"""``scipy.sparse``: sparse matrices with a constant pattern whose values are a tensor of any library or a variable.

The positions of the elements are constant; the values have derivatives. One class serves all formats: its values are in
column order, and the format decides how ``data``, ``indices`` and ``indptr`` present them. SciPy's own matrices are
accepted wherever these are. Operators take tensors and variables on either side; a result that is not sparse is a
tensor.

Examples:
    >>> import numpy as np
    >>> import gradops
    >>> from gradops.scipy import sparse
    >>> rows, columns = np.array([0, 1, 1, 2]), np.array([0, 0, 1, 2])
    >>> def loss(values):
    ...     A = sparse.csr_array((values, (rows, columns)), shape=(3, 3))
    ...     return sparse.linalg.spsolve(A, np.ones(3)).sum()
    >>> print(gradops.grad(loss)(np.array([2.0, 1.0, 4.0, 5.0])))
    [-0.1875  -0.125   -0.03125 -0.04   ]

See Also:
    :mod:`gradops.scipy.linalg`, :func:`gradops.functional.hessian` with ``sparse=True``.
"""

from .._names import namespace
from . import construction, linalg
from .construction import *  # noqa: F403
from .matrices import (
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    issparse,
    isspmatrix,
    sparray,
    spmatrix,
)

__all__ = [
    "coo_array",
    "coo_matrix",
    "csc_array",
    "csc_matrix",
    "csr_array",
    "csr_matrix",
    "issparse",
    "isspmatrix",
    "linalg",
    "sparray",
    "spmatrix",
    *construction.__all__,
]

_FORMAT = "the formats are CSC, CSR and COO; use `csr_array`, `diags_array` or `block_array`"
_TEST = "use `A.format`"
_RANDOM = "its pattern would change at each call: `csr_array(scipy.sparse.random_array(...))` has a constant one"
_FILE = "use SciPy's for files: `csr_array(scipy.sparse.load_npz(...))`"
_VECTOR = "sparse matrices have two dimensions"
_INSIDE = "it is an internal function of SciPy's"

REFUSED = {
    **{f"{kind}_{form}": _FORMAT for kind in ("bsr", "dia", "dok", "lil") for form in ("array", "matrix")},
    **{f"isspmatrix_{kind}": _TEST for kind in "bsr coo csc csr dia dok lil".split()},
    **dict.fromkeys("rand random random_array".split(), _RANDOM),
    **dict.fromkeys("load_npz save_npz".split(), _FILE),
    **dict.fromkeys("expand_dims permute_dims swapaxes".split(), _VECTOR),
    **dict.fromkeys("get_index_dtype safely_cast_index_arrays".split(), _INSIDE),
    **dict.fromkeys("SparseWarning SparseEfficiencyWarning".split(), "it is a warning of SciPy's"),
    "matrix_transpose": "use `A.T`",
    "csgraph": "paths and trees in graphs are discrete and have no derivative",
}

__dir__, __getattr__ = namespace(__name__, __all__, REFUSED)

"""The bridge to R.

From Python, through rpy2 (``pip install rpy2``): ``r_function`` makes an R function an op, ``as_numpy`` and
``as_r`` convert, ``call_in_thread`` runs a function that waits for R on another thread.

The R package calls the other names, by theme:

- ``ops``: each op as R writes it;
- ``arrays``: the meaning of R's operators and functions on tensors: recycling, filling by column;
- ``calls``: the other functions of gradops, with R's arguments understood;
- ``functional``: derivatives of R functions of R's numbers;
- ``values``: values from R and for R;
- ``lazy``: tensors that R's handles make when they are read, of logged assignments and operations on numbers;
- ``callbacks``: R functions as Python functions;
- ``errors``: failures, which are returned, not raised;
- ``likelihoods``: likelihoods of R functions, random effects and fits;
- ``objects``: tensors as R shows and saves them;
- ``profiling``: where the time of a call goes;
- ``session``: warnings and interrupts under R;
- ``text``: text variables, and the layer on them.
"""

from ..._names import namespace
from .arrays import as_double, crossprod, fill, filled, flat, matmul, operator_form, repeated, tcrossprod
from .callbacks import callback, set_adopt
from .calls import (
    add_hook,
    assign,
    attribute,
    check_gradients,
    explain,
    function,
    get_item,
    guarded,
    host_op,
    invoke,
    made,
    profile_rows,
    put,
    subset,
    to_backend,
    to_r,
    variable,
    vectorize,
)
from .code_comparisons import decided, if_known, is_recorded, keeps, placed
from .errors import CallbackError, Failure
from .functional import compiled, curvature, derivative, gradient, objective, on_engine, on_shards, sparse
from .functions import as_numpy, as_r, call_in_thread, check_extended_op, extended_op, r_function
from .jit import direct, pair
from .lazy import assembled, floats_of_scalars, lasts, part, scalar_names, scalars, takes_scalars, write_scalars
from .likelihoods import free_start, likelihood, transform
from .objects import corner, fields, graph, is_method, pack, unpack
from .ops import INDEX_RESULTS, TENSORS, annotation, find, has_positions, op, parameters
from .profiling import Clock, Functions
from .reticulate import missing
from .session import choose_backend, hold_interrupts, in_no_scope, set_progress, set_warn
from .text import backward_each, invoke_method, is_text, model_field, named, set_value
from .threads import set_patience
from .values import as_axis, as_index, describe, dim, from_r

__all__ = [
    "floats_of_scalars",
    "scalar_names",
    "scalars",
    "takes_scalars",
    "write_scalars",
    "INDEX_RESULTS",
    "TENSORS",
    "CallbackError",
    "Clock",
    "Failure",
    "Functions",
    "add_hook",
    "backward_each",
    "check_extended_op",
    "check_gradients",
    "choose_backend",
    "annotation",
    "as_axis",
    "as_double",
    "as_index",
    "as_numpy",
    "as_r",
    "assembled",
    "assign",
    "attribute",
    "call_in_thread",
    "callback",
    "corner",
    "crossprod",
    "compiled",
    "curvature",
    "decided",
    "derivative",
    "describe",
    "direct",
    "dim",
    "explain",
    "extended_op",
    "fields",
    "fill",
    "filled",
    "find",
    "flat",
    "from_r",
    "function",
    "get_item",
    "gradient",
    "graph",
    "guarded",
    "has_positions",
    "if_known",
    "hold_interrupts",
    "in_no_scope",
    "host_op",
    "invoke",
    "invoke_method",
    "made",
    "missing",
    "is_method",
    "is_recorded",
    "keeps",
    "lasts",
    "free_start",
    "likelihood",
    "transform",
    "is_text",
    "matmul",
    "model_field",
    "named",
    "objective",
    "on_engine",
    "on_shards",
    "op",
    "operator_form",
    "part",
    "pack",
    "pair",
    "parameters",
    "placed",
    "profile_rows",
    "put",
    "r_function",
    "repeated",
    "set_adopt",
    "set_patience",
    "set_progress",
    "set_value",
    "set_warn",
    "sparse",
    "subset",
    "tcrossprod",
    "to_backend",
    "to_r",
    "unpack",
    "variable",
    "vectorize",
]

__dir__, __getattr__ = namespace(__name__)

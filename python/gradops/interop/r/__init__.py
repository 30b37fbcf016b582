"""The bridge to R.

From Python, through rpy2 (``pip install rpy2``): ``r_function`` makes an R function an op, ``as_numpy`` and
``as_r`` convert, ``call_in_thread`` runs a function that waits for R on another thread.

The R package calls the other names, by theme:

- ``calls``: the ops and the other functions of gradops, with R's arguments understood;
- ``arrays``: the meaning of R's operators and functions on tensors: recycling, filling by column;
- ``functional``: derivatives of R functions of R's numbers;
- ``stats``: R's functions of its package stats;
- ``values``: values from R and for R;
- ``lazy``: tensors that R's handles make when they are read, of logged assignments and operations on numbers;
- ``callbacks``: R functions as Python functions;
- ``errors``: failures, which are returned, not raised;
- ``likelihoods``: likelihoods of R functions, random effects and fits;
- ``objects``: tensors and texts as R shows and saves them;
- ``session``: warnings, interrupts and profilers under R.
"""

from ..._names import namespace
from .arrays import as_double, crossprod, fill, filled, flat, matmul, operator_form, repeated, tcrossprod
from .callbacks import callback, set_adopt
from .calls import (
    INDEX_RESULTS,
    TENSORS,
    add_hook,
    annotation,
    assign,
    attribute,
    check_gradients,
    explain,
    find,
    function,
    get_item,
    guarded,
    has_positions,
    host_op,
    invoke,
    made,
    op,
    parameters,
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
from .objects import (
    backward_each,
    corner,
    fields,
    graph,
    invoke_method,
    is_method,
    is_text,
    model_field,
    named,
    pack,
    set_value,
    unpack,
)
from .reticulate import missing
from .session import Clock, Functions, choose_backend, hold_interrupts, in_no_scope, set_progress, set_warn
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

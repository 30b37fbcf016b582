"""The bridge to R: Python code calls R functions through rpy2, and the R package calls gradops through reticulate.

From Python (``pip install rpy2``), ``r_function`` turns an R function into an op, ``as_numpy`` and ``as_r`` convert
values, and ``call_in_thread`` runs a function that waits for R on another thread.

The R package calls the other names, which are grouped by module:

- ``calls``: the ops and other functions of gradops, taking R's arguments;
- ``arrays``: R's operators and array functions on tensors (recycling, filling by column);
- ``functional``: derivatives of R functions of R numbers;
- ``stats``: functions of R's package stats;
- ``values``: conversion of values from R and to R;
- ``lazy``: tensors built from R's logs of assignments and scalar operations when R reads them;
- ``callbacks``: R functions as Python functions;
- ``errors``: failures, which are returned rather than raised;
- ``likelihoods``: likelihoods written in R, with random effects and fits;
- ``objects``: tensors and texts as R prints and saves them;
- ``session``: warnings, interrupts and profilers under R.
"""

# ruff: noqa: F401

from types import ModuleType as _Module

from ..._call_sites import set_host
from ..._names import namespace as _namespace
from .arrays import as_double, crossprod, fill, filled, flat, matmul, operator_form, repeated, tcrossprod
from .callbacks import callback, set_adopt
from .calls import (
    TENSORS,
    add_hook,
    annotation,
    assign,
    attribute,
    check_gradients,
    explain,
    find,
    follow,
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
from .code_comparisons import decided, doubtful, if_known, is_recorded, keeps, placed
from .errors import CallbackError, Failure
from .functional import (
    compiled,
    curvature,
    derivative,
    gradient,
    is_on_engine,
    objective,
    saved_residuals,
    sharded_objective,
    sparse,
    value_and_jacobian,
)
from .functions import as_numpy, as_r, call_in_thread, check_extended_op, extended_op, r_function
from .jit import alone, direct, pair
from .lazy import assembled, floats_of_scalars, lasts, part, scalar_names, scalars, takes_scalars, write_scalars
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
from .session import Clock, Functions, can_skip_recording, choose_backend, hold_interrupts, set_progress, set_warn
from .threads import set_patience
from .values import as_axis, as_index, describe, dim, from_r

__all__ = [name for name, value in list(globals().items()) if name[0] != "_" and not isinstance(value, _Module)]

__dir__, __getattr__ = _namespace(__name__)

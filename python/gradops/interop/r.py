"""The bridge to R: what the R package calls, by theme.

- ``_r_ops``: each op as R writes it;
- ``_r_calls``: the other functions of gradops, with R's arguments understood;
- ``_r_values``: values from R and for R;
- ``_r_callbacks``: R functions as Python functions;
- ``_r_errors``: failures, which are returned, not raised.
"""

from ._r_callbacks import callback, set_adopt
from ._r_calls import (
    assign,
    attribute,
    function,
    get_item,
    guarded,
    invoke,
    invoke_on_tensors,
    profile_rows,
    subset,
    variable,
    vectorize,
)
from ._r_errors import CallbackError, Failure
from ._r_ops import INDEX_RESULTS, TENSORS, annotation, find, has_positions, op, parameters
from ._r_values import as_axis, as_index, describe, dim, from_r, to_r

__all__ = [
    "INDEX_RESULTS",
    "TENSORS",
    "CallbackError",
    "Failure",
    "annotation",
    "as_axis",
    "as_index",
    "assign",
    "attribute",
    "callback",
    "describe",
    "dim",
    "find",
    "from_r",
    "function",
    "get_item",
    "guarded",
    "has_positions",
    "invoke",
    "invoke_on_tensors",
    "op",
    "parameters",
    "profile_rows",
    "set_adopt",
    "subset",
    "to_r",
    "variable",
    "vectorize",
]

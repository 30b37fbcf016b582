"""Every op in a loop compiled on NumPy: whether it is native there, and if not, why.

`test_native_loops.py` checks the reasons, and `tools/ops_table.py` writes them to docs/ops.md.
"""

from __future__ import annotations

import numpy as np
from parity import flat, loss, weights

from gradops import backends, ops, value_and_grad
from gradops.errors import GradopsError
from gradops.jit import jit

CALLED = {
    "attention_forward": "computed by NumPy in blocks; used only by the fused form",
    "column_sums": "computed by NumPy, window by window",
    "conv_to_inputs": "matrix products whose operands NumPy assembles",
    "conv_to_kernel": "matrix products whose operands NumPy assembles",
    "conv_to_output": "matrix products whose operands NumPy assembles",
    "countable": "checks that numbers are integers and raises its own error",
    "ctc_beams": "a search in Python",
    "eigh": "LAPACK, called by NumPy",
    "expm": "computed by SciPy",
    "gcd": "computed by NumPy",
    "gelu": "computed by NumPy, with formulas for its tails",
    "lcm": "computed by NumPy",
    "ldexp": "computed by NumPy",
    "lu_factor": "LAPACK, called by SciPy",
    "nextafter": "native only for float64",
    "polygamma": "native only for order 0",
    "qr": "LAPACK, called by NumPy",
    "segment_max": "computed by NumPy, segment by segment",
    "segment_min": "computed by NumPy, segment by segment",
    "sliding_product": "computed by NumPy, window by window",
    "svd": "LAPACK, called by NumPy",
    "view": "native only between float64 and int64",
    "window_columns": "computed by NumPy, window by window",
    "window_max": "computed by NumPy, window by window",
    "window_positions": "computed by NumPy, window by window",
    "window_spread": "computed by NumPy, window by window",
    "window_sum": "computed by NumPy, window by window",
}
"""Ops whose kernels a native loop calls, and why; includes the ops of `gradops.scipy` without a rule."""


def rows_of(value):
    """Stack an array four times, also inside lists."""
    return [rows_of(x) for x in value] if isinstance(value, list) else np.stack([value] * 4)


def is_given(value, kinds: str) -> bool:
    items = value if isinstance(value, list) else [value]
    return all(isinstance(x, np.ndarray) and x.dtype.kind in kinds for x in items) and bool(items)


def explained(function, arguments: dict, gradients=()):
    """Explain a loop that calls a function on each row, with its derivative; None if the loop has no program.

    Integer and boolean arrays are constants if a loop over them is refused.
    """
    for kinds in ("biuf", "f"):
        given = {name: rows_of(value) for name, value in arguments.items() if is_given(value, kinds)}
        known = {name: value for name, value in arguments.items() if name not in given}
        active = {name: value for name, value in given.items() if name in gradients}

        def total(active, others, known=known):
            def step(state, row):
                results = flat(function(**{name: {**known, **row}[name] for name in arguments}))
                value = loss(results, weights(results))
                rows = [ops.cast(y, "float64") for y in results if is_number(y)]
                return (state if value is None else state + value), rows

            return ops.scan(step, np.float64(0.0), {**active, **others})

        f = value_and_grad(total, has_aux=True) if active else total
        compiled = jit(lambda active, others, f=f: f(active, others))
        try:
            compiled(active, {name: value for name, value in given.items() if name not in active})
        except (GradopsError, TypeError, ValueError):
            continue
        return next(iter(compiled.programs.values())).native
    return None


def is_number(x) -> bool:
    return backends.backend_of(getattr(x, "data", x)) is not None and "complex" not in ops.dtype(x)


def met(explanation) -> tuple[set[str], list[str]]:
    """Return the ops that native loops leave to NumPy, and the reasons why loops leave native code."""
    return {name for name, _ in explanation.called}, [reason for name, reason in explanation.refused if name == "scan"]

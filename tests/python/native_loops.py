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
    "attention_forward": "NumPy's own, in blocks, for its fused form alone",
    "column_sums": "NumPy's own, window by window",
    "conv_to_inputs": "products of matrices that NumPy puts together",
    "conv_to_kernel": "products of matrices that NumPy puts together",
    "conv_to_output": "products of matrices that NumPy puts together",
    "countable": "a check of whole numbers with an error of its own",
    "ctc_beams": "a search in Python",
    "eigh": "LAPACK's, by NumPy",
    "expm": "SciPy's own",
    "gcd": "NumPy's own",
    "gelu": "NumPy's own, with formulas for its tails",
    "lcm": "NumPy's own",
    "ldexp": "NumPy's own",
    "lu_factor": "LAPACK's, by SciPy",
    "nextafter": "native of float64",
    "polygamma": "native of order 0",
    "qr": "LAPACK's, by NumPy",
    "segment_max": "NumPy's own, segment by segment",
    "segment_min": "NumPy's own, segment by segment",
    "sliding_product": "NumPy's own, window by window",
    "svd": "LAPACK's, by NumPy",
    "view": "native between float64 and int64",
    "window_columns": "NumPy's own, window by window",
    "window_max": "NumPy's own, window by window",
    "window_positions": "NumPy's own, window by window",
    "window_spread": "NumPy's own, window by window",
    "window_sum": "NumPy's own, window by window",
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

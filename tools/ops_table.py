#!/usr/bin/env python3
"""Writes docs/ops.md: each row of tools/ops.csv, how each backend has it and how it is differentiated.

    tools/ops_table.py            write it, and the column python_args of tools/ops.csv
    tools/ops_table.py --check    fail if either is stale
    tools/ops_table.py --missing  list the rows without an op, or whose gradient, or a parity case of it, is missing

Nothing in the table is written by hand: the kernels are those of the backends' modules, the rules those
of gradops.autodiff, and what is tested is what tests/python/cases has. It needs every backend installed.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import io
import os
import pathlib
import pkgutil
import sys
from collections import Counter
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
TABLE = ROOT / "tools" / "ops.csv"
TARGET = ROOT / "docs" / "ops.md"

COMPILERS = ("`torch.compile`", "`tf.function`", "with XLA", "`jax.jit`")

HEAD = """\
# The ops

Each op of gradops, by backend: `native`, a kernel of its own there, or `composed`, made of other ops. Its
gradient: a `rule` for the tape, or `composed` of the gradients of what it is made of; `-` where there is none
to have (comparisons, positions, rounding). Second gradient: `tested` where the parity test compares it with a
framework's own or with finite differences, as it does the first; `no case` where that test does not have the op
(those that take functions are tested each by itself). On PyTorch, TensorFlow and JAX an op is also differentiated
by the framework itself.

Compiled: what the libraries' own compilers do with values and gradients of an op whose tensors are all arguments of
what is compiled: `torch.compile(fullgraph=True)`, `tf.function`, that with `jit_compile=True` (XLA), and `jax.jit`.
`yes`; `values`, where the gradient is not compiled; `no`, which is an error. The reasons stand below the table. It is
what `tests/python/test_engines_compiled.py` finds, in float64 on the CPU; `gradops.jit` takes all ops but those of
which values decide the shape (`test_parity_jit.py`), and on NumPy `nonzero`, `where` and masks of these too.

Written by `tools/ops_table.py` from the code; do not edit.
"""


LOOPS = """\
`gradops.jit` on NumPy runs loops (`scan`, `fori_loop`, `while_loop`, `cond`) and their derivatives as native code,
whatever ops are in them, of float64, float32, int64, int32 and truth values; complex numbers, other dtypes and
arrays of more than 4,096 numbers leave it. Most ops are native there themselves. These are NumPy's own, called from
within the loop (`f.explain()` names them), which costs some microseconds each, as are the functions of
`gradops.scipy.special` that are no single function of SciPy's:
"""


def loops() -> list[str]:
    """The ops that are NumPy's own in native loops, and why."""
    import native_loops

    return [f"- `{op}`: {why}." for op, why in native_loops.CALLED.items()]


def rows() -> list[dict[str, str]]:
    with open(TABLE, newline="") as file:
        return list(csv.DictReader(file))


def with_arguments() -> str:
    """tools/ops.csv, its column of Python's arguments as the functions' signatures have them."""
    text = io.StringIO()
    found = rows()
    writer = csv.DictWriter(text, found[0], lineterminator="\r\n")
    writer.writeheader()
    for row in found:
        function = lookup(row["python_name"])
        writer.writerow({**row, "python_args": "" if function is None else arguments(function)})
    return text.getvalue()


def arguments(function: Any) -> str:
    """The formals of a function, without annotations: ``x, axis=None``."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))[1:-1]


def tested() -> set[str]:
    """The ops whose gradients the parity test compares."""
    import cases

    from gradops.ops import _dispatch

    found = set()
    for module in pkgutil.iter_modules(cases.__path__):
        for case in importlib.import_module(f"cases.{module.name}").CASES:
            if case.gradients:
                found.add(_dispatch.registry[case.op].name if case.op in _dispatch.registry else case.op)
    return found


def compiled() -> tuple[dict[str, list[str]], list[str]]:
    """The ops under the libraries' compilers, as recorded, and the lines that say why not all are."""
    import compilers

    found = {op: list(row.values()) for op, row in compilers.recorded().items()}
    shown = {row["python_name"] for row in rows()}
    reasons = [f"- `{op}`: {why}." for op, why in compilers.REASONS.items() if op in shown]
    return found, reasons


def canonical(name: str) -> str:
    """The name under which an op has its cases: its own, not an alias."""
    from gradops.ops import _dispatch

    return _dispatch.registry[name].name if name in _dispatch.registry else name


def lookup(name: str) -> Any:
    """The public function called ``name`` in gradops.ops, or None."""
    from gradops import ops

    target: Any = ops
    for part in name.split("."):
        target = getattr(target, part, None)
    return target if callable(target) else None


def describe(name: str, second: set[str]) -> tuple[list[str], str, str]:
    """Of an op: the cell of each backend, of its gradient and of its second gradient."""
    from gradops import backends
    from gradops.autodiff import record
    from gradops.ops import _dispatch

    op, function = _dispatch.registry.get(name), lookup(name)
    if op is None and function is None:
        return ["missing"] * len(backends.NAMES), "missing", ""
    if op is None:
        kernels = ["composed"] * len(backends.NAMES)
        gradient = "composed" if "Gradient:" in (inspect.getdoc(function) or "") else "-"
    else:
        has_kernel = [backends.by_name(b).kernel(op.name) is not None for b in backends.NAMES]
        kernels = ["native" if k else "composed" if op.body else "missing" for k in has_kernel]
        documented = "Gradient:" in (inspect.getdoc(function or op.call) or "")
        if not op.differentiable or not documented:
            gradient = "-"
        elif record.has_derivative(op.name):
            gradient = "rule"
        else:
            gradient = "composed" if op.body else "missing"
    if gradient in ("-", "missing"):
        return kernels, gradient, ""
    return kernels, gradient, "tested" if (op.name if op else name) in second else "no case"


def table() -> tuple[str, list[str]]:
    """The page, and what is missing in it."""
    from gradops import backends

    second, (programs, reasons), lines, lacking = tested(), compiled(), [], []
    counts: Counter[str] = Counter()
    for row in rows():
        name = row["python_name"]
        if not name:
            lines.append(f"| `{row['r_name']}()` | R only |" + " |" * (len(backends.NAMES) + 2 + len(COMPILERS)))
            counts["R only"] += 1
            continue
        kernels, gradient, again = describe(name, second)
        inside = programs.get(name) or programs.get(canonical(name)) or [""] * len(COMPILERS)
        cells = [*kernels, gradient, again, *inside]
        lines.append(f"| `{row['r_name']}()` | `{name}` | {' | '.join(cells)} |")
        missing = "missing" in (*kernels, gradient)
        counts["missing" if missing else "differentiable" if again else "without a gradient"] += 1
        if missing or again == "no case":
            lacking.append(f"{name}: {', '.join(kernels)}; gradient {gradient} {again}".rstrip())
    summary = ", ".join(f"{count} {what}" for what, count in counts.items())
    head = ["R", "Python", *backends.NAMES, "gradient", "second gradient", *COMPILERS]
    page = [HEAD, f"{len(lines)} ops: {summary}.", "", f"| {' | '.join(head)} |", "|" + " --- |" * len(head), *lines]
    page += ["", "What is not compiled:", "", *reasons, "", LOOPS, *loops()]
    return "\n".join(page) + "\n", lacking


def main() -> int:
    page, lacking = table()
    if "--missing" in sys.argv:
        print("\n".join(lacking) or "nothing is missing")
        return 0
    written = {TABLE: with_arguments(), TARGET: page}
    if "--check" in sys.argv:
        stale = [path for path, text in written.items() if not path.exists() or path.read_bytes() != text.encode()]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run tools/ops_table.py", file=sys.stderr)
        return 1 if stale else 0
    for path, text in written.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())

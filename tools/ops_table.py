#!/usr/bin/env python3
"""Writes docs/ops.md and docs/rules.md: for each op how each backend implements it, and its rules.

    tools/ops_table.py            write the pages
    tools/ops_table.py --check    fail if one is stale
    tools/ops_table.py --where cumprod   print where an op and its rules are
    tools/ops_table.py --missing  list the ops without an op, a gradient, or a parity case of the gradient

The table is derived from the code: kernels from the backends' modules, rules from gradops.autodiff, tests from
tests/python/cases. It needs every backend installed.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pathlib
import pkgutil
import re
import sys
from collections import Counter
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("python", "tests/python", "tools")]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import families  # noqa: E402

TARGET, RULES = ROOT / "docs" / "ops.md", ROOT / "docs" / "rules.md"

COMPILERS = ("`torch.compile`", "`tf.function`", "with XLA", "`jax.jit`")

HEAD = """\
# The ops

The columns of the backends say whether an op has a `native` kernel there or is `composed` of other ops. The gradient
is a `rule` for the tape, `composed` of the gradients of other ops, or `-` if there is none (comparisons, positions,
rounding). The second gradient is `tested` if the parity test compares it, like the first, with a framework's own or
with finite differences; it is `no case` if that test does not have the op (ops that take functions have tests of their
own). On PyTorch, TensorFlow and JAX the framework itself can differentiate an op as well.

The last columns show whether the libraries' own compilers take values and gradients of an op whose tensors are all
arguments of the compiled function: `torch.compile(fullgraph=True)`, `tf.function`, `tf.function` with
`jit_compile=True` (XLA), and `jax.jit`. `yes` means both, `values` that the gradient is not compiled, `no` an error;
the reasons are below the table. The entries come from `tests/python/test_engines_compiled.py`, in float64 on the CPU.
`gradops.jit` takes all ops except those whose values decide the shape (`test_parity_jit.py`), and on NumPy it takes
`nonzero`, `where` and masks as well.

Written by `tools/ops_table.py` from the code; do not edit.
"""


HEAD_OF_RULES = """\
# The rules of the ops

What is known of an op stands at its entry in the registry (`python/gradops/ops/_registry.py`): facts, which its
`@op(...)` declares, and rules, which the modules that use them register. This page shows for each op which rules it has
and where, as paths in `python/gradops`.

- `facts`: what `@op(...)` declares. `tests/python/test_facts.py` checks them.
- `vjp`: the derivative for a backward pass, with the arguments that have one; `jvp`: that for forward mode.
- `batch`: the op on all members of a batch at once, for Jacobians and `vmap`.
- `pattern`: the elements of the arguments that an element of the result depends on.
- `series`: Taylor coefficients, for `jet`.
- `native`: compiled programs on NumPy; an `instruction` is one function of NumPy, SciPy or the C library.
- `others`: rules of one part: `tiles`, `turned` and `ufuncs` for native code on large arrays, `look` for shapes that
  depend on values, `recorder` and `squares` for squares of lengths, `R operands` and `R missing` for R's arithmetic.

`facts` in a cell: the rule follows from the op's facts. `body`: the op is composed of others, whose rules serve. `vjp`:
the rule follows from the derivative. `-`: no rule, so the general way serves: one member of a batch after the
other, all elements depend on all, NumPy's kernel. An op without a derivative is constant for derivatives and series.

Written by `tools/ops_table.py` from the code; do not edit.

"""


LOOPS = """\
`gradops.jit` on NumPy runs loops (`scan`, `fori_loop`, `while_loop`, `cond`) and their derivatives as native code,
whatever ops they contain, in float64, float32, int64, int32 and bool. Complex numbers, other dtypes and arrays of more
than 4,096 numbers fall back to NumPy. Most ops have native code themselves. The following ops, and the functions of
`gradops.scipy.special` that are not a single function in SciPy, call NumPy from within the loop, which costs some
microseconds each (`f.explain()` names them):
"""


def loops() -> list[str]:
    """Return the ops that call NumPy in native loops, and why."""
    import native_loops

    return [f"- `{op}`: {why}." for op, why in native_loops.CALLED.items()]


def tested() -> set[str]:
    """Return the ops whose gradients the parity test compares."""
    import cases

    from gradops.ops import _dispatch

    found = set()
    for module in pkgutil.iter_modules(cases.__path__):
        for case in importlib.import_module(f"cases.{module.name}").CASES:
            if case.gradients:
                found.add(_dispatch.registry[case.op].name if case.op in _dispatch.registry else case.op)
    return found


def compiled() -> tuple[dict[str, list[str]], list[str]]:
    """Return the recorded results of the ops under the libraries' compilers, and the lines that explain failures."""
    import compilers

    found = {op: list(row.values()) for op, row in compilers.recorded().items()}
    shown = {row["python_name"] for row in families.rows()}
    reasons = [f"- `{op}`: {why}." for op, why in compilers.REASONS.items() if op in shown]
    return found, reasons


def canonical(name: str) -> str:
    """Return an op's own name, under which it has its cases, also for an alias."""
    from gradops.ops import _dispatch

    return _dispatch.registry[name].name if name in _dispatch.registry else name


def lookup(name: str) -> Any:
    """Return the public function ``name`` of gradops.ops, or None."""
    from gradops import ops

    target: Any = ops
    for part in name.split("."):
        target = getattr(target, part, None)
    return target if callable(target) else None


def describe(name: str, second: set[str]) -> tuple[list[str], str, str]:
    """Return an op's cells: one for each backend, the gradient and the second gradient."""
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
        has_kernel = [backends.lookup(b).kernel(op.name) is not None for b in backends.NAMES]
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
    """Return the page, and a list of what is missing in it."""
    from gradops import backends

    second, (programs, reasons), lines, lacking = tested(), compiled(), [], []
    counts: Counter[str] = Counter()
    for row in families.rows():
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


def rules(op: Any) -> dict[str, str]:
    """Return the rules of an op by column of docs/rules.md, with what they follow from or where they are."""
    from gradops import backends
    from gradops.functional import batched
    from gradops.jit import native, sparsity

    own = {kind: _written_in(function) for kind, function in op.rules.items() if kind not in ("vjp", "native")}
    facts, kernel = op.facts, backends.embedded().kernel(op.name)
    general = "-" if kernel is not None else "body"
    moved = facts.linear or facts.multilinear or facts.moves
    known, derivative = native.registry.known_of(op.name), op.rules.get("vjp")
    found = {"facts": ", ".join(name for name in vars(facts) if getattr(facts, name) != getattr(type(facts), name))}
    if derivative is not None:
        files = {_written_in(function).partition(":")[0] for function in derivative.rules.values()}
        found["vjp"] = f"{', '.join(sorted(files))}: {', '.join(derivative.rules)}"
        found["jvp"] = "facts" if moved or facts.elementwise else "vjp"
        series = "facts" if moved else "vjp" if facts.elementwise or op.body is None else "body"
    else:
        found["vjp"] = found["jvp"] = series = "body" if op.differentiable and op.body is not None else "-"
        series = "facts" if moved and op.differentiable else series
    found["batch"] = own.pop("batch", "facts" if batched.rule_of(op) and kernel is not None else general)
    found["pattern"] = own.pop("pattern", "facts" if sparsity.rule_of(op.name) and kernel is not None else general)
    found["series"] = own.pop("series", series)
    if "native" in op.rules:
        found["native"] = _written_in(known.rule)
    else:
        found["native"] = f"instruction {known.meaning}" if known.meaning else "facts" if known.rule else general
    found["others"] = "; ".join(f"{kind}: {at}" for kind, at in sorted(own.items()))
    return found


def _written_in(function: Any) -> str:
    """Return a function's file in the package, and its name if it has one."""
    code = inspect.unwrap(function).__code__
    path = str(pathlib.Path(code.co_filename).relative_to(ROOT / "python" / "gradops"))
    return path if "<" in code.co_name else f"{path}:{code.co_name}"


def rules_page() -> str:
    """Return docs/rules.md."""
    import gradops  # noqa: F401
    from gradops.interop import r  # noqa: F401  # which registers rules
    from gradops.ops import _dispatch

    ops = [op for name, op in sorted(_dispatch.registry.items()) if name == op.name]
    homes = [sys.modules.get(op.call.__module__) for op in ops]  # not those of ops of other packages, and of tests
    known = [getattr(home, op.call.__name__, None) is op.call for op, home in zip(ops, homes)]
    rows = {op.name: rules(op) for op, is_own in zip(ops, known) if is_own and "gradops.ops." in op.call.__module__}
    columns = ["op", *rows["add"]]
    lines = [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    lines += [f"| `{name}` | {' | '.join(row.values())} |".replace("|  |", "| |") for name, row in rows.items()]
    return HEAD_OF_RULES + "\n".join(lines) + "\n"


def where(name: str) -> list[str]:
    """Return the places of an op in the source: its body, kernels, rules and cases."""
    import cases

    from gradops import backends
    from gradops.functional import taylor  # noqa: F401  # which registers rules
    from gradops.jit import native, sparsity  # noqa: F401
    from gradops.ops import _dispatch

    op = _dispatch.registry[name]
    found = {"op": written(op.name, "ops")}
    for library in backends.NAMES:
        if kernel := backends.lookup(library).kernel(op.name):
            found[f"kernel, {library}"] = written(op.name, f"backends/{library}") or place(kernel)
    own = dict(op.rules)
    derivatives = own.pop("vjp").rules if "vjp" in own else {}
    found |= {f"derivative by {argument}": place(rule) for argument, rule in derivatives.items()}
    if not derivatives and op.body and op.differentiable:
        found["derivative"] = "none of its own: that of the ops in its body"
    found |= {f"{kind} rule": place(rule.rule if kind == "native" else rule) for kind, rule in own.items()}
    for module in pkgutil.iter_modules(cases.__path__):
        if any(case.op in (name, op.name) for case in importlib.import_module(f"cases.{module.name}").CASES):
            found[f"cases, {module.name}"] = f"tests/python/cases/{module.name}.py"
    return [f"{what + ':':22} {at}" for what, at in found.items() if at]


def written(name: str, folder: str) -> str:
    """Return the file and line that define a name in a folder of the package, or ""."""
    for path in sorted((ROOT / "python" / "gradops" / folder).glob("*.py")):
        if found := re.search(rf"^(def {name}\(|{name}\b[^=\n(]*= )", text := path.read_text(), re.M):
            return f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}"
    return ""


def place(function: Any) -> str:
    """Return the file and line of a function; a description if it is not written in this repository; "" for None."""
    if function is None:
        return ""
    code = getattr(inspect.unwrap(getattr(function, "func", function)), "__code__", None)
    path = pathlib.Path(code.co_filename) if code else ROOT.parent
    return f"{path.relative_to(ROOT)}:{code.co_firstlineno}" if path.is_relative_to(ROOT) else repr(function)


def main() -> int:
    if "--where" in sys.argv:
        print("\n".join(line for name in sys.argv[2:] for line in where(name)))
        return 0
    page, lacking = table()
    pages = {TARGET: page, RULES: rules_page()}
    if "--missing" in sys.argv:
        print("\n".join(lacking) or "nothing is missing")
        return 0
    if "--check" in sys.argv:
        stale = [path.name for path, text in pages.items() if path.read_text() != text]
        for name in stale:
            print(f"docs/{name} is stale: run tools/ops_table.py", file=sys.stderr)
        return bool(stale)
    for path, text in pages.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The floors of the core and the imports between them, read from the sources.

Run as a script it writes the picture in docs/architecture.md. Every import counts: in a function, under
``TYPE_CHECKING``, and where a string names the module, as in ``import_module(".x", __package__)``,
``pkgutil.resolve_name("gradops.x")``, ``sys.modules["gradops.x"]`` and ``namespace(__name__, later=("x",))``. A name of
``gradops/__init__.py`` is an import of that file, the floor below R. import-linter 2.17 does not see modules named in
strings, and does not tell whether an import is in a function.
"""

from __future__ import annotations

import ast
import functools
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "python" / "gradops"
PAGE = ROOT / "docs" / "architecture.md"

FLOORS = [  # lowest first; a module imports from lower floors, and from its own floor only within one package
    ("_names", "_version", "_cache"),
    ("_bytecode", "errors", "annotations", "_call_sites", "_display", "_scipy", "_scopes"),
    ("dtypes", "_tree", "_functions"),
    ("backends",),
    ("config",),
    ("ops",),
    ("autodiff",),
    ("flow",),
    ("jit",),
    ("functional",),
    ("text",),
    ("numpy",),
    ("extend",),
    ("scipy",),
    ("array_api",),
    ("inference",),
    ("_versions",),
    ("",),  # gradops/__init__.py, the public names
    ("interop", "__main__"),
]
LATE = {
    ("ops._symbolic", "ops._keras"),  # imports Keras, once a tensor of it is met
    ("interop.r.calls", ""),  # finds R's functions by their names
}
IMPORTERS = ("import_module", "__import__", "resolve_name", "find_spec")
MEANING = {
    "_names": "what `dir()` of a module shows, and suggestions",
    "_version": "the version",
    "_cache": "the user's folder of compiled code",
    "_bytecode": "modules' bytecode in that folder, where Python cannot write beside their sources",
    "errors": "the conditions that gradops raises",
    "annotations": "what an argument of an op is",
    "dtypes": "names and promotion of dtypes, and the default float type",
    "_tree": "nested structures of tensors",
    "_call_sites": "the line of the user's code, in Python or a host such as R, that called gradops",
    "_display": "what notebooks show, and progress bars",
    "_scipy": "SciPy's modules, imported when they are first used",
    "_scopes": "settings that hold for a block, in threads and tasks",
    "_functions": "functions that gradops makes, of source or of others: their tracebacks, how they are pickled",
    "backends": "the contract; NumPy, PyTorch, TensorFlow, JAX: kernels, and derivatives of their own",
    "config": "which backend numbers go to",
    "ops": "the public functions and how they find their kernel",
    "autodiff": "the tape",
    "flow": "stop, scale, custom, checkpoint",
    "jit": "compiled programs",
    "functional": "derivatives of functions",
    "text": "text on the tape: operations, calls of models, judges, descent",
    "numpy": "NumPy by its names, with arrays that take variables",
    "extend": "ops and backends of other packages",
    "scipy": "SciPy's functions by its names, with derivatives",
    "array_api": "the array API standard, for SciPy's and scikit-learn's functions",
    "_versions": "versions, processor and backends, for reports",
    "": "the public names",
    "inference": "random effects, fits of likelihoods, posterior densities and a sampler",
    "interop": "R, and other hosts",
    "__main__": "the command `python -m gradops`",
}


def modules() -> dict[str, pathlib.Path]:
    """Return the core's modules by dotted name; ``gradops`` itself has the empty name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: pathlib.Path, known: dict) -> list[tuple[str, int, bool]]:
    """Return a module's imports from the core: the name ("" for ``gradops``), the line, and True in a function."""
    base = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: list[tuple[str, int, bool]] = []

    def visit(node, inside: bool) -> None:
        if isinstance(node, ast.ImportFrom):
            module = _resolved(node, base)
            if module is not None:
                for alias in node.names:
                    whole = f"{module}.{alias.name}".lstrip(".")
                    found.append((whole if whole in known else module, node.lineno, inside))
        if isinstance(node, ast.Import):
            found.extend(
                (t, node.lineno, inside) for alias in node.names if (t := _core_module(alias.name)) is not None
            )
        found.extend((target, node.lineno, inside) for target in _named(node, name, base, known))
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(ast.parse(path.read_text()), False)
    return found


def _core_module(path: str) -> str | None:
    """The name of a module of the core's without ``gradops``; None for others."""
    package, _, rest = path.partition(".")
    return rest if package == "gradops" else None


def _named(node, name: str, base: str, known: dict) -> list[str]:
    """The modules of the core's that a call or a subscript names in a string."""
    called = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "modules":
        text = _start(node.slice)
    elif called in IMPORTERS and node.args:
        text = _start(node.args[0])
    elif called.endswith("namespace"):
        later = next((keyword.value for keyword in node.keywords if keyword.arg == "later"), None)
        return [f"{name}.{late}".lstrip(".") for late in ast.literal_eval(later)] if later is not None else []
    else:
        return []
    found = f"gradops.{base}{text}".replace("..", ".") if text.startswith(".") else text
    target = _core_module(found.rstrip("."))
    while target and target not in known:  # an object in a module, or one whose name is computed
        target = target.rpartition(".")[0]
    return [] if target is None else [target]


def _start(node) -> str:
    """A string that is written out, or the part of one before what is computed."""
    first = node.values[0] if isinstance(node, ast.JoinedStr) else node
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _resolved(node: ast.ImportFrom, base: str) -> str | None:
    if node.level:
        parts = base.split(".") if base else []
        above = parts[: len(parts) - node.level + 1]
        return ".".join([*above, *([node.module] if node.module else [])])
    if node.module and node.module.split(".")[0] == "gradops":
        return node.module.partition(".")[2]
    return None


def floor_of(name: str) -> int:
    top = name.partition(".")[0]
    return next(i for i, floor in enumerate(FLOORS) if top in floor)


@functools.cache
def core_imports() -> dict[str, list[tuple[str, int, bool]]]:
    """Return the imports of each of the core's modules."""
    known = modules()
    return {name: imports(name, path, known) for name, path in known.items()}


def graph() -> dict[str, set[str]]:
    return {name: {target for target, _, _ in found if target != name} for name, found in core_imports().items()}


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return groups of modules that import each other in a cycle (Tarjan 1972).

    A package's ``__init__`` imports its modules, so a module that imports its package makes a cycle.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def connect(v: str) -> None:
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in edges.get(v, ()):
            if w not in index:
                connect(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            group = []
            while True:
                w = stack.pop()
                group.append(w)
                if w == v:
                    break
            if len(group) > 1:
                found.append(sorted(group))

    for v in edges:
        if v not in index:
            connect(v)
    return sorted(found)


def drawing() -> str:
    """Return the floors as text, top first, each with the floors it imports from directly."""
    edges = graph()
    lines = []
    for floor in reversed(FLOORS):
        for top in floor:
            below = {t.partition(".")[0] for m, ts in edges.items() if m.partition(".")[0] == top for t in ts}
            names = [n or "gradops" for level in reversed(FLOORS) for n in level if n in below and n != top]
            arrow = f"  <- {', '.join(names)}" if names else ""
            lines.append(f"{top or 'gradops':<12}{MEANING[top]}\n{'':<12}{arrow}".rstrip())
    return "```text\n" + "\n".join(lines) + "\n```"


def page_with_drawing(text: str) -> str:
    before, _, rest = text.partition("<!-- floors -->\n")
    _, _, after = rest.partition("<!-- /floors -->")
    return f"{before}<!-- floors -->\n{drawing()}\n<!-- /floors -->{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_drawing(PAGE.read_text()))

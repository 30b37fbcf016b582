#!/usr/bin/env python3
"""Writes docs/scipy-names.md: which public names of SciPy's modules gradops and other libraries have.

tools/scipy_table.py            write the page
tools/scipy_table.py --check    fail if it is stale
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

from scipy_checks import modules, scipys  # noqa: E402

from gradops.scipy import _names  # noqa: E402

PAGE = ROOT / "docs" / "scipy-names.md"
VERSIONS = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("scipy", "jax", "autograd"))
HEAD = f"""\
# Names of SciPy

Each public function and class of SciPy's modules is either covered, with derivatives where they exist, or raises an
`AttributeError` with the reason below. The table also counts the names that `jax.scipy` has, and those that HIPS
autograd has a derivative for. `tools/scipy_table.py` writes this page for {VERSIONS}; a test
fails if it is stale.

| module | SciPy | covered | refused | `jax.scipy` | autograd |
|---|---|---|---|---|---|
"""


def others(package: str, module: str) -> set[str]:
    """Return the names of SciPy's that another library has; for autograd functions with a derivative, and families."""
    try:
        found = importlib.import_module(f"{package}.{module}")
    except ImportError:
        return set()
    names = {name for name in vars(found) if not name.startswith("_")} & scipys(module)
    if package != "autograd.scipy":
        return names
    rules = importlib.import_module("autograd.core").primitive_vjps
    return {name for name in names if not callable(getattr(found, name)) or getattr(found, name) in rules}


def counts(module: str) -> tuple[int, int, int, int, int]:
    """Return the numbers of SciPy's names: all, covered, refused, in JAX, in autograd."""
    ours, names = importlib.import_module(f"gradops.scipy.{module}"), scipys(module)
    covered, refused = names & set(ours.__all__), names & set(_names.REFUSED[ours.__name__])
    return (
        len(names),
        len(covered),
        len(refused),
        len(others("jax.scipy", module)),
        len(others("autograd.scipy", module)),
    )


def page() -> str:
    rows, sections = [], []
    for module in modules():
        ours = importlib.import_module(f"gradops.scipy.{module}")
        rows.append(f"| `{module}` | {' | '.join(map(str, counts(module)))} |")
        names = scipys(module)
        covered = ", ".join(f"`{name}`" for name in sorted(names & set(ours.__all__)))
        reasons: dict[str, list[str]] = {}
        for name, why in sorted(_names.REFUSED[ours.__name__].items()):
            if name in names:
                reasons.setdefault(why, []).append(f"`{name}`")
        refused = [f"- {', '.join(found)}: {why}" for why, found in reasons.items()]
        sections.append(
            "\n".join([f"\n## {module}\n", f"Covered: {covered}.", *(["\nRefused:\n"] if refused else []), *refused])
        )
    return HEAD + "\n".join(rows) + "\n" + "\n".join(sections) + "\n"


def main() -> None:
    if "--check" not in sys.argv:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.exit(f"{PAGE} is stale: run tools/scipy_table.py")


if __name__ == "__main__":
    main()

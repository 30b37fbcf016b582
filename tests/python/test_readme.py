"""The code of README.md and of the pages in docs/ runs unchanged and prints what the pages show.

A block of README.md runs alone; the blocks of a page in docs/ run in sequence. The first line of a block names what it
needs besides NumPy and SciPy, ``# needs torch``; a block below ``<!-- script.py -->`` is part of that script
(``test_distributed.py``). Lines that begin with ``#>`` are the output. R blocks: ``test-readme.R``.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import gradops

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"

pytestmark = [
    pytest.mark.documents,
    pytest.mark.slow,
    pytest.mark.skipif(not README.exists(), reason="the pages are not part of the source distribution"),
]

# Runs the code on standard input like an interactive interpreter, which shows values. The modules named in arguments
# cannot be imported.
RUN = r"""
import ast, codeop, sys
from importlib.machinery import PathFinder

absent = set(sys.argv[1:])

class Finder:
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in absent else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
scope, source, compiled = {"__name__": "__main__"}, sys.stdin.read(), codeop.Compile()
for node in ast.parse(source).body:
    first = min(n.lineno for n in [node, *getattr(node, "decorator_list", [])])
    lines = source.splitlines()[first - 1 : node.end_lineno]
    exec(compiled("\n" * (first - 1) + "\n".join(lines) + "\n", "page", "single"), scope)
"""

packages_distributions = functools.cache(importlib.metadata.packages_distributions)  # takes 0.2 s


def requirements(names) -> set[str]:
    """Return packages and what they need."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            try:
                lines = importlib.metadata.requires(name) or []
                left += [re.match(r"[\w.-]+", line)[0] for line in lines if "extra ==" not in line]
            except importlib.metadata.PackageNotFoundError:
                pass
    return found


def absent(*modules: str) -> list[str]:
    """Return the modules that are neither the given ones, NumPy, SciPy and gradops nor required by them."""
    homes = packages_distributions()
    there = requirements(["numpy", "scipy", *(home for name in modules for home in homes.get(name, [name]))])
    return [
        module
        for module, packages in homes.items()
        if module != "gradops" and not any(package.lower().replace("_", "-") in there for package in packages)
    ]


def blocks(page: Path) -> list[str]:
    return re.findall(r"(?<!-->\n)^```python\n(.*?)^```", page.read_text(), flags=re.S | re.M)


def needs(code: str) -> list[str]:
    first = re.match(r"# needs (.*)", code)
    return re.findall(r"[\w.-]+", first[1]) if first else []


def programs() -> dict[str, list[str]]:
    alone = {f"README.md, block {i}": [code] for i, code in enumerate(blocks(README), 1)} if README.exists() else {}
    pages = {page.name: blocks(page) for page in sorted((ROOT / "docs").glob("*.md"))}
    return alone | {name: codes for name, codes in pages.items() if codes}


def run(code: str, *command: str) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    if command[0] == sys.executable:
        environment["PYTHONPATH"] = str(ROOT / "python")
    done = subprocess.run(command, input=code, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return [line.rstrip() for line in done.stdout.splitlines()]


def printed(code: str) -> list[str]:
    return [line[3:].rstrip() for line in code.splitlines() if line.startswith("#> ")]


@pytest.mark.parametrize("name", programs())
def test_code_of_pages_runs(name):
    codes = programs()[name]
    wanted = sorted({package for code in codes for package in needs(code)})
    for package in wanted:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    code = "\n".join(codes)
    assert run(code, sys.executable, "-c", RUN, *absent(*wanted)) == printed(code)


@pytest.mark.long
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_page_of_keras_runs_on_its_other_backends(backend, monkeypatch):
    pytest.importorskip("keras"), pytest.importorskip(backend)
    monkeypatch.setenv("KERAS_BACKEND", backend)
    code = "\n".join(programs()["keras.md"])
    assert run(code, sys.executable, "-c", RUN, *absent("keras", backend)) == printed(code)


def test_readme_is_short_and_shows_both_languages():
    text = README.read_text()
    assert len(text.splitlines()) <= 150
    assert len(blocks(README)) >= 3 and text.count("```r\n") >= 2
    assert [printed(code) for code in blocks(README)].count([]) == 0
    code = re.findall(r"^```\w+\n(.*?)^```", text, flags=re.S | re.M)
    assert max(len(line) for block in code for line in block.splitlines()) <= 90, "wider than a page"


def test_names_in_tables_of_pages_exist():
    """Covers Python names of gradops modules and R ops in the tables of other libraries' names."""
    exported = (ROOT / "NAMESPACE").read_text()
    rows = {
        (page.name, line)
        for page in (ROOT / "docs").glob("*.md")
        if "gradops in R |" in page.read_text()
        for line in page.read_text().splitlines()
        if line.startswith("| ")
    }
    assert len(rows) > 100
    for page, row in rows:
        ours = " ".join(row.split(" | ")[1:])
        for path in re.findall(
            r"`(?:gradops\.)?((?:ops|functional|autodiff|inference|scipy|text|config)(?:\.\w+)+)", ours
        ):
            assert functools.reduce(getattr, path.split("."), gradops), f"{page}: {path}"
        for name in re.findall(r"\b((?:op|with|text|config)_\w+)\(", ours):
            assert f"export({name})" in exported, f"{page}: {name}()"


def test_packages_that_are_not_named_cannot_be_imported():
    """Otherwise a block that needs more than it declares would pass here, where everything is installed."""
    for code in ("import pytest", "import torch"):
        with pytest.raises(AssertionError, match="No module named"):
            run(code, sys.executable, "-c", RUN, *absent())


@pytest.mark.long
def test_readme_in_the_environment_that_it_installs(tmp_path):
    venv.create(tmp_path, with_pip=True)
    python = str(tmp_path / "bin" / "python")
    assert "pip install ." in README.read_text()
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
    for code in blocks(README):
        if not needs(code):
            assert run(code, python, "-c", RUN) == printed(code)

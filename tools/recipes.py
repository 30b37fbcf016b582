#!/usr/bin/env python3
"""Writes what publishers ask for into a folder: a recipe for conda-forge and packages.json for r-universe.

    tools/recipes.py SDIST OUT [--repository URL] [--source URL]

The facts come from pyproject.toml and the source distribution. ``--repository`` is the public address of the sources,
and ``--source`` that of the published source distribution; without them the recipes name the files here, which is
enough to try them: ``conda build OUT/recipe`` builds from the file. PyPI needs no recipe: it trusts
.github/workflows/publish.yml once a maintainer has named that file there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPE = """\
{{% set version = "{version}" %}}

package:
  name: gradops
  version: {{{{ version }}}}

source:
  url: {source}
  sha256: {checksum}

build:
  number: 0
  noarch: python
  script: {{{{ PYTHON }}}} -m pip install . -vv --no-deps --no-build-isolation

requirements:
  host:
    - python {python}
    - pip
{build}
  run:
    - python {python}
{run}

test:
  imports:
    - gradops
    - gradops.scipy.stats
    - gradops.inference
  commands:
    - pip check
    - python -m gradops
  requires:
    - pip

about:
  home: {repository}
  summary: {summary}
  license: MIT
  license_file: LICENSE.md

extra:
  recipe-maintainers: []
"""


def listed(text: str, name: str) -> list[str]:
    """Return a list of strings in pyproject.toml, by its key at the start of a line."""
    found = re.search(rf"^{name} = \[(.*?)\]", text, re.M | re.S)
    assert found is not None, name
    return re.findall('"(.*?)"', found[1])


def files(sdist: pathlib.Path, repository: str | None, source: str | None) -> dict[str, str]:
    """Return the text of each file, by its path."""
    project = (ROOT / "pyproject.toml").read_text()
    version = re.search(r"gradops-(.*)\.tar\.gz", sdist.name)
    summary, python = (re.search(rf'^{key} = "(.*)"', project, re.M) for key in ("description", "requires-python"))
    assert version and summary and python
    repository = repository or ROOT.as_uri()
    recipe = RECIPE.format(
        version=version[1],
        source=source or sdist.resolve().as_uri(),
        checksum=hashlib.sha256(sdist.read_bytes()).hexdigest(),
        python=python[1],
        build="\n".join(f"    - {_conda(name)}" for name in listed(project, "requires")),
        run="\n".join(f"    - {_conda(name)}" for name in listed(project, "dependencies")),
        repository=repository,
        summary=summary[1],
    )
    universe = json.dumps([{"package": "gradops", "url": repository}], indent=2) + "\n"
    return {"recipe/meta.yaml": recipe, "packages.json": universe}


def _conda(requirement: str) -> str:
    """Return a requirement as conda writes it, ``numpy >=1.26``."""
    return re.sub(r"(?<=\w)(?=[<>=])", " ", requirement, count=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sdist", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--repository")
    parser.add_argument("--source")
    given = parser.parse_args()
    for name, text in files(given.sdist, given.repository, given.source).items():
        path = given.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(path)

"""The Python and R packages agree in metadata; tested versions; the papers next to the code."""

from __future__ import annotations

import csv
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest
from versions import numbers

import gradops
from gradops.backends import OLDEST

pytestmark = pytest.mark.documents

ROOT = pathlib.Path(__file__).resolve().parents[2]
if not (ROOT / "DESCRIPTION").exists():
    pytest.skip("the R package is not here", allow_module_level=True)

PYPROJECT = (ROOT / "pyproject.toml").read_text()
VERSIONS = list(csv.DictReader((ROOT / "tools" / "versions.csv").read_text().splitlines()))


def description() -> dict[str, str]:
    text = re.sub(r"\n\s+", " ", (ROOT / "DESCRIPTION").read_text())
    return dict(line.split(": ", 1) for line in text.splitlines())


def table() -> str:
    rows = [
        f"| {v['library']} | {v['version']} | {v['python']} | {v['requirements'].replace('==', ' ')} |"
        for v in VERSIONS
    ]
    return "\n".join(["| library | version | Python | with |", "|---|---|---|---|", *rows])


def test_versions_page_matches_the_table():
    page = (ROOT / "docs" / "versions.md").read_text()
    found = re.search(r"<!-- versions -->\n(.*)\n<!-- /versions -->", page, re.S)
    assert found is not None and found[1] == table()


def test_oldest_versions_are_tested():
    for library, lowest in OLDEST.items():
        versions = [v["version"] for v in VERSIONS if v["library"] == library]
        assert len(versions) >= 3 and versions == sorted(versions, key=numbers)
        assert versions[0] == lowest


def test_python_and_r_metadata_agree():
    fields = description()
    assert fields["Version"] == gradops.__version__
    assert fields["License"] == "MIT + file LICENSE" and re.search(r'^license = "MIT"$', PYPROJECT, re.M)
    assert "gradops maintainers" in fields["Authors@R"]
    assert re.search(r'^authors = \[\{ name = "gradops maintainers" \}\]$', PYPROJECT, re.M)
    assert "YEAR: 2026\nCOPYRIGHT HOLDER: gradops maintainers" in (ROOT / "LICENSE").read_text()
    assert "(c) 2026 gradops maintainers" in (ROOT / "LICENSE.md").read_text()
    python = re.search(r"Python \(>= ([\d.]+)\)", fields["SystemRequirements"])
    assert python is not None and f'requires-python = ">={python[1]}"' in PYPROJECT
    assert re.search(
        r'^classifiers.*"Programming Language :: Python :: ' + re.escape(python[1]), PYPROJECT, re.M | re.S
    )


def test_both_packages_have_an_address_or_neither():
    """Covers addresses of source and issue tracker: the project has no public place yet."""
    fields = description()
    urls = re.search(r"^\[project\.urls\]$", PYPROJECT, re.M)
    assert ("URL" in fields) == ("BugReports" in fields) == (urls is not None)


def test_citations_state_the_version():
    cff = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {gradops.__version__}\n" in cff and "\nlicense: MIT\n" in cff
    assert 'paste("Version", meta$Version)' in (ROOT / "inst" / "CITATION").read_text()
    title = re.search(r'^title: "(.*)"$', cff, re.M)
    assert title is not None and title[1] in (ROOT / "inst" / "CITATION").read_text()


def test_news_is_by_release():
    headings = re.findall(r"^# (.*)$", (ROOT / "NEWS.md").read_text(), re.M)
    assert headings[0].removesuffix(" (unreleased)") == f"gradops {gradops.__version__}"
    assert headings[-1].startswith("gradops 0.1.0")
    assert all(re.fullmatch(r"gradops \d+\.\d+\.\d+( \(unreleased\))?", h) for h in headings)


def test_no_hint_installs_gradops_from_an_index():
    """`pip install gradops` would install somebody else's package, or nothing."""
    named = re.compile(r"pip install [^`\n]*['\"]?gradops\b(?!/)(?! *@)")
    files = [
        *(ROOT / "python" / "gradops").rglob("*.py"),
        *(ROOT / "R").glob("*.R"),
        *(ROOT / "docs").glob("*.md"),
        ROOT / "README.md",
    ]
    found = [f"{f.relative_to(ROOT)}: {m[0]}" for f in files for m in named.finditer(f.read_text())]
    assert found == []


def test_r_package_excludes_other_files():
    ignored = [re.compile(line, re.I) for line in (ROOT / ".Rbuildignore").read_text().split()]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("no git repository")
    top = {name.partition("/")[0] for name in tracked.stdout.split()}
    kept = {name for name in top - {".Rbuildignore"} if not any(pattern.search(name) for pattern in ignored)}
    assert kept == {
        "DESCRIPTION",
        "LICENSE",
        "NAMESPACE",
        "NEWS.md",
        "R",
        "README.md",
        "inst",
        "man",
        "src",
        "tests",
        "vignettes",
    }


def test_tarball_is_built_without_the_environments():
    """R CMD build copies everything before it applies .Rbuildignore: gigabytes after nox."""
    left_out = re.findall(r"--exclude='?\./([^' ]+)", (ROOT / "tools" / "build").read_text())
    large = re.findall(r"^/(\.venv[^/]*|\.build)/$", (ROOT / ".gitignore").read_text(), flags=re.M)
    assert len(large) >= 3
    assert [name for name in large if not any(fnmatch.fnmatch(name, pattern) for pattern in left_out)] == []


@pytest.mark.slow
def test_contents_of_the_python_packages(tmp_path):
    pytest.importorskip("hatchling")
    stubs = {f"gradops/{name}" for name in ("ops/__init__.pyi", "autodiff/_methods.pyi")}
    for target in ("sdist", "wheel"):
        for name in stubs:
            (ROOT / "python" / name).unlink(missing_ok=True)
        build = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(tmp_path)]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (source,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        installed = set(archive.namelist())
    files = (ROOT / "python" / "gradops").rglob("*")
    core = {p.relative_to(ROOT / "python").as_posix() for p in files if p.suffix in (".py", ".c", ".h", ".bc")}
    information = f"gradops-{gradops.__version__}.dist-info"
    papers = {f"{information}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE.md")}
    assert installed == core | papers | stubs | {"gradops/py.typed"}
    tests = {
        p.relative_to(ROOT).as_posix() for p in (ROOT / "tests" / "python").rglob("*.*") if p.suffix in (".py", ".c")
    }
    assert tests | {f"python/{name}" for name in core | stubs} <= inside
    assert {"CITATION.cff", "LICENSE.md", "NEWS.md", "README.md", "pyproject.toml", "tools/versions.csv"} <= inside
    assert not any(name.startswith(("R/", "man/", ".venv", ".build", "tests/testthat")) for name in inside)


@pytest.mark.long
def test_tests_pass_from_the_source_distribution(tmp_path):
    """The environment has NumPy and SciPy only; tests that need other libraries are skipped."""
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / source.name.removesuffix(".tar.gz")
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    wanted = [str(folder), "pytest", "pytest-xdist", "hypothesis", "array-api-strict", "mpmath"]
    subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = [python, "-m", "pytest", "-q", "-n", "2", "-m", "not slow and not long"]
    ran = subprocess.run(run, cwd=folder, env=clean, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:]


def test_keywords_of_both_packages_agree():
    listed = re.search(r"^keywords = \[(.*?)\]$", PYPROJECT, re.M | re.S)
    assert listed is not None and re.findall('"(.*?)"', listed[1]) == description()["X-schema.org-keywords"].split(", ")


def test_recipes_have_the_facts_of_the_packages(tmp_path):
    sdist = tmp_path / f"gradops-{gradops.__version__}.tar.gz"
    sdist.write_bytes(b"sources")
    address = ["--repository", "https://code.example/gradops", "--source", "https://files.example/gradops.tar.gz"]
    command = [sys.executable, str(ROOT / "tools" / "recipes.py"), str(sdist), str(tmp_path / "out"), *address]
    subprocess.run(command, check=True, capture_output=True)
    assert json.loads((tmp_path / "out" / "packages.json").read_text()) == [{"package": "gradops", "url": address[1]}]
    recipe = (tmp_path / "out" / "recipe" / "meta.yaml").read_text()
    fields = dict(re.findall(r"^ *(\w+): (.+)$", recipe, re.M))
    assert recipe.startswith(f'{{% set version = "{gradops.__version__}" %}}')
    assert (fields["url"], fields["sha256"]) == (address[3], hashlib.sha256(b"sources").hexdigest())
    assert (ROOT / fields["license_file"]).exists() and fields["home"] == address[1]
    project = re.search(r'^requires-python = "(.*)"$.*^dependencies = \[(.*?)\]$', PYPROJECT, re.M | re.S)
    run = re.search(r"^  run:\n((?:    - .*\n)+)", recipe, re.M)
    assert project is not None and run is not None
    wanted = [f"python{project[1]}", *re.findall('"(.*?)"', project[2])]
    assert run[1].replace(" ", "").split("\n")[:-1] == [f"-{name}" for name in wanted]


@pytest.mark.long
def test_a_release_builds():
    command = [str(ROOT / "tools" / "release"), "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    listed = re.findall(r"^  (\S+)$", done.stdout.partition("A release is made of:")[2], re.M)
    assert len(listed) == 5 and all((ROOT / name).exists() for name in listed)

"""docs/trust.md and docs/differences.md name existing tests, and the figures of trust.md match the code."""

import pathlib
import re
import sys
import types
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import compilers
import families
import pytest
import test_hard_points
import test_integers
import test_options
from test_parity import CASES
from test_random_arguments import functions

from gradops import ops
from gradops.backends import OLDEST, _warn_if_old

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "trust.md").read_text()
DIFFERENCES = (ROOT / "docs" / "differences.md").read_text()
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(\w+)`", PAGE + DIFFERENCES)))


def test_each_promise_has_a_test():
    promises = [
        line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| ---", "| promise"))
    ]
    assert len(promises) > 20
    assert all(re.search(r"`test[-_][\w-]+\.(py|R)", line) for line in promises)


@pytest.mark.parametrize("file, name", NAMED, ids=lambda x: x)
def test_named_tests_exist(file, name):
    assert re.search(rf"^def {name}\(", (ROOT / "tests" / "python" / file).read_text(), re.M)


@pytest.mark.repository
def test_pages_state_the_number_of_ops():
    ops = len(families.rows()) // 10 * 10
    for name in ("README.md", "NEWS.md", "docs/get-started.md", "vignettes/gradops.Rmd", "paper/paper.md"):
        stated = re.findall(r"(\d{3}) (?:array operations|operations|ops)\b", (ROOT / name).read_text())
        assert stated == [str(ops)], name
    assert f"each of the {len(functions())} ops and functions of Python" in DIFFERENCES


def test_page_states_the_number_of_names_of_keras():
    keras = pytest.importorskip("keras")
    named = {name for name in dir(keras.ops) if not name.startswith("_")}
    shared = named & set(dir(ops))
    release = ".".join(keras.__version__.split(".")[:2])
    page = (ROOT / "docs" / "coming-from-keras.md").read_text()
    assert f"{len(shared)} of the {len(named)} names of `keras.ops` (Keras {release})" in page
    assert named - shared == {"linalg", "numpy"}


@pytest.mark.repository
def test_named_r_files_exist():
    for file in re.findall(r"`(test-[\w-]+\.R)`", PAGE):
        assert (ROOT / "tests" / "testthat" / file).exists(), file


FIGURES = {
    "test_forward": f"{len(CASES)} cases",
    "test_gradient": f"{sum(bool(c.gradients) for c in CASES)} cases",
    "test_every_op": f"{len(test_options.FIRST)} ops",
    "test_each_op": f"{len(test_integers.OPS)} ops",
    "test_one_argument": f"{test_hard_points.POINTS.size} points, {test_hard_points.PAIRS[0].size} pairs",
    "test_engines_compiled.py::test_every_op": f"{len(compilers.chosen())} ops",
    "test_compiled.py::test_every_case": f"{len(CASES)} cases",
    "test_random_arguments_give_a_value": f"{len(functions())} functions of Python",
}


def assert_figure(test, figure):
    (line, *_) = [line for line in PAGE.splitlines() if f"{test}`" in line or f"{test}_" in line]
    assert figure in line.rpartition("` | ")[2]


@pytest.mark.parametrize("test", FIGURES)
def test_figures_match_the_code(test):
    assert_figure(test, FIGURES[test])


def test_figure_of_unknown_sizes():
    from test_unknown_sizes import POSSIBLE  # the module skips if TensorFlow is missing

    assert_figure("test_unknown_sizes.py::test_every_case", f"{len(POSSIBLE)} cases")


LOWEST = re.compile(r"""["'](numpy|scipy|torch|tensorflow|jax|llvmlite) *>= *([\d.]+)""")


@pytest.mark.repository
def test_lowest_versions_are_the_same_everywhere():
    """Covers each library wherever the R or Python package names its version."""
    found = {"R": set(), "pyproject.toml": set()}
    for file in [*(ROOT / "R").glob("*.R"), ROOT / "pyproject.toml"]:
        found["R" if file.suffix == ".R" else file.name].update(LOWEST.findall(file.read_text()))
    assert found["R"] == found["pyproject.toml"]
    assert dict(found["R"]).items() >= OLDEST.items()
    assert len(found["R"]) == 6


@pytest.mark.parametrize("version, warns", [("2.4.1", True), ("2.5.0a1+cpu", False), ("3.0", False)])
def test_older_versions_give_a_warning(version, warns, monkeypatch):
    library = types.ModuleType("torch")
    library.__version__ = version
    monkeypatch.setitem(sys.modules, "torch", library)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        _warn_if_old("torch")
    assert [str(w.message).count("torch 2.5 and later; this is 2.4.1") for w in seen] == [1] * warns

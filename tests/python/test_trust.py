"""docs/trust.md: the tests that it names exist, and its figures are those of the code."""

import pathlib
import re

import pytest
from test_parity import CASES
from test_random_arguments import functions

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "trust.md").read_text()
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(\w+)`", PAGE)))


def test_each_promise_has_a_test():
    promises = [
        line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| ---", "| promise"))
    ]
    assert len(promises) > 20
    assert all(re.search(r"`test[-_][\w-]+\.(py|R)", line) for line in promises)


@pytest.mark.parametrize("file, name", NAMED, ids=lambda x: x)
def test_the_tests_that_it_names_exist(file, name):
    assert re.search(rf"^def {name}\(", (ROOT / "tests" / "python" / file).read_text(), re.M)


def test_the_files_of_r_exist():
    for file in re.findall(r"`(test-[\w-]+\.R)`", PAGE):
        assert (ROOT / "tests" / "testthat" / file).exists(), file


def test_its_figures():
    assert f"{len(CASES)} cases" in PAGE
    assert f"{sum(bool(c.gradients) for c in CASES)} cases" in PAGE
    assert f"{len(functions())} functions of Python" in PAGE

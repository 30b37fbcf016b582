"""`tools/bits` records the same bits twice, and its comparison finds a changed bit and a wrong rule."""

from __future__ import annotations

import gzip
import importlib.machinery
import importlib.util
import os
import pathlib
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest

TOOLS = pathlib.Path(__file__).parents[2] / "tools"
KINDS = "arrays,loops"
BREAKING = """
import importlib.machinery, pathlib, sys
load = lambda name: importlib.machinery.SourceFileLoader(name, f"{sys.argv[1]}/{name}").load_module()
load("mutate").mutate("native:tanh")
load("bits").record(pathlib.Path(sys.argv[2]), 10, sys.argv[3].split(","))
"""


@pytest.fixture(scope="module")
def bits():
    loader = importlib.machinery.SourceFileLoader("bits", str(TOOLS / "bits"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bits", loader))
    loader.exec_module(module)
    return module


def run(*words) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True)


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("bits") / "old"
    done = run(TOOLS / "bits", "record", path, "--programs", "10", "--only", KINDS)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.long
def test_two_recordings_are_equal_and_a_wrong_rule_is_found(recording, tmp_path):
    done = run(TOOLS / "bits", "record", tmp_path / "same", "--programs", "10", "--only", KINDS)
    assert done.returncode == 0, done.stderr
    same = run(TOOLS / "bits", "compare", recording, tmp_path / "same")
    assert same.returncode == 0 and "ulp" not in same.stdout, same.stdout
    done = run("-c", BREAKING, TOOLS, tmp_path / "wrong", KINDS)
    assert done.returncode == 0, done.stderr
    wrong = run(TOOLS / "bits", "compare", recording, tmp_path / "wrong", "--ulp", "1e6")
    assert wrong.returncode == 1 and "loops/0/gradient" in wrong.stdout, wrong.stdout


def test_changed_bit_has_a_name_and_a_size(bits, recording, tmp_path, capsys):
    content = bits.read(recording)
    name = next(key for key in content["entries"] if key.startswith("loops") and "gradient" in key)
    inputs, found = content["entries"][name]
    dtype, shape, data = found[-1]
    numbers = np.frombuffer(data, dtype).copy()
    numbers[np.abs(numbers).argmax()] += np.spacing(np.abs(numbers).max())
    content["entries"][name] = inputs, [*found[:-1], (dtype, shape, numbers.tobytes())]
    with gzip.open(tmp_path / "changed", "wb") as file:
        pickle.dump(content, file)
    assert bits.compare(recording, tmp_path / "changed") == 1
    assert f"         1          1  {name}" in capsys.readouterr().out
    assert bits.compare(recording, tmp_path / "changed", 1.0) == 0


SMALL, LARGE = np.linspace(-1.0, 2.0, 7), np.linspace(-1.0, 2.0, 5000)


def changed(x, place, value):
    x = x.copy()
    x[place] = value
    return x


@pytest.mark.parametrize("x", [SMALL, LARGE, SMALL.astype("float32"), LARGE * 1j])
def test_differences(bits, x):
    def difference(a, b):
        return bits.difference(bits.stored([a]), bits.stored([b]))

    unit = np.spacing(np.abs(x).max())
    assert difference(x, x.copy()) == ("equal", 0, 0)
    assert difference(changed(x, 0, np.nan), changed(x, 0, -np.nan)) == ("equal", 0, 0)
    assert difference(changed(x, 0, 0.0), changed(x, 0, -0.0)) == ("zeros", 0, 0)
    assert difference(x, x + 4 * unit)[:2] == ("differs", 4)
    assert difference(x, changed(x, slice(None), np.inf))[1] == np.inf
    assert difference(x, x[:-1])[1] == difference(x, x.astype("complex64"))[1] == np.inf
    assert bits.difference("JitError", bits.stored([x])) == ("JitError, now numbers", np.inf, np.inf)


def test_change_outside_the_stored_elements_is_found(bits):
    found = [bits.difference(bits.stored([LARGE]), bits.stored([changed(LARGE, i, 3.0)])) for i in range(50)]
    assert {"differs elsewhere"} <= {verdict for verdict, *_ in found} <= {"differs", "differs elsewhere"}


def test_crash_is_an_entry_and_the_programs_after_it_run(bits):
    def programs():
        yield "first", "", [("value", [np.ones(2)])]
        yield "second", "", (os.kill(os.getpid(), signal.SIGKILL) for _ in range(1))
        yield "third", "", [("value", "ValueError")]

    found = bits.recorded("some", programs)
    assert found["some/second/crash"] == ("", "SIGKILL")
    assert list(found) == ["some/first/value", "some/second/crash", "some/third/value"]

"""The examples run as users run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

pytestmark = [
    pytest.mark.documents,
    pytest.mark.slow,
    pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not part of the source distribution"),
]


@pytest.mark.long
def test_domain_adversarial(tmp_path):
    for library in ("torch", "jax", "matplotlib"):
        pytest.importorskip(library)
    picture = tmp_path / "picture.png"
    command = [sys.executable, str(EXAMPLES / "domain_adversarial.py"), "--steps", "100", "--picture", str(picture)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    target = {}
    for line in out.splitlines()[1:]:
        library, reversal, _, accuracy = line.split()
        target[library, reversal] = float(accuracy.rstrip("%"))
    assert set(target) == {(library, word) for library in ("torch", "jax") for word in ("no", "yes")}
    for library in ("torch", "jax"):
        assert target[library, "yes"] > target[library, "no"] + 10
    assert target["torch", "yes"] == target["jax", "yes"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_gallery(tmp_path):
    pytest.importorskip("matplotlib")
    names = ("graph", "likelihood", "prompt")
    command = [sys.executable, str(EXAMPLES / "gallery.py"), str(tmp_path), *names]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(ROOT / "python")})
    assert {path.stem for path in tmp_path.iterdir()} == set(names)
    assert all("<svg" in path.read_text()[:1000] for path in tmp_path.iterdir())

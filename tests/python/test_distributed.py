"""The guide docs/distributed.md: each script gives the same result on several processes or devices as on one."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "examples" / "distributed"
GUIDE = ROOT / "docs" / "distributed.md"

pytestmark = pytest.mark.skipif(not SCRIPTS.exists(), reason="the examples are not part of the source distribution")

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
EIGHT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
KERAS = {"KERAS_BACKEND": "jax"}
WAYS = {  # the libraries, the script with its arguments on one process, the command for several, and its environment
    "ddp": ("torch", ["ddp.py"], [*TORCHRUN, "ddp.py"], {}),
    "fsdp": ("torch", ["ddp.py"], [*TORCHRUN, "ddp.py", "--sharded"], {}),
    "jit": ("jax", ["jax_mesh.py"], ["jax_mesh.py"], EIGHT),
    "shard_map": ("jax", ["jax_mesh.py"], ["jax_mesh.py", "shard_map"], EIGHT),
    "mirrored": ("tensorflow", ["mirrored.py"], ["mirrored.py", "2"], {}),
    "keras": ("keras jax", ["keras_distribution.py"], ["keras_distribution.py"], EIGHT),
    "dask": ("distributed", ["shards.py"], ["shards.py", "dask"], {}),
    "ray": ("ray", ["shards.py"], ["shards.py", "ray"], {"RAY_AUTH_MODE": "disabled"}),
}


def numbers(command: list[str], environment: dict[str, str]) -> np.ndarray:
    common = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
    environment = os.environ | common | KERAS | environment
    run = [sys.executable, *command]
    done = subprocess.run(run, env=environment, cwd=SCRIPTS, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return np.array([float(word) for word in done.stdout.split("\n")[-2].split()])


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_several_are_as_one(way):
    libraries, one, several, environment = WAYS[way]
    for library in libraries.split():
        pytest.importorskip(library, reason="needs `tools/setup --engines`")
    want = numbers(one, {})
    assert want.size >= 6 and np.all(np.isfinite(want))
    np.testing.assert_allclose(numbers(several, environment), want, rtol=1e-9, atol=1e-11)


def blocks() -> list[tuple[str, str]]:
    """Return the guide's code blocks with the scripts they come from."""
    return re.findall(r"<!-- ([\w.]+) -->\n```(?:python|r)\n(.*?)```", GUIDE.read_text(), flags=re.S)


def test_guide_shows_the_scripts_that_run():
    shown = {script for script, _ in blocks()}
    assert shown == {path.name for path in SCRIPTS.iterdir() if path.suffix in (".py", ".R")}
    code = re.findall(r"```(?:python|r)\n(.*?)```", GUIDE.read_text(), flags=re.S)
    assert len(blocks()) == len([block for block in code if "#> " not in block])  # blocks with output run unchanged
    assert {way[1][0] for way in WAYS.values()} == {name for name in shown if name.endswith(".py")}
    for script, code in blocks():
        for part in code.split("...\n"):
            assert part.strip("\n") in (SCRIPTS / script).read_text(), f"{script}:\n{part}"

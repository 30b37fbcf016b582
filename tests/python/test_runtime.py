"""The machine's C: its bitcode is up to date, and sanitizers find nothing in it."""

from __future__ import annotations

import hashlib
import pathlib
import shutil
import subprocess

import pytest
from seeds import FIRST, LONG

from gradops.jit.native.machine import RUNTIME

ROOT = pathlib.Path(__file__).parent.parent.parent
TOOL = ROOT / "tools" / "runtime"
DRIVERS = sorted((pathlib.Path(__file__).parent / "runtime").glob("*.c"))
SANITIZED = ["-g", "-O1", "-Wall", "-Wextra", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def module(file):
    """Return LLVM's module of a bitcode file."""
    binding = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
    return binding.parse_bitcode(pathlib.Path(file).read_bytes())


def test_bitcode_is_up_to_date_and_names_no_processor():
    bitcode = module(RUNTIME)
    sources = [file for kind in ("*.h", "*.c") for file in sorted(RUNTIME.parent.glob(kind))]
    checksum = hashlib.sha256(b"".join(file.read_bytes() for file in [TOOL, *sources])).hexdigest()
    assert bitcode.source_file == checksum, "run tools/runtime"
    assert (bitcode.triple, bitcode.data_layout) == ("", "") and "target-" not in str(bitcode)


@pytest.mark.skipif(not shutil.which("clang-19") or not shutil.which("llvm-as-19"), reason="LLVM 19 is not installed")
def test_bitcode_is_what_clang_makes_of_the_sources(tmp_path):
    subprocess.run([TOOL, tmp_path / "made.bc"], check=True)
    assert str(module(tmp_path / "made.bc")) == str(module(RUNTIME))


def built(folder, driver, compilers, *flags):
    """Return a driver, compiled by the first compiler that has what ``flags`` need; else skip the test."""
    program, probe = folder / driver.stem, folder / "probe.c"
    probe.write_text("int %s(void) { return 0; }\n" % ("LLVMFuzzerTestOneInput" if flags else "main"))
    for compiler in filter(shutil.which, compilers):
        command = [compiler, *SANITIZED, *flags, "-o", program]
        if subprocess.run([*command, probe], capture_output=True).returncode == 0:
            subprocess.run([*command, driver, "-lm"], check=True)
            return program
    pytest.skip(f"no compiler with sanitizers{' and libFuzzer' * bool(flags)} among {', '.join(compilers)}")


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.stem)
def test_sanitizers_find_nothing_on_random_bytes(driver, tmp_path):
    subprocess.run([built(tmp_path, driver, ["cc", "gcc", "clang"]), "2000", str(FIRST)], check=True)


@pytest.mark.long
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.stem)
def test_sanitizers_find_nothing_on_bytes_that_reach_new_code(driver, tmp_path):
    program = built(tmp_path, driver, ["clang", "clang-14", "clang-19"], "-fsanitize=fuzzer", "-DFUZZ")
    seconds = f"-max_total_time={round(60 * LONG)}"
    subprocess.run([program, seconds, f"-seed={FIRST}", "-max_len=200", "-verbosity=0"], check=True, cwd=tmp_path)

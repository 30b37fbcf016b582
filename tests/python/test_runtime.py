"""The machine's C: each compiler gives the same bits, the bitcode is up to date, and sanitizers find nothing in it."""

from __future__ import annotations

import hashlib
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import scipy.sparse
from seeds import FIRST, LONG

from gradops.jit.native.machine import RUNTIME, Library, machine, runtime
from gradops.scipy import sparse
from gradops.scipy.sparse import _columns

ROOT = pathlib.Path(__file__).parent.parent.parent
TOOL = ROOT / "tools" / "runtime"
DRIVERS = sorted((pathlib.Path(__file__).parent / "runtime").glob("*.c"))
SANITIZED = ["-g", "-O1", "-Wall", "-Wextra", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def module(file):
    """Return LLVM's module of a bitcode file."""
    binding = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
    return binding.parse_bitcode(pathlib.Path(file).read_bytes(), binding.create_context())


def test_bitcode_is_up_to_date_and_names_no_processor():
    bitcode = module(RUNTIME)
    sources = [file for kind in ("*.h", "*.c") for file in sorted(RUNTIME.parent.glob(kind))]
    contents = b"".join(file.read_bytes() for file in [TOOL, *sources]).replace(b"\r\n", b"\n")
    checksum = hashlib.sha256(contents).hexdigest()
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


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler is installed")
@pytest.mark.parametrize("flags", ["-O2", "-O3 -march=native", "-O3 -march=native -ffast-math"])
def test_each_compiler_gives_the_same_bits(flags, tmp_path, monkeypatch):
    """The reference is compiled without optimization, and on x86 for a processor without fused instructions."""
    line = scipy.sparse.diags_array([-np.ones(19)] * 2, offsets=[-1, 1], shape=(20, 20))
    A = sparse.csc_array(scipy.sparse.kronsum(line, line) + scipy.sparse.diags_array(4 + np.sqrt(np.arange(400) / 99)))

    def results(native):
        monkeypatch.setattr(_columns, "runtime", lambda: native)
        factor = _columns.symbolic_of(A.pattern).factored(np.asarray(A.values))
        assert isinstance(factor, _columns.ColumnFactor)
        return factor.spread(np.eye(400)), factor.solve(np.eye(400)), factor.inverse(np.empty((0, 0)))

    natives = [machine()] if machine() is not None else []
    for name, options in (("plain", ["-O0", "-ffp-contract=off"]), ("fast", flags.split())):
        # GCC links a library with -ffast-math so that loading it makes the process flush small numbers to 0.
        compiled = tmp_path / f"{name}.o"
        subprocess.run(["cc", "-c", "-fPIC", *options, "-o", compiled, RUNTIME.parent / "sparse.c"], check=True)
        subprocess.run(["cc", "-shared", "-o", tmp_path / name, compiled, "-lm"], check=True)
        natives.append(Library(str(tmp_path / name)))
    first, *others = map(results, natives)
    assert all(np.array_equal(x, y) for other in others for x, y in zip(first, other, strict=True))


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler is installed")
def test_a_library_serves_where_llvmlite_is_missing(tmp_path, monkeypatch):
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "made", RUNTIME.parent / "sparse.c", "-lm"], check=True)
    monkeypatch.setattr("gradops.jit.native.machine.machine", lambda: None)
    monkeypatch.setenv("GRADOPS_RUNTIME", str(tmp_path / "made"))
    assert isinstance(runtime.__wrapped__(), Library)
    monkeypatch.setenv("GRADOPS_RUNTIME", str(tmp_path / "missing"))
    assert runtime.__wrapped__() is None
    monkeypatch.setenv("GRADOPS_RUNTIME", str(tmp_path / "made"))
    monkeypatch.setenv("GRADOPS_NATIVE", "off")
    assert runtime.__wrapped__() is None

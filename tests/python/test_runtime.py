"""The machine's C: each compiler gives the same bits, the bitcode is up to date, and sanitizers find nothing in it."""

from __future__ import annotations

import hashlib
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from seeds import FIRST, LONG

from gradops import jit, ops, value_and_grad
from gradops.jit.native import loop_compiler
from gradops.jit.native.instructions import END, FUSED, NUMBERS, OPERATIONS
from gradops.jit.native.machine import RUNTIME, Library, Machine, machine
from gradops.scipy import sparse
from gradops.scipy.sparse import _columns

ROOT = pathlib.Path(__file__).parent.parent.parent
SOURCES = sorted(RUNTIME.glob("*.c"))
TOOL = ROOT / "tools" / "runtime"
DRIVERS = sorted((pathlib.Path(__file__).parent / "runtime").glob("*.c"))
needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler is installed")
SANITIZED = ["-g", "-Wno-psabi", "-Wall", "-Wextra", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def module(file):
    """Return LLVM's module of a bitcode file."""
    binding = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
    return binding.parse_bitcode(pathlib.Path(file).read_bytes(), binding.create_context())


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_bitcode_is_up_to_date_and_names_no_processor(source):
    bitcode = module(source.with_suffix(".bc"))
    contents = b"".join(file.read_bytes() for file in [TOOL, *sorted(RUNTIME.glob("*.h")), source])
    checksum = hashlib.sha256(contents.replace(b"\r\n", b"\n")).hexdigest()
    assert bitcode.source_file == checksum, "run tools/runtime"
    assert (bitcode.triple, bitcode.data_layout) == ("", "") and "target-" not in str(bitcode)


@pytest.mark.skipif(not shutil.which("clang-19") or not shutil.which("llvm-as-19"), reason="LLVM 19 is not installed")
def test_bitcode_is_what_clang_makes_of_the_sources(tmp_path):
    subprocess.run([TOOL, tmp_path], check=True)
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in RUNTIME.glob("*.bc")}
    assert [file.name for file in tmp_path.iterdir() if str(module(file)) != str(module(RUNTIME / file.name))] == []


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
    program = built(tmp_path, driver, ["clang", "clang-14", "clang-19"], "-O1", "-fsanitize=fuzzer", "-DFUZZ")
    seconds = f"-max_total_time={round(60 * LONG)}"
    subprocess.run([program, seconds, f"-seed={FIRST}", "-max_len=200", "-verbosity=0"], check=True, cwd=tmp_path)


@needs_compiler
def test_c_and_python_have_the_same_opcodes():
    source = f'#include "{RUNTIME / "operations.h"}"'
    text = subprocess.run(["cc", "-E", "-P", "-x", "c", "-"], input=source, capture_output=True, text=True, check=True)
    names = re.findall(r"\bOPCODE_(\w+)", text.stdout)
    assert names == list(NUMBERS)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The machine of the C compiled without optimization, and on x86 for a processor without fused instructions."""
    return library_machine(tmp_path_factory.mktemp("plain"), "-O0", "-ffp-contract=off")


def library_machine(folder, *options):
    # GCC links a library with -ffast-math so that loading it makes the process flush small numbers to 0.
    subprocess.run(
        ["cc", "-w", "-Wno-psabi", "-c", "-fPIC", *options, "-o", folder / "made.o", ROOT / "src" / "runtime.c"],
        check=True,
    )
    subprocess.run(["cc", "-shared", "-o", folder / "made", folder / "made.o", "-lm"], check=True)
    return Machine(Library(str(folder / "made")))


def sparse_results(native, monkeypatch):
    """Return solutions and an inverse by the functions of ``sparse.c``."""
    monkeypatch.setattr(_columns, "machine", lambda: native)
    line = scipy.sparse.diags_array([-np.ones(19)] * 2, offsets=[-1, 1], shape=(20, 20))
    A = sparse.csc_array(scipy.sparse.kronsum(line, line) + scipy.sparse.diags_array(4 + np.sqrt(np.arange(400) / 99)))
    factor = _columns.symbolic_of(A.pattern).factored(np.asarray(A.values))
    assert isinstance(factor, _columns.ColumnFactor)
    return {
        "spread": factor.spread(np.eye(400)),
        "solve": factor.solve(np.eye(400)),
        "inverse": factor.inverse(np.eye(0)),
    }


NUMBERS_TRIED = np.array(
    [0.0, -0.0, 1.0, -1.0, 2.5, -3.5, 0.1, 7.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1.7e308, -1e300, 1e17]
)
WHOLE_TRIED = np.array([0, 1, -1, 2, -7, 63, 64, 65, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 5, -64, 12345])
DIVISORS = np.array([1, 2, -2, 3, -7, 63, 64, 65, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 5, -64, 12345])


def results_of_operations(native, has_nan):
    """Return the results of each elementwise instruction on numbers and on vectors; without NaN also the exceptions."""
    found, rng = {}, np.random.default_rng(0)
    numbers = NUMBERS_TRIED if has_nan else np.nan_to_num(NUMBERS_TRIED, nan=3.0, posinf=np.inf, neginf=-np.inf)
    n = len(numbers)
    for name in OPERATIONS:
        is_whole, size = name.startswith("whole_") or name == "narrow" or name.endswith("of_whole"), n * n
        x, y = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
        if is_whole:
            divisors = DIVISORS if name in ("whole_fmod", "whole_mod", "whole_floor_divide") else WHOLE_TRIED
            given = [WHOLE_TRIED[x], divisors[y], WHOLE_TRIED[x]]
        else:
            given = [numbers[x], numbers[y], numbers[rng.integers(0, n, size)]]
            if name.endswith("of_float"):
                given[0] = rng.normal(size=size) * 1e5
        memory = np.concatenate([*[a.astype(a.dtype).view(np.int64) for a in given], np.zeros(size, np.int64)])
        cells = size * np.arange(3)
        codes = {"numbers": [[NUMBERS[name], 3 * size + i, *(cells + i)] for i in range(size)]}
        if name not in FUSED:
            codes["vectors"] = [native.vector(NUMBERS[name]), 3 * size, *cells, size, 1, 1, 1]
            codes["apart"] = [native.vector(NUMBERS[name]), 3 * size, *cells, size // 3, *(2, 0, 3)]
        for kind, words in codes.items():
            code, cells_then = np.append(words, END).astype(np.intc), memory.copy()
            raised = native.run(code.ctypes.data, cells_then.ctypes.data, native.functions)
            result = cells_then[3 * size :]
            is_nan = np.isnan(result.view(np.float64)) & (not is_whole) & (not name.startswith("int"))
            found[f"{name} on {kind}"] = np.append(np.where(is_nan, -1, result), 0 if has_nan else raised)
    return found


def results_of_rows(native):
    """Return the results of instructions on rows of numbers, and of functions on tiles."""
    found, rng = {}, np.random.default_rng(1)
    names = "prod max min sum logsumexp argmax argmin whole_argmax whole_argmin dot softmax log_softmax argsort"
    for name in f"{names} whole_argsort load store pick".split():
        for n in (1, 2, 7, 8, 9, 33, 300):
            memory = rng.normal(size=2000) * 10.0 ** rng.integers(-3, 4, 2000)
            memory[1999] = np.int64(1).view(np.float64)
            memory[1300 : 1300 + n] = rng.permutation(n).view(np.float64)
            b = {"load": 1999, "store": 1999, "pick": 1300}.get(name, 700)
            words = [native.vector(NUMBERS[name]), 1650, 10, b, 0, n, 2, 1, 0, END]
            code = np.array(words, np.intc)
            raised = native.run(code.ctypes.data, memory.ctypes.data, native.functions)
            found[f"{name} of {n}"] = np.append(memory.view(np.int64), raised)
    for name in "exp expm1 log log1p tanh power3 power8".split():
        x = np.append(NUMBERS_TRIED, rng.normal(size=100) * 5)
        out, count, steps = np.zeros(x.size), np.array([x.size]), np.array([8, 8])
        arguments = np.array([x.ctypes.data, out.ctypes.data])
        call = native.function(f"{name}_tile", 4, None)
        call(arguments.ctypes.data, count.ctypes.data, steps.ctypes.data, 0)
        found[f"{name} of a tile"] = np.where(np.isnan(out), -1, out.view(np.int64))
    return found


@needs_compiler
@pytest.mark.parametrize("flags", ["-O2", pytest.param("-O3 -march=native -ffast-math", marks=pytest.mark.long)])
def test_each_compiler_gives_the_same_bits(flags, plain, tmp_path, monkeypatch):
    natives = [library_machine(tmp_path, *flags.split()), *([machine()] if machine() is not None else [])]
    for results in (
        lambda native: results_of_operations(native, has_nan=True),
        lambda native: results_of_operations(native, has_nan=False),
        results_of_rows,
        lambda native: sparse_results(native, monkeypatch),
    ):
        wanted = results(plain)
        for native in natives:
            found = results(native)
            assert [name for name in wanted if not np.array_equal(found[name], wanted[name])] == []


@needs_compiler
def test_a_library_serves_where_llvmlite_is_missing(plain, monkeypatch):
    file = plain._engines[0]._library._name
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.setenv("GRADOPS_RUNTIME", file)
    found = machine.__wrapped__()
    assert isinstance(found, Machine) and not found.compiles
    monkeypatch.setenv("GRADOPS_RUNTIME", file + "missing")
    assert machine.__wrapped__() is None
    monkeypatch.setenv("GRADOPS_RUNTIME", file)
    monkeypatch.setenv("GRADOPS_NATIVE", "off")
    assert machine.__wrapped__() is None


@needs_compiler
def test_programs_run_by_a_library_have_the_same_bits(plain, monkeypatch):
    """A loop that LLVM would compile, small and large arrays."""

    def loss(p, y):
        def step(state, value):
            s = state[1] + ops.exp(p[1])
            k = (state[1] + ops.exp(p[0])) / s
            level = state[0] + k * (value - state[0])
            return (level, s * (1 - k) + 1.0), ops.log(s) + ops.maximum((value - state[0]) ** 2 / s, 0.1)

        _, terms = ops.scan(step, (p[0] * 0.0, p[0] * 0.0 + 10.0), y[:50])
        return ops.sum(terms) + ops.sum(ops.softmax(p)) + ops.sum(ops.tanh(y) * y)

    p, y = np.array([-1.0, 0.3]), np.random.default_rng(0).normal(size=6000)
    with monkeypatch.context() as patch:
        patch.setattr(loop_compiler, "WORTH", 1)
        wanted = [jit(value_and_grad(loss))(p, y) for _ in range(3)][-1]
    monkeypatch.setattr(sys.modules["gradops.jit.native.machine"], "machine", lambda: plain)
    compiled = jit(value_and_grad(loss))
    for _ in range(3):
        value, gradient = compiled(p, y)
    explained = next(iter(compiled.programs.values())).native
    assert explained.native > 0
    np.testing.assert_allclose(value, wanted[0], rtol=1e-13)
    np.testing.assert_allclose(gradient, wanted[1], rtol=1e-12)

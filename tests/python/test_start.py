"""Modules imported by `import gradops`: NumPy, and other modules only if they are quick. No time is measured."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import gradops
from gradops import _functions, _versions, ops

SLOW = ("scipy", "numpy.random", "numpy.testing", "numpy.f2py", "unittest", "asyncio", "multiprocessing")


def modules_after(code: str) -> set[str]:
    """Return the modules loaded in a new Python process after ``code``."""
    program = f"import sys\n{code}\nprint(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_slow_modules_are_not_imported_at_once():
    new = modules_after("import gradops") - modules_after("import numpy")
    assert not [m for m in new for slow in SLOW if m == slow or m.startswith(slow + ".")]
    new = {m for m in new if not m.startswith("numpy.fft")}  # gradops.numpy refers to its functions
    outside = {m.partition(".")[0] for m in new} - sys.stdlib_module_names - {"gradops"}
    assert not outside, f"{outside} are imported by `import gradops`"


LATER = ("array_api", "functional", "inference", "jit", "numpy", "scipy", "text")


def test_upper_floors_are_imported_on_first_use():
    loaded = {m for m in modules_after("import gradops") if m.partition(".")[0] == "gradops"}
    assert len(loaded) <= 146 and not {f"gradops.{name}" for name in LATER} & loaded


@pytest.mark.short_cases(3)
@pytest.mark.parametrize(
    ("code", "module"),
    [
        ("import gradops.jit.array; assert callable(gradops.jit) and gradops.jit.array", "jit"),
        ("from gradops import jit; import gradops.jit as again; assert jit is again is gradops.jit", "jit"),
        ("x = gradops.Variable(2.0); assert x.__array_namespace__() is gradops.array_api", "array_api"),
        ("assert gradops.hessian is gradops.functional.transformations.hessian", "functional"),
        ("assert gradops.ops.vectorized_map(lambda x: 2 * x, np.ones(3)).sum() == 6", "functional"),
        ("assert gradops.Variable(2.0).to_device('cpu').device.library == 'numpy'", "array_api"),
        ("from gradops import *; assert grad(lambda x: x * x)(3.0) == 6 and jit(lambda x: x + 1)(1.0) == 2", "jit"),
        ("assert gradops.extend.check", "functional"),
        ("gradops.jit = abs; assert gradops.jit(-1) == 1; import gradops.jit.array; assert gradops.jit is abs", "jit"),
        ("try: gradops.jitt\nexcept AttributeError as e: assert 'gradops.jit' in str(e)", "functional"),
    ],
)
def test_modules_are_reached_by_their_names(code, module):
    assert f"gradops.{module}" in modules_after(f"import gradops\nimport numpy as np\n{code}")


def test_derivatives_on_numpy_do_not_import_scipy():
    code = "import gradops as g\ng.grad(lambda x: g.ops.softmax(x * x)[0])(g.ops.array([1.0, 2.0]))"
    assert not [m for m in modules_after(code) if m.partition(".")[0] == "scipy"]


def test_scipy_is_imported_by_its_functions_only():
    parts = "special stats linalg signal integrate interpolate ndimage optimize sparse".split()
    parts = [*(f"scipy.{part}" for part in parts), *(f"interop.r.{part}" for part in ("distributions", "matrices"))]
    parts += ["interop.r.stats", "interop.r.likelihoods"]
    loaded = modules_after("\n".join(f"import gradops.{part}" for part in parts))
    assert not [m for m in loaded if m.partition(".")[0] == "scipy"]
    assert "gradops.scipy.special.bessel" not in loaded
    used = modules_after("from gradops.scipy import special, stats\nspecial.jv(0.5, 1.0)\nassert 'erf' in dir(special)")
    assert "gradops.scipy.special.bessel" in used and "gradops.scipy.special.elliptic" not in used


@pytest.mark.short_cases(1)
@pytest.mark.parametrize(
    ("call", "module"),
    [
        ("erfinv(0.5)", "scipy.special"),
        ("cholesky([[2.0]])", "scipy.linalg"),
        ("fft((np.ones(4), np.ones(4)))", "scipy.fft"),
        ("stft(np.ones(8), 4, 2, 4, window='hann')", "scipy.signal"),
    ],
)
def test_scipy_modules_are_imported_on_first_use(call, module):
    assert module in modules_after(f"import numpy as np\nfrom gradops import ops\nops.{call}")


def test_functions_with_equal_source_share_code_and_keep_names():
    scopes = [{"value": 1}, {"value": 2}]
    first, second = (
        _functions.alike(f"\ndef {name}(x):\n    return x + value\n", name, f"test {name}", scope)
        for name, scope in zip(("first", "second"), scopes)
    )
    assert (first(1), second(1)) == (2, 3)
    assert first.__code__.co_consts is second.__code__.co_consts
    for name, made in (("first", first), ("second", second)):
        assert (made.__code__.co_name, made.__code__.co_filename) == (name, f"<gradops test {name}>")
    with pytest.raises(TypeError) as caught:
        second("a")
    assert caught.traceback[-1].name == "second" and "x + value" in str(caught.traceback[-1].statement)


def test_lgamma_keeps_the_dtype():
    for dtype in ("float16", "float32", "float64"):
        assert ops.lgamma(np.array([-np.inf, 3.0], dtype)).dtype == dtype


@pytest.mark.long
def test_scipy_modules_can_be_imported_inside_a_jax_trace():
    pytest.importorskip("jax")
    code = """
import importlib, jax, gradops
from gradops import scipy
gradops.config.set_backend("jax")
def f(x):
    for name in scipy.__all__:
        module = importlib.import_module(f"gradops.scipy.{name}")
        [getattr(module, part) for part in module.__all__]
    importlib.import_module("gradops.interop.r.distributions")
    return x
print(float(jax.jit(f)(0.5)))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0.5\n"


def test_versions_are_shown_without_importing_a_library():
    program = (
        "import gradops, sys; gradops.show_versions(); print(*{*sys.modules} & {'torch', 'tensorflow', 'jax', 'keras'})"
    )
    shown = {"GRADOPS_CACHE": "off", "GRADOPS_NATIVE": "off", "GRADOPS_BACKEND": "torhc"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ | shown
    )
    *lines, loaded = done.stdout.splitlines()
    found = dict(re.split(r"  +", line, maxsplit=1) for line in lines)
    assert loaded == "" and found["numpy"] == np.__version__
    assert found["gradops"].startswith(gradops.__version__) and found["Python"].endswith(f"({sys.executable})")
    for name in ("torch", "tensorflow", "jax", "llvmlite"):
        assert (found[name] == "not installed") == (importlib.util.find_spec(name) is None)
    assert found["native code"] == "no: GRADOPS_NATIVE is off" and found["cache folder"].startswith("none")
    assert found["settings"].startswith("backend torhc") and shown.items() <= found.items()
    command = [sys.executable, "-m", "gradops"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | shown).stdout.splitlines()
        == lines
    )


def test_versions_older_than_the_tested_ones_are_marked(monkeypatch):
    monkeypatch.setattr(_versions, "_version", lambda module: "1.9.1" if module == "numpy" else None)
    assert _versions.facts()["numpy"] == "1.9.1, older than 1.26"
    assert _versions.facts()["scipy"] == "not installed"


@pytest.mark.parametrize("cache", ["cache", "off"])
def test_bytecode_is_stored_in_the_cache_folder_if_python_cannot_store_it(tmp_path, cache):
    source = pathlib.Path(gradops.__file__).parent
    copied = tmp_path / "gradops"
    shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    for folder in [copied, *(path for path in copied.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()  # a file, so that not even root can write there
    named = str(tmp_path / cache) if cache != "off" else cache
    environment = {**os.environ, "GRADOPS_CACHE": named, "PYTHONPATH": str(tmp_path)}
    neighbour = tmp_path / "gradops_neighbour"  # a package of others
    neighbour.mkdir()
    for name in ("__init__.py", "part.py"):
        (neighbour / name).touch()
    program = "import sys, gradops, gradops_neighbour.part, gradops.errors as e; assert not sys.pycache_prefix\n"
    program += "print(gradops.__file__, e.{})"

    def run(value):
        command = [sys.executable, "-c", program.format(value)]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split()

    assert run("__name__") == [str(copied / "__init__.py"), "gradops.errors"]
    stored = [*(tmp_path / "cache").rglob("errors.*.pyc")]
    assert len(stored) == (cache != "off")
    assert [*neighbour.rglob("part.*.pyc")]
    with open(copied / "errors.py", "a") as file:
        file.write("\nchanged = 'changed'\n")
    assert run("changed")[1] == "changed"
    if stored:
        folder = tmp_path / "cache" / "bytecode"
        assert not folder.stat().st_mode & 0o077
        code = stored[0].read_bytes()
        assert b"changed" in code
        stored[0].write_bytes(code.replace(b"changed", b"strange"))  # proof that the next run reads it
        assert run("strange")[1] == "strange"
        folder.chmod(0o777)  # not trusted: others can write there
        assert run("changed")[1] == "changed"

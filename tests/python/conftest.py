"""Tests run in float64 and import their helper modules from this folder."""

import gc
import importlib
import importlib.util
import json
import os
import re
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("GRADOPS_CHECK", "error")  # calls of a compiled program are compared with NumPy
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # small programs, each compiled for a handful of calls
sys.path.insert(0, str(Path(__file__).parent))

import engines
import pytest
from parity import BACKENDS

from gradops import config, scipy
from gradops.errors import BackendError
from gradops.jit import agreement

REPOSITORY = Path(__file__).resolve().parents[2]
DURATIONS = Path(__file__).parent / "durations.json"
"""Seconds of the long suite's tests, by ``tools/minutes.py --record``: per case if slow, else the mean per function."""


# SciPy's ops are defined when a name is first used; tests that go through all ops need them all.
for package in ("special", "stats", "linalg", "signal", "integrate", "interpolate", "ndimage"):
    for public in getattr(scipy, package).__all__:
        getattr(getattr(scipy, package), public)

LIBRARIES = ("numpy", "torch", "tensorflow", "jax")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if not os.environ.get("GRADOPS_ALL_CASES"):  # set when one library or device is tested, instead of the whole suite
        mark_long_cases(items)
    split = config.pluginmanager.get_plugin("pytestsplitplugin")
    if split is not None:
        seconds = json.loads(DURATIONS.read_text())
        split.cached_durations = {item.nodeid: recorded(seconds, item.nodeid) for item in items}


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector, name, obj):
    """Do not collect long tests for ``-m "not long"``: their cases are half of all."""
    # Tests are recognised by their names: asking a module of gradops for a name that it lacks starts a slow search.
    if name.lower().startswith("test") and re.match(r"not long\b", collector.config.option.markexpr):
        if any(mark.name == "long" for mark in getattr(obj, "pytestmark", ())):
            return []
    return None


def mark_long_cases(items) -> None:
    """Mark as ``long`` the cases that a test's ``short_cases`` marker leaves out of the short suite."""
    groups: dict[tuple, list] = {}
    for item in items:
        for marker in item.iter_markers("short_cases"):
            library, way = library_of(item)
            if not marker.args[1:] or library in marker.args[1:]:
                groups.setdefault((function_id(item.nodeid), way, marker.args), []).append(item)
    for (_, _, (count, *_)), cases in groups.items():
        short = {i * len(cases) // count for i in range(count)}
        for i, item in enumerate(cases):
            if i not in short:
                item.add_marker(pytest.mark.long)


def library_of(item) -> tuple[str | None, object]:
    """Return the library that a case is for, and its mode: ``("jax", ("jax", "compiled"))``."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    for value in parameters.values():
        library = value[0] if isinstance(value, tuple) and value else value
        if isinstance(library, str) and library in LIBRARIES:
            return library, value
    return None, None


def recorded(seconds: dict[str, float], nodeid: str) -> float:
    return seconds.get(nodeid.partition("tests/python/")[2], seconds.get(function_id(nodeid), 0.1))


def function_id(nodeid: str) -> str:
    """Return ``file::function`` of a test id."""
    return nodeid.partition("[")[0].rpartition("/")[2]


def pytest_collection_finish():
    """Exclude libraries and collected cases from ``gc.collect()`` in tests, which would take a second to visit them.

    Collections at the default threshold take a tenth of the time: the libraries allocate millions of objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


class ImmediateFailures:
    """Prints one line per failure as it happens; pytest prints the full report at the end."""

    def __init__(self, terminal):
        self.terminal = terminal

    def pytest_runtest_logreport(self, report):
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = (crash.message if crash else str(report.longrepr)).partition("\n")[0]
            self.terminal.ensure_newline()
            self.terminal.write_line(f"FAILED {report.nodeid}: {message[:300]}")


def pytest_sessionstart(session):
    plugins = session.config.pluginmanager
    if (terminal := plugins.get_plugin("terminalreporter")) is not None:
        plugins.register(ImmediateFailures(terminal))
    # `make test-gpu`: PyTorch makes its tensors on the GPU; JAX does so by itself.
    if device := os.environ.get("GRADOPS_TEST_DEVICE"):
        torch = importlib.import_module("torch")
        torch.set_default_device(device)
        numpy = torch.Tensor.numpy
        torch.Tensor.numpy = lambda x, force=True: numpy(x, force=force)
        torch.Tensor.__array__ = lambda x, dtype=None, copy=None: importlib.import_module("numpy").asarray(
            x.numpy(), dtype
        )
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def pytest_runtest_makereport(item, call):
    if call.when == "call" and not (call.excinfo and call.excinfo.errisinstance(pytest.skip.Exception)):
        engines.note(item, failed=call.excinfo is not None)


def pytest_sessionfinish():
    if os.environ.get("GRADOPS_RECORD"):
        engines.write()


OPTIONAL = r"torch|tensorflow|keras|jax|jaxlib|llvmlite|hypothesis|pandas|sklearn|autograd|array_api_\w+|dask|rpy2"


def absent(error: BaseException) -> str | None:
    """Return the missing optional library if the error itself reports it and was not raised from another error."""
    name = ""
    if isinstance(error, ModuleNotFoundError):
        name = (error.name or "").partition(".")[0]
    elif isinstance(error, BackendError):
        name = "".join(re.findall(r"needs the Python package '(\w+)', which is not installed", str(error)))
    return name if re.fullmatch(OPTIONAL, name) and importlib.util.find_spec(name) is None else None


@pytest.fixture(autouse=True)
def compiled_programs_agree_with_numpy():
    """Fail a test if a compiled program disagreed with NumPy, even if an `except` hid the error."""
    agreement.reports.clear()
    yield
    assert not agreement.reports


def skipped_without(item):
    """Skip a test that needs a library which is not installed."""
    try:
        return (yield)
    except (ModuleNotFoundError, BackendError) as error:
        if (name := absent(error)) is None:
            raise
        pytest.skip(f"{name} is not installed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    if item.get_closest_marker("repository") and not (REPOSITORY / "DESCRIPTION").exists():
        pytest.skip("it reads the R package, which is not here")
    return (yield from skipped_without(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    return (yield from skipped_without(item))


@pytest.fixture(params=BACKENDS)
def backend(request):
    """Run the test with each library in turn as the default backend."""
    with config.backend_scope(request.param):
        yield request.param


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def jax():
    return pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def settings_restored():
    """Restore the default settings after each test."""
    yield
    config.set_backend("numpy")
    config.set_floatx("float64")


_run = 0


@pytest.fixture(autouse=True)
def memory_bounded():
    """Clear JAX's cache of compiled programs from time to time."""
    yield
    global _run
    _run += 1
    if _run % 2000 == 0 and "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


@pytest.fixture
def without_native_code(monkeypatch):
    """Run compiled programs through NumPy calls alone, as without llvmlite."""
    monkeypatch.setattr(sys.modules["gradops.jit.native.machine"], "machine", lambda: None)

"""Tests run in float64 and find their helper modules beside them."""

import importlib
import importlib.util
import os
import re
import sys
import zlib
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # small programs, each compiled for a handful of calls
sys.path.insert(0, str(Path(__file__).parent))

import engines
import pytest
from parity import BACKENDS

from gradops import config
from gradops.errors import BackendError


def pytest_addoption(parser):
    parser.addoption("--shard", default="1/1", help="I/N: the I-th of N parts of the tests, each about as long")


def pytest_collection_modifyitems(config, items):
    """Of ``--shard``: by the tests' names, so that a part stays what it is when tests are added."""
    which, of = map(int, config.getoption("shard").split("/"))
    parts: dict[bool, list] = {True: [], False: []}
    for item in items:
        parts[zlib.crc32(item.nodeid.encode()) % of == which - 1].append(item)
    items[:] = parts[True]
    if parts[False]:
        config.hook.pytest_deselected(items=parts[False])


def pytest_sessionstart():
    """`make test-gpu`: PyTorch makes its tensors on the GPU; JAX does so by itself."""
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


REPOSITORY = Path(__file__).resolve().parents[2]


OPTIONAL = r"torch|tensorflow|keras|jax|jaxlib|llvmlite|hypothesis|pandas|sklearn|autograd|array_api_\w+|dask|rpy2"


def absent(error: BaseException) -> str | None:
    """The optional library that is not installed, where that is what an error itself says, and no error it came of."""
    name = ""
    if isinstance(error, ModuleNotFoundError):
        name = (error.name or "").partition(".")[0]
    elif isinstance(error, BackendError):
        name = "".join(re.findall(r"needs the Python package '(\w+)', which is not installed", str(error)))
    return name if re.fullmatch(OPTIONAL, name) and importlib.util.find_spec(name) is None else None


def skipped_without(item):
    """A test that needs a library which is not installed is skipped."""
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
    """Each library in turn, as the default one."""
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
    """Whatever a test sets, the next one finds the defaults."""
    yield
    config.set_backend("numpy")
    config.set_floatx("float64")


_run = 0


@pytest.fixture(autouse=True)
def memory_bounded():
    """JAX keeps what it compiled: forget it now and then."""
    yield
    global _run
    _run += 1
    if _run % 200 == 0 and "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


@pytest.fixture
def without_native_code(monkeypatch):
    """Compiled programs are NumPy's calls alone, as without llvmlite."""
    monkeypatch.setattr(sys.modules["gradops.jit.native.machine"], "machine", lambda: None)

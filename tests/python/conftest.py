"""Tests run in float64 and find their helper modules beside them."""

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("JAX_ENABLE_X64", "1")
sys.path.insert(0, str(Path(__file__).parent))

import pytest  # noqa: E402
from gradops import config  # noqa: E402


@pytest.fixture(autouse=True)
def settings_restored():
    """Whatever a test sets, the next one finds the defaults."""
    yield
    config.set_backend("numpy")
    config.set_floatx("float64")

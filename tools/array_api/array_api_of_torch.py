"""``gradops.array_api`` as the suite tests it: PyTorch's arrays."""

from gradops import config
from gradops.array_api import *  # noqa: F403
from gradops.array_api import __array_api_version__, __array_namespace_info__  # noqa: F401

config.set_backend("torch")

"""``gradops.array_api`` as the suite tests it: NumPy's arrays."""

from gradops.array_api import *  # noqa: F403
from gradops.array_api import __array_api_version__, __array_namespace_info__  # noqa: F401

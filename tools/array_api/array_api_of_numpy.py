"""The module that the array API suite tests: ``gradops.array_api`` on NumPy arrays.

See ``tools/array_api_suite``.
"""

from gradops.array_api import *  # noqa: F403
from gradops.array_api import __array_api_version__, __array_namespace_info__  # noqa: F401

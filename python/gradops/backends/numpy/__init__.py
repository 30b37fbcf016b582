"""The NumPy backend: every op's kernel, which needs NumPy and SciPy only."""

import numpy as np

from ..array import complete
from . import base
from .elementwise import *  # noqa: F403
from .linalg import *  # noqa: F403
from .reductions import *  # noqa: F403
from .shaping import *  # noqa: F403
from .signals import *  # noqa: F403

complete(globals(), np, base)

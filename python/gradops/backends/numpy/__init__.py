"""The NumPy backend: every op's kernel with NumPy and SciPy alone."""

import numpy as np

from ..array import complete
from . import base
from .activations import *  # noqa: F403
from .attention import *  # noqa: F403
from .convolution import *  # noqa: F403
from .ctc import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .fourier import *  # noqa: F403
from .indexing import *  # noqa: F403
from .linalg import *  # noqa: F403
from .pooling import *  # noqa: F403
from .random import *  # noqa: F403
from .reductions import *  # noqa: F403
from .scattering import *  # noqa: F403
from .shaping import *  # noqa: F403
from .special import *  # noqa: F403

complete(globals(), np, base)

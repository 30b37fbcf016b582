"""The PyTorch backend: PyTorch's own functions, so torch's autograd records them."""

import torch

from ..array import complete
from . import base, derivatives  # noqa: F401
from .control import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .kinks import kink  # noqa: F401
from .linalg import *  # noqa: F403
from .reductions import *  # noqa: F403
from .shaping import *  # noqa: F403
from .signals import *  # noqa: F403
from .transforms import custom_vmap, reduced_rows, unwinds, vectorized_map  # noqa: F401

complete(globals(), torch, base)

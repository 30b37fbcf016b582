"""Every op, on the tensors of every backend: ``gradops.ops.exp(x)``."""

from . import image, nn  # noqa: F401
from .encoding import *  # noqa: F403
from .losses import *  # noqa: F403
from .normalization import *  # noqa: F403
from .activations import *  # noqa: F403
from .conversion import *  # noqa: F403
from .creation import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .indexing import *  # noqa: F403
from .joining import *  # noqa: F403
from .products import *  # noqa: F403
from .reductions import *  # noqa: F403
from .shaping import *  # noqa: F403

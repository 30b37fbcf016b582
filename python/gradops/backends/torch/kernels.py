"""PyTorch's own functions, so torch's autograd records them: the members and kernels of the backend."""

from . import derivatives  # noqa: F401
from .activations import *  # noqa: F403
from .attention import *  # noqa: F403
from .base import cast, convert, copy, dtype_name, from_dlpack, handed_over, is_tensor_type, place, to_numpy  # noqa: F401
from .bitwise import *  # noqa: F403
from .blocks import *  # noqa: F403
from .bounds import *  # noqa: F403
from .comparison import *  # noqa: F403
from .control import *  # noqa: F403
from .convolution import *  # noqa: F403
from .creation import *  # noqa: F403
from .ctc import *  # noqa: F403
from .diagonals import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .fourier import *  # noqa: F403
from .indexing import *  # noqa: F403
from .joining import *  # noqa: F403
from .linalg import *  # noqa: F403
from .normalization import *  # noqa: F403
from .pooling import *  # noqa: F403
from .products import *  # noqa: F403
from .random import *  # noqa: F403
from .reductions import *  # noqa: F403
from .scattering import *  # noqa: F403
from .shaping import *  # noqa: F403
from .sorting import *  # noqa: F403
from .special import *  # noqa: F403
from .statistics import *  # noqa: F403

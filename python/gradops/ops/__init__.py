"""Every op, on the tensors of every backend: ``gradops.ops.exp(x)``."""

from . import image, nn  # noqa: F401
from .convolution import *  # noqa: F403
from .encoding import *  # noqa: F403
from .losses import *  # noqa: F403
from .nanstatistics import *  # noqa: F403
from .normalization import *  # noqa: F403
from .activations import *  # noqa: F403
from .bitwise import *  # noqa: F403
from .bounds import *  # noqa: F403
from .comparison import *  # noqa: F403
from .complex_numbers import *  # noqa: F403
from .control import *  # noqa: F403
from .conversion import *  # noqa: F403
from .creation import *  # noqa: F403
from .diagonals import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .fourier import *  # noqa: F403
from .indexing import *  # noqa: F403
from .joining import *  # noqa: F403
from .linalg import *  # noqa: F403
from .mapping import *  # noqa: F403
from .norms import *  # noqa: F403
from .products import *  # noqa: F403
from .quantiles import *  # noqa: F403
from .rearranging import *  # noqa: F403
from .reductions import *  # noqa: F403
from .sequences import *  # noqa: F403
from .scattering import *  # noqa: F403
from .sets import *  # noqa: F403
from .shaping import *  # noqa: F403
from .sorting import *  # noqa: F403
from .spacing import *  # noqa: F403
from .special import *  # noqa: F403
from .statistics import *  # noqa: F403
from .systems import *  # noqa: F403
from .windows import *  # noqa: F403

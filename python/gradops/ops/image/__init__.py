"""Images: resampling, transforms, filters, colours and patches: ``gradops.ops.image.resize(x, (32, 32))``.

Each is composed once, of other ops, so that values and gradients are the same on every backend.
"""

from .color import *  # noqa: F403
from .filters import *  # noqa: F403
from .patches import *  # noqa: F403
from .resampling import *  # noqa: F403
from .transforms import *  # noqa: F403

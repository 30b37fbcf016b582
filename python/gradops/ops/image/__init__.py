"""Images: resampling, transforms, filters, colours and patches: ``gradops.ops.image.resize(x, (32, 32))``.

Each is composed of other ops, so that values and gradients are the same on every backend.
"""

from ..._names import namespace
from .._registry import names
from .filters import *  # noqa: F403
from .patches import *  # noqa: F403
from .resampling import *  # noqa: F403
from .transforms import *  # noqa: F403

__all__ = sorted(name.removeprefix("image.") for name in names if name.startswith("image."))
__dir__, __getattr__ = namespace(__name__)

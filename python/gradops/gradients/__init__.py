"""What changes how gradients flow: stop, scale, custom."""

from .custom import custom_gradient
from .flow import gradient, scaled_gradient, scaled_gradient_ext, set_requires_gradient, stop_gradient
from .scopes import stop_gradient_scope

__all__ = [
    "custom_gradient",
    "gradient",
    "scaled_gradient",
    "scaled_gradient_ext",
    "set_requires_gradient",
    "stop_gradient",
    "stop_gradient_scope",
]

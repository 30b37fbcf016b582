"""Functions and scopes that change how gradients flow: stop, scale, custom, checkpoint."""

from .checkpointing import checkpoint, checkpoint_policy, gradient_checkpoint_scope
from .custom import custom_gradient
from .elementary import gradient, scaled_gradient, scaled_gradient_ext, set_requires_gradient, stop_gradient
from .scopes import stop_gradient_scope

__all__ = [
    "checkpoint",
    "checkpoint_policy",
    "custom_gradient",
    "gradient",
    "gradient_checkpoint_scope",
    "scaled_gradient",
    "scaled_gradient_ext",
    "set_requires_gradient",
    "stop_gradient",
    "stop_gradient_scope",
]

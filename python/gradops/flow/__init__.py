"""Functions and scopes that change how gradients flow: stop, scale, customise, checkpoint."""

from .checkpointing import (
    checkpoint,
    checkpoint_name,
    checkpoint_policy,
    checkpoint_sequential,
    gradient_checkpoint_scope,
    save_and_offload_only_these_names,
    save_anything_except_these_names,
    save_from_both_policies,
    save_only_these_names,
)
from .custom import custom_gradient
from .elementary import scaled_gradient, scaled_gradient_ext, set_requires_gradient, stop_gradient, stop_gradient_scope

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policy",
    "checkpoint_sequential",
    "custom_gradient",
    "gradient_checkpoint_scope",
    "save_and_offload_only_these_names",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
    "scaled_gradient",
    "scaled_gradient_ext",
    "set_requires_gradient",
    "stop_gradient",
    "stop_gradient_scope",
]

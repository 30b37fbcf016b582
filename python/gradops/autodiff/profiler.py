"""The profiler's public names, under the module name that they have in ``torch.autograd``."""

from .._names import namespace
from .diagnostics.profiler import Event, Row, profile, record_function

__all__ = ["Event", "Row", "profile", "record_function"]

__dir__, __getattr__ = namespace(__name__)

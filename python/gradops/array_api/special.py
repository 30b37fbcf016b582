"""Special functions, :mod:`gradops.scipy.special`: SciPy looks here for an array library's own functions."""

from .._names import namespace
from ..scipy.special import *  # noqa: F403
from ..scipy.special import __all__  # noqa: F401

__dir__, __getattr__ = namespace(__name__)

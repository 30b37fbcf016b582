"""Special functions, :mod:`gradops.scipy.special`: SciPy looks here for those of an array's own library."""

from ..scipy.special import *  # noqa: F403
from ..scipy.special import __all__, __dir__, __getattr__  # noqa: F401

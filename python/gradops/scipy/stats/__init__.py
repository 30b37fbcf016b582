"""``scipy.stats``: distributions and descriptive statistics by SciPy's names, with derivatives.

A distribution is an object with SciPy's methods, shapes, ``loc`` and ``scale``; called with its parameters it gives
one with these fixed. Probabilities and quantiles keep their digits far in the tails; ``ilogcdf`` and ``ilogsf`` are the
quantiles of logarithms. Random numbers come of a seed, and have derivatives by the parameters.

Examples:
    >>> import gradops
    >>> from gradops.scipy import stats
    >>> print(stats.norm.logsf(40.0).round(6), gradops.grad(stats.norm.logsf)(40.0).round(6))
    -804.608442 -40.024969
    >>> print(gradops.grad(lambda c: stats.weibull_min.ppf(0.9, c))(2.0).round(6))
    -0.316396

See Also:
    :mod:`gradops.scipy.special`, the functions that these are made of.
"""

from .._names import gathered, namespace
from ._refused import FAMILIES, REFUSED
from .density import *  # noqa: F403
from .descriptive import *  # noqa: F403
from .discretes import *  # noqa: F403
from .gammas import *  # noqa: F403
from .hazards import *  # noqa: F403
from .integrals import *  # noqa: F403
from .multivariates import *  # noqa: F403
from .noncentral import *  # noqa: F403
from .normals import *  # noqa: F403
from .orders import *  # noqa: F403
from .powers import *  # noqa: F403
from .relations import *  # noqa: F403
from .wisharts import *  # noqa: F403

__all__ = gathered(globals())
__dir__, __getattr__ = namespace(
    __name__, __all__, REFUSED | {name: why for name, why in FAMILIES.items() if name not in __all__}
)

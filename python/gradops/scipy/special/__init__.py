"""``scipy.special``: special functions by SciPy's names, with derivatives.

An elementwise function is an op: its value is SciPy's own, or a library's where that has as many digits, and its
derivative a formula, which is computed where it is asked for. NaN outside of a function's domain, as SciPy has it.
SciPy's ``out``, ``where`` and ``dtype`` are not taken.

Examples:
    >>> import gradops
    >>> from gradops.scipy import special
    >>> print(special.gammainc(2.0, 1.0).round(6), gradops.grad(special.gammainc)(2.0, 1.0).round(6))
    0.264241 -0.276196
    >>> print(gradops.grad(special.gammaincinv, argnums=1)(2.0, 0.5).round(6))
    3.191649

See Also:
    :mod:`gradops.scipy.stats`, distributions made of these.
"""

from .._names import gathered, namespace
from ._refused import REFUSED
from .airys import *  # noqa: F403
from .bessel import *  # noqa: F403
from .elementary import *  # noqa: F403
from .elliptic import *  # noqa: F403
from .equations import *  # noqa: F403
from .gammas import *  # noqa: F403
from .harmonics import *  # noqa: F403
from .hypergeometric import *  # noqa: F403
from .incomplete import *  # noqa: F403
from .integrals import *  # noqa: F403
from .logarithms import *  # noqa: F403
from .noncentral import *  # noqa: F403
from .normal import *  # noqa: F403
from .orthogonal import *  # noqa: F403
from .probabilities import *  # noqa: F403
from .spherical import *  # noqa: F403
from .zetas import *  # noqa: F403

__all__ = gathered(globals())
__dir__, __getattr__ = namespace(__name__, __all__, REFUSED)

"""``scipy.special``: special functions by SciPy's names, with derivatives.

An elementwise function is an op. Its value comes from SciPy, or from a library's own function if that is as accurate;
its derivative is a formula that is computed on demand. Values outside of the domain are NaN, as in SciPy. SciPy's
arguments ``out``, ``where`` and ``dtype`` are not supported.

Examples:
    >>> import gradops
    >>> from gradops.scipy import special
    >>> print(special.gammainc(2.0, 1.0).round(6), gradops.grad(special.gammainc)(2.0, 1.0).round(6))
    0.264241 -0.276196
    >>> print(gradops.grad(special.gammaincinv, argnums=1)(2.0, 0.5).round(6))
    3.191649

See Also:
    :mod:`gradops.scipy.stats`, distributions made of these functions.
"""

from .._names import gathered, namespace
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

_SEARCH = "its result is a parameter that cdflib searches for, without a derivative in closed form"
_TEST = "the distribution of a test by ranks, whose derivative is of no use"
_CLASS = "a polynomial as an object, whose coefficients SciPy finds: `eval_{name}` has its values"
_SEQUENCE = "values of all orders to the last, of one number: {instead} of an array of orders"
_NUMPYS = "an error state of SciPy's own ufuncs, not of tensors"

REFUSED = {
    "bdtrik": _SEARCH,
    "bdtrin": _SEARCH,
    "nbdtrik": _SEARCH,
    "nbdtrin": _SEARCH,
    "kolmogi": _TEST,
    "kolmogorov": _TEST,
    "smirnov": _TEST,
    "smirnovi": _TEST,
    "tklmbda": "Tukey's lambda distribution has a quantile in closed form, whose inverse SciPy searches for",
    "errstate": _NUMPYS,
    "geterr": _NUMPYS,
    "seterr": _NUMPYS,
    "SpecialFunctionError": _NUMPYS,
    "SpecialFunctionWarning": _NUMPYS,
    **{
        name: _CLASS.format(name=name)
        for name in (
            "legendre chebyt chebyu chebyc chebys jacobi laguerre genlaguerre hermite hermitenorm gegenbauer"
            " sh_legendre sh_chebyt sh_chebyu sh_jacobi"
        ).split()
    },
    "riccati_jn": _SEQUENCE.format(instead="`x * spherical_jn(n, x)`"),
    "riccati_yn": _SEQUENCE.format(instead="`x * spherical_yn(n, x)`"),
    "pbdn_seq": _SEQUENCE.format(instead="`pbdv(n, x)`"),
    "pbdv_seq": _SEQUENCE.format(instead="`pbdv(v, x)`"),
    "pbvv_seq": _SEQUENCE.format(instead="`pbvv(v, x)`"),
    "lmbda": _SEQUENCE.format(instead="`gamma(v + 1) * (2 / x)**v * jv(v, x)`"),
    "lqn": "Legendre functions of the second kind of all degrees to the last, of one number, without one of an array",
    "lqmn": "Legendre functions of the second kind of all degrees to the last, of one number, without one of an array",
}

__all__ = gathered(globals())
__dir__, __getattr__ = namespace(__name__, __all__, REFUSED)

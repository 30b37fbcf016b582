"""SciPy's special functions that are not here, and why."""

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

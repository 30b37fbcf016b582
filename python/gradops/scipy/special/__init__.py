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

from typing import TYPE_CHECKING

from .._names import namespace, places

if TYPE_CHECKING:
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

_PLACES = places("""
    airys: airy airye bei bei_zeros beip beip_zeros ber ber_zeros berp berp_zeros itairy kei kei_zeros keip
        keip_zeros kelvin kelvin_zeros ker ker_zeros kerp kerp_zeros
    bessel: ai_zeros bi_zeros h1vp h2vp hankel1 hankel1e hankel2 hankel2e i0 i0e i1 i1e iv ive ivp j0 j1 jn
        jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros jv jve jvp k0 k0e k1 k1e kn kv kve kvp y0 y0_zeros y1 y1_zeros
        y1p_zeros yn yn_zeros ynp_zeros yv yve yvp
    elementary: diric huber powm1 pseudo_huber sinc
    elliptic: agm ellip_harm ellip_harm_2 ellip_normal ellipe ellipeinc ellipj ellipk ellipkinc ellipkm1 elliprc
        elliprd elliprf elliprg elliprj
    equations: mathieu_a mathieu_b mathieu_cem mathieu_even_coef mathieu_modcem1 mathieu_modcem2 mathieu_modsem1
        mathieu_modsem2 mathieu_odd_coef mathieu_sem obl_ang1 obl_ang1_cv obl_cv obl_cv_seq obl_rad1 obl_rad1_cv
        obl_rad2 obl_rad2_cv pbdv pbvv pbwa pro_ang1 pro_ang1_cv pro_cv pro_cv_seq pro_rad1 pro_rad1_cv pro_rad2
        pro_rad2_cv
    gammas: bernoulli beta betaln binom comb digamma euler factorial factorial2 factorialk gamma gammaln
        gammasgn loggamma multigammaln perm poch polygamma psi rgamma stirling2
    harmonics: assoc_legendre_p assoc_legendre_p_all legendre_p legendre_p_all lpmv sph_harm_y sph_harm_y_all
        sph_legendre_p sph_legendre_p_all
    hypergeometric: hyp0f1 hyp1f1 hyp2f1 hyperu log_wright_bessel wright_bessel
    incomplete: betainc betaincc betainccinv betaincinv gammainc gammaincc gammainccinv gammaincinv
    integrals: besselpoly erf_zeros exp1 expi expn fresnel fresnel_zeros fresnelc_zeros fresnels_zeros it2i0k0
        it2j0y0 it2struve0 iti0k0 itj0y0 itmodstruve0 itstruve0 modfresnelm modfresnelp modstruve shichi sici
        spence struve wofz
    logarithms: boxcox boxcox1p cbrt cosdg cosm1 cotdg entr exp10 exp2 expit expm1 exprel inv_boxcox
        inv_boxcox1p kl_div log1p log_expit log_softmax logit logsumexp radian rel_entr round sindg softmax
        softplus tandg xlog1py xlogy
    noncentral: chndtr chndtridf chndtrinc chndtrix ncfdtr ncfdtri ncfdtridfd ncfdtridfn ncfdtrinc nctdtr
        nctdtridf nctdtrinc nctdtrit
    normal: dawsn erf erfc erfcinv erfcx erfi erfinv log_ndtr ndtr ndtri ndtri_exp owens_t voigt_profile
    orthogonal: assoc_laguerre c_roots cg_roots eval_chebyc eval_chebys eval_chebyt eval_chebyu eval_gegenbauer
        eval_genlaguerre eval_hermite eval_hermitenorm eval_jacobi eval_laguerre eval_legendre eval_sh_chebyt
        eval_sh_chebyu eval_sh_jacobi eval_sh_legendre h_roots he_roots j_roots js_roots l_roots la_roots
        p_roots ps_roots roots_chebyc roots_chebys roots_chebyt roots_chebyu roots_gegenbauer roots_genlaguerre
        roots_hermite roots_hermitenorm roots_jacobi roots_laguerre roots_legendre roots_sh_chebyt
        roots_sh_chebyu roots_sh_jacobi roots_sh_legendre s_roots t_roots ts_roots u_roots us_roots
    probabilities: bdtr bdtrc bdtri btdtria btdtrib chdtr chdtrc chdtri chdtriv fdtr fdtrc fdtri fdtridfd gdtr
        gdtrc gdtria gdtrib gdtrix nbdtr nbdtrc nbdtri nrdtrimn nrdtrisd pdtr pdtrc pdtri pdtrik stdtr stdtridf
        stdtrit
    spherical: spherical_in spherical_jn spherical_kn spherical_yn
    zetas: lambertw wrightomega zeta zetac
""")

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

__all__ = sorted(_PLACES)
__dir__, __getattr__ = namespace(__name__, __all__, REFUSED, _PLACES)

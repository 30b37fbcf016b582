"""``scipy.stats``: distributions and descriptive statistics by SciPy's names, with derivatives.

A distribution is an object with SciPy's methods, shapes, ``loc`` and ``scale``; called with parameters it returns a
distribution with these fixed. Probabilities and quantiles are accurate far in the tails; ``ilogcdf`` and ``ilogsf`` are
quantiles of log probabilities. Random numbers are drawn from a seed, and have derivatives by the parameters.

Examples:
    >>> import gradops
    >>> from gradops.scipy import stats
    >>> print(stats.norm.logsf(40.0).round(6), gradops.grad(stats.norm.logsf)(40.0).round(6))
    -804.608442 -40.024969
    >>> print(gradops.grad(lambda c: stats.weibull_min.ppf(0.9, c))(2.0).round(6))
    -0.316396

See Also:
    :mod:`gradops.scipy.special`, the functions behind the distributions.
"""

from typing import TYPE_CHECKING

from .._names import namespace, places

if TYPE_CHECKING:
    from .correlation import *  # noqa: F403
    from .descriptive import *  # noqa: F403
    from .directional import *  # noqa: F403
    from .distances import *  # noqa: F403
    from .distributions.beta import *  # noqa: F403
    from .distributions.beta_binomial import *  # noqa: F403
    from .distributions.binomial import *  # noqa: F403
    from .distributions.cauchy import *  # noqa: F403
    from .distributions.dirichlet import *  # noqa: F403
    from .distributions.exponential import *  # noqa: F403
    from .distributions.extreme_value import *  # noqa: F403
    from .distributions.f import *  # noqa: F403
    from .distributions.gamma import *  # noqa: F403
    from .distributions.inverse_gaussian import *  # noqa: F403
    from .distributions.laplace import *  # noqa: F403
    from .distributions.log_series import *  # noqa: F403
    from .distributions.logistic import *  # noqa: F403
    from .distributions.multinomial import *  # noqa: F403
    from .distributions.multivariate_normal import *  # noqa: F403
    from .distributions.negative_binomial import *  # noqa: F403
    from .distributions.noncentral import *  # noqa: F403
    from .distributions.normal import *  # noqa: F403
    from .distributions.pareto import *  # noqa: F403
    from .distributions.planck import *  # noqa: F403
    from .distributions.poisson import *  # noqa: F403
    from .distributions.student_t import *  # noqa: F403
    from .distributions.uniform import *  # noqa: F403
    from .distributions.von_mises import *  # noqa: F403
    from .distributions.weibull import *  # noqa: F403
    from .distributions.wishart import *  # noqa: F403
    from .distributions.zipf import *  # noqa: F403
    from .entropies import *  # noqa: F403
    from .kernel_density import *  # noqa: F403
    from .order_statistics import *  # noqa: F403
    from .power_transforms import *  # noqa: F403
    from .trimmed import *  # noqa: F403

_PLACES = places("""
    correlation: linregress pearsonr pointbiserialr
    descriptive: describe gmean gstd gzscore hmean kstat kstatvar kurtosis moment pmean sem skew variation zmap
        zscore
    directional: circmean circstd circvar directional_stats
    distances: energy_distance wasserstein_distance
    distributions.beta: beta
    distributions.beta_binomial: betabinom betanbinom hypergeom
    distributions.binomial: bernoulli binom
    distributions.cauchy: cauchy halfcauchy wrapcauchy
    distributions.dirichlet: dirichlet dirichlet_multinomial
    distributions.exponential: expon
    distributions.extreme_value: genextreme gumbel_l gumbel_r
    distributions.f: f
    distributions.gamma: chi2 erlang gamma invgamma
    distributions.inverse_gaussian: invgauss
    distributions.laplace: dlaplace laplace
    distributions.log_series: logser
    distributions.logistic: logistic
    distributions.multinomial: multinomial
    distributions.multivariate_normal: matrix_normal multivariate_normal multivariate_t
    distributions.negative_binomial: geom nbinom
    distributions.noncentral: ncf nct ncx2
    distributions.normal: exponnorm gennorm halfnorm lognorm norm skewnorm truncnorm
    distributions.pareto: genpareto pareto
    distributions.planck: boltzmann planck
    distributions.poisson: poisson skellam
    distributions.student_t: t
    distributions.uniform: loguniform randint reciprocal uniform
    distributions.von_mises: vonmises vonmises_line
    distributions.weibull: exponweib rayleigh weibull_min
    distributions.wishart: invwishart wishart
    distributions.zipf: zipf zipfian
    entropies: differential_entropy entropy
    kernel_density: gaussian_kde
    order_statistics: expectile iqr median_abs_deviation mode rankdata
    power_transforms: boxcox boxcox_llf yeojohnson yeojohnson_llf
    trimmed: tmax tmean tmin trim_mean tsem tstd tvar
""")

_TEST = "a test: its statistic is a formula of ops, its p-value the `sf` of a family here"
_RANKS = "a statistic of ranks, or a test by them, whose derivative is 0"
_RESAMPLED = "resampling of known numbers, without a derivative"
_PLOT = "places of a plot of known numbers"
_BINS = "counts in bins, whose derivative is 0: `gradops.ops.histogram`, `gradops.ops.segment_sum`"
_WARNING = "a class of SciPy's for errors and warnings"
_OBJECT = "an object of SciPy's, of its own arrays: use the families themselves"
_ROTATION = "random matrices or directions without a parameter that has a derivative: `gradops.ops.qr` of normal ones"
_SEARCH = "a search on known numbers: `gradops.scipy.optimize` of the negative log-likelihood has derivatives"

REFUSED = {
    name: why
    for why, names in {
        _TEST: """alexandergovern anderson anderson_ksamp bartlett binomtest chi2_contingency chisquare combine_pvalues
            cramervonmises cramervonmises_2samp dunnett epps_singleton_2samp f_oneway false_discovery_control
            goodness_of_fit jarque_bera ks_1samp ks_2samp kstest kurtosistest levene logrank normaltest
            poisson_means_test power_divergence quantile_test shapiro skewtest ttest_1samp ttest_ind
            ttest_ind_from_stats ttest_rel tukey_hsd""",
        _RANKS: """ansari barnard_exact boschloo_exact brunnermunzel bws_test chatterjeexi fisher_exact fligner
            friedmanchisquare kendalltau kruskal mannwhitneyu median_test mood page_trend_test ranksums somersd
            spearmanr spearmanrho tiecorrect weightedtau wilcoxon multiscale_graphcorr siegelslopes theilslopes""",
        _RESAMPLED: """BootstrapMethod MonteCarloMethod PermutationMethod bootstrap monte_carlo_test permutation_test
            power sobol_indices""",
        _PLOT: "boxcox_normplot ppcc_plot probplot yeojohnson_normplot",
        _BINS: """binned_statistic binned_statistic_2d binned_statistic_dd cumfreq ecdf estimated_cdf percentileofscore
            relfreq""",
        _WARNING: "ConstantInputWarning DegenerateDataWarning FitError NearConstantInputWarning",
        _OBJECT: """Binomial CensoredData Covariance Logistic Mixture Normal Uniform abs exp log make_distribution
            order_statistic rv_continuous rv_discrete rv_histogram truncate""",
        _ROTATION: "ortho_group random_correlation special_ortho_group uniform_direction unitary_group",
        _SEARCH: "boxcox_normmax fit ppcc_max yeojohnson_normmax",
        "a posterior of known numbers: use `t` and `invgamma`": "bayes_mvs mvsdist",
        "what is left depends on values: use `gradops.ops.where`, `sort` or `trim_mean`": "sigmaclip trim1 trimboth",
        "use `gradops.ops.quantile` and `gradops.ops.percentile`": "quantile scoreatpercentile",
        "not written; use sums of `gradops.ops.sort`": "lmoment",
        "not written; use a transport by `gradops.scipy.optimize`": "wasserstein_distance_nd",
        "not written; use `gradops.ops.var` of groups": "obrientransform",
        "not written; use its density's formula with `special.multigammaln` and `gradops.ops.slogdet`": "matrix_t",
        "not written; use `invgamma` and `norm`": "normal_inverse_gamma",
        "not written; use its density's formula with `special.ive`": "vonmises_fisher",
        "counts of known numbers; use `special.gammaln`": "multivariate_hypergeom random_table",
        "SciPy's modules of moments, tables and random points, of known numbers": "contingency mstats qmc sampling",
    }.items()
    for name in names.split()
}

_FAMILY = "not written; use its density's formula, and `gradops.scipy.integrate.quad` for probabilities"
FAMILIES = dict.fromkeys(
    """alpha anglit arcsine argus bernoulli beta betabinom betanbinom betaprime binom boltzmann bradford burr burr12
    cauchy chi chi2 cosine crystalball dgamma dlaplace dpareto_lognorm dweibull erlang expon exponnorm exponpow
    exponweib f fatiguelife fisk foldcauchy foldnorm gamma gausshyper genexpon genextreme gengamma genhalflogistic
    genhyperbolic geninvgauss genlogistic gennorm genpareto geom gibrat gompertz gumbel_l gumbel_r halfcauchy
    halfgennorm halflogistic halfnorm hypergeom hypsecant invgamma invgauss invweibull irwinhall jf_skew_t johnsonsb
    johnsonsu kappa3 kappa4 ksone kstwo kstwobign landau laplace laplace_asymmetric levy levy_l levy_stable loggamma
    logistic loglaplace lognorm logser loguniform lomax maxwell mielke moyal nakagami nbinom ncf nchypergeom_fisher
    nchypergeom_wallenius nct ncx2 nhypergeom norm norminvgauss pareto pearson3 planck poisson poisson_binom powerlaw
    powerlognorm powernorm randint rayleigh rdist recipinvgauss reciprocal rel_breitwigner rice semicircular skellam
    skewcauchy skewnorm studentized_range t trapezoid triang truncexpon truncnorm truncpareto truncweibull_min
    tukeylambda uniform vonmises vonmises_line wald weibull_max weibull_min wrapcauchy yulesimon zipf
    zipfian""".split(),
    _FAMILY,
)
"""All families of SciPy; those that are missing here raise an error that says so."""

__all__ = sorted(_PLACES)
__dir__, __getattr__ = namespace(
    __name__,
    __all__,
    REFUSED | {name: why for name, why in FAMILIES.items() if name not in __all__},
    _PLACES | {"ncbeta": "distributions.noncentral"},  # a family of R's, not of SciPy's
)

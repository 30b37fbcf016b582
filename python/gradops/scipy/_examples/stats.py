"""Examples of ``gradops.scipy.stats``: mostly derivatives by parameters, as in fits of likelihoods and quantiles."""

ROWS = """
see gradops.scipy.special.ndtr
norm.logpdf(1.5, loc, 2.0) at loc = 1.0 -> 0.125
skewnorm.logpdf(1.5, a) at a = 2.0 -> 0.006657
truncnorm.mean(a, 1.0) at a = -2.0 -> 0.116765
halfnorm.ppf(0.95, scale=scale) at scale = 2.0 -> 1.959964
lognorm.ppf(0.95, s) at s = 0.5 -> 3.743714
exponnorm.cdf(1.0, K) at K = 1.5 -> -0.167439
gennorm.logpdf(1.5, beta) at beta = 1.2 -> -0.444802

see gradops.scipy.special.stdtrit
t.ppf(0.975, df) at df = 5.0 -> -0.154635
nct.cdf(1.0, 5.0, nc) at nc = 0.5 -> -0.348049
cauchy.logpdf(1.5, loc) at loc = 1.0 -> 0.8
halfcauchy.ppf(0.95, scale=scale) at scale = 2.0 -> 12.706205

see gradops.scipy.special.gammainc
gamma.logpdf(1.5, a) at a = 2.0 -> -0.017319
erlang.ppf(0.95, a) at a = 2.0 -> 1.621524
expon.sf(1.5, scale=scale) at scale = 2.0 -> 0.177137
invgamma.logpdf(1.5, a) at a = 2.0 -> -0.828249
chi2.ppf(0.95, df) at df = 3.0 -> 1.733575
ncx2.cdf(4.0, 3.0, nc) at nc = 1.5 -> -0.1186

see gradops.scipy.special.betainc
beta.logpdf(0.3, a, 3.0) at a = 2.0 -> -0.120639
f.ppf(0.95, dfn, 10.0) at dfn = 3.0 -> -0.290063
ncf.cdf(2.0, 3.0, 10.0, nc) at nc = 1.5 -> -0.093152
uniform.cdf(1.5, 0.0, scale) at scale = 2.0 -> -0.375

weibull_min.logpdf(1.5, c) at c = 2.0 -> -0.006831
exponweib.logpdf(1.5, a, 2.0) at a = 1.5 -> 0.555289
rayleigh.sf(1.5, scale=scale) at scale = 2.0 -> 0.212299
genextreme.ppf(0.99, c) at c = -0.1 -> -14.461092
genpareto.ppf(0.99, c) at c = 0.1 -> 14.49771
gumbel_r.ppf(0.99, 0.0, scale) at scale = 2.0 -> 4.600149
gumbel_l.ppf(0.01, 0.0, scale) at scale = 2.0 -> -4.600149
pareto.logpdf(1.5, b) at b = 2.0 -> 0.094535

laplace.logpdf(1.5, 1.0, scale) at scale = 2.0 -> -0.375
logistic.logpdf(1.5, 1.0, scale) at scale = 2.0 -> -0.484456
loguniform.mean(a, 4.0) at a = 1.0 -> 0.839679
reciprocal.median(a, 4.0) at a = 1.0 -> 1.0
invgauss.logpdf(1.5, mu) at mu = 1.0 -> 0.5

see gradops.scipy.stats.circmean
vonmises.logpdf(0.5, kappa) at kappa = 2.0 -> 0.179808
vonmises_line.cdf(0.5, kappa) at kappa = 2.0 -> 0.06281
wrapcauchy.logpdf(0.5, c) at c = 0.3 -> 1.390822

bernoulli.logpmf(1, p) at p = 0.4 -> 2.5
binom.logpmf(1, 5, p) at p = 0.4 -> -4.166667
betabinom.logpmf(2, 5, a, 3.0) at a = 2.0 -> 0.087698
multinomial.logpmf([1, 2, 2], 5, ops.softmax(z)) at z = np.zeros(3) -> [-0.666667  0.333333  0.333333]
hypergeom: ops.sum(ops.exp(a * np.arange(5)) * stats.hypergeom.pmf(np.arange(5), 20, 7, 4)) at a = 0.0 -> 1.4

nbinom.logpmf(2, n, 0.4) at n = 3.0 -> -0.332957
betanbinom.logpmf(2, 5, a, 3.0) at a = 2.0 -> 0.513456
geom.logpmf(3, p) at p = 0.4 -> -0.833333
logser.logpmf(3, p) at p = 0.4 -> 4.237308
zipf.logpmf(3, a) at a = 2.5 -> -0.809872
zipfian.logpmf(3, a, 10) at a = 2.5 -> -0.850292

poisson.logpmf(2, mu) at mu = 1.5 -> 0.333333
skellam.logpmf(1, mu1, 0.5) at mu1 = 1.5 -> -0.109698
planck.logpmf(2, lambda_) at lambda_ = 0.5 -> -0.458506
boltzmann.logpmf(2, lambda_, 10) at lambda_ = 0.5 -> -0.526342
dlaplace.logpmf(2, a) at a = 0.5 -> -0.080965
randint: ops.sum(ops.exp(a * np.arange(8)) * stats.randint.pmf(np.arange(8), 2, 8)) at a = 0.0 -> 4.5

see gradops.scipy.stats.norm
multivariate_normal.logpdf([2.0, 1.0], mean, [[2.0, 0.5], [0.5, 1.0]]) at mean = np.zeros(2) -> [0.857143 0.571429]
multivariate_t.logpdf([0.5, 1.0], [0.0, 0.0], np.eye(2), df) at df = 5.0 -> 0.028428
matrix_normal.logpdf([[0.5, 1.0]], rowcov=v, colcov=np.eye(2)) at v = np.array([[2.0]]) -> [[-0.34375]]
wishart.logpdf([[1.5]], df, [[0.5]]) at df = 3.0 -> 0.184488
invwishart.logpdf([[1.5]], df, [[0.5]]) at df = 3.0 -> -0.914125

see gradops.scipy.stats.beta gradops.scipy.stats.multinomial
dirichlet.logpdf([0.2, 0.3, 0.5], alpha) at alpha = np.array([1.0, 2.0, 3.0]) -> [0.673895 0.079361 0.090186]
dirichlet_multinomial.logpmf([1, 2], alpha, 3) at alpha = np.array([1.0, 2.0]) -> [0.216667 0.05    ]

see gradops.scipy.stats.norm
gaussian_kde
    >>> at_half = lambda x: stats.gaussian_kde(x)(0.5)[0]
    >>> print(gradops.grad(at_half)(np.array([0.0, 1.0, 3.0])).round(6))
    [ 0.068492 -0.02436  -0.066696]

gmean(a) at a = np.array([1.0, 2.0, 4.0]) -> [0.666667 0.333333 0.166667]
hmean(a) at a = np.array([1.0, 2.0, 4.0]) -> [0.979592 0.244898 0.061224]
pmean([1.0, 2.0, 4.0], p) at p = 2.0 -> 0.284811
tmean(a, (1.5, None)) at a = np.array([1.0, 2.0, 4.0]) -> [0.  0.5 0.5]
trim_mean(a, 0.25) at a = np.array([1.0, 2.0, 4.0, 9.0]) -> [0.  0.5 0.5 0. ]
expectile([1.0, 2.0, 4.0], alpha) at alpha = 0.7 -> 2.95858

see gradops.ops.var
moment(a, 3) at a = np.array([1.0, 2.0, 5.0]) -> [-0.111111 -2.444444  2.555556]
skew(a) at a = np.array([1.0, 2.0, 5.0]) -> [ 0.281989 -0.375986  0.093996]
kurtosis(a) at a = np.array([1.0, 2.0, 5.0, 7.0]) -> [-0.046371  0.185485 -0.324598  0.185485]
kstat(a, 3) at a = np.array([1.0, 2.0, 5.0]) -> [ -0.5 -11.   11.5]
kstatvar(a, 1) at a = np.array([1.0, 2.0, 5.0]) -> [-0.555556 -0.222222  0.777778]
describe(a).variance at a = np.array([1.0, 2.0, 5.0]) -> [-1.666667 -0.666667  2.333333]

sem(a) at a = np.array([1.0, 2.0, 5.0]) -> [-0.231125 -0.09245   0.323575]
variation(a) at a = np.array([1.0, 2.0, 5.0]) -> [-0.202245 -0.128701  0.091929]
gstd(a) at a = np.array([1.0, 2.0, 5.0]) -> [-1.065703 -0.051639  0.233796]
tvar(a, (1.5, None)) at a = np.array([1.0, 2.0, 5.0]) -> [ 0. -3.  3.]
tstd(a, (1.5, None)) at a = np.array([1.0, 2.0, 5.0]) -> [ 0.       -0.707107  0.707107]
tsem(a, (1.5, None)) at a = np.array([1.0, 2.0, 5.0]) -> [ 0.  -0.5  0.5]

zscore(a)[0] at a = np.array([1.0, 2.0, 5.0]) -> [ 0.203659 -0.271545  0.067886]
gzscore(a)[0] at a = np.array([1.0, 2.0, 5.0]) -> [ 0.325737 -0.286074  0.049282]
zmap([3.0], compare)[0] at compare = np.array([1.0, 2.0, 5.0]) -> [-0.158401 -0.18103  -0.248917]

tmin(a, 1.5) at a = np.array([1.0, 2.0, 5.0]) -> [0. 1. 0.]
tmax(a, 4.5) at a = np.array([1.0, 2.0, 5.0]) -> [0. 1. 0.]
iqr(x) at x = np.array([1.0, 2.0, 5.0, 9.0]) -> [-0.25 -0.75  0.75  0.25]
median_abs_deviation(x) at x = np.array([1.0, 2.0, 5.0, 9.0]) -> [-0.5  0.   0.5  0. ]
mode(a).mode at a = np.array([1.0, 2.0, 2.0]) -> [0. 0. 0.]
also rankdata

see gradops.scipy.spatial.distance.jensenshannon
wasserstein_distance(u, [0.0, 1.0]) at u = np.array([0.5, 2.0]) -> [0.5 0.5]
energy_distance(u, [0.0, 1.0]) at u = np.array([0.5, 2.0]) -> [0.288675 0.288675]
entropy(pk) at pk = np.array([0.2, 0.3, 0.5]) -> [ 0.579785  0.17432  -0.336506]
differential_entropy(x) at x = np.arange(5.0) ** 2 -> [-0.083333 -0.041667  0.055556  0.041667  0.027778]

see gradops.scipy.special.boxcox
boxcox(x, 0.5)[0] at x = np.array([1.0, 2.0]) -> [1. 0.]
boxcox_llf(lmb, [1.0, 2.0, 5.0]) at lmb = 0.5 -> -0.548151
yeojohnson(x, 0.5)[0] at x = np.array([-1.0, 2.0]) -> [1.414214 0.      ]
yeojohnson_llf(lmb, [-1.0, 2.0, 5.0]) at lmb = 0.5 -> 0.563106

see gradops.scipy.stats.vonmises
circmean(x) at x = np.array([0.5, 1.0, 2.0]) -> [0.325956 0.404515 0.269529]
circvar(x) at x = np.array([0.5, 1.0, 2.0]) -> [-0.201366 -0.049362  0.250727]
circstd(x) at x = np.array([0.5, 1.0, 2.0]) -> [-0.386237 -0.09468   0.480917]
directional_stats(x).mean_resultant_length at x = np.array([[1.0, 0.0], [0.6, 0.8]]) -> [[ 0.        0.223607]
     [ 0.178885 -0.134164]]

see gradops.scipy.optimize.curve_fit
pearsonr(x, [1.0, 2.0, 2.0]).statistic at x = np.array([1.0, 2.0, 4.0]) -> [-0.161985  0.242977 -0.080992]
pointbiserialr([False, True, True], y).statistic at y = np.array([1.0, 2.0, 4.0]) -> [-0.161985  0.242977 -0.080992]
linregress([0.0, 1.0, 2.0], y).slope at y = np.array([1.0, 2.0, 4.0]) -> [-0.5  0.   0.5]
"""

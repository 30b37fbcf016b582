"""Examples of ``gradops.scipy.special``."""

ROWS = """
see gradops.scipy.stats.gamma
gammainc(a, 1.0) at a = 2.0 -> -0.276196
gammaincc(2.0, x) at x = 1.0 -> -0.367879
gammaincinv(a, 0.5) at a = 2.0 -> 0.993295
gammainccinv(2.0, p) at p = 0.05 -> -24.215972

see gradops.scipy.stats.beta
betainc(a, 3.0, 0.4) at a = 2.0 -> -0.240869
betaincc(2.0, b, 0.4) at b = 3.0 -> -0.156344
betaincinv(a, 3.0, 0.5) at a = 2.0 -> 0.140026
betainccinv(2.0, 3.0, p) at p = 0.05 -> -1.794452

gamma(z) at z = 2.5 -> 0.934735
loggamma(z) at z = 2.5 -> 0.703157
rgamma(z) at z = -1.0 -> -1.0
gammasgn(x) at x = -0.5 -> 0.0
multigammaln(a, 3) at a = 2.5 -> 1.162431
digamma(z) at z = 2.5 -> 0.490358
polygamma(1, x) at x = 2.5 -> -0.236204

beta(a, 3.0) at a = 2.0 -> -0.090278
betaln(a, 3.0) at a = 2.0 -> -1.083333
binom(5.0, k) at k = 2.0 -> 3.333333
poch(a, 3.0) at a = 2.0 -> 26.0
comb(N, 2) at N = 5.0 -> 4.5
perm(N, 2) at N = 5.0 -> 9.0
factorial(n) at n = 3.0 -> 7.536706
also factorial2 factorialk stirling2

see gradops.scipy.special.zeta
also bernoulli euler

erf(z) at z = 0.5 -> 0.878783
erfc(x) at x = 0.5 -> -0.878783
erfcx(x) at x = 2.0 -> -0.106796
erfi(z) at z = 0.5 -> 1.448868
erfcinv(p) at p = 0.3 -> -1.516363
dawsn(x) at x = 1.0 -> -0.076159
wofz: special.wofz(z).imag at z = 0.5 -> 0.649454
also erf_zeros

see gradops.scipy.stats.norm
log_ndtr(x) at x = -10.0 -> 10.098093
ndtri(p) at p = 0.975 -> 17.110083
ndtri_exp(p) at p = -2.0 -> 0.622265
owens_t(1.0, a) at a = 0.5 -> 0.068152
voigt_profile(0.5, sigma, 0.3) at sigma = 1.0 -> -0.178453

jv(v, 1.5) at v = 0.5 -> -0.007452
yv(v, 1.5) at v = 0.5 -> -0.834689
iv(v, 1.5) at v = 0.5 -> -0.741052
kv(v, 1.5) at v = 0.5 -> 0.059843

j0(x) at x = 1.5 -> -0.557937
j1(x) at x = 1.5 -> 0.13987
y0(x) at x = 1.5 -> 0.412309
y1(x) at x = 1.5 -> 0.657321
yn(2, x) at x = 1.5 -> 0.830616

i0(x) at x = 1.5 -> 0.981666
i1(x) at x = 1.5 -> 0.992279
k0(x) at x = 1.5 -> -0.277388
k1(x) at x = 1.5 -> -0.398731
kn(2, x) at x = 1.5 -> -1.055596

jve(0.5, z) at z = 1.5 -> -0.17053
yve(0.5, z) at z = 1.5 -> 0.665199
ive(0.5, z) at z = 1.5 -> -0.070738
kve(0.5, z) at z = 1.5 -> -0.341109
i0e(x) at x = 1.5 -> -0.148394
i1e(x) at x = 1.5 -> 0.002368
k0e(x) at x = 1.5 -> -0.284956
k1e(x) at x = 1.5 -> -0.543821

jvp(0.5, z) at z = 1.5 -> -0.463947
yvp(0.5, z) at z = 1.5 -> -0.402503
ivp(0.5, z) at z = 1.5 -> 0.827866
kvp(0.5, z) at z = 1.5 -> 0.45667
h1vp: abs(special.h1vp(0.5, z)) at z = 1.5 -> -0.274684
h2vp: abs(special.h2vp(0.5, z)) at z = 1.5 -> -0.274684

hankel1: abs(special.hankel1(0.5, z)) at z = 1.5 -> -0.217157
hankel2: abs(special.hankel2(0.5, z)) at z = 1.5 -> -0.217157
hankel1e: special.hankel1e(1.0, z).real at z = 1.5 -> 0.079864
hankel2e: special.hankel2e(1.0, z).real at z = 1.5 -> 0.079864

see gradops.scipy.special.jv gradops.scipy.special.yv
also jn_zeros jnp_zeros yn_zeros ynp_zeros jnjnp_zeros jnyn_zeros y0_zeros y1_zeros y1p_zeros

spherical_jn(1, z) at z = 1.5 -> 0.136766
spherical_yn(1, z) at z = 1.5 -> 0.881422
spherical_in(1, z) at z = 1.5 -> 0.590284
spherical_kn(1, z) at z = 1.5 -> -0.752909

airy(z)[0] at z = 0.5 -> -0.224911
airye(z)[0] at z = 0.5 -> -0.077313
itairy(x)[0] at x = 0.5 -> 0.231694
also ai_zeros bi_zeros

ber(x) at x = 1.5 -> -0.210011
bei(x) at x = 1.5 -> 0.730251
ker(x) at x = 1.5 -> -0.294182
kei(x) at x = 1.5 -> 0.295608
kelvin: abs(special.kelvin(x)[0]) at x = 1.5 -> 0.198502
berp(x) at x = 1.5 -> -0.417553
beip(x) at x = 1.5 -> 0.434238
kerp(x) at x = 1.5 -> 0.527517
keip(x) at x = 1.5 -> -0.144137
also kelvin_zeros ber_zeros bei_zeros ker_zeros kei_zeros berp_zeros beip_zeros kerp_zeros keip_zeros

iti0k0(x)[0] at x = 1.5 -> 1.646723
itj0y0(x)[0] at x = 1.5 -> 0.511828
it2i0k0(x)[0] at x = 1.5 -> 0.431149
it2j0y0(x)[0] at x = 1.5 -> 0.325448
besselpoly(a, 0.5, 0.0) at a = 1.0 -> -0.410429

struve(0.5, x) at x = 1.5 -> 0.448042
modstruve(0.5, x) at x = 1.5 -> 1.093477
itstruve0(x) at x = 1.5 -> 0.736723
it2struve0(x) at x = 1.5 -> -0.491149
itmodstruve0(x) at x = 1.5 -> 1.216163

exp1(z) at z = 0.5 -> -1.213061
expi(x) at x = 0.5 -> 3.297443
expn(2, x) at x = 0.5 -> -0.559774
spence(z) at z = 0.5 -> -1.386294
sici(x)[0] at x = 0.5 -> 0.958851
shichi(x)[0] at x = 0.5 -> 1.042191

fresnel(z)[0] at z = 0.5 -> 0.382683
modfresnelp(x)[0].real at x = 0.5 -> -0.968912
modfresnelm(x)[0].real at x = 0.5 -> -0.968912
also fresnel_zeros fresnelc_zeros fresnels_zeros

ellipk(m) at m = 0.5 -> 0.847213
ellipkm1(p) at p = 0.1 -> -4.705364
ellipkinc(1.0, m) at m = 0.5 -> 0.205761
ellipe(m) at m = 0.5 -> -0.503431
ellipeinc(phi, 0.5) at phi = 1.0 -> 0.803718
ellipj(u, 0.5)[0] at u = 1.0 -> 0.490585
agm(a, 2.0) at a = 1.0 -> 0.605209

elliprc(x, 2.0) at x = 1.0 -> -0.107301
elliprd(1.0, 2.0, z) at z = 3.0 -> -0.094605
elliprf(x, 2.0, 3.0) at x = 1.0 -> -0.093185
elliprg(x, 2.0, 3.0) at x = 1.0 -> 0.135144
elliprj(1.0, 2.0, 3.0, p) at p = 4.0 -> -0.040745

see gradops.scipy.special.ellipj gradops.scipy.special.sph_harm_y
also ellip_harm ellip_harm_2 ellip_normal

huber(delta, 2.0) at delta = 1.5 -> 0.5
pseudo_huber(delta, 2.0) at delta = 1.5 -> 0.4

see gradops.scipy.special.gammaln
powm1(1.5, p) at p = 2.0 -> 0.912296
exprel(x) at x = 0.5 -> 0.702557
expm1(x) at x = 0.5 -> 1.648721
cosm1(x) at x = 0.01 -> -0.01
exp10(x) at x = 2.0 -> 230.258509
round(x) at x = 1.4 -> 0.0

cosdg(x) at x = 60.0 -> -0.015115
sindg(x) at x = 60.0 -> 0.008727
tandg(x) at x = 60.0 -> 0.069813
cotdg(x) at x = 60.0 -> -0.023271
radian(d, 30.0, 0.0) at d = 45.0 -> 0.017453
diric(x, 5) at x = 1.0 -> -1.064026

see gradops.scipy.stats.boxcox
boxcox(3.0, lmbda) at lmbda = 0.5 -> 0.877501
boxcox1p(3.0, lmbda) at lmbda = 0.5 -> 1.545177
inv_boxcox(v, 0.5) at v = 1.5 -> 1.75
inv_boxcox1p(v, 0.5) at v = 1.5 -> 1.75

see gradops.scipy.stats.entropy
entr(x) at x = 0.3 -> 0.203973
rel_entr(x, 0.5) at x = 0.3 -> 0.489174
kl_div(0.3, v) at v = 0.5 -> 0.4
xlogy(x, 0.5) at x = 0.3 -> -0.693147
xlog1py(0.3, v) at v = 0.5 -> 0.2

see gradops.ops.sigmoid
expit(x) at x = 2.0 -> 0.104994

see gradops.scipy.special.expit
logit(x) at x = 0.3 -> 4.761905
softmax(x)[0] at x = np.array([1.0, 2.0, 3.0]) -> [ 0.081925 -0.022033 -0.059892]
log_softmax(x)[0] at x = np.array([1.0, 2.0, 3.0]) -> [ 0.909969 -0.244728 -0.665241]
logsumexp(a) at a = np.array([1.0, 2.0, 3.0]) -> [0.090031 0.244728 0.665241]

hyp0f1(1.5, z) at z = 0.5 -> 0.809885
hyp1f1(1.5, 2.0, x) at x = 0.5 -> 1.142406
hyperu(1.5, 2.0, x) at x = 0.5 -> -3.831192
hyp2f1(1.0, 1.5, 2.5, z) at z = 0.3 -> 0.990158

see gradops.scipy.special.iv
wright_bessel(0.5, 1.5, x) at x = 1.0 -> 2.060126
log_wright_bessel(0.5, 1.5, x) at x = 1.0 -> 0.791779

zeta(x) at x = 2.0 -> -0.937548
zetac(x) at x = 2.0 -> -0.937548
lambertw(z).real at z = 1.0 -> 0.361896
wrightomega(z) at z = 1.0 -> 0.5

lpmv(1, 2.0, x) at x = 0.3 -> -2.578781
legendre_p(3, z) at z = 0.3 -> -0.825
assoc_legendre_p(3, 1, z)[0] at z = 0.3 -> -4.552177
sph_legendre_p(3, 1, theta) at theta = 0.5 -> -0.156633
sph_harm_y: special.sph_harm_y(2, 1, theta, 0.3).real at theta = 0.5 -> -0.398767

legendre_p_all(2, z)[0] by z = 0.3 -> [0.  1.  0.9]
assoc_legendre_p_all(1, 1, z)[0][1] by z = 0.3 -> [ 1.        0.314485 -0.157243]
sph_legendre_p_all(1, 1, theta)[0][1] by theta = 0.5 -> [-0.234249 -0.3032    0.3032  ]
sph_harm_y_all: special.sph_harm_y_all(1, 1, theta, 0.3)[1].real by theta = 0.5 -> [-0.234249 -0.289658  0.289658]

eval_legendre(3, x) at x = 0.3 -> -0.825
eval_chebyt(3, x) at x = 0.3 -> -1.92
eval_chebyu(3, x) at x = 0.3 -> -1.84
eval_gegenbauer(3, 1.5, x) at x = 0.3 -> -2.775
eval_jacobi(3, 1.5, 0.5, x) at x = 0.3 -> 0.84
eval_laguerre(3, x) at x = 0.3 -> -2.145
eval_genlaguerre(3, 1.5, x) at x = 0.3 -> -6.57
assoc_laguerre(x, 3, 1.5) at x = 0.3 -> -6.57
eval_hermite(3, x) at x = 0.3 -> -9.84
eval_hermitenorm(3, x) at x = 0.3 -> -2.73

eval_chebyc(3, x) at x = 0.3 -> -2.73
eval_chebys(3, x) at x = 0.3 -> -1.73
eval_sh_chebyt(3, x) at x = 0.3 -> -2.16
eval_sh_chebyu(3, x) at x = 0.3 -> -0.32
eval_sh_legendre(3, x) at x = 0.3 -> -0.6
eval_sh_jacobi(3, 2.0, 1.5, x) at x = 0.3 -> -0.005

see gradops.scipy.integrate.fixed_quad
roots_legendre
    >>> nodes, weights = special.roots_legendre(4)  # the integral of exp(a * x) from -1 to 1
    >>> print(gradops.grad(lambda a: ops.sum(weights * ops.exp(a * nodes)))(1.0).round(6))
    0.735757
roots_hermitenorm
    >>> nodes, weights = special.roots_hermitenorm(8)  # the mean of exp(s * z) of normal z
    >>> print(gradops.grad(lambda s: ops.sum(weights * ops.exp(s * nodes)) / np.sqrt(2 * np.pi))(0.5).round(6))
    0.566574
roots_genlaguerre
    >>> nodes, weights = special.roots_genlaguerre(12, 1.0)  # the mean of log(1 + s * x) of gamma x of shape 2
    >>> print(gradops.grad(lambda s: ops.sum(weights * ops.log1p(s * nodes)))(0.5).round(6))
    0.890629
roots_jacobi
    >>> nodes, weights = special.roots_jacobi(4, 1.0, 2.0)  # the integral of (1 - x) * (1 + x)**2 * exp(a * x)
    >>> print(gradops.grad(lambda a: ops.sum(weights * ops.exp(a * nodes)))(1.0).round(6))
    0.612763
also p_roots roots_sh_legendre ps_roots
also roots_chebyt t_roots roots_chebyu u_roots roots_chebyc c_roots roots_chebys s_roots
also roots_sh_chebyt ts_roots roots_sh_chebyu us_roots
also roots_gegenbauer cg_roots j_roots roots_sh_jacobi js_roots
also roots_laguerre l_roots la_roots roots_hermite h_roots he_roots

mathieu_a(2, q) at q = 0.5 -> 0.391224
mathieu_b(2, q) at q = 0.5 -> -0.083153
mathieu_cem(2, 0.5, x)[0] at x = 30.0 -> -0.027262
mathieu_sem(2, 0.5, x)[0] at x = 30.0 -> 0.018822
mathieu_modcem1(2, 0.5, x)[0] at x = 0.3 -> 0.126322
mathieu_modcem2(2, 0.5, x)[0] at x = 0.3 -> 2.729325
mathieu_modsem1(2, 0.5, x)[0] at x = 0.3 -> 0.260961
mathieu_modsem2(2, 0.5, x)[0] at x = 0.3 -> 2.579077
also mathieu_even_coef mathieu_odd_coef

pro_ang1(0, 1, 1.5, x)[0] at x = 0.3 -> 0.941539
pro_rad1(0, 1, 1.5, x)[0] at x = 1.5 -> -0.051043
pro_rad2(0, 1, 1.5, x)[0] at x = 1.5 -> 1.14393
pro_ang1_cv(0, 1, 1.5, 3.3, x)[0] at x = 0.3 -> 0.941618
pro_rad1_cv(0, 1, 1.5, 3.3, x)[0] at x = 1.5 -> -0.051056
pro_rad2_cv(0, 1, 1.5, 3.3, x)[0] at x = 1.5 -> 1.144728
also pro_cv pro_cv_seq

obl_ang1(0, 1, 1.5, x)[0] at x = 0.3 -> 1.063043
obl_rad1(0, 1, 1.5, x)[0] at x = 1.5 -> -0.064116
obl_rad2(0, 0, 1.5, x)[0] at x = 1.5 -> 0.132696
obl_ang1_cv(0, 1, 1.5, 0.6, x)[0] at x = 0.3 -> 1.062933
obl_rad1_cv(0, 1, 1.5, 0.6, x)[0] at x = 1.5 -> -0.064108
obl_rad2_cv(0, 0, 1.5, -0.83, x)[0] at x = 1.5 -> 0.132699
also obl_cv obl_cv_seq

pbdv(0.5, x)[0] at x = 1.5 -> -0.336285
pbvv(0.5, x)[0] at x = 1.5 -> 0.794939
pbwa(0.5, x)[0] at x = 1.5 -> -0.267264

see gradops.scipy.stats.ncx2
chndtr(x, 3.0, 1.5) at x = 4.0 -> 0.119695
chndtrix(0.5, df, 1.5) at df = 3.0 -> 1.033305
chndtridf(4.0, 0.5, nc) at nc = 1.5 -> -0.902217
chndtrinc(x, 3.0, 0.5) at x = 4.0 -> 1.061425

see gradops.scipy.stats.ncf
ncfdtr(3.0, 10.0, nc, 2.0) at nc = 1.5 -> -0.093152
ncfdtri(3.0, 10.0, nc, 0.5) at nc = 1.5 -> 0.325723
ncfdtridfn(0.5, 10.0, nc, 2.0) at nc = 1.5 -> 1.475722
ncfdtridfd(3.0, 0.6, nc, 2.0) at nc = 1.5 -> 2.818273
ncfdtrinc(3.0, 10.0, 0.5, f) at f = 2.0 -> 2.904665

see gradops.scipy.stats.nct
nctdtr(5.0, nc, 1.0) at nc = 0.5 -> -0.348049
nctdtrit(5.0, nc, 0.7) at nc = 0.5 -> 1.116518
nctdtridf(0.7, nc, 1.1) at nc = 0.5 -> 76.229037
nctdtrinc(5.0, 0.7, t) at t = 1.1 -> 0.89609

see gradops.scipy.special.gammainc gradops.scipy.stats.gamma
gdtr(a, 2.0, 1.5) at a = 0.5 -> 0.531412
gdtrc(a, 2.0, 1.5) at a = 0.5 -> -0.531412
gdtrix(0.5, b, 0.3) at b = 2.0 -> 1.581611
gdtria(0.3, 2.0, x) at x = 1.5 -> -0.487711
gdtrib(0.5, 0.3, x) at x = 1.5 -> 0.664033

see gradops.scipy.special.betainc gradops.scipy.stats.beta
btdtria(0.3, 2.0, x) at x = 0.5 -> 9.975999
btdtrib(2.0, 0.3, x) at x = 0.5 -> -4.292895

see gradops.scipy.stats.chi2
chdtr(v, 2.0) at v = 3.0 -> -0.187345
chdtrc(v, 2.0) at v = 3.0 -> 0.187345
chdtri(v, 0.05) at v = 3.0 -> 1.733575
chdtriv(0.5, x) at x = 2.0 -> 1.017567

see gradops.scipy.stats.poisson
pdtr(2, m) at m = 1.5 -> -0.251021
pdtrc(2, m) at m = 1.5 -> 0.251021
pdtri(2, p) at p = 0.8 -> -3.939576
pdtrik(0.8, m) at m = 1.5 -> 1.353716

see gradops.scipy.stats.binom
bdtr(2, 5, p) at p = 0.4 -> -1.728
bdtrc(2, 5, p) at p = 0.4 -> 1.728
bdtri(2, 5, p) at p = 0.7 -> -0.589164

see gradops.scipy.stats.nbinom
nbdtr(2, 3, p) at p = 0.4 -> 1.728
nbdtrc(2, 3, p) at p = 0.4 -> -1.728
nbdtri(2, 3, p) at p = 0.3 -> 0.589164

see gradops.scipy.stats.f
fdtr(3.0, 10.0, x) at x = 2.0 -> 0.148211
fdtrc(3.0, 10.0, x) at x = 2.0 -> -0.148211
fdtri(dfn, 10.0, 0.95) at dfn = 3.0 -> -0.290063
fdtridfd(3.0, 0.8, x) at x = 2.0 -> -13.805722

see gradops.scipy.stats.t
stdtr(df, 1.0) at df = 5.0 -> 0.004337
stdtrit(df, 0.975) at df = 5.0 -> -0.154635
stdtridf(0.8, t) at t = 1.0 -> -14.518538

see gradops.scipy.special.ndtr gradops.scipy.stats.norm
nrdtrimn(0.3, std, 1.0) at std = 2.0 -> 0.524401
nrdtrisd(0.0, p, 1.0) at p = 0.8 -> -5.042753
"""

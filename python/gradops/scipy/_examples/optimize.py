"""Examples of ``gradops.scipy.optimize``: derivatives of solutions by the parameters of their functions."""

ROWS = """
brentq(lambda x: x**3 - a, 0.0, 5.0) at a = 8.0 -> 0.083333
brenth(lambda x: x**3 - a, 0.0, 5.0) at a = 8.0 -> 0.083333
bisect(lambda x: x**3 - a, 0.0, 5.0) at a = 8.0 -> 0.083333
ridder(lambda x: x**3 - a, 0.0, 5.0) at a = 8.0 -> 0.083333
toms748(lambda x: x**3 - a, 0.0, 5.0) at a = 8.0 -> 0.083333
newton(lambda x: x**3 - a, 1.5) at a = 8.0 -> 0.083333
root_scalar(lambda x: x**3 - a, bracket=(0.0, 5.0)).root at a = 8.0 -> 0.083333

see gradops.functional.root
root(lambda x: x**3 - a, [1.5]).x[0] at a = 8.0 -> 0.083333
fsolve(lambda x: x**3 - a, [1.5])[0] at a = 8.0 -> 0.083333
fixed_point(lambda x: np.cos(a * x), 0.7) at a = 1.0 -> -0.297474

minimize(lambda x: ((x - a) ** 2).sum() + x[0] ** 4, [0.0]).x[0] at a = 1.0 -> 0.323954
minimize_scalar(lambda x: x**4 / 4 + x**2 / 2 - a * x).x at a = 2.0 -> 0.25
brent(lambda x: x**4 / 4 + x**2 / 2 - a * x) at a = 2.0 -> 0.25
golden(lambda x: x**4 / 4 + x**2 / 2 - a * x) at a = 2.0 -> 0.25
fminbound(lambda x: x**4 / 4 + x**2 / 2 - a * x, 0.0, 5.0) at a = 2.0 -> 0.25

see gradops.scipy.optimize.minimize
fmin(lambda x: (x**4 / 4 + x**2 / 2 - a * x)[0], [0.0], disp=0)[0] at a = 2.0 -> 0.25
fmin_powell(lambda x: (x**4 / 4 + x**2 / 2 - a * x)[0], [0.0], disp=0)[0] at a = 2.0 -> 0.25
fmin_bfgs(lambda x: (x**4 / 4 + x**2 / 2 - a * x)[0], [0.0], disp=0)[0] at a = 2.0 -> 0.25
fmin_cg(lambda x: (x**4 / 4 + x**2 / 2 - a * x)[0], [0.0], disp=0)[0] at a = 2.0 -> 0.25
fmin_ncg(lambda x: (x**4 / 4 + x**2 / 2 - a * x)[0], [0.0], disp=0)[0] at a = 2.0 -> 0.25
fmin_l_bfgs_b(lambda x: (x**4 / 4 + x**2 / 2 - a * x)[0], [0.0])[0][0] at a = 2.0 -> 0.25
fmin_tnc(lambda x: (x**4 / 4 + x**2 / 2 - a * x)[0], [0.0])[0][0] at a = 2.0 -> 0.25

see gradops.scipy.stats.linregress
curve_fit(lambda t, k: np.exp(-k * t), [0.5, 1.0], y)[0][0] at y = np.array([0.6, 0.4]) -> [-1.288573 -1.597156]
least_squares(lambda k: np.exp(-k * np.arange(2)) - y, [1.0]).x[0] at y = np.array([0.9, 0.6]) -> [-0.       -1.666667]
leastsq(lambda k: np.exp(-k * np.arange(2)) - y, [1.0])[0][0] at y = np.array([0.9, 0.6]) -> [-0.       -1.666667]

see gradops.scipy.linalg.lstsq
nnls([[1.0, 0.5], [0.5, 1.0]], b)[0] by b = np.array([2.0, 1.5]) -> [[ 1.333333 -0.666667]
     [-0.666667  1.333333]]
lsq_linear([[1.0, 0.5], [0.5, 1.0]], b, (0.0, 1.2)).x by b = np.array([1.0, 2.0]) -> [[0.8 0.4]
     [0.  0. ]]
isotonic_regression(y).x by y = np.array([1.0, 3.0, 2.0]) -> [[1.  0.  0. ]
     [0.  0.5 0.5]
     [0.  0.5 0.5]]

see gradops.grad gradops.jacobian
approx_fprime(x, lambda x: (x**3).sum()) by x = np.array([1.0, 2.0]) -> [[ 6.  0.]
     [ 0. 12.]]
check_grad(lambda x: x[0] ** 3, lambda x: 2 * x**2, x) at x = np.array([2.0]) -> [4.]

see gradops.hessian
rosen(x) at x = np.array([1.0, 2.0]) -> [-400.  200.]
rosen_der(x) by x = np.array([1.0, 2.0]) -> [[ 402. -400.]
     [-400.  200.]]
rosen_hess(x)[0, 0] at x = np.array([1.0, 2.0]) -> [2400. -400.]
rosen_hess_prod([1.0, 2.0], p) by p = np.array([1.0, 2.0]) -> [[ 402. -400.]
     [-400.  200.]]

see gradops.scipy.optimize.nnls
linear_sum_assignment
    >>> least = lambda cost: cost[optimize.linear_sum_assignment(ops.stop_gradient(cost))].sum()
    >>> print(gradops.grad(least)(np.array([[3.0, 1.0], [2.0, 4.0]])))
    [[0. 1.]
     [1. 0.]]
"""

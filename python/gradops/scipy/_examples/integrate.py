"""Examples of ``gradops.scipy.integrate``."""

ROWS = """
see gradops.scipy.special.roots_legendre
quad(lambda x: np.exp(-b * x**2), 0.0, np.inf)[0] at b = 2.0 -> -0.156664
quad_vec(lambda x: np.exp(-b * x), 0.0, 1.0)[0].sum() at b = np.array([1.0, 2.0]) -> [-0.264241 -0.148499]
fixed_quad(lambda x: np.exp(-b * x), 0.0, 1.0)[0] at b = 2.0 -> -0.148499
dblquad(lambda y, x: b * x * y, 0.0, 2.0, 0.0, 1.0)[0] at b = 2.0 -> 1.0
tplquad(lambda z, y, x: b * x * y * z, 0.0, 2.0, 0.0, 1.0, 0.0, 1.0)[0] at b = 2.0 -> 0.5
nquad(lambda y, x: b * x * y, [[0.0, 1.0], [0.0, 2.0]])[0] at b = 2.0 -> 1.0

see gradops.scipy.interpolate.splint
trapezoid(y, [0.0, 1.0, 3.0]) at y = np.array([1.0, 2.0, 4.0]) -> [0.5 1.5 1. ]
cumulative_trapezoid(y) by y = np.array([1.0, 2.0, 4.0]) -> [[0.5 0.5 0. ]
     [0.5 1.  0.5]]
simpson(y) at y = np.array([1.0, 2.0, 4.0]) -> [0.333333 1.333333 0.333333]
cumulative_simpson(y) by y = np.array([1.0, 2.0, 4.0]) -> [[ 0.416667  0.666667 -0.083333]
     [ 0.333333  1.333333  0.333333]]
romb(y) at y = np.array([1.0, 2.0, 4.0]) -> [0.333333 1.333333 0.333333]
newton_cotes: ops.sum(integrate.newton_cotes(2)[0] * y) at y = np.array([1.0, 2.0, 4.0]) -> [0.333333 1.333333 0.333333]
also lebedev_rule

see gradops.ops.scan
solve_ivp
    >>> end = lambda rate: integrate.solve_ivp(lambda t, y: -rate * y, (0.0, 2.0), [1.0], rtol=1e-9).y[0, -1]
    >>> print(gradops.grad(end)(0.5).round(4))
    -0.7358
odeint(lambda y, t: -rate * y, 1.0, [0.0, 2.0], rtol=1e-10)[-1, 0] at rate = 0.5 -> -0.735759
"""

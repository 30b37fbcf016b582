"""``scipy.integrate``: integrals of samples and functions, and initial value problems.

Integrals of samples, and ``fixed_quad``, are composed of ops. For functions, SciPy finds the integral or the solution
of the equation on numbers. If the function depends on tensors with a gradient, in ``args`` or in its closure, the
result is recorded as a sum over points, or as integration steps. Errors raised by the function are passed on unchanged.
In compiled functions, where values are not known, use ``fixed_quad``, and for equations your own steps in
``gradops.ops.scan``.

Examples:
    >>> import numpy as np
    >>> import gradops
    >>> from gradops.scipy import integrate
    >>> def area(b):
    ...     return integrate.quad(lambda x: np.exp(-b * x**2), 0.0, np.inf)[0]
    >>> print(gradops.grad(area)(2.0).round(6))
    -0.156664
    >>> def end(rate):
    ...     return integrate.solve_ivp(lambda t, y: -rate * y, (0.0, 2.0), [1.0], rtol=1e-10, atol=1e-10).y[0, -1]
    >>> print(gradops.grad(end)(0.5).round(6))
    -0.735759

See Also:
    :mod:`gradops.scipy.optimize`, whose solvers take functions in the same way.
"""

from typing import TYPE_CHECKING

from .._names import namespace, places

if TYPE_CHECKING:
    from .equations import *  # noqa: F403
    from .quadratures import *  # noqa: F403
    from .samples import *  # noqa: F403

_PLACES = places("""
    equations: odeint solve_ivp
    quadratures: dblquad fixed_quad nquad quad quad_vec tplquad
    samples: cumulative_simpson cumulative_trapezoid lebedev_rule newton_cotes romb simpson trapezoid
""")

__all__ = sorted(_PLACES)

_ADAPTIVE = "use `quad`, `quad_vec` or `nquad`, which integrate functions with derivatives"
_STEPPER = "it is a solver with internal state; `solve_ivp` takes its method by name"

REFUSED = {
    **dict.fromkeys("cubature qmc_quad tanhsinh".split(), _ADAPTIVE),
    **dict.fromkeys("BDF DOP853 LSODA OdeSolver RK23 RK45 Radau complex_ode ode".split(), _STEPPER),
    **dict.fromkeys(
        "DenseOutput OdeSolution".split(),
        "it is a result of SciPy's; `solve_ivp(dense_output=True).sol` has derivatives",
    ),
    **dict.fromkeys(
        "IntegrationWarning ODEintWarning".split(), "it is a warning of SciPy's, which is passed on unchanged"
    ),
    "nsum": "it extrapolates a sum; `gradops.ops.sum` of terms has derivatives",
    "solve_bvp": "use `optimize.root` on the final values of `solve_ivp` (shooting), which has derivatives",
}

__dir__, __getattr__ = namespace(__name__, __all__, REFUSED, _PLACES)

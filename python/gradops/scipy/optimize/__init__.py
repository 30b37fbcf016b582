"""``scipy.optimize``: roots, minima and least squares, found by SciPy and differentiated implicitly.

SciPy finds the solution on numbers, with exact derivatives that need not be asked for. It then moves with all that the
function depends on, whether that came in ``args`` or is closed over: by the implicit function theorem, right to the
third derivative. Where there is something to move with, the solution is more exact than the tolerance asks. A function
may be one of ops, of NumPy or of the library of its tensors. An error of it stays as it is.

In compiled functions (``jit``, ``torch.compile``, ``tf.function``, ``jax.jit``) and under ``vmap``, where values are
not known, there is an error; ``gradops.functional.root`` runs there.

Examples:
    >>> import numpy as np
    >>> import gradops
    >>> from gradops.scipy import optimize
    >>> def third_root(a):
    ...     return optimize.brentq(lambda x, a: x**3 - a, 0.0, 5.0, args=(a,))
    >>> print(gradops.grad(third_root)(8.0).round(6))
    0.083333
    >>> def lowest(a):
    ...     return optimize.minimize(lambda x, a: ((x - a) ** 2).sum() + x[0] ** 4, [0.0, 0.0], args=(a,)).x.sum()
    >>> print(gradops.grad(lowest)(np.array([1.0, 2.0])).round(6))
    [0.323954 1.      ]

See Also:
    :func:`gradops.functional.root`, whose iterations are ours.
"""

from .._names import gathered, namespace
from .leastsquares import *  # noqa: F403
from .minima import *  # noqa: F403
from .roots import *  # noqa: F403
from .slopes import *  # noqa: F403

__all__ = gathered(globals())

_GLOBAL = "a search among many minima; `minimize` from what SciPy's finds has the derivative"
_JUMPS = "its solution jumps from corner to corner and has no derivative there; SciPy's gives the values"
_SETTING = "a setting, result or warning of SciPy's, which is taken and given as it is"
_METHOD = "a method without a Jacobian; `root` with the name as `method`"
_CONSTRAINED = "`minimize` with this method and `constraints`"
_PART = "a part of a solver, whose result has no derivative"

REFUSED = {
    **dict.fromkeys("basinhopping brute differential_evolution direct dual_annealing shgo".split(), _GLOBAL),
    **dict.fromkeys("linprog milp quadratic_assignment".split(), _JUMPS),
    **dict.fromkeys(
        "BFGS Bounds BroydenFirst HessianUpdateStrategy InverseJacobian KrylovJacobian LbfgsInvHessProduct "
        "LinearConstraint NoConvergence NonlinearConstraint OptimizeResult OptimizeWarning RootResults SR1".split(),
        _SETTING,
    ),
    **dict.fromkeys(
        "anderson broyden1 broyden2 diagbroyden excitingmixing linearmixing newton_krylov".split(), _METHOD
    ),
    **dict.fromkeys("fmin_cobyla fmin_slsqp".split(), _CONSTRAINED),
    **dict.fromkeys("bracket line_search linprog_verbose_callback show_options".split(), _PART),
}

__dir__, __getattr__ = namespace(__name__, __all__, REFUSED)

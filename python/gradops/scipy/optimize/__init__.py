"""``scipy.optimize``: roots, minima and least squares, found by SciPy and differentiated implicitly.

SciPy finds the solution on numbers, with exact derivatives of the function by default. The solution has derivatives by
everything the function depends on, in ``args`` or in its closure, by the implicit function theorem, correct up to the
third order. A solution with derivatives is refined beyond the tolerance. The function may use ops, NumPy, or the
library of its tensors. Errors raised by it are passed on unchanged.

In compiled functions (``jit``, ``torch.compile``, ``tf.function``, ``jax.jit``) and under ``vmap``, values are not
known. There bracketing root finders, ``root``, and ``minimize`` without bounds and constraints take a fixed number of
steps of their own; other solvers raise an error. ``gradops.functional.root`` runs there as well.

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
    :func:`gradops.functional.root`, which iterates itself, without SciPy.
"""

from .._names import gathered, namespace
from .leastsquares import *  # noqa: F403
from .minima import *  # noqa: F403
from .roots import *  # noqa: F403
from .slopes import *  # noqa: F403

__all__ = gathered(globals())

_GLOBAL = "it searches among many minima; use `minimize` from SciPy's result, which has derivatives"
_JUMPS = "its solution jumps from corner to corner and has no derivative there; use SciPy's function for values"
_SETTING = "it is a setting, result or warning of SciPy's; use SciPy's own, which gradops accepts and returns"
_METHOD = "it is a method without a Jacobian; use `root` with the name as `method`"
_CONSTRAINED = "use `minimize` with this method and `constraints`"
_PART = "it is a part of a solver, whose result has no derivative"

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

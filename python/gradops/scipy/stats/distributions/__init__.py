"""Families of distributions: a file for each, or for a few close relatives."""

from ..._names import gathered
from .beta import *  # noqa: F403
from .beta_binomial import *  # noqa: F403
from .binomial import *  # noqa: F403
from .cauchy import *  # noqa: F403
from .dirichlet import *  # noqa: F403
from .exponential import *  # noqa: F403
from .extreme_value import *  # noqa: F403
from .f import *  # noqa: F403
from .gamma import *  # noqa: F403
from .inverse_gaussian import *  # noqa: F403
from .laplace import *  # noqa: F403
from .log_series import *  # noqa: F403
from .logistic import *  # noqa: F403
from .multinomial import *  # noqa: F403
from .multivariate_normal import *  # noqa: F403
from .negative_binomial import *  # noqa: F403
from .noncentral import *  # noqa: F403
from .normal import *  # noqa: F403
from .pareto import *  # noqa: F403
from .planck import *  # noqa: F403
from .poisson import *  # noqa: F403
from .student_t import *  # noqa: F403
from .uniform import *  # noqa: F403
from .von_mises import *  # noqa: F403
from .weibull import *  # noqa: F403
from .wishart import *  # noqa: F403
from .zipf import *  # noqa: F403

__all__ = gathered(globals())

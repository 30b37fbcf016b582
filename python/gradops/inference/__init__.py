"""Statistics of likelihoods: random effects by the Laplace approximation, fits with standard errors.

A negative log-likelihood is a function of parameters, a dict of tensors, to a number, written with ops or with
:mod:`gradops.scipy.stats`. Derivatives are exact; Hessians by random effects are sparse
on NumPy.
"""

from .._names import namespace
from . import transforms
from .fits import Fit, fit
from .observations import observed, report
from .random_effects import Laplace, laplace
from .samples import Draws, Posterior, posterior

__all__ = ["Draws", "Fit", "Laplace", "Posterior", "fit", "laplace", "observed", "posterior", "report", "transforms"]

__dir__, __getattr__ = namespace(__name__)

"""Every op, on the tensors of every backend: ``gradops.ops.exp(x)``.

Ops stand in families, each with one page of R's manual. A family's title, description and neighbours are the docstring
of its module, or, in a module of several, ``__family__``, set before its first op. Strings with the same title are one
family, of which one has the description. An op whose docstring has no "See Also" refers to the nearest of its family.
"""

# ruff: noqa: F401, F403

from .._names import namespace
from . import _docstrings, _reasons, _registry, _symbolic, image, linalg, nn
from .activations import *
from .attention import *
from .blocks import *
from .bounds import *
from .control import *
from .conversion import *
from .convolution import *
from .creation import *
from .decompositions import *
from .derivatives import jvp
from .diagonals import *
from .elementwise import *
from .elementwise_composed import *
from .encoding import *
from .extending import *
from .fourier import *
from .indexing import *
from .joining import *
from .losses import *
from .mapping import *
from .nanstatistics import *
from .normalization import *
from .norms import *
from .pooling import *
from .products import *
from .properties import *
from .quantiles import *
from .random import random_binomial, random_gamma, random_normal, random_uniform
from .rearranging import *
from .reductions import *
from .scattering import *
from .sequences import *
from .shaping import *
from .sorting import *
from .spacing import *
from .special import *
from .statistics import *
from .systems import *

_docstrings.add_related()

__all__ = sorted(name for name in _registry.names if "." not in name)

__dir__, __getattr__ = namespace(__name__)

_symbolic.join_keras()

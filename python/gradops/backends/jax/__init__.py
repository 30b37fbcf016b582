"""The JAX backend, made of jax.numpy and jax.lax, so all of JAX's transforms apply."""

import jax.numpy as jnp

from ..array import complete
from . import base, derivatives  # noqa: F401
from .control import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .kinks import kink  # noqa: F401
from .linalg import *  # noqa: F403
from .reductions import *  # noqa: F403
from .shaping import *  # noqa: F403
from .signals import *  # noqa: F403

complete(globals(), jnp, base)

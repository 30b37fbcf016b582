"""The TensorFlow backend: public tf functions, which tapes record, eager and in graphs."""

import tensorflow as tf

from ..array import complete
from ..array.elementwise import tables
from ..array.shaping import constants, selection
from . import base, derivatives  # noqa: F401
from .control import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .kinks import kink  # noqa: F401
from .linalg import *  # noqa: F403
from .reductions import *  # noqa: F403
from .shaping import *  # noqa: F403
from .signals import *  # noqa: F403

complete(globals(), tf.math, base, [tables])
complete(globals(), tf, base, [constants, selection])

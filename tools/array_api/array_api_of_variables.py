"""The module that the array API suite tests: ``gradops.array_api`` on variables.

Functions that create arrays return variables here. See ``tools/array_api_suite``.
"""

import functools
import types

from gradops import Variable, array_api
from gradops.array_api import *  # noqa: F403
from gradops.array_api import __array_api_version__  # noqa: F401


def _of_variables(function):
    @functools.wraps(function)
    def make(*arguments, **keywords):
        made = function(*arguments, **keywords)
        return made if isinstance(made, Variable) else Variable(made)

    return make


for _name in "arange asarray empty eye from_dlpack full linspace ones zeros".split():
    globals()[_name] = _of_variables(getattr(array_api, _name))
fft = types.SimpleNamespace(**{name: getattr(array_api.fft, name) for name in array_api.fft.__all__})
fft.fftfreq, fft.rfftfreq = _of_variables(fft.fftfreq), _of_variables(fft.rfftfreq)


class __array_namespace_info__(array_api.__array_namespace_info__):
    def default_device(self):
        return array_api.zeros((), device=Variable(0.0).device).device

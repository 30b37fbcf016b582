"""Text on the tape: strings whose gradient is feedback, in words.

A text variable is ``Variable("abc", role="greeting", requires_grad=True)``. ``+``, ``join``,
``split``, ``format`` and the like are recorded as operations on numbers are, and
``result.backward("too long")`` brings the remark to every leaf it was made from. ``Function`` and
``custom_gradient`` define further operations, so a language model, or any callable, can make a text and
write the feedback on its inputs. Text and numbers may stand in one graph. After afnio's autodiff, in
this process: none of these operations calls anything. The layer that calls models is in the same folder;
``gradops.text`` has the names of both.

To ``gradops.ops`` text is one more backend, "text", with kernels under the ops' own names:

- ``Text`` and `Texts` (several, elementwise) are the arrays; a text knows the roles it is made of;
- `Feedback` is the gradient: remarks, each a `Said`, which knows the role that it is on. The sum
  of two has both, and the shape operations leave it as it is, so that the rules of ops serve text too.
"""

from ..._names import namespace
from . import backend, methods  # noqa: F401
from .operations import made_by_host as made_by_host
from .values import convert as convert

__all__: list[str] = []

_MOVED = """Feedback Said Text Texts capitalize feedback format join lower lstrip removeprefix removesuffix replace
rstrip split splitlines strip title upper""".split()

__dir__, __getattr__ = namespace(__name__, renamed={name: f"gradops.text.{name}" for name in _MOVED})

"""Text with gradients: strings whose gradient is feedback, and language model pipelines that are optimised with it.

Text variables (``Variable("Be brief.", role="instruction", requires_grad=True)``) work with:

- :func:`join`, :func:`split`, :func:`format`, :func:`replace`, :func:`upper` and other string operations, which pass
  the feedback on their result on to their inputs;
- :func:`call`: a model call as an operation; the backward pass asks a model for feedback on the inputs;
- :class:`File`: an image or a document in a prompt or a remark;
- :class:`Tool`, :class:`ToolCall`, :func:`tool_calls`: functions that a model may ask to call, and its requests;
- :func:`judge`: a critic as an operation; its value is a number and its gradient is a remark;
- :class:`Descent`: the optimiser, which has a model rewrite texts according to their feedback;
- :func:`each`: a batch of calls or backward passes on threads, with results in order;
- :func:`as_model`: a model, ``(prompt, system) -> str``, from a function, a client or a name;
- :func:`remembered`: a model with cache, retries, budget, recording and replay;
- :func:`scripted`: a model with fixed answers, for tests and documentation;
- :class:`Text`, :class:`Texts`, :class:`Feedback`, :class:`Said`, :func:`feedback`: the values of variables and
  gradients.

No client library is imported and nothing is sent before you pass a model. The prompts that this package itself sends
to models are in ``gradops.text.prompts``.

To ``gradops.ops``, text is another backend, "text", which is loaded when the first text is made. ``Text`` and
``Texts`` are its arrays and ``Feedback`` is their gradient. Its kernels have the names of ops, so the derivative rules
of ops work on text. Text and numbers may be in one graph. The design follows afnio's autodiff, but runs in this
process.
"""

from .._names import namespace
from . import backend  # noqa: F401
from .batches import each
from .descent import Descent
from .files import File
from .model_calls import call, judge, tool_calls
from .models import as_model, scripted
from .operations import (
    capitalize,
    format,
    join,
    lower,
    lstrip,
    removeprefix,
    removesuffix,
    replace,
    rstrip,
    split,
    splitlines,
    strip,
    title,
    upper,
)
from .recorded_models import remembered
from .tools import Tool, ToolCall
from .values import Feedback, Said, Text, Texts, feedback

__all__ = [
    "Descent",
    "Feedback",
    "File",
    "Said",
    "Text",
    "Texts",
    "Tool",
    "ToolCall",
    "as_model",
    "call",
    "capitalize",
    "each",
    "feedback",
    "format",
    "join",
    "judge",
    "lower",
    "lstrip",
    "remembered",
    "removeprefix",
    "removesuffix",
    "replace",
    "rstrip",
    "scripted",
    "split",
    "splitlines",
    "strip",
    "title",
    "tool_calls",
    "upper",
]

__dir__, __getattr__ = namespace(__name__)

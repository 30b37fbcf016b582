"""Text that learns: strings whose gradient is feedback, and pipelines of language models, optimised by it.

On top of text variables (``Variable("Be brief.", role="instruction", requires_grad=True)``):

- :func:`join`, :func:`split`, :func:`format`, :func:`replace`, :func:`upper` and their like: operations that bring the
  feedback on their result to what it was made from;
- :func:`call`: a call of a model as an operation, which asks for feedback on its inputs in the backward pass;
- :func:`judge`: a critic as an operation, whose value is a number and whose gradient is a remark;
- :class:`Descent`: the optimiser, which has texts rewritten by the feedback on them;
- :func:`each`: a batch at once, forwards and backwards, in order;
- :func:`as_model`: anything that answers texts as a model, ``(prompt, system) -> str``;
- :func:`remembered`: a model with cache, retries, budget, recording and replay;
- :func:`scripted`: a model for tests and documents, which calls nothing;
- :class:`Text`, :class:`Texts`, :class:`Feedback`, :class:`Said`, :func:`feedback`: what variables and gradients hold.

Nothing is imported or sent before a model is passed. The layer's own prompts to models are in
``gradops.text.prompts``.

To ``gradops.ops`` text is one more backend, "text", which is loaded with the first text: ``Text`` and ``Texts`` are its
arrays, ``Feedback`` is their gradient, and its kernels have the ops' own names, so that the derivative rules of ops
serve text too. Text and numbers may stand in one graph. After afnio's autodiff, in this process.
"""

from .._names import namespace
from . import backend  # noqa: F401
from .batches import each
from .descent import Descent
from .model_calls import call, judge
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
from .values import Feedback, Said, Text, Texts, feedback

__all__ = [
    "Descent",
    "Feedback",
    "Said",
    "Text",
    "Texts",
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
    "upper",
]

__dir__, __getattr__ = namespace(__name__)

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
``gradops.autodiff.text.prompts``.
"""

from ._names import namespace
from .autodiff.text.batches import each
from .autodiff.text.descent import Descent
from .autodiff.text.model_calls import call, judge
from .autodiff.text.models import as_model, scripted
from .autodiff.text.operations import (
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
from .autodiff.text.recorded_models import remembered
from .autodiff.text.values import Feedback, Said, Text, Texts, feedback

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

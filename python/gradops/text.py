"""Text that learns: pipelines of language models, optimised by feedback on the tape.

Seven names on top of text variables (``Variable("Be brief.", role="instruction", requires_grad=True)``):

- :func:`call`: a call of a model as an operation, which asks for feedback on its inputs in the backward pass;
- :func:`judge`: a critic as an operation, whose value is a number and whose gradient is a remark;
- :class:`Descent`: the optimiser, which has texts rewritten by the feedback on them;
- :func:`each`: a batch at once, forwards and backwards, in order;
- :func:`as_model`: anything that answers texts as a model, ``(prompt, system) -> str``;
- :func:`remembered`: a model with cache, retries, budget, recording and replay;
- :func:`scripted`: a model for tests and documents, which calls nothing.

Nothing is imported or sent before a model is passed. The layer's own prompts to models are in
``gradops.autodiff.text.prompts``.
"""

from ._names import namespace
from .autodiff.text.batches import each
from .autodiff.text.descent import Descent
from .autodiff.text.judges import judge
from .autodiff.text.model_calls import call
from .autodiff.text.models import as_model, scripted
from .autodiff.text.recorded_models import remembered

__all__ = ["Descent", "as_model", "call", "each", "judge", "remembered", "scripted"]

__dir__, __getattr__ = namespace(__name__)

"""Feedback in the engine: the start of a pass, and the part that a leaf keeps."""

from __future__ import annotations

from ...errors import Code, GradientError
from .. import state
from ..variable import Variable, wrap
from .values import Feedback, Verdict, feedback


def first_feedback(root: Variable, value) -> Feedback:
    """The feedback that a backward pass starts from.

    Raises:
        GradientError: none given.
    """
    if value is None and isinstance(root.data, Verdict):
        value = str(root.data)
    if value is None:
        raise GradientError(
            "a text has no gradient to start from.",
            argument="gradient",
            hint="say what to feed back: {call}",
            call=Code('`text.backward("shorter, please")`', '`backward(text, "shorter, please")`'),
        )
    return feedback(value, root.role)


def merge(leaf: Variable, value) -> Variable | None:
    """``leaf.grad`` with the feedback of a further pass: all of it, also remarks that an earlier pass made in
    the same words.

    Without a remark it stays as it was.
    """
    said = feedback(value, leaf.role)
    if not leaf.shape:
        said = said.whole()
    if not len(said):
        return leaf._grad
    if leaf._grad is not None:
        said = Feedback((*leaf._grad.data, *said))
    grad = wrap(said)
    grad._role = f"feedback on {leaf.role}" if leaf.role else "feedback"
    return grad


def fit(g, data):
    """Feedback on one text has no places."""
    return g if data.shape else feedback(g).whole()


state.special[str] = state.Special(seed=first_feedback, convert=feedback, accumulate=merge, fit=fit)

"""What the layer itself says to models, all of it. ``call(..., prompts=)`` and ``Descent(..., prompts=)`` replace it.

``{name}`` marks a place. Places are filled in one pass, so that braces in what is filled in stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..errors import ArgumentError, ArgumentTypeError, Code, TypeOf

PROMPTS = {
    "feedback_system": "You help to improve the inputs of a language model. You say what to change; rewrite nothing.",
    "feedback": """\
A language model was called.

<call>
{call}
</call>

<answer role="{role}">
{answer}
</answer>

This was said of the answer:
{remarks}

One of the inputs of the call was this one:
<input role="{input_role}">
{input}
</input>

How should this input change, so that the answer gets better? Say it in one or two sentences that can be understood
without the call, or say "nothing" if it is good as it is.""",
    "rewrite_system": "You improve texts. You do what the feedback asks for, in all cases of its kind, and no more.",
    "rewrite": """\
Improve this text:
<text role="{role}">
{text}
</text>

The feedback on it:
{remarks}
{memory}{constraints}
Answer with the new text between <text> and </text>.""",
    "memory": """
Earlier versions, the oldest first, and the feedback on them:
{versions}
""",
    "version": """\
<version>
{text}
</version>
{remarks}""",
    "constraints": """
The new text must keep to this:
{constraints}
""",
}


def chosen(prompts: Mapping[str, str] | None) -> Mapping[str, str]:
    """The layer's prompts, with those that are replaced.

    Raises:
        ArgumentError: a name that is none of theirs.
        ArgumentTypeError: words that are no text.
    """
    if not isinstance(prompts, Mapping | None):
        raise ArgumentTypeError(
            "`prompts` must be {names}; got {prompts}.",
            argument="prompts",
            names=Code("a dict of texts", "a list of texts with names"),
            prompts=TypeOf(prompts),
        )
    for name, words in (prompts or {}).items():
        if name not in PROMPTS:
            raise ArgumentError(
                f"`prompts` has no {name!r}; its names are {', '.join(map(repr, PROMPTS))}.", argument="prompts"
            )
        if not isinstance(words, str):
            raise ArgumentTypeError(
                f"{name!r} of `prompts` must be a text; got {{words}}.", argument="prompts", words=TypeOf(words)
            )
    return {**PROMPTS, **(prompts or {})}


_PLACE = re.compile(r"\{([^\W\d]\w*)\}")


def places(template: str) -> list[str]:
    """The names in braces."""
    return list(dict.fromkeys(_PLACE.findall(template)))


def fill(template: str, values: Mapping[str, str]) -> str:
    """``template`` with ``{name}`` replaced for the names of ``values``; other braces stay."""
    return _PLACE.sub(lambda found: values.get(found[1], found[0]), template)


def listed(remarks: Iterable[str]) -> str:
    """Remarks, one a line."""
    return "\n".join("- " + str(remark).strip().replace("\n", "\n  ") for remark in remarks)

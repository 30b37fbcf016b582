"""A pipeline of two prompts that learns from what its critics say: the same program as the vignette "Text feedback".

    python examples/text_feedback.py

The model is scripted, so that nothing leaves this process: put ``text.as_model(client, "name")`` in its place.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from gradops import Parameter, Variable, text

COUNTRIES = ["France", "Peru", "Chad", "Chile", "Japan"]
CAPITALS = dict(zip(COUNTRIES, ["Paris", "Lima", "N'Djamena", "Santiago", "Tokyo"]))


def answer(prompt: str, system: str | None) -> str:
    """What a model would say: at length, unless it is asked for one word."""
    country = next(c for c in COUNTRIES if c in prompt)
    return CAPITALS[country] if "one word" in system else f"The capital of {country} is {CAPITALS[country]}."


def polish(prompt: str, system: str | None) -> str:
    return prompt.upper() if "capitals" in system else prompt


SCRIPT = {
    r"improve texts.*role=\"solver\"": "<text>Answer the question in one word.</text>",
    r"improve texts.*role=\"editor\"": "<text>Write the answer in capitals.</text>",
    r"<input role=\"draft\">": "It should be one word.",
    r"<input role=\"solver\">": "Ask for one word.",
    r"<input role=\"editor\">": "Ask for capitals.",
    r"Answer the question": answer,
    r"the answer": polish,
}


def optimise(model):
    solver = Parameter("Answer the question.", role="solver")
    editor = Parameter("Polish the answer.", role="editor")
    exact = text.judge(lambda answer, capital: None if answer == capital.upper() else f"it should be {capital.upper()}")
    short = text.judge(lambda answer: None if len(answer) < 12 else (0.5, "too long"))
    optimizer = text.Descent([solver, editor], model, memory=2)

    def loss(country):
        draft = text.call(model, f"What is the capital of {country}?", solver, role="draft")
        final = text.call(model, draft, editor, role="answer")
        return exact(final, CAPITALS[country]) + 0.1 * short(final)

    for epoch in range(10):
        losses = text.each(loss, COUNTRIES)
        print(f"epoch {epoch}: {sum(v.item() for v in losses):.2f}   {solver.item()}   {editor.item()}")
        if not any(v.item() for v in losses):
            break
        text.each(Variable.backward, losses)
        optimizer.step()
        optimizer.zero_grad()
    return solver.item(), editor.item()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        model = text.remembered(text.scripted(SCRIPT), path, calls=100)
        found = optimise(model)
        print("calls:", model.spent["calls"])
        assert optimise(text.remembered(None, path)) == found
        print("the same from the recording, without a model")
        words = re.findall(r'"role": "(\w+)"', path.read_text())
        print("recorded:", len(path.read_text().splitlines()), "calls of", words.count("user"), "prompts")


if __name__ == "__main__":
    main()

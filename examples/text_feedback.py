"""A pipeline of two prompts that learns from its critics' feedback, as in the vignette "Text feedback".

    python examples/text_feedback.py

The language model is a script here, so that nothing leaves this process. Replace it by
``text.as_model(client, "name")``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from gradops import Parameter, Variable, text

CAPITALS = {"France": "Paris", "Peru": "Lima", "Chad": "N'Djamena", "Chile": "Santiago", "Japan": "Tokyo"}


def answer(prompt: str, system: str | None) -> str:
    """Return a model's answer: a sentence, unless the prompt asks for one word."""
    country = next(country for country in CAPITALS if country in prompt)
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
    questions = Variable([f"What is the capital of {country}?" for country in CAPITALS])
    for epoch in range(10):
        drafts = text.call(model, questions, solver, role="draft")
        answers = text.call(model, drafts, editor, role="answer")
        loss = (exact(answers, list(CAPITALS.values())) + 0.1 * short(answers)).sum()
        print(f"epoch {epoch}: {loss.item():.2f}   {solver.item()}   {editor.item()}")
        if loss.item() == 0:
            break
        loss.backward()
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


if __name__ == "__main__":
    main()

"""Draws the pictures of Python on the site's page *Gallery*, which shows each function below its picture.

    python examples/gallery.py FOLDER [NAME ...]

Writes an SVG named after each function. It needs matplotlib; `reversal` also needs PyTorch. ``gallery.R`` draws the
pictures of R.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from gradops import Parameter, Variable, autodiff, config, ops, text
from gradops.autodiff import profiler
from gradops.inference import fit, posterior, transforms
from gradops.scipy import stats

matplotlib.rcParams.update(
    {
        "svg.hashsalt": "gradops",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.constrained_layout.use": True,
    }
)


def graph(path):
    """The graph of a loss

    The graph that `backward()` traverses, with the loss at the top and the named parameters at the bottom.
    """
    x, y = np.ones((8, 3)), np.zeros(8)
    weight, bias = Parameter(np.full(3, 0.1)), Parameter(0.0)
    chance = ops.sigmoid(ops.matmul(x, weight) + bias)
    loss = ops.mean((chance - y) ** 2) + 0.01 * ops.sum(weight**2)
    autodiff.draw(loss, path, params={"weight": weight, "bias": bias})


def profile(path):
    """Where the time goes

    A profile of twenty training steps: the time of each operation in the forward and backward passes.
    """
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(256, 64)), [Parameter(rng.normal(size=(64, 64)) / 8) for _ in range(3)]

    def step():
        h = x
        for weight in weights:
            h = ops.nn.layer_normalization(ops.nn.gelu(ops.matmul(h, weight)))
        (h**2).mean().backward()

    step()  # a warm-up: the first step takes longer
    with profiler.profile() as prof:
        for _ in range(20):
            step()
    rows = prof.rows(sort_by="self_time", limit=10)[::-1]
    figure, axis = plt.subplots(figsize=(7, 3.4))
    colors = {"forward": "#4c78a8", "backward": "#f2a35e"}
    axis.barh([row.name for row in rows], [1e3 * row.self for row in rows], color=[colors[row.kind] for row in rows])
    axis.set(xlabel="time in the operation itself, ms")
    figure.savefig(path)


def reversal(path):
    """A gradient reversed

    A classifier is trained on the grey moons. `scaled_gradient(features, -rate)` before a second head makes the
    features forget which pair a point is from, so the classifier also separates the coloured moons, without labels.
    `examples/domain_adversarial.py` is the whole program.
    """
    import domain_adversarial

    with config.backend_scope("torch"):
        trained = {("torch", way): domain_adversarial.train("torch", way, 600) for way in (False, True)}
    domain_adversarial.picture(trained, path)


def likelihood(path):
    """A fit with its profile likelihood

    Doses and deaths. The curve is the likelihood ratio as a function of the dose at which half die, with the slope
    estimated again for each dose. The confidence interval is where the curve is below the line. The dashed curve is the
    approximation by standard errors.
    """
    dose, dead = np.array([0.0, 1, 2, 3, 4, 5]), np.array([1.0, 4, 9, 13, 18, 20])

    def nll(p):
        chance = ops.sigmoid(p["slope"] * (dose - p["half"]))
        return -ops.sum(stats.binom.logpmf(dead, 20.0, chance))

    found = fit(nll, {"half": 2.0, "slope": 1.0})
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
    at = np.linspace(0, 5)
    left.plot(dose, dead / 20, "o", color="#4c78a8")
    left.plot(at, np.asarray(ops.sigmoid(found.params["slope"] * (at - found.params["half"]))), color="#f0803c")
    left.set(xlabel="dose", ylabel="share that died")
    values, roots = found.profile("half", points=12)
    right.plot(values, roots**2, color="#f0803c")
    right.plot(values, ((values - found.params["half"]) / found.bse["half"]) ** 2, "--", color="#909090")
    right.axhline(3.84, color="black", linewidth=0.8)
    right.set(xlabel="dose of which half die", ylabel="likelihood ratio")
    figure.savefig(path)


def field(path):
    """A spatial field

    Counts on a lattice of 900 cells, a quarter of them missing. The logarithm of the mean has a random effect in each
    cell, and differences between neighbours are normal. `fit(..., random="u")` integrates the effects out by the
    Laplace approximation. Their joint Hessian is sparse, and its pattern is found automatically.
    """
    side, rng = 30, np.random.default_rng(2)
    row, column = np.mgrid[:side, :side] / side
    truth = np.sin(5 * row) + np.cos(7 * column * row) + 0.5
    seen = rng.random((side, side)) > 0.25
    counts = rng.poisson(np.exp(truth)).astype(float)

    def joint(p):
        u = ops.reshape(p["u"], (side, side))
        rate = (p["mean"] + u)[seen]
        precision = ops.exp(p["log_precision"])
        roughness = ops.sum((u[1:] - u[:-1]) ** 2) + ops.sum((u[:, 1:] - u[:, :-1]) ** 2) + 0.01 * ops.sum(u**2)
        prior = 0.5 * precision * roughness - 0.5 * side**2 * p["log_precision"]
        return ops.sum(ops.exp(rate) - counts[seen] * rate) + prior

    start = {"mean": 0.0, "log_precision": 1.0, "u": np.zeros(side**2)}
    found = fit(joint, start, random="u")
    estimate, error = found.params["mean"] + found.params["u"], found.bse["u"]
    pictures = {
        "counts": np.where(seen, counts, np.nan),
        "what they were drawn from": np.exp(truth),
        "estimate": np.exp(np.asarray(estimate).reshape(side, side)),
        "standard error of its logarithm": np.asarray(error).reshape(side, side),
    }
    figure, axes = plt.subplots(1, 4, figsize=(9.6, 2.8))
    for axis, (title, values) in zip(axes, pictures.items()):
        shown = axis.imshow(values, vmin=None if "error" in title else 0, vmax=None if "error" in title else 12)
        figure.colorbar(shown, ax=axis, location="bottom", shrink=0.9)
        axis.set_title(title, fontsize=9)
        axis.set(xticks=[], yticks=[])
    figure.savefig(path)


def sampler(path):
    """A sampler

    Draws of `posterior(...).sample()`, a No-U-Turn sampler, for the eight schools: the spread between schools and the
    effect in one school. Where the spread is small, the effects are close to each other.
    """
    effect = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    error = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def schools(p):
        seen = stats.norm.logpdf(effect, p["mean"] + p["sd"] * p["school"], error)
        prior = stats.norm.logpdf(p["mean"], 0, 5) + stats.halfcauchy.logpdf(p["sd"], 0, 5)
        return -ops.sum(seen) - prior - ops.sum(stats.norm.logpdf(p["school"]))

    start = {"mean": 0.0, "sd": 1.0, "school": np.zeros(8)}
    draws = posterior(schools, start, transforms={"sd": transforms.positive}).sample(1000, tune=500, chains=2, seed=1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2), width_ratios=(1, 1.3))
    for mean, sd, school, color in zip(draws["mean"], draws["sd"], draws["school"], ("#4c78a8", "#f0803c")):
        left.plot(sd, mean + sd * school[:, 0], ".", markersize=2, color=color)
        right.plot(sd, linewidth=0.5, color=color)
    left.set(xscale="log", xlabel="spread between schools", ylabel="effect in the first school")
    right.set(yscale="log", xlabel="draw", ylabel="spread, two chains")
    figure.savefig(path)


def prompt(path):
    """A prompt that learns

    The gradient of a text is a critic's feedback, and `Descent` rewrites the prompt with it. The language model is a
    script here, so that this page needs none. Replace it by `text.as_model(client, "name")`.
    """
    model = text.scripted(
        {
            r"improve texts.*one word": "<text>Answer in one word, in capitals.</text>",
            r"improve texts": "<text>Answer in one word.</text>",
            r"<input role=\"prompt\">.*it should be": "Ask for one word; then ask for capitals.",
            r"capital of (\w+)": lambda question, prompt: {
                "Answer.": "The capital is Lima.", "Answer in one word.": "Lima"
            }.get(prompt, "LIMA"),
        }
    )  # fmt: skip
    learnt = Parameter("Answer.", role="prompt")
    judge = text.judge(lambda answer: (0 if answer == "LIMA" else 0.2 if answer == "Lima" else 1, "it should be LIMA"))
    optimizer = text.Descent([learnt], model)
    losses, prompts = [], []
    for _ in range(4):
        loss = judge(text.call(model, Variable("What is the capital of Peru?"), learnt, role="answer"))
        losses.append(loss.item())
        prompts.append(learnt.item())
        if losses[-1]:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    figure, axis = plt.subplots(figsize=(7, 2.8))
    axis.plot(losses, "o-", color="#f0803c")
    for step, words in enumerate(prompts):
        if words not in prompts[:step]:
            axis.annotate(words, (step, losses[step]), (8, 8), textcoords="offset points")
    axis.set(xlabel="step", ylabel="loss", xticks=range(4), xlim=(-0.1, 3.6), ylim=(-0.1, 1.3))
    figure.savefig(path)


PICTURES = (graph, profile, reversal, likelihood, field, sampler, prompt)

if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    for picture in PICTURES:
        if not names or picture.__name__ in names:
            picture(Path(folder) / f"{picture.__name__}.svg")
            plt.close("all")

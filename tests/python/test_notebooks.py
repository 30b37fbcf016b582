"""Notebook representations of variables, compiled functions, graphs and profiles: self-contained HTML."""

import re
import sys
import types
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest

from gradops import Parameter, Variable, _display, autodiff, backends, functional, grad, inference, jit, ops, text
from gradops.autodiff import profiler

NASTY = "<b>not bold</b> & 'this' \"that\" $x^2$ <script>alert(1)</script></pre>\x00\x1b[31m \ud800"
TAGS = {"div", "strong", "pre", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}
PICTURE = {"svg", "title", "defs", "marker", "path", "rect", "text"}


class Page(HTMLParser):
    """The text of HTML; raises for unknown or unclosed tags and for external resources."""

    def __init__(self, source: str):
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tags: list[str] = []
        source.encode()  # lone surrogates cannot be encoded
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]", source)
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS | PICTURE
        for name, value in attrs:
            assert name not in ("src", "href", "onclick", "id") or tag == "marker", (name, value)
            assert "http" not in value or (name, value) == ("xmlns", "http://www.w3.org/2000/svg")
        self.tags.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def convert(backend, values):
    pytest.importorskip(backend)
    return backends.lookup(backend).convert(np.array(values))


def page_of(x) -> Page:
    return Page(x._repr_html_())


@pytest.mark.parametrize("backend", ["numpy", "tensorflow", "jax"])
def test_variable_shows_values_gradient_and_graph(backend):
    x = Variable(convert(backend, [[1.5, 2.0], [3.0, 4.25]]), requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    assert re.search(
        r"Variable .*float64 \[2, 2\], requires a gradient .*1\.5 .*4\.25.* grad .*8\.5", page_of(x).text, re.S
    )
    assert "made by sum, a graph of 3" in page_of(y).text and "svg" in page_of(y).tags
    assert "detail" not in "".join(page_of(x.detach()).tags)


def test_large_variable_is_summarised():
    text = page_of(Variable(np.arange(10**6, dtype="float64").reshape(1000, 1000))).text
    assert "9.99999e+05" in text and "..." in text and len(text) < 3000
    assert "5.00500e+05" not in text
    many = page_of(Variable([f"text {i}" for i in range(1000)])).text
    assert "1000 texts" in many and "text 0" in many and "[... 980 more]" in many and len(many) < 2000
    long = page_of(Variable("a" * 10**6 + "z")).text
    assert len(long) < 3000 and "[... 998001 characters ...]" in long and long.rstrip().endswith("z")


def test_deep_graph_is_not_drawn_by_default():
    y = Variable(1.0, requires_grad=True)
    for _ in range(100):
        y = y * 1.5
    page = page_of(y)
    assert "more than 60" in page.text and "svg" not in page.tags


def test_markup_in_texts_and_roles_is_escaped():
    text = Variable(NASTY, role=NASTY, requires_grad=True)
    answer = text + NASTY
    answer.backward(NASTY)
    shown = NASTY.replace("\x00", "\ufffd").replace("\x1b", "\ufffd").replace("\ud800", "\ufffd")
    for page in (page_of(text), page_of(answer), page_of(Variable([NASTY, "b"]))):
        assert shown in "".join(page.texts)
    assert "mathjax_ignore" in text._repr_html_()


@pytest.mark.parametrize("library", ["variable", "torch"])
def test_graph_is_drawn_as_a_picture(library):
    x = Variable([1.0, 2.0], requires_grad=True, role=NASTY)
    if library == "torch":
        x = pytest.importorskip("torch").tensor([1.0, 2.0], requires_grad=True)
    picture = autodiff.draw((x * x).sum(), params={NASTY: x})
    root = ET.fromstring(picture._repr_svg_())
    assert {element.tag.partition("}")[2] for element in root.iter()} == PICTURE
    assert "not bold" in "".join(root.itertext())
    assert repr(picture) == "<gradops graph, 3 boxes>"


def test_pictures_on_one_page_have_unique_ids():
    x = Variable([1.0, 2.0], requires_grad=True)
    first, second = (re.findall(r'id="([\w-]+)"', autodiff.draw(y)._repr_svg_()) for y in (x + 1, x * 2 * x))
    assert len(first) == len(second) == 1 and first != second


def test_compiled_function_shows_its_programs():
    @jit
    def area(width, height=2.0):
        return ops.sum(width * width) * height

    assert "not compiled yet" in page_of(area).text and repr(area).endswith("area(width, height=2.0), 0 programs>")
    area(np.ones(3))
    area(np.ones(4))
    page = page_of(area)
    assert "float64[3]" in page.text and "float64[4]" in page.text and "area(width, height=2.0)" in page.text
    assert page.text.count("def program(") == 2
    assert repr(area).endswith(", 2 programs>")
    signed = jit(lambda x: x if x > 0 else -x)
    grad(signed)(np.array(1.0)), signed(np.array(1.0)), signed(np.array(-1.0))
    assert "specialised to the branches taken" in page_of(signed).text


@pytest.mark.parametrize("backend", ["torch", "tensorflow", "jax"])
def test_compiled_function_names_its_compiler(backend):
    square = jit(lambda x: x * x)
    square(convert(backend, [2.0]))
    assert f"compiled by {backend}" in page_of(square).text


def test_profile_shows_its_table():
    x = Variable([1.0, 2.0], requires_grad=True)
    with profiler.profile(with_torch=False) as profile:
        with profiler.record_function(NASTY[:-1]):
            (x * x).sum().backward()
        assert "running" in page_of(profile).text
    page = page_of(profile)
    assert "multiply backward" in page.texts and page.tags.count("tr") == 1 + len(profile.rows())
    assert any("not bold" in text for text in page.texts) and "by the clock" in page.text
    for name in ("self %", "calls", "bytes"):
        assert name in page.texts
    assert "multiply backward" in profile.table() and profile.table().splitlines()[1].startswith("---")


# Fits, random effects, densities and draws.


def of_inference(name: str) -> dict:
    def joint(p):
        return (3.0 - p[name] - p["u"]) ** 2 / 2 + p["u"] ** 2 / 2

    found = inference.fit(joint, {name: 1.0, "u": 0.0}, random="u")
    target = inference.posterior(lambda p: ops.sum(p[name] ** 2) / 2, {name: np.zeros(40)})
    return {
        "fit": found,
        "model": found.model,
        "draws": found.draws(100, seed=1),
        "posterior": target,
        "likelihood": target.model,
    }


@pytest.mark.parametrize("kind", ["fit", "model", "draws", "posterior", "likelihood"])
def test_inference_results_show_tables(kind):
    name = NASTY[:40].replace("[", "(")
    shown = of_inference(name)[kind]
    page = page_of(shown)
    assert name[:20] in page.text and "table" in page.tags and "th" in page.tags
    assert "<b>" not in repr(shown) or "gradops" in repr(shown)
    if kind == "fit":
        assert {"parameter", "estimate", "std. error"} <= set(page.texts) and "1 random effects" in page.text
    if kind in ("posterior", "likelihood"):
        assert page.tags.count("tr") == 31 and "[... 10 more]" in page.text


# Objectives, sparse Hessians, texts and text optimizers.


def test_objective_shows_its_shards():
    shards = [{"x": np.ones((i, 2)), "name": NASTY[:30]} for i in range(1, 41)]
    total = functional.objective(lambda b, shard: ops.sum(shard["x"] @ b), shards)
    page = page_of(total)
    assert "a sum over 40 shards in process" in page.text and "[... 10 more]" in page.text
    assert "data[2]" in page.texts and any("shape (3, 2) and dtype float64" in text for text in page.texts)
    assert page.tags.count("tr") == 31 and "not bold" in page.text
    assert "table" not in page_of(functional.objective(ops.sum)).tags


@pytest.mark.parametrize("size", [1, 5, 300])
def test_sparse_hessian_shows_its_pattern(size):
    h = functional.SparseHessian(lambda x: ops.sum(ops.cosh(x[1:] - x[:-1])) + ops.sum(x**2), np.zeros(size))
    page = page_of(h)
    assert f"{size} x {size}, {h.pattern.nnz} elements" in page.text and repr(h).endswith(f"{h.count} colours>")
    (path,) = re.findall(r'<path d="(.*?)"', h._repr_html_())
    drawn = {(int(i), int(j)) for j, i in re.findall(r"M(\d+) (\d+)h1v1h-1z", path)}
    if size <= 64:
        assert drawn == set(zip(*map(np.ndarray.tolist, h.pattern.nonzero())))
    else:
        assert {(i, i) for i in range(64)} <= drawn and all(abs(i - j) < 2 and max(i, j) < 64 for i, j in drawn)


def test_texts_feedback_and_text_optimizers_show_tables():
    prompt = Parameter(NASTY[:50], role="prompt")
    model = text.scripted({"improve": "<text>shorter</text>"})
    answers = Variable(["a", NASTY[:50]], role="answer", requires_grad=True)
    answers[1].backward("too short")
    (prompt + "!").backward("<i>longer</i>")
    descent = text.Descent([prompt], model, memory=2, constraints=["in English"])
    for page in (page_of(answers.data), page_of(descent)):
        assert "not bold" in page.text and "table" in page.tags
    feedback = page_of(answers.grad.data)
    assert {"remark", "too short", "answer", "1"} <= set(feedback.texts) and "1 text, " in page_of(prompt.grad).text
    assert {"<i>longer</i>", "in English", "constraints", "0"} <= set(page_of(descent).texts)
    descent.step()
    assert {"shorter", "1"} <= set(page_of(descent).texts)


def test_problems_of_a_fit_are_shown():
    with pytest.warns(RuntimeWarning):
        found = inference.fit(lambda p: (p["a"] + p["b"]) ** 2, {"a": 1.0, "b": 0.0})
    assert "not identified" in page_of(found).text


def test_report_columns_are_aligned():
    values = {"a": 1e-12, "a_long_name": -123456.0, "b": 1.0}
    found = inference.fit(lambda p: sum((p[k] - x) ** 2 for k, x in values.items()), dict.fromkeys(values, 0.0))
    lines = found.summary().splitlines()[1:]
    assert len({len(line) for line in lines}) == 1 and lines[0].rstrip().endswith("P>|z|")
    ends = [match.end() for match in re.finditer(r"\S+( \S+)*", lines[0])]
    for line in lines[1:]:
        assert all(line[end - 1] != " " and line[end : end + 1] in ("", " ") for end in ends), line


def test_profile_rows_of_higher_derivatives_are_labelled():
    x = Variable(np.ones((1, 9, 1)), requires_grad=True)
    with profiler.profile(with_torch=False) as profile:
        (first,) = autodiff.grad(ops.sum(ops.conv(x, np.ones((2, 1, 1))) ** 3), [x], create_graph=True)
        (second,) = autodiff.grad(ops.sum(first**2), [x], create_graph=True)
        autodiff.grad(ops.sum(second**2), [x])
        with profiler.record_function("all backward backward"):
            pass
    names = {row.name for row in profile.rows()}
    assert {"conv", "conv backward", "conv: second derivative", "all backward backward"} <= names
    assert not any("_to_" in name for name in names - {"broadcast_to"})
    event = profiler.Event("matmul backward backward", "backward", 0.0, 1.0)
    profile._events.append(event)
    assert "matmul: second derivative" in profile.table()


def test_picture_has_a_description_and_is_legible_in_dark_mode():
    x = Variable([1.0, 2.0], requires_grad=True)
    root = ET.fromstring(autodiff.draw((x * x).sum(), params={NASTY: x})._repr_svg_())
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img" and root.find(f"{space}title").text.startswith("The graph of sum: 3 boxes, from")
    assert all(text.get("fill") == "#000" for text in root.iter(f"{space}text"))
    for box in root.iter(f"{space}rect"):
        assert luminance(box.get("fill")) > 0.7  # background of black text
    for line in (box.get("stroke") for box in root.iter() if box.get("stroke")):
        for page in ("#fff", "#1e1e1e"):
            low, high = sorted((luminance(line), luminance(page)))
            assert (high + 0.05) / (low + 0.05) > 3  # WCAG 2.1, 1.4.11


def luminance(color: str) -> float:
    digits = color[1:] if len(color) == 7 else "".join(2 * c for c in color[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear))


# Progress, on a fake terminal with a fake clock.


class Bar:
    def __init__(self):
        self.said = []

    def start(self): ...

    def add_task(self, label, total):
        self.said.append((label, total))
        return 0

    def update(self, task, completed):
        self.said.append(completed)

    def stop(self):
        self.said.append("stopped")


def long_ones() -> dict:
    """Return calls that may take long, by label, with the number of steps they report."""
    x = np.ones(3)
    variable = Variable(x, requires_grad=True)
    shards = functional.objective(lambda w, y: ops.sum((w - y) ** 2), [x, x])
    density = inference.posterior(lambda p: p["a"] ** 2 / 2, {"a": 0.0})
    found = inference.fit(lambda p: ops.cosh(p["a"] - 1.0) + (p["b"] - p["a"]) ** 4 + p["b"] ** 2, {"a": 0.0, "b": 9.0})
    return {
        "compiling": (lambda: jit(lambda x: ops.sin(x) * 2)(x), 2),
        "gradcheck": (lambda: autodiff.gradcheck(ops.exp, variable), None),
        "objective": (lambda: shards.value_and_grad(np.float64(1.0)), 2),
        "draws": (lambda: density.sample(5, tune=20, chains=1, seed=1), 25),
        "profile": (lambda: found.profile("a"), 12),
        "fit": (lambda: inference.fit(lambda p: ops.cosh(p["a"] - 1.0), {"a": 0.0}), ...),
    }


@pytest.mark.parametrize("label", ["compiling", "gradcheck", "objective", "draws", "profile", "fit"])
def test_progress_appears_after_two_seconds(label, monkeypatch):
    run, total = long_ones()[label]
    bar, now = Bar(), [0.0]

    def clock():
        now[0] += step
        return now[0]

    monkeypatch.setattr(_display, "time", types.SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(_display, "_bar", lambda anywhere: bar)
    step = 1e-9
    run()
    assert bar.said == []
    step = 2.0
    run()
    (said, steps), *rest = bar.said[:2]
    assert label == said and rest and "stopped" in bar.said
    if total is not None:
        assert steps == (None if total is ... else total)


def test_no_progress_without_a_terminal_or_rich(monkeypatch, capsys):
    """Notebooks and documents have no terminal as stderr, and rich may be missing."""
    assert _display._bar(False) is None
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "stderr", types.SimpleNamespace(isatty=lambda: True, write=print, flush=lambda: None))
    assert _display._bar(False) is None


def test_terminal_shows_a_progress_bar(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert type(_display._bar(False)).__module__ == "rich.progress"

"""What notebooks show of variables, compiled functions, graphs and profiles: HTML that can be pasted anywhere."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest

from gradops import Variable, autodiff, backends, grad, jit, ops
from gradops.autodiff import profiler

NASTY = "<b>not bold</b> & 'this' \"that\" $x^2$ <script>alert(1)</script></pre>\x00\x1b[31m \ud800"
TAGS = {"div", "strong", "pre", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}
PICTURE = {"svg", "defs", "marker", "path", "rect", "text"}


class Page(HTMLParser):
    """The text of HTML; raises where a tag is unknown, not closed, or takes something from elsewhere."""

    def __init__(self, source: str):
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tags: list[str] = []
        source.encode()  # halves of characters cannot be sent
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
    return backends.by_name(backend).convert(np.array(values))


def page_of(x) -> Page:
    return Page(x._repr_html_())


@pytest.mark.parametrize("backend", ["numpy", "tensorflow", "jax"])
def test_a_variable_shows_values_gradient_and_graph(backend):
    x = Variable(convert(backend, [[1.5, 2.0], [3.0, 4.25]]), requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    assert re.search(
        r"Variable .*float64 \[2, 2\], requires a gradient .*1\.5 .*4\.25.* grad .*8\.5", page_of(x).text, re.S
    )
    assert "made by sum, a graph of 3" in page_of(y).text and "svg" in page_of(y).tags
    assert "detail" not in "".join(page_of(x.detach()).tags)


def test_a_large_variable_is_summarised():
    text = page_of(Variable(np.arange(10**6, dtype="float64").reshape(1000, 1000))).text
    assert "9.99999e+05" in text and "..." in text and len(text) < 3000
    assert "5.00500e+05" not in text
    many = page_of(Variable([f"text {i}" for i in range(1000)])).text
    assert "1000 texts" in many and "text 0" in many and "[... 980 more]" in many and len(many) < 2000
    long = page_of(Variable("a" * 10**6 + "z")).text
    assert len(long) < 3000 and "[... 998001 characters ...]" in long and long.rstrip().endswith("z")


def test_a_deep_graph_is_not_drawn_unasked():
    y = Variable(1.0, requires_grad=True)
    for _ in range(100):
        y = y * 1.5
    page = page_of(y)
    assert "more than 60" in page.text and "svg" not in page.tags


def test_markup_in_texts_and_roles_is_text():
    text = Variable(NASTY, role=NASTY, requires_grad=True)
    answer = text + NASTY
    answer.backward(NASTY)
    shown = NASTY.replace("\x00", "\ufffd").replace("\x1b", "\ufffd").replace("\ud800", "\ufffd")
    for page in (page_of(text), page_of(answer), page_of(Variable([NASTY, "b"]))):
        assert shown in "".join(page.texts)
    assert "mathjax_ignore" in text._repr_html_()


@pytest.mark.parametrize("library", ["variable", "torch"])
def test_a_graph_is_a_picture(library):
    x = Variable([1.0, 2.0], requires_grad=True, role=NASTY)
    if library == "torch":
        x = pytest.importorskip("torch").tensor([1.0, 2.0], requires_grad=True)
    picture = autodiff.draw((x * x).sum(), params={NASTY: x})
    root = ET.fromstring(picture._repr_svg_())
    assert {element.tag.partition("}")[2] for element in root.iter()} == PICTURE
    assert "not bold" in "".join(root.itertext())
    assert repr(picture) == "<gradops graph, 3 boxes>"


def test_pictures_on_one_page_have_ids_of_their_own():
    x = Variable([1.0, 2.0], requires_grad=True)
    first, second = (re.findall(r'id="([\w-]+)"', autodiff.draw(y)._repr_svg_()) for y in (x + 1, x * 2 * x))
    assert len(first) == len(second) == 1 and first != second


def test_a_compiled_function_shows_its_programs():
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
    assert "one way of its branches" in page_of(signed).text


@pytest.mark.parametrize("backend", ["torch", "tensorflow", "jax"])
def test_a_function_that_a_library_compiled_says_by_whom(backend):
    square = jit(lambda x: x * x)
    square(convert(backend, [2.0]))
    assert f"compiled by {backend}" in page_of(square).text


def test_a_profile_shows_its_table():
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

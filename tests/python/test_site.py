"""The web site of ``make site``: its index is complete, its links work, and it loads nothing from other hosts.

The short suite reads the repository's pages only. ``make test-long`` builds the site, follows its links, and lets
``site_looks.py`` open each page in a browser at two widths, light and dark, and search, without a network.
"""

from __future__ import annotations

import fcntl
import fnmatch
import html.parser
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import types
import urllib.parse
from pathlib import Path

import pytest

import gradops

ROOT = Path(__file__).parents[2]
SITE = ROOT / ".build" / "site"
MODULE = ROOT / "tools" / "site_pages.py"

pytestmark = [
    pytest.mark.skipif(not MODULE.exists(), reason="the tools are not part of the source distribution"),
    pytest.mark.documents,
]


@pytest.fixture(scope="module")
def pages() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The index ------------------------------------------------------------------------------------------------------------


@pytest.mark.repository
def test_navigation_lists_every_page_once(pages):
    beside = [name for names in pages.navigation().values() for name in names]
    assert len(beside) == len(set(beside))
    files = {
        path.relative_to(ROOT) for pattern in ("*.md", "docs/**/*.md", "vignettes/*") for path in ROOT.glob(pattern)
    }
    assert len(files) > 15
    for file in files - {Path("README.md")}:
        assert str(file.with_suffix("")) in beside, f"{file} is not in the index: see navigation() in {MODULE.name}"
    scripts = {path.relative_to(ROOT) for suffix in ("py", "R") for path in (ROOT / "examples").rglob(f"*.{suffix}")}
    assert {str(path) for path in scripts} == {name for name in pages.pages() if name.startswith("examples/")}


@pytest.mark.repository
def test_every_r_function_is_in_the_index(pages):
    listed = {alias for members in pages.r_groups().values() for topic in members for alias in topic.aliases}
    exported = pages.exported()
    assert len(exported) > 400
    internal = {alias for topic in pages.topics().values() if topic.internal for alias in topic.aliases}
    assert exported - listed - internal == set()
    files = {topic.file for topic in pages.topics().values()}
    patterns = [pattern for group in pages.R_GROUPS.values() for pattern in group]
    assert [pattern for pattern in patterns if not fnmatch.filter(files, pattern)] == [], "no topic has such a file"


def test_every_public_python_name_is_described_once(pages):
    described, elsewhere = [], []

    def go(page):
        described.extend(page.members)
        elsewhere.extend(page.elsewhere)
        for inner in page.children:
            go(inner)

    for page in pages.python_pages():
        go(page)
    assert len(described) == len(set(described)) > 400
    assert all(there in described for _, there in elsewhere)
    known = {*described, *(here for here, _ in elsewhere)}
    for module in (gradops, gradops.ops, gradops.functional, gradops.autodiff, gradops.text, gradops.config):
        names = [name for name in module.__all__ if not isinstance(getattr(module, name), types.ModuleType)]
        assert {f"{module.__name__}.{name}" for name in names} - known == set()
    assert {"gradops.ops.image.resize", "gradops.errors.ShapeError", "gradops.interop.r.r_function"} <= known


def heading_anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.repository
def test_links_between_pages_work(pages):
    count = 0
    for path in pages.pages().values():
        if path.suffix not in (".md", ".Rmd"):
            continue
        for link in pages.links(path.read_text()):
            file = pages.linked_file(path, link[2])
            if file is not None:
                count += 1
                assert file.exists(), f"{path.relative_to(ROOT)}: {link[2]}"
            anchor = link[2].partition("#")[2]
            if anchor and (file or path).suffix == ".md" and not re.match("[a-z]+:", link[2]):
                assert anchor in heading_anchors((file or path).read_text()), f"{path.relative_to(ROOT)}: {link[2]}"
    assert count > 20


@pytest.mark.repository
def test_pages_name_their_language_and_have_tabs_for_both(pages):
    recipes, gradients = ((ROOT / "docs" / name).read_text() for name in ("recipes.md", "custom-gradients.md"))
    tabs = pages.tabbed_text(recipes)
    for language in ("Python", "R"):
        item = f"{{tab-item}} {language}\n:sync: {language}\n\n```{language.lower()}\n"
        assert tabs.count(item) == len(re.findall(r"^```\n\n```r$", recipes, flags=re.M)) > 20
    assert pages.language_title("Gradients", gradients) == "Gradients (Python)"
    assert pages.language_title("Gradients in Python", gradients) == "Gradients in Python"
    assert pages.language_title("Gradients", recipes) == pages.language_title("Gradients", "") == "Gradients"


# Pictures -------------------------------------------------------------------------------------------------------------


@pytest.mark.repository
def test_charts_have_the_numbers_of_the_results(pages):
    charts = sys.modules["site_charts"]
    for chart in charts.CHARTS:
        rows = charts.bars(chart)
        drawn = re.findall(r' dx="6">([\d.e+]+)<', charts.svg(chart, rows))
        numbers = [value for _, values in rows for value in values if value is not None]
        assert len(rows) > 1 and [float(x) for x in drawn] == pytest.approx(numbers, rel=1e-4), chart
        lengths = [float(x) for x in re.findall(r'<rect .*?width="([\d.]+)%"', charts.svg(chart, rows))]
        assert max(lengths) == 80
        assert all((a < b) == (x < y) for a, x in zip(lengths, numbers) for b, y in zip(lengths, numbers) if a != b)
    page = (ROOT / "benchmarks" / "README.md").read_text()
    assert charts.with_charts(page).count("<svg") == len(charts.CHARTS)


@pytest.mark.repository
def test_figures_of_the_benchmark_tables_are_in_the_results():
    """Each number in a table is in a CSV file that its section links, or among the single measurements."""
    page = (ROOT / "benchmarks" / "README.md").read_text()
    assert len(page.split()) <= 2500
    single = (ROOT / "benchmarks" / "results" / "single_measurements.csv").read_text()
    linked = set()
    for section in page.split("\n## ")[1:]:
        files = re.findall(r"\(results/([\w.]+)\)", section)
        linked |= set(files)
        text = single + "".join((ROOT / "benchmarks" / "results" / file).read_text() for file in files)
        known = set(re.findall(r"\d[\d.]*", text))
        for table in re.findall(r"^\|.*\n\|[-|]+\n((?:\|.*\n)*)", section, flags=re.M):
            figures = [n for row in table.splitlines() for n in re.findall(r"\d[\d.]*", row.split("|", 2)[2])]
            assert [figure for figure in figures if figure not in known] == []
    assert linked | {"single_measurements.csv"} == {p.name for p in (ROOT / "benchmarks" / "results").iterdir()}


@pytest.mark.repository
def test_each_gallery_picture_has_its_function(pages):
    python = list(pages.python_pictures((ROOT / "examples" / "gallery.py").read_text()))
    assert {"graph", "profile", "reversal", "likelihood", "field", "sampler", "prompt"} == {one[0] for one in python}
    for name, title, words, code in python:
        compile(code, name, "exec")
        assert code.startswith(f"def {name}(path):\n") and title and words and words not in code
    text = (ROOT / "examples" / "gallery.R").read_text()
    r = list(pages.r_pictures(text))
    sizes = re.search(r"size <- list\((.*)\)", text)[1]
    assert [name for name, *_ in r] == re.findall(r"(\w+) = c", sizes)
    assert all(code.startswith(f"{name} <- function() {{\n") and code.endswith("\n}") for name, _, _, code in r)


# The built site -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def site() -> Path:
    """Return the built site, shared by test processes; ``GRADOPS_SITE`` names a site built already."""
    if "GRADOPS_SITE" in os.environ:
        return Path(os.environ["GRADOPS_SITE"])
    install = ["--browser"] if os.geteuid() == 0 or shutil.which("sudo") else []
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    stamp = ROOT / ".build" / "site.run"
    stamp.parent.mkdir(exist_ok=True)
    with open(stamp.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != run:
            done = subprocess.run([ROOT / "tools" / "site", *install], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
            stamp.write_text(run)
    return SITE


class Page(html.parser.HTMLParser):
    def __init__(self, path: Path):
        super().__init__()
        self.ids, self.links, self.parts = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "author"):
            self.parts.append(given.get("href") or "")
        elif tag in ("img", "script", "iframe", "source", "video", "audio", "embed") and given.get("src"):
            self.parts.append(given["src"])


def read(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


@pytest.mark.long
def test_site_has_no_dead_links(site):
    found = read(site)
    assert len(found) > 250
    reached, left, dead, downloads = set(), [site / "index.html"], [], set()
    while left:
        path = left.pop()
        if path in reached:
            continue
        reached.add(path)
        for link in (*found[path].links, *found[path].parts):
            address = urllib.parse.urlsplit(link)
            if address.scheme or address.netloc:
                if address.scheme not in ("http", "https", "mailto"):
                    dead.append((path, link))
                continue
            target = Path(os.path.normpath(path.parent / urllib.parse.unquote(address.path))) if address.path else path
            if not target.is_file():
                dead.append((path, link))
            elif target.suffix == ".html":
                left.append(target)
                anchor = urllib.parse.unquote(address.fragment)
                if anchor and anchor not in found[target].ids:
                    dead.append((path, link))
            else:
                downloads.add(target.name)
    assert [f"{path.relative_to(site)}: {link}" for path, link in dead] == []
    assert not shutil.which("chromium") or {"cheatsheet-python.pdf", "cheatsheet-r.pdf"} <= downloads
    unreached = {str(path.relative_to(site)) for path in set(found) - reached}
    assert not {name for name in unreached if not name.startswith("r/")}
    for name in unreached:  # internal topics of R
        assert "\\keyword{internal}" in (ROOT / "man" / Path(name).with_suffix(".Rd").name).read_text(), name


@pytest.mark.long
def test_formulas_are_mathml(site):
    count = 0
    for path in (ROOT / "docs").glob("*.md"):
        formulas = path.read_text().count("\n```math\n")
        page = (site / "docs" / path.name).with_suffix(".html").read_text()
        assert len(re.findall("<math[^>]* display=.block", page)) == formulas, path.name
        count += formulas
    assert count >= 4


@pytest.mark.long
def test_site_loads_nothing_from_other_hosts(site):
    for path, page in read(site).items():
        away = [part for part in page.parts if re.match(r"([a-z]+:)?//|file:", part)]
        assert away == [], path
    for path in site.rglob("*.css"):
        assert not re.search(r"""(url\(|@import)\s*["']?\s*(https?:)?//""", path.read_text()), path


@pytest.mark.long
def test_nothing_overflows_and_the_search_works(site):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("there is no browser: `tools/site --browser` installs Chromium")
    python = ROOT / ".build" / "site-venv" / "bin" / "python"
    looks = [python, Path(__file__).with_name("site_looks.py"), browser, site]
    found = json.loads(subprocess.run(looks, capture_output=True, text=True, check=True).stdout)
    assert found["looked"] == 4 * len(list(site.rglob("*.html")))
    for wrong in ("console", "away", "boxes", "dark"):
        assert found[wrong] == [], wrong
    assert {"r/ops_softmax.html", "python/gradops-ops-softmax.html"} <= set(found["found"]["softmax"])
    first = {"docs/custom-gradients.html", "vignettes/custom-gradients.html"}
    assert set(found["found"]["gradient reversal"][:2]) == first

"""The web site of ``make site``: its index has all there is; built, its links lead somewhere, from no other host.

What is always run reads the repository's pages alone. ``make test-long`` builds the site, follows its links, and looks
in a browser whether anything leaves its box at two widths and whether the search finds.
"""

from __future__ import annotations

import fcntl
import fnmatch
import html.parser
import http.server
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import types
import urllib.parse
from pathlib import Path

import pytest

import gradops

ROOT = Path(__file__).parents[2]
SITE = ROOT / ".build" / "site"
MODULE = ROOT / "tools" / "site_pages.py"

pytestmark = pytest.mark.skipif(not MODULE.exists(), reason="the tools are not part of the source distribution")


@pytest.fixture(scope="module")
def pages() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The index ------------------------------------------------------------------------------------------------------------


@pytest.mark.repository
def test_every_page_is_beside_each_page(pages):
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
def test_every_function_of_r_is_in_the_index(pages):
    listed = {alias for members in pages.r_groups().values() for topic in members for alias in topic.aliases}
    exported = set(re.findall(r'^export\("?([^")]+)"?\)$', (ROOT / "NAMESPACE").read_text(), flags=re.M))
    assert len(exported) > 400
    internal = {alias for topic in pages.topics().values() if topic.internal for alias in topic.aliases}
    assert exported - listed - internal == set()
    files = [path.stem for path in (ROOT / "R").glob("*.R")]
    patterns = [pattern for group in pages.R_GROUPS.values() for pattern in group]
    assert [pattern for pattern in patterns if not fnmatch.filter(files, pattern)] == [], "no such file in R/"


def test_every_public_name_of_python_is_described_once(pages):
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
def test_links_between_pages_lead_somewhere(pages):
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


# The built site -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def site() -> Path:
    """The site, built once, also where several processes test."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    stamp = ROOT / ".build" / "site.run"
    stamp.parent.mkdir(exist_ok=True)
    with open(stamp.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != run:
            done = subprocess.run([ROOT / "tools" / "site", "--browser"], capture_output=True, text=True)
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
def test_no_link_of_the_site_leads_nowhere(site):
    found = read(site)
    assert len(found) > 250
    reached, left, dead = set(), [site / "index.html"], []
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
    assert [f"{path.relative_to(site)}: {link}" for path, link in dead] == []
    unreached = {str(path.relative_to(site)) for path in set(found) - reached}
    assert not {name for name in unreached if not name.startswith("r/")}
    for name in unreached:  # R's internal topics
        assert "\\keyword{internal}" in (ROOT / "man" / Path(name).with_suffix(".Rd").name).read_text(), name


@pytest.mark.long
def test_nothing_of_the_site_is_from_another_host(site):
    for path, page in read(site).items():
        away = [part for part in page.parts if re.match(r"([a-z]+:)?//|file:", part)]
        assert away == [], path
    for path in site.rglob("*.css"):
        assert not re.search(r"""(url\(|@import)\s*["']?\s*(https?:)?//""", path.read_text()), path


# Opens each page at each width in a frame, and tells what leaves its box: what makes the page wider than the window,
# and what is wider than its block where no block around it scrolls. Then it searches.
LOOK = """
<!doctype html><iframe id="frame" style="border:0;height:900px"></iframe><script>
const frame = document.getElementById("frame")
const wait = ms => new Promise(done => setTimeout(done, ms))
const open = url => new Promise(done => { frame.onload = done; frame.src = url })
const VISIBLE = {visibilityProperty: true, opacityProperty: true}
const styled = node => frame.contentWindow.getComputedStyle(node)
const inArticle = node => node.closest("article *")
const scrolls = node => node && (styled(node).overflowX !== "visible" || scrolls(inArticle(node.parentElement)))
async function main() {
  const out = {boxes: [], away: [], found: [], looked: 0}
  const pages = await (await fetch("/pages.json")).json()
  for (const width of [1280, 390]) {
    frame.style.width = width + "px"
    for (const page of pages) {
      await open("/" + page)
      const root = frame.contentDocument.documentElement
      const say = what => out.boxes.push(`${page} at ${width}: ${what}`)
      out.looked += 1
      if (root.scrollWidth > root.clientWidth) say("the page")
      const words = frame.contentDocument.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT)
      for (let node = words.nextNode(); node; node = words.nextNode()) {
        const isText = node.nodeType === 3, around = isText ? node.parentElement : node
        if (isText ? !node.data.trim() : !["IMG", "TABLE", "PRE"].includes(node.tagName)) continue
        const column = around.closest(".content, .sidebar-drawer, .toc-drawer")?.getBoundingClientRect()
        if (!column || !around.checkVisibility(VISIBLE)) continue
        let box = isText ? around : around.parentElement
        while (styled(box).display.startsWith("inline")) box = box.parentElement
        if (scrolls(box)) continue
        const block = box.getBoundingClientRect(), range = new Range()
        const left = Math.max(block.left, column.left) - 1, right = Math.min(block.right, column.right) + 1
        range.selectNodeContents(node)
        for (const piece of isText ? range.getClientRects() : [node.getBoundingClientRect()])
          if (piece.width && (piece.right > right || piece.left < left || block.right > right)) {
            say(`${box.tagName} ${around.textContent.trim().slice(0, 60)}`)
            break
          }
      }
      for (const entry of frame.contentWindow.performance.getEntriesByType("resource"))
        if (!entry.name.startsWith(location.origin)) out.away.push(entry.name)
    }
  }
  await open("/search.html?q=softmax")
  for (let i = 0; i < 100 && !frame.contentDocument.querySelector("#search-results li"); i++) await wait(100)
  await wait(500)
  out.found = [...frame.contentDocument.querySelectorAll("#search-results li a")].map(link => link.pathname)
  await fetch("/result", {method: "POST", body: JSON.stringify(out)})
}
main().catch(error => fetch("/result", {method: "POST", body: JSON.stringify({error: String(error)})}))
</script>
"""


def looked_at(site: Path, names: list[str]) -> dict:
    """What the browser finds on the pages."""
    browser = shutil.which("chromium")
    assert browser, "tools/site --browser installs it"
    result: list[dict] = []
    arrived = threading.Event()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(site))

        def do_GET(self):
            made = {"/look.html": LOOK, "/pages.json": json.dumps(names)}.get(self.path)
            if made is None:
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if self.path.endswith("html") else "application/json")
            self.end_headers()
            self.wfile.write(made.encode())

        def do_POST(self):
            result.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()
            arrived.set()

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        quiet = ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"]
        quiet += ["disable-component-update", "disable-sync", "remote-debugging-port=0", "window-size=1400,1000"]
        address = f"http://127.0.0.1:{server.server_address[1]}/look.html"
        command = [browser, "--headless", *("--" + option for option in quiet), f"--user-data-dir={profile}", address]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert arrived.wait(900), "the browser gave no answer"
        finally:
            process.terminate()
            process.wait(30)
            server.shutdown()
            server.server_close()
    assert "error" not in result[0], result[0]
    return result[0]


@pytest.mark.long
def test_nothing_leaves_its_box_and_the_search_finds(site):
    names = [str(path.relative_to(site)) for path in sorted(site.rglob("*.html"))]
    found = looked_at(site, names)
    assert found["looked"] == 2 * len(names)
    assert found["boxes"] == []
    assert found["away"] == []
    assert "/r/ops_softmax.html" in found["found"] and "/python/gradops-ops-softmax.html" in found["found"]

"""Checks the built site in Chromium with Playwright, from its folder, without a network: for ``test_site.py``.

    python site_looks.py BROWSER SITE [PAGE ...]

Prints JSON: ``console`` errors, requests to other hosts (``away``), elements that overflow their box at each width
(``boxes``), text with low contrast on dark pages (``dark``), the pages that the search finds for each of two queries
(``found``), and the number of pages ``looked`` at.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

WIDTHS = (1280, 390)

# Elements that make the page wider than the window; code that wraps, or is wider than its box and does not scroll;
# text, pictures and tables that overflow a block without a scrolling ancestor.
BOXES = """() => {
  const out = [], root = document.documentElement
  const styled = node => getComputedStyle(node)
  const inArticle = node => node.closest("article *")
  const scrolls = node => node && (styled(node).overflowX !== "visible" || scrolls(inArticle(node.parentElement)))
  if (root.scrollWidth > root.clientWidth) out.push("the page")
  for (const code of document.querySelectorAll("article pre"))
    if (styled(code).whiteSpaceCollapse !== "preserve" || styled(code).textWrapMode !== "nowrap"
        || code.scrollWidth > code.clientWidth + 1 && !scrolls(code)) out.push("code: " + code.textContent.slice(0, 60))
  const words = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT)
  for (let node = words.nextNode(); node; node = words.nextNode()) {
    const isText = node.nodeType === 3, around = isText ? node.parentElement : node
    if (isText ? !node.data.trim() : !["IMG", "TABLE", "PRE", "svg"].includes(node.tagName)) continue
    const column = around.closest(".content, .sidebar-drawer, .toc-drawer")?.getBoundingClientRect()
    if (!column || !around.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue
    let box = isText ? around : around.parentElement
    while (styled(box).display.startsWith("inline")) box = box.parentElement
    if (scrolls(box)) continue
    const block = box.getBoundingClientRect(), range = new Range()
    const left = Math.max(block.left, column.left) - 1, right = Math.min(block.right, column.right) + 1
    range.selectNodeContents(node)
    for (const piece of isText ? range.getClientRects() : [node.getBoundingClientRect()])
      if (piece.width && (piece.right > right || piece.left < left || block.right > right)) {
        out.push(`${box.tagName} ${around.textContent.trim().slice(0, 60)}`)
        break
      }
  }
  return out
}"""

# Text whose contrast with its background is below WCAG's 4.5, on a dark page.
DARK = """() => {
  const luminance = color => {
    const part = color.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2]
  }
  const pixel = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true})
  const shown = colors => {
    pixel.clearRect(0, 0, 1, 1)
    for (const color of colors) { pixel.fillStyle = color; pixel.fillRect(0, 0, 1, 1) }
    return [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3)
  }
  const behind = node => node ? [...behind(node.parentElement), getComputedStyle(node).backgroundColor] : ["white"]
  const out = new Set()
  if (luminance(shown(behind(document.body))) > 0.1) out.add("the page is not dark")
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = words.nextNode(); node; node = words.nextNode()) {
    const around = node.parentElement
    if (!node.data.trim() || !around.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue
    const style = getComputedStyle(around), ground = behind(around)
    const color = around.closest("svg") ? style.fill : style.color
    const pair = [shown(ground), shown([...ground, color])].map(luminance).sort((a, b) => a - b)
    if ((pair[1] + 0.05) / (pair[0] + 0.05) < 4.5) out.add(`${node.data.trim().slice(0, 40)}: ${color}`)
  }
  return [...out]
}"""


def listen(page: Page, out: dict) -> None:
    page.on("console", lambda said: said.type == "error" and out["console"].append(f"{page.url}: {said.text}"))
    page.on("pageerror", lambda error: out["console"].append(f"{page.url}: {error}"))
    page.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or out["away"].append(asked.url))


def look(browser: str, site: Path, pages: list[str]) -> dict:
    out: dict = {"console": [], "away": [], "boxes": [], "dark": [], "found": {}, "looked": 0}
    address = site.resolve().as_uri() + "/"
    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            context = chromium.new_context(color_scheme=scheme, offline=True)
            page = context.new_page()
            page.set_default_timeout(300_000)  # a loaded machine takes longer than Playwright's 30 seconds
            listen(page, out)
            for name in pages:
                page.goto(address + name)
                for width in WIDTHS:
                    page.set_viewport_size({"width": width, "height": 900})
                    wrong = page.evaluate(BOXES if scheme == "light" else DARK)
                    key = "boxes" if scheme == "light" else "dark"
                    out[key] += [f"{name} at {width}: {what}" for what in wrong]
                    out["looked"] += 1
            if scheme == "light":
                for query in ("softmax", "gradient reversal"):
                    page.goto(address + "search.html?q=" + query)
                    page.wait_for_selector("#search-results p:text('Search finished')")
                    links = page.eval_on_selector_all("#search-results li a", "links => links.map(link => link.href)")
                    out["found"][query] = [link.removeprefix(address).partition("#")[0] for link in links]
            context.close()
        chromium.close()
    return out


if __name__ == "__main__":
    browser, site, *pages = sys.argv[1:]
    pages = pages or [str(path.relative_to(site)) for path in sorted(Path(site).rglob("*.html"))]
    print(json.dumps(look(browser, Path(site), pages)))

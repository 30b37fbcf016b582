#!/usr/bin/env python3
"""Builds the web site of both languages with Sphinx: its contents, the pages' sources, and the build.

tools/site_pages.py MADE SOURCE SITE    write Sphinx's sources to SOURCE, using the output of tools/site.R in MADE, and
                                        build SITE

README.md is the first page. The pages are docs/, vignettes/, examples/, other Markdown in the root folder, R's topics
grouped by the R file they are written in, and the public names of Python's modules. New files need no entry here: a new
page of docs/ appears among the guides, topics of a new R file under "More".
"""

from __future__ import annotations

import ast
import html
import json
import os
import re
import shutil
import sys
import types
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools")]

import families  # noqa: E402
import site_charts  # noqa: E402

# Contents ------------------------------------------------------------------------------------------------------------


# R's topics grouped by the file that documents each, given by name or pattern.
R_GROUPS = {
    "Derivatives of functions": ["functional-*", "objective", "jit", "gradcheck"],
    "Likelihoods": ["likelihood*", "rtmb*"],
    "How gradients flow": ["flow"],
    "The tape": ["autodiff", "graphs", "profile-call"],
    "Text": ["text-*"],
    "R functions on tensors": ["methods-*", "stats-*", "random-tensors"],
    "Settings, files and R itself": [
        "config",
        "errors",
        "serialization",
        "python*",
        "extend",
        "gradops-package",
    ],
} | {
    f"Ops: {title}": [f"ops/{name}" for name in names.split()]
    for title, names in {
        "arithmetic and elementary functions": "elementwise* bounds",
        "making and converting": "creation conversion encoding",
        "shapes and parts": "shaping properties extending joining indexing scattering blocks diagonals",
        "sums, statistics and order": "reductions statistics nanstatistics quantiles sorting sequences",
        "linear algebra": "products decompositions systems norms",
        "Fourier transforms": "fourier",
        "neural networks": "activations normalization losses convolution pooling attention",
        "images": "image/*",
        "control flow and functions": "control mapping derivatives",
    }.items()
}

# The navigation shown next to each page. A page that is not named goes to the first pattern that matches.
INDEX = {
    "Start": ["docs/get-started", "docs/recipes", "docs/cheat*", "docs/faq", "gallery", "examples/index"],
    "Coming from": ["docs/coming-from", "docs/coming-from-*", "docs/scipy", "docs/text", "docs/text-pipelines"],
    "Guides": [
        f"docs/{name}"
        for name in "custom-gradients transformations keras statistics numpy wrong-gradients four-backends engines "
        "distributed r-in-python extending *".split()
    ],
    "From R": ["vignettes/gradops", "vignettes/*"],
    "Reference": ["python/index", "r/index"]
    + [
        f"docs/{name}"
        for name in "ops rules names scipy-names differences errors trust digits stability versions".split()
    ],
    "Project": ["benchmarks/README", "docs/architecture", "docs/reviewers", "NEWS", "CONTRIBUTING", "*"],
}

# Public modules that are not in gradops.__all__, with their public names.
MORE_MODULES = {"gradops.interop.r": ["r_function", "call_in_thread"]}


def pages() -> dict[str, Path]:
    """Return the pages that are files of the repository, by name of the page."""
    found = {"index": ROOT / "README.md"}
    for folder in ("", "docs", "benchmarks"):
        for path in sorted((ROOT / folder).glob("*.md")):
            found.setdefault(f"{folder}/{path.stem}".lstrip("/"), path)
    del found["README"]
    found |= {f"vignettes/{path.stem}": path for path in sorted((ROOT / "vignettes").glob("*.Rmd"))}
    for path in sorted((ROOT / "examples").rglob("*")):
        if path.suffix in (".py", ".R"):
            found[str(path.relative_to(ROOT))] = path
    return found


class Topic:
    """A page of R's manual."""

    def __init__(self, path: Path):
        text = path.read_text()
        self.name = path.stem
        self.aliases = [re.sub(r"\\(.)", r"\1", name) for name in re.findall(r"^\\alias\{(.*)\}$", text, flags=re.M)]
        title = re.search(r"^\\title\{(.*?)\}\n\\", text, flags=re.M | re.S)[1]
        self.title = re.sub(r"\\(.)", r"\1", re.sub(r"\\\w+\{([^{}]*)\}", r"`\1`", title)).replace("\n", " ")
        self.heading = f"{self.title} (R)"
        self.internal = "\\keyword{internal}" in text
        origin = re.search(r"Please edit documentation in (?:R|python/gradops)/([\w/-]+)\.", text)
        self.file = origin[1] if origin else ""


def topics() -> dict[str, Topic]:
    return {path.stem: Topic(path) for path in sorted((ROOT / "man").glob("*.Rd"))}


def exported() -> set[str]:
    """Return the names that R's NAMESPACE exports."""
    return set(re.findall(r'^export\("?([^")]+)"?\)$', (ROOT / "NAMESPACE").read_text(), flags=re.M))


def r_groups() -> dict[str, list[Topic]]:
    """Return R's topics by group; internal topics have pages but are not listed."""
    patterns = [(pattern, group) for group, several in R_GROUPS.items() for pattern in several]
    found: dict[str, list[Topic]] = {group: [] for group in (*R_GROUPS, "More")}
    for topic in topics().values():
        if not topic.internal or topic.name == "gradops-package":
            group = next((group for pattern, group in patterns if fnmatch(topic.file, pattern)), "More")
            found[group].append(topic)
    return {group: members for group, members in found.items() if members}


def public(module: types.ModuleType) -> list[str]:
    if module.__name__ in MORE_MODULES:
        return MORE_MODULES[module.__name__]
    if module.__name__ in ("gradops.numpy", "gradops.array_api"):
        return []  # NumPy and the standard document these names
    if hasattr(module, "__all__"):
        return sorted(module.__all__, key=str.lower)
    home = module.__name__
    own = (name for name, value in vars(module).items() if str(getattr(value, "__module__", "")).startswith(home))
    return sorted((name for name in own if not name.startswith("_")), key=str.lower)


class PythonPage:
    """A page of Python's reference: a module, or the ops of one family."""

    def __init__(self, name: str, title: str, module: types.ModuleType | None):
        self.name, self.title, self.module = name, title, module
        self.text = ""  # the description of a family
        self.members: list[str] = []  # full names
        self.elsewhere: list[tuple[str, str]] = []  # full names here, and the names under which they are described
        self.children: list[PythonPage] = []


def python_pages() -> list[PythonPage]:
    """Return Python's modules in the order of the index. Each object is described once, where it first occurs."""
    import importlib

    import gradops

    described: dict[int, str] = {}
    modules = {id(gradops)}

    def page(module: types.ModuleType) -> PythonPage:
        of = PythonPage(module.__name__, module.__name__, module)
        inner, of_title = [], {}
        for name in public(module):
            value, full = getattr(module, name), f"{module.__name__}.{name}"
            if isinstance(value, types.ModuleType):
                inner.append(value)
            elif id(value) in described:
                of.elsewhere.append((full, described[id(value)]))
            else:
                described[id(value)] = full
                if not module.__name__.startswith("gradops.ops") or not value.__module__.startswith("gradops.ops."):
                    of.members.append(full)
                    continue
                title = families.title(value)
                family = of_title.setdefault(title, PythonPage(f"{module.__name__}, {title}", title, None))
                family.members.append(full)
                family.text += families.heads(value.__module__)[value.__name__].partition("\n")[2] * (not family.text)
        of.children = [of_title[title] for title in sorted(of_title)]
        for value in inner:
            if id(value) not in modules:
                modules.add(id(value))
                of.children.append(page(value))
        return of

    first = page(gradops)
    rest, first.children = first.children, []
    return [first, *rest, *(page(importlib.import_module(name)) for name in MORE_MODULES)]


def slug(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def navigation() -> dict[str, list[str]]:
    """Return the pages under each heading of the navigation."""
    places = [(heading, pattern) for heading, patterns in INDEX.items() for pattern in patterns]
    names = [name for name in pages() if name != "index" and not name.startswith("examples/")]
    found: dict[tuple[str, str], list[str]] = {place: [] for place in places}
    for name in ["gallery", "examples/index", "python/index", "r/index", *names]:
        exact = (place for place in places if place[1] == name)
        found[next(exact, None) or next(place for place in places if fnmatch(name, place[1]))].append(name)
    return {heading: [name for place in places if place[0] == heading for name in found[place]] for heading in INDEX}


# Links ---------------------------------------------------------------------------------------------------------------

FENCED = re.compile(r"(^```.*?^```$|``.+?``|`[^`\n]+`)", flags=re.M | re.S)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def links(text: str) -> Iterator[re.Match]:
    """Yield the links in Markdown outside code."""
    yield from LINK.finditer(FENCED.sub(lambda code: "x" * len(code[0]), text))


def with_links(text: str, target) -> str:
    out, position = [], 0
    for match in links(text):
        out += [text[position : match.start()], match[1], target(match[2]), match[3]]
        position = match.end()
    return "".join([*out, text[position:]])


def linked_file(path: Path, link: str) -> Path | None:
    """Return the repository file that a link in ``path`` points to; None for other sites and for the same page."""
    if re.match(r"[a-z]+:|#", link):
        return None
    return Path(os.path.normpath(path.parent / link.partition("#")[0]))


def other_files() -> dict[str, Path]:
    """Return pages for linked folders and code files that are not pages themselves."""
    known = {path: name for name, path in pages().items()}
    found = {}
    for page in pages().values():
        if page.suffix in (".md", ".Rmd"):
            for match in links(page.read_text()):
                path = linked_file(page, match[2])
                if path and path not in known and path.suffix not in (".png", ".svg"):
                    found["files/" + str(path.relative_to(ROOT))] = path
    return {name: path for name, path in found.items() if not is_examples(path)}


def is_examples(path: Path) -> bool:
    return path.is_dir() and path.is_relative_to(ROOT / "examples")


# Sphinx's sources ----------------------------------------------------------------------------------------------------


def toctree(names: list[str], caption: str = "", hidden: bool = True, depth: int = 1) -> str:
    options = [":hidden:"] * hidden + [f":caption: {caption}"] * bool(caption) + [f":maxdepth: {depth}"]
    return "\n".join(["```{toctree}", *options, "", *("/" + name for name in names), "```", ""])


class Sources:
    def __init__(self, made: Path, folder: Path):
        self.made, self.folder = made, folder
        self.names = {path: name for name, path in (pages() | other_files()).items()}
        self.aliases = {alias: topic.name for topic in topics().values() for alias in topic.aliases}

    def write(self, name: str, text: str, suffix: str = ".md") -> None:
        path = self.folder / (name + suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def relative(self, name: str, target: str) -> str:
        return os.path.relpath(target, PurePosixPath(name).parent)

    def all(self) -> None:
        for name, path in pages().items():
            if path.suffix == ".md":
                self.markdown(name, path)
            elif path.suffix == ".Rmd":
                self.vignette(name, path)
            else:
                self.code(name, path)
        for name, path in other_files().items():
            self.code(name, path)
        self.examples()
        self.gallery()
        self.r_reference()
        self.python_reference()
        for part in ("r", "vignettes"):
            figures = self.made / part / "figures"
            if figures.exists():
                shutil.copytree(figures, self.folder / part / "figures", dirs_exist_ok=True)
        self.write("_static/site", (ROOT / "tools" / "site.css").read_text(), ".css")
        self.write("scorer", scorer(), ".js")

    def markdown(self, name: str, path: Path) -> None:
        text = self.linked(name, path, path.read_text())
        if name == "benchmarks/README":
            text = site_charts.with_charts(text)
        if name == "docs/cheatsheet":
            text = text.replace("\n\n", f"\n\nTo print: {self.sheets(name)}.\n\n", 1)
        if name.startswith("docs/"):
            text = re.sub(r"^# (.*)", lambda title: "# " + language_title(title[1], text), text, count=1)
        text = tabbed_text(text)
        if name == "index":
            text += "\n" + "\n".join(toctree(names, caption) for caption, names in navigation().items())
        self.write(name, text)

    def sheets(self, name: str) -> str:
        """Return links to the cheat sheets: a PDF for each language, or HTML if there was no browser to make it."""
        made = [
            min(self.made.glob(f"cheatsheet-{language}.*"), key=lambda path: path.suffix != ".pdf")
            for language in ("python", "r")
        ]
        for path in made:
            shutil.copyfile(path, self.folder / PurePosixPath(name).parent / path.name)
        return ", ".join(f"{{download}}`{title} <{path.name}>`" for title, path in zip(("Python", "R"), made))

    def linked(self, name: str, path: Path, text: str) -> str:
        def target(link: str) -> str:
            file = linked_file(path, link)
            if file is None or link.startswith("vignettes/figures/"):
                return link
            if file.suffix in (".png", ".svg"):
                copy = self.folder / file.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
                return self.relative(name, str(file.relative_to(ROOT)))
            page = "examples/index" if is_examples(file) else self.names[file]
            anchor = link.partition("#")[2]
            return self.relative(name, page) + ".md" + ("#" + anchor if anchor else "")

        return with_links(text, target)

    def vignette(self, name: str, path: Path) -> None:
        """Write knitr's page with links to R's functions."""
        text = (self.made / f"{name}.md").read_text()
        title = re.search(r'^title: "?(.*?)"?$', text, flags=re.M)[1]
        text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
        text = FENCED.split(self.linked(name, path, text))
        text[::2] = [
            re.sub(r"^# ", "## ", words, flags=re.M) for words in text[::2]
        ]  # only the title may be a heading of level 1
        text = with_figures("".join(text), "vignettes")
        self.write(name, f"# {language_title(title, text)}\n\n" + self.with_functions(name, text))

    def with_functions(self, name: str, text: str) -> str:
        """Return Markdown with links for R functions, `f()`, and vignettes."""

        def link(code: re.Match) -> str:
            vignette = re.fullmatch(r'`vignette\("([\w-]+)".*\)`', code[0])
            if vignette and (ROOT / "vignettes" / f"{vignette[1]}.Rmd").exists():
                return f"[{code[0]}]({self.relative(name, 'vignettes/' + vignette[1])}.md)"
            function = re.fullmatch(r"`([\w.]+)\(\)`", code[0])
            if function and function[1] in self.aliases:
                return f"[{code[0]}]({self.relative(name, 'r/' + self.aliases[function[1]])}.md)"
            return code[0]

        return FENCED.sub(link, text)

    def code(self, name: str, path: Path) -> None:
        copy = self.folder / "_sources_of_code" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        language = {".py": "python", ".R": "r"}.get(path.suffix, "text")
        if path.is_dir():
            listing = "\n".join(
                sorted(inner.name for inner in path.iterdir() if not inner.name.startswith((".", "__")))
            )
            copy.write_text(listing)
        else:
            shutil.copyfile(path, copy)
        body = f"```{{literalinclude}} /{copy.relative_to(self.folder)}\n:language: {language}\n```\n"
        orphan = "" if name in pages() else "---\norphan: true\n---\n\n"
        self.write(name, f"{orphan}# `{path.relative_to(ROOT)}`\n\n{body}")

    def examples(self) -> None:
        names = [name for name in pages() if name.startswith("examples/")]
        lines = [
            "# Examples",
            "",
            "Whole programs, which the tests run.",
            "",
            "| program | what it does |",
            "|---|---|",
        ]
        for name in names:
            says = first_words(ROOT / name)
            lines.append(f"| [`{name}`]({self.relative('examples/index', name)}.md) | {says} |")
        self.write("examples/index", "\n".join(lines) + "\n\n" + toctree(names))

    def gallery(self) -> None:
        """Write the pictures drawn by examples/gallery.py and gallery.R: thumbnails, then each with its code."""
        cards, parts = [], []
        for file, language, drawn in (("gallery.py", "Python", python_pictures), ("gallery.R", "R", r_pictures)):
            program = f"[{file}]({self.relative('gallery', 'examples/' + file)}.md)"
            parts.append(f"## {language}\n\nThe whole program: {program}.")
            for name, title, words, code in drawn((ROOT / "examples" / file).read_text()):
                label, picture = f"{language}-{name}".lower(), f"_pictures/{language}-{name}.svg".lower()
                (self.folder / picture).parent.mkdir(exist_ok=True)
                shutil.copyfile(self.made / "gallery" / language.lower() / f"{name}.svg", self.folder / picture)
                code = f"```{language.lower()}\n{code}\n```"
                options = [f":img-top: {picture}", f":img-alt: {title}", f":link: {label}", ":link-type: ref"]
                cards.append(directive("grid-item-card", language_title(title, code), "\n".join(options)))
                parts += [f"({label})=\n### {title}", words, f"![{title}]({picture})"]
                parts.append(directive("dropdown", "code", code))
        grid = directive("grid", "2 2 3 3", ":gutter: 3\n\n" + "\n\n".join(cards), fence=5)
        first = ["# Gallery", "Drawn when this site was built, by the code that each picture folds out.", grid]
        self.write("gallery", "\n\n".join(first + parts) + "\n")

    # R's reference

    def r_reference(self) -> None:
        lines = ["# R reference", "", "R's functions, by theme. In R, `?op_softmax` shows the same pages.", ""]
        groups, functions = r_groups(), exported()
        for group, members in groups.items():
            lines += [f"## {group}", "", "| functions | topic |", "|---|---|"]
            for topic in members:
                names = [alias for alias in topic.aliases if alias in functions] or [topic.name]
                code = cell(" ".join(f"`{name}`" for name in names))
                lines.append(f"| [{code}]({topic.name}.md) | {cell(topic.title)} |")
            lines.append("")
        self.write("r/index", "\n".join(lines))
        of = {topic.name: group for group, members in groups.items() for topic in members}
        for topic in topics().values():
            self.r_topic(topic, of.get(topic.name))

    def r_topic(self, topic: Topic, group: str | None) -> None:
        made = (self.made / "r" / f"{topic.name}.html").read_text()
        made = re.sub(r"<a href=(['\"])(.*?)\1>(.*?)</a>", self.r_link, made, flags=re.S)
        body = re.split(r"<h3>Examples</h3>|<hr ?/?>", made[made.index("</h2>") + 5 :])[0]
        parts = [f"# {topic.heading}"]
        for heading, section in sections(body):
            if heading == "Description" and plain(section) == topic.title.replace("`", ""):
                continue
            parts.append(f"## {heading}")
            if heading == "Usage":
                code = html.unescape(re.sub(r"<[^>]*>", "", section)).strip()
                parts.append(f"```r\n{code}\n```")
            else:
                parts.append(raw(section))
        examples = self.made / "r" / f"{topic.name}.examples.md"
        if examples.exists():
            parts.append("## Examples\n" + with_figures(examples.read_text(), "r"))
        if group:
            parts.append(f"See also: [{group}](index.md#{slug(group)}).")
        self.write("r/" + topic.name, "---\norphan: true\n---\n\n" + "\n\n".join(parts) + "\n")

    def r_link(self, link: re.Match) -> str:
        """Return a link to another page of gradops' manual or another site; links to R's own manual become text."""
        if re.match(r"https?://", link[2]):
            return link[0]
        topic = re.fullmatch(r"(?:\.\./\.\./gradops/\w+/)?([\w.-]+)\.html", link[2])
        page = topic and self.aliases.get(topic[1], topic[1])
        return f'<a href="{page}.html">{link[3]}</a>' if page in self.aliases.values() else link[3]

    # Python's reference

    def python_reference(self) -> None:
        modules = python_pages()
        lines = ["Python reference", "================", "", "The public names of the Python package, by module.", ""]
        names = [f"   {module.name} <{slug(module.name)}>" for module in modules]
        lines += [".. toctree::", "   :maxdepth: 2", "", *names, ""]
        self.write("python/index", "\n".join(lines), ".rst")
        for module in modules:
            self.python_page(module)

    def python_page(self, page: PythonPage) -> None:
        heading = f"{page.title} (Python)"
        lines = [heading, "=" * len(heading), ""]
        module = page.name.partition(",")[0]
        if page.module is not None:
            lines += [f".. automodule:: {module}", "   :no-members:", ""]
        else:
            lines += [f".. py:currentmodule:: {module}", "", f"Functions of ``{module}``.", "", page.text.strip(), ""]
        if page.elsewhere:
            lines.append("Described elsewhere: " + ", ".join(f":py:obj:`{a} <{b}>`" for a, b in page.elsewhere) + ".")
            lines.append("")
        if page.children:
            names = [f"   {inner.title} <{slug(inner.name)}>" for inner in page.children]
            lines += [".. toctree::", "   :maxdepth: 1", "", *names, ""]
        import gradops

        for full in page.members:
            value = gradops
            for part in full.split(".")[1:]:
                value = getattr(value, part) if hasattr(value, part) else sys.modules[f"{value.__name__}.{part}"]
            if isinstance(value, type):
                lines += [f".. autoclass:: {full}", "   :members:", "   :member-order: alphabetical", ""]
            elif callable(value):
                lines += [f".. autofunction:: {full}", ""]
            else:
                lines += [f".. autodata:: {full}", ""]
        self.write("python/" + slug(page.name), "\n".join(lines), ".rst")
        for inner in page.children:
            self.python_page(inner)


def python_pictures(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield for each function of a Python gallery its name, title, description and code without the docstring."""
    tree = ast.parse(text)
    (names,) = (node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "PICTURES")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name in names.elts:
        function = functions[name.id]
        title, _, words = ast.get_docstring(function).partition("\n\n")
        lines = text.split("\n")[function.lineno - 1 : function.end_lineno]
        del lines[1 : 2 + function.body[0].end_lineno - function.body[0].lineno]
        yield name.id, title, words, "\n".join(lines)


def r_pictures(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the same items from an R gallery. The comments above each function hold its title and description."""
    for function in re.finditer(
        r"^# (.*)\n#\n((?:# .*\n)+)((\w+) <- function\(\) \{\n(?:.*\n)*?\}$)", text, flags=re.M
    ):
        yield function[4], function[1], re.sub("^# ", "", function[2], flags=re.M), function[3]


def directive(name: str, argument: str, body: str, fence: int = 4) -> str:
    return f"{'`' * fence}{{{name}}} {argument}\n{body}\n{'`' * fence}"


def language_title(title: str, text: str) -> str:
    """Return a page's title with the language of its code in parentheses, unless it has both or the title says it."""
    (language, *others) = sorted(set(re.findall(r"^```(python|r)$", text, flags=re.M))) or [""]
    name = {"python": "Python", "r": "R"}.get(language, "")
    return title if others or re.search(rf"\b{name}\b", title) else f"{title} ({name})"


def tabbed_text(text: str) -> str:
    """Return Markdown with a tab for each language where R's code directly follows Python's."""

    def tabs(pair: re.Match) -> str:
        codes = zip(("Python", "R"), pair.groups())
        items = [directive("tab-item", language, f":sync: {language}\n\n{code}") for language, code in codes]
        return directive("tab-set", "", "\n\n".join(items), fence=5)

    return re.sub(r"^(```python\n(?:(?!```).*\n)*```)\n\n(```r\n(?:(?!```).*\n)*```)$", tabs, text, flags=re.M)


def with_figures(text: str, folder: str) -> str:
    """Return knitr's page with links to its figures relative to ``folder``."""
    text = re.sub(rf'<img src="{folder}/(figures/.*?)" alt="(.*?)"[^>]*>', r"![\2](\1)", text)
    return text.replace(f"]({folder}/figures/", "](figures/")


def raw(text: str) -> str:
    """Return HTML embedded in Markdown."""
    return f"````{{raw}} html\n<div class='rd'>\n{text.strip()}\n</div>\n````"


def sections(body: str) -> list[tuple[str, str]]:
    parts = re.split(r"<h3>(.*?)</h3>", body, flags=re.S)
    return [(html.unescape(parts[i]), parts[i + 1]) for i in range(1, len(parts), 2)]


def plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def first_words(path: Path) -> str:
    """Return the description of a script: the first sentence of its docstring or first comment."""
    text = re.sub(r"\A(#!.*\n)+", "", path.read_text())
    match = re.match(r'"""(.*?)(?:\n\n|""")', text, flags=re.S) or re.match(r"((?:#.*\n)+)", text)
    words = " ".join(re.sub(r"^#'? ?", "", match[1] if match else "", flags=re.M).split())
    return cell(re.split(r"(?<=[.:])\s", words)[0])


def scorer() -> str:
    """Return tools/site.js with the headings of INDEX for each page: the search ranks pages with them."""
    headings = {"index": "Start"} | {name: heading for heading, names in navigation().items() for name in names}
    return f"const HEADINGS = {json.dumps(headings)}\n" + (ROOT / "tools" / "site.js").read_text()


# The build -----------------------------------------------------------------------------------------------------------


def build(source: Path, site: Path) -> int:
    from sphinx.application import Sphinx

    import gradops

    settings = {
        "project": "gradops",
        "release": gradops.__version__,
        "extensions": [
            *"myst_parser sphinx.ext.autodoc sphinx.ext.napoleon sphinx_copybutton sphinx_design".split(),
            Path(__file__).stem,
        ],
        "copybutton_prompt_text": r">>> |\.\.\. ",
        "copybutton_prompt_is_regexp": True,
        "exclude_patterns": ["_sources_of_code"],
        "html_theme": "furo",
        "html_title": f"gradops {gradops.__version__}",
        "html_static_path": ["_static"],
        "html_css_files": ["site.css"],
        "html_search_scorer": str(source / "scorer.js"),
        "html_copy_source": False,
        "html_use_index": False,
        "html_domain_indices": False,
        "html_show_sourcelink": False,
        "html_show_copyright": False,
        "autodoc_typehints": "none",
        "python_use_unqualified_type_names": True,
        "add_module_names": False,
        "napoleon_custom_sections": ["Gradient", "Returns"],  # in `Returns` the text before a colon is not a type
        "napoleon_use_rtype": False,
        "napoleon_use_ivar": True,
        "myst_heading_anchors": 4,
        "myst_fence_as_directive": ["math"],
        "html_math_renderer": "mathml",
        "highlight_language": "text",
        "toc_object_entries_show_parents": "hide",
    }
    app = Sphinx(
        source, None, site, source / "_doctrees", "html", confoverrides=settings, warningiserror=True, parallel=2
    )
    app.connect("env-updated", lambda app, env: r_functions(env))
    app.build()
    return app.statuscode


def setup(app) -> dict[str, bool]:
    """Let Sphinx write formulas as MathML, which browsers draw without a script or a font from elsewhere."""
    from docutils.nodes import SkipNode
    from docutils.utils.math.latex2mathml import tex2mathml

    def visit(as_block: bool):
        def write(writer, node):
            writer.body.append(tex2mathml(node.astext(), as_block=as_block))
            raise SkipNode

        return write, None

    app.add_html_math_renderer("mathml", visit(False), visit(True))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def r_functions(env) -> None:
    """Register R's functions with Sphinx's search, which already knows Python's."""
    from docutils.nodes import make_id
    from sphinx.domains import ObjType

    domain = env.get_domain("std")
    domain.object_types["rfunction"] = ObjType("R function", "rfunction")
    functions = exported()
    for topic in topics().values():
        for alias in functions.intersection(topic.aliases):
            domain.objects["rfunction", alias] = (f"r/{topic.name}", make_id(topic.heading.replace("`", "")))


def main() -> int:
    made, source, site = (Path(argument).resolve() for argument in sys.argv[1:])
    Sources(made, source).all()
    return build(source, site)


if __name__ == "__main__":
    sys.exit(main())

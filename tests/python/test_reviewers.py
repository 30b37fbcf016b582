"""docs/reviewers.md matches the repository, and paper/ meets JOSS' requirements, with this project's figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.repository, pytest.mark.documents]


def rows() -> list[list[str]]:
    lines = re.findall(r"^\| (?!asked|---)(.*) \|$", (ROOT / "docs" / "reviewers.md").read_text(), flags=re.M)
    assert len(lines) > 40
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def test_named_files_exist():
    known = {path.name for folder in ("tests/python", "tools") for path in (ROOT / folder).iterdir()}
    for asked, state, by in ([*row, ""][:3] for row in rows()):
        assert state, asked
        for name in re.findall(r"`([\w./-]+\.(?:md|py|toml|cff|yaml)|[\w.-]+/[\w./-]*)`", by):
            assert (ROOT / name).exists() or name in known, f"{asked}: {name}"


def test_open_points_are_still_open():
    """If a file answers a row differently, the row must be changed with it."""
    state = {asked: state for asked, state, *_ in rows()}
    description, project = (ROOT / "DESCRIPTION").read_text(), (ROOT / "pyproject.toml").read_text()
    written = {
        "a public address of sources and issues": "\nURL:" in description or "[project.urls]" in project,
        "persons as authors, with ORCID": "gradops maintainers" not in description,
        "a tagged release": "(unreleased)" not in (ROOT / "NEWS.md").read_text().split("\n", 1)[0],
        "`codemeta.json`": (ROOT / "codemeta.json").exists(),
        "badges at the head of the README": "badge" in (ROOT / "README.md").read_text(),
    }
    assert {asked for asked, done in written.items() if done == state[asked].startswith("open")} == set()


def test_paper_meets_joss_requirements():
    _, head, text = (ROOT / "paper" / "paper.md").read_text().split("---\n", 2)
    assert {"title:", "tags:", "authors:", "affiliations:", "date:", "bibliography:"} <= set(head.split())
    sections = ["Summary", "Statement of need", "State of the field", "Software design", "Research impact statement"]
    assert re.findall("^# (.*)$", text, flags=re.M) == [*sections, "AI usage disclosure", "References"]
    assert 750 <= len(text.split()) <= 1750
    keys = re.findall(r"^@\w+\{(\w+),$", (ROOT / "paper" / "paper.bib").read_text(), flags=re.M)
    assert sorted(set(re.findall(r"@(\w+)", text))) == sorted(keys)


def test_paper_figures_match_the_benchmarks():
    text, page = (ROOT / "paper" / "paper.md").read_text(), (ROOT / "benchmarks" / "README.md").read_text()
    speed = re.search(r"^Speed is measured.*?\n\n", text, flags=re.M | re.S)[0]
    figures = re.findall(r"(?<![\w.])\d[\d.]*\d", speed)
    assert len(figures) > 12
    assert [figure for figure in figures if not re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.]*\d)", page)] == []
    assert all(share in (ROOT / "README.md").read_text() for share in re.findall(r"[\d.]+%", text))

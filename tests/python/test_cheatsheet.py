"""Every cell of docs/cheatsheet.md runs, and a language's cells fit on one printed page. R cells: ``test-readme.R``."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cheatsheet.md"
TOOL = ROOT / "tools" / "cheatsheet"

pytestmark = [
    pytest.mark.skipif(not TOOL.exists(), reason="the pages are not part of the source distribution"),
    pytest.mark.documents,
]


@pytest.fixture(scope="module")
def tool():
    loader = importlib.machinery.SourceFileLoader("cheatsheet", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("cheatsheet", loader))
    loader.exec_module(module)
    return module


def test_cells_of_each_table_run(tool):
    page = PAGE.read_text()
    assert sum(map(len, tool.tables(page).values())) > 40
    for rows in tool.tables(page).values():
        scope: dict = {}
        exec(tool.beginning(page, "python"), scope)
        for what, lines, r in rows:
            assert lines and r, what
            for line in lines:
                try:
                    exec(line, scope)
                except Exception as error:
                    raise AssertionError(f"{what}: {line}") from error


@pytest.mark.repository
@pytest.mark.long
def test_each_language_fits_on_one_page(tool):
    if not shutil.which("chromium"):
        pytest.skip("needs chromium")
    subprocess.run([TOOL], check=True)
    for language in tool.LANGUAGES:
        pdf = (ROOT / ".build" / f"cheatsheet-{language}.pdf").read_bytes()
        assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") == 1

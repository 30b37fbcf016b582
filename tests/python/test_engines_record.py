"""The table in docs/engines.md shows the recorded test results, for everything that the tests try."""

from __future__ import annotations

import pathlib
import re
import sys

import engines
import pytest
import surrogates

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]

pytestmark = [
    pytest.mark.skipif(not engines.RECORD.exists(), reason="the tools are not part of the source distribution"),
    pytest.mark.documents,
]


def test_table_matches_the_record():
    sys.path.insert(0, str(ROOT / "tools"))
    import engines_table

    text = engines_table.PAGE.read_text()
    assert engines_table.page_with_table(text) == text, "run tools/engines_table.py"
    assert "<!-- engines -->\n| | " + " | ".join(surrogates.FLOWS) in text


def test_record_covers_everything_that_tests_try():
    """To update the record, run the tests of engines with GRADOPS_RECORD=1, see engines.py."""
    code = "\n".join(path.read_text() for path in HERE.glob("test_*.py"))
    tried = set(re.findall(r'mark\.engine\(\s*"(.*?)"', code))
    assert len(tried) > 15
    rows = engines.recorded()
    assert {engine for engine, _ in rows} == tried
    assert {flow for _, flow in rows} <= set(surrogates.FLOWS)
    assert {row["result"] for row in rows.values()} <= {"yes", "an error"}
    assert all((row["result"] == "an error") == bool(row["reason"]) for row in rows.values())

"""The record of what works in which engine, as tests find it, which tools/engines_table.py puts into docs/engines.md.

    GRADOPS_RECORD=1 pytest tests/python -k "engines or shards or several_are_as_one"     record it in tools/engines.csv

A test says by ``@pytest.mark.engine(name)`` in which engine its parameter ``flow`` is tried, or with ``flows=`` which
flows; ``refused={flow: reason}`` names those that it asserts to be an error.
"""

from __future__ import annotations

import csv
import pathlib

import surrogates

RECORD = pathlib.Path(__file__).resolve().parents[2] / "tools" / "engines.csv"
FIELDS = ["engine", "flow", "result", "reason"]

found: dict[tuple[str, str], dict[str, str]] = {}


def note(item, failed: bool) -> None:
    """Take down what a test has found. A flow that fails in one of several tests fails."""
    for marker in item.iter_markers("engine"):
        (engine,), refused = marker.args, marker.kwargs.get("refused", {})
        for flow in marker.kwargs.get("flows") or [item.callspec.params["flow"]]:
            if flow not in surrogates.FLOWS:
                continue
            row = dict(zip(FIELDS, (engine, flow, "yes", "")))
            if flow in refused:
                row |= {"result": "an error", "reason": refused[flow]}
            if failed:
                row |= {"result": "fails", "reason": ""}
            if found.get((engine, flow), row)["result"] != "fails":
                found[engine, flow] = row


def recorded() -> dict[tuple[str, str], dict[str, str]]:
    if not RECORD.exists():
        return {}
    with open(RECORD, newline="") as file:
        return {(row["engine"], row["flow"]): row for row in csv.DictReader(file)}


def write() -> None:
    """Put what this session found into the record, beside what others did."""
    flows = list(surrogates.FLOWS)
    rows = (recorded() | found).values()
    with open(RECORD, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: (row["engine"].lower(), flows.index(row["flow"]))))

"""The record of what works in which engine, written by tests; tools/engines_table.py shows it in docs/engines.md.

    GRADOPS_RECORD=1 pytest tests/python -k "engines or shards or several_are_as_one"     record it in
        tools/engines.csv

A test declares with ``@pytest.mark.engine(name)`` the engine in which it tries its parameter ``flow``, or with
``flows=`` a list of flows; ``refused={flow: reason}`` names the flows for which it asserts an error.
"""

from __future__ import annotations

import csv
import pathlib

import surrogates

RECORD = pathlib.Path(__file__).resolve().parents[2] / "tools" / "engines.csv"
FIELDS = ["engine", "flow", "result", "reason"]

found: dict[tuple[str, str], dict[str, str]] = {}


def note(item, failed: bool) -> None:
    """Record what a test has found. A flow fails if any of its tests fails."""
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
    """Merge this session's findings into the record."""
    flows = list(surrogates.FLOWS)
    rows = (recorded() | found).values()
    with open(RECORD, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: (row["engine"].lower(), flows.index(row["flow"]))))

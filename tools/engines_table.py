#!/usr/bin/env python3
"""Writes the table in docs/engines.md that shows what works in each engine. The tests record that in tools/engines.csv.

tools/engines_table.py            write the table
tools/engines_table.py --check    fail if it is stale
"""

from __future__ import annotations

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]
PAGE = ROOT / "docs" / "engines.md"


def table() -> str:
    import engines
    import surrogates

    rows = engines.recorded()
    reasons = list(dict.fromkeys(row["reason"] for row in rows.values() if row["reason"]))
    lines = [f"| | {' | '.join(surrogates.FLOWS)} |", "|---" * (len(surrogates.FLOWS) + 1) + "|"]
    for engine in dict.fromkeys(engine for engine, _ in rows):
        cells = []
        for flow in surrogates.FLOWS:
            row = rows.get((engine, flow), {"result": "", "reason": ""})
            cells.append(f"{row['result']} ({reasons.index(row['reason']) + 1})" if row["reason"] else row["result"])
        lines.append(f"| {engine} | {' | '.join(cells)} |")
    notes = " ".join(f"({i}) {reason}." for i, reason in enumerate(reasons, 1))
    return "\n".join([*lines, "", notes])


def page_with_table(text: str) -> str:
    return re.sub(r"(<!-- engines -->\n).*(\n<!-- /engines -->)", lambda m: m[1] + table() + m[2], text, flags=re.S)


def main() -> int:
    text = PAGE.read_text()
    if "--check" in sys.argv:
        stale = page_with_table(text) != text
        if stale:
            print("docs/engines.md is stale: run tools/engines_table.py", file=sys.stderr)
        return int(stale)
    PAGE.write_text(page_with_table(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Prints Markdown tables of the tests' minutes by file, the slowest tests and the failures, from JUnit XML in a folder.

    python tools/minutes.py .build/long [--record]

--record also updates tests/python/durations.json. Reports of the long suite give the seconds of its functions and slow
cases, and tools/test --long uses them to split it into parts. Reports of the short suite, .build/test/python-*.xml,
give the seconds of its files, and tools/halves uses them.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 20
QUICK = 0.05
"""Minutes below which a file gets no row of its own."""
SLOW = 5.0
"""Seconds above which a test case is recorded individually; otherwise the mean of its function is recorded."""
DURATIONS = Path(__file__).resolve().parents[1] / "tests" / "python" / "durations.json"

files: dict = defaultdict(lambda: [0, 0, 0.0])
functions: dict = defaultdict(list)
short: dict[str, float] = defaultdict(float)
slow: dict[str, float] = {}
cases = []
failures = []
for report in sorted(Path(sys.argv[1]).rglob("*.xml")):
    r_backend = report.name[2:].partition(".")[0] if report.name.startswith("r-") else ""
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("classname", "").rpartition(".")[2]
        name, seconds = case.get("name", ""), float(case.get("time", 0))
        failed = case.find("failure") is not None or case.find("error") is not None
        suite = f"R, {r_backend}" if r_backend else "Python"
        for total in (files[suite, file], files["all", ""]):
            total[0] += 1
            total[1] += failed
            total[2] += seconds / 60
        cases.append((seconds, suite, file, name))
        if report.name.startswith("python-") and file:
            short[f"{file}.py"] += seconds
        elif not r_backend and report.stem != "documents" and file:
            functions[f"{file}.py::{name.partition('[')[0]}"].append(seconds)
            if seconds > SLOW:
                slow[f"{file}.py::{name}"] = round(seconds, 1)
        if failed:
            failures.append(f"- {suite}: {file}, {name}")

print("| suite | file | tests | failed | minutes |\n|---|---|---|---|---|")
everything = files.pop(("all", ""), [0, 0, 0.0])
others = [0, 0, 0.0]
for (suite, file), (count, failed, minutes) in sorted(files.items(), key=lambda item: -item[1][2]):
    if minutes >= QUICK or failed:
        print(f"| {suite} | {file} | {count} | {failed} | {minutes:.1f} |")
    else:
        others = [others[0] + count, 0, others[2] + minutes]
print(f"| | quicker files | {others[0]} | 0 | {others[2]:.1f} |")
print(f"| all | | {everything[0]} | {everything[1]} | {everything[2]:.1f} |")
print("\n| seconds | suite | file | test |\n|---|---|---|---|")
for seconds, suite, file, name in sorted(cases, reverse=True)[:SLOWEST]:
    print(f"| {seconds:.1f} | {suite} | {file} | {name[:100]} |")
print("\n".join(failures))
if "--record" in sys.argv:
    known = json.loads(DURATIONS.read_text())
    known |= {name: round(sum(seconds) / len(seconds), 3) for name, seconds in functions.items()} | slow
    known |= {file: round(seconds, 1) for file, seconds in short.items()}
    DURATIONS.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")

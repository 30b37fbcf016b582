"""The minutes of tests, by file, from JUnit's XML in a folder and those below it, as a table in Markdown.

python tools/minutes.py .build/long
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

totals: dict = defaultdict(lambda: [0, 0, 0.0])
failures = []
for file in sorted(Path(sys.argv[1]).rglob("*.xml")):
    library = file.stem.removeprefix("r-")
    for case in ElementTree.parse(file).iter("testcase"):
        name = case.get("classname", "").rpartition(".")[2]
        failed = case.find("failure") is not None or case.find("error") is not None
        for key in ((library, name), ("all", "")):
            total = totals[key]
            total[0] += 1
            total[1] += failed
            total[2] += float(case.get("time", 0)) / 60
        if failed:
            failures.append(f"- {library}: {name}, {case.get('name')}")

print("| | file | tests | failed | minutes |\n|---|---|---|---|---|")
whole = totals.pop(("all", ""), [0, 0, 0.0])
for (library, name), (count, failed, minutes) in sorted(totals.items(), key=lambda item: -item[1][2]):
    print(f"| {library} | {name} | {count} | {failed} | {minutes:.1f} |")
print(f"| all | | {whole[0]} | {whole[1]} | {whole[2]:.1f} |")
print("\n".join(failures))

"""The seeds of the long random tests: GRADOPS_SEED is the first; GRADOPS_LONG multiplies their number."""

import os

LONG = float(os.environ.get("GRADOPS_LONG") or 1)
FIRST = int(os.environ.get("GRADOPS_SEED") or 1000)


def seeds(count: int) -> range:
    return range(FIRST, FIRST + round(LONG * count))

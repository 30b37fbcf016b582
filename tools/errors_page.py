#!/usr/bin/env python3
"""Writes docs/errors.md from the docstrings of gradops.errors, with what their examples print.

It needs PyTorch and JAX.
"""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import itertools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from gradops import errors  # noqa: E402

PAGE = ROOT / "docs" / "errors.md"
HEAD = """\
# Errors, causes and fixes

An error says what was expected, what was given and, as a hint, what to write instead. Its class says what kind of
mistake it is. This page has the cause and the fix for each class. `help(gradops.errors.ShapeError)` shows the same in
Python, `?gradops_errors` in R.

Written by `tools/errors_page.py` from the docstrings; do not edit.

## In R

A condition of R's has the class `gradops_error_<kind>`, which each section names, and `gradops_error`. Positions count
from 1 in its message.

```r
library(gradops)
condition <- tryCatch(op_sum(matrix(1, 2, 3), axis = 3), gradops_error_axis = identity)
condition$argument
#> [1] "axis"
inherits(condition, "gradops_error")
#> [1] TRUE
```

These classes are only R's; `?gradops_errors` has their causes and fixes: `gradops_error_callback` (your R function
failed; it has the classes of its own condition as well), `gradops_error_python` (Python did not start, or another
library's Python code failed), `gradops_error_stale` (a tensor of an earlier session), `gradops_error_unmarked` (a
likelihood's observations are not marked).
"""


def page() -> str:
    return "\n".join([HEAD, *(section(name) for name in errors.__all__)])


def section(name: str) -> str:
    error = getattr(errors, name)
    text, _, examples = inspect.getdoc(error).partition("\nExamples:\n")
    own = {f"`{base.__name__}`" for base in error.__mro__ if base.__module__ == "builtins"}
    own -= {"`object`", "`BaseException`", "`Exception`", "`LookupError`", "`Warning`"}
    kind = getattr(error, "kind", "")
    r = {"error": "gradops_error", "": "gradops_warning_mismatch"}.get(kind, f"gradops_error_{kind}")
    classes = [f"in R `{r}`"]
    classes += [f"in Python also {' and '.join(sorted(own))}"] if own else []
    about = "; ".join(classes)
    text = re.sub("^(Cause|Fix): ", r"**\1.** ", plain(text), flags=re.M)
    return f"## {name}\n\n{about[0].upper()}{about[1:]}.\n\n{text.strip()}\n{shown(inspect.cleandoc(examples))}"


def shown(examples: str) -> str:
    """Return a docstring's examples as Markdown, with the messages of their errors in full."""
    lines, scope = [], {}
    for part in doctest.DocTestParser().parse(examples):
        if isinstance(part, str):
            words = plain(part).strip()
            lines += ["```", "", words, "", "```pycon"] if words else []
            continue
        lines += [f"{mark} {line}" for mark, line in zip(marks(), part.source.splitlines())]
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(part.source, "example", "single"), scope)
            lines += part.want.splitlines()
        except errors.GradopsError as error:
            lines += [line.rstrip() for line in f"{type(error).__name__}: {error}".splitlines()]
    return re.sub(r"\n```pycon\n```\n", "", "\n".join(["", "```pycon", *lines, "```", ""])) if lines else ""


def marks():
    yield ">>>"
    yield from itertools.repeat("...")


def plain(text: str) -> str:
    """Return reStructuredText's code and references as Markdown's code."""
    return re.sub(r":\w+:`(.*?)`", r"`\1`", text.replace("``", "`"))


if __name__ == "__main__":
    PAGE.write_text(page())

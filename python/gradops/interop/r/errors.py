"""Errors as values: reticulate needs a millisecond to translate an exception, so failures are returned."""

from __future__ import annotations

import itertools
import re
import traceback
from collections import OrderedDict

from ...errors import GradopsError, ModelError
from . import wording


class CallbackError(Exception):
    """An R function that gradops called has failed."""

    __module__ = "gradops.interop.r"  # R knows it by this name

    gradops_callback = True


_numbered: OrderedDict[int, BaseException] = OrderedDict()
_numbers = itertools.count(1)


def numbered(error: BaseException) -> CallbackError:
    """``error`` for a library that passes on its text alone: :func:`original` finds it again."""
    number = next(_numbers)
    _numbered[number] = error
    if len(_numbered) > 16:
        _numbered.popitem(last=False)
    return CallbackError(f"{error} [gradops error {number}]")


def original(error: BaseException) -> BaseException:
    """The error whose text came back in ``error``; else itself."""
    found = re.search(r"\[gradops error (\d+)\]", str(error))
    return _numbered.get(int(found[1]), error) if found else error


class Failure:
    """An exception, returned to R."""

    __module__ = "gradops.interop.r"  # R knows it by this name

    def __init__(self, error: BaseException):
        self.error = error

    def traceback(self) -> str:
        """Where in Python it was raised, as Python shows it."""
        return "".join(traceback.format_exception(self.error)).rstrip()

    def fields(self) -> dict:
        """What R makes a condition of; ``key`` where R has one already, of an error in an R function."""
        error: BaseException | None = original(self.error)
        seen: list = []
        while error is not None and error not in seen:
            if hasattr(error, "gradops_key"):
                about = {"model": seen[0].message} if seen and isinstance(seen[0], ModelError) else {}
                return {"kind": "callback", "message": str(error), "key": error.gradops_key, **about}
            seen.append(error)
            error = error.__cause__ or error.__context__
        error = original(self.error)
        if isinstance(error, GradopsError):
            hint = error.hint_template
            return {
                "kind": error.kind,
                "message": wording.message(error, error.template),
                "argument": wording.argument(error.argument),
                "hint": None if hint is None else wording.message(error, hint),
            }
        return {"kind": "python", "message": wording.with_code(f"{type(error).__name__}: {error}")}

"""R inside Python, through rpy2.

Where nothing has started R yet it is started on a thread of its own, which serves all others; where the
program has started it (``import rpy2.robjects`` does), R's thread is the main one.
"""

from __future__ import annotations

import ctypes
import importlib
import signal
import sys
import threading
import warnings
from typing import Any

from ...errors import BackendError, RError
from . import reticulate, rpy2_values, threads

threads.running_r.append("/rpy2/")
_STACK = 1 << 26  # rpy2 turns R's own limit of the stack off

_HELPERS = """
list(
  call = function(f, arguments) {
    warned <- character()
    result <- tryCatch(
      withCallingHandlers(
        list(value = do.call("f", arguments, quote = any(vapply(arguments, is.language, NA)))),
        warning = function(w) {
          warned <<- c(warned, conditionMessage(w))
          tryInvokeRestart("muffleWarning")
        }
      ),
      error = function(e) {
        call <- conditionCall(e)
        call <- if (is.null(call)) "" else deparse(call, 60L, nlines = 1L)[1]
        list(message = conditionMessage(e), call = call, class = class(e))
      },
      interrupt = function(e) list(message = "interrupted", call = "", class = class(e))
    )
    c(result, list(warnings = warned))
  },
  formals = function(f) {
    found <- formals(args(f))
    kind <- function(default) {
      if (identical(default, quote(expr = ))) "none" else if (is.null(default)) "null" else "r"
    }
    list(names(found), vapply(found, kind, ""))
  },
  is_function = function(f) is.function(f),
  plain = function(x) if (is.data.frame(x)) data.matrix(x) else x
)
"""

_lock = threading.Lock()
_helpers: dict[str, Any] = {}


def start() -> None:
    """Start R, or find it started.

    Raises:
        BackendError: rpy2 or R is missing, does not fit the other, or R itself runs this Python.
    """
    if _helpers:
        return
    with _lock:
        if _helpers:
            return
        if reticulate.runs():
            raise BackendError(
                "R runs this Python, through reticulate, so rpy2 cannot run R.",
                hint="make the op in R, `r_function()`, and pass it to Python",
            )
        embedded = _rpy2("rpy2.rinterface_lib.embedded")
        if embedded.isinitialized():
            _set_main_thread()
            threads.call(_prepare)
        else:
            _start_thread()


def _rpy2(name: str):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise BackendError(
            "R functions need the Python package 'rpy2', which is not installed.", hint="pip install rpy2"
        ) from error
    except Exception as error:
        raise _no_r(error) from error


def _no_r(error: BaseException) -> BackendError:
    return BackendError(
        f"R functions need R, and rpy2 could not start it: {error}.",
        hint="install R and have `R` on the path (or set `R_HOME`); with an R before 4.5, "
        "pip install 'rpy2-rinterface<3.6.7'",
    )


def _set_main_thread() -> None:
    lock = _rpy2("rpy2.rinterface_lib.openrlib").rlock

    def may_serve() -> bool:
        """Not in the middle of rpy2's code, whose locks do not all let the thread that has them in again."""
        frame: Any = sys._getframe(1)
        while frame is not None and not threads.runs_r(frame):
            frame = frame.f_back
        return frame is None and not lock._is_owned()

    threads.set_thread(may_serve=may_serve, thread=threading.main_thread())


def _start_thread() -> None:
    """R's thread: it starts R and serves."""
    rinterface = _rpy2("rpy2.rinterface")
    ready = threading.Event()
    failure: list[BaseException] = []

    def work():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that this is not the main thread
                _keeping_sigint(rinterface.initr)
            threads.set_thread()
            _prepare()
        except BaseException as error:
            failure.append(error)
            return
        finally:
            ready.set()
        threads.wait_until(lambda: False, None)

    before = threading.stack_size(_STACK)
    try:
        threading.Thread(target=work, name="R", daemon=True).start()
    finally:
        threading.stack_size(before)
    ready.wait()
    if failure:
        raise _no_r(failure[0]) from failure[0]


def _keeping_sigint(function) -> None:
    """Call a function that would make SIGINT R's: R's handler jumps out of whatever the main thread does."""
    api = ctypes.pythonapi
    api.PyOS_getsig.restype = api.PyOS_setsig.restype = ctypes.c_void_p
    before = api.PyOS_getsig(signal.SIGINT)
    function()
    api.PyOS_setsig(signal.SIGINT, ctypes.c_void_p(before))


def _prepare() -> None:
    rinterface = _rpy2("rpy2.rinterface")
    found = rinterface.evalr(_HELPERS)
    _helpers.update(zip(found.names, found))


def function_of(f) -> Any:
    """An R function: rpy2's as it is, or the value of R source text."""

    def find():
        rinterface = _rpy2("rpy2.rinterface")
        found = evaluate(f) if isinstance(f, str) else f
        return found if isinstance(found, rinterface.Sexp) and _helpers["is_function"](found)[0] else None

    return threads.call(find)


def evaluate(source: str):
    """The R object that R source text stands for; on R's thread."""
    rinterface = _rpy2("rpy2.rinterface")
    parse = rinterface.baseenv["parse"]
    code = call_r(parse, (), {"text": rinterface.StrSexpVector([source]), "keep.source": False}, raw=True)
    return call_r(rinterface.baseenv["eval"], (code,), {"envir": rinterface.globalenv}, raw=True)


def formals(f) -> tuple[list[str], list[str]]:
    """The names of an R function's formals, and their defaults; see ``callbacks.signature``."""

    def find():
        names, kinds = _helpers["formals"](f)
        return (list(names), list(kinds)) if len(names) else ([], [])

    return threads.call(find)


def call_r(f, args: tuple, kwargs: dict, raw: bool = False):
    """An R function's value for Python values, on R's thread.

    Raises:
        RError: an error in R.
    """
    value, messages = threads.call(_call, f, args, kwargs, raw)
    for message in messages:
        warnings.warn(message, stacklevel=2)
    return value


def _call(f, args: tuple, kwargs: dict, raw: bool):
    rinterface = _rpy2("rpy2.rinterface")
    arguments = rinterface.ListSexpVector([rpy2_values.as_r(value) for value in (*args, *kwargs.values())])
    if kwargs:
        arguments.names = rinterface.StrSexpVector([""] * len(args) + list(kwargs))
    result = _helpers["call"](f, arguments)
    found = dict(zip(result.names, result))
    if "message" in found:
        raise RError(found["message"][0], call=found["call"][0], classes=tuple(found["class"]))
    value = found["value"]
    return (value if raw else rpy2_values.from_r(_helpers["plain"](value))), list(found["warnings"])

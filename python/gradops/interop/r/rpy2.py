"""R inside Python through rpy2: calls on R's thread, and conversion of values in both directions.

If R is not running yet, it is started on its own thread, which serves all others. If the program has started it (as
``import rpy2.robjects`` does), R's thread is the main thread.

R's vectors, matrices and arrays become NumPy views of R's memory: column-major, read-only, and keeping the R object
alive. Such a view passed back to R becomes the same object; other arrays are copied once, into R's memory.
"""

from __future__ import annotations

import ctypes
import importlib
import signal
import sys
import threading
import warnings
from typing import Any

import numpy as np

from ...errors import ArgumentTypeError, BackendError, RError, TypeOf
from . import reticulate, threads, values

_NA = -(2**31)
_MODES = {"f": "double", "i": "integer", "b": "logical"}


class _Memory:
    """The memory of an R vector, kept alive by NumPy's views of it.

    It is accessed by address: rpy2's ``memoryview()`` loses a reference to None at each call, which eventually crashes
    Python before 3.12.
    """

    def __init__(self, vector, shape: tuple, writable: bool = False):
        dtype = np.dtype(np.float64 if isinstance(vector, _rinterface().FloatSexpVector) else np.int32)
        self.vector = vector
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "data": (_address(vector), not writable),
            "typestr": dtype.str,
            "shape": shape,
            "strides": _strides(shape, dtype.itemsize),
        }

    def __del__(self, drop=threads.drop):
        drop(self.vector)


def _address(vector) -> int:
    beginning = np.frombuffer(vector.__array_interface__["data"], np.uint8)
    return beginning.__array_interface__["data"][0]


def _strides(shape: tuple, size: int) -> tuple:
    strides = []
    for extent in shape:
        strides.append(size)
        size *= extent
    return tuple(strides)


def _rinterface():
    import rpy2.rinterface

    return rpy2.rinterface


def _base_function(name: str):
    return _rinterface().baseenv[name]


# From R ---------------------------------------------------------------------------------------------------------------


def from_r(value) -> Any:
    """Convert an R object to Python.

    Vectors and arrays become NumPy views, vectors of length one without a dim numbers. A named list becomes a dict, so
    a data frame is a dict of its columns. NA in integers and logicals becomes NaN. Functions, environments and the
    like stay R objects.
    """
    r = _rinterface()
    if isinstance(value, r.NULLType):
        return None
    if isinstance(value, r.StrSexpVector):
        texts = [None if text is r.NA_Character else str(text) for text in value]
        return texts[0] if len(texts) == 1 else texts
    if isinstance(value, r.ListSexpVector):
        names = value.names
        items = [from_r(item) for item in value]
        return items if isinstance(names, r.NULLType) else dict(zip(map(str, names), items))
    if isinstance(value, r.ComplexSexpVector):
        return np.asarray(_real(_base_function("Re")(value)) + 1j * _real(_base_function("Im")(value)))[()]
    if isinstance(value, (r.FloatSexpVector, r.IntSexpVector, r.BoolSexpVector)):
        return _real(value)
    return value


def _real(vector):
    r = _rinterface()
    shape = _shape(vector)
    if 0 in shape:
        array = np.empty(shape, np.float64 if isinstance(vector, r.FloatSexpVector) else np.int32)
    else:
        array = np.asarray(_Memory(vector, shape))
    if not isinstance(vector, r.FloatSexpVector) and (array == _NA).any():
        array = np.where(array == _NA, np.nan, array)
    elif isinstance(vector, r.BoolSexpVector):
        array = array.astype(bool)
    return array if shape else array[()].item()


def _shape(vector) -> tuple:
    try:
        return tuple(vector.do_slot("dim"))
    except LookupError:
        return () if len(vector) == 1 else (len(vector),)


# To R -----------------------------------------------------------------------------------------------------------------


def as_r(value):
    """Convert a Python value to an R object.

    Numbers and text become vectors of length one. 1-dimensional arrays become vectors, with a dim if of length one to
    tell them from numbers; other arrays become arrays. Lists of numbers or of text become vectors, other lists and
    dicts lists. Data frames of pandas, polars and the like become R data frames, and None becomes ``NULL``.

    Raises:
        ArgumentTypeError: an object that has no R equivalent.
    """
    r = _rinterface()
    if isinstance(value, r.Sexp):
        return value
    if value is None:
        return r.NULL
    if isinstance(value, (bool, np.bool_)):
        return r.BoolSexpVector([bool(value)])
    if isinstance(value, (int, np.integer)):
        whole = _NA < value < 2**31
        return r.IntSexpVector([int(value)]) if whole else r.FloatSexpVector([float(value)])
    if isinstance(value, (float, np.floating)):
        return r.FloatSexpVector([float(value)])
    if isinstance(value, (complex, np.complexfloating)):
        return r.ComplexSexpVector([complex(value)])
    if isinstance(value, str):
        return r.StrSexpVector([value])
    if isinstance(value, dict):
        found = r.ListSexpVector([as_r(item) for item in value.values()])
        found.names = r.StrSexpVector(list(map(str, value)))
        return found
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(item, str) for item in value):
            return r.StrSexpVector(list(value))
        if value and all(isinstance(item, (bool, int, float, complex)) for item in value):
            return _base_function("as.vector")(_array(np.asarray(value)))
        return r.ListSexpVector([as_r(item) for item in value])
    if isinstance(value, np.ndarray):
        return _array(value)
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):
        return _frame({str(name): value[name].to_numpy() for name in value.columns}, len(value))
    raise ArgumentTypeError(
        "an R function takes tensors, numbers, text, lists, dicts, data frames and R objects; got {value}.",
        argument="f",
        value=TypeOf(value),
    )


def _frame(columns: dict[str, np.ndarray], rows: int):
    """Return an R data frame with vectors of numbers, logicals or text; missing text becomes NA."""
    r = _rinterface()
    frame = r.ListSexpVector([_column(column) for column in columns.values()])
    frame.names = r.StrSexpVector(list(columns))
    frame.do_slot_assign("row.names", r.IntSexpVector([_NA, -rows]))
    frame.rclass = r.StrSexpVector(["data.frame"])
    return frame


def _column(column: np.ndarray):
    if column.dtype.kind in "OUT":
        r = _rinterface()
        missing = [text is None or text != text or str(text) == "<NA>" for text in column]
        if all(gone or isinstance(text, str) for gone, text in zip(missing, column)):
            return r.StrSexpVector([r.NA_Character if gone else str(text) for gone, text in zip(missing, column)])
        column = column.astype(np.float64)
    return _base_function("as.vector")(_array(column))


def _array(array: np.ndarray):
    array = np.asarray(values.to_r(array))
    memory = array.base
    if isinstance(memory, _Memory) and _same(array, memory):
        return memory.vector
    r = _rinterface()
    if array.dtype.kind == "c":
        return _base_function("+")(
            _array(array.real), _base_function("*")(_array(array.imag), r.ComplexSexpVector([1j]))
        )
    mode = _MODES.get(array.dtype.kind)
    if mode is None:
        raise ArgumentTypeError(f"R has no arrays of dtype {array.dtype}.", argument="f")
    count = r.FloatSexpVector([float(array.size)])
    vector = _base_function("vector")(r.StrSexpVector([mode]), count)
    if array.size:
        np.copyto(np.asarray(_Memory(vector, array.shape, writable=True)), array, casting="unsafe")
    plain = array.ndim == 0 or array.ndim == 1 and array.size != 1
    return vector if plain else _base_function("dim<-")(vector, r.IntSexpVector(array.shape))


def _same(array: np.ndarray, memory: _Memory) -> bool:
    """Return True if an array is a view of a whole R vector with the array's shape."""
    interface = memory.__array_interface__
    return (
        array.__array_interface__["data"][0] == interface["data"][0]
        and array.shape == interface["shape"]
        and array.strides == interface["strides"]
        and array.dtype.str == interface["typestr"]
    )


# R inside Python, through rpy2 ----------------------------------------------------------------------------------------


threads.running_r.append("/rpy2/")
_R_STACK_BYTES = 1 << 26  # rpy2 turns off R's own check of the stack's limit

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
    """Start R if it is not running.

    Raises:
        BackendError: rpy2 or R is missing, their versions do not match, or R itself runs this Python.
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
        """Return False inside rpy2's code, since not all of its locks are reentrant."""
        frame: Any = sys._getframe(1)
        while frame is not None and not threads.runs_r(frame):
            frame = frame.f_back
        return frame is None and not lock._is_owned()

    threads.set_thread(may_serve=may_serve, thread=threading.main_thread())


def _start_thread() -> None:
    """Start a thread that starts R and then serves calls."""
    rinterface = _rpy2("rpy2.rinterface")
    ready = threading.Event()
    failure: list[BaseException] = []

    def work():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # rpy2 warns that this is not the main thread
                _keeping_sigint(rinterface.initr)
            threads.set_thread()
            _prepare()
        except BaseException as error:
            failure.append(error)
            return
        finally:
            ready.set()
        threads.wait_until(lambda: False, None)

    before = threading.stack_size(_R_STACK_BYTES)
    try:
        threading.Thread(target=work, name="R", daemon=True).start()
    finally:
        threading.stack_size(before)
    ready.wait()
    if failure:
        raise _no_r(failure[0]) from failure[0]


def _keeping_sigint(function) -> None:
    """Call a function and restore the SIGINT handler: R's handler would jump out of the main thread's code."""
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
    """Return an R function, given as an rpy2 object or R source text; None if it is not a function."""

    def find():
        rinterface = _rpy2("rpy2.rinterface")
        found = evaluate(f) if isinstance(f, str) else f
        return found if isinstance(found, rinterface.Sexp) and _helpers["is_function"](found)[0] else None

    return threads.call(find)


def evaluate(source: str):
    """Evaluate R source text. Call it on R's thread."""
    rinterface = _rpy2("rpy2.rinterface")
    parse = rinterface.baseenv["parse"]
    code = call_r(parse, (), {"text": rinterface.StrSexpVector([source]), "keep.source": False}, raw=True)
    return call_r(rinterface.baseenv["eval"], (code,), {"envir": rinterface.globalenv}, raw=True)


def formals(f) -> tuple[list[str], list[str]]:
    """Return the names of an R function's formals and the kinds of their defaults; see ``callbacks.signature``."""

    def find():
        names, kinds = _helpers["formals"](f)
        return (list(names), list(kinds)) if len(names) else ([], [])

    return threads.call(find)


def call_r(f, args: tuple, kwargs: dict, raw: bool = False):
    """Call an R function with Python values on R's thread, and return its value.

    Raises:
        RError: an error in R.
    """
    value, messages = threads.call(_call, f, args, kwargs, raw)
    for message in messages:
        warnings.warn(message, stacklevel=2)
    return value


def _call(f, args: tuple, kwargs: dict, raw: bool):
    rinterface = _rpy2("rpy2.rinterface")
    arguments = rinterface.ListSexpVector([as_r(value) for value in (*args, *kwargs.values())])
    if kwargs:
        arguments.names = rinterface.StrSexpVector([""] * len(args) + list(kwargs))
    result = _helpers["call"](f, arguments)
    found = dict(zip(result.names, result))
    if "message" in found:
        raise RError(found["message"][0], call=found["call"][0], classes=tuple(found["class"]))
    value = found["value"]
    return (value if raw else from_r(_helpers["plain"](value))), list(found["warnings"])

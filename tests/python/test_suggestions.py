"""Misspelled option values: the error suggests the intended word.

The words come from signatures and docstrings. The calls are the cases of the ops; other functions are called with
arguments of a few kinds that work for them.
"""

import functools
import inspect
import itertools
import re
import sys
import typing
import warnings

import numpy as np
import pytest
from test_docstrings import FUNCTIONS, SCIPY
from test_options import FIRST

import gradops
from gradops import config, extend, ops
from gradops.autodiff import profiler
from gradops.errors import GradopsError
from gradops.ops._dispatch import names, registry

FREE = {
    *"name role roles separator subscripts pattern signature value path model message call source text".split(),
    *"data answers prompts constraints argument hint classes answers params offload_src offload_dst".split(),
}
"""Arguments with free text."""
ELSEWHERE = {
    "scipy.ndimage.generic_gradient_magnitude": "its `derivative` gets the mode",
    "scipy.ndimage.generic_laplace": "its `derivative2` gets the mode",
    "autodiff.profiler.Event": "made by the profiler",
}
"""Functions that pass the word on to another library."""
GIVEN: dict = {
    "to_backend": {"x": 1.0, "backend": "numpy"},
    "autodiff.to_backend": {"x": 1.0, "backend": "numpy"},
    "config.set_check": {"mode": "sample"},
    "config.set_lost_gradients": {"action": "error"},
    "config.lost_gradients_scope": {"action": "error"},
    "config.set_floatx": {"dtype": "float64"},
    "save_and_offload_only_these_names": {"names_which_can_be_saved": ["a"], "names_which_can_be_offloaded": ["b"]},
    "config.set_backend": {"name": "numpy"},
    "scipy.sparse.linalg.eigsh": {"A": np.diag(np.arange(1.0, 9.0))},
    "scipy.sparse.linalg.svds": {"A": np.diag(np.arange(1.0, 9.0))},
    "scipy.interpolate.RBFInterpolator": {"y": np.eye(4), "d": np.arange(4.0)},
    "scipy.interpolate.RegularGridInterpolator": {"points": (np.arange(4.0),), "values": np.arange(4.0)},
    "scipy.interpolate.interpn": {"points": (np.arange(4.0),), "values": np.arange(4.0), "xi": np.array([[1.5]])},
    "scipy.ndimage.percentile_filter": {"input": np.eye(4), "percentile": 50, "size": 3},
    "scipy.ndimage.rank_filter": {"input": np.eye(4), "rank": 1, "size": 3},
    "scipy.signal.argrelextrema": {"data": np.arange(9.0) % 4, "comparator": np.greater},
    "scipy.signal.coherence": {"x": np.arange(9.0) % 4, "y": np.arange(9.0) % 3, "nperseg": 4},
    "scipy.signal.iircomb": {"w0": 0.25, "Q": 5.0},
    "scipy.signal.iirdesign": {"wp": 0.2, "ws": 0.3, "gpass": 1, "gstop": 40},
    "scipy.signal.iirfilter": {"N": 2, "Wn": (0.2, 0.4)},
    "scipy.signal.remez": {"numtaps": 9, "bands": [0, 0.1, 0.2, 0.5], "desired": [1, 0]},
    "scipy.signal.savgol_coeffs": {"window_length": 5, "polyorder": 2},
    "scipy.signal.savgol_filter": {"x": np.arange(9.0), "window_length": 5, "polyorder": 2},
    "scipy.signal.sosfiltfilt": {"sos": np.array([[1.0, 0, 0, 1, 0, 0]]), "x": np.arange(40.0)},
} | {
    f"scipy.ndimage.{name}": {"input": np.eye(4), "size": 3}
    for name in """black_tophat grey_closing grey_dilation grey_erosion grey_opening maximum_filter median_filter
    minimum_filter morphological_gradient morphological_laplace white_tophat""".split()
}
"""Arguments of functions that work with none of `KINDS`."""
SYNONYMS = {"han"}
"""Accepted aliases of words."""
V, M, S = np.linspace(0.1, 0.9, 40), np.eye(4) + 0.1, np.array([0.2, 0.5, 0.9, 1.4])
KINDS = (V, M, 3, 0.3, S, (0.0, 1.0), lambda *x: sum(x), lambda *x: -x[-1], np.ones((1, 6, 6, 1)), "abc")


def words_of(function) -> dict[str, list[str]]:
    """Return the words that each argument takes, according to signature and docstring."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind = parameter.annotation
        if isinstance(kind, str):
            kind = getattr(sys.modules[function.__module__], kind, kind)
        literals = [k for k in (kind, *typing.get_args(kind)) if typing.get_origin(k) is typing.Literal]
        words = [word for literal in literals for word in typing.get_args(literal)]
        words = words or (re.findall(r"'(\w+)'", str(kind)) if "Literal" in str(kind) else [parameter.default])
        words = [word for word in words if isinstance(word, str) and len(word) > 3]
        if not words and str(kind).startswith("str"):
            about = re.search(rf"^ *{name}: (.*)", function.__doc__ or "", re.M)
            words = re.findall(r'``"([\w-]{4,})"``', about[1]) if about else []
        if words and name not in FREE:
            found[name] = words
    return found


def others() -> dict:
    found = {path: value for path, value in {**FUNCTIONS, **SCIPY}.items() if not path.startswith("ops.")}
    return {path: value for path, value in found.items() if callable(value)}


CALLED = {f"ops.{name}": registry[name].call for name in FIRST if name in names} | others()
CHOICES = {
    f"{path}({name})": (path, name, words)
    for path, function in CALLED.items()
    if path not in ELSEWHERE
    for name, words in words_of(function).items()
}


@functools.cache
def arguments(path: str) -> dict:
    """Return arguments for which the function works, or fails only because of an invalid word."""
    function, op = CALLED[path], path.removeprefix("ops.")
    if path in GIVEN:
        return GIVEN[path]
    if path.startswith("ops."):
        return FIRST[op].examples(3)[-1]
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty and p.kind in (0, 1)]
    for given in itertools.product(KINDS, repeat=len(needed)):
        found = {p.name: x for p, x in zip(needed, given)}
        try:
            function(**found)
        except Exception:
            continue
        return found
    raise AssertionError(f"{path}: found no arguments that it accepts")


def mistyped(word: str) -> str:
    wrong = word[:2] + word[3:]
    return word[0] + word[2] + word[1] + word[3:] if wrong in SYNONYMS else wrong


@pytest.mark.parametrize("choice", CHOICES)
def test_misspelled_words_get_a_suggestion(choice):
    path, name, words = CHOICES[choice]
    with warnings.catch_warnings(), np.errstate(all="ignore"), config.backend_scope("numpy"):
        warnings.simplefilter("ignore")
        given = arguments(path)
        for word in words:
            with pytest.raises(GradopsError, match=f'did you mean "{word}"'):
                CALLED[path](**{**given, name: mistyped(word)})


NAMED = [path for path, value in SCIPY.items() if inspect.isfunction(value) and not hasattr(value, "op")]


def test_misspelled_argument_names_get_a_suggestion():
    """Covers SciPy functions; for ops Python itself suggests names from 3.13 on."""
    count, silent = 0, []
    for path in NAMED:
        function = SCIPY[path]
        parameters = inspect.signature(function).parameters.values()
        long = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and len(p.name) > 4]
        if not long or any(p.kind is p.VAR_KEYWORD for p in parameters):
            continue
        count += 1
        with pytest.raises(TypeError) as said:
            function(**{mistyped(long[0]): 1.0})
        meant = re.search('did you mean "(.*)"', str(said.value))
        if not meant or meant[1] not in long:
            silent.append(f"{path}: {said.value}")
    assert count > 100 and not silent, "\n".join(silent)


@pytest.mark.parametrize(
    "wrong, word",
    [
        (lambda: ops.zeros(2, "flaot32"), "float32"),
        (lambda: gradops.checkpoint(ops.sin, policy="prodcts"), "products"),
        (lambda: profiler.profile().rows(sort_by="self_tme"), "self_time"),
        (lambda: ops.layer_normalization(np.ones(3), epslion=1e-3), "epsilon"),
        (lambda: ops.multi_hot([1], 2, axsi=1), "axis"),
        (lambda: extend.op(elemntwise=True)(lambda x: x), "elementwise"),
    ],
)
def test_misspelled_words_in_other_positions(wrong, word):
    with pytest.raises(GradopsError, match=f'did you mean "{word}"'):
        wrong()


def test_misspelled_key_of_a_gradient_dict():
    def f(x, weight):
        return x * weight, lambda upstream: {"x": upstream, "wieght": 0 * upstream}

    with pytest.raises(GradopsError, match='did you mean "weight"'):
        gradops.grad(gradops.custom_gradient(f))(2.0, 3.0)

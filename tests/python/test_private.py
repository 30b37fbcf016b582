"""Private names of other libraries: all present in this version, one file per library, clear errors when missing."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import gradops
from gradops import backends
from gradops.backends._names import PrivateNames
from gradops.errors import BackendError

pytestmark = pytest.mark.documents

SOURCES = Path(gradops.__file__).parent
LIBRARIES = ("torch", "tensorflow", "jax")
PYTHONS_OWN = {"_thread", "_fields", "_getframe", "_current_frames", "_is_owned", "_initializing"}
"""Private names of the standard library and of NumPy without public alternative; these are not searched for."""
NUMPYS = {"_NoValue", "_linalg"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_this_version_has_all_private_names(library):
    if not backends.installed(library):
        pytest.skip(f"{library} is not installed")
    private = importlib.import_module(f"gradops.backends.{library}._private").private
    assert private.names and private.lacking == {}
    assert all(map(private.supported, private.names))
    for name in [name for names in private.names.values() for name in names]:
        assert name.startswith(library)


def test_missing_names_raise_where_they_are_needed():
    private = PrivateNames("Some library", "1.2")
    there = private.find("a feature", "json.decoder.JSONDecoder")
    absent = private.find("a feature", "json.decoder._gone")
    private.find("another", "json.dumps")
    assert there is importlib.import_module("json").JSONDecoder
    assert private.supported("another") and not private.supported("a feature")
    private.need("another")
    with pytest.raises(
        BackendError, match="a feature does not work with Some library 1.2, which lacks json.decoder._g"
    ):
        absent(1)
    with pytest.raises(BackendError, match="do something else"):
        private.need("a feature", hint="do something else")
    assert private.find("a third", "no_such_module.name", 5) == 5
    assert private.lacking == {"a feature": ["json.decoder._gone"], "a third": ["no_such_module.name"]}


def test_attributes():
    private = PrivateNames("Some library", "1.2")
    assert private.attribute("a feature", "pathlib.Path.name")(Path("a/b")) == "b"
    with pytest.raises(BackendError, match="which lacks pathlib.Path._gone"):
        private.attribute("a second", "pathlib.Path._gone")(Path("a"))
    read = private.attribute("a third", "pathlib.Path._gone", of_objects=True)
    assert private.supported("a third")
    with pytest.raises(BackendError, match="which lacks pathlib.Path._gone"):
        read(Path("a"))


def test_tensorflow_tapes_are_observed_once():
    tf = pytest.importorskip("tensorflow")
    from gradops.backends.tensorflow import _private

    for kind in (tf.GradientTape, tf.autodiff.ForwardAccumulator):
        before = kind.__enter__, kind.__exit__
        _private._observe(kind)
        assert (kind.__enter__, kind.__exit__) == before
    assert _private.opened() == []
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        assert _private.opened() == [outer, inner]
        with outer.stop_recording():
            assert [_private.is_recording(tape) for tape in _private.opened()] == [False, True]
    assert _private.opened() == []


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.endswith("__") for part in name.split("."))


def own_names(trees) -> set[str]:
    """Return the names that gradops itself defines, binds or sets."""
    found = set(PYTHONS_OWN | NUMPYS)
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Assign) and "__slots__" in map(ast.unparse, node.targets):
            found |= {c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant)}
    return found


def touched(tree: ast.AST, own: set[str]):
    """Yield the private names of other packages that a file imports or reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr", "setattr"):
            names = [x.value for x in node.args[1:2] if isinstance(x, ast.Constant)]
        else:
            continue
        for name in names:
            library = name.partition(".")[0] in (*LIBRARIES, "functorch")
            inner = name.startswith(("tensorflow.python", "jax._src")) or name == "__internal__"
            if inner or (library and is_private(name)) or ("." not in name and is_private(name) and name not in own):
                yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_other_file_uses_private_names():
    trees = {path.relative_to(SOURCES).as_posix(): ast.parse(path.read_text()) for path in SOURCES.rglob("*.py")}
    others = {file: tree for file, tree in trees.items() if not file.endswith("/_private.py")}
    own = own_names(others.values())
    found = [f"{file}:{place}" for file, tree in sorted(others.items()) for place in touched(tree, own)]
    assert found == []


def test_search_finds_private_names():
    source = """
from tensorflow.python.eager import record
from torch._C import _functorch
import jax._src.core
torch._C.something
getattr(tape, "_tape")
tf.__internal__.types
self._mine
"""
    own = own_names([ast.parse("self._mine = 1")])
    assert len(list(touched(ast.parse(source), own))) == 6

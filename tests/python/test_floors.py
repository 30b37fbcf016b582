"""Imports run down only: the floors of the core, named and drawn by tools/floors.py."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import floors
import pytest

pytestmark = pytest.mark.documents


def test_modules_import_only_from_lower_floors():
    upwards = [
        f"{name} imports {target}"
        for name, targets in floors.graph().items()
        for target in targets
        if floors.floor_of(target) > floors.floor_of(name)
        or (floors.floor_of(target) == floors.floor_of(name) and target.partition(".")[0] != name.partition(".")[0])
    ]
    assert not upwards


def test_there_are_no_circular_imports():
    assert floors.circles(floors.graph()) == []


def test_circles_and_upward_imports_are_detected(tmp_path):
    module = tmp_path / "x.py"
    module.write_text(
        "if TYPE_CHECKING:\n    from ..autodiff import engine\n"
        "def f():\n    from . import y\n    return import_module('.y', __package__)\n"
    )
    known = {"ops.x": module, "ops.y": module, "autodiff.engine": module}
    assert floors.imports("ops.x", module, known) == [
        ("autodiff.engine", 2, False),
        ("ops.y", 4, True),
        ("ops.y", 5, True),
    ]
    module.write_text(
        "import gradops.scipy\nfrom gradops import grad\n"
        "def f(name):\n    import_module(f'gradops.{name}')\n    pkgutil.resolve_name('gradops.ops.y.f')\n"
        "    return sys.modules['gradops'], sys.modules.get('gradops')\n"
        "namespace(__name__, later=('z',))\n"
    )
    assert floors.imports("ops.x", module, known) == [
        ("scipy", 1, False),
        ("", 2, False),
        ("", 4, True),
        ("ops.y", 5, True),
        ("", 6, True),
        ("ops.x.z", 7, False),
    ]
    assert floors.circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert floors.floor_of("autodiff.engine") > floors.floor_of("ops.creation") > floors.floor_of("errors")


def test_core_imports_are_at_the_top_of_files():
    inside = [
        f"{name}:{line} imports {target}"
        for name, found in floors.core_imports().items()
        for target, line, in_function in found
        if in_function and (name, target) not in floors.LATE
    ]
    assert not inside


def test_drawing_in_the_docs_is_current():
    text = floors.PAGE.read_text()
    assert floors.page_with_drawing(text) == text, "run tools/floors.py"

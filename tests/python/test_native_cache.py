"""The cache folder of compiled code: reading, permissions, and code that crashes the process."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from gradops import _cache as cache
from gradops.jit.native import instructions, machine

needs_machine = pytest.mark.skipif(machine.machine() is None, reason="llvmlite is not installed")
posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners and modes of files are POSIX's")

SCRIPT = """
import numpy as np
from gradops import ops
from gradops.jit import jit
f = jit(lambda x: ops.exp(x) + x * x - x / 3 + ops.sin(x) * ops.cos(x) + x * 5 - 2 * x)
x = np.array(0.5)
assert np.isclose(f(x), np.exp(x) + x * x - x / 3 + np.sin(x) * np.cos(x) + 3 * x)
print("native" in f.explain() and "none native" not in f.explain())
"""


def start(directory, **more):
    environment = {**os.environ, "GRADOPS_CACHE": str(directory), **more}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADOPS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def new_machine():
    machine.machine.cache_clear()
    yield machine.machine
    machine.machine.cache_clear()


@pytest.mark.long
@needs_machine
def test_concurrently_started_processes_share_a_cache(folder, new_machine):
    running = [start(folder) for _ in range(2)]
    for process in running:
        assert process.communicate()[0].strip() == "True" and process.returncode == 0
    (stored,) = folder.iterdir()
    assert stored.name.startswith("machine-") and not stored.stat().st_mode & 0o077
    for contents in (b"", stored.read_bytes()[:-100], b"x" * 5000):  # corrupted contents
        stored.write_bytes(contents)
        assert cache.read(stored.name) is None
    assert new_machine() is not None and cache.read(stored.name)


@needs_machine
def test_functions_that_few_programs_call_are_stored(folder, new_machine, monkeypatch):
    assert new_machine().address("where8") and new_machine().address("vector_whole_add")
    assert sorted(x.name.partition("-")[0] for x in folder.iterdir()) == ["machine", "vector_whole_add", "where8"]
    new_machine.cache_clear()
    monkeypatch.setattr(machine, "_object_code", None)  # nothing is compiled again
    assert new_machine().address("where8") and new_machine().address("vector_whole_add")


# The folder.


def test_folder_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("GRADOPS_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for named, found in ((None, tmp_path / ".cache"), ("relative", tmp_path / ".cache"), ("", tmp_path / ".cache")):
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        if named is not None:
            monkeypatch.setenv("XDG_CACHE_HOME", named)
        assert cache.directory() == found / "gradops"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.directory() == tmp_path / "xdg" / "gradops"
    for home in ("", "relative"):
        monkeypatch.setenv("HOME", home)
        assert cache.directory() is None
        cache.write("a", b"contents")
    monkeypatch.delenv("XDG_CACHE_HOME")
    cache.write("a", b"contents")
    with cache.attempt("a") as is_left:
        assert not is_left
    assert not list(tmp_path.iterdir()) and not pathlib.Path("/.cache/gradops").exists()
    monkeypatch.setenv("GRADOPS_CACHE", str(tmp_path))
    assert cache.directory() == tmp_path


def test_the_cache_can_be_turned_off_and_may_be_unwritable(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADOPS_CACHE", "off")
    assert cache.directory() is None
    cache.write("a", b"contents")
    assert cache.read("a") is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRADOPS_CACHE", str(tmp_path / "file"))
    cache.write("a", b"contents")
    assert cache.read("a") is None
    with cache.attempt("a") as is_left:
        assert not is_left


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_folders_writable_by_others_are_not_used(folder, mode):
    cache.write("a", b"contents")
    assert cache.read("a") == b"contents"
    os.chmod(folder, mode)
    assert cache.read("a") is None
    cache.write("b", b"contents")
    cache.remove("a")
    with cache.attempt("a"):
        assert [x.name for x in folder.iterdir()] == ["a"]
    os.chmod(folder, 0o700)
    assert cache.read("a") == b"contents"


@posix
def test_files_writable_by_others_are_not_run(folder):
    cache.write("a", b"contents")
    os.chmod(folder / "a", 0o666)
    assert cache.read("a") is None


@posix
def test_files_and_folders_owned_by_others_are_not_used(folder, monkeypatch):
    cache.write("a", b"contents")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert cache.read("a") is None
    cache.write("b", b"contents")
    assert [x.name for x in folder.iterdir()] == ["a"]


@posix
def test_links_are_not_followed(folder, tmp_path, monkeypatch):
    cache.write("a", b"contents")
    (folder / "a").rename(tmp_path / "elsewhere")
    (folder / "a").symlink_to(tmp_path / "elsewhere")
    assert cache.read("a") is None
    (tmp_path / "kept").write_text("kept")
    (folder / "b").symlink_to(tmp_path / "kept")
    (folder / "b.trying").symlink_to(tmp_path / "kept")
    with cache.attempt("b"):
        pass
    cache.write("b", b"contents")
    assert (tmp_path / "kept").read_text() == "kept" and cache.read("b") == b"contents"
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv("GRADOPS_CACHE", str(tmp_path / "link"))
    assert cache.read("b") is None
    cache.write("c", b"contents")
    assert not (folder / "c").exists()


@posix
def test_pipes_are_not_read(folder):
    cache.write("a", b"contents")
    os.mkfifo(folder / "b", 0o600)
    assert cache.read("b") is None


def test_outdated_files_are_removed(folder):
    for name in ("machine-old", "machine-new", "another-old"):
        cache.write(name, b"contents")
        if name.endswith("old"):
            os.utime(folder / name, (time.time() - cache.OUTDATED - 100,) * 2)
    cache.write("machine-newer", b"contents")
    assert {x.name for x in folder.iterdir()} == {"machine-new", "machine-newer", "another-old"}


# The key.


@needs_machine
def test_key_covers_everything_that_determines_the_code(monkeypatch):
    import llvmlite.binding as binding

    _, processor, features = machine._host(binding)

    def key(*given):
        return machine._version(binding, *(given or (processor, features)))

    first, read = key(), pathlib.Path.read_bytes
    assert key() == first
    assert (
        len({first, key("another", features), key(processor, features + ",-avx"), key(processor[:-1], features)}) == 4
    )
    for module in (machine, instructions):  # the first contains LLVM's options

        def changed(path, module=module):
            return read(path) + b" " * (str(path) == module.__file__)

        with monkeypatch.context() as patch:
            patch.setattr(pathlib.Path, "read_bytes", changed)
            assert key() != first
    with monkeypatch.context() as patch:
        patch.setattr(machine, "exceptions", lambda: {"divide": 4, "over": 8, "under": 16, "invalid": 2})
        assert key() != first
    with monkeypatch.context() as patch:
        patch.setattr(binding, "llvm_version_info", (1, 0, 0))
        assert key() != first


@needs_machine
def test_text_that_names_two_blocks_alike_is_not_compiled():
    import llvmlite.binding as binding

    blocks = "br label %a\na:\n br label %b\na:\n br label %b\nb:\n ret i32 0"
    with pytest.raises(RuntimeError, match="Terminator"):
        machine._object_code(binding, f"define i32 @f() {{\n {blocks}\n}}\n", *machine._host(binding))


# Code that crashes the process.

ENDS = """
import os, signal, sys
from gradops import _cache as cache
with cache.attempt("a") as is_left:
    print(is_left, flush=True)
    if sys.argv[1] == "ends":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif sys.argv[1] == "raises":
        raise ValueError
    elif sys.argv[1] == "waits":
        sys.stdin.readline()
"""


def attempted(how, **keywords):
    return subprocess.Popen(
        [sys.executable, "-c", ENDS, how], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **keywords
    )


@posix
@pytest.mark.long
def test_attempt_that_crashed_is_detected_by_the_next_process(folder):
    def is_left(how):
        return attempted(how).communicate()[0].strip()

    assert [is_left(how) for how in ("", "raises", "", "ends", "ends", "", "")] == [
        "False", "False", "False", "False", "True", "True", "False",
    ]  # fmt: skip
    assert not list(folder.iterdir())


@posix
@pytest.mark.long
def test_live_processes_are_not_taken_for_crashed_ones(folder):
    first = attempted("waits", stdin=subprocess.PIPE)
    assert first.stdout.readline().strip() == "False"
    second = attempted("waits", stdin=subprocess.PIPE)
    assert second.stdout.readline().strip() == "False"
    first.communicate("\n")
    assert (folder / "a.trying").exists()
    second.communicate("\n")
    assert not list(folder.iterdir())


@needs_machine
@posix
@pytest.mark.long
@pytest.mark.parametrize("stored", ["ends", "is whole"])
def test_stored_code_is_tried_in_a_child_after_a_crash(folder, monkeypatch, new_machine, stored):
    """The stored file has a valid checksum, but its code crashes every process that runs it."""
    import llvmlite.binding as binding

    assert new_machine() is not None
    (file,) = folder.iterdir()
    if stored == "ends":
        host = machine._host(binding)
        stops = "declare void @llvm.trap()\ndefine i32 @run(i64, i64, i64) {\n call void @llvm.trap()\n ret i32 0\n}\n"
        names = "parts tiles tiles_alone record record_again mark_operands mark_results".split()
        stops += "".join(f'define i32 @"{name}"() {{\n ret i32 0\n}}\n' for name in names)
        cache.write(file.name, machine._object_code(binding, stops, *host))
        ended = start(folder)
        ended.communicate()
        assert ended.returncode in (-signal.SIGILL, -signal.SIGTRAP, -signal.SIGABRT)
        assert not machine._can_child_run(file.name)
    else:
        assert machine._can_child_run(file.name)
        (folder / f"{file.name}.trying").write_text("1")
    before, children = cache.read(file.name), []
    is_run = machine._can_child_run
    monkeypatch.setattr(machine, "_can_child_run", lambda name: children.append(is_run(name)) or children[-1])
    machine.machine.cache_clear()
    assert machine.machine() is not None and children == [stored != "ends"]
    assert (cache.read(file.name) == before) == (stored != "ends")
    assert list(folder.iterdir()) == [file]
    machine.machine.cache_clear()
    assert machine.machine() is not None and len(children) == 1  # once


@needs_machine
@pytest.mark.short_cases(1)
@pytest.mark.parametrize("code", ["@another() {\n ret i32 0", "@run(i64, i64, i64) {\n ret i32 0"])
def test_invalid_stored_code_is_recompiled(folder, new_machine, code):
    import llvmlite.binding as binding

    assert new_machine() is not None
    (file,) = folder.iterdir()
    names = "parts tiles tiles_alone record record_again mark_operands mark_results".split()
    texts = f"define i32 {code}\n}}\n", *(f'define i32 @"{name}"() {{\n ret i32 0\n}}\n' for name in names)
    wrong = machine._object_code(binding, "".join(texts), *machine._host(binding))
    cache.write(file.name, wrong)
    machine.machine.cache_clear()
    assert machine.machine() is not None
    assert cache.read(file.name) not in (None, wrong)

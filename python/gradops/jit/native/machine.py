"""Compile and load the native machine, and call functions in it.

:func:`machine` returns the :class:`Machine`, or None without native code. The package's :func:`lowered` asks for it,
and :class:`.run.Run`, :class:`.tile_run.Tiles`, :mod:`.records` and the sparse solvers call its functions.

LLVM comes from the optional package ``llvmlite``, which Numba uses and which is imported when a program is first
compiled. Numba could do the same work, but takes half a second to import, longer than most programs take to compile.
The machine is C, and the package contains its LLVM bitcode (:data:`RUNTIME`). Compiling it takes 0.4 s for the
interpreter and 10 to 60 ms for each further function, when a program first needs it. Later processes load the object
code from disk, in a millisecond each. R's package contains the same C, compiled with R: where llvmlite is missing, the
machine takes its functions from there, and hot loops remain interpreted.

Stored code may crash the process that loads it, if a processor lacks a feature that it claims to have. So the next
process tries the code in a child process first (:func:`gradops._cache.attempt`), and compiles it again if the child
crashes.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import _cache
from . import instructions, llvm
from .instructions import (
    FUNCTION_NUMBERS,
    FUNCTIONS,
    FUNCTIONS_USED,
    NUMBERS,
    ROUTINE_NUMBERS,
    ROUTINES,
    SIDE_BY_SIDE,
    VECTOR,
    VECTOR_FUNCTIONS,
)

_X86 = {"divide": 4, "over": 8, "under": 16, "invalid": 1}
_ARM = {"divide": 2, "over": 4, "under": 8, "invalid": 1}
_WINDOWS = {"divide": 8, "over": 4, "under": 2, "invalid": 16}

_NAMES = list(NUMBERS)

RUNTIME = pathlib.Path(__file__).parent / "runtime"
"""The folder of the C and its LLVM bitcode, which ``tools/runtime`` writes."""


@functools.cache
def exceptions() -> dict[str, int]:
    """Return the C library's flags of the exceptions that NumPy warns about, by their names in ``numpy.errstate``."""
    if sys.platform == "win32":
        return _WINDOWS
    return {"x86_64": _X86, "AMD64": _X86, "aarch64": _ARM, "arm64": _ARM}.get(platform.machine(), {})


class NotCompiled(Exception):
    """LLVM cannot compile a function."""


class Machine:
    """The compiled machine.

    Attributes:
        compiles: True if LLVM can compile further code.
        functions: the address of the table of C, SciPy, BLAS and LAPACK functions that the code calls.
        address: ``address(name)`` returns the address of a compiled function.
        function: ``function(name, operands, result=c_int)`` returns a compiled function as a Python callable;
            ``operands`` is the number of its arguments, which are addresses or integers.
        run: ``run(code, memory, functions)`` takes addresses, executes bytecode, and returns the floating-point
            exceptions raised.
        compiled: ``compiled(text, name, level=3)`` compiles further LLVM IR and returns the owner of the code and the
            address of the function ``name``. ``level`` is LLVM's optimization level; 1 is for IR that is already
            vectorized. Equal IR, for example of a function that is compiled again for other data, shares code. Like
            ``address``, it raises :class:`NotCompiled` if LLVM fails.

    Args:
        engine: the owner of the compiled code, of LLVM or a :class:`Library`.

    Raises:
        OSError: the compiled code gives wrong results.
    """

    def __init__(self, engine):
        self._names: set[str] = set()
        self._functions = np.zeros(1 + max(FUNCTION_NUMBERS.values()), np.uint64)
        self._functions[:3] = _c_address("feclearexcept"), _c_address("fetestexcept"), sum(exceptions().values())
        for name in FUNCTIONS_USED:
            self.needs(name)
        self.functions = self._functions.ctypes.data
        self._engines = [engine]
        self.compiles = not isinstance(engine, Library)
        self.address = functools.cache(self._address)
        self.function = functools.cache(self._function)
        self.compiled = functools.lru_cache(256)(self._compiled)
        # ctypes releases the GIL during a call, so the machine has no state of its own: code, memory and the table of
        # functions are passed as addresses, and entries of the table are only added.
        self.run = self.function("run", 3)
        _check(self)

    def _address(self, name: str) -> int:
        found = self._engines[0].get_function_address(name)
        if not found:
            with _compiling(name):
                engine, found = _further(name)
            self._engines.append(engine)
        return found

    def _function(self, name: str, operands: int, result: Any = ctypes.c_int) -> Callable:
        return ctypes.CFUNCTYPE(result, *[ctypes.c_size_t] * operands)(self.address(name))

    def _compiled(self, text: str, name: str, level: int = 3) -> tuple[Any, int]:
        with _compiling(name):
            binding, target, processor, features, _ = _known_host()
            made = _object_code(binding, text, target, processor, features, level)
            return _load(binding, target, processor, features, made, name)

    def needs(self, name: str) -> int:
        """Enter a function's address in the table; return the function's number."""
        number = FUNCTION_NUMBERS[name]
        if name not in self._names:
            function = FUNCTIONS[name]
            if function.of_scipy:
                self._functions[number] = _scipy_address(function.symbol, function.operands)
            else:
                self._functions[number] = _c_address(function.symbol)
            self._names.add(name)
        return number

    def vector(self, number: int) -> int:
        """Enter a vector instruction's function in the table, given the opcode; return the instruction's number."""
        if not self._functions[VECTOR_FUNCTIONS + number] and number != NUMBERS["gather"]:
            self._functions[VECTOR_FUNCTIONS + number] = self.address(f"vector_{_NAMES[number]}")
        return number | VECTOR

    def has(self, *routines: str) -> bool:
        """Enter functions of BLAS and LAPACK in the table; return True if all are available."""
        for name in routines:
            if name not in self._names:
                self._functions[ROUTINE_NUMBERS[name]] = _routine_address(name)
                self._names.add(name)
        return all(self._functions[ROUTINE_NUMBERS[name]] for name in routines)


class Library:
    """The C of ``runtime/`` as R's compiler made it, in the shared library of the R package."""

    def __init__(self, file: str):
        self._library = ctypes.CDLL(file)

    def get_function_address(self, name: str) -> int:
        return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0


@contextlib.contextmanager
def _compiling(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise NotCompiled(f"LLVM cannot compile {name}: {type(error).__name__}: {error}") from error


@functools.cache
def machine() -> Machine | None:
    """Return the machine; None if it is turned off, or neither llvmlite nor R's library is usable.

    R names its library in the environment variable ``GRADOPS_RUNTIME``.

    Warns:
        RuntimeWarning: llvmlite is installed, but broken or too old.
    """
    if _is_off():
        return None
    broken: Exception | None = None
    try:
        import llvmlite.binding as binding

        return _load_or_compile(binding)
    except ModuleNotFoundError:
        pass
    except Exception as error:  # for example, llvmlite's shared library does not load
        broken = error
    file, found = os.environ.get("GRADOPS_RUNTIME"), None
    if file and exceptions():
        with contextlib.suppress(OSError, AttributeError):  # in a child process of R, the package may have changed
            found = Machine(Library(file))
    if broken is not None:
        missing = "LLVM" if found else "native code"
        cause = f"{type(broken).__name__}: {broken}"
        warn(f"compiled functions run without {missing}, as llvmlite cannot be used: {cause}")
    return found


def _is_off() -> bool:
    return os.environ.get("GRADOPS_NATIVE", "").lower() in ("off", "0", "false")


@functools.cache
def has_fused() -> bool:
    """Return True if code is compiled for a processor with fused multiply-add instructions."""
    if platform.machine() in ("aarch64", "arm64"):
        return True
    try:
        return bool(importlib.import_module("llvmlite.binding").get_host_cpu_features().get("fma"))
    except Exception:  # R compiles for any processor
        return False


def processor() -> str:
    """Return the processor's name, as LLVM knows it; "" without llvmlite."""
    try:
        return importlib.import_module("llvmlite.binding").get_host_cpu_name()
    except Exception:
        return ""


def why_not() -> str:
    """Return the reason why there is no machine."""
    if _is_off():
        return "GRADOPS_NATIVE is off"
    try:
        import llvmlite.binding  # noqa: F401
    except ModuleNotFoundError:
        return "llvmlite is not installed: pip install llvmlite"
    except Exception as error:
        return f"llvmlite does not load: {error}"
    return "llvmlite could not compile the machine"


def warn(message: str) -> None:
    """Warn that code runs without LLVM."""
    warnings.warn(message, RuntimeWarning, stacklevel=3)


# Compilation.


def _load_or_compile(binding) -> Machine:
    """Return the machine, loaded from disk or compiled."""
    if not exceptions():
        raise OSError(f"the processor {platform.machine()} is unknown")
    target, processor, features = _host(binding)
    name = f"machine-{_version(binding, processor, features)}.o"
    with _cache.attempt(name) as is_suspect:
        stored = _cache.read(name)
        if stored is not None and (not is_suspect or _can_child_run(name)):
            with contextlib.suppress(Exception):  # LLVM may reject the file, or the machine fail its check
                return Machine(_load(binding, target, processor, features, stored)[0])
            _cache.remove(name)
        shown = ("run", "parts", *(f"vector_{name}" for name in SIDE_BY_SIDE))
        compiled = _object_code(binding, "", target, processor, features, shown=shown)
        found = Machine(_load(binding, target, processor, features, compiled)[0])
        _cache.write(name, compiled)
    return found


def _further(function: str) -> tuple[Any, int]:
    """Return a function that few programs call, loaded from disk or compiled."""
    binding, target, processor, features, version = _known_host()
    name = f"{function}-{version}.o"
    stored = _cache.read(name)
    if stored is not None:
        with contextlib.suppress(Exception):  # LLVM may reject the file
            return _load(binding, target, processor, features, stored, function)
    compiled = _object_code(binding, "", target, processor, features, shown=(function,))
    _cache.write(name, compiled)
    return _load(binding, target, processor, features, compiled, function)


@functools.cache
def _known_host() -> tuple[Any, Any, str, str, str]:
    """Return llvmlite, what :func:`_host` returns, and the cache key of code for this computer."""
    binding = importlib.import_module("llvmlite.binding")
    target, processor, features = _host(binding)
    return binding, target, processor, features, _version(binding, processor, features)


def _host(binding) -> tuple[Any, str, str]:
    """Return LLVM's target for this computer, the processor's name, and its features."""
    for initialize in (binding.initialize_native_target, binding.initialize_native_asmprinter):
        initialize()
    target = binding.Target.from_default_triple()
    return target, binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def _can_child_run(name: str) -> bool:
    """Return True if a child process can load a stored machine and pass the check."""
    code = f"from gradops.jit.native import machine; machine.run_stored({name!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def run_stored(name: str) -> None:
    """Load a stored machine and check it; child processes call this to find out whether it crashes.

    Raises:
        Exception: the machine does not load, or gives wrong results.
    """
    binding = importlib.import_module("llvmlite.binding")
    target, processor, features = _host(binding)
    Machine(_load(binding, target, processor, features, _cache.read(name) or b"")[0])


def _object_code(
    binding, text: str, target, processor: str, features: str, level: int = 3, shown: Sequence[str] = ()
) -> bytes:
    """Compile LLVM IR, and the functions of ``runtime/`` that it uses, to object code.

    Args:
        shown: functions of ``runtime/`` that are called by address.
    """
    builder = target.create_target_machine(cpu=processor, features=features, opt=3, jit=True)
    module = binding.parse_assembly("\n".join([*_declarations(binding, text, shown), text]))
    defined = _defined(binding)
    while missing := {x.name for x in module.functions if x.is_declaration and x.name in defined}:
        module.link_in(defined[missing.pop()], preserve=True)
    # LLVM may change the parameters of an internal function, and finds internal functions by name too.
    for function in module.functions:
        if function.name in shown:
            function.linkage = "external"
        elif function.name in defined:
            function.linkage, function.name = "internal", f"internal.{function.name}"
    module.verify()  # otherwise LLVM would silently join two blocks with the same label
    module.triple = target.triple
    module.data_layout = str(builder.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.loop_unrolling = level == 3
    passes = binding.create_pass_builder(builder, options)
    passes.getModulePassManager().run(module, passes)
    return builder.emit_object(module)


@functools.cache
def _defined(binding) -> dict[str, Any]:
    """Return for each function of ``runtime/`` the module that defines it. LLVM links only what a module uses."""
    found = {}
    for file in sorted(RUNTIME.glob("*.bc")):
        part = binding.parse_bitcode(file.read_bytes())
        for function in part.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"
                found[function.name] = part
    return found


def _declarations(binding, text: str, shown: Sequence[str]) -> list[str]:
    """Return the declarations of the functions ``shown`` and of the functions and intrinsics that IR calls."""
    called = {*shown, *re.findall(r"@([\w.]+)\(", text)}
    return [line for name in sorted(called) if (line := _declaration(binding, name))]


def _declaration(binding, name: str) -> str | None:
    if f"@{name}(" in llvm.QUIET:
        return llvm.QUIET
    number, defined = name.replace(f".v{llvm.LANES}f64", ".f64"), _defined(binding)
    try:  # the functions that operations call, and intrinsics, are declared by their file
        function = defined.get(name, defined["meaning_add"]).get_function(number)
    except NameError:
        return None
    line = f"declare {function.global_value_type}".replace(" (", f" @{number}(", 1)
    return line if number == name else llvm.wide(line)


@functools.cache
def meaning(name: str) -> str:
    """Return IR that computes an operation's result ``{r}`` from its operands ``{x}``, ``{y}`` and ``{z}``.

    ``{t}`` prefixes temporaries. The IR is the body of a C function (``runtime/meanings.c``).
    """
    defined = _defined(importlib.import_module("llvmlite.binding"))
    (block,) = defined[f"meaning_{name}"].get_function(f"meaning_{name}").blocks
    *lines, last = map(str, block.instructions)
    result = last.split()[-1]
    names = {"%0": "{x}", "%1": "{y}", "%2": "{z}", "%3": "%functions"}
    if result in names:  # LLVM has no instruction that only gives a value another name
        lines.append(f"  %r = bitcast double {result} to double")
        result = "%r"
    names[result] = "{r}"
    text = re.sub(r"%([\w.]+)", lambda found: names.get(found[0], "{t}" + found[1]), "\n".join(map(str.strip, lines)))
    return re.sub(r" #\d+$", "", text, flags=re.MULTILINE)


def _load(binding, target, processor: str, features: str, compiled: bytes, name: str = "run") -> tuple[Any, int]:
    """Load object code; return its owner and the address of a function in it."""
    builder = target.create_target_machine(cpu=processor, features=features, opt=3, jit=True)
    empty = binding.parse_assembly("")
    engine = binding.create_mcjit_compiler(empty, builder)
    # The engine owns the code: its addresses are valid only as long as the engine is referenced.
    engine.add_object_file(binding.ObjectFileRef.from_data(compiled))
    engine.finalize_object()
    address = engine.get_function_address(name)
    if not address:
        raise OSError("LLVM does not load what it compiled")
    return engine, address


def _version(binding, processor: str, features: str) -> str:
    """Return the cache key of a machine: a hash of its source, LLVM's version and options, and the processor."""
    import llvmlite

    known = hashlib.sha256()
    # Stored code is executed unseen, so its name must cover everything that it was made of. Without the processor's
    # features, two computers that share a home directory could load instructions that one of them lacks. The files of
    # this folder contain the IR and LLVM's options.
    for file in (*sorted(pathlib.Path(__file__).parent.glob("*.py")), *sorted(RUNTIME.glob("*.bc"))):
        known.update(file.read_bytes())
    of_llvm = llvmlite.__version__, *map(str, binding.llvm_version_info)
    for text in (*of_llvm, sys.platform, platform.machine(), processor, features, repr(exceptions())):
        known.update(text.encode() + b"\0")
    return known.hexdigest()[:32]


def _check(machine: Machine) -> None:
    """Check that the machine computes 2 + 3 and reports a division by zero.

    Raises:
        OSError: the result is wrong.
    """
    add, divide = instructions.NUMBERS["add"], instructions.NUMBERS["divide"]
    words = np.array([add, 3, 0, 1, 0, divide, 4, 0, 2, 0, instructions.END], np.int32)
    memory = np.array([2.0, 3.0, 0.0, 0.0, 0.0])
    raised = machine.run(words.ctypes.data, memory.ctypes.data, machine.functions)
    if memory[3] != 5.0 or raised != exceptions()["divide"]:
        raise OSError("the compiled machine gives wrong numbers")


# Addresses.


@functools.cache
def _c_library() -> Any:
    return ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)


def _c_address(name: str) -> int:
    return ctypes.cast(getattr(_c_library(), name), ctypes.c_void_p).value or 0


_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_capsule_pointer: Callable = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]  # type: ignore


@functools.cache
def _scipy_address(name: str, operands: int) -> int:
    """Return the address of the function that SciPy's ufunc of this name calls on doubles.

    Raises:
        OSError: SciPy has no function of this name and signature.
    """
    # The capsule's name is the C signature that Cython recorded. Calling a function with another signature would not
    # fail but read uninitialized registers, so a signature that SciPy has changed must be an error here.
    signature = f"double ({'double, ' * operands}int __pyx_skip_dispatch)".encode()
    functions = importlib.import_module("scipy.special.cython_special")
    for key, capsule in functions.__pyx_capi__.items():
        fused = key.startswith("__pyx_fuse_") and key[len("__pyx_fuse_0") :] == name
        if (key == name or fused) and _capsule_name(capsule) == signature:
            return _capsule_pointer(capsule, signature)
    raise OSError(f"scipy.special.cython_special has no {name} of doubles")


def _routine_address(name: str) -> int:
    """Return the address of SciPy's BLAS or LAPACK function; 0 if it has another signature, such as 64-bit sizes."""
    library = "blas" if name == "dgemm" else "lapack"
    try:
        capsule = importlib.import_module(f"scipy.linalg.cython_{library}").__pyx_capi__[name]
    except (ImportError, KeyError):
        return 0
    signature = _capsule_name(capsule)
    plain = re.sub(r"\w+_d\b", "d", signature.decode())
    return _capsule_pointer(capsule, signature) if plain == f"void ({ROUTINES[name]})" else 0

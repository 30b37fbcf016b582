"""``jit``: a function traced once for each signature, then run without calling it again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _tree, backends, config
from ..autodiff.variable import Variable
from ..errors import ArgumentTypeError, JitError
from .captured import Captured, lost_gradient
from .program import Place, Program

__all__ = ["JitError", "jit"]


def jit(f: Callable, static_argnums: int | tuple[int, ...] = ()) -> Callable:
    """``f``, traced once for each signature of shapes, dtypes, numbers and static arguments, then replayed.

    Args:
        f: a function of tensors, numbers and nested structures of them, made of gradops ops (of the
            library's own too on JAX, TensorFlow and PyTorch). Python numbers take the dtype of what they meet, as
            without ``jit``, and ``f`` is traced anew for each value: pass those that change often as tensors.
        static_argnums: positions of arguments that are no tensors, by whose value it is traced anew.

    Returns:
        A function of the same arguments. JAX: ``jax.jit``. TensorFlow: ``tf.function``. PyTorch:
        ``torch.compile`` where a compiler is at hand, else a traced graph (``make_fx``). NumPy: a recorded program of
        NumPy calls, without the dispatch, the tape or ``f``; repeated and unneeded work is left out, and
        memory is used again. Its results are the caller's: arguments, what ``f`` closes over and views come as
        copies. ``jit(value_and_grad(f))`` holds the forward and the backward pass.

    Raises:
        JitError: (a RuntimeError) the function branches on values, converts them to Python numbers or
            NumPy, or draws from a random generator of NumPy's or Python's that was there before, while it is
            traced; or its result carries a gradient to a Variable that is no argument, which would be lost.
        ArgumentTypeError: an argument that is no tensor and not static; a static one that cannot be compared.

    What ``f`` reaches is compared at each call with what it was when traced, and ``f`` is traced again where it is
    another. It reaches what its code and that of your functions and methods it calls names: closures, global variables,
    defaults, attributes of your objects, classes and modules, the arguments of ``functools.partial``; from there the
    items of lists, tuples, sets and dicts, the ``data`` of a Variable, and the mode, parameters, buffers, parts and
    forward hooks of torch modules. All are compared by identity, NumPy's arrays by contents, torch tensors by version
    and address. This costs a pass over each captured array, but none over those that cannot be written
    (``x.flags.writeable = False``). What changes at each step is better passed as an argument.

    Not compared: what ``f`` itself binds while traced (names, attributes, items), attributes whose name is computed,
    other objects of libraries (a deque), methods of other installed packages, files, and writes that torch does not
    count (``w.data.mul_(2)``). A random generator that ``f`` makes itself without a seed gives the trace's numbers.

    Gradient:
        The result is differentiable: ``grad(jit(f))`` differentiates ``f``, and variables and tracers go to
        ``f`` itself.
    """
    if not callable(f):
        raise ArgumentTypeError(f"`f` must be a function; got {type(f).__name__}.", argument="f")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    programs: dict[Any, Callable] = {}
    captured: list[Captured] = []

    def traced(*args, **kwargs):
        """``f``, which is called to be traced only."""
        watched = Captured(f)
        before = watched.random_state()
        result = f(*args, **kwargs)
        if watched.random_state() != before:
            raise JitError(
                "a compiled function drew random numbers while it was traced; they would be the same at each call.",
                hint="draw them outside and pass them as an argument",
            )
        if lost_gradient(result):
            raise JitError(
                "the result of a compiled function depends on a variable that requires a gradient and is no argument; "
                "the gradient would be lost.",
                hint="pass the variable as an argument, or use `variable.detach()`",
            )
        watched.forget_own_changes()
        captured[:] = [watched]
        return result

    @functools.wraps(f, updated=())
    def compiled(*args, **kwargs):
        if captured and captured[0].changed():
            programs.clear()
        if not kwargs and not static and all(type(a) is np.ndarray for a in args):
            program = programs.get((config.floatx(), *[(a.shape, a.dtype) for a in args]))
            if program is not None:
                return program(args)
        chosen = tuple(args[i] for i in static if i < len(args))
        settings = tuple(_compared(value, i) for i, value in zip(static, chosen))
        rest = [a for i, a in enumerate(args) if i not in static]
        leaves, form = _tree.flatten((rest, kwargs))
        backend = backends.common([type(x.data if isinstance(x, Variable) else x) for x in leaves], "jit")
        if backend is None:
            backend = config.default_backend()
        if backend.name == "traced" or any(isinstance(x, Variable) for x in leaves):
            return f(*args, **kwargs)
        numbers = [type(x) in _NUMBERS for x in leaves]  # stay Python's, which take the dtype of what they meet
        settings += tuple(_compared(x, i) if number else None for i, (x, number) in enumerate(zip(leaves, numbers)))
        tensors = [_as_tensor(x, backend) for x, number in zip(leaves, numbers) if not number]

        def whole(*values):
            given = iter(values)
            inner, keywords = _tree.unflatten(form, [x if n else next(given) for x, n in zip(leaves, numbers)])
            queue = iter(inner)
            picked = iter(chosen)
            return traced(*[next(picked) if i in static else next(queue) for i in range(len(args))], **keywords)

        if backend.name != "numpy":
            key: tuple = (backend.name, form, settings, config.floatx())
            if key not in programs:
                _forget(programs)
                programs[key] = backend.module.derivatives.compile(whole)
            return programs[key](*tensors)
        key = (form, settings, config.floatx(), *[(x.shape, x.dtype) for x in tensors])
        program = programs.get(key)
        if program is None:
            _forget(programs)
            program = programs[key] = _trace(whole, tensors)
            if not kwargs and not static and all(type(a) is np.ndarray for a in args):
                programs[(config.floatx(), *[(a.shape, a.dtype) for a in args])] = program
        return program(tensors)

    compiled.programs = programs  # type: ignore[attr-defined]
    return compiled


_NUMBERS = (bool, int, float, complex)


def _forget(programs: dict, most: int = 256) -> None:
    """Leave out the oldest program where there are too many, as with a number that is another at each call."""
    if len(programs) >= most:
        del programs[next(iter(programs))]


def _as_tensor(value, backend):
    if backends.of(value) is backend:
        return value
    try:
        return backend.convert(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"an argument of a compiled function must be a tensor, a number or a structure of them; "
            f"got {type(value).__name__}.",
            hint="name its position in `static_argnums`",
        ) from error


def _compared(value, position: int):
    """A static argument as what tells it from others."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return ("array", value.shape, value.dtype, value.tobytes())
    if isinstance(value, (list, tuple)):
        return (type(value), *[_compared(item, position) for item in value])
    if isinstance(value, dict):
        return ("dict", *[(key, _compared(item, position)) for key, item in value.items()])
    try:
        hash(value)
    except TypeError as error:
        raise ArgumentTypeError(
            f"the static argument {position} must be hashable, or an array, list or dict of what is; "
            f"got {type(value).__name__}.",
            argument="static_argnums",
        ) from error
    if isinstance(value, (float, complex)):
        return (type(value), repr(value))  # 0.0 is equal to -0.0
    return (type(value), value)


def _trace(f: Callable, tensors: list) -> Callable:
    """The program of one call of ``f``."""
    from . import traced  # with it NumPy's kernels, which the first op loads

    traced.register()
    program = Program()
    try:
        result = f(*[program.input(np.asarray(x)) for x in tensors])
    except (TypeError, ValueError) as error:
        if isinstance(error.__cause__, JitError):  # NumPy's words for it: "setting an array element with a sequence"
            raise error.__cause__ from None
        raise
    leaves, form = _tree.flatten(result)
    outputs = [_output(x, program) for x in leaves]
    function = program.function(outputs)

    def run(values):
        return _tree.unflatten(form, function(*values))

    run.source = function.source  # type: ignore[attr-defined]
    run.steps = function.steps  # type: ignore[attr-defined]
    program._values.clear()
    program._known.clear()
    program._sharing.clear()
    return run


def _output(x, program: Program):
    from .traced import Traced

    if isinstance(x, Variable):
        x = x.data
    if isinstance(x, Traced):
        if x.program is not program:
            raise JitError("a compiled function returned an array of another function being traced.")
        if x.stale:
            x.refuse_stale()
        return Place(x.place)
    return x

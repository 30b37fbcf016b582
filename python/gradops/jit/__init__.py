"""``jit``: trace a function once for each signature, then run the compiled program instead.

On NumPy a call goes through these modules. ``compiled`` looks the call's signature up among the programs it has, after
``dependencies`` has checked that nothing the function reads from outside has changed. For a new signature it calls the
function on the traced arrays of ``array``. Their operations come to ``backend``, with NumPy's dtypes for operators
(``promotion``). It records them in a ``program``, which is a ``table`` of rows; ``guards`` records the values that the
function branches on. Loops and branches (``control``, ``loops``) are one row each; ``subprograms`` traces the functions
they call. The passes ``liveness`` and ``kept`` follow, and ``emission`` makes a Python function of the rows, with
``native`` code for most of them. ``verification`` compares some of its calls with the ``reference`` executor.
Thousands of operations on single numbers are recorded and differentiated together by ``scalars``.

The other libraries' tensors go to ``jax.jit``, ``tf.function`` and ``make_fx``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from .._functions import hint_arguments
from ..annotations import P, R
from ..errors import ArgumentError, ArgumentTypeError, Given, JitError, TypeOf
from .compiled import Compiled

__all__ = ["JitError", "jit"]


@hint_arguments
def jit(
    f: Callable[P, R],
    static_argnums: int | tuple[int, ...] = (),
    native: bool = True,
    static_argnames: str | tuple[str, ...] = (),
) -> Compiled[P, R]:
    """Compile ``f``: trace it once for each signature of shapes, dtypes, numbers and static arguments, then replay it.

    Args:
        f: a function of tensors, numbers and nested structures of them, made of gradops ops (on JAX, TensorFlow and
            PyTorch also of the library's own). Python numbers take the tensors' dtype, as without ``jit``, and ``f`` is
            traced again for each value: pass numbers that change often as tensors.
        static_argnums: positions of arguments that are not tensors; ``f`` is traced again for each of their values.
            Negative positions count from the last argument of a call.
        native: on NumPy, False for a program of NumPy calls without native code. ``GRADOPS_NATIVE=off`` in the
            environment does the same for all programs.
        static_argnames: names of static arguments. An argument named by position or by name is static however a call
            passes it.

    Returns:
        A function of the same arguments. On JAX it is ``jax.jit``, on TensorFlow ``tf.function``, and on PyTorch a
        traced graph (``make_fx``). On NumPy it is a recorded program of NumPy calls, without the dispatch, the tape or
        ``f``; repeated and unused work is removed, and memory is used again. If llvmlite is installed
        (``gradops[native]``), operations on numbers and small arrays run as native code with the same bits (float32
        sums are computed in double precision and rounded once); the function's ``explain()`` says which do not, and
        why. LLVM compiles one loop for all programs. It is stored in the user's cache directory (from R:
        ``tools::R_user_dir("gradops", "cache")``) or in the directory ``GRADOPS_CACHE`` (``off``: it is not stored), if
        nobody else can write there. Results belong to the caller: arguments, values that ``f`` closes over, and views
        are copied. ``jit(value_and_grad(f))`` compiles the forward and the backward pass together. ``ops.scan()``,
        ``fori_loop()``, ``cond()``, ``switch()`` and ``while_loop()`` compile as one step, whatever their length; the
        functions given to them are called two or three times, to be traced.

    ``f`` may branch on values (``if x > 0``, ``while``, ``assert``), make integers of them (``int()``, ``range(n)``)
    and select elements by masks (``x[x > 0]``, ``nonzero``); on NumPy it may also call ``math.floor()`` and
    ``np.allclose()``. A program holds for arguments with which ``f`` takes the same branches. It checks this at each
    call before it returns results, and ``f`` is traced again for other branches. Up to 32 specialisations of a
    signature are compiled, as long as the existing ones are used again; for other branches ``f`` runs uncompiled, with
    one RuntimeWarning. (Guards, as in trace compilers: https://doi.org/10.1145/1565824.1565827.) The functions that
    ``ops.scan()`` and its like call may not branch on values. On JAX and TensorFlow, ``f`` then runs on variables once
    before each trace, and must be made of gradops ops; ``ops.cond()``, ``switch()`` and ``while_loop()`` are the
    library's own there, in one program. On PyTorch they are branches like ``if`` (``torch.cond`` has no second
    derivative); under ``torch.compile`` they are ``torch.cond`` and ``torch.while_loop``.

    On PyTorch each step of a loop is traced, about a thousand operations per second. A function of more than 10,000
    operations (``MOST_OPERATIONS`` in ``gradops.backends.torch.derivatives``), such as the Hessian of a long ``scan``,
    runs uncompiled, with one RuntimeWarning.

    Raises:
        JitError: (a RuntimeError) while it is traced, the function converts values to Python numbers (other than by
            ``int()`` and ``item()``) or to arrays, passes values that it branches on to a library's own function, or
            draws from an existing random generator of NumPy, Python or another library; it changes what it reads from
            outside; its result carries a gradient to a Variable that is not an argument, which would be lost; or a
            function that a loop calls does something else the second time.
        ArgumentTypeError: an argument is neither a tensor nor static; a static argument cannot be compared; or
            ``static_argnums`` are not integers, or ``static_argnames`` not names.
        ArgumentError: ``f`` has no argument of a name in ``static_argnames``.

    At each call, everything ``f`` reads from outside is compared with its state in the trace, and ``f`` is traced again
    if something has changed. This covers what is named in the code of ``f`` and of the functions and methods of yours
    that it calls: closures, global variables, defaults, attributes of your objects, classes and modules, also of
    modules imported inside, the arguments of ``functools.partial``, a ``ContextVar``, what functions of
    ``functools.lru_cache`` read and have cached, and what static arguments hold. From there it covers the items of
    lists, tuples, sets, dicts and deques, the ``data`` of a Variable, and the mode, parameters, buffers, submodules and
    forward hooks of torch modules. If the code reads attributes by computed names (``getattr(x, name)``, ``vars(x)``),
    all attributes of the objects found are compared; if it names ``os.environ``, ``np.geterr`` or
    ``np.get_printoptions``, all of their values. Objects are compared by identity; NumPy arrays, data frames and the
    like (which have ``__array__``), SciPy's sparse arrays and Python's own (``array``) by contents; torch tensors by
    version and address; functions by code and defaults. This costs a pass over each captured array, except arrays that
    cannot be written (``x.flags.writeable = False``) and are not views of one that can. Values that change at each
    step are better passed as arguments.

    If ``f`` itself changes something it reads at each call (a counter, a moving mean, a list it appends to), an error
    names it, as a compiled function would not repeat the change. What ``f`` makes once (a cached value) is allowed.

    Not compared: other objects and settings of libraries and of Python, methods of other installed packages, iterators,
    clocks, files, names in ``eval()``, attributes that distinguish equal static arguments, and writes that torch does
    not count (``w.data.mul_(2)``). A random generator that ``f`` makes without a seed gives the numbers of the trace.

    A function holds up to 256 programs (``MOST`` in ``gradops.jit.compiled``). The programs of the 128 signatures used
    last are always among them; dropped programs are compiled again when needed.

    Gradient:
        The result is differentiable: ``grad(jit(f))`` differentiates ``f``; calls with variables and tracers run ``f``
        itself.

    Examples:
        A log likelihood with its gradient, compiled together:

        >>> import numpy as np
        >>> import gradops
        >>> from gradops import ops
        >>> counts = np.array([2.0, 0.0, 3.0, 1.0])
        >>> @gradops.jit
        ... def loss(rate):
        ...     return ops.sum(rate - counts * ops.log(rate))
        >>> both = gradops.jit(gradops.value_and_grad(loss))
        >>> value, gradient = both(np.array(2.0))
        >>> print(value.round(4), gradient)
        3.8411 1.0

        A function may branch on values; each branch taken is compiled:

        >>> @gradops.jit
        ... def huber(x):
        ...     return 0.5 * x * x if abs(x) < 1.0 else abs(x) - 0.5
        >>> print(gradops.grad(huber)(0.25), gradops.grad(huber)(-3.0))
        0.25 -1.0

    See Also:
        :func:`value_and_grad`, ``gradops.ops.scan`` for loops that compile as one step.
    """
    if not callable(f):
        raise ArgumentTypeError("`f` must be a function; got {f}.", argument="f", f=TypeOf(f))
    positions = tuple(static_argnums) if isinstance(static_argnums, (tuple, list)) else (static_argnums,)
    for position in positions:
        if isinstance(position, bool) or not isinstance(position, int):
            raise ArgumentTypeError(
                "`static_argnums` must be positions of arguments; got {given}.",
                argument="static_argnums",
                given=Given(repr(position), position),
            )
    if not isinstance(native, bool):
        raise ArgumentTypeError(
            "`native` must be True or False; got {native}.", argument="native", native=TypeOf(native)
        )
    static = _both(f, positions, (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames))
    return Compiled(f, static[0], native=native, static_names=static[1])


def _both(f: Callable, positions: tuple[int, ...], names: tuple[str, ...]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and the names of static arguments, each completed by the other with the signature of ``f``.

    Raises:
        ArgumentTypeError: a name that is not a string.
        ArgumentError: ``f`` has no argument of a name.
    """
    for name in names:
        if not isinstance(name, str):
            raise ArgumentTypeError(
                "`static_argnames` must be names of arguments; got {given}.",
                argument="static_argnames",
                given=Given(repr(name), name),
            )
    if not (positions or names):
        return positions, names
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return positions, names
    by_name = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for name in names:
            if name not in by_name:
                raise ArgumentError(
                    f"`static_argnames` must name arguments of `f`: {', '.join(by_name) or 'none'}; got {name!r}.",
                    argument="static_argnames",
                )
    ordered = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    found = [ordered.index(name) for name in names if name in ordered]
    named = [ordered[i] for i in positions if 0 <= i < len(ordered) and ordered[i] in by_name]
    return tuple(dict.fromkeys([*positions, *found])), tuple(dict.fromkeys([*names, *named]))


# The function hides this package from `gradops.jit.native` and `import gradops.jit.native as native`, which look up
# attributes of `gradops.jit`. So the function gets the attributes of the package, also modules imported later.
__wrapped__ = vars(jit)["__wrapped__"]  # has the parameters that `inspect.signature()` shows
jit.__dict__ = globals()

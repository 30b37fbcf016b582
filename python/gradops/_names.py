"""The names that ``dir()`` of a module shows, and suggestions in the error for an unknown name."""

from __future__ import annotations

import difflib
import importlib
import opcode
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any


def namespace(
    name: str,
    later: tuple[str, ...] = (),
    renamed: Mapping[str, str] | None = None,
    objects: Mapping[str, str] | None = None,
) -> tuple[Callable[[], list[str]], Callable[[str], Any]]:
    """``__dir__`` and ``__getattr__`` for a module: its ``__all__``, and a suggestion for unknown names.

    Args:
        later: submodules that take long to import, so that they are imported when first used.
        renamed: old names, which warn, and the present names of their objects.
        objects: names that submodules define, and these submodules, which are imported when a name is first used.
    """
    LATER[name] = later
    objects = objects or {}
    RENAMED.update({f"{name}.{old}": new for old, new in (renamed or {}).items()})

    def __dir__() -> list[str]:
        return sorted(sys.modules[name].__all__)

    def __getattr__(wanted: str):
        if wanted in later:
            return importlib.import_module(f"{name}.{wanted}")
        if wanted in objects:
            found = getattr(importlib.import_module(f"{name}.{objects[wanted]}"), wanted)
            setattr(sys.modules[name], wanted, found)  # later uses do not come here
            return found
        new = RENAMED.get(f"{name}.{wanted}")
        if new is not None:
            warnings.warn(f"`{name}.{wanted}` is `{new}` now", DeprecationWarning, stacklevel=2)
            return pkgutil.resolve_name(new)
        message = f"module {name!r} has no attribute {wanted!r}"
        if not wanted.startswith("_") and sys._getframe(1).f_code.co_name != _FROM_LIST:
            found = _suggested(name, wanted)
            if found:
                message += f"\nHint: did you mean {' or '.join(f'`{one}`' for one in found)}?"
        raise missing(name, wanted, message)

    return __dir__, __getattr__


def later_function(module: str, name: str) -> Callable:
    """Return a function that imports ``module`` at its first call and calls the module's function ``name``."""

    def call(*arguments, **keywords):
        return getattr(importlib.import_module(module), name)(*arguments, **keywords)

    return call


def missing(module: str, name: str, message: str) -> AttributeError | ImportError:
    """The error for a name that a module's ``__getattr__`` does not know.

    In ``from module import name``, Python would replace the message of an AttributeError by its own.
    """
    frame = sys._getframe(2)
    if frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM:
        return ImportError(message.replace("has no attribute", "has no name", 1), name=module)
    return AttributeError(message)


_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]
_FROM_LIST = "_handle_fromlist"
"""Python's function that asks a package for a submodule before it imports the submodule; no user reads its error."""

LATER: dict[str, tuple[str, ...]] = {}
"""The modules of a package that are imported when they are first read."""

RENAMED: dict[str, str] = {}
"""Old public names, and the new ones."""


def pairs(text: str) -> dict[str, str]:
    """Return a dict from words such as ``theirs=ours``."""
    return dict(pair.split("=") for pair in text.split())


OTHERS = pairs(
    """elementwise_grad=grad make_vjp=vjp make_jvp=jvp primitive=custom_gradient defvjp=extend.derivative
    check_grads=autodiff.gradcheck hessian_vector_product=hvp
    remat=checkpoint tensor=ops.array Tensor=Variable detach=stop_gradient clamp=ops.clip cat=ops.concatenate
    concat=ops.concatenate unsqueeze=ops.expand_dims permute=ops.transpose masked_fill=ops.where index_select=ops.take
    gather=ops.take_along_axis mm=ops.matmul bmm=ops.matmul mul=ops.multiply pow=ops.power map_fn=ops.map
    cross_entropy=ops.sparse_categorical_crossentropy GradientTape=gradient function=jit reduce_sum=ops.sum
    reduce_mean=ops.mean reduce_max=ops.max reduce_min=ops.min reduce_prod=ops.prod reduce_logsumexp=ops.logsumexp
    set_default_dtype=config.set_floatx maximize_likelihood=inference.fit MakeADFun=inference.fit TGD=text.Descent
    TextualGradientDescent=text.Descent TextLoss=text.judge BlackboxLLM=text.call LLMCall=text.call
    ChatCompletion=text.call"""
)
"""Names of autograd, JAX, PyTorch, TensorFlow, RTMB, afnio and textgrad that do not resemble ours, and our names."""
ARGUMENTS = pairs("dim=axis keepdim=keepdims depth=num_classes perm=axes in_dims=in_axes out_dims=out_axes")
"""PyTorch's and TensorFlow's names of arguments, and ours."""
BACKENDS = pairs("tf=tensorflow np=numpy jnp=jax")
"""Usual abbreviations of backends."""


class Elsewhere:
    """An attribute that other libraries' objects have: reading it raises an error that names ours."""

    def __init__(self, name: str, instead: str):
        self.name, self.instead = name, instead

    def __get__(self, instance, owner: type):
        message = f"{owner.__name__!r} object has no attribute {self.name!r}"
        raise AttributeError(f"{message}\nHint: write `{self.instead}`")


def add_elsewhere(kind: type, others: Mapping[str, str]) -> None:
    """Give a class the attributes of other libraries that it lacks, as errors that ``dir()`` does not show.

    ``__getattr__`` would do for fewer lines, but makes each attribute of a class slower to read.
    """
    absent = {name: Elsewhere(name, instead) for name, instead in others.items() if not hasattr(kind, name)}
    for name, attribute in absent.items():
        setattr(kind, name, attribute)
    kind.__dir__ = lambda self: [name for name in object.__dir__(self) if name not in absent]  # type: ignore


def closest(wanted: str, known: Iterable[str], cutoff: float = 0.7) -> str | None:
    """The known name that was most likely meant; None if none is similar."""
    by_lower = {name.lower(): name for name in known}
    wanted, lower = wanted.lower(), list(by_lower)
    found = difflib.get_close_matches(wanted, lower, 1, cutoff)
    if found:
        return by_lower[found[0]]
    # difflib starts from the first of the longest common parts, which may leave nothing to compare: `l2plp` for
    # `lp2lp`.
    found = difflib.get_close_matches(wanted[::-1], [name[::-1] for name in lower], 1, cutoff)
    return by_lower[found[0][::-1]] if found else None


def public_modules() -> dict[str, ModuleType]:
    """Return ``gradops`` and its public modules, by name; import those that were not imported yet."""
    found: dict[str, ModuleType] = {}
    waiting = ["gradops"]
    while waiting:
        name = waiting.pop(0)
        module = sys.modules.get(name)
        if module is None or name in found:
            continue
        found[name] = module
        names = getattr(module, "__all__", ())
        for later in LATER.get(name, ()):
            importlib.import_module(f"{name}.{later}")
        waiting += [f"{name}.{part}" for part in names if isinstance(vars(module).get(part), ModuleType)]
    return found


def _suggested(name: str, wanted: str) -> list[str]:
    """Suggestions: our name for another library's, the modules with that very name, or the most similar name."""
    if wanted in OTHERS:
        place, _, ours = f"gradops.{OTHERS[wanted]}".rpartition(".")
        return [_shown(place, ours)]
    modules = public_modules()
    there = [place for place, module in modules.items() if wanted in getattr(module, "__all__", ())]
    if there:
        return [_shown(place, wanted) for place in there[:3]]
    for place in (name, *modules):
        known = sys.modules[place].__all__
        if place != name:  # a class is not meant by the name of a function
            known = [one for one in known if one[0].isupper() == wanted[0].isupper()]
        like = closest(wanted, known, 0.7 if place == name else 0.8)
        if like is not None:
            return [_shown(place, like)]
    return []


def _shown(place: str, name: str) -> str:
    """A name as it is written after ``from gradops import ops``."""
    return f"gradops.{name}" if place == "gradops" else f"{place}.{name}".removeprefix("gradops.")

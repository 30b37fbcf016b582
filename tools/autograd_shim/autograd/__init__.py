"""A stand-in for HIPS autograd that runs autograd's own tests on gradops (``tools/autograd_suite``).

It translates names and conventions only; values and derivatives come from gradops.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from types import ModuleType

import gradops
import gradops.numpy as _numpy


def _module(name: str, of=None, **names) -> ModuleType:
    """Make a module with the given names; all other names come from the module ``of``."""
    made = ModuleType(f"{__name__}.{name}")
    made.__dict__.update(names, __path__=[])
    if of is not None:
        made.__getattr__ = lambda key: getattr(of, key)  # type: ignore[method-assign]
    sys.modules[made.__name__] = made
    return made


def _make_diagonal(D, offset=0, axis1=-1, axis2=-2):
    return D[..., None] * _numpy.eye(D.shape[-1])


_linalg = _module(
    "numpy.linalg", _numpy.linalg, T=lambda x: _numpy.swapaxes(x, -1, -2), _dot=lambda x, y: _numpy.matmul(x, y)
)
_fft, _random = _module("numpy.fft", _numpy.fft), _module("numpy.random", _numpy.random)
numpy = _module("numpy", _numpy, make_diagonal=_make_diagonal, linalg=_linalg, fft=_fft, random=_random)

from . import core, misc  # noqa: E402, F401
from .convolution import convolve as _convolve  # noqa: E402
from .core import make_jvp as _jvp  # noqa: E402
from .core import make_vjp as _vjp  # noqa: E402
from .core import vspace  # noqa: E402
from .wrap_util import unary_to_nary  # noqa: E402

_scipy = {
    name: _module(f"scipy.{name}", importlib.import_module(f"gradops.scipy.{name}"))
    for name in ("linalg", "special", "stats", "integrate")
}
_scipy["signal"] = _module("scipy.signal", importlib.import_module("gradops.scipy.signal"), convolve=_convolve)
scipy = _module("scipy", **_scipy)
_module("scipy.stats.multivariate_normal", _scipy["stats"].multivariate_normal)


def _isinstance(value, kinds):
    return builtins.isinstance(value.data if builtins.isinstance(value, gradops.Variable) else value, kinds)


def _isbox(value):
    return builtins.isinstance(value, gradops.Variable)


make_vjp, make_jvp = unary_to_nary(_vjp), unary_to_nary(_jvp)
checkpoint = gradops.checkpoint
isinstance, dict, list, tuple, type = _isinstance, builtins.dict, builtins.list, builtins.tuple, builtins.type


@unary_to_nary
def grad(f, x):
    return gradops.grad(f)(core.floating(x))


@unary_to_nary
def value_and_grad(f, x):
    return gradops.value_and_grad(f)(core.floating(x))


@unary_to_nary
def grad_and_aux(f, x):
    return gradops.grad(f, has_aux=True)(x)


@unary_to_nary
def holomorphic_grad(f, x):
    """Return the holomorphic derivative, the conjugate of gradops' gradient of the real part."""
    return _numpy.conj(gradops.grad(lambda z: _numpy.real(f(z)))(x))


@unary_to_nary
def elementwise_grad(f, x):
    pullback, value = _vjp(f, x)
    return pullback(vspace(value).ones())


@unary_to_nary
def deriv(f, x):
    return _jvp(f, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(f, x):
    return gradops.jacobian(f)(core.floating(x))


@unary_to_nary
def hessian(f, x):
    return gradops.hessian(f)(core.floating(x))


@unary_to_nary
def make_hvp(f, x):
    return lambda v: gradops.hvp(f, (x,), (v,))[1], gradops.grad(f)(x)


def make_ggnvp(f, g=lambda y: 0.5 * _numpy.sum(y**2), f_argnum=0):
    def make(f, x):
        pullback, y = _vjp(f, x)
        return lambda v: pullback(gradops.hvp(g, (y,), (_jvp(f, x)(v)[1],))[1])

    return unary_to_nary(make)(f, f_argnum)


def hessian_tensor_product(f, argnum=0):
    return lambda x, v: gradops.hvp(f, (x,), (v,))[1]


hessian_vector_product, egrad, multigrad = hessian_tensor_product, elementwise_grad, grad


def tensor_jacobian_product(f, argnum=0):
    return lambda x, v: gradops.jacobian(lambda x: _numpy.tensordot(v, f(x), axes=v.ndim))(x)


def _quick_grad_check(f, x, args=(), **kwargs):
    from .test_util import check_grads

    check_grads(f, **kwargs)(x, *args)


_module("builtins", isinstance=isinstance, dict=dict, list=list, tuple=tuple, type=type)
_module("tracer", isbox=_isbox, primitive=core.primitive)
_module("extend", primitive=core.primitive, defvjp=core.defvjp, VSpace=core.VSpace, vspace=vspace)
_module("util", quick_grad_check=_quick_grad_check)

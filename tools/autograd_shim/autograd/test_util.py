"""autograd's checks of derivatives, by gradops.

They compare derivatives with finite differences, and recorded values with plain ones.
"""

from __future__ import annotations

from itertools import product

from .core import floating, has_derivative, make_jvp, make_vjp, vspace
from .wrap_util import unary_to_nary

STEP, CLOSE = 1e-6, 1e-5  # finite differences of an ODE solved to 1e-8 are not more accurate


def scalar_close(a, b):
    return abs(a - b) < CLOSE or abs(a - b) / abs(a + b) < CLOSE


def check_equivalent(x, y):
    space = vspace(x)
    assert space == vspace(y), f"{x} and {y} have different shapes or dtypes"
    along = space.randn()
    assert scalar_close(space.inner_prod(x, along), space.inner_prod(y, along)), f"{x} and {y} differ"


def _differences(f, x, v):
    xs, ys = vspace(x), vspace(f(x))
    there, back = (f(xs.add(x, xs.scalar_mul(v, h))) for h in (STEP / 2, -STEP / 2))
    return ys.scalar_mul(ys.add(there, ys.scalar_mul(back, -1.0)), 1 / STEP)


def _check(mode, f, x):
    """Check one product by forward or reverse mode; for complex numbers ``Re(conj(g) v)`` is the change along ``v``."""
    vjp, y = make_vjp(f, x)
    xs, ys = vspace(x), vspace(y)
    v, g = xs.randn(), ys.randn()
    along = _differences(f, x, v)
    check_equivalent(y, f(x))
    if mode == "fwd":
        value, tangent = make_jvp(f, x)(v)
        check_equivalent(value, y)
        exact = ys.inner_prod(g, tangent)
    else:
        assert vspace(vjp(g)) == xs
        exact = xs.inner_prod(vjp(g), v)
    numeric = ys.inner_prod(g, along)
    name = f"Derivative ({ {'fwd': 'JVP', 'rev': 'VJP'}[mode] }) check of {f.__name__}"
    assert scalar_close(numeric, exact), f"{name} failed with arg {x}:\nanalytic: {exact}\nnumeric:  {numeric}"


@unary_to_nary
def check_grads(f, x, modes=("fwd", "rev"), order=2):
    x = floating(x)
    for mode in modes:
        if not has_derivative(f(x)):
            continue
        _check(mode, f, x)
        if order > 1:
            if mode == "fwd":
                derivative, v = lambda x, v: make_jvp(f, x)(v)[1], vspace(x).randn()
            else:
                derivative, v = lambda x, v: make_vjp(f, x)[0](v), vspace(f(x)).randn()
            derivative.__name__ = {"fwd": "jvp_", "rev": "vjp_"}[mode] + f.__name__
            check_grads(derivative, (0, 1), modes, order - 1)(x, v)


def combo_check(fun, *options, **named):
    def check(*args, **kwargs):
        pairs = [[(name, value) for value in values] for name, values in kwargs.items()]
        for given in product(*args):
            for chosen in product(*pairs):
                check_grads(fun, *options, **named)(*given, **dict(chosen))

    return check

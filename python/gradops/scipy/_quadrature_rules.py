"""Quadrature rules that NumPy lacks: nodes and weights."""

from __future__ import annotations

import math

import numpy as np

_POINTS = np.array([
    0.995657163025808080735527280689003, 0.973906528517171720077964012084452, 0.930157491355708226001207180059508,
    0.865063366688984510732096688423493, 0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
    0.562757134668604683339000099272694, 0.433395394129247190799265943165784, 0.294392862701460198131126603103866,
    0.14887433898163121088482600112972, 0.0,
])  # fmt: skip
_KRONROD = np.array([
    0.011694638867371874278064396062192, 0.03255816230796472747881897245939, 0.05475589657435199603138130024458,
    0.07503967481091995276704314091619, 0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
    0.123491976262065851077958109585166, 0.134709217311473325928054001771707, 0.142775938577060080797094273138717,
    0.147739104901338491374841515972068, 0.149445554002916905664936468389821,
])  # fmt: skip
_GAUSS = np.array([
    0.0, 0.066671344308688137593568809893332, 0.0, 0.149451349150580593145863397657697, 0.0,
    0.219086362515982043995534934228163, 0.0, 0.269266719309996355091226921569469, 0.0,
    0.295524224714752870173815619188769, 0.0,
])  # fmt: skip
GAUSS_KRONROD = tuple(np.concatenate([sign * x, x[-2::-1]]) for sign, x in ((-1, _POINTS), (1, _KRONROD), (1, _GAUSS)))
"""Kronrod's 21 nodes on [-1, 1], their weights, and the weights of Gauss's rule at 10 of these nodes."""


def double_exponential(t: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return nodes on (0, 1), as distances from both ends, and weights (Takahasi & Mori 1974).

    Args:
        t: the nodes of the trapezoidal rule, ``step`` apart.
    """
    s = math.pi * np.sinh(t)
    near, far = 1 / (1 + np.exp(-s)), 1 / (1 + np.exp(s))
    return near, far, math.pi * np.cosh(t) * near * far * step


def half_line_double_exponential(t: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the logs of nodes on (0, inf), nodes and weights, for integrands that fall like ``exp(-x)``."""
    logs = t - np.exp(-t)
    nodes = np.exp(logs)
    return logs, nodes, step * nodes * (1 + np.exp(-t))

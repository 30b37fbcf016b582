"""A function with a custom gradient, on every installed backend. ``custom_gradient.R`` is the same program in R.

    python examples/custom_gradient.py

``infert.csv`` is R's data set of that name (Trichopoulos et al. 1976).
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from scipy.optimize import minimize

import gradops
from gradops import backends, config, grad, ops, value_and_grad


def plain_log1pexp(x):
    return ops.log(1 + ops.exp(x))


@gradops.custom_gradient
def log1pexp(x):
    """Return ``log(1 + exp(x))``, as in the documentation of Keras' ``custom_gradient``."""
    e = ops.exp(x)

    def gradient(upstream):
        return upstream * (1 - 1 / (1 + e))

    return ops.log(1 + e), gradient


def derivatives() -> list[float]:
    """Return both derivatives at 100 in float32, where ``exp`` overflows, and the first and second derivative at 2."""
    hundred, two = ops.array(100.0, "float32"), ops.array(2.0)
    return [
        float(d)
        for d in (
            grad(plain_log1pexp)(hundred),
            grad(log1pexp)(hundred),
            grad(log1pexp)(two),
            grad(grad(log1pexp))(two),
        )
    ]


def infert() -> tuple[np.ndarray, np.ndarray]:
    """Return the design matrix and the response of ``case ~ age + parity + spontaneous + induced``."""
    table = np.loadtxt(Path(__file__).with_name("infert.csv"), delimiter=",", skiprows=1)
    return np.column_stack([np.ones(len(table)), table[:, 1:]]), table[:, 0]


def logistic_regression(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return coefficients by BFGS, with the likelihood's value and gradient from the default backend."""
    scale = np.sqrt((x**2).mean(axis=0))
    xs, ys = ops.convert_to_tensor((x / scale).tolist()), ops.convert_to_tensor(y.tolist())

    def loss(beta):
        eta = ops.matmul(xs, beta)
        return ops.sum(log1pexp(eta) - ys * eta)

    both = value_and_grad(loss)

    def numbers(beta):
        value, gradient = both(ops.convert_to_tensor(beta.tolist()))
        return float(value), ops.convert_to_numpy(gradient)

    return minimize(numbers, np.zeros(x.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x / scale


def newton(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return coefficients by Newton's method in plain NumPy, as in R's ``glm()``."""
    beta = np.zeros(x.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-x @ beta))
        beta = beta + np.linalg.solve(x.T @ (x * (p * (1 - p))[:, None]), x.T @ (y - p))
    return beta


def main() -> None:
    x, y = infert()
    reference = newton(x, y)
    titles = (
        ("plain at 100", 14),
        ("custom at 100", 15),
        ("first at 2", 20),
        ("second at 2", 21),
        ("max |difference|", 19),
    )
    header = f"{'backend':12}" + "".join(title.rjust(width) for title, width in titles)
    print(header, "-" * len(header), sep="\n")
    for name in filter(backends.installed, backends.NAMES):
        with config.backend_scope(name), np.errstate(over="ignore"):
            plain, custom, first, second = derivatives()
            apart = np.abs(logistic_regression(x, y) - reference).max()
        print(f"{name:12}{plain:>14}{custom:>15}{first:>20.16f}{second:>21.16f}{apart:>19.1e}")
        assert np.isnan(plain) and custom == 1 and apart < 1e-6
        assert abs(first - 0.8807970779778824) < 1e-12 and abs(second - 0.1049935854035065) < 1e-12
    print("coefficients:", np.array2string(reference, precision=6))


if __name__ == "__main__":
    main()

"""Derivatives of SciPy and scikit-learn functions written to the array API standard.

``test_array_api_scipy.py`` runs this file in a separate process, as SciPy reads the setting when it is imported. The
file prints for each function its directional derivative by gradops and by finite differences, or the error.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import contextlib
import importlib.util
import json
import warnings

import numpy as np
from scipy import cluster, differentiate, fft, integrate, signal, special, stats
from scipy.optimize import elementwise
from scipy.spatial.transform import Rotation

import gradops
from gradops import array_api as xp

X = np.array([0.3, 1.7, 0.9, 2.2, 0.65, 1.1])
Y = X[::-1] ** 2
A = np.cos(np.arange(12.0).reshape(6, 2))


def _of_sklearn() -> dict:
    from sklearn import decomposition, linear_model, preprocessing
    from sklearn.metrics import pairwise

    def table(x):
        return xp.reshape(x, (3, 2))

    return {
        "sklearn PCA": lambda x: decomposition.PCA(1, svd_solver="full").fit(table(x)).explained_variance_[0],
        "sklearn Ridge": lambda x: xp.sum(linear_model.Ridge(solver="svd").fit(xp.asarray(A), x).coef_ ** 2),
        "sklearn MinMaxScaler": lambda x: xp.sum(preprocessing.MinMaxScaler().fit_transform(table(x)) ** 3),
        "sklearn cosine_similarity": lambda x: xp.sum(pairwise.cosine_similarity(table(x)) ** 2),
        "sklearn rbf_kernel": lambda x: xp.sum(pairwise.rbf_kernel(table(x), xp.asarray(A))),
    }


FUNCTIONS = {
    "special.logsumexp": special.logsumexp,
    "special.log_softmax": lambda x: special.log_softmax(x)[0],
    "special.gammaln": lambda x: xp.sum(special.gammaln(x)),
    "special.xlogy": lambda x: xp.sum(special.xlogy(x, x)),
    "stats.zscore": lambda x: xp.sum(stats.zscore(x) ** 3),
    "stats.gmean": stats.gmean,
    "stats.skew": stats.skew,
    "stats.entropy": stats.entropy,
    "stats.ttest_ind": lambda x: stats.ttest_ind(x, x * x).pvalue,
    "stats.pearsonr": lambda x: stats.pearsonr(x, xp.asarray(Y)).statistic,
    "stats.quantile": lambda x: stats.quantile(x, 0.3),
    "stats.lmoment": lambda x: stats.lmoment(x)[1],
    "signal.fftconvolve": lambda x: xp.sum(signal.fftconvolve(x, x) ** 2),
    "signal.hilbert": lambda x: xp.sum(xp.abs(signal.hilbert(x))),
    "signal.resample": lambda x: xp.sum(signal.resample(x, 9) ** 2),
    "integrate.trapezoid": lambda x: integrate.trapezoid(x * x, x),
    "integrate.tanhsinh": lambda x: (
        integrate.tanhsinh(lambda t, a: xp.exp(-a * t), xp.asarray(0.0), xp.asarray(1.0), args=(x[0],)).integral
    ),
    "differentiate.derivative": lambda x: xp.sum(differentiate.derivative(xp.exp, x).df),
    "optimize.elementwise.find_root": lambda x: xp.sum(
        elementwise.find_root(lambda t, a: t**3 - a, (xp.zeros(6), 3 * xp.ones(6)), args=(x,)).x
    ),
    "fft.rfft": lambda x: xp.sum(xp.abs(fft.rfft(x)) ** 3),
    "cluster.vq.whiten": lambda x: xp.sum(cluster.vq.whiten(xp.reshape(x, (3, 2))) ** 3),
    "signal.detrend": signal.detrend,  # not written to the standard
    "Rotation": lambda x: xp.sum(Rotation.from_rotvec(x[:3]).apply(x[3:]) ** 3),
}


def slopes(f) -> list:
    direction, h = np.cos(1.7 * np.arange(X.size)), 1e-6
    value = gradops.value_and_grad(f)
    return [
        float(np.sum(value(X)[1] * direction)),
        float(value(X + h * direction)[0] - value(X - h * direction)[0]) / (2 * h),
    ]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    scope = contextlib.nullcontext()
    if importlib.util.find_spec("sklearn"):
        import sklearn

        FUNCTIONS |= _of_sklearn()
        scope = sklearn.config_context(array_api_dispatch=True)
    found = {}
    with scope:
        for name, f in FUNCTIONS.items():
            try:
                found[name] = slopes(f)
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(found))

"""A scikit-learn estimator with a custom loss and gradient passes scikit-learn's checks and matches its estimates."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import surrogates
from scipy.optimize import minimize

import gradops
from gradops import ops

pytest.importorskip("sklearn", reason="needs `tools/setup --engines`")
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data


@gradops.custom_gradient
def log1pexp(x):
    """Return log(1 + exp(x)); its natural gradient is NaN where exp(x) overflows."""
    return ops.logaddexp(x, 0.0), lambda upstream: upstream * ops.sigmoid(x)


def logistic(eta, sign):
    return ops.sum(log1pexp(-sign * eta))


class Classifier(ClassifierMixin, BaseEstimator):
    """A linear binary classifier with any loss of ops, ``loss(eta, sign)``, penalised by ``alpha``."""

    def __init__(self, loss=logistic, alpha=1.0):
        self.loss = loss
        self.alpha = alpha

    def fit(self, X, y):
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        if type_of_target(y, input_name="y", raise_unknown=True) != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {type_of_target(y)}.")
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        sign = 2.0 * index - 1.0

        @gradops.value_and_grad
        def total(beta):
            penalty = 0.5 * self.alpha * ops.sum(beta[1:] ** 2)
            return self.loss(ops.matmul(X, beta[1:]) + beta[0], sign) + penalty

        found = minimize(total, np.zeros(X.shape[1] + 1), jac=True, method="L-BFGS-B", tol=1e-9)
        self.coef_, self.intercept_, self.n_iter_ = found.x[1:], found.x[0], found.nit
        return self

    def decision_function(self, X):
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False) @ self.coef_ + self.intercept_

    def predict(self, X):
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def data():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 3)) * [1.0, 10.0, 0.1]
    return X, np.where(rng.normal(size=80) + X @ [1.0, 0.1, 5.0] > 0, "yes", "no")


@parametrize_with_checks([Classifier()])
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


def test_estimates_match_logistic_regression():
    X, y = data()
    mine, own = Classifier(alpha=0.5).fit(X, y), LogisticRegression(C=2.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(mine.coef_, own.coef_[0], rtol=1e-4)
    np.testing.assert_allclose(mine.intercept_, own.intercept_[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(mine.predict(X), own.predict(X))
    far = Classifier(alpha=0.5).fit(1e4 * X, y)  # exp() overflows during the fit
    assert np.all(np.isfinite(far.coef_))


class Descended(Classifier):
    """The same classifier, fitted by a fixed number of gradient steps; a custom rule may belong to no loss."""

    def fit(self, X, y):
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_, index = np.unique(y, return_inverse=True)
        sign, beta = 2.0 * index - 1.0, np.full(X.shape[1] + 1, 0.1)
        gradient = self.loss.gradient_of(X, sign)
        for _ in range(20):
            beta = beta - 0.02 / len(X) * np.asarray(gradient(beta))
        self.coef_, self.intercept_, self.n_iter_ = beta[1:], beta[0], 20
        return self


class Through:
    """A loss through a flow, differentiated by gradops, or through the flow's twin, differentiated by PyTorch."""

    def __init__(self, flow, twin=False):
        self.flow, self.twin = flow, twin

    def gradient_of(self, X, sign):
        if not self.twin:
            flow = surrogates.FLOWS[self.flow]
            return gradops.grad(lambda beta: ops.sum(ops.softplus(-sign * flow(ops.matmul(X, beta[1:]) + beta[0]))))
        torch = pytest.importorskip("torch")
        flow = surrogates.twins(torch, torch.Tensor.detach)[self.flow]
        X, sign = torch.tensor(X), torch.tensor(sign)

        def loss(beta):
            return torch.nn.functional.softplus(-sign * flow(X @ beta[1:] + beta[0])).sum()

        return lambda beta: torch.func.grad(loss)(torch.tensor(beta)).numpy()


@pytest.mark.engine("scikit-learn: an estimator's loss")
@pytest.mark.parametrize("flow", surrogates.FLOWS)
def test_flows_in_a_loss(flow):
    X, y = data()
    mine, other = (make_pipeline(StandardScaler(), Descended(Through(flow, twin))).fit(X, y) for twin in (False, True))
    np.testing.assert_allclose(mine[-1].coef_, other[-1].coef_, rtol=1e-9)
    np.testing.assert_array_equal(mine.predict(X), other.predict(X))
    assert np.any(np.abs(mine[-1].coef_ - 0.1) > 1e-3)


def test_clone_pickle_pipelines_and_searches():
    X, y = data()
    fitted = Classifier(alpha=0.5).fit(X, y)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params() and not hasattr(copy, "coef_")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(copy.fit(X, y).coef_, fitted.coef_)
    pipeline = make_pipeline(StandardScaler(), Classifier())
    own = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10))
    np.testing.assert_allclose(cross_val_score(pipeline, X, y), cross_val_score(own, X, y))
    search = GridSearchCV(pipeline, {"classifier__alpha": [0.1, 1.0, 1e4]}).fit(X, y)
    assert search.best_params_["classifier__alpha"] < 1e4

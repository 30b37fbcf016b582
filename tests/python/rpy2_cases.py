"""The cases of test_interop_rpy2.py, run in a process with R on a thread of its own or on the main thread."""

import concurrent.futures
import faulthandler
import gc
import os
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from scipy import stats

import gradops
from gradops import ops
from gradops.errors import ArgumentTypeError, GradientError, RError
from gradops.interop import r
from gradops.interop.r import as_numpy, as_r, call_in_thread, r_function

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp  # noqa: E402
import tensorflow as tf  # noqa: E402
import torch  # noqa: E402

ON_MAIN = os.environ["R_THREAD"] == "main"
if ON_MAIN:
    import rpy2.robjects  # noqa: F401

BACKENDS = {"numpy": np.asarray, "torch": torch.as_tensor, "tensorflow": tf.constant, "jax": jnp.asarray}
X = np.array([-1.0, 0.5, 2.0])

each = pytest.mark.parametrize("backend", BACKENDS)


@pytest.fixture(autouse=True)
def watchdog():
    """End the process after a deadlock and print what each thread was doing."""
    faulthandler.dump_traceback_later(120, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def density():
    return r_function("dnorm", "function(x, upstream) -x * dnorm(x) * upstream")


@pytest.fixture(scope="module")
def smooth():
    """Return sin with two derivatives."""
    slope = r_function(
        "function(x, up) up * cos(x)",
        "function(x, up, upstream) list(-upstream * up * sin(x), upstream * cos(x))",
    )
    return r_function("sin", slope)


def numbers(x):
    return ops.convert_to_numpy(x)


def run(f, *args):
    """Run a compiled program that calls R on another thread if R's thread is this one."""
    return call_in_thread(f, *args)


# Ops ------------------------------------------------------------------------------------------------------------------


@each
def test_values_and_gradients(backend, density):
    x = BACKENDS[backend](X)
    value = density(x)
    assert type(value) is type(x) or backend == "jax"
    np.testing.assert_allclose(numbers(value), stats.norm.pdf(X), rtol=1e-14)
    gradient = gradops.grad(lambda x: ops.sum(density(x) * x))(x)
    np.testing.assert_allclose(numbers(gradient), stats.norm.pdf(X) * (1 - X**2), rtol=1e-13)


@each
def test_second_derivatives(backend, smooth):
    x = BACKENDS[backend](X)
    hessian = gradops.functional.hessian(lambda x: ops.sum(smooth(x) ** 2), x)
    np.testing.assert_allclose(numbers(hessian), np.diag(2 * np.cos(2 * X)), atol=1e-14)


@each
def test_gradcheck_of_several_arguments(backend):
    f = r_function(
        "function(a, b) a %*% b",
        "function(a, b, upstream) list(b = t(a) %*% upstream, a = upstream %*% t(b))",
    )
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))
    np.testing.assert_allclose(numbers(f(BACKENDS[backend](a), BACKENDS[backend](b))), a @ b, rtol=1e-14)
    inputs = [BACKENDS[backend](a), BACKENDS[backend](b)]
    for x in inputs:
        if backend == "torch":
            x.requires_grad_()
    assert gradops.autodiff.gradcheck(f, tuple(inputs))


@each
def test_named_arguments_and_defaults(backend):
    f = r_function(
        "function(x, mean = 0, sd = exp(0)) dnorm(x, mean, sd)",
        "function(x, mean, upstream, ...) list(x = -(x - mean) * dnorm(x, mean) * upstream)",
    )
    x = BACKENDS[backend](X)
    np.testing.assert_allclose(numbers(f(x, sd=2.0)), stats.norm.pdf(X, scale=2), rtol=1e-14)
    np.testing.assert_allclose(numbers(f(x, 1.0)), stats.norm.pdf(X, 1), rtol=1e-14)
    gradient = gradops.grad(lambda x: ops.sum(f(x, 1.0)))(x)
    np.testing.assert_allclose(numbers(gradient), -(X - 1) * stats.norm.pdf(X, 1), rtol=1e-13)


@each
def test_dtypes_and_shapes_of_values(backend):
    x = BACKENDS[backend](X.astype("float32"))
    many = r_function(
        "function(x) list(f = x + 1, i = seq_along(x), l = x > 0, s = sum(x), z = complex(real = x), m = t(x))"
    )
    found = many(x)
    assert [ops.dtype(found[name]) for name in "filszm"] == [
        "float32",
        "int64",
        "bool",
        "float32",
        "complex64",
        "float32",
    ]
    assert [tuple(found[name].shape) for name in "filszm"] == [(3,), (3,), (3,), (), (3,), (1, 3)]
    assert tuple(r_function("function(x) x^2")(BACKENDS[backend](np.ones(1))).shape) == (1,)
    assert tuple(r_function("function(x) as.data.frame(matrix(x, 2))")(BACKENDS[backend](np.ones(6))).shape) == (2, 3)


@each
def test_without_a_gradient(backend):
    f = r_function("pnorm")
    x = BACKENDS[backend](X)
    np.testing.assert_allclose(numbers(f(x)), stats.norm.cdf(X), rtol=1e-12)
    with pytest.raises(GradientError, match="`pnorm` has no gradient"):
        gradops.grad(lambda x: ops.sum(f(x)))(x)


@each
def test_likelihood_matches_glm(backend):
    data = as_numpy(
        as_r_source(
            """{
              fit <- glm(case ~ age + parity + spontaneous + induced, binomial, infert)
              list(x = model.matrix(fit), y = infert$case, beta = coef(fit), loglik = logLik(fit)[1])
            }"""
        )
    )
    loss = r_function(
        "function(beta, x, y) -sum(dbinom(y, 1, plogis(x %*% beta), log = TRUE))",
        "function(beta, x, y, upstream) list(-upstream * t(x) %*% (y - plogis(x %*% beta)), NULL, NULL)",
    )
    make = BACKENDS[backend]
    x, y = make(np.array(data["x"])), make(np.array(data["y"]))
    beta = make(np.array(data["beta"]))
    value, gradient = gradops.value_and_grad(lambda b: loss(b, x, y))(beta)
    assert float(value) == pytest.approx(-data["loglik"], rel=1e-12)
    np.testing.assert_allclose(numbers(gradient), 0, atol=1e-4)
    away = make(np.array(data["beta"]) * 0.5)
    own = gradops.grad(lambda b: ops.sum(ops.softplus(ops.matmul(x, b)) - ops.cast(y, "float64") * ops.matmul(x, b)))(
        away
    )
    np.testing.assert_allclose(numbers(gradops.grad(lambda b: loss(b, x, y))(away)), numbers(own), rtol=1e-10)


def as_r_source(source):
    """Return the R object of an expression, through a function that returns it."""
    from gradops.interop.r import rpy2, threads

    rpy2.start()
    return threads.call(rpy2.evaluate, source)


# Compiled -------------------------------------------------------------------------------------------------------------


@each
def test_jit(backend, density):
    x = BACKENDS[backend](X)
    program = gradops.jit(lambda x: ops.sum(density(x) * 2))
    for scale in (1, 2):
        np.testing.assert_allclose(numbers(run(program, x * scale)), 2 * stats.norm.pdf(X * scale).sum(), rtol=1e-13)
    both = gradops.jit(gradops.value_and_grad(lambda x: ops.sum(density(x))))
    np.testing.assert_allclose(numbers(run(both, x)[1]), -X * stats.norm.pdf(X), rtol=1e-13)


def test_jax_transformations(density, smooth):
    total = lambda x: jnp.sum(density(x))  # noqa: E731
    expected = -X * stats.norm.pdf(X)
    x = jnp.asarray(X)
    for f in (jax.grad(total), jax.jit(jax.grad(total)), jax.grad(jax.jit(total))):
        np.testing.assert_allclose(f(x), expected, rtol=1e-13)
    rows = jnp.stack([x, 2 * x])
    np.testing.assert_allclose(jax.vmap(density)(rows), stats.norm.pdf(np.stack([X, 2 * X])), rtol=1e-13)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(total)))(rows)[0], expected, rtol=1e-13)
    scanned = jax.jit(lambda x: jax.lax.scan(lambda c, v: (c + smooth(v), c), 0.0, x)[0])
    np.testing.assert_allclose(scanned(x), np.sin(X).sum(), rtol=1e-13)
    np.testing.assert_allclose(
        jax.jit(jax.jacrev(jax.grad(lambda x: smooth(x).sum())))(x), np.diag(-np.sin(X)), atol=1e-14
    )


def test_jax_on_a_separate_thread(density):
    big = jnp.ones((1000, 1000))
    slow = jax.jit(lambda a: (a @ a @ a @ a)[:3, 0] * 0 + 1.0)
    slow(big)
    result = run(lambda: jax.block_until_ready(jax.jit(density)(slow(big))))
    np.testing.assert_allclose(result, stats.norm.pdf(np.ones(3)), rtol=1e-13)


def test_tf_function(density):
    x = tf.constant(X)
    total = tf.function(lambda x: tf.reduce_sum(density(x)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = run(total, x)
    np.testing.assert_allclose(y, stats.norm.pdf(X).sum(), rtol=1e-13)
    np.testing.assert_allclose(run(tape.gradient, y, x), -X * stats.norm.pdf(X), rtol=1e-13)
    unknown = tf.function(density, input_signature=[tf.TensorSpec([None, 2], tf.float64)])
    assert unknown.get_concrete_function().output_shapes.as_list() == [None, 2]
    np.testing.assert_allclose(
        run(unknown, tf.ones((3, 2), tf.float64)), np.full((3, 2), stats.norm.pdf(1)), rtol=1e-13
    )


def test_torch_transformations(density):
    x = torch.as_tensor(X)
    expected = -X * stats.norm.pdf(X)
    total = lambda x: density(x).sum()  # noqa: E731
    np.testing.assert_allclose(torch.func.grad(total)(x), expected, rtol=1e-13)
    rows = torch.stack([x, 2 * x])
    np.testing.assert_allclose(torch.func.vmap(density)(rows), stats.norm.pdf(rows.numpy()), rtol=1e-13)
    np.testing.assert_allclose(torch.func.vmap(torch.func.grad(total))(rows)[0], expected, rtol=1e-13)
    compiled = torch.compile(lambda x: (density(x * 2) * 3).sum(), backend="aot_eager")
    leaf = x.clone().requires_grad_()
    compiled(leaf).backward()
    np.testing.assert_allclose(leaf.grad, 6 * -2 * X * stats.norm.pdf(2 * X), rtol=1e-13)


def test_output_shape_that_placeholder_values_do_not_reveal():
    f = r_function("function(x) if (all(x < 1)) stop('larger, please') else x[1:2] + 0", shape=(2,))
    with pytest.raises(RError, match="larger"):
        jax.jit(f)(jnp.asarray([3.0, 4.0, 5.0]))
    wrong = r_function("function(x) x[x > 0.3]")
    with pytest.raises(Exception, match="foreseen"):
        jax.block_until_ready(jax.jit(wrong)(jnp.asarray([3.0, 0.1, 0.2])))
    fixed = r_function("function(x) x[1:2]", shape=lambda x: (2,))
    assert jax.jit(fixed)(jnp.asarray([3.0, 4.0, 5.0])).shape == (2,)


# Errors and warnings --------------------------------------------------------------------------------------------------


def test_conditions():
    f = r_function("function(x) stop(errorCondition('not today', class = 'mine', call = quote(f(x))))")
    with pytest.raises(RError, match=r"not today \(in R, f\(x\)\)") as caught:
        f(X)
    assert caught.value.r_message == "not today"
    assert caught.value.r_call == "f(x)"
    assert caught.value.r_class == ("mine", "error", "condition")
    with pytest.raises(RError, match="unexpected"):
        r_function("function(x")
    with pytest.raises(ArgumentTypeError, match="`f` must be an R function.*'pi'"):
        r_function("pi")
    with pytest.raises(ArgumentTypeError, match="got object"):
        r_function("identity")(object())
    with pytest.warns(UserWarning, match="NaNs produced"):
        r_function("sqrt")(-1.0)


def test_conditions_in_programs():
    f = r_function("function(x) if (sum(x) > 10) stop('too large') else x")
    with pytest.raises(Exception, match="too large"):
        jax.block_until_ready(jax.jit(f)(jnp.asarray([50.0, 1.0])))
    with pytest.raises(tf.errors.OpError, match="too large"):
        run(tf.function(f), tf.constant([50.0, 1.0]))
    np.testing.assert_allclose(jax.jit(f)(jnp.asarray([5.0, 1.0])), [5, 1])


# Values ---------------------------------------------------------------------------------------------------------------


def test_arrays_are_views_and_round_trip():
    matrix = as_r_source("matrix(as.numeric(1:6), 2)")
    view = as_numpy(matrix)
    assert view.shape == (2, 3) and view.flags.f_contiguous and not view.flags.writeable and not view.flags.owndata
    np.testing.assert_array_equal(view, [[1, 3, 5], [2, 4, 6]])
    assert as_r(view).rid == matrix.rid
    assert as_r(view.T).rid != matrix.rid
    identity = r_function("identity")
    assert np.shares_memory(identity(view), view)
    seen = []
    for array in (np.arange(6.0).reshape(2, 3), np.arange(24).reshape(2, 3, 4), np.array([True, False]), X + 1j):
        back = as_numpy(as_r(array))
        np.testing.assert_array_equal(back, array)
        seen.append(back.dtype.name)
    assert seen == ["float64", "int32", "bool", "complex128"]
    del matrix
    gc.collect()
    as_r_source("{ for (i in 1:20) numeric(1e5); gc() }")
    np.testing.assert_array_equal(view, [[1, 3, 5], [2, 4, 6]])


def test_conversions_do_not_leak_references_of_numpy_views():
    """rpy2's ``memoryview()`` loses a reference to None per call; Python before 3.12 has a few tens of thousands."""
    double = r_function("function(x) 2 * x", "function(x, upstream) 2 * upstream")
    double(X)
    before = sys.getrefcount(None)
    for _ in range(500):
        double(X)
        as_numpy(as_r(np.arange(4)))
    assert sys.getrefcount(None) > before - 100


@pytest.mark.long
def test_an_r_function_called_30_000_times():
    double = r_function("function(x) 2 * x")
    for _ in range(30_000):
        found = double(X)
    np.testing.assert_array_equal(found, 2 * X)


def test_data_frames_and_lists_to_numpy():
    frame = as_numpy(as_r_source("data.frame(a = c(1.5, 2), b = c(1L, NA), c = c('x', NA))"))
    assert frame["c"] == ["x", None]
    np.testing.assert_array_equal(frame["a"], [1.5, 2])
    np.testing.assert_array_equal(frame["b"], [1, np.nan])
    assert as_numpy(as_r_source("list(1, 'a', NULL, TRUE)")) == [1.0, "a", None, True]
    assert as_numpy(as_r(None)) is None
    assert as_numpy(as_r({"a": [1.0, 2.0], "b": {"c": "d"}}))["b"] == {"c": "d"}
    assert as_numpy(as_r(2**40)) == 2.0**40
    assert as_numpy(as_r_source("numeric(0)")).shape == (0,)
    assert as_numpy(as_r(np.zeros((0, 3)))).shape == (0, 3)
    given = r_function("function(x, how) if (how$twice) 2 * x else x")
    np.testing.assert_array_equal(given(X, {"twice": True}), 2 * X)
    table = as_r_source("data.frame(w = c(1, 2, 3))")
    np.testing.assert_array_equal(r_function("function(x, data) x * data$w")(X, table), X * [1, 2, 3])


class Frame:
    """The common interface of pandas and polars data frames."""

    def __init__(self, **columns):
        self.table = columns
        self.columns = list(columns)

    def __len__(self):
        return len(next(iter(self.table.values())))

    def __getitem__(self, name):
        return Series(self.table[name])

    def to_numpy(self):
        return np.stack([np.asarray(c, object) for c in self.table.values()], 1)


class Series:
    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return np.asarray(self.values, object if None in self.values or isinstance(self.values[0], str) else None)


def test_data_frames_become_r_data_frames():
    data = Frame(y=[1.0, 2.0, 3.5, 4.0], g=["a", "b", "a", None], z=[1, 5, 3, 2], b=[True, False, True, True])
    classes = r_function(
        "function(x, d) { stopifnot(is.data.frame(d), sapply(d, class) == x$classes, is.na(d$g[4])); 1 }"
    )
    assert classes({"classes": ["numeric", "character", "integer", "logical"]}, data) == 1
    fitted = r_function("function(x, d) unname(coef(lm(y ~ z + b, d, weights = x)))")(
        np.array([1.0, 2.0, 1.0, 3.0]), data
    )
    design = np.array([[1.0, 1, 1], [1, 5, 0], [1, 3, 1], [1, 2, 1]])
    root = np.sqrt([1.0, 2, 1, 3])
    expected = np.linalg.lstsq(design * root[:, None], np.array([1.0, 2, 3.5, 4]) * root, rcond=None)[0]
    np.testing.assert_allclose(fitted, expected)
    assert r_function("function(d) { stopifnot(is.null(dim(d$y))); nrow(d) }")(Frame(y=[3.0])) == 1
    holes = r_function("function(d) sum(is.na(d$y))")(Frame(y=[1.0, None, 3.0]))
    assert holes == 1


# Threads --------------------------------------------------------------------------------------------------------------


def test_many_threads(density):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: density(X * i), range(1024)))
    for i, value in enumerate(found):
        np.testing.assert_allclose(value, stats.norm.pdf(X * i), rtol=1e-13)


def test_a_backward_pass_on_another_thread(density):
    leaf = torch.tensor(X, requires_grad=True)
    thread = threading.Thread(target=density(leaf).sum().backward)
    thread.start()
    thread.join()
    np.testing.assert_allclose(leaf.grad, -X * stats.norm.pdf(X), rtol=1e-13)


def test_r_runs_on_its_own_thread():
    assert (r_thread() == threading.main_thread().ident) is ON_MAIN


def r_thread():
    from gradops.interop.r import threads

    return threads.ident


def test_errors_reach_the_calling_thread():
    f = r_function("function(x) stop('in a thread')")
    with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(RError, match="in a thread"):
        pool.submit(f, X).result()


def test_r_on_a_thread_waiting_in_compiled_code(density):
    if not ON_MAIN:  # R's own thread always serves
        np.testing.assert_allclose(tf.function(density)(tf.constant(X)), stats.norm.pdf(X), rtol=1e-13)
        return
    r.set_patience(0.5)
    try:
        with pytest.raises(tf.errors.OpError, match="call_in_thread"):
            tf.function(density)(tf.constant(X))
    finally:
        r.set_patience(10)
    np.testing.assert_allclose(run(tf.function(density), tf.constant(X)), stats.norm.pdf(X), rtol=1e-13)


def test_objects_of_robjects():
    import rpy2.robjects as robjects

    f = r_function(robjects.r["sqrt"], robjects.r("function(x, upstream) upstream / (2 * sqrt(x))"))
    np.testing.assert_allclose(f(X**2), np.abs(X))
    np.testing.assert_allclose(gradops.grad(lambda x: ops.sum(f(x)))(X**2), 0.5 / np.abs(X))


def test_interrupt_ends_the_wait():
    if ON_MAIN:  # rpy2's own
        return
    slow = r_function("function(x) { end <- proc.time()[[3]] + 3; while (proc.time()[[3]] < end) sqrt(2); x }")
    began = time.monotonic()
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    with pytest.raises(KeyboardInterrupt):
        slow(X)
    assert time.monotonic() - began < 2.5
    np.testing.assert_array_equal(r_function("identity")(X), X)


def test_r_objects_are_released(density):
    def work(times):
        for _ in range(times):
            leaf = gradops.Variable(X, requires_grad=True)
            ops.sum(density(leaf)).backward()

    def used():
        gc.collect()
        cells = as_numpy(as_r_source("gc()[, 1]"))
        return np.array([len(gc.get_objects()), *cells])

    work(100)
    before = used()
    work(2000)
    grown = used() - before
    assert grown[0] < 500
    assert grown[1] < 2000 and grown[2] < 20000


def test_recursion_deep_enough():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert float(r_function("function(n) { f <- function(n) if (n == 0) 0 else 1 + f(n - 1); f(n) }")(800)) == 800

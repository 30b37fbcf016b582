"""Objectives on sharded data: value, gradient and curvature equal those of a single process for each engine."""

from __future__ import annotations

import os
import pickle
import signal

import numpy as np
import pytest
import surrogates
from parity import BACKENDS

import gradops
from gradops import functional, ops
from gradops.errors import ArgumentError, ArgumentTypeError, GradientError, ShardError

DATA = np.random.default_rng(1).normal(2.0, 1.5, 30)
SHARDS = np.split(DATA, 6)
X = {"mean": 1.0, "log_sd": 0.3}
V = {"mean": 0.5, "log_sd": -2.0}


@gradops.custom_gradient
def steep(x):
    """Return the exponential, with three times its slope."""
    e = ops.exp(x)
    return e, lambda upstream: upstream * e * 3.0


def loss(x, shard):
    z = ops.subtract(shard.tolist(), x["mean"]) * steep(-x["log_sd"])  # lists work with tensors of any backend
    return ops.sum(0.5 * z * z + x["log_sd"])


# The expected value: e = exp(-log_sd) has the slope -3 e, whose own slope is natural.
E = np.exp(-X["log_sd"])
R = DATA - X["mean"]
VALUE = np.sum(0.5 * (R * E) ** 2 + X["log_sd"])
GRADIENT = {"mean": -np.sum(R) * E**2, "log_sd": len(DATA) - 3 * np.sum(R**2) * E**2}
CROSS = 6 * np.sum(R) * E**2
HESSIAN = {
    "mean": {"mean": len(DATA) * E**2, "log_sd": CROSS},
    "log_sd": {"mean": CROSS, "log_sd": 12 * np.sum(R**2) * E**2},
}
PRODUCT = {name: sum(row[other] * V[other] for other in V) for name, row in HESSIAN.items()}


def assert_same(got, want):
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        for name in want:
            assert_same(got[name], want[name])
    else:
        np.testing.assert_allclose(ops.convert_to_numpy(got), want, rtol=1e-12)


def check(total, tensor=np.float64):
    x, v = ({name: tensor(value) for name, value in p.items()} for p in (X, V))
    assert_same(total(x), VALUE)
    value, gradient = total.value_and_grad(x)
    assert type(gradient["mean"]) is type(gradops.grad(lambda x: x * 2.0)(tensor(1.0)))
    assert_same(value, VALUE)
    assert_same(gradient, GRADIENT)
    assert_same(total.grad(x), GRADIENT)
    value, product = total.hvp(x, v)
    assert_same(value, VALUE)
    assert_same(product, PRODUCT)
    assert_same(total.hessian(x), HESSIAN)


def fails(x, shard):
    if shard[0] == SHARDS[4][0]:
        raise ZeroDivisionError("of no use")
    return x * ops.sum(shard)


def ends(x, shard):
    if shard[0] == SHARDS[4][0]:
        os._exit(1)
    return x * ops.sum(shard)


# In this process ------------------------------------------------------------------------------------------------------


@pytest.mark.short_cases(0, "jax", "tensorflow")
@pytest.mark.parametrize("backend", BACKENDS)
def test_shards_in_a_list(backend):
    with gradops.config.backend_scope(backend):
        check(functional.objective(loss, SHARDS), ops.convert_to_tensor)
        check(functional.objective(loss, (DATA,)), ops.convert_to_tensor)


def test_variables_and_outer_derivatives():
    total = functional.objective(lambda x, shard: ops.sum((shard - x) ** 2), SHARDS)
    x = gradops.Variable(1.0, requires_grad=True)
    total(x).backward()
    np.testing.assert_allclose(x.grad, -2 * np.sum(DATA - 1))
    np.testing.assert_allclose(gradops.grad(gradops.grad(total))(1.0), 60)
    np.testing.assert_allclose(gradops.jit(total.value_and_grad)(np.array(1.0)), total.value_and_grad(1.0))


def test_scipy_accepts_the_methods():
    optimize = pytest.importorskip("scipy.optimize")
    total = functional.objective(lambda x, s: ops.sum(0.5 * ((s - x[0]) * ops.exp(-x[1])) ** 2 + x[1]), SHARDS)
    found = optimize.minimize(
        total.value_and_grad, [0.0, 0.0], jac=True, hess=total.hessian, method="trust-exact", options={"gtol": 1e-8}
    )
    np.testing.assert_allclose(found.x, [DATA.mean(), np.log(DATA.std())], rtol=1e-7)


def test_failing_shard_is_named():
    with pytest.raises(ShardError, match=r"`data\[4\]`: ZeroDivisionError: of no use") as found:
        functional.objective(fails, SHARDS).grad(1.0)
    assert isinstance(found.value.__cause__, ZeroDivisionError)
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)
    with pytest.raises(ShardError, match=r"`data\[0\]`: GradientError: `f` must return a scalar; got shape \(5,\)"):
        functional.objective(lambda x, shard: x * shard, SHARDS)(1.0)


@pytest.mark.parametrize(
    "f, data, error, words",
    [
        (loss, [], ArgumentError, "at least one shard"),
        (loss, DATA, ArgumentTypeError, "`data` must be a list of shards or a `dask.bag.Bag`; got ndarray"),
        (1, SHARDS, ArgumentTypeError, "`f` must be a function; got int"),
    ],
)
def test_bad_input(f, data, error, words):
    with pytest.raises(error, match=words):
        functional.objective(f, data)


@pytest.mark.parametrize("hold", [list, lambda shards: [dask().delayed(s) for s in shards], lambda _: of_bags()])
def test_batches(hold):
    """Each shard is used once, in an order given by the seed; the mean over equal batches is the full sum."""
    with dask().config.set(scheduler="synchronous"):
        total = functional.objective(loss, hold(SHARDS))
        size = len(total.places) // 2
        batches = list(total.batches(size, seed=0))
        assert sorted(i for batch in batches for i in batch.places) == list(total.places)
        assert_same([np.mean([batch(X) for batch in batches])], [VALUE])
        for name, want in GRADIENT.items():
            assert np.mean([batch.grad(X)[name] for batch in batches]) == pytest.approx(want, rel=1e-12)
    rng = np.random.default_rng(3)
    epochs = [[batch.places for batch in total.batches(size, seed=rng)] for _ in range(4)]
    assert any(epoch != epochs[0] for epoch in epochs)
    assert epochs[0] == [batch.places for batch in total.batches(size, seed=3)]
    ordered = [batch.places for batch in total.batches(size - 1 or 1, shuffle=False)]
    assert [i for places in ordered for i in places] == list(total.places)


def test_batch_names_its_shards():
    batch = list(functional.objective(fails, SHARDS).batches(2, shuffle=False))[2]
    with pytest.raises(ShardError, match=r"`data\[4\]`: ZeroDivisionError"):
        batch(1.0)
    with pytest.raises(ArgumentError, match="`batch_size`"):
        next(functional.objective(fails, SHARDS).batches(0))


def test_progress(monkeypatch, capsys):
    monkeypatch.setattr("gradops._display._bar", lambda lines: None)
    total = functional.objective(lambda x, shard: x * ops.sum(shard), SHARDS, progress=True)
    total(1.0)
    assert capsys.readouterr().err.splitlines()[-1] == "objective: 100%"
    for _ in total.batches(3):
        pass
    assert capsys.readouterr().err.splitlines() == ["batches: 50%", "batches: 100%"]
    functional.objective(lambda x, shard: x * ops.sum(shard), SHARDS)(1.0)
    assert not capsys.readouterr().err


# On Dask --------------------------------------------------------------------------------------------------------------


def dask():
    return pytest.importorskip("dask", reason="needs `tools/setup --engines`")


def delayed() -> list:
    return [dask().delayed(shard) for shard in SHARDS]


def of_bags():
    bag = pytest.importorskip("dask.bag", reason="needs `tools/setup --engines`")
    return bag.from_sequence(SHARDS, npartitions=4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("held", [delayed, of_bags])
def test_dask(held, backend):
    shards = held()
    with gradops.config.backend_scope(backend), dask().config.set(scheduler="threads", num_workers=2):
        check(functional.objective(loss, shards), ops.convert_to_tensor)


def through(flow: str):
    """Return a loss through a flow, and its gradient over all data by PyTorch for the flow's twin."""

    def loss(x, shard):
        return ops.sum(surrogates.FLOWS[flow](x * shard))

    torch = pytest.importorskip("torch")
    twin = surrogates.twins(torch, torch.Tensor.detach)[flow]
    return loss, torch.func.grad(lambda x: twin(x * torch.tensor(DATA)).sum())(torch.tensor(0.3, dtype=torch.float64))


@pytest.mark.engine("Dask: a sum over shards")
@pytest.mark.parametrize("flow", surrogates.FLOWS)
def test_flows_on_dask(flow):
    loss, want = through(flow)
    with dask().config.set(scheduler="threads", num_workers=2):
        np.testing.assert_allclose(functional.objective(loss, delayed()).grad(0.3), want, rtol=1e-12)


def test_dask_names_the_failing_shard():
    with pytest.raises(ShardError, match=r"`data\[4\]`: ZeroDivisionError"):
        functional.objective(fails, delayed())(1.0)
    with dask().config.set(scheduler="synchronous"):
        with pytest.raises(ShardError, match=r"`data\[2\]\[0\]`: ZeroDivisionError"):
            functional.objective(fails, of_bags())(1.0)
        empty = of_bags().filter(lambda shard: shard[0] != SHARDS[0][0]).repartition(6)
        np.testing.assert_allclose(functional.objective(lambda x, s: x * ops.sum(s), empty)(2.0), 2 * DATA[5:].sum())
        with pytest.raises(ArgumentError, match="`data` must hold at least one shard"):
            functional.objective(loss, of_bags().filter(lambda shard: False))(1.0)


def test_shards_of_two_engines_are_refused():
    with pytest.raises(ArgumentTypeError, match="must all be held by one engine; got dask, numpy"):
        functional.objective(loss, [SHARDS[0], delayed()[1]])


@pytest.mark.parametrize("way", ["grad", "hvp of the value", "jit", "torch", "torch.func", "jax.jit", "jax.grad", "tf"])
def test_outer_transformations_of_an_engine_sum_are_refused(way):
    total = functional.objective(lambda x, s: x * float(s.sum()), delayed())
    refused = pytest.raises(GradientError, match=r"Hint: use its own `value_and_grad\(x\)`")
    if way == "tf":
        tf = pytest.importorskip("tensorflow")
        with pytest.raises(Exception, match=r"use its own `value_and_grad\(x\)`"):
            tf.function(total)(tf.constant(1.0))
        with refused, tf.GradientTape() as tape:
            tape.watch(x := tf.constant(1.0))
            tape.gradient(total(x), x)
    elif way.startswith("torch"):
        torch = pytest.importorskip("torch")
        with refused:
            if way == "torch":
                total(torch.tensor(1.0, requires_grad=True)).backward()
            else:
                torch.func.grad(total)(torch.tensor(1.0))
    elif way.startswith("jax"):
        jax = pytest.importorskip("jax")
        with refused:
            (jax.jit if way == "jax.jit" else jax.grad)(total)(1.0)
    else:
        ways = {"grad": gradops.grad(total), "jit": gradops.jit(total)}
        with refused:
            ways.get(way, lambda x: functional.hvp(total, x, 1.0))(np.array(1.0))


@pytest.mark.long
def test_dask_processes():
    """Bags run in processes by default, so everything sent is pickled."""
    check(functional.objective(loss, of_bags()))


@pytest.mark.long
def test_dask_distributed(monkeypatch):
    """Futures and bags on a cluster; if a shard kills its worker, Dask raises its own error naming the shard's task."""
    distributed = pytest.importorskip("distributed", reason="needs `tools/setup --engines`")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            shards = client.scatter(SHARDS)
            check(functional.objective(loss, shards))
            check(functional.objective(loss, of_bags().persist()))
            with pytest.raises(ShardError, match=r"`data\[4\]`: ZeroDivisionError") as found:
                functional.objective(fails, shards)(1.0)
            assert isinstance(found.value.__cause__, ZeroDivisionError)
            with pytest.raises(distributed.scheduler.KilledWorker, match=r"data\[4\]"):
                functional.objective(ends, delayed())(1.0)


def test_shard_lost_with_its_worker_is_named(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs `tools/setup --engines`")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]))
    kinds = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(**kinds) as cluster, distributed.Client(cluster) as client:
        addresses = {worker.pid: worker.worker_address for worker in cluster.workers.values()}
        pid, lost = next(iter(addresses.items()))
        kept = next(address for address in addresses.values() if address != lost)
        shards = [client.scatter(shard, workers=[lost if i == 2 else kept]) for i, shard in enumerate(SHARDS)]
        total = functional.objective(lambda x, shard: x * ops.sum(shard), shards)
        value = total(1.0)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ShardError, match=r"Dask has lost `data\[2\]`: FutureCancelledError") as found:
            for _ in range(100):
                assert total(1.0) == value  # until the scheduler notices
        assert found.value.argument == "data" and type(found.value.__cause__).__name__ == "FutureCancelledError"
        made: list[int] = []

        def reload(place):
            made.append(place)
            return SHARDS[place]

        again = functional.objective(lambda x, shard: x * ops.sum(shard), shards, reload=reload)
        assert again(1.0) == pytest.approx(value) == next(again.batches(len(shards)))(1.0)
        assert made == [2]


def test_reload_is_refused_without_futures():
    with pytest.raises(ArgumentError, match="`reload` is for futures of `dask.distributed`") as found:
        functional.objective(loss, SHARDS, reload=SHARDS.__getitem__)
    assert found.value.argument == "reload"
    with pytest.raises(ArgumentTypeError, match="`reload` must be a function"):
        functional.objective(loss, SHARDS, reload=SHARDS)


# On Ray ---------------------------------------------------------------------------------------------------------------


@pytest.mark.engine("Ray: a sum over shards", flows=surrogates.FLOWS)
@pytest.mark.long
def test_ray(monkeypatch):
    ray = pytest.importorskip("ray", reason="needs `tools/setup --engines`")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_TASK_MAX_RETRIES", "0")
    path = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    here = {"env_vars": {"PYTHONPATH": path}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False, runtime_env=here)
    try:
        shards = [ray.put(shard) for shard in SHARDS]
        check(functional.objective(loss, shards))
        check(functional.objective(loss, [ray.put(shard) for shard in np.split(DATA, 10)]))  # a tree of sums
        for flow in surrogates.FLOWS:
            through_flow, want = through(flow)
            np.testing.assert_allclose(functional.objective(through_flow, shards).grad(0.3), want, rtol=1e-12)
        with pytest.raises(ShardError, match=r"`data\[4\]`: ZeroDivisionError"):
            functional.objective(fails, shards)(1.0)
        with pytest.raises(ShardError, match=r"Ray has lost `data\[4\]`: WorkerCrashedError") as found:
            functional.objective(ends, shards)(1.0)
        assert isinstance(found.value.__cause__, ray.exceptions.WorkerCrashedError)
    finally:
        ray.shutdown()

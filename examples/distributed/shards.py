"""A likelihood with sharded data, its gradient and Hessian: the shards stay where Dask or Ray has put them.

    python shards.py          # a list, in this process
    python shards.py dask     # futures on a Dask cluster
    python shards.py ray      # Ray's object references

Prints the estimates of a logistic regression and their standard errors, which are the same in all three cases.
"""

import sys

import numpy as np
from scipy.optimize import minimize

from gradops import functional, ops


def loss(beta, shard):
    """Return the negative log-likelihood of a shard. It runs where the shard is."""
    x, y = shard
    eta = ops.matmul(x, beta)
    return ops.sum(ops.softplus(eta) - y * eta)


def fit(shards):
    total = functional.objective(loss, shards)
    beta = minimize(total.value_and_grad, np.zeros(3), jac=True, hess=total.hessian, method="trust-exact").x
    print(*beta, *np.sqrt(np.diag(np.linalg.inv(total.hessian(beta)))))


def main(engine: str = "") -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 3))
    y = (rng.uniform(size=400) < 1 / (1 + np.exp(-x @ [1.0, -0.5, 0.2]))).astype(float)
    shards = list(zip(np.split(x, 8), np.split(y, 8)))
    if engine == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            fit(client.scatter(shards))
    elif engine == "ray":
        import ray

        ray.init(num_cpus=2, include_dashboard=False)
        fit([ray.put(shard) for shard in shards])
        ray.shutdown()
    else:
        fit(shards)


if __name__ == "__main__":
    main(*sys.argv[1:])

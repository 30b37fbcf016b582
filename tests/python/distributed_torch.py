"""A worker of test_engines_distributed, started by torchrun: ten training steps of a model on its share of the data.

torchrun --nproc-per-node 2 distributed_torch.py ddp|fsdp FLOW FILE
"""

import sys

import numpy as np
import surrogates
import torch
import torch.distributed as dist

RNG = np.random.default_rng(5)
X, Y = torch.tensor(RNG.normal(size=(16, 3))), torch.tensor(RNG.normal(size=(16, 2)))


class Model(torch.nn.Module):
    def __init__(self, flow):
        super().__init__()
        torch.manual_seed(3)
        self.first = torch.nn.Linear(3, 4, dtype=torch.float64)
        self.second = torch.nn.Linear(4, 2, dtype=torch.float64)
        self.flow = flow

    def forward(self, x):
        return self.second(self.flow(torch.tanh(self.first(x))))


def train(model, parameters, rows: slice) -> None:
    steps = torch.optim.AdamW(parameters, lr=0.05)
    for _ in range(10):
        steps.zero_grad()
        torch.nn.functional.mse_loss(model(X[rows]), Y[rows]).backward()
        steps.step()


def full(p):
    return p.full_tensor() if hasattr(p, "full_tensor") else p


def main(how: str, path: str) -> None:
    dist.init_process_group("gloo")
    rank, count = dist.get_rank(), dist.get_world_size()
    rows = slice(rank * 16 // count, (rank + 1) * 16 // count)
    found = {}
    for flow, f in surrogates.FLOWS.items():
        model = Model(f)
        if how == "ddp":
            train(torch.nn.parallel.DistributedDataParallel(model), model.parameters(), rows)
        else:
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard

            mesh = init_device_mesh("cpu", (count,))
            for layer in (model.first, model.second, model):
                fully_shard(layer, mesh=mesh)
            train(model, model.parameters(), rows)
        found[flow] = {name: full(p).detach().clone() for name, p in model.state_dict().items()}
    if rank == 0:
        torch.save(found, path)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])

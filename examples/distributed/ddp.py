"""PyTorch on several processes, with DistributedDataParallel or with FSDP2, which also shards the parameters.

    python ddp.py                                  # one process
    torchrun --nproc-per-node 2 ddp.py             # the same parameters after ten steps
    torchrun --nproc-per-node 2 ddp.py --sharded   # again, by FSDP2

The model rounds its features with a straight-through gradient, recomputes them in the backward pass (a checkpoint
scope), has an adversarial head (a reversed gradient), and a target without gradient (a stopped one).
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss

import gradops
from gradops import ops


@gradops.custom_gradient
def rounded(x):
    return ops.round(x * 4) / 4, lambda upstream: upstream


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Linear(3, 4)
        self.label = torch.nn.Linear(4, 1)
        self.domain = torch.nn.Linear(4, 1)

    def forward(self, x):
        with gradops.gradient_checkpoint_scope():
            h = rounded(torch.tanh(self.features(x)))
        return self.label(h), self.domain(gradops.scaled_gradient(h, -0.5))


def loss(outputs, label, domain):
    guess, origin = outputs
    return mse_loss(guess, label) + mse_loss(origin, domain) + 0.1 * mse_loss(origin, gradops.stop_gradient(guess))


def main() -> None:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(3)
    x, label, domain = torch.randn(16, 3), torch.randn(16, 1), torch.randn(16, 1)
    parameters = Model()
    model, rank, count = parameters, 0, 1
    if "RANK" in os.environ:  # started by torchrun
        dist.init_process_group("gloo")
        rank, count = dist.get_rank(), dist.get_world_size()
        if "--sharded" in sys.argv:
            mesh = dist.init_device_mesh("cpu", (count,))
            for layer in (*model.children(), model):
                torch.distributed.fsdp.fully_shard(layer, mesh=mesh)
        else:
            model = torch.nn.parallel.DistributedDataParallel(model)
    rows = slice(rank * 16 // count, (rank + 1) * 16 // count)
    steps = torch.optim.AdamW(parameters.parameters(), lr=0.05)
    for _ in range(10):
        steps.zero_grad()
        loss(model(x[rows]), label[rows], domain[rows]).backward()
        steps.step()
    found = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in parameters.parameters()]
    if rank == 0:
        print(*torch.cat([p.detach().flatten() for p in found]).tolist())
    if count > 1:
        del model, steps, found  # they hold the process group, which must not be destroyed as Python exits
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

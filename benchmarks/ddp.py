"""Times a transformer block's training step under DistributedDataParallel, with gradops and with PyTorch alone.

    python benchmarks/ddp.py

It runs the step of engines.py on one and on two processes, each with its own batch and one thread; gloo averages the
gradients. In each process both models take turns, so other load affects both. Both must find the same parameters.
"""
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import statistics
import subprocess
import sys
import time

import engines
import torch
import torch.distributed as dist
from timing import table
from torch.nn.parallel import DistributedDataParallel

STEPS, WARM = 60, 5


class Block(torch.nn.Module):
    def __init__(self, loss):
        super().__init__()
        self.loss = loss
        self.weights = torch.nn.ParameterDict({k: torch.tensor(v) for k, v in engines.PARAMETERS.items()})

    def forward(self, x, y):
        return self.loss(dict(self.weights.items()), x, y)


def step_of(loss):
    model = DistributedDataParallel(Block(loss))
    descent = torch.optim.SGD(model.parameters(), lr=engines.RATE)
    x, y = torch.tensor(engines.X).roll(dist.get_rank(), 0), torch.tensor(engines.Y)

    def step():
        descent.zero_grad()
        model(x, y).backward()
        descent.step()

    return step, model


def worker() -> None:
    """Return the seconds of a step with gradops and without, measured in the first process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    steps, models = zip(step_of(engines.loss), step_of(engines.torch_loss()))
    seconds = [[], []]
    for i in range(WARM + STEPS):
        for found, step in zip(seconds, steps):
            dist.barrier()
            start = time.perf_counter()
            step()
            if i >= WARM:
                found.append(time.perf_counter() - start)
    for mine, other in zip(*(model.parameters() for model in models)):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)
    if dist.get_rank() == 0:
        print(*(statistics.median(found) for found in seconds))
    del steps, models, step  # they hold the process group, which must not be destroyed as Python exits
    dist.destroy_process_group()


def main() -> None:
    rows = []
    for count in (1, 2):
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
        done = subprocess.run(
            [sys.executable, *launch, __file__, "--worker"], capture_output=True, text=True, check=True
        )
        mine, other = map(float, done.stdout.split()[-2:])
        rows.append([str(count), f"{1e3 * mine:.1f}", f"{1e3 * other:.1f}", f"{mine / other:.2f}"])
    table(["processes", "gradops, ms", "native, ms", "ratio"], rows)


if __name__ == "__main__":
    worker() if "--worker" in sys.argv else main()

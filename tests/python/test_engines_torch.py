"""Flows in PyTorch models: modules, parametrizations, mixed precision, optimizers, and Lightning's training loop."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import surrogates

import gradops
from gradops import ops

torch = pytest.importorskip("torch")

FLOWS = surrogates.FLOWS
TWINS = surrogates.twins(torch, torch.Tensor.detach)
each_flow = pytest.mark.parametrize("flow", FLOWS)
rng = np.random.default_rng(5)
X = torch.tensor(rng.normal(size=(16, 3)))
Y = torch.tensor(rng.normal(size=(16, 2)))


class Model(torch.nn.Module):
    def __init__(self, flow):
        super().__init__()
        self.flow = flow
        self.first = torch.nn.Linear(3, 4, dtype=torch.float64)
        self.second = torch.nn.Linear(4, 2, dtype=torch.float64)

    def forward(self, x):
        return self.second(self.flow(torch.tanh(self.first(x))))


def models(flow: str):
    """Return a model with gradops' flow and one with its twin, with equal parameters."""
    torch.manual_seed(3)
    mine = Model(FLOWS[flow])
    other = copy.deepcopy(mine)
    other.flow = TWINS[flow]
    return mine, other


def loss_of(model, x=X, y=Y):
    return torch.nn.functional.mse_loss(model(x), y)


def assert_same_parameters(mine, other, **tolerances):
    for (name, a), b in zip(mine.state_dict().items(), other.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, **(tolerances or {"rtol": 1e-10, "atol": 1e-12}), msg=name)


@pytest.mark.engine("PyTorch: modules, optimizers")
@each_flow
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_ten_steps(flow, optimizer):
    def train(model):
        steps = getattr(torch.optim, optimizer)(model.parameters(), lr=0.05)
        for _ in range(10):
            steps.zero_grad()
            loss_of(model).backward()
            steps.step()

    mine, other = models(flow)
    train(mine), train(other)
    assert_same_parameters(mine, other)


@pytest.mark.engine("PyTorch: L-BFGS, by closures")
@each_flow
def test_lbfgs_closures(flow):
    """L-BFGS calls its closure several times per step."""

    def train(model):
        steps = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4, line_search_fn="strong_wolfe")

        def closure():
            steps.zero_grad()
            loss = loss_of(model)
            loss.backward()
            return loss

        for _ in range(3):
            steps.step(closure)

    mine, other = models(flow)
    train(mine), train(other)
    assert_same_parameters(mine, other, rtol=1e-6, atol=1e-8)


@pytest.mark.engine(
    "PyTorch: `vmap(grad(functional_call))`",
    refused={"checkpoint scope": "`torch.func` takes no hooks for saved tensors"},
)
@each_flow
def test_per_sample_gradients_with_functional_call(flow):
    """Computes ``vmap(grad(functional_call))``."""
    from torch.func import functional_call, grad, vmap

    def gradients(model):
        weights = {name: p.detach() for name, p in model.named_parameters()}

        def loss(weights, x, y):
            return torch.nn.functional.mse_loss(functional_call(model, weights, (x[None],)), y[None])

        return vmap(grad(loss), (None, 0, 0))(weights, X, Y)

    mine, other = models(flow)
    if flow == "checkpoint scope":
        with pytest.raises(gradops.errors.GradientError, match="do not take hooks for saved tensors"):
            gradients(mine)
        return
    got, want = gradients(mine), gradients(other)
    for name in want:
        torch.testing.assert_close(got[name], want[name])


@pytest.mark.engine("PyTorch: parametrizations")
@each_flow
def test_parametrizations(flow):
    """The weights are a flow applied to the trained parameters."""

    class Through(torch.nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f

        def forward(self, weight):
            return self.f(weight)

    def train(f):
        torch.manual_seed(4)
        layer = torch.nn.Linear(3, 2, dtype=torch.float64)
        torch.nn.utils.parametrize.register_parametrization(layer, "weight", Through(f))
        steps = torch.optim.SGD(layer.parameters(), lr=0.05)
        for _ in range(10):
            with torch.nn.utils.parametrize.cached():
                steps.zero_grad()
                loss_of(layer).backward()
                steps.step()
        return layer

    assert_same_parameters(train(FLOWS[flow]), train(TWINS[flow]))


@pytest.mark.engine("PyTorch: autocast, gradient scaler")
@each_flow
def test_mixed_precision(flow):
    """Under ``autocast`` with a gradient scaler; gradients have their parameters' dtype."""

    def train(model):
        model.float()
        steps = torch.optim.SGD(model.parameters(), lr=0.05)
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        for _ in range(5):
            steps.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = loss_of(model, X.float(), Y.float())
            scaler.scale(loss).backward()
            assert {p.grad.dtype for p in model.parameters()} == {torch.float32}
            scaler.step(steps)
            scaler.update()
        assert scaler.get_scale() == 256.0

    mine, other = models(flow)
    train(mine), train(other)
    assert_same_parameters(
        mine, other, rtol=0.05, atol=0.01
    )  # bfloat16 rounds g(x) + (f(x) - g(x)) differently from f(x)


@pytest.mark.engine("PyTorch: `torch.compile(fullgraph=True)`")
@pytest.mark.long
@each_flow
def test_compiled_training(flow):
    """Compiles a model for training and for inference."""
    mine, other = models(flow)
    torch._dynamo.reset()
    compiled = torch.compile(mine, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(X), other(X))
    for model in (compiled, other):
        steps = torch.optim.SGD(model.parameters(), lr=0.05)
        for _ in range(3):
            steps.zero_grad()
            loss_of(model).backward()
            steps.step()
    assert_same_parameters(mine, other)


@pytest.mark.engine("PyTorch Lightning")
@pytest.mark.long
@each_flow
def test_lightning(flow, tmp_path):
    lightning = pytest.importorskip("lightning", reason="needs `tools/setup --engines`")

    class Trained(lightning.LightningModule):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def training_step(self, batch, index):
            return loss_of(self.model, *batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.05)

    def train(model):
        rows = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=8)
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        quiet |= {"enable_model_summary": False, "default_root_dir": str(tmp_path)}
        lightning.Trainer(max_epochs=3, accelerator="cpu", gradient_clip_val=1.0, **quiet).fit(Trained(model), rows)

    mine, other = models(flow)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning warns about workers and intervals
        train(mine), train(other)
    assert_same_parameters(mine, other)


def test_loss_of_ops_trains_a_module():
    """Compares the crossentropy of gradops with PyTorch's."""
    labels = torch.tensor(rng.integers(0, 2, 16))

    def train(loss):
        model = models("custom")[1]
        steps = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(10):
            steps.zero_grad()
            loss(model(X)).backward()
            steps.step()
        return model

    mine = train(lambda z: ops.mean(ops.sparse_categorical_crossentropy(labels, z, from_logits=True)))
    assert_same_parameters(mine, train(lambda z: torch.nn.functional.cross_entropy(z, labels)))


def test_stop_gradient_in_a_module():
    mine, other = models("custom")
    mine.flow, other.flow = gradops.stop_gradient, torch.Tensor.detach
    loss_of(mine).backward(), loss_of(other).backward()
    assert mine.first.weight.grad is None and other.first.weight.grad is None
    torch.testing.assert_close(mine.second.weight.grad, other.second.weight.grad)

"""Models with gradops flows as ONNX files: correct values, and an error where a gradient rule would be lost.

`torch.export`, `jax.export` and `tf.saved_model` are covered by test_transformations.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import surrogates

import gradops
from gradops import ops

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript", reason="needs `tools/setup --engines`")
reference = pytest.importorskip("onnx.reference", reason="needs `tools/setup --engines`")
pytestmark = pytest.mark.long

FLOWS = surrogates.FLOWS | {
    "stopped": gradops.stop_gradient,
    "attention": lambda x: ops.squeeze(ops.dot_product_attention(*[ops.reshape(x, (1, 5, 1, 4))] * 3), 0),
    "loss": lambda x: ops.categorical_crossentropy(ops.softmax(x), ops.softmax(-x)),
}
X = torch.tensor(np.random.default_rng(5).normal(size=(5, 3)), dtype=torch.float32)


class Model(torch.nn.Module):
    def __init__(self, flow):
        super().__init__()
        torch.manual_seed(3)
        self.layer = torch.nn.Linear(3, 4)
        self.flow = flow

    def forward(self, x):
        return self.flow(self.layer(x))


def exported(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.onnx.export(model, (X,), dynamo=True, verbose=False).model_proto


@pytest.mark.engine("PyTorch: an ONNX file, its values")
@pytest.mark.parametrize("flow", FLOWS)
def test_values(flow):
    model = Model(FLOWS[flow]).eval()
    with torch.no_grad():
        program = reference.ReferenceEvaluator(exported(model))
        (got,) = program.run(None, {program.input_names[0]: X.numpy()})
        np.testing.assert_allclose(got, model(X).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("flow", ["custom", "straight-through", "reversal"])
def test_losing_a_rule_is_an_error(flow):
    """A model whose parameters require gradients is refused: an ONNX file holds values but no gradient rules."""
    with pytest.raises(Exception, match="torch.export keeps values and no custom or scaled gradients"):
        exported(Model(FLOWS[flow]))

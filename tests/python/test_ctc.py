"""Connectionist temporal classification against the frameworks: long, infeasible and traced problems, and bad input."""

import numpy as np
import pytest
from parity import BACKENDS, Case, native_gradient, numpy, scalar_function, tape_gradient, tensors

from gradops import ops
from gradops.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError

random = np.random.default_rng(0)


def problem(batch=3, steps=30, classes=6, labels=5):
    return {
        "target": random.integers(1, classes, (batch, labels)),
        "output": random.standard_normal((batch, steps, classes)),
        "target_length": np.arange(labels, labels - batch, -1),
        "output_length": np.arange(steps, steps - batch, -1),
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loss_matches_torch(dtype, torch):
    given = problem()
    logs = torch.log_softmax(torch.tensor(given["output"]), -1).transpose(0, 1)
    rest = [torch.tensor(given[name]) for name in ("target", "output_length", "target_length")]
    want = torch.nn.functional.ctc_loss(logs, *rest, reduction="none").numpy()
    loss = ops.ctc_loss(**{**given, "output": given["output"].astype(dtype)})
    assert loss.dtype == dtype
    np.testing.assert_allclose(loss, want, rtol=1e-5 if dtype == "float32" else 1e-10)


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_too_few_steps(backend):
    """Two equal labels need three steps: the loss is infinite, the gradient 0, and other sequences are unaffected."""
    given = problem(2, 3, 3, 2) | {"target": np.array([[1, 1], [1, 1]]), "target_length": np.array([2, 2])}
    given["output_length"] = np.array([2, 3])
    loss = numpy(ops.ctc_loss(**{k: tensors(v, backend) for k, v in given.items()}))
    assert loss[0] == np.inf and np.isfinite(loss[1])
    case = Case("ctc_loss", None, gradients=["output"])
    f = scalar_function(case, given, backend)
    (slope,) = (
        native_gradient(f, [given["output"]], backend) if backend != "numpy" else tape_gradient(f, [given["output"]])
    )
    assert not slope[0].any() and slope[1].any() and np.isfinite(slope).all()


@pytest.mark.short_cases(0, "jax")
@pytest.mark.parametrize("backend", BACKENDS)
def test_empty_labels_have_probability_1(backend):
    """No labels and no steps have probability 1."""
    given = problem(1) | {"target_length": np.array([0]), "output_length": np.array([0])}
    assert numpy(ops.ctc_loss(**{k: tensors(v, backend) for k, v in given.items()})) == [0.0]
    labels, scores = ops.ctc_decode(tensors(given["output"], backend), tensors(np.array([0]), backend))
    assert (numpy(labels) == -1).all() and numpy(scores) == [[0.0]]
    labels, scores = ops.ctc_decode(tensors(given["output"], backend), tensors(np.array([0]), backend), "beam_search")
    assert (numpy(labels) == -1).all() and numpy(scores) == [[0.0]]


def slow_beams(logs, width: int, mask: int) -> list:
    """Reference beam search on a dictionary from prefix to its log probabilities of ending in the mask and in the
    label.
    """
    beginnings = {(): (0.0, -np.inf)}
    for log in logs:
        longer: dict = {}

        def add(path, masked, labelled, longer=longer):
            before = longer.get(path, (-np.inf, -np.inf))
            longer[path] = np.logaddexp(before[0], masked), np.logaddexp(before[1], labelled)

        for path, (masked, labelled) in beginnings.items():
            whole = np.logaddexp(masked, labelled)
            add(path, whole + log[mask], labelled + log[path[-1]] if path else -np.inf)
            for label in set(range(len(log))) - {mask}:
                add((*path, label), -np.inf, (masked if path[-1:] == (label,) else whole) + log[label])
        best = sorted(longer, key=lambda path: -np.logaddexp(*longer[path]))[:width]
        beginnings = {path: longer[path] for path in best}
    return [(path, np.logaddexp(*ends)) for path, ends in beginnings.items()]


@pytest.mark.parametrize("width", [1, 3, 50])
def test_beams(width):
    for seed in range(5):
        inputs = 2 * np.random.default_rng(seed).standard_normal((2, 12, 5))
        labels, scores = ops.ctc_decode(inputs, np.array([12, 7]), "beam_search", width, mask_index=3)
        for b, length in enumerate((12, 7)):
            logs = np.asarray(ops.log_softmax(inputs[b, :length]))
            path, score = slow_beams(logs, width, 3)[0]
            np.testing.assert_array_equal(labels[0, b], [*path, *[-1] * (12 - len(path))])
            np.testing.assert_allclose(scores[b], score)


def test_beams_match_tensorflow(tf):
    """Holds if no prefix is dropped, since TensorFlow drops prefixes within a step. Its mask is the last class."""
    for seed in range(5):
        inputs = 2 * np.random.default_rng(seed).standard_normal((3, 6, 4)).astype("float32")
        lengths = np.array([6, 4, 1])
        want, logs = tf.nn.ctc_beam_search_decoder(inputs.swapaxes(0, 1), lengths, 3**7, 3)
        labels, scores = ops.ctc_decode(inputs, lengths, "beam_search", 3**7, 3, mask_index=-1)
        np.testing.assert_allclose(scores, logs.numpy(), rtol=1e-5)
        for got, found in zip(labels, want):
            dense = np.full((3, 6), -1)
            dense[:, : found.dense_shape[1]] = tf.sparse.to_dense(found, -1).numpy()
            np.testing.assert_array_equal(got, dense)


def test_more_top_paths_than_labelings():
    labels, scores = ops.ctc_decode(np.zeros((1, 1, 2)), np.array([1]), "beam_search", top_paths=4)
    assert np.isneginf(scores[0, 2:]).all() and (labels[2:] == -1).all()
    np.testing.assert_allclose(scores[0, :2], np.log(0.5))


def test_traced(tf, jax):
    given = problem(2, 6, 4, 2)
    want = ops.ctc_loss(**given)
    np.testing.assert_allclose(jax.jit(lambda x: ops.ctc_loss(**{**given, "output": x}))(given["output"]), want)
    traced = tf.function(lambda x: ops.ctc_loss(**{**given, "output": x}))
    np.testing.assert_allclose(traced(tf.constant(given["output"])), want)
    for strategy in ("greedy", "beam_search"):

        def decode(x, strategy=strategy):
            return ops.ctc_decode(x, given["output_length"], strategy)

        want = decode(given["output"])
        for got in (jax.jit(decode)(given["output"]), tf.function(decode)(tf.constant(given["output"]))):
            np.testing.assert_array_equal(numpy(got[0]), want[0])
            np.testing.assert_allclose(numpy(got[1]), want[1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_input(backend):
    given = {k: tensors(v, backend) for k, v in problem().items()}
    for change, error, match in [
        ({"mask_index": 6}, AxisError, "`mask_index`"),
        ({"output": given["output"][0]}, ShapeError, "`output`"),
        ({"target": given["target"][:2]}, ShapeError, "`target` must have the batch size"),
        ({"target": given["output"][:, :, 0]}, ArgumentTypeError, "`target` must hold whole numbers"),
        ({"target_length": given["target"]}, ShapeError, "`target_length`"),
    ]:
        with pytest.raises(error, match=f"`ctc_loss`: {match}"):
            ops.ctc_loss(**{**given, **change})
    x, lengths = given["output"], given["output_length"]
    with pytest.raises(ArgumentError, match="`ctc_decode`: `strategy`"):
        ops.ctc_decode(x, lengths, "beams")
    with pytest.raises(ArgumentError, match="`ctc_decode`: `top_paths`"):
        ops.ctc_decode(x, lengths, "beam_search", 2, 3)
    with pytest.raises(ShapeError, match="`ctc_decode`: `sequence_lengths`"):
        ops.ctc_decode(x, lengths[:2])
    with pytest.raises(AxisError, match="`ctc_decode`: `mask_index`"):
        ops.ctc_decode(x, lengths, mask_index=-7)

"""Cases: connectionist temporal classification, against a sum over all alignments of the labels."""

import itertools

import numpy as np
from parity import Case, arrays
from scipy import special

from .normalization import fixed


def labels_of(way, mask):
    """Return the labels of an alignment: repetitions merged, masks removed."""
    return tuple(c for c, _ in itertools.groupby(way) if c != mask)


def probabilities(output, mask):
    """Return the probability of each label sequence, from logits of shape (steps, classes)."""
    p = special.softmax(output, -1)
    found = {}
    for way in itertools.product(range(output.shape[1]), repeat=len(output)):
        labels = labels_of(way, mask)
        found[labels] = found.get(labels, 0) + np.prod([p[t, c] for t, c in enumerate(way)])
    return found


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    mask = mask_index % output.shape[2]
    wanted = [tuple(row[:n]) for row, n in zip(target, target_length)]
    found = [probabilities(x[:n], mask).get(row, 0) for x, n, row in zip(output, output_length, wanted)]
    with np.errstate(divide="ignore"):
        return -np.log(np.array(found))


def ctc_decode(
    inputs, sequence_lengths, strategy="greedy", beam_width=100, top_paths=1, merge_repeated=True, mask_index=0
):
    mask = mask_index % inputs.shape[2]
    count = top_paths if strategy == "beam_search" else 1
    labels, scores = np.full((count, *inputs.shape[:2]), -1), np.zeros((len(inputs), count))
    for b, (x, n) in enumerate(zip(inputs, sequence_lengths)):
        x = x[:n]
        if strategy == "greedy":
            way = x.argmax(-1)
            paths = [labels_of(way, mask) if merge_repeated else tuple(c for c in way if c != mask)]
            scores[b] = -x.max(-1).sum()
        else:
            found = probabilities(x, mask)
            paths = sorted(found, key=found.get, reverse=True)[:count]
            scores[b] = [np.log(found[p]) for p in paths]
        for i, path in enumerate(paths):
            labels[i, b, : len(path)] = path
    return [labels, scores]


def ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index):
    return ctc_decode(inputs, sequence_lengths, "beam_search", beam_width, top_paths, mask_index=mask_index)


logits = arrays((2, 4, 3), -2, 2)
lengths = np.array([4, 3])
repeated = np.array([[1, 1, 2], [2, 0, 0]])

CASES = [
    Case(
        "ctc_loss",
        fixed(target=np.array([[1, 2], [2, 1]]), output=logits, target_length=np.array([2, 1]), output_length=lengths),
        ctc_loss,
        gradients=["output"],
    ),
    Case(
        "ctc_loss",
        fixed(target=repeated, output=logits, target_length=np.array([2, 0]), output_length=lengths),
        ctc_loss,
        gradients=["output"],
        label="repeated, none",
    ),
    Case(
        "ctc_loss",
        fixed(
            target=np.array([[0, 1], [1, 0]]),
            output=logits,
            target_length=np.array([2, 2]),
            output_length=lengths,
            mask_index=-1,
        ),
        ctc_loss,
        gradients=["output"],
        label="last is mask",
    ),
    Case("ctc_decode", fixed(inputs=logits, sequence_lengths=lengths), ctc_decode),
    Case(
        "ctc_decode",
        fixed(inputs=logits, sequence_lengths=lengths, merge_repeated=False, mask_index=1),
        ctc_decode,
        label="unmerged",
    ),
    Case(
        "ctc_decode",
        fixed(inputs=logits, sequence_lengths=lengths, strategy="beam_search", top_paths=3, mask_index=2),
        ctc_decode,
        label="beams",
    ),
    Case(
        "ctc_beams", fixed(inputs=logits, sequence_lengths=lengths, beam_width=50, top_paths=2, mask_index=0), ctc_beams
    ),
]

"""NumPy kernels: connectionist temporal classification."""

import numpy as np

from .activations import log_softmax


def ctc_beams(inputs, sequence_lengths, beam_width, top_paths, mask_index):
    batch, steps, _ = inputs.shape
    labels = np.full((top_paths, batch, steps), -1, np.int64)
    scores = np.full((batch, top_paths), -np.inf, inputs.dtype)
    logs = log_softmax(np.asarray(inputs, np.promote_types(inputs.dtype, np.float32)))
    for b, length in enumerate(sequence_lengths):
        found = _search(logs[b, : max(int(length), 0)], beam_width, mask_index)
        for i, (path, score) in enumerate(found[:top_paths]):
            labels[i, b, : len(path)] = path
            scores[b, i] = score
    return labels, scores


def _search(logs, width, mask):
    """Beginnings by their log probability, the best first (Hannun et al. 2014).

    A beginning is a node of a tree, known by its parent and last label. It has two probabilities: of ending
    in the mask, so that its last label may come again, and of ending in the label.
    """
    parents, labels, children = [-1], [-1], {}
    nodes, masked, labelled = np.zeros(1, int), np.zeros(1), np.full(1, -np.inf)
    for log in logs:
        whole, last = np.logaddexp(masked, labelled), np.array([labels[n] for n in nodes])
        longer = whole[:, None] + log
        again = np.flatnonzero(last >= 0)
        longer[again, last[again]] = masked[again] + log[last[again]]
        longer[:, mask] = -np.inf
        masked, labelled = whole + log[mask], labelled + np.where(last >= 0, log[last], -np.inf)
        # What is made longer may be there already.
        place = {node: i for i, node in enumerate(nodes)}
        for i, node in enumerate(nodes):
            j = place.get(parents[node])
            if j is not None:
                labelled[i] = np.logaddexp(labelled[i], longer[j, labels[node]])
                longer[j, labels[node]] = -np.inf
        scores = np.concatenate([np.logaddexp(masked, labelled), longer.ravel()])
        best = _best(scores, width)
        old, new = best[best < len(nodes)], best[best >= len(nodes)]
        fresh = []
        for j, label in zip(*np.divmod(new - len(nodes), len(log))):
            key = (nodes[j], label)
            if key not in children:
                children[key] = len(parents)
                parents.append(nodes[j])
                labels.append(label)
            fresh.append(children[key])
        nodes = np.concatenate([nodes[old], np.array(fresh, int)])
        masked = np.concatenate([masked[old], np.full(len(new), -np.inf)])
        labelled = np.concatenate([labelled[old], scores[new]])
    whole = np.logaddexp(masked, labelled)
    found = []
    for i in np.argsort(-whole, kind="stable"):
        path, node = [], nodes[i]
        while node:
            path.append(labels[node])
            node = parents[node]
        found.append((path[::-1], whole[i]))
    return found


def _best(scores, count):
    """Where the ``count`` largest numbers above -inf are, in order of place."""
    if len(scores) > count:
        best = np.sort(np.argpartition(-scores, count - 1)[:count])
    else:
        best = np.arange(len(scores))
    return best[scores[best] > -np.inf]

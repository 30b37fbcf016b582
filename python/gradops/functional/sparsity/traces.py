"""Products with several vectors that are recorded as one batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import ops
from ...autodiff import record, state
from ...autodiff.cotangents import whole
from ...autodiff.graph import Node, Rule, key
from ...autodiff.variable import data_of, is_active, wrap
from .. import batched


def together(move: Callable, seeds: list[np.ndarray]):
    """Return the results of ``move`` for each row of seeds, computed as one differentiable batch.

    ``move`` takes and returns variables. Values that do not depend on the seeds are shared by all members; their
    gradient is the sum over the members.
    """
    count = len(seeds[0])
    if count == 1:
        return ops.expand_dims(move(*(wrap(row[0]) for row in seeds)), 0)
    batched.register()
    with batched.deeper() as level:
        own = [wrap(batched.Batched(row, level)) for row in seeds]
        inside = set()
        for x in own:
            x.requires_grad = True  # so that their results are recorded and recognised
            inside.add(key(x))

        def note(node: Node) -> None:
            within = [edge is None or key(edge) in inside for edge in node.edges]
            if any(edge is not None and of_batch for edge, of_batch in zip(node.edges, within)):
                inside.add(node.seq)
                if not all(within):
                    node.rule = _summed(node.rule, within, count, level)

        with state.watching(note):
            found = move(*own)
    rows = batched.members(data_of(found), count, level)
    if not is_active(found):
        return rows
    rule = Rule("members", vjps=(lambda g, saved, edge: batched.Batched(g, level),))
    return record.record(rule, (found._node or found,), (), rows)


def _summed(rule: Rule, within: list[bool], count: int, level: int) -> Rule:
    """Return the rule of an operation in a batch; gradients of edges outside of it are summed over the members."""

    def vjp(g, saved, node):
        found = rule.pull(g, saved, node.edges) if rule.vjp is None else rule.vjp(g, saved, node)
        return [
            x if x is None or own else ops.sum(batched.members(whole(x), count, level), 0)
            for x, own in zip(found, within)
        ]

    return Rule(rule.name, vjp=vjp, slots=rule.slots, holomorphic=rule.holomorphic)

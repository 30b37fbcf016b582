"""Random programs: built from a seed, and run on any library. Steps on registers of mixed shapes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradops import Variable, ops

UNARY = ("sin", "cos", "tanh", "sigmoid", "softplus", "arctan", "erf", "square", "abs", "relu", "negative", "expm1")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "arctan2", "logaddexp", "hypot")
REDUCTIONS = ("sum", "mean", "max", "min", "logsumexp", "var", "prod")


class Program:
    """Up to ``length`` steps on ``inputs``, and a scalar loss of all their results.

    Attributes:
        inputs: float64 arrays with ``rows`` rows; compiled code treats arrays with many rows differently.
        single: whether part of the program is computed in float32.
    """

    def __init__(self, seed: int, length: int = 30, rows: int = 1):
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        shapes = [(3,), (2 * rows, 3), (3, 2 * rows), (2 * rows, 1), (), (3 * rows, 3), (1, 3)]
        self.inputs = [self.rng.normal(size=shapes[i]) for i in self.rng.choice(len(shapes), 3, replace=False)]
        self.steps: list[tuple] = []
        registers: list = list(self.inputs)
        with np.errstate(all="ignore"):
            while len(self.steps) < length:
                step = self._proposed(registers)
                if step is None or size(step, registers) > 60 * rows:
                    continue
                y = perform(step, registers)
                if step[:2] == ("binary", "arctan2") and not np.all(ops.hypot(*(registers[i] for i in step[2:]))):
                    continue  # no derivative where both are 0
                if np.size(y) and np.size(y) <= 60 * rows and np.isfinite(y).all() and np.abs(y).max(initial=0) < 30:
                    self.steps.append(step)
                    registers.append(y)
        self.single = any("float32" in map(str, step) for step in self.steps)
        self.weights = [self.rng.normal(size=np.shape(r)) for r in registers]

    def spoiled(self) -> list:
        """Return the inputs with hard values: zeros, infinities, NaN, and values whose cube or exp() overflows."""
        found, hard = [x.copy() for x in self.inputs], [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e150, 710.0]
        for x in found:
            few = self.rng.integers(0, x.size, 1 + x.size // 50)
            x.reshape(-1)[few] = self.rng.choice(hard, len(few))
        return found

    def _pick(self, registers: list, kinds: str = "f", ndim: int = 0) -> int | None:
        found = [i for i, r in enumerate(registers) if np.asarray(r).dtype.kind in kinds and np.ndim(r) >= ndim]
        return int(self.rng.choice(found[-8:] + found[:3])) if found else None

    def _proposed(self, registers: list) -> tuple | None:
        rng, pick = self.rng, lambda kinds="f", ndim=0: self._pick(registers, kinds, ndim)
        kind = str(rng.choice(list(KINDS), p=np.array(list(KINDS.values())) / sum(KINDS.values())))
        x = pick(ndim=0 if kind in ("unary", "binary", "cast", "complex", "compare", "where", "scalar") else 1)
        if x is None:
            return None
        shape = np.shape(registers[x])
        axis = int(rng.integers(-len(shape), len(shape))) if shape else None
        if kind == "unary":
            return kind, str(rng.choice(UNARY)), x
        if kind == "binary":
            y = pick()
            fits = broadcasts(shape, np.shape(registers[y]))
            return (kind, str(rng.choice(BINARY)), x, y) if fits else None
        if kind == "scalar":
            return kind, str(rng.choice(("+", "*", "-", "/", "**"))), x, float(rng.choice([2.0, 3.0, 0.5, -1.5]))
        if kind == "reduce":
            return (
                kind,
                str(rng.choice(REDUCTIONS)),
                x,
                (None if rng.random() < 0.3 else axis),
                bool(rng.random() < 0.5),
            )
        if kind == "shape":
            how = str(rng.choice(["ravel", "transpose", "expand", "flip", "roll", "pad", "repeat", "swap", "tile"]))
            return kind, how, x, axis
        if kind == "along":
            return (
                kind,
                str(rng.choice(["cumsum", "softmax", "sort", "diff", "split", "stack", "concatenate"])),
                x,
                axis,
            )
        if kind == "item":
            size = shape[0]
            keys = [int(rng.integers(-size, size)), (Ellipsis, slice(None, None, -1)), slice(1, None), (None, Ellipsis)]
            return kind, x, keys[rng.integers(len(keys))]
        if kind == "take":
            return kind, x, rng.integers(-shape[axis], shape[axis], size=rng.integers(1, 4)), axis
        if kind == "positions":
            return kind, str(rng.choice(["argmax", "argmin"])), x
        if kind == "top":
            return kind, x, int(rng.integers(1, shape[-1] + 1))
        if kind == "matmul":
            y = pick(ndim=1)
            return (kind, x, y) if matches(shape, np.shape(registers[y])) else None
        if kind == "cast":
            return kind, x, str(rng.choice(["float32", "float64", "float64"]))
        if kind == "complex":
            return kind, x, str(rng.choice(["abs", "real", "imag", "angle"]))
        if kind == "compare":
            return kind, str(rng.choice(["<", ">=", "!="])), x, float(rng.normal())
        if kind == "logic":
            b, c = pick("b"), pick("b")
            fits = b is not None and broadcasts(np.shape(registers[b]), np.shape(registers[c]))
            return (kind, str(rng.choice(["&", "|", "^", "~"])), b, c) if fits else None
        if kind == "where":
            b, y = pick("b"), pick()
            shapes = [np.shape(registers[i]) for i in (b, x, y)] if b is not None else [(2,), (3,)]
            return (kind, b, x, y) if broadcasts(*shapes) else None
        if kind == "segment":
            return kind, x, rng.integers(0, 3, size=shape[0]), 3
        return None

    def results(self, inputs) -> list:
        """Return the inputs followed by the results of the steps, on the library of the inputs."""
        registers = list(inputs)
        for step in self.steps:
            registers.append(perform(step, registers))
        return registers

    def last(self, *inputs):
        """Return the sum of the last two floating results, so that the other results need not be materialised."""
        floating = [x for x in self.results(inputs) if "float" in ops.dtype(x)]
        return sum(ops.sum(ops.cast(x, "float64")) for x in floating[-2:])

    def loss(self, *inputs):
        """Return the weighted sum of the results, each clipped to a bounded range."""
        registers, total = self.results(inputs), 0.0
        for register, weight in zip(registers, self.weights):
            if "float" in ops.dtype(register):
                total = total + ops.sum(ops.multiply(ops.cast(ops.tanh(register), "float64"), weight))
        return total


KINDS = {
    "unary": 5, "binary": 6, "scalar": 3, "reduce": 3, "shape": 4, "along": 4, "item": 3, "take": 2, "positions": 1,
    "top": 1, "matmul": 3, "cast": 1,
    "complex": 1, "compare": 2, "logic": 1, "where": 3, "segment": 1,
}  # fmt: skip


def broadcasts(*shapes) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def matches(a: tuple, b: tuple) -> bool:
    return bool(a and b) and a[-1] == (b[0] if len(b) == 1 else b[-2]) and broadcasts(a[:-2], b[:-2])


def size(step: tuple, registers: list) -> int:
    """Return the number of elements of what a step makes of several registers, which may be a product; else 0."""
    kind, *rest = step
    if kind not in ("binary", "where", "matmul"):
        return 0
    shapes = [np.shape(registers[i]) for i in rest if isinstance(i, int)]
    if kind == "matmul":
        a, b = shapes
        shapes = [(*a[:-1], 1), (*b[:-2], 1, b[-1]) if len(b) > 1 else ()]
    return int(np.prod(np.broadcast_shapes(*shapes)))


def perform(step: tuple, registers: list) -> Any:
    """Perform one step with gradops' ops and operators."""
    kind, *rest = step
    match kind, rest:
        case "unary", [name, x]:
            return getattr(ops, name)(registers[x])
        case "binary", [name, x, y]:
            return getattr(ops, name)(registers[x], registers[y])
        case "scalar", [sign, x, number]:
            v = registers[x]
            return {
                "+": lambda: v + number, "*": lambda: number * v, "-": lambda: number - v,
                "/": lambda: number / (1 + ops.square(v)), "**": lambda: (1 + ops.abs(v)) ** number,
            }[sign]()  # fmt: skip
        case "reduce", [name, x, axis, keepdims]:
            return getattr(ops, name)(registers[x], axis, keepdims=keepdims)
        case "shape", [how, x, axis]:
            v = registers[x]
            return {
                "ravel": lambda: ops.reshape(v, (-1,)), "transpose": lambda: ops.transpose(v),
                "expand": lambda: ops.expand_dims(v, axis), "flip": lambda: ops.flip(v, axis),
                "roll": lambda: ops.roll(v, 1, axis), "repeat": lambda: ops.repeat(v, 2, axis),
                "pad": lambda: ops.pad(v, [(1, 0)] * len(v.shape)), "swap": lambda: ops.swapaxes(v, 0, -1),
                "tile": lambda: ops.tile(v, [2] + [1] * (len(v.shape) - 1)),
            }[how]()  # fmt: skip
        case "along", [how, x, axis]:
            v = registers[x]
            return {
                "cumsum": lambda: ops.cumsum(v, axis), "softmax": lambda: ops.softmax(v, axis),
                "sort": lambda: ops.sort(v, axis), "diff": lambda: ops.diff(v, axis=axis),
                "split": lambda: ops.split(v, [1], axis)[0], "stack": lambda: ops.stack([v, v * 2], axis),
                "concatenate": lambda: ops.concatenate([v, ops.sin(v)], axis),
            }[how]()  # fmt: skip
        case "item", [x, key]:
            return registers[x][key] if isinstance(registers[x], Variable) else ops.get_item(registers[x], key)
        case "take", [x, positions, axis]:
            return ops.take(registers[x], positions, axis)
        case "positions", [name, x]:
            v = registers[x]
            place = getattr(ops, name)(v, -1)
            return ops.take_along_axis(v, ops.expand_dims(place, -1), -1)
        case "top", [x, k]:
            return ops.top_k(registers[x], k)[0]
        case "matmul", [x, y]:
            return ops.matmul(registers[x], registers[y])
        case "cast", [x, dtype]:
            return ops.cast(registers[x], dtype)
        case "complex", [x, part]:
            v = registers[x]
            z = ops.cast(v, "complex128") * (0.5 + 1j) + (1.0 - 0.3j)
            return getattr(ops, part)(z * z)
        case "compare", [sign, x, number]:
            v = registers[x]
            return v < number if sign == "<" else v >= number if sign == ">=" else v != number
        case "logic", [sign, b, c]:
            v, w = registers[b], registers[c]
            return ~v if sign == "~" else v & w if sign == "&" else v | w if sign == "|" else v ^ w
        case "where", [b, x, y]:
            return ops.where(registers[b], registers[x], registers[y])
        case "segment", [x, ids, count]:
            return ops.segment_sum(registers[x], ids, count)
    raise AssertionError(step)

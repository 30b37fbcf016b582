"""Every op under ``torch.compile(fullgraph=True)``, and functions that users compile and vectorise with it."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import parity
import pytest
from test_parity import CASES, by_id

import gradops
from gradops import ops
from gradops.interop.r.host import host_function
from gradops.ops import _dispatch

torch = pytest.importorskip("torch")

BY_VALUE = {
    "bincount": "its length is the largest value, without `minlength`",
    "ctc_beams": "a search on the host",
    "ctc_decode": "a search on the host, but `greedy`",
    "image.elastic_transform": "it draws its numbers on the host",
    "segment_max": "`num_segments` is needed",
    "segment_min": "`num_segments` is needed",
    "segment_prod": "`num_segments` is needed",
    "segment_sum": "`num_segments` is needed",
    "unique": "`size` is needed, and no `axis`",
}
"""Ops that raise in a graph, in all cases or in cases without the named argument."""
OF_LENGTH = ("arange", "bartlett", "blackman", "hamming", "hanning", "kaiser", "tri")
"""Ops whose result's length depends on a tensor's value."""

SAMPLE = (
    "median solve top_k average_pool adaptive_max_pool cdist quantile pad repeat tile image.resize one_hot "
    "arange take_along_axis segment_sum sparse_categorical_crossentropy slice_update zeros"
).split()


def drawn(case) -> dict:
    """Return example arguments of a case."""
    found = case.example()
    longer = case.op == "bincount" and found.get("minlength", 0) > 0  # in a graph it determines the length
    return found | ({"minlength": 9} if longer else {})


def results(cases: list, arguments: list[dict]) -> tuple[list, list]:
    """Return the results of each case: without a compiler, and from one graph of all cases."""
    known = [{k: parity.tensors(v, "torch") for k, v in each.items()} for each in arguments]
    given = [{k: v for k, v in each.items() if any(map(torch.is_tensor, parity.flat(v)))} for each in known]
    functions = [case.function() for case in cases]

    def run(given):
        return [f(**{k: g.get(k, v) for k, v in each.items()}) for f, each, g in zip(functions, known, given)]

    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="(?s).*lru_cache")  # Dynamo warns about untraced functions
        return run(given), torch.compile(run, fullgraph=True, backend="eager")(given)


def is_refused(case, arguments: dict) -> bool:
    if case.op in OF_LENGTH:
        return isinstance(next(iter(arguments.values())), np.ndarray)
    if case.op == "unique":
        return arguments.get("size") is None or "axis" in arguments
    unknown = arguments.get("num_segments") is None and arguments.get("minlength", 0) == 0
    greedy = case.op == "ctc_decode" and "strategy" not in arguments
    return case.op in BY_VALUE and unknown and not greedy


def compare(cases: list, arguments: list[dict]) -> None:
    for case, *both in zip(cases, *results(cases, arguments), strict=True):
        for w, g in zip(*(parity.flat(parity.numpy(x)) for x in both), strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12, err_msg=case.id)
            assert np.asarray(g).dtype == np.asarray(w).dtype, case.id


def check(cases: list) -> None:
    """Compile all supported cases in one graph, which halves the time; one graph each to find a failure."""
    cases = [case for case in cases if "torch" not in case.skip and not case.by_value]
    arguments = [drawn(case) for case in cases]
    refused = [is_refused(*pair) for pair in zip(cases, arguments)]
    for case, each, is_error in zip(cases, arguments, refused):
        if is_error:
            with pytest.raises(Exception):  # noqa: B017  # Dynamo's, in words of its own
                results([case], [each])
    cases, arguments = ([x for x, is_error in zip(xs, refused) if not is_error] for xs in (cases, arguments))
    try:
        compare(cases, arguments)
    except Exception:
        for case, each in zip(cases, arguments) if len(cases) > 1 else ():
            print(case.id)  # pytest shows it
            compare([case], [each])
        raise


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("case", {c.op: c for c in CASES if c.op in SAMPLE}.values(), ids=by_id)
def test_a_sample_of_cases(case):
    check([case])


@pytest.mark.long
@pytest.mark.parametrize("op", sorted({c.op for c in CASES}))
def test_every_case(op):
    check([case for case in CASES if case.op == op])


PROGRAMS = {
    "scan": lambda x: ops.scan(lambda state, row: (state * 0.5 + row, state), x[0], x),
    "fori_loop": lambda x: ops.fori_loop(0, 3, lambda i, state: state * x + i, x),
    "map": lambda x: ops.map(ops.exp, x),
    "linspace": lambda x: ops.linspace(x[0], x[1], 5, endpoint=False),
}


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_and_ranges(name):
    x = torch.tensor([0.5, -0.2, 0.3], dtype=torch.float64)
    ops.exp(np.ones(1))
    torch._dynamo.reset()
    got = torch.compile(PROGRAMS[name], fullgraph=True, backend="eager")(x)
    torch.testing.assert_close(got, PROGRAMS[name](x), rtol=1e-14, atol=0)


def of_a_number():
    """Return the binary ops that accept a number as one operand."""
    known = [(name, op) for name, op in _dispatch.registry.items() if parity.is_own(op)]
    return [name for name, op in known if op.weak and len(op.tensors) == 2 and name not in ("select", *BY_NUMBER)]


BY_NUMBER = (
    "full_like histogram linspace geomspace quantile nanquantile percentile nanpercentile unique where kaiser"
).split()
"""Ops whose second argument is not an operand, or whose values are needed."""


def check_numbers(op):
    """Check an op with a changing number, which ``torch.compile`` makes symbolic, on either side of a tensor."""
    function = _dispatch.registry[op].call
    for x in (torch.tensor([0.5, 2.0, 3.5]), torch.tensor([1, 2, 4])):
        for number in (3, 2.5):
            for flip in (False, True):

                def f(x, k, flip=flip):
                    return function(k, x) if flip else function(x, k)

                try:
                    want = f(x, number)
                except (TypeError, RuntimeError):  # bitwise op on a float
                    continue
                torch._dynamo.reset()
                got = torch.compile(f, fullgraph=True, dynamic=True, backend="eager")(x, number)
                assert got.dtype == want.dtype
                torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("op", ["multiply", "maximum"])
def test_changing_numbers(op):
    check_numbers(op)


@pytest.mark.long
@pytest.mark.parametrize("op", of_a_number())
def test_changing_numbers_in_every_op(op):
    check_numbers(op)


def test_arange_with_symbolic_size():
    torch = pytest.importorskip("torch")
    made = {
        "stop": lambda n: ops.arange(n),
        "start": lambda n: ops.arange(1, n + 1),
        "step": lambda n: ops.arange(2 * n, 0, -2),
        "dtype": lambda n: ops.arange(n, dtype="float32"),
    }
    with gradops.config.backend_scope("torch"):
        for name, f in made.items():
            graphs = []

            def backend(graph, inputs, graphs=graphs):
                graphs.append(graph)
                return graph.forward

            compiled = torch.compile(lambda x, f=f: f(x.shape[0]) * x, fullgraph=True, dynamic=True, backend=backend)
            for n in (5, 7, 9):
                x = torch.linspace(0.5, 1.5, n)
                torch.testing.assert_close(compiled(x), f(n) * x, msg=name)
            assert len(graphs) == 1, name


def graphs_of(f, arguments) -> int:
    """Return how many graphs are compiled for a function of numbers, and check its results against eager ones."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(f, fullgraph=True, backend=backend)
    with gradops.config.backend_scope("torch"):
        for n in arguments:
            torch.testing.assert_close(compiled(n), f(n))
    return len(graphs)


OF_SIZES = {
    "broadcast_to": lambda n: ops.broadcast_to(torch.arange(4.0), (n, 4)),
    "extract_sequences": lambda n: ops.extract_sequences(torch.arange(24.0), n, 2),
    "eye": lambda n: ops.eye(n),
    "full": lambda n: ops.full((n,), 2.0),
    "get_item": lambda n: ops.get_item(torch.arange(24.0).reshape(12, 2), (slice(n - 2, n), 0)),
    "one_hot": lambda n: ops.one_hot(torch.tensor([0, 1, 2]), n),
    "pad": lambda n: ops.pad(torch.arange(4.0), n),
    "pad of pairs": lambda n: ops.pad(torch.ones(2, 3), ((n, 1), (0, n)), constant_values=2.0),
    "repeat": lambda n: ops.repeat(torch.arange(4.0), n),
    "reshape": lambda n: ops.reshape(torch.ones(2 * n), (n, 2)),
    "roll": lambda n: ops.roll(torch.arange(4.0), n),
    "scatter": lambda n: ops.scatter(torch.tensor([[0], [2]]), torch.ones(2), (n,)),
    "segment_sum": lambda n: ops.segment_sum(torch.arange(3.0), torch.tensor([0, 1, 2]), n),
    "slice": lambda n: ops.slice(torch.arange(24.0), [n], [n + 1]),
    "slice_update": lambda n: ops.slice_update(torch.arange(24.0), [n], torch.ones(2)),
    "split": lambda n: ops.split(torch.arange(24.0), [n])[1],
    "tile": lambda n: ops.tile(torch.ones(2, 3), (n, 2)),
    "top_k": lambda n: ops.top_k(torch.arange(24.0), n)[0],
    "tri": lambda n: ops.tri(n),
    "tril": lambda n: ops.tril(torch.ones(10, 10), n - 7),
    "zeros": lambda n: ops.zeros((n, 2)),
}


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("name", OF_SIZES)
def test_changing_sizes_compile_twice(name):
    """Once for the first size and once for all others, as for PyTorch's own functions."""
    assert graphs_of(OF_SIZES[name], range(5, 11)) == 2


@pytest.mark.long
def test_changing_axes_and_levels_compile_once_each():
    y = torch.arange(720.0).reshape(1, 2, 3, 4, 5, 6)
    for f in (
        lambda axis: ops.roll(y, 1, axis),
        lambda axis: ops.repeat(y, 2, axis),
        lambda axis: ops.sum(y, axis),
        lambda axis: ops.one_hot(torch.tensor([0, 1, 2]), 9, axis=axis - 4),
    ):
        assert graphs_of(f, (2, 3, 4, 5)) == 4
    assert graphs_of(lambda n: ops.quantile(torch.arange(5.0), n / 20), (5, 6, 7)) == 3


@pytest.mark.parametrize(
    "f, words",
    [
        (lambda x: ops.solve(x, x), "`a` must be square"),
        (lambda x: ops.unique(x), "give a `size`"),
        (lambda x: gradops.scaled_gradient(x, torch.ones(7)), r"shape \(4, 3\) of `x`; got \(7,\)"),
        (torch.func.grad(lambda x: ops.sum(FLOWS["custom"][0](x))), "ignores custom gradients"),
    ],
)
def test_error_messages_reach_the_user(f, words):
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match=words):
        torch.compile(f, fullgraph=True, backend="eager")(torch.ones(4, 3))


def test_custom_function_defined_inside_a_trace():
    """Its gradient rule is not lost, although PyTorch would lose the rule of one of its own functions."""

    class Rounded(gradops.autodiff.Function):
        @staticmethod
        def forward(x, scale):
            return ops.round(x * scale) / scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, upstream):
            return upstream * ops.cos(ctx.saved_tensors[0]), None

    class Module(torch.nn.Module):
        def forward(self, x):
            return Rounded.apply(x, 4.0)

    model, x = Module(), torch.tensor([0.1, 0.7], requires_grad=True)
    torch._dynamo.reset()
    torch.compile(model, fullgraph=True, backend="aot_eager")(x).sum().backward()
    np.testing.assert_allclose(x.grad, np.cos([0.1, 0.7]), rtol=1e-6)
    gradient = torch.func.grad(lambda x: model(x).sum())
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="ignores custom gradients"):
        torch.compile(gradient, fullgraph=True, backend="aot_eager")(x.detach())
    torch._dynamo.reset()
    np.testing.assert_allclose(torch.compile(gradient, backend="aot_eager")(x.detach()), x.grad)
    with pytest.raises(gradops.errors.GradientError, match="torch.export keeps values"):
        torch.export.export(model, (x,))
    with torch.no_grad():
        program = torch.export.export(model, (x,)).module()
    np.testing.assert_allclose(program(x), [0, 0.75])
    assert not program(x).requires_grad


ROWS = torch.tensor([0, 2, 2])
ONTO_EXPANDED = {
    "segment_sum": lambda x, w: ops.segment_sum(x, ROWS, 4)[1:] * x * w,
    "rows": lambda x, w: ops.add_at(ops.broadcast_to(w * 2, (4, 6)), ROWS, x)[1:] * x,
    "columns": lambda x, w: ops.add_at(ops.broadcast_to(w[:, None] * 2, (6, 6)), (slice(None), ROWS), x[:, 0]) * w,
    "a vector": lambda x, w: ops.add_at(ops.broadcast_to(w[0] * 2, (6,)), ROWS, x[:, 0]) * w,
    "set": lambda x, w: ops.set_at(ops.broadcast_to(w * 2, (4, 6)), ROWS[:2], x[:2])[1:] * x,
    "set in a vector": lambda x, w: ops.set_at(ops.broadcast_to(w[0] * 2, (6,)), ROWS[:2], x[:2, 0]) * w,
}


@pytest.mark.long
def test_updates_of_expanded_tensors():
    """PyTorch's compiler writes an update of one row of an expanded tensor to all its rows."""
    random = np.random.default_rng(7)
    x, w = (torch.tensor(random.normal(size=size), requires_grad=True) for size in ((3, 6), (6,)))

    def values_and_gradients(f):
        # A new graph for each output, since compiled code keeps nothing for a second gradient.
        found = [f(x, w)[k] for k in range(len(ONTO_EXPANDED))]
        return [[y, *torch.autograd.grad(y.sum(), (x, w))] for y in found]

    def together(x, w):
        return [f(x, w) for f in ONTO_EXPANDED.values()]

    torch._dynamo.reset()
    compiled = values_and_gradients(torch.compile(together, fullgraph=True))
    for name, got, want in zip(ONTO_EXPANDED, compiled, values_and_gradients(together)):
        torch.testing.assert_close(got, want, msg=lambda text, name=name: f"{name}: {text}")


def test_changing_repeat_counts():
    x = torch.ones(3)
    torch._dynamo.reset()
    repeat = torch.compile(ops.repeat, fullgraph=True, dynamic=True, backend="eager")
    for n in (2, 3, 0):
        assert torch.equal(repeat(x, n), ops.repeat(x, n))
    pad = torch.compile(lambda x, n: ops.pad(x, (n, 0)), fullgraph=True, dynamic=True, backend="eager")
    for n in (2, 3, 0):
        assert torch.equal(pad(x, n), ops.pad(x, (n, 0)))


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning", "kaiser"])
def test_windows_of_symbolic_size(name):
    """The size must stay a number: as a tensor its value would be unknown in a graph."""
    window = (lambda n: ops.kaiser(n, 3.0)) if name == "kaiser" else getattr(ops, name)
    assert graphs_of(window, (5, 6, 7)) == 3  # a window's values are constants of the graph
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x * window(x.shape[0]), fullgraph=True, backend="eager")
    with gradops.config.backend_scope("torch"):
        torch.testing.assert_close(compiled(torch.ones(8)), torch.ones(8) * window(8))
    with pytest.raises(torch._dynamo.exc.Unsupported, match="must be one known number"):
        torch.compile(window, fullgraph=True, backend="eager")(torch.tensor(5))


def test_changing_number_compiles_twice():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    f = torch.compile(
        lambda x, n: ops.where(x > n, ops.minimum(x, n), n) / ops.add(n, x), backend=backend, fullgraph=True
    )
    x = torch.tensor([0.5, 2.0, 3.5])
    for n in (1, 2, 3, 4, 5):
        torch.testing.assert_close(f(x, n), torch.where(x > n, torch.minimum(x, torch.tensor(n)), n) / (n + x))
    assert len(graphs) == 2


@pytest.mark.long
def test_first_use_of_gradops_inside_a_trace():
    """The backend is loaded during tracing, without a Dynamo warning."""
    program = """
import torch, warnings
warnings.simplefilter("error", UserWarning)
from gradops import ops
f = torch.compile(lambda x: ops.exp(x) * 2 + ops.zeros(()), fullgraph=True, backend="eager")
print(f(torch.ones(2, dtype=torch.float64)).sum().item())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(float(done.stdout), 4 * np.e)


@pytest.mark.long
@pytest.mark.parametrize("met", ["ops.stack([x, np.ones(2)])", "ops.convert_to_tensor(np.ones(2)) * x"])
def test_numpy_array_first_seen_in_a_trace(met):
    """Loading NumPy's backend inside the trace must not change the table that Dynamo has already read."""
    program = f"""
import numpy as np, torch
from gradops import ops
f = torch.compile(lambda x: {met}, fullgraph=True, backend="eager")
print(f(torch.ones(2, dtype=torch.float64)).sum().item())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == (4 if "stack" in met else 2)


FLOWS = {
    "custom": (gradops.custom_gradient(lambda x: (ops.sin(x), lambda upstream: upstream * 3.0)), 3.0),
    "reversed": (lambda x: gradops.scaled_gradient(x, -1.0), -1.0),
    "shifted": (lambda x: gradops.scaled_gradient_ext(x, scale=1.0, shift=2.0), 3.0),
}


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("differentiated", [False, True])
@pytest.mark.parametrize("flow", FLOWS)
def test_compiled_flows_in_inference_and_training(flow, differentiated):
    """Covers tensors that require no gradient, as in every model at inference."""
    f, derivative = FLOWS[flow]
    x = torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=differentiated)
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # Dynamo warns about caches that it traces through
        y = torch.compile(f, fullgraph=True, backend="aot_eager")(x)
    np.testing.assert_allclose(y.detach(), f(x).detach())
    assert y.requires_grad == differentiated
    if differentiated:
        np.testing.assert_allclose(torch.autograd.grad(y.sum(), x)[0], [derivative] * 2)


LOSSES = {
    "sparse_categorical_crossentropy": lambda row, t: ops.sparse_categorical_crossentropy(t, ops.softmax(row)),
    "categorical_crossentropy": lambda row, t: ops.categorical_crossentropy(ops.one_hot(t, 4), row, from_logits=True),
    "binary_crossentropy": lambda row, t: ops.sum(ops.binary_crossentropy(ops.one_hot(t, 4), ops.sigmoid(row))),
    "take_along_axis": lambda row, t: ops.sum(ops.take_along_axis(ops.exp(row), ops.expand_dims(t, 0), axis=0)),
    "segment_prod": lambda row, t: ops.sum(ops.segment_prod(row, (torch.arange(4) > t) * 1, num_segments=3)),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_per_sample_gradients(loss):
    from torch.func import grad, jvp, vmap

    f = LOSSES[loss]
    x = torch.rand(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x[0, 1] = 0.0
    t = torch.tensor([1, 0, 3])

    def one(row, target):
        row = row.clone().requires_grad_()
        return torch.autograd.grad(f(row, target), row)[0]

    want = torch.stack([one(row, target) for row, target in zip(x, t)])
    torch.testing.assert_close(vmap(grad(f))(x, t), want)
    moved = vmap(lambda row, target: jvp(lambda r: f(r, target), (row,), (torch.ones_like(row),))[1])(x, t)
    torch.testing.assert_close(moved, want.sum(1))


@pytest.mark.parametrize("use", ["with", "decorator"])
def test_checkpoint_scope_in_a_graph_preserves_gradients(use):
    scoped = gradops.gradient_checkpoint_scope(lambda x: torch.sin(x * 2))

    def f(x):
        if use == "decorator":
            return (scoped(x) * x).sum()
        with gradops.gradient_checkpoint_scope():
            y = torch.sin(x * 2)
        return (y * x).sum()

    x = torch.tensor([0.5, 2.0], requires_grad=True)
    torch._dynamo.reset()
    (got,) = torch.autograd.grad(torch.compile(f, fullgraph=True, backend="aot_eager")(x), x)
    torch.testing.assert_close(got, torch.autograd.grad(f(x), x)[0])


def test_compilation_after_a_checkpoint_scope():
    with gradops.gradient_checkpoint_scope():
        ops.exp(np.ones(2))
    program = torch.compile(lambda x: x + ops.zeros((2,), dtype="float64"), fullgraph=True, backend="eager")
    assert program(torch.ones(2, dtype=torch.float64)).tolist() == [1.0, 1.0]


OWN = {
    "of an operation": gradops.custom_gradient(lambda x: (torch.sin(x), lambda u: u * x)),
    "of its input": gradops.custom_gradient(lambda x: (x, lambda u: u * x)),
    "of a view": gradops.custom_gradient(lambda x: (x.reshape(-1), lambda u: u * x)),
    "of two": lambda x: gradops.custom_gradient(lambda x, y: (x * y, lambda u: (u * y, u)))(x, x * 2),
    "of a pair": lambda x: sum(gradops.custom_gradient(lambda x: ((x * 2, x * 3), lambda u, v: u * x + v))(x)),
    "scaled": lambda x: gradops.scaled_gradient(x, -1.0),
}


@pytest.mark.parametrize("of", OWN)
def test_torch_jit_trace_of_a_module_with_a_parameter(of):
    """Tracing would fix the rule to the example's values."""

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

        def forward(self, x):
            return OWN[of](x * self.weight)

    with pytest.raises(gradops.errors.GradientError, match="torch.jit.trace loses custom and scaled gradients"):
        torch.jit.trace(Layer(), torch.ones(2))
    with torch.no_grad():
        traced = torch.jit.trace(Layer(), torch.ones(2))
    torch.testing.assert_close(traced(torch.tensor([0.3, 0.7])), Layer()(torch.tensor([0.3, 0.7])))


@pytest.mark.filterwarnings("ignore")
def test_torch_jit_trace_keeps_a_gradient_or_raises():
    x, example = torch.tensor([2.0, 3.0]), torch.ones(2)

    def in_scope(x):
        with gradops.stop_gradient_scope():
            y = x * x
        return (x * y).sum()

    own = gradops.custom_gradient(lambda x: (x * x, lambda upstream: upstream * 100.0))
    lost = {
        "stop_gradient_scope": in_scope,
        "custom and scaled gradients": lambda x: own(x).sum(),
        "custom and scaled": lambda x: gradops.scaled_gradient(x, -1.0).sum(),
    }
    for words, f in lost.items():
        for sample in (example, torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2)) * 2):
            with pytest.raises(gradops.errors.GradientError, match=f"torch.jit.trace loses {words}"):
                torch.jit.trace(f, sample)
        with torch.no_grad():
            traced = torch.jit.trace(f, example)
        torch.testing.assert_close(traced(x), f(x))
    for f in (lambda x: (gradops.stop_gradient(x) * x).sum(), gradops.checkpoint(lambda x: torch.sin(x).sum())):
        wanted = gradops.grad(f)(x)
        (found,) = torch.autograd.grad(torch.jit.trace(f, example)(z := x.clone().requires_grad_()), z)
        torch.testing.assert_close(found, wanted)


def test_numpy_host_functions_break_the_graph():
    """A host function, such as R's, runs between two graphs with concrete values and is not traced."""
    traced = []

    def double(x):
        traced.append(torch.compiler.is_compiling())
        return 2 * np.asarray(x)

    double_it = host_function(double, lambda x, upstream: 2 * np.asarray(upstream), "double")
    x = torch.ones(3, requires_grad=True)
    torch.compile(lambda x: (double_it(x * 2) * 3).sum(), backend="eager")(x).backward()
    assert x.grad.tolist() == [12.0] * 3 and traced == [False]


def branches(x):
    first = ops.cond(ops.sum(x) > 0, lambda: {"y": ops.sum(x**2), "x": x}, lambda: {"y": ops.sum(-x), "x": x * 2})
    which = ops.cast(ops.clip(ops.sum(x), 0.0, 2.0), "int32")
    second = ops.switch(which, [lambda v: ops.sum(v**2), lambda v: ops.sum(reversed_(v)), lambda v: ops.sum(-v)], x)
    return ops.sum(first["x"] * first["y"]) + second


def loops(x, bound=None):
    found = ops.while_loop(lambda v, n: ops.sum(v) < 10, lambda v, n: (v * 2 + x, n + 1), (x, 0), bound)
    return ops.sum(found[0]) * found[1]


@gradops.custom_gradient
def reversed_(x):
    return x**3, lambda upstream: -upstream


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("f", [branches, loops, lambda x: loops(x, 3)])
def test_data_dependent_control_flow_is_one_graph(f):
    """Uses ``torch.cond`` and ``torch.while_loop``; gradients, custom ones included, follow the branch taken."""
    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    for value in ([1.0, 2.0, 3.0], [-1.0, -2.0, 3.5], [0.25, 0.5, -0.5], [-9.0, 1.0, 2.0]):
        x = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        if f is loops and sum(value) <= 0:
            continue  # it would not terminate
        wanted = f(x)
        found = compiled(x)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(*[torch.autograd.grad(y, x)[0] for y in (found, wanted)])

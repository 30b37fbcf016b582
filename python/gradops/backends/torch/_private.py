"""PyTorch: every name of its that is not public and that gradops uses, in this file alone."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

import torch
from torch.autograd import forward_ad
from torch.fx import traceback

from .._names import PrivateNames, at
from . import _older

private = PrivateNames("PyTorch", torch.__version__)

SHAPES = "eval_shape"
fake_tensors = private.find(SHAPES, "torch._subclasses.fake_tensor.FakeTensorMode")
"""A scope whose tensors have no values."""

TRANSFORMS = "a custom gradient in torch.func's transforms"
_functorch = "torch._C._functorch"
is_wrapped = private.find(TRANSFORMS, f"{_functorch}.is_functorch_wrapped_tensor")
"""True if a tensor belongs to a transformation in progress, or to one that is over."""
unwrapped = private.find(TRANSFORMS, f"{_functorch}.get_unwrapped")
"""The tensor inside of such a tensor."""
without_dead = private.find(TRANSFORMS, f"{_functorch}.unwrap_if_dead")
"""A tensor without the layer of a transformation that is over."""
level_of = private.find(TRANSFORMS, f"{_functorch}.maybe_get_level")
"""The level of the transformation that a tensor belongs to."""
is_batched = private.find(TRANSFORMS, f"{_functorch}.is_batchedtensor")
"""True if a tensor is a row of a ``vmap``."""
batched_dimension = private.find(TRANSFORMS, f"{_functorch}.maybe_get_bdim")
add_batch_dimension = private.find(TRANSFORMS, f"{_functorch}._add_batch_dim")
"""Where a row's batch has its dimension, and a tensor with one of its dimensions taken for that."""
interpreters = private.find(TRANSFORMS, f"{_functorch}.get_interpreter_stack")
vmap_type = private.find(TRANSFORMS, f"{_functorch}.TransformType.Vmap", ())
vmap_interpreter = private.find(TRANSFORMS, f"{_functorch}.CVmapInterpreterPtr")
"""The transformations in progress, the type of ``vmap``s, and one as a ``vmap``."""
transforms_active = private.find(TRANSFORMS, "torch._C._are_functorch_transforms_active")
"""True if a transformation is in progress."""
tree_leaves = private.find(TRANSFORMS, "torch.utils._pytree.tree_leaves")
"""The leaves of torch's own structures."""


def outside_of_transforms(function: type[torch.autograd.Function]) -> Callable:
    """``function.apply`` without its work at each call for ``torch.func``, or the backward pass's for old names."""
    direct: Callable = getattr(super(torch.autograd.Function, function), "apply", function.apply)
    backward = getattr(function, "_backward_cls", None)
    if backward is not None:
        backward.apply = function.backward  # PyTorch's looks, at each call, which of two names the function has
    return direct


FORWARD = "a scope or custom gradient in forward mode"
forward_mode = private.find(FORWARD, "torch.autograd.forward_ad._set_fwd_grad_enabled", contextlib.nullcontext)
"""A scope in which forward mode is on or off."""
private.find(FORWARD, "torch.autograd.forward_ad._current_level")
set_grad_mode = private.find(FORWARD, "torch._C._set_grad_enabled")
"""The function that ``torch.no_grad()`` and its like call, for modes to see."""
unseen = private.find(FORWARD, "torch._C.DisableTorchFunction", contextlib.nullcontext)
"""A scope whose calls no mode sees."""

ZEROS = "a derivative that is 0, as numbers of another library"
is_zeros = private.find(ZEROS, "torch.Tensor._is_zerotensor", lambda x: False)
"""True if a tensor is zeros without memory, as derivatives around forward mode are: a read finds arbitrary bits."""


def forward_level() -> int:
    """The level of forward mode that is open; -1 without."""
    return forward_ad._current_level


def transforming() -> bool:
    """True if a transformation of ``torch.func`` runs, or a level of forward mode is open."""
    return forward_ad._current_level >= 0 or bool(transforms_active())


def eager() -> bool:
    """True if no transformation runs, no level of forward mode is open, and nothing compiles."""
    return forward_ad._current_level < 0 and not (transforms_active() or _compiling())


_compiling = torch.compiler.is_compiling
_version = tuple(int(part) for part in torch.__version__.split(".")[:2])

traces_custom_gradients = _version >= (2, 12)
"""True if ``torch.compile`` can trace a custom gradient; before, it cannot read the arguments of functions."""

if _version >= (2, 12):
    exporting = torch.compiler.is_exporting
else:
    _flag = "_is_exporting_flag" if hasattr(torch.compiler, "_is_exporting_flag") else "_is_compiling_flag"

    def exporting() -> bool:
        """True if ``torch.export`` traces this: the public function is not there or, in ``torch.compile``, true."""
        return getattr(torch.compiler, _flag)


CUSTOM = "a copy of the upstream gradient for each custom gradient's rule"
lazy_clone = private.find(CUSTOM, "torch._lazy_clone", torch.clone)
"""A copy of a tensor that takes memory once one of the two is written to."""

NESTED = "a derivative inside another one, by a gradient function that reads a tensor from outside"
pass_of_engine = private.find(NESTED, "torch.autograd.graph._engine_run_backward")
"""A backward pass that leaves modes on: outputs, their gradients, whether to keep and record the graph, inputs."""

_is_excluded = private.find(NESTED, "torch._C._dispatch_tls_is_dispatch_key_excluded", lambda key: False)


def below_autograd() -> bool:
    """True if this runs inside an operation, as a ``TorchDispatchMode`` does: nothing is recorded, nor read."""
    return _is_excluded(torch._C.DispatchKey.AutogradFunctionality)


CHECKPOINT = "gradient_checkpoint_scope"
version = private.attribute(CHECKPOINT, "torch.Tensor._version")
"""The number of writes to a tensor."""
base = private.attribute(CHECKPOINT, "torch.Tensor._base")
"""The tensor of which a tensor is a view, or None."""
storage_key = private.attribute(CHECKPOINT, "torch.UntypedStorage._cdata")
"""A storage's address, which its views share."""
schema = private.attribute(CHECKPOINT, "torch._ops.OpOverload._schema", of_objects=True)
"""The arguments of an operator, and which of them it writes to."""
backward_number = private.find(CHECKPOINT, "torch._C._current_graph_task_id")
"""The number of the backward pass in progress; -1 outside of one."""
after_backward = private.find(CHECKPOINT, "torch.autograd.Variable._execution_engine.queue_callback")
"""Have a function called at the end of the backward pass in progress."""
takes_saved_hooks = private.find(CHECKPOINT, "torch._C._autograd._saved_tensors_hooks_is_enabled")
"""True if hooks for saved tensors are allowed here; torch.func's transforms take none."""
top_saved_hooks = at("torch._C._autograd._top_saved_tensors_default_hooks") or _older.observed_hooks()
"""The innermost pair of hooks for saved tensors, or None."""
end_of_recomputation = private.find(CHECKPOINT, "torch.utils.checkpoint._StopRecomputationError", RecursionError)
"""The exception that ends a checkpointed function that runs again, once its stored values are there."""


def keeps_an_input(x) -> bool:
    """True if a checkpoint made ``x`` to keep an input, before PyTorch 2.12 beside a leaf of its own, made for that."""
    return type(x.grad_fn).__name__ == "_NoopSaveInputsBackward"


has_accelerator = at("torch.accelerator.is_available") or (lambda: True)
"""True if there is a device beside the CPU; taken for granted before PyTorch 2.6."""
exclude_keys = private.find(CHECKPOINT, "torch._C._SetExcludeDispatchKeyGuard")
dispatch_keys = private.find(CHECKPOINT, "torch._C.DispatchKey", ())
"""A scope in which the dispatcher leaves a layer out, and the layers."""
_Mode = private.find(CHECKPOINT, "torch.utils._python_dispatch.TorchDispatchMode", object)
_frames = at("torch._C._dynamo.eval_frame")


_compiles_frames = at("torch._C._dynamo.eval_frame.get_eval_frame_callback") or (lambda: True)


def within_compiled() -> bool:
    """True in a function of ``torch.compile``, whose graph ends before the call that leads here, which Python makes."""
    if _compiling():
        torch._dynamo.graph_break()
    return _compiles_frames() not in (None, False)


class DispatchMode(_Mode):  # type: ignore[valid-type]
    """The class of scopes that see every operation below autograd."""

    # `torch.compile` must not trace what a scope does. PyTorch sees to that by a function around `__torch_dispatch__`,
    # a third of what a scope costs at each operation; the code can be marked once instead, with all that it calls.
    if hasattr(_Mode, "_should_skip_dynamo") and hasattr(_frames, "set_code_exec_strategy"):

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False

        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(**kwargs)
            skipped = _frames._FrameExecStrategy(_frames._FrameAction.SKIP, _frames._FrameAction.SKIP)
            _frames.set_code_exec_strategy(cls.__torch_dispatch__.__code__, skipped)


ANOMALY = "the R call that an operation was made by, in anomaly mode"
_own_stack = private.find(ANOMALY, "torch.fx.traceback.format_stack", list)


def set_stack(describe: Callable[[], str | None] | None) -> None:
    """Have torch take ``describe()`` for where a forward call is; without, or where it is None, Python's stack."""

    def format_stack() -> list[str]:
        described = None if describe is None else describe()
        return _own_stack() if described is None else [described]

    if private.supported(ANOMALY):
        traceback.format_stack = _own_stack if describe is None else format_stack


PICTURE = "a picture of a graph"
_metadata = private.attribute(PICTURE, "torch.autograd.graph.Node._input_metadata", of_objects=True)


def results_of(node) -> tuple:
    """The shapes and dtypes of a node's results; none for nodes that Python made."""
    return _metadata(node) if hasattr(node, "_input_metadata") else ()


def _tracing():
    """The module of ``make_fx``, which traces nothing before it is imported, or None."""
    return sys.modules.get("torch.fx.experimental.proxy_tensor")


def graph_in_progress():
    """The mode in which ``make_fx`` writes operations down, or None."""
    tracing = _tracing()
    return tracing and tracing.get_innermost_proxy_mode()


def is_traced(x) -> bool:
    """True if a graph is being traced in which ``x`` is not a constant."""
    mode = graph_in_progress()
    return mode is not None and _tracing().get_proxy_slot(x, mode.tracer, None) is not None


GRAPH = "graphs traced in less time"
_tracing_scope = private.find(GRAPH, "torch._guards.tracing")
_tracing_context = private.find(GRAPH, "torch._guards.TracingContext")


def described_by_one_mode():
    """A scope in which ``make_fx`` describes its results with one mode, for each of which it would make one.

    Making the mode took half the time of a trace.
    """
    if not private.supported(GRAPH):
        return contextlib.nullcontext()
    return _tracing_scope(_tracing_context(fake_tensors(allow_fallback_kernels=True)))


def outside_of_graph(function: Callable, x):
    """``function(x)`` of the value that a tensor has while a graph is being traced, written down nowhere."""
    with _tracing().disable_proxy_modes_tracing():
        return function(x)


def depends_on_inputs(x) -> bool:
    """True if ``x`` is computed from the inputs of a graph that is being traced."""
    mode = graph_in_progress()
    slot = mode and _tracing().get_proxy_slot(x, mode.tracer, None)
    nodes, seen = ([] if slot is None else [slot.proxy.node]), set()
    while nodes:
        node = nodes.pop()
        if node.op == "placeholder":
            return True
        if node not in seen:
            seen.add(node)
            nodes += node.all_input_nodes
    return False


def untraced():
    """A scope in which ``make_fx`` writes nothing down: tensors made there are constants to its graphs."""
    return getattr(_tracing(), "disable_proxy_modes_tracing", contextlib.nullcontext)()


ATTENTION = "fused attention that can be differentiated twice, on the CPU"
_choice = private.find(ATTENTION, "torch._fused_sdp_choice")
_fused = private.find(ATTENTION, "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu")
_fused_backward = private.find(ATTENTION, "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward")
_FLASH = 1  # torch.nn.attention.SDPBackend.FLASH_ATTENTION's number


def is_fused_on_cpu(query, key, value, options: dict) -> bool:
    """True if PyTorch takes its fused kernel for the CPU, which has gradients for its inputs alone."""
    mask = options["attn_mask"]
    return (
        private.supported(ATTENTION)
        and query.device.type == "cpu"
        and not torch.is_autocast_enabled("cpu")
        and not options["enable_gqa"]
        and not (mask is not None and mask.requires_grad)
        and any(x.requires_grad for x in (query, key, value))
        and _choice(query, key, value, mask, 0.0, options["is_causal"], scale=options["scale"]) == _FLASH
    )


def fused_attention(query, key, value, options: dict) -> tuple:
    """The result of attention, and the other tensors that its backward pass needs."""
    return _fused(query, key, value, 0.0, options["is_causal"], attn_mask=options["attn_mask"], scale=options["scale"])


def fused_gradients(upstream, query, key, value, result, others: list, options: dict) -> tuple:
    """The gradients for query, key and value."""
    how = {"attn_mask": options["attn_mask"], "scale": options["scale"]}
    return _fused_backward(upstream, query, key, value, result, *others, 0.0, options["is_causal"], **how)

"""All names of PyTorch that gradops uses and that are not public, by feature."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

import torch
from torch.autograd import forward_ad
from torch.fx import traceback

from .._names import PrivateNames, resolve
from . import _older

private = PrivateNames("PyTorch", torch.__version__)

SHAPES = "eval_shape"
fake_tensors = private.find(SHAPES, "torch._subclasses.fake_tensor.FakeTensorMode")
"""A scope whose tensors have shapes but no values."""

TRANSFORMS = "a custom gradient in torch.func's transforms"
_functorch = "torch._C._functorch"
is_wrapped = private.find(TRANSFORMS, f"{_functorch}.is_functorch_wrapped_tensor")
"""True if a tensor belongs to a transform that is in progress or has ended."""
unwrapped = private.find(TRANSFORMS, f"{_functorch}.get_unwrapped")
"""The tensor inside a wrapped tensor."""
without_dead = private.find(TRANSFORMS, f"{_functorch}.unwrap_if_dead")
"""A tensor without the wrapper of a transform that has ended."""
level_of = private.find(TRANSFORMS, f"{_functorch}.maybe_get_level")
"""The level of the transform that a tensor belongs to."""
is_batched = private.find(TRANSFORMS, f"{_functorch}.is_batchedtensor")
"""True if a tensor is batched by a ``vmap``."""
batched_dimension = private.find(TRANSFORMS, f"{_functorch}.maybe_get_bdim")
add_batch_dimension = private.find(TRANSFORMS, f"{_functorch}._add_batch_dim")
"""The position of a batched tensor's batch dimension, and a batched tensor made from one with that dimension."""
interpreters = private.find(TRANSFORMS, f"{_functorch}.get_interpreter_stack")
vmap_type = private.find(TRANSFORMS, f"{_functorch}.TransformType.Vmap", ())
vmap_interpreter = private.find(TRANSFORMS, f"{_functorch}.CVmapInterpreterPtr")
"""The transforms in progress, the transform type of ``vmap``, and a transform's ``vmap`` interpreter."""
transforms_active = private.find(TRANSFORMS, "torch._C._are_functorch_transforms_active")
"""True if a transform is in progress."""
tree_leaves = private.find(TRANSFORMS, "torch.utils._pytree.tree_leaves")
"""The leaves of torch's pytrees."""


def outside_of_transforms(function: type[torch.autograd.Function]) -> Callable:
    """``function.apply`` without the work that each call does for ``torch.func`` and for old names of methods."""
    direct: Callable = getattr(super(torch.autograd.Function, function), "apply", function.apply)
    backward = getattr(function, "_backward_cls", None)
    if backward is not None:
        backward.apply = function.backward  # PyTorch's own looks up `backward` or `vjp` at each call
    return direct


FORWARD = "a scope or custom gradient in forward mode"
forward_mode = private.find(FORWARD, "torch.autograd.forward_ad._set_fwd_grad_enabled", contextlib.nullcontext)
"""A scope in which forward mode is on or off."""
private.find(FORWARD, "torch.autograd.forward_ad._current_level")
set_grad_mode = private.find(FORWARD, "torch._C._set_grad_enabled")
"""The function that ``torch.no_grad()`` and similar scopes call; modes can intercept it."""
unseen = private.find(FORWARD, "torch._C.DisableTorchFunction", contextlib.nullcontext)
"""A scope whose calls are hidden from modes."""

ZEROS = "a derivative that is 0, as numbers of another library"
is_zeros = private.find(ZEROS, "torch.Tensor._is_zerotensor", lambda x: False)
"""True for zeros without memory, which occur as derivatives in forward mode; reading one gives arbitrary bits."""


def forward_level() -> int:
    """The innermost open level of forward mode; -1 if none is open."""
    return forward_ad._current_level


def transforming() -> bool:
    """True if a ``torch.func`` transform runs or a level of forward mode is open."""
    return forward_ad._current_level >= 0 or bool(transforms_active())


def eager() -> bool:
    """True if no transform runs, no level of forward mode is open, and nothing is being compiled."""
    return forward_ad._current_level < 0 and not (transforms_active() or _compiling())


_compiling = torch.compiler.is_compiling
_version = tuple(int(part) for part in torch.__version__.split(".")[:2])

traces_custom_gradients = _version >= (2, 12)
"""True if ``torch.compile`` can trace a custom gradient; older versions cannot read the function's arguments."""

if _version >= (2, 12):
    exporting = torch.compiler.is_exporting
else:
    _flag = "_is_exporting_flag" if hasattr(torch.compiler, "_is_exporting_flag") else "_is_compiling_flag"

    def exporting() -> bool:
        """True if ``torch.export`` traces this; in older versions the public function is absent or too broad."""
        return getattr(torch.compiler, _flag)


CUSTOM = "a copy of the upstream gradient for each custom gradient's rule"
lazy_clone = private.find(CUSTOM, "torch._lazy_clone", torch.clone)
"""A copy of a tensor that takes memory only once one of the two is written to."""

NESTED = "a derivative inside another one, by a gradient function that reads a tensor from outside"
pass_of_engine = private.find(NESTED, "torch.autograd.graph._engine_run_backward")
"""A backward pass that leaves modes on: outputs, their gradients, whether to keep and record the graph, inputs."""

_is_excluded = private.find(NESTED, "torch._C._dispatch_tls_is_dispatch_key_excluded", lambda key: False)


def is_below_autograd() -> bool:
    """True inside an operation, as in a ``TorchDispatchMode``: nothing is recorded there."""
    return _is_excluded(torch._C.DispatchKey.AutogradFunctionality)


CHECKPOINT = "gradient_checkpoint_scope"
version = private.attribute(CHECKPOINT, "torch.Tensor._version")
"""The number of in-place writes to a tensor."""
base = private.attribute(CHECKPOINT, "torch.Tensor._base")
"""The tensor that a view was made from, or None."""
storage_key = private.attribute(CHECKPOINT, "torch.UntypedStorage._cdata")
"""A storage's address; views share it."""
schema = private.attribute(CHECKPOINT, "torch._ops.OpOverload._schema", of_objects=True)
"""The arguments of an operator, with those that it writes to."""
backward_number = private.find(CHECKPOINT, "torch._C._current_graph_task_id")
"""The number of the backward pass in progress; -1 outside of one."""
after_backward = private.find(CHECKPOINT, "torch.autograd.Variable._execution_engine.queue_callback")
"""Call a function at the end of the backward pass in progress."""
takes_saved_hooks = private.find(CHECKPOINT, "torch._C._autograd._saved_tensors_hooks_is_enabled")
"""True if hooks for saved tensors are allowed here; ``torch.func``'s transforms forbid them."""
top_saved_hooks = resolve("torch._C._autograd._top_saved_tensors_default_hooks") or _older.observed_hooks()
"""The innermost pair of hooks for saved tensors, or None."""
end_of_recomputation = private.find(CHECKPOINT, "torch.utils.checkpoint._StopRecomputationError", RecursionError)
"""The exception that stops a checkpointed function's recomputation once all saved values are recomputed."""


def keeps_an_input(x) -> bool:
    """True if ``x`` is a checkpoint's saved input; before PyTorch 2.12 a checkpoint also makes a leaf for it."""
    return type(x.grad_fn).__name__ == "_NoopSaveInputsBackward"


has_accelerator = resolve("torch.accelerator.is_available") or (lambda: True)
"""True if there is a device other than the CPU; assumed before PyTorch 2.6."""
exclude_keys = private.find(CHECKPOINT, "torch._C._SetExcludeDispatchKeyGuard")
dispatch_keys = private.find(CHECKPOINT, "torch._C.DispatchKey", ())
"""A scope in which the dispatcher skips a layer, and the layers."""
_Mode = private.find(CHECKPOINT, "torch.utils._python_dispatch.TorchDispatchMode", object)
_frames = resolve("torch._C._dynamo.eval_frame")


_compiles_frames = resolve("torch._C._dynamo.eval_frame.get_eval_frame_callback") or (lambda: True)


def is_called_from_compiled() -> bool:
    """True in Python code called from a ``torch.compile``d function after a graph break."""
    if _compiling():
        torch._dynamo.graph_break()
    return _compiles_frames() not in (None, False)


class DispatchMode(_Mode):  # type: ignore[valid-type]
    """The base class of scopes that intercept every operation below autograd."""

    # Dynamo must not trace what a scope does. PyTorch wraps `__torch_dispatch__` in a function for that, a third of the
    # cost of a scope at each operation; marking the method's code once also covers everything that it calls.
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
    """Report ``describe()`` as the place of a forward call; if it is absent or returns None, Python's stack."""

    def format_stack() -> list[str]:
        described = None if describe is None else describe()
        return _own_stack() if described is None else [described]

    if private.supported(ANOMALY):
        traceback.format_stack = _own_stack if describe is None else format_stack


PICTURE = "a picture of a graph"
_metadata = private.attribute(PICTURE, "torch.autograd.graph.Node._input_metadata", of_objects=True)


def results_of(node) -> tuple:
    """The shapes and dtypes of a node's results; empty for nodes that Python functions made."""
    return _metadata(node) if hasattr(node, "_input_metadata") else ()


def _tracing():
    """The module of ``make_fx``; None if it is not imported, and so nothing is being traced."""
    return sys.modules.get("torch.fx.experimental.proxy_tensor")


def graph_in_progress():
    """The mode that ``make_fx`` records operations with, or None."""
    tracing = _tracing()
    return tracing and tracing.get_innermost_proxy_mode()


def is_traced(x) -> bool:
    """True if a graph is being traced and ``x`` is not a constant of it."""
    mode = graph_in_progress()
    return mode is not None and _tracing().get_proxy_slot(x, mode.tracer, None) is not None


GRAPH = "graphs traced in less time"
_tracing_scope = private.find(GRAPH, "torch._guards.tracing")
_tracing_context = private.find(GRAPH, "torch._guards.TracingContext")


def described_by_one_mode():
    """A scope that lets ``make_fx`` use one fake-tensor mode for all results, instead of a new one for each.

    Creating these modes took half the time of a trace.
    """
    if not private.supported(GRAPH):
        return contextlib.nullcontext()
    return _tracing_scope(_tracing_context(fake_tensors(allow_fallback_kernels=True)))


def outside_of_graph(function: Callable, x):
    """``function(x)`` on the value that a tensor has during a trace, without recording it."""
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
    """A scope that stops the recording of ``make_fx``: tensors made in it are constants of its graph."""
    return getattr(_tracing(), "disable_proxy_modes_tracing", contextlib.nullcontext)()


ATTENTION = "fused attention that can be differentiated twice, on the CPU"
_choice = private.find(ATTENTION, "torch._fused_sdp_choice")
_fused = private.find(ATTENTION, "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu")
_fused_backward = private.find(ATTENTION, "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward")
_FLASH = 1  # torch.nn.attention.SDPBackend.FLASH_ATTENTION's number


def is_fused_on_cpu(query, key, value, options: dict) -> bool:
    """True if PyTorch uses its fused CPU kernel, which has gradients for query, key and value only."""
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

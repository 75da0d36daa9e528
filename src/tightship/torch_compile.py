"""Runs `torch.compile(module, backend="tightship")`: graphs of AOT autograd in planned memory.

The forward and the backward pass of a graph are one program, which keeps one arena from the start
of the forward pass to the end of the backward pass. Parameters remain torch's tensors and are read
in place.
"""

import atexit
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.nn.attention import SDPBackend, sdpa_kernel

from tightship.errors import GraphError, InputError
from tightship.frontend.torch.decompose import decompositions_of_training
from tightship.frontend.torch.joint import JointGraph, halves, joint_graph
from tightship.frontend.torch.traced import TracedGraph, traced_graph
from tightship.graph.backward import with_dropout
from tightship.loading import load_graph
from tightship.training.open_steps import OpenSteps
from tightship.training.planned import Terms
from tightship.training.split_step import Parts, SplitStep

__all__ = ["Compiled", "compile_graph"]

Array = NDArray[Any]
Compiled = Callable[..., Any]
"""Function that runs a graph: tensors in, a list of tensors out."""
_NOTHING: Array = np.zeros(0, np.int64)
Tensors = list[torch.Tensor | None]

_STEPS = OpenSteps()
atexit.register(_STEPS.close)

RECOMPUTE = 0.05
"""Default share of a training step's operations that may be recomputed to save memory."""


def compile_graph(
    module: torch.fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    *,
    options: Mapping[str, float] | None = None,
) -> Compiled:
    """Compile one graph of a program; `torch.compile` calls this under the name `tightship`.

    Inference, and the forward and backward pass of training, run on the kernels of `load` with as
    many threads as torch has. Torch itself runs a graph that cannot be translated; a
    `RuntimeWarning` then names the operator. Each set of input shapes has a graph of its own.

    Args:
        module: The graph.
        inputs: Examples of the graph's inputs.
        options: `recompute`: the share of a training step's operations, from 0 to 1, that may be
            recomputed so that fewer values are kept for the backward pass; `RECOMPUTE` if not
            given.

    Returns:
        A callable with the inputs and outputs of the graph.

    Raises:
        InputError: An option is unknown, or `recompute` is not a share.
    """
    terms = _terms(options or {})
    _fix_lengths(inputs)
    training = _Training(terms)
    by_autograd = aot_autograd(
        fw_compiler=training.forward,
        bw_compiler=training.backward,
        inference_compiler=_compiled,
        partition_fn=training.partition,
        decompositions=decompositions_of_training(),
    )
    # The math backend decomposes attention into matrix products, whose gradients we have.
    with sdpa_kernel(SDPBackend.MATH):
        compiled: Compiled = by_autograd(module, inputs)
    return compiled


def _terms(options: Mapping[str, float]) -> Terms:
    unknown = options.keys() - {"recompute"}
    if unknown:
        raise InputError(f"Unknown option `{min(unknown)}`; the only option is `recompute`.")
    share = options.get("recompute", RECOMPUTE)
    return Terms(threads=torch.get_num_threads(), recompute=share)


def _fix_lengths(inputs: Sequence[object]) -> None:
    """Specialize the graph to the lengths of these inputs: each set of lengths has its plan."""
    # `int` of a symbolic length adds a guard, so that torch compiles again for another length.
    for each in inputs:
        if isinstance(each, torch.SymInt):
            int(each)
        elif isinstance(each, torch.Tensor):
            for length in each.shape:
                int(length)


@dataclass(slots=True)
class _Training:
    """State that AOT autograd's calls for one graph share: its forward and backward pass."""

    terms: Terms
    joint: JointGraph | None = None
    step: SplitStep | None = None
    drops: str = ""

    def partition(
        self,
        module: torch.fx.GraphModule,
        inputs: Sequence[object],
        *,
        num_fwd_outputs: int,
        **more: object,
    ) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
        """Split the joint graph of both passes into a forward and a backward graph."""
        try:
            with unset_fake_temporarily():
                self._plan(joint_graph(module, num_fwd_outputs))
        except (GraphError, InputError) as error:
            warnings.warn(
                f"The forward and the backward pass run as two programs: {error}", RuntimeWarning, 2
            )
            parted = default_partition(module, inputs, num_fwd_outputs=num_fwd_outputs, **more)
            forward, backward = parted
            return forward, backward
        assert self.step is not None
        assert self.joint is not None
        return halves(self.joint, [name for name in self.step.saved if name != self.drops])

    def _plan(self, joint: JointGraph) -> None:
        graph, self.drops = with_dropout(joint.traced.graph)
        parts = Parts(joint.early, joint.late)
        self.step = SplitStep(graph, parts, self.terms, _STEPS.arenas)
        _STEPS.close_after(self.step, self.step.program.close)
        self.joint = joint

    def forward(self, module: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Compiled:
        """Compile the forward pass."""
        if self.step is None or self.joint is None:
            return _compiled(module, inputs)
        step, joint = self.step, self.joint
        names = {n: at for n, at in joint.traced.inputs.items() if n not in joint.late}
        wanted = joint.traced.outputs[: joint.forward_outputs]
        saved = [name for name in step.saved if name != self.drops]

        def run(operands: list[torch.Tensor]) -> Tensors:
            given = {name: _array(operands[at]) for name, at in names.items()}
            by_name = {name: operands[at] for name, at in names.items()}
            operands.clear()
            drawn = torch.randint(1 << 31, (2,)).numpy() if self.drops else _NOTHING
            if self.drops:
                given[self.drops] = drawn
            _STEPS.end_forgotten()
            made = _room(joint.traced, wanted)
            token = _STEPS.token(step.forward(given, _arrays(made)), drawn)
            by_name.update(made)
            kept = [by_name[name] for name in saved]
            return [*_in_order(made, wanted), *kept, torch.from_numpy(token)]

        return _boxed(run)

    def backward(self, module: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Compiled:
        """Compile the backward pass."""
        if self.step is None or self.joint is None:
            return _compiled(module, inputs)
        step, joint = self.step, self.joint
        wanted = joint.traced.outputs[joint.forward_outputs :]
        saved = [name for name in step.saved if name != self.drops]
        draws_again = self.drops in step.saved
        first = len(saved) + 1 - joint.forward_inputs
        late = {name: first + joint.traced.inputs[name] for name in joint.late}

        def run(operands: list[torch.Tensor]) -> Tensors:
            given = {name: _array(operand) for name, operand in zip(saved, operands, strict=False)}
            given |= {name: _array(operands[at]) for name, at in late.items()}
            token = operands[len(saved)].numpy().copy()
            if draws_again:
                given[self.drops] = token[1:]
            keeps = torch._C._autograd._get_current_graph_task_keep_graph()
            begun = _STEPS.found(token, keeps=keeps)
            operands.clear()
            _STEPS.end_forgotten()
            made = _room(joint.traced, wanted)
            step.backward(begun, given, _arrays(made), keeps=keeps)
            return _in_order(made, wanted)

        return _boxed(run)


def _compiled(module: torch.fx.GraphModule, _: Sequence[torch.Tensor]) -> Compiled:
    """Compile one graph without gradients; torch runs it if it cannot be translated."""
    try:
        with unset_fake_temporarily():  # constants such as masks and positions need real values
            traced = traced_graph(module)
        threads = torch.get_num_threads()
        model = load_graph(traced.graph, "compiled graph", threads, _STEPS.arenas)
    except (GraphError, InputError) as error:
        warnings.warn(f"Torch runs a graph instead of Tightship: {error}", RuntimeWarning, 2)
        return _boxed(lambda operands: module(*operands))

    def run(operands: list[torch.Tensor]) -> Tensors:
        given = {name: _array(operands[at]) for name, at in traced.inputs.items()}
        operands.clear()
        _STEPS.end_forgotten()
        made = _room(traced, traced.outputs)
        model.run(given, outputs=_arrays(made))
        return _in_order(made, traced.outputs)

    _STEPS.close_after(run, model.close)
    return _boxed(run)


def _array(tensor: torch.Tensor) -> Array:
    array: Array = tensor.detach().contiguous().numpy()
    return array


def _room(traced: TracedGraph, wanted: Sequence[str | None]) -> dict[str, torch.Tensor]:
    """Allocate tensors for outputs, by name."""
    made = {}
    for name in filter(None, wanted):
        value = traced.graph.value(name)
        assert value.dtype is not None, value
        made[name] = torch.from_numpy(np.empty(value.static_shape, value.dtype.numpy))
    return made


def _arrays(tensors: Mapping[str, torch.Tensor]) -> dict[str, Array]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def _in_order(made: Mapping[str, torch.Tensor], wanted: Sequence[str | None]) -> Tensors:
    return [None if name is None else made[name] for name in wanted]


def _boxed(run: Callable[[list[torch.Tensor]], Any]) -> Compiled:
    """Mark a function as taking one list, which it may clear to release tensors early."""
    run._boxed_call = True  # type: ignore[attr-defined]
    return run

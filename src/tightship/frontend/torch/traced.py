"""Translation of a graph of AOT autograd, which has no signature."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter

import torch
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.utils._pytree import arg_tree_leaves

from tightship.frontend.torch.refusal import refused
from tightship.frontend.torch.table import TRANSLATIONS_OF_TRAINING
from tightship.frontend.torch.translate import Translator
from tightship.graph import Graph


@dataclass(frozen=True, slots=True)
class TracedGraph:
    """Translated graph.

    Attributes:
        graph: Translation.
        inputs: Position of each input in the traced graph; unread ones are omitted.
        outputs: Outputs in the order of the traced graph; None for a missing one.
    """

    graph: Graph
    inputs: Mapping[str, int]
    outputs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class _Program:
    """Traced graph with the interface of a program for the translator."""

    graph: torch.fx.Graph
    graph_signature: ExportGraphSignature
    state_dict: Mapping[str, torch.Tensor] = field(default_factory=dict)
    constants: Mapping[str, torch.Tensor] = field(default_factory=dict)


def traced_graph(module: torch.fx.GraphModule) -> TracedGraph:
    """Translate a graph of tensors.

    Raises:
        GraphError: An operator has no translation, or an input is not a tensor of fixed shape.
    """
    places = list(module.graph.find_nodes(op="placeholder"))
    wanted = results_of(module)
    for node in [*filter(_is_read, places), *filter(None, wanted)]:
        _check(node)
    signature = ExportGraphSignature(
        [
            InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None)
            for node in places
            if _is_read(node)
        ],
        [
            OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None)
            for node in wanted
            if node is not None
        ],
    )
    attributes = {node.target for node in module.graph.find_nodes(op="get_attr")}
    held = {name: attrgetter(name)(module) for name in attributes}
    program = _Program(module.graph, signature, constants=held)
    graph = Translator(program, table=TRANSLATIONS_OF_TRAINING).graph()
    names = iter(graph.outputs)
    return TracedGraph(
        graph,
        {node.name: place for place, node in enumerate(places) if node.name in graph.inputs},
        tuple(None if node is None else next(names) for node in wanted),
    )


def results_of(module: torch.fx.GraphModule) -> list[torch.fx.Node | None]:
    """Return the outputs of a traced graph; None for a missing one.

    Raises:
        GraphError: An output is a number.
    """
    (output,) = module.graph.find_nodes(op="output")
    found: list[torch.fx.Node | None] = arg_tree_leaves(*output.args)
    for each in found:
        if not isinstance(each, torch.fx.Node | None):
            raise refused(output, f"gives the number `{each}`", "return tensors")
    return found


def _is_read(node: torch.fx.Node) -> bool:
    """Whether an input is a tensor or unknown number; known numbers are part of the nodes."""
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt):
        return not value.node.expr.is_number
    return not isinstance(value, int)


def _check(node: torch.fx.Node) -> None:
    """Check that a node's tensor can be an array of NumPy.

    Raises:
        GraphError: It is not a tensor, is not in the processor's memory, or NumPy lacks its type.
    """
    tensor = node.meta.get("val")
    if not isinstance(tensor, torch.Tensor):
        raise refused(node, "is not a tensor", "compile a module of tensors")
    if tensor.device.type != "cpu" or tensor.dtype is torch.bfloat16:
        kind = f"{str(tensor.dtype).removeprefix('torch.')} on `{tensor.device}`"
        raise refused(node, f"is {kind}", "compile a module of float32 on the processor")

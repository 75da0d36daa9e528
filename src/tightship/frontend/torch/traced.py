"""A graph of AOT autograd, which has no signature, as a graph of ONNX's operators."""

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
    """A translated graph.

    Attributes:
        graph: What it computes.
        inputs: Places of its inputs among those of the traced graph; what nobody reads has none.
        outputs: Its outputs in the order of the traced graph; None where that gives none.
    """

    graph: Graph
    inputs: Mapping[str, int]
    outputs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class _Program:
    """A traced graph as a translator takes a program."""

    graph: torch.fx.Graph
    graph_signature: ExportGraphSignature
    state_dict: Mapping[str, torch.Tensor] = field(default_factory=dict)
    constants: Mapping[str, torch.Tensor] = field(default_factory=dict)


def traced_graph(module: torch.fx.GraphModule) -> TracedGraph:
    """Translate a graph of tensors.

    Raises:
        GraphError: An operator has no translation, or an input is no tensor of fixed shape.
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
    """What a traced graph gives, one after another; None where it gives nothing.

    Raises:
        GraphError: A number is among them.
    """
    (output,) = module.graph.find_nodes(op="output")
    found: list[torch.fx.Node | None] = arg_tree_leaves(*output.args)
    for each in found:
        if not isinstance(each, torch.fx.Node | None):
            raise refused(output, f"gives the number `{each}`", "return tensors")
    return found


def _is_read(node: torch.fx.Node) -> bool:
    """Whether an input is a tensor; a number that is known is in the nodes that would read it."""
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt):
        return not value.node.expr.is_number
    return not isinstance(value, int)


def _check(node: torch.fx.Node) -> None:
    """Refuse what has no array of NumPy.

    Raises:
        GraphError: It is no tensor, one elsewhere, or of a type that NumPy has not.
    """
    tensor = node.meta.get("val")
    if not isinstance(tensor, torch.Tensor):
        raise refused(node, "is no tensor", "compile a module that takes and gives tensors")
    if tensor.device.type != "cpu" or tensor.dtype is torch.bfloat16:
        kind = f"{str(tensor.dtype).removeprefix('torch.')} on `{tensor.device}`"
        raise refused(node, f"is {kind}", "compile a module of float32 on the processor")

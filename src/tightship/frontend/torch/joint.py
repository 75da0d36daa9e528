"""Joint graphs of AOT autograd, forward and backward path of a module, as one graph."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tightship.frontend.torch.traced import TracedGraph, results_of, traced_graph

TANGENTS = "tangents"
"""Part of AOT autograd's names of gradients of forward outputs, inputs of the backward path."""


@dataclass(frozen=True, slots=True)
class JointGraph:
    """Translated joint graph.

    Attributes:
        module: Traced graph.
        traced: Translation of the graph.
        forward_outputs: Number of outputs of the forward path.
        forward_inputs: Number of inputs of the forward path.
    """

    module: torch.fx.GraphModule
    traced: TracedGraph
    forward_outputs: int
    forward_inputs: int

    @property
    def early(self) -> tuple[str, ...]:
        """Outputs of the forward path."""
        return tuple(filter(None, self.traced.outputs[: self.forward_outputs]))

    @property
    def late(self) -> tuple[str, ...]:
        """Inputs of the backward path."""
        inputs = self.traced.inputs
        return tuple([name for name, place in inputs.items() if place >= self.forward_inputs])


def joint_graph(module: torch.fx.GraphModule, forward_outputs: int) -> JointGraph:
    """Translate a joint graph.

    Args:
        module: Graph that AOT autograd passes to a partitioner.
        forward_outputs: Number of outputs of the forward path.

    Raises:
        GraphError: As from `traced_graph`.
    """
    places = module.graph.find_nodes(op="placeholder")
    early = sum(TANGENTS not in str(node.target) for node in places)
    return JointGraph(module, traced_graph(module), forward_outputs, early)


def halves(
    joint: JointGraph, saved: Sequence[str]
) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
    """Return graphs with inputs and outputs of both paths, but without their computation.

    The forward one returns its outputs, then what autograd must keep: the inputs and outputs in
    `saved`, and a token for the rest. The token is typed as a view of an input, so that AOT
    autograd does not take it for a buffer that can be used only once.
    """
    places = list(joint.module.graph.find_nodes(op="placeholder"))
    results = results_of(joint.module)
    traced, count = joint.traced, joint.forward_outputs
    of_name = dict(zip(traced.outputs, results, strict=True))
    of_name |= {name: places[place] for name, place in traced.inputs.items()}
    kept = list(filter(None, [of_name[name] for name in saved]))
    begins, goes_on = torch.fx.Graph(), torch.fx.Graph()
    known = {each: _copied(begins, each, each.name) for each in places[: joint.forward_inputs]}
    for each in filter(None, results[:count]):
        if each not in known:
            known[each] = _made(begins, each, next(iter(known.values())))
    token = _made(begins, places[0], known[places[0]])
    early = [None if each is None else known[each] for each in results[:count]]
    begins.output((*early, *[known[each] for each in kept], token))
    for each in kept:
        _copied(goes_on, each, f"saved_{each.name}")
    first = _copied(goes_on, places[0], "saved_step")
    for each in places[joint.forward_inputs :]:
        _copied(goes_on, each, each.name)
    late = [None if each is None else _made(goes_on, each, first) for each in results[count:]]
    goes_on.output(tuple(late))
    return torch.fx.GraphModule({}, begins), torch.fx.GraphModule({}, goes_on)


def _copied(graph: torch.fx.Graph, node: torch.fx.Node, name: str) -> torch.fx.Node:
    place = graph.placeholder(name)
    place.meta = dict(node.meta)
    return place


def _made(graph: torch.fx.Graph, node: torch.fx.Node, of: torch.fx.Node) -> torch.fx.Node:
    """Add a node in place of another one's result."""
    made = graph.call_function(torch.ops.aten.alias.default, (of,))
    made.meta = {"val": node.meta["val"]}
    return made

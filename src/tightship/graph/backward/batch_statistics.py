"""Rewrites batch normalizations to write the statistics of the batch, as in training."""

from dataclasses import dataclass, field, replace

import numpy as np

from tightship.graph.backward.operators import DOMAIN
from tightship.graph.backward.tape import OPSET
from tightship.graph.constant import Constant, Inline
from tightship.graph.ir import Graph, Node, Value
from tightship.graph.new_names import NewNames

TRAINING_FORM = "BatchNormalizationTraining"


def with_batch_statistics(graph: Graph, *, training_only: bool = False) -> Graph:
    """Rewrite batch normalizations to training form.

    Each becomes `BatchNormalizationTraining`, which normalizes by the statistics of the batch and
    writes them: `<y>.mean` and `<y>.variance`, numbered if those names are taken. Running
    statistics that a node writes follow from these by ONNX's formula.

    Args:
        graph: Graph to rewrite.
        training_only: Whether to rewrite only nodes with `training_mode=1`, which keep their
            results; if False, those of inference too, whose results change.
    """
    if not any(_is_changed(node, training_only=training_only) for node in graph.nodes):
        return graph
    change = _Change(graph, NewNames(graph))
    for node in graph.nodes:
        if _is_changed(node, training_only=training_only):
            change.normalize(node)
        else:
            change.nodes.append(node)
    return replace(
        graph,
        nodes=tuple(change.nodes),
        values={**graph.values, **change.values},
        constants={**graph.constants, **change.constants},
    )


def _is_changed(node: Node, *, training_only: bool) -> bool:
    if node.operator != "BatchNormalization" or node.domain:
        return False
    return not training_only or bool(node.attributes.get("training_mode", 0))


@dataclass(slots=True)
class _Change:
    """Nodes so far, and the values and constants to add to the graph."""

    graph: Graph
    names: NewNames
    nodes: list[Node] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)

    def normalize(self, node: Node) -> None:
        """Add a normalization in training form, and its running statistics."""
        x, scale, bias, *running = node.inputs
        kind = self.graph.value(scale)
        statistics = [
            self.names.new(f"{node.outputs[0]}.{which}") for which in ("mean", "variance")
        ]
        self.values.update({name: replace(kind, name=name) for name in statistics})
        outputs = (node.outputs[0], *statistics)
        attributes = {"epsilon": node.attributes.get("epsilon", 1e-5)}
        self.nodes.append(
            Node(node.name, TRAINING_FORM, (x, scale, bias), outputs, attributes, DOMAIN,
                 node.version)
        )  # fmt: skip
        momentum = node.number("momentum", 0.9)
        for old, new, name in zip(running, statistics, node.outputs[1:3], strict=False):
            if name:
                kept = self._times(old, momentum, f"{name}.kept", kind)
                added = self._times(new, 1 - momentum, f"{name}.added", kind)
                self.nodes.append(Node(name, "Add", (kept, added), (name,), version=OPSET))

    def _times(self, source: str, factor: float, name: str, kind: Value) -> str:
        assert kind.dtype is not None
        name = self.names.new(name)
        number = self.names.new(f"{name}.factor")
        self.constants[number] = Inline(np.array(factor, kind.dtype.numpy))
        self.values[number] = Value(number, kind.dtype, ())
        self.values[name] = replace(kind, name=name)
        self.nodes.append(Node(name, "Mul", (source, number), (name,), version=OPSET))
        return name

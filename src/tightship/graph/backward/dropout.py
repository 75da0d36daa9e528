"""Dropout in training: elements are chosen by counter, so that no mask needs to be stored.

Whether an element is dropped depends only on a seed, the number of the step, the index of the
dropout in the graph and the element's index. The backward path, and a step that is recomputed to
save memory, drop the same elements.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tightship.errors import GraphError
from tightship.graph.backward.gradient_context import GradientContext
from tightship.graph.backward.operators import DOMAIN
from tightship.graph.backward.tape import OPSET
from tightship.graph.constant import Constant
from tightship.graph.ir import Graph, Node, Value
from tightship.graph.layout import DType
from tightship.graph.new_names import NewNames

DROPOUT = "dropout"
"""Input with the seed and the number of the step: two elements of int64."""
TRAINING_FORM = "DropoutTraining"


def with_dropout(graph: Graph, ratio: float | None = None) -> tuple[Graph, str]:
    """Rewrite dropouts to training form, which reads a new input.

    All become `DropoutTraining` except those whose `training_mode` is a constant false. A mask is
    written if it has readers besides `Where(mask, y, 0)`, which becomes a dropout as well.

    Args:
        graph: Graph to rewrite.
        ratio: Share to drop, instead of each node's own; 0 for none.

    Returns:
        The graph and the name of the new input: `DROPOUT`, numbered if the graph has that; empty if
            no dropout is active.

    Raises:
        GraphError: A ratio or a mode is computed by the model.
    """
    change = _Change(graph, ratio, NewNames(graph).new(DROPOUT))
    for node in graph.nodes:
        change.add(node)
    state = {change.state: Value(change.state, DType.INT64, (2,))} if change.count else {}
    made = replace(
        graph,
        inputs=(*graph.inputs, *state),
        nodes=change.without_idle_masks(),
        values={**graph.values, **state},
    )
    return made, change.state if change.count else ""


@dataclass(slots=True)
class _Change:
    """Nodes so far.

    Attributes:
        state: Name of the new input.
        count: Number of active dropouts.
        masks: Attributes of the node that made each mask.
    """

    graph: Graph
    ratio: float | None
    state: str
    nodes: list[Node] = field(default_factory=list)
    count: int = 0
    masks: dict[str, Mapping[str, float]] = field(default_factory=dict)

    def without_idle_masks(self) -> tuple[Node, ...]:
        """Drop masks that have no reader."""
        read = {*self.graph.outputs, *(name for node in self.nodes for name in node.reads)}
        return tuple(
            replace(node, outputs=node.outputs[:1])
            if node.operator == TRAINING_FORM and read.isdisjoint(node.outputs[1:])
            else node
            for node in self.nodes
        )

    def add(self, node: Node) -> None:
        """Add a node, rewritten if needed."""
        if node.operator == "Dropout" and not node.domain and self._is_on(node):
            self._drop(node)
        elif node.operator == "Where" and self._is_masked(node):
            attributes = {**self.masks[node.inputs[0]], "scale": 1.0}
            self._own(node, (node.inputs[1], self.state), attributes)
        else:
            self.nodes.append(node)

    def _drop(self, node: Node) -> None:
        ratio = self._ratio(node) if self.ratio is None else self.ratio
        if not 0 <= ratio <= 1:
            raise GraphError(f"Dropout `{node.name}` drops {ratio}; it must be a share, 0 to 1.")
        if not ratio:
            self.nodes.append(replace(node, inputs=node.inputs[:1], attributes={}, version=OPSET))
            return
        scale = 1 / (1 - ratio) if ratio < 1 else 0.0
        attributes = {"ratio": ratio, "scale": scale, "stream": self.count}
        self.count += 1
        if len(node.outputs) > 1 and node.outputs[1]:
            self.masks[node.outputs[1]] = attributes
        self._own(node, (node.inputs[0], self.state), attributes)

    def _own(self, node: Node, inputs: tuple[str, str], attributes: Mapping[str, float]) -> None:
        self.nodes.append(
            Node(node.name, TRAINING_FORM, inputs, node.outputs, dict(attributes), DOMAIN, OPSET)
        )

    def _is_masked(self, node: Node) -> bool:
        """Whether the node sets to zero what a dropout has dropped."""
        zero = self.graph.constant(node.inputs[2])
        return (
            node.inputs[0] in self.masks
            and self._shape(node.inputs[0]) == self._shape(node.inputs[1])
            and zero is not None
            and not zero.shape
            and not zero.array().any()
        )

    def _shape(self, name: str) -> object:
        return self.graph.value(name).shape

    def _is_on(self, node: Node) -> bool:
        mode = self._parameter(node, 2, "training_mode")
        return mode is None or bool(mode.array().reshape(()))

    def _ratio(self, node: Node) -> float:
        if node.version < 12:
            ratio = node.number("ratio", 0.5)
            return float(ratio)
        given = self._parameter(node, 1, "ratio")
        return 0.5 if given is None else float(given.array().reshape(()))

    def _parameter(self, node: Node, index: int, name: str) -> Constant | None:
        if index >= len(node.inputs) or not node.inputs[index]:
            return None
        found = self.graph.constant(node.inputs[index])
        if found is None:
            raise GraphError(
                f"Dropout `{node.name}` needs `{name}` to be a constant; `{node.inputs[index]}` is "
                "computed."
            )
        return found


def dropout_rule(at: GradientContext) -> Iterator[tuple[int, str]]:
    """Write the gradient, which reads nothing of the forward pass."""
    if at.wants(0):
        yield 0, at.own(TRAINING_FORM, at.dy, at.x(1))[0]

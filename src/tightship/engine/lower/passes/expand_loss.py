"""Rewrites losses in terms of other operators, whose kernels then run them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import (
    AttributeValue,
    Constant,
    DType,
    Graph,
    Inline,
    Node,
    Value,
    element_count,
)
from tightship.graph.symbolic import SymbolicConstant

OPSET = 13
LOSSES = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
Shape = tuple[int, ...]


def expand_loss(graph: Graph) -> Graph:
    """Replace negative log likelihoods and cross entropies by gathers, sums and LogSoftmax."""
    nodes: list[Node] = []
    constants: dict[str, Constant] = {}
    values: dict[str, Value] = {}
    for node in graph.nodes:
        if _is_loss(graph, node):
            decomposition = _Decomposition(graph, node, constants, values)
            decomposition.spell()
            nodes.extend(decomposition.nodes)
        else:
            nodes.append(node)
    return rebuilt(graph, nodes, constants=constants, values=values)


def _is_loss(graph: Graph, node: Node) -> bool:
    if node.domain or node.operator not in LOSSES:
        return False
    scores, target = (graph.value(name) for name in node.inputs[:2])
    return (
        scores.dtype in (DType.FLOAT32, DType.FLOAT64)
        and target.dtype in (DType.INT32, DType.INT64)
        and scores.is_static
        and target.is_static
        and element_count(scores.static_shape) > 0
    )


@dataclass(slots=True)
class _Decomposition:
    """Decomposition of one loss."""

    graph: Graph
    node: Node
    constants: dict[str, Constant]
    values: dict[str, Value]
    nodes: list[Node] = field(default_factory=list)

    def spell(self) -> None:
        scores = self.node.inputs[0]
        if self.node.operator == "SoftmaxCrossEntropyLoss":
            scores = self._log_softmax(scores)
        losses, weights = self._weighted(scores)
        reduction = self.node.attributes.get("reduction", "mean")
        output = self.node.outputs[0]
        if reduction == "none":
            self._add("Identity", (losses,), output)
        elif reduction == "sum" or not weights:
            self._reduced("ReduceSum" if reduction == "sum" else "ReduceMean", losses, output)
        else:
            total = self._reduced("ReduceSum", losses, self._new("total", losses, ()))
            weight = self._reduced("ReduceSum", weights, self._new("weight", weights, ()))
            self._add("Div", (total, weight), output)

    def _log_softmax(self, scores: str) -> str:
        """Compute log probabilities, with classes last meanwhile."""
        batch, classes, *space = shape = self._shape(scores)
        name = self.node.outputs[1] if len(self.node.outputs) > 1 else ""
        name = name or self._new("log", scores, shape)
        if not space:
            return self._add("LogSoftmax", (scores,), name, {"axis": 1})
        pixels = element_count(tuple(space))
        flat = self._reshaped(scores, self._new("flat", scores, (batch, classes, pixels)))
        swap = {"perm": (0, 2, 1)}
        rows = (batch, pixels, classes)
        turned = self._add("Transpose", (flat,), self._new("turned", scores, rows), swap)
        log = self._add("LogSoftmax", (turned,), self._new("rows", scores, rows), {"axis": 2})
        back = self._new("back", scores, (batch, classes, pixels))
        return self._reshaped(self._add("Transpose", (log,), back, swap), name)

    def _weighted(self, scores: str) -> tuple[str, str]:
        """Return each target's loss, and its weight; no name if all weights are one."""
        target, shape = self.node.inputs[1], self._shape(self.node.inputs[1])
        ignored, target = self._ignored(target, shape)
        one_class = (shape[0], 1, *shape[1:])
        index = self._reshaped(target, self._new("index", target, one_class))
        found = self._new("found", scores, one_class)
        self._add("GatherElements", (scores, index), found, {"axis": 1})
        taken = self._reshaped(found, self._new("taken", scores, shape))
        losses = self._add("Neg", (taken,), self._new("loss", scores, shape))
        weights = self.node.inputs[2] if len(self.node.inputs) > 2 else ""
        if weights:
            chosen = self._new("chosen", scores, shape)
            weights = self._add("Gather", (weights, target), chosen, {"axis": 0})
            scaled = self._new("scaled", scores, shape)
            losses = self._add("Mul", (losses, weights), scaled)
        if ignored:
            zero = self._scalar("zero", 0, scores)
            weights = weights or self._scalar("one", 1, scores)
            weights, losses = (
                self._add("Where", (ignored, zero, kept), self._new(name, scores, shape))
                for name, kept in (("weights", weights), ("losses", losses))
            )
        return losses, weights

    def _ignored(self, target: str, shape: Shape) -> tuple[str, str]:
        """Return a mask of ignored targets, if any, and targets that are all valid classes."""
        index = self.node.attributes.get("ignore_index")
        if index is None:
            return "", target
        assert isinstance(index, int)
        mask = f"{self.node.name}.ignored"
        self.values[mask] = Value(mask, DType.BOOL, shape)
        self._add("Equal", (target, self._scalar("ignore", index, target)), mask)
        safe = self._new("safe", target, shape)
        return mask, self._add("Where", (mask, self._scalar("class", 0, target), target), safe)

    def _new(self, part: str, like: str, shape: Shape) -> str:
        """Name a new value with the element type of another."""
        name = f"{self.node.name}.{part}"
        self.values[name] = Value(name, self._value(like).dtype, shape)
        return name

    def _value(self, name: str) -> Value:
        return self.values[name] if name in self.values else self.graph.value(name)

    def _shape(self, name: str) -> Shape:
        return self._value(name).static_shape

    def _scalar(self, part: str, number: int, like: str) -> str:
        name, dtype = f"{self.node.name}.{part}", self._value(like).dtype
        assert dtype is not None
        self.constants[name] = Inline(np.array(number, dtype.numpy))
        return name

    def _reshaped(self, source: str, name: str) -> str:
        shape = f"{name}.{self.node.name}.shape"
        self.constants[shape] = SymbolicConstant(DType.INT64, np.array(self._shape(name), object))
        return self._add("Reshape", (source, shape), name)

    def _reduced(self, operator: str, source: str, name: str) -> str:
        return self._add(operator, (source,), name, {"keepdims": 0})

    def _add(
        self,
        operator: str,
        inputs: tuple[str, ...],
        output: str,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> str:
        name = f"{self.node.name}.{len(self.nodes)}"
        node = Node(name, operator, inputs, (output,), attributes=attributes or {}, version=OPSET)
        self.nodes.append(node)
        return output

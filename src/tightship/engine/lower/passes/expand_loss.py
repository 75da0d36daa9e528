"""Rewrites losses in terms of other operators, whose kernels then run them."""

from collections.abc import Mapping
from dataclasses import dataclass

from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.graph import AttributeValue, DType, Graph, Node, element_count

LOSSES = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
Shape = tuple[int, ...]


def expand_loss(graph: Graph) -> Graph:
    """Replace negative log likelihoods and cross entropies by gathers, sums and LogSoftmax."""
    writer = GraphWriter(graph)
    for node in graph.nodes:
        if _is_loss(graph, node):
            _Decomposition(writer, node).spell()
        else:
            writer.nodes.append(node)
    return writer.written()


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

    writer: GraphWriter
    node: Node
    count: int = 0

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
        batch, classes, *space = shape = self.writer.shape(scores)
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
        target, shape = self.node.inputs[1], self.writer.shape(self.node.inputs[1])
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
        mask = self.writer.declare(f"{self.node.name}.ignored", shape, DType.BOOL)
        self._add("Equal", (target, self._scalar("ignore", index, target)), mask)
        safe = self._new("safe", target, shape)
        return mask, self._add("Where", (mask, self._scalar("class", 0, target), target), safe)

    def _new(self, part: str, like: str, shape: Shape) -> str:
        """Name a new value with the element type of another."""
        dtype = self.writer.value(like).dtype
        return self.writer.declare(f"{self.node.name}.{part}", shape, dtype)

    def _scalar(self, part: str, number: int, like: str) -> str:
        dtype = self.writer.value(like).dtype
        assert dtype is not None
        return self.writer.number(f"{self.node.name}.{part}", number, dtype)

    def _reshaped(self, source: str, name: str) -> str:
        return self.writer.reshape(source, self.writer.shape(name), name, name=self._next())

    def _reduced(self, operator: str, source: str, name: str) -> str:
        return self._add(operator, (source,), name, {"keepdims": 0})

    def _add(
        self,
        operator: str,
        inputs: tuple[str, ...],
        output: str,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> str:
        return self.writer.add(operator, inputs, output, attributes, name=self._next())

    def _next(self) -> str:
        self.count += 1
        return f"{self.node.name}.{self.count - 1}"

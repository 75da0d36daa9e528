"""Rewrites LpPool to `(k * mean(|x| ** p)) ** (1 / p)` over windows of k elements."""

from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.graph import DType, Graph, Node, element_count
from tightship.graph.ir import AttributeValue

FIRST_OF_WHOLE_POWERS = 2


def expand_lp_pool(graph: Graph) -> Graph:
    """Replace every LpPool whose windows lie within its declared padding."""
    writer = GraphWriter(graph)
    for node in graph.nodes:
        attributes = _attributes(graph, node)
        if attributes is None:
            writer.nodes.append(node)
        else:
            _expand(writer, node, attributes)
    return writer.written()


def _expand(writer: GraphWriter, node: Node, attributes: dict[str, AttributeValue]) -> None:
    """Write powers, AveragePool, a product and a root."""
    power, result = node.integer("p", 2), node.outputs[0]
    count = element_count(_ints(node, "kernel_shape", ()))
    x = node.inputs[0]
    before, after = writer.shape(x), writer.shape(result)
    if power % 2:
        x = writer.add("Abs", (x,), writer.declare(f"{result}.absolute", before))
    if power > 1:
        exponent = writer.number(f"{result}.exponent", power)
        x = writer.add("Pow", (x, exponent), writer.declare(f"{result}.powers", before))
    mean = writer.add("AveragePool", (x,), writer.declare(f"{result}.mean", after), attributes)
    total = writer.declare(f"{result}.total", after) if power > 1 else result
    writer.add("Mul", (mean, writer.number(f"{result}.count", count)), total)
    if power == 2:
        writer.add("Sqrt", (total,), result)
    elif power > 1:
        writer.add("Pow", (total, writer.number(f"{result}.root", 1 / power)), result)


def _attributes(graph: Graph, node: Node) -> dict[str, AttributeValue] | None:
    """Return the attributes of the AveragePool; None for a node that is not covered."""
    if node.operator != "LpPool" or node.domain or node.version < FIRST_OF_WHOLE_POWERS:
        return None
    before, after = graph.value(node.inputs[0]), graph.value(node.outputs[0])
    if before.dtype is not DType.FLOAT32 or not before.is_static or not after.is_static:
        return None
    if node.attributes.get("ceil_mode", 0) or any(
        each != 1 for each in _ints(node, "dilations", ())
    ):
        return None
    pads = _pads(node, before.static_shape[2:], after.static_shape[2:])
    kept = {name: node.attributes[name] for name in ("kernel_shape", "strides")
            if name in node.attributes}  # fmt: skip
    return {**kept, "pads": pads, "count_include_pad": 1}


def _pads(node: Node, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    rank = len(before)
    auto = node.attributes.get("auto_pad", "NOTSET")
    if auto == "NOTSET":
        return _ints(node, "pads", (0,) * (2 * rank))
    if auto == "VALID":
        return (0,) * (2 * rank)
    kernel, strides = _ints(node, "kernel_shape", ()), _ints(node, "strides", (1,) * rank)
    total = [
        max((o - 1) * s + k - i, 0)
        for o, s, k, i in zip(after, strides, kernel, before, strict=True)
    ]
    begin = [(each + (auto == "SAME_LOWER")) // 2 for each in total]
    return (*begin, *(each - first for each, first in zip(total, begin, strict=True)))


def _ints(node: Node, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    value = node.attributes.get(name, default)
    assert isinstance(value, tuple)
    return tuple(int(v) for v in value)

"""Lengths of caches that a file leaves open although its operators fix them.

onnxruntime-genai's builder names the length of a head in the shape of a cache (`kv_cache_dim`), and
names the rows of a sliding cache differently before and after a run, which its operator keeps.
"""

from collections.abc import Iterator, Mapping

from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto, helper

Cache = tuple[ValueInfoProto, ValueInfoProto]
"""Input and output that are one cache."""
CACHES = ((3, 1), (4, 2))
"""Past and present of keys and values among the operands of GroupQueryAttention."""


def settle_cache_lengths(graph: GraphProto) -> None:
    """Write the lengths that operators fix into the shapes of caches."""
    known = {value.name: value.type for value in (*graph.value_info, *graph.input)}
    ends = {value.name: value for value in (*graph.input, *graph.output)}
    for node in graph.node:
        if node.op_type == "GroupQueryAttention" and node.domain == "com.microsoft":
            _settle_grouped(node, list(_caches(node, ends)), known)
        elif node.op_type == "Concat" and not node.domain:
            _settle_joined(node, ends, known)


def _settle_grouped(node: NodeProto, caches: list[Cache], known: Mapping[str, TypeProto]) -> None:
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    head = _head_length(node, attributes, known)
    for past, present in caches:
        if head:
            _settle(past, 3, head)
            _settle(present, 3, head)
        if attributes.get("sliding_window_cache", 0):
            rows = past.type.tensor_type.shape.dim[2]
            present.type.tensor_type.shape.dim[2].CopyFrom(rows)


def _settle_joined(
    node: NodeProto, ends: Mapping[str, ValueInfoProto], known: Mapping[str, TypeProto]
) -> None:
    """Settle the lengths of an input that new rows, of known lengths, are appended to."""
    past = ends.get(node.input[0])
    new = known.get(node.input[1]) if len(node.input) == 2 else None
    if past is None or new is None:
        return
    lengths = tuple(new.tensor_type.shape.dim)
    if len(lengths) != 4 or len(past.type.tensor_type.shape.dim) != 4:
        return
    joined = helper.get_attribute_value(node.attribute[0]) % 4 if node.attribute else -1
    for axis, length in enumerate(lengths):
        if axis != joined and length.dim_value:
            for value in (past, *(ends[name] for name in node.output if name in ends)):
                _settle(value, axis, length.dim_value)


def _settle(value: ValueInfoProto, axis: int, length: int) -> None:
    """Write a length of a shape, unless the file tells it."""
    dimension = value.type.tensor_type.shape.dim[axis]
    if not dimension.HasField("dim_value"):
        dimension.dim_value = length


def _caches(node: NodeProto, ends: Mapping[str, ValueInfoProto]) -> Iterator[Cache]:
    """Yield the caches of a node that are an input and an output of the graph."""
    for before, after in CACHES:
        names = [*node.input[before : before + 1], *node.output[after : after + 1]]
        found = [ends[name] for name in names if name in ends]
        if len(found) == 2 and all(len(v.type.tensor_type.shape.dim) == 4 for v in found):
            yield found[0], found[1]


def _head_length(
    node: NodeProto, attributes: Mapping[str, object], known: Mapping[str, TypeProto]
) -> int:
    """Return the elements of a head; 0 if the file does not tell them."""
    type_ = known.get(node.input[0])
    shape = () if type_ is None else tuple(type_.tensor_type.shape.dim)
    width = shape[2].dim_value if len(shape) == 3 else 0
    heads, shared = (int(str(attributes.get(n, 0))) for n in ("num_heads", "kv_num_heads"))
    is_packed = not (len(node.input) > 1 and node.input[1])
    packed_bits = int(str(attributes.get("kv_cache_bit_width", 0)))
    count = heads + 2 * shared if is_packed else heads
    return width // count if count and not packed_bits else 0

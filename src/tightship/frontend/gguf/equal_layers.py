"""Equal layers of a decoder, of which few are read and the others are copies of them by name."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tightship.frontend.gguf.parameters import Parameters
from tightship.frontend.gguf.weights import Weights
from tightship.graph import AttributeValue, Graph
from tightship.graph.few_layers import FewLayers, place_in_layer


def stand_ins(weights: Weights, parameters: Parameters) -> tuple[int, ...]:
    """Return for each layer itself, or the second that differs in nothing but the bytes of tensors.

    Types and shapes of the tensors, and the window, tell all that is written of a layer. The first
    of a kind may have what all of them share, and the last may be rewritten for one row of logits.
    """
    tensors: dict[str, list[tuple[object, ...]]] = {}
    for name, placed in weights.contents.tensors.items():
        kind, _, rest = name.partition(".")
        layer, _, part = rest.partition(".")
        if kind == "blk":
            tensors.setdefault(layer, []).append(
                (part, placed.tensor.type.name, placed.tensor.shape)
            )
    alike: dict[tuple[object, ...], list[int]] = {}
    found = []
    for index in range(parameters.layers):
        own = sorted(tensors.get(str(index), ()), key=str)
        before = alike.setdefault((parameters.windows.of(index), *own), [])
        before.append(index)
        found.append(index if index == parameters.layers - 1 else before[:2][-1])
    return tuple(found)


def few_layers(
    weights: Weights, stands: Sequence[int], begins: str, ends: Mapping[int, str]
) -> FewLayers:
    """Return the layers of a decoder of which some are written.

    Args:
        weights: Tensors of the file.
        stands: For each layer, the one that is written for it.
        begins: Value that the first layer reads.
        ends: Value that each layer that is written writes for the next.
    """
    tensors = weights.contents.tensors.items()
    places = {name: (placed.file, placed.tensor.offset_bytes) for name, placed in tensors}
    return FewLayers(stands, ends, begins, places)


def with_records_once(graph: Graph) -> Graph:
    """Return a graph in which equal nodes of layers have one record of attributes.

    A plan counts such nodes once, whether each layer was read or some of them.
    """
    records: dict[tuple[str, str], Mapping[str, AttributeValue]] = {}
    nodes = []
    for node in graph.nodes:
        place = place_in_layer(node.name)
        found = records.setdefault((place, node.operator), node.attributes)
        is_equal = found is not node.attributes and found == node.attributes
        nodes.append(replace(node, attributes=found) if is_equal else node)
    return replace(graph, nodes=tuple(nodes))

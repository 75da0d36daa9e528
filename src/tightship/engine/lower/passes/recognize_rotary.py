"""Recognizes rotary position embeddings as exporters write them.

Pairs `(a, b)` are the halves of the last axis, or neighbours on it. They are rotated to `a cos - b
sin` and `b cos + a sin`: pair by pair, or as `x * cos + turned * sin`, where `turned` has `-b` in
the place of `a` and `a` in that of `b`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tightship.engine.lower.passes.polynomial import Algebra
from tightship.engine.lower.passes.recognize_normalization import all_readers, is_closed
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import DType, Graph, Node


@dataclass(frozen=True, slots=True)
class _Part:
    """All first or all second elements of the pairs of `source`."""

    source: str
    is_second: bool
    is_interleaved: bool


@dataclass(frozen=True, slots=True)
class _Rotation:
    source: str
    cosine: str
    sine: str
    is_interleaved: bool


def recognize_rotary(graph: Graph) -> Graph:
    """Replace rotary embeddings by the native operator Rotary."""
    algebra, readers = Algebra.of(graph), all_readers(graph)
    return rebuilt(graph, [_joined_whole(algebra, readers, node) for node in graph.nodes])


def _joined_whole(algebra: Algebra, readers: Mapping[str, list[Node]], node: Node) -> Node:
    """Return the Rotary that a node ends, or else the node."""
    found = _whole(algebra, node) if node.operator == "Add" else _apart(algebra, node)
    if found is None or not _fits(algebra.graph, found, node.outputs[0]):
        return node
    sources = (found.source, found.cosine, found.sine)
    if not is_closed(algebra.graph, readers, node, sources):
        return node
    attributes = {"interleaved": int(found.is_interleaved)}
    return replace(
        node, operator="Rotary", domain="tightship", inputs=sources, attributes=attributes
    )


def _fits(graph: Graph, found: _Rotation, result: str) -> bool:
    """Whether types are float32, and tables broadcast to the source's shape."""
    names = (found.source, found.cosine, found.sine, result)
    values = [graph.value(name) for name in names]
    if any(not value.is_static or value.dtype is not DType.FLOAT32 for value in values):
        return False
    shape, *tables, wanted = (value.static_shape for value in values)
    return shape == wanted and 0 not in shape and all(_spreads(table, shape) for table in tables)


def _spreads(table: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    if not table or len(table) > len(shape) or table[-1] not in (shape[-1], shape[-1] // 2):
        return False
    outer = shape[len(shape) - len(table) : -1]
    return all(n in (1, wide) for n, wide in zip(table[:-1], outer, strict=True))


def _whole(algebra: Algebra, node: Node) -> _Rotation | None:
    """Recognize `x * cos + turned * sin`."""
    products = [algebra.made_by(name, "Mul") for name in node.inputs]
    if len(products) != 2 or None in products:
        return None
    for straight, turned in (products, products[::-1]):
        assert straight is not None
        assert turned is not None
        for name, sine in (turned.inputs, turned.inputs[::-1]):
            source = _turned(algebra, name)
            if source is not None and source.source in straight.inputs:
                (cosine,) = [n for n in straight.inputs if n != source.source] or [""]
                return _Rotation(source.source, cosine, sine, source.is_interleaved)
    return None


def _turned(algebra: Algebra, name: str) -> _Part | None:
    """Return the first elements of the pairs that a value joins as `(-b, a)`."""
    joined = _joined(algebra, name)
    if joined is None:
        return None
    first, second, is_interleaved = joined
    negated = algebra.made_by(first, "Neg")
    parts = [_part(algebra, negated.inputs[0]) if negated else None, _part(algebra, second)]
    if parts[0] is None or parts[1] is None:
        return None
    wanted = _Part(parts[1].source, is_second=False, is_interleaved=is_interleaved)
    is_pair = parts[0] == replace(wanted, is_second=True) and parts[1] == wanted
    return wanted if is_pair else None


def _apart(algebra: Algebra, node: Node) -> _Rotation | None:
    """Recognize `(a cos - b sin, b cos + a sin)`."""
    joined = _joined(algebra, node.outputs[0])
    if joined is None:
        return None
    first, second, is_interleaved = joined
    halves = {name: part for name in _factors(algebra, first) if (part := _part(algebra, name))}
    if len(halves) != 2:
        return None
    (a, one), (b, two) = sorted(halves.items(), key=lambda item: item[1].is_second)
    wanted = _Part(one.source, is_second=False, is_interleaved=is_interleaved)
    if one != wanted or two != replace(wanted, is_second=True):
        return None
    upper, lower = (dict(algebra.read(name, (a, b))) for name in (first, second))
    tables = [next((n for f in upper if x in f for n in f if n != x), "") for x in (a, b)]
    cosine, sine = tables
    up = {_pair(a, cosine): 1.0, _pair(b, sine): -1.0}
    low = {_pair(b, cosine): 1.0, _pair(a, sine): 1.0}
    return (
        _Rotation(one.source, cosine, sine, is_interleaved) if (upper, lower) == (up, low) else None
    )


def _pair(one: str, other: str) -> tuple[str, ...]:
    return tuple(sorted((one, other)))


def _factors(algebra: Algebra, name: str) -> list[str]:
    """List the names in the two products whose difference a value is."""
    difference = algebra.made_by(name, "Sub")
    products = [algebra.made_by(n, "Mul") for n in difference.inputs] if difference else []
    return [n for product in products if product for n in product.inputs]


def _joined(algebra: Algebra, name: str) -> tuple[str, str, bool] | None:
    """Return the first and second elements of a value's pairs, and whether they alternate."""
    maker = algebra.made_by(name, "Concat", "Reshape")
    if maker is None:
        return None
    if maker.operator == "Concat":
        parts = _ends(algebra, maker)
        return None if parts is None else (*parts, False)
    stack = algebra.made_by(maker.inputs[0], "Concat")
    parts = _ends(algebra, stack) if stack else None
    shape, flat = (algebra.graph.value(n).shape for n in (maker.inputs[0], name))
    if parts is None or not shape or len(shape) < 2:
        return None
    if flat != (*shape[:-2], _doubled(shape[-2])):
        return None
    opened = [_unstacked(algebra, part) for part in parts]
    return None if "" in opened or shape[-1] != 2 else (opened[0], opened[1], True)


def _doubled(length: object) -> int:
    return 2 * length if isinstance(length, int) else -1


def _ends(algebra: Algebra, concat: Node) -> tuple[str, str] | None:
    """Return two equal parts joined along the last axis."""
    rank = len(algebra.graph.value(concat.outputs[0]).shape or ())
    if len(concat.inputs) != 2 or concat.attributes.get("axis") not in (-1, rank - 1):
        return None
    shapes = [algebra.graph.value(name).shape for name in concat.inputs]
    return (concat.inputs[0], concat.inputs[1]) if shapes[0] == shapes[1] else None


def _unstacked(algebra: Algebra, name: str) -> str:
    """Return the value before a last axis of length one was added, or an empty name."""
    maker = algebra.made_by(name, "Unsqueeze", "Reshape")
    if maker is None:
        return ""
    before, after = (algebra.graph.value(n).shape for n in (maker.inputs[0], name))
    return maker.inputs[0] if before and after == (*before, 1) else ""


def _part(algebra: Algebra, name: str) -> _Part | None:
    """Return which elements of which value `name` selects."""
    maker = algebra.made_by(name, "Slice", "Split")
    if maker is None:
        return None
    shape = algebra.graph.value(maker.inputs[0]).shape or ()
    width = shape[-1] if shape else None
    if not isinstance(width, int) or width % 2:
        return None
    if maker.operator == "Split":
        is_last = maker.attributes.get("axis", 0) in (-1, len(shape) - 1)
        halves = algebra.graph.value(name).shape == (*shape[:-1], width // 2)
        if not is_last or not halves or len(maker.outputs) != 2:
            return None
        return _Part(maker.inputs[0], maker.outputs[1] == name, is_interleaved=False)
    bounds = _bounds(algebra, maker, len(shape))
    known = {
        (0, width // 2, 1): (False, False), (width // 2, width, 1): (True, False),
        (0, width, 2): (False, True), (1, width, 2): (True, True),
    }  # fmt: skip
    found = known.get((bounds[0], min(bounds[1], width), bounds[2])) if bounds else None
    return _Part(maker.inputs[0], *found) if found else None


def _bounds(algebra: Algebra, node: Node, rank: int) -> tuple[int, int, int] | None:
    """Return start, end and step of a Slice of the last axis only."""
    constants = [algebra.graph.constant(name) if name else None for name in node.inputs[1:]]
    arrays = [None if c is None else c.array().reshape(-1).tolist() for c in constants]
    starts, ends, axes, steps = [*arrays, None, None][:4]
    if starts is None or ends is None or axes is None or len(axes) != 1:
        return None
    if axes[0] not in (-1, rank - 1) or (len(node.inputs) > 4 and steps is None):
        return None
    return starts[0], ends[0], steps[0] if steps else 1

"""Fuses exporters' pattern of attention into one operator, which never stores scores whole.

Its inputs are queries, keys, values and, if not left out, a mask, the number of keys in use ([1] or
[batch], int64) and a sink for each head, a score without a key. Query i has the position `first` +
i or, if keys in use are given, the one that makes the last query's that of the last key. The
attributes:

    scale              factor of the products of queries and keys
    cap                before masks, scores become cap * tanh(score / cap), unless it is 0
    keys_turned        1 if keys come as [..., depth, keys], 0 as [..., keys, depth]
    mask               none; added: floats; kept, hidden: booleans
    fill               score that a boolean mask gives to hidden keys
    first              position of the first query; 0 if absent
    ahead              a query sees keys up to its position + ahead; negative: all
    behind             and from its position - behind on; negative or absent: all
    key_order          axes of the keys in the order that is meant; as they are if absent
    value_order        likewise of the values
    zero_if_undefined  1 if weights that are NaN count as 0
    zero_if_unseen     1 if the weights of a query that sees no key count as 0

Keys and values may have fewer heads than queries; each then serves several consecutive ones.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tightship.engine.lower.passes.attention_bounds import (
    HIDDEN_MAX,
    Bounds,
    Conditions,
    LengthWriter,
    bounds_of,
    conditions_of,
)
from tightship.engine.lower.passes.attention_masks import placed, without_mask
from tightship.engine.lower.passes.attention_operator import spell_attention
from tightship.engine.lower.passes.index_cases import Affine
from tightship.engine.lower.passes.polynomial import Algebra
from tightship.graph import Constant, DType, Graph, Node, element_count
from tightship.graph.length import settled
from tightship.graph.symbolic import constant_key, length_key

DOMAIN, OPERATOR = "tightship", "Attention"
MASK_ELEMENTS_MAX = 1 << 24


@dataclass(frozen=True, slots=True)
class _Rule:
    """Operations between the product of queries and keys and the softmax."""

    product: Node
    scale: float = 1.0
    cap: float = 0.0
    mask: str = ""
    kind: str = "none"
    fill: float = 0.0
    conditions: Conditions = ()
    bounds: Bounds = field(default_factory=Bounds)


def fuse_attention(graph: Graph) -> Graph:
    """Replace softmax(queries * keys) * values by one node, with masks and scales.

    ONNX's Attention is replaced too.
    """
    graph = spell_attention(graph)
    algebra = Algebra.of(graph)
    writer = LengthWriter(graph)
    fused: dict[str, Node] = {}
    for node in graph.nodes:
        found = None
        if node.operator == "Softmax" and not node.domain:
            found = _attention(algebra, writer, node)
        elif node.operator == OPERATOR and node.domain == DOMAIN:
            found = without_mask(algebra, writer, node)
        if found is not None:
            fused[found.name] = found
        writer.nodes.append(node)
    writer.nodes = [fused.get(node.name, node) for node in writer.nodes]
    return writer.written()


def _attention(algebra: Algebra, writer: LengthWriter, softmax: Node) -> Node | None:
    """Make the node that replaces the product with the values."""
    graph = algebra.graph
    rank = len(graph.value(softmax.inputs[0]).shape or ())
    default = -1 if softmax.version >= 13 else 1
    if rank < 2 or softmax.attributes.get("axis", default) not in (-1, rank - 1):
        return None
    weights, guarded = _guarded(algebra, softmax.outputs[0])
    product = _sole_reader(algebra, weights)
    if product is None or product.operator != "MatMul" or product.inputs[0] != weights:
        return None
    rule = _rule(algebra, softmax.inputs[0])
    if rule is None or not _is_covered(graph, rule, product):
        return None
    query, scale = _unscaled(algebra, rule.product.inputs[0], rule.scale)
    key, turned, scale = _key(algebra, rule.product.inputs[1], scale)
    value = _shared_heads(algebra, product.inputs[1])
    return Node(
        product.name,
        OPERATOR,
        (query, key, value, *_options(writer, rule)),
        product.outputs,
        {
            "scale": scale,
            "cap": rule.cap,
            "keys_turned": int(turned),
            "mask": rule.kind,
            "fill": rule.fill,
            "zero_if_undefined": int(guarded),
            "zero_if_unseen": 0,
            **placed(rule.bounds),
        },
        DOMAIN,
    )


def _options(writer: LengthWriter, rule: _Rule) -> list[str]:
    """Return the inputs behind the values: a mask and the number of keys in use, if any."""
    length = rule.bounds.length
    if length is None:
        return [rule.mask] if rule.mask else []
    return [rule.mask, writer.name_of(length)]


def _is_covered(graph: Graph, rule: _Rule, product: Node) -> bool:
    """Whether all values are float32 of known shape, and leading axes agree."""
    names = [*rule.product.inputs, *rule.product.outputs, *product.inputs, *product.outputs]
    values = [graph.value(name) for name in names]
    return all(
        value.is_static
        and value.dtype is DType.FLOAT32
        and len(value.static_shape) >= 2
        and 0 not in value.static_shape
        for value in values
    ) and (values[2].static_shape[:-2] == values[5].static_shape[:-2])


def _guarded(algebra: Algebra, weights: str) -> tuple[str, bool]:
    """Return weights after `Where(IsNaN(weights), 0, weights)`, and whether that guard exists."""
    readers = [node for node in algebra.graph.nodes if weights in node.reads]
    checks = [node for node in readers if node.operator == "IsNaN"]
    choices = [node for node in readers if node.operator == "Where"]
    if (
        len(readers) == len(checks) + len(choices) == algebra.counts[weights] == 2
        and checks
        and choices
        and choices[0].inputs[0] == checks[0].outputs[0]
        and algebra.counts[checks[0].outputs[0]] == 1
        and algebra.scalar(choices[0].inputs[1]) == 0
        and choices[0].inputs[2] == weights
    ):
        return choices[0].outputs[0], True
    return weights, False


def _sole_reader(algebra: Algebra, name: str) -> Node | None:
    if algebra.counts.get(name) != 1:
        return None
    return next((node for node in algebra.graph.nodes if name in node.reads), None)


def _rule(algebra: Algebra, scores: str) -> _Rule | None:
    """Read what lies between the product and the scores; None if the kernel cannot do it."""
    shape = algebra.graph.value(scores).shape
    after: list[Callable[[_Rule], _Rule | None]] = []
    name = scores
    while algebra.counts.get(name) == 1 and algebra.graph.value(name).shape == shape:
        product = algebra.made_by(name, "MatMul")
        if product is not None:
            return _applied(_Rule(product), after)
        step = _step(algebra, name)
        if step is None:
            return None
        name, change = step
        after.append(change)
    return None


def _applied(rule: _Rule, changes: list[Callable[[_Rule], _Rule | None]]) -> _Rule | None:
    """Apply changes to a rule; the one nearest to the product is last in the list."""
    current: _Rule | None = rule
    for change in reversed(changes):
        current = None if current is None else change(current)
    return current


def _step(algebra: Algebra, name: str) -> tuple[str, Callable[[_Rule], _Rule | None]] | None:
    """Return the scores before the node that makes `name`, and its effect on them."""
    maker = algebra.made_by(name, "Mul", "Div", "Add", "Where")
    if maker is None:
        return None
    if maker.operator == "Where":
        return _where(algebra, maker)
    scaled = _scaled(algebra, maker)
    if scaled is not None:
        return _before_scaling(algebra, *scaled)
    if maker.operator != "Add":
        return None
    shape = algebra.graph.value(name).shape
    for scores, mask in (maker.inputs, maker.inputs[::-1]):
        if algebra.graph.value(scores).shape == shape and _leads_to_product(algebra, scores):
            return scores, lambda rule, mask=mask: _masked(algebra, rule, mask, "added", 0.0)
    return None


def _before_scaling(
    algebra: Algebra, name: str, factor: float
) -> tuple[str, Callable[[_Rule], _Rule | None]]:
    """Return the scores before a factor, and before the hyperbolic tangent that it may scale."""
    tanh = algebra.made_by(name, "Tanh")
    if tanh is not None and algebra.counts.get(name) == 1:
        return tanh.inputs[0], lambda rule: _then_capped(rule, factor)
    return name, lambda rule: _then_scaled(rule, factor)


def _leads_to_product(algebra: Algebra, name: str) -> bool:
    """Whether a value is the product of queries and keys, followed by what `_step` reads."""
    for _ in range(4):
        maker = algebra.made_by(name, "MatMul", "Mul", "Div", "Add", "Where")
        if maker is None:
            return False
        if maker.operator == "MatMul":
            return algebra.counts.get(name) == 1
        step = _step(algebra, name)
        if step is None:
            return False
        name = step[0]
    return False


def _where(algebra: Algebra, maker: Node) -> tuple[str, Callable[[_Rule], _Rule | None]] | None:
    condition, first, second = maker.inputs
    for scores, other, kind in ((first, second, "kept"), (second, first, "hidden")):
        fill = algebra.scalar(other)
        if fill is not None:
            return scores, lambda rule, k=kind, f=fill: _masked(algebra, rule, condition, k, f)
    return None


def _scaled(algebra: Algebra, maker: Node) -> tuple[str, float] | None:
    """Return the operand that a node multiplies or divides by a number, and the factor."""
    if maker.operator not in ("Mul", "Div") or len(maker.inputs) != 2:
        return None
    left, right = maker.inputs
    pairs = [(left, right)] if maker.operator == "Div" else [(left, right), (right, left)]
    for operand, number in pairs:
        factor = algebra.scalar(number)
        if factor is not None and (maker.operator == "Mul" or factor != 0):
            return operand, factor if maker.operator == "Mul" else 1 / factor
    return None


def _then_scaled(rule: _Rule, factor: float) -> _Rule | None:
    """Scale a rule; None if it is masked or capped, because that would be scaled too."""
    is_last = not (rule.mask or rule.conditions or rule.cap)
    return replace(rule, scale=rule.scale * factor) if is_last else None


def _then_capped(rule: _Rule, cap: float) -> _Rule | None:
    """Turn the scores `x` of a rule into `cap * tanh(x)`; None if they are masked before."""
    is_last = not (rule.mask or rule.conditions or rule.cap)
    return replace(rule, scale=rule.scale * cap, cap=cap) if is_last and cap > 0 else None


def _masked(algebra: Algebra, rule: _Rule, mask: str, kind: str, fill: float) -> _Rule | None:
    """Add a mask to a rule, which can hold one besides those that say which keys are in bounds."""
    scores = algebra.graph.value(rule.product.outputs[0])
    value = algebra.graph.value(mask)
    dtype = DType.FLOAT32 if kind == "added" else DType.BOOL
    if not scores.is_static or not value.is_static or value.dtype is not dtype:
        return None
    if kind == "added" or fill <= HIDDEN_MAX:
        shape = scores.static_shape
        found = _conditions(algebra, mask, kind, shape)
        conditions = (*rule.conditions, *(found or ()))
        bounds = bounds_of(conditions, len(shape), shape[-2])
        if found is not None and bounds is not None:
            return replace(rule, conditions=conditions, bounds=bounds)
    return None if rule.mask else replace(rule, mask=mask, kind=kind, fill=fill)


def _conditions(
    algebra: Algebra, mask: str, kind: str, scores: tuple[int, ...]
) -> Conditions | None:
    """Return the conditions under which a mask keeps a score, if it hides all others."""
    ahead = _causal(algebra, mask, kind, (scores[-2], scores[-1]))
    if ahead is None:
        return conditions_of(algebra, mask, kind, scores)
    rank = len(scores)
    return ((Affine.of(rank - 2) - Affine.of(rank - 1)).plus(ahead),)


def _causal(algebra: Algebra, mask: str, kind: str, shape: tuple[int, int]) -> int | None:
    """Return how many keys past its own index a query sees, if a constant mask is causal."""
    constant = algebra.graph.constant(mask)
    if (
        constant is None
        or constant.shape[-2:] != shape
        or element_count(constant.shape) != shape[0] * shape[1]
        or element_count(shape) > MASK_ELEMENTS_MAX
    ):
        return None
    key = constant_key(constant), kind, *map(length_key, shape)
    return settled(lambda: _ahead(constant, kind, shape), key, shape)


def _ahead(constant: Constant, kind: str, lengths: tuple[int, int]) -> int | None:
    shape = int(lengths[0]), int(lengths[1])
    array = np.asarray(constant.array()).reshape(shape)
    seen = array == 0 if kind in ("added", "hidden") else array != 0
    ahead = int(seen[0].sum()) - 1
    if ahead < 0 or not (seen == np.tri(*shape, ahead, dtype=bool)).all():
        return None
    hides = kind != "added" or bool((array[~seen] <= HIDDEN_MAX).all())
    return ahead if hides else None


def _unscaled(algebra: Algebra, name: str, scale: float) -> tuple[str, float]:
    """Return a value before it was multiplied by numbers, and the scale times those factors."""
    while (maker := algebra.made_by(name, "Mul", "Div")) is not None:
        found = _scaled(algebra, maker)
        if found is None or algebra.graph.value(found[0]).shape != algebra.graph.value(name).shape:
            break
        name, scale = found[0], scale * found[1]
    return name, scale


def _key(algebra: Algebra, name: str, scale: float) -> tuple[str, bool, float]:
    """Trace keys back to before they were transposed, scaled and shared among heads."""
    name, scale = _unscaled(algebra, name, scale)
    before = _before_turning(algebra, name)
    if before is None:
        return name, True, scale
    before, scale = _unscaled(algebra, before, scale)
    return _shared_heads(algebra, before), False, scale


def _before_turning(algebra: Algebra, name: str) -> str | None:
    """Return the value that `name` transposes in its last two axes, through joined leading axes."""
    turned = algebra.graph.value(name).shape or ()
    split = algebra.made_by(name, "Reshape")
    turn = algebra.made_by(split.inputs[0] if split else name, "Transpose")
    if turn is None:
        return None
    rank = len(algebra.graph.value(turn.outputs[0]).shape or ())
    swap = (*range(rank - 2), rank - 1, rank - 2)
    if rank < 2 or turn.attributes.get("perm", tuple(reversed(range(rank)))) != swap:
        return None
    if split is None:
        return turn.inputs[0]
    joined = algebra.made_by(turn.inputs[0], "Reshape")
    if joined is None:
        return None
    before = algebra.graph.value(joined.inputs[0]).shape
    is_same = before == (*turned[:-2], turned[-1], turned[-2])
    return (
        joined.inputs[0]
        if is_same
        and before
        and before[-2:] == (turned[-1], turned[-2])
        and (algebra.graph.value(turn.inputs[0]).shape or ())[-2:] == before[-2:]
        else None
    )


def _shared_heads(algebra: Algebra, name: str) -> str:
    """Return keys or values before each head was repeated for several query heads."""
    joined = algebra.made_by(name, "Reshape")
    wide = algebra.made_by(joined.inputs[0], "Expand") if joined else None
    apart = algebra.made_by(wide.inputs[0], "Unsqueeze", "Reshape") if wide else None
    if joined is None or wide is None or apart is None:
        return name
    source = algebra.graph.value(apart.inputs[0])
    after, repeated = algebra.graph.value(name), algebra.graph.value(wide.outputs[0])
    if not (source.is_static and after.is_static and repeated.is_static):
        return name
    *outer, heads, rows, columns = (1, 1, 1, *source.static_shape)
    *_, groups, _, _ = (1, 1, 1, *repeated.static_shape)
    outer = list(source.static_shape[:-3])
    fits = (
        len(source.static_shape) >= 3
        and algebra.graph.value(apart.outputs[0]).shape == (*outer, heads, 1, rows, columns)
        and repeated.static_shape == (*outer, heads, groups, rows, columns)
        and after.static_shape == (*outer, heads * groups, rows, columns)
    )
    return apart.inputs[0] if fits else name

"""Folds per-channel scales and shifts after a convolution into its weights and bias.

A batch normalization that follows no convolution absorbs the multiplications and additions after
it, so that one kernel does all of them.
"""

from dataclasses import replace

from tightship.engine.lower.passes.affine import (
    Affine,
    Scaled,
    flat,
    identity,
    normalization,
    vector,
)
from tightship.engine.lower.passes.dequantized import Dequantized
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.engine.lower.passes.walk import Walk
from tightship.graph import Constant, DType, Fill, Graph, Node, element_count


def fold_batch_norm(graph: Graph) -> Graph:
    """Fold BatchNormalization, and Mul and Add of per-channel constants, into the node before."""
    walk = Walk.over(graph)
    absorbed: set[str] = set()
    nodes: list[Node] = []
    constants: dict[str, Constant] = {}
    for node in graph.nodes:
        if node.name in absorbed:
            continue
        affine = _start(walk, node)
        if affine is None:
            nodes.append(node)
            continue
        affine, chain = _follow(walk, node, affine)
        absorbed.update(follower.name for follower in chain)
        nodes.append(_applied(walk, node, affine, chain, constants) if chain else node)
    return rebuilt(graph, nodes, constants=constants)


def _start(walk: Walk, node: Node) -> Affine | None:
    """Return the identity for a node that can absorb an affine map, else None."""
    if len(node.writes) != 1 or walk.graph.value(node.outputs[0]).dtype is not DType.FLOAT32:
        return None
    parameters = [walk.graph.constants.get(name) for name in node.inputs[1:] if name]
    if None in parameters or not parameters:
        return None
    if node.operator == "Conv" and parameters[0] is not None:
        return identity(parameters[0].shape[0])
    if is_inference_norm(node) and parameters[0] is not None:
        return identity(parameters[0].shape[0])
    return None


def is_inference_norm(node: Node) -> bool:
    """Whether a node is a batch normalization with given statistics."""
    return (
        node.operator == "BatchNormalization"
        and len(node.inputs) == 5
        and not node.attributes.get("training_mode", 0)
        and node.attributes.get("spatial", 1) == 1
        and len(node.writes) == 1
    )


def _follow(walk: Walk, node: Node, affine: Affine) -> tuple[Affine, list[Node]]:
    chain: list[Node] = []
    while (follower := walk.sole_reader((chain[-1] if chain else node).outputs[0])) is not None:
        step = _step(walk, follower, (chain[-1] if chain else node).outputs[0], affine)
        if step is None:
            break
        affine = step
        chain.append(follower)
    return affine, chain


def _step(walk: Walk, node: Node, name: str, affine: Affine) -> Affine | None:
    """Extend `affine` by what `node` does to `name`; None if that is not per channel."""
    if is_inference_norm(node):
        parameters = [walk.graph.constants.get(parameter) for parameter in node.inputs[1:]]
        if node.inputs[0] != name or any(parameter is None for parameter in parameters):
            return None
        scale, shift, mean, variance = (p for p in parameters if p is not None)
        norm = normalization(scale, shift, mean, variance, epsilon_of(node))
        return affine.then_scaled(norm.scale).then_shifted(norm.shift)
    if node.operator not in ("Mul", "Add") or node.domain:
        return None
    other = walk.graph.constants.get(node.inputs[1] if node.inputs[0] == name else node.inputs[0])
    rank = len(walk.graph.value(name).shape or ())
    if other is None or not is_per_channel(other.shape, rank, affine.channels):
        return None
    return affine.then_scaled(other) if node.operator == "Mul" else affine.then_shifted(other)


def epsilon_of(node: Node) -> float:
    """Return the `epsilon` attribute of a normalization."""
    return node.number("epsilon", 1e-5)


def is_per_channel(shape: tuple[int, ...], rank: int, channels: int) -> bool:
    """Whether `shape` broadcasts along axis 1 of a tensor of `rank`, and along no other."""
    if len(shape) > rank:
        return False
    padded = (1,) * (rank - len(shape)) + shape
    return all(d == 1 or (axis == 1 and d == channels) for axis, d in enumerate(padded))


def _scaled(weight: Constant, scale: Constant) -> Constant:
    """Scale weights by output; for quantized weights scale their scales, if possible."""
    if isinstance(weight, Dequantized) and weight.scale is not None:
        before = weight.scale
        if weight.axis == 0 or element_count(before.shape) == 1:
            outputs = weight.shape[0]
            scales = vector(
                outputs, lambda: flat(before) * flat(scale), before, scale, recipe="product"
            )
            return weight.scaled_by(scales)
    return Scaled(weight, scale)


def _applied(
    walk: Walk, node: Node, affine: Affine, chain: list[Node], constants: dict[str, Constant]
) -> Node:
    weight_name, bias_name = f"{node.name}.folded_weight", f"{node.name}.folded_bias"
    n, scale, shift = affine.channels, affine.scale, affine.shift
    weight = walk.graph.constants.get(node.inputs[1])
    bias_input = node.inputs[2] if len(node.inputs) > 2 else ""
    bias = (
        walk.graph.constants.get(bias_input)
        if bias_input
        else Fill(flat(identity(1).shift)[0], (n,))
    )
    assert weight is not None
    assert bias is not None
    constants[weight_name] = _scaled(weight, scale)
    constants[bias_name] = vector(
        n, lambda: flat(bias) * flat(scale) + flat(shift), bias, scale, shift, recipe="affine"
    )
    inputs = (node.inputs[0], weight_name, bias_name, *node.inputs[3:])
    return replace(node, inputs=inputs, outputs=chain[-1].outputs)

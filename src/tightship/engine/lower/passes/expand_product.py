"""Rewrites products into forms that the matmul primitive accepts.

Gemm with alpha, beta, a transposed left or a right that is no constant
    transposes, MatMul, Mul, Add; one that reads a computed matrix transposed and adds nothing stays
Gemm between two reshapes that only flatten its rows
    MatMul and Add of the value before, so that what follows can join it
MatMul of a vector, or of stacks of different ranks
    MatMul of operands of one rank
"""

from collections.abc import Container

from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.graph import DType, Graph, Node


def expand_product(graph: Graph) -> Graph:
    """Replace every Gemm and MatMul of one of the forms above."""
    writer = GraphWriter(graph)
    turned = {node.outputs[0] for node in graph.nodes if node.operator == "Transpose"}
    for node in graph.nodes:
        if node.operator not in ("Gemm", "MatMul") or node.domain or not _is_float(graph, node):
            writer.nodes.append(node)
        elif node.operator == "MatMul":
            _give_one_rank(writer, node)
        elif not _is_plain(graph, node) and not _is_of_transposed(graph, node, turned):
            _decompose(writer, node)
        else:
            writer.nodes.append(node)
    return writer.written()


def _is_float(graph: Graph, node: Node) -> bool:
    return not node.fused and all(
        graph.value(name).is_static
        and graph.value(name).dtype is DType.FLOAT32
        and 0 not in graph.value(name).static_shape
        for name in (*node.inputs, *node.outputs)
        if name
    )


def _is_plain(graph: Graph, node: Node) -> bool:
    """Whether a Gemm is rows times a constant, plus a constant row."""
    shape = graph.value(node.outputs[0]).static_shape
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    is_row = not bias or (
        bias in graph.constants
        and graph.value(bias).static_shape in ((shape[1],), (1, shape[1]))
        and node.number("beta", 1.0) == 1
    )
    return (
        is_row
        and node.number("alpha", 1.0) == 1
        and not node.attributes.get("transA", 0)
        and node.inputs[1] in graph.constants
    )


def _is_of_transposed(graph: Graph, node: Node, turned: Container[str]) -> bool:
    """Whether a Gemm reads a computed matrix transposed, and adds nothing.

    The transpose of one in `turned`, the results of transposes, is the matrix that these read.
    """
    return len(node.inputs) == 2 and any(
        node.attributes.get(flag, 0) and name not in graph.constants and name not in turned
        for name, flag in zip(node.inputs, ("transA", "transB"), strict=True)
    )


def _decompose(writer: GraphWriter, gemm: Node) -> None:
    """Write transposes, MatMul, Mul and Add for a Gemm."""
    target = gemm.outputs[0]
    shape = writer.shape(target)
    operands = []
    for name, flag in zip(gemm.inputs, ("transA", "transB"), strict=False):
        operand = name
        if gemm.attributes.get(flag, 0):
            operand = writer.declare(f"{target}.{flag}", writer.shape(name)[::-1])
            writer.add("Transpose", (name,), operand, {"perm": (1, 0)})
        operands.append(operand)
    terms: list[tuple[str, tuple[str, ...]]] = [("MatMul", tuple(operands))]
    alpha, beta = gemm.number("alpha", 1.0), gemm.number("beta", 1.0)
    if alpha != 1:
        terms.append(("Mul", ("", writer.number(f"{target}.alpha", alpha))))
    bias = gemm.inputs[2] if len(gemm.inputs) > 2 else ""
    if bias and beta != 1:
        number = writer.number(f"{target}.beta", beta)
        scaled = writer.declare(f"{target}.bias", writer.shape(bias))
        bias = writer.add("Mul", (bias, number), scaled)
    if bias:
        terms.append(("Add", ("", bias)))
    made = ""
    for index, (operator, inputs) in enumerate(terms):
        part, reads = operator.lower(), tuple(each or made for each in inputs)
        is_last = index == len(terms) - 1
        made = target if is_last else writer.declare(f"{target}.{part}", shape)
        writer.add(operator, reads, made, name=f"{gemm.name}.{part}")


def _give_one_rank(writer: GraphWriter, product: Node) -> None:
    """Write a MatMul with operands of one rank, unless the right one is a single matrix."""
    left, right = (writer.shape(name) for name in product.inputs)
    if len(left) == len(right) >= 2 or (len(right) == 2 and len(left) > 2):
        writer.nodes.append(product)
        return
    target = product.outputs[0]
    wide_left = (1, *left) if len(left) == 1 else left
    wide_right = (*right, 1) if len(right) == 1 else right
    rank = max(len(wide_left), len(wide_right))
    if len(wide_right) > 2:
        wide_left = (1,) * (rank - len(wide_left)) + wide_left
        wide_right = (1,) * (rank - len(wide_right)) + wide_right
    sides = zip(product.inputs, (wide_left, wide_right), ("left", "right"), strict=True)
    operands = tuple([
        name if writer.shape(name) == shape else
        _reshaped(writer, name, shape, writer.declare(f"{target}.{side}", shape))
        for name, shape, side in sides
    ])  # fmt: skip
    batch = wide_left[:-2]
    if len(wide_right) > 2:
        pairs = zip(batch, wide_right[:-2], strict=True)
        batch = tuple([right if left == 1 else left for left, right in pairs])
    shape = (*batch, wide_left[-2], wide_right[-1])
    if shape == writer.shape(target):
        writer.add("MatMul", operands, target, name=product.name)
        return
    made = writer.declare(f"{target}.product", shape)
    writer.add("MatMul", operands, made, name=product.name)
    _reshaped(writer, made, writer.shape(target), target)


def _reshaped(writer: GraphWriter, name: str, shape: tuple[int, ...], target: str) -> str:
    return writer.reshape(name, shape, target, name=f"{target}.reshape")

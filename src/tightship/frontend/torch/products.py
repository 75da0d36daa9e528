"""Matrix products and attention."""

import math
from collections.abc import Callable
from functools import partial

from tightship.errors import GraphError
from tightship.frontend.torch.call import Call
from tightship.frontend.torch.refusal import refused
from tightship.frontend.writer import Operand
from tightship.graph import DType


def affine(call: Call) -> Operand:
    """Translate `beta self + alpha mat1 mat2`."""
    left, left_turned = call.writer.unturned(call["mat1"])
    right, right_turned = call.writer.unturned(call["mat2"])
    return call.result(
        "Gemm",
        left,
        right,
        call["self"],
        alpha=float(call["alpha"]),
        beta=float(call["beta"]),
        transA=int(left_turned),
        transB=int(right_turned),
    )


def product(second: str, call: Call) -> Operand:
    """Translate a product of matrices or of stacks of them."""
    return call.result("MatMul", call["self"], call[second])


def product_as_it_lies(second: str, call: Call) -> Operand:
    """Translate a product that reads a transposed operand in place."""
    left, left_turned = call.writer.unturned(call["self"])
    right, right_turned = call.writer.unturned(call[second])
    if not left_turned and not right_turned:
        return product(second, call)
    how = {"transA": int(left_turned), "transB": int(right_turned)}
    (result,) = call.own("TransposedMatMul", (left, right), how)
    assert result is not None
    return result


def added_products(call: Call) -> Operand:
    """Translate `beta self + alpha batch1 batch2`."""
    result = call.add("MatMul", (call.dtype, call.shape), call["batch1"], call["batch2"])
    if call["alpha"] != 1:
        result = call.like("Mul", result, call.scalar(call["alpha"], call.dtype))
    term = call["self"]
    if call["beta"] != 1:
        term = call.like("Mul", term, call.scalar(call["beta"], call.dtype))
    return call.result("Add", result, term)


def linear(call: Call) -> Operand:
    """Translate a linear layer; its weight has a row for each output."""
    operand, weight, bias = call["input"], call["weight"], call["bias"]
    if operand.rank == 2 and weight.rank == 2:
        return call.result("Gemm", operand, weight, bias, transB=1)
    turned = call.add("Transpose", (weight.dtype, weight.shape[::-1]), weight)
    if bias is None:
        return call.result("MatMul", operand, turned)
    result = call.add("MatMul", (call.dtype, call.shape), operand, turned)
    return call.result("Add", result, bias)


def attention(call: Call) -> Operand:
    """Translate scaled dot-product attention."""
    query, key, value = (call[name] for name in ("query", "key", "value"))
    mask: Operand | None = call["attn_mask"]
    if call["dropout_p"]:
        raise _dropping(call)
    scale = call["scale"]
    attributes = {} if scale is None else {"scale": float(scale)}
    if query.rank == 3:
        query, key, value = (call.reshaped(o, (1, *o.shape)) for o in (query, key, value))
        if mask is not None and mask.rank == 3:
            mask = call.reshaped(mask, (1, *mask.shape))
    if query.rank != 4:
        return _written_out(call)
    if mask is not None and mask.dtype not in (DType.BOOL, query.dtype):
        mask = call.cast(mask, query.dtype)
    shape = (*query.shape[:-1], value.shape[-1])
    result = call.add(
        "Attention",
        (call.dtype, shape),
        *(query, key, value, mask),
        is_causal=int(call["is_causal"]),
        **attributes,
    )
    return call.reshaped(result, call.shape)


def _written_out(call: Call) -> Operand:
    """Decompose attention of a rank above 4, which must be neither causal nor grouped."""
    query, key, value = (call[name] for name in ("query", "key", "value"))
    if call["is_causal"] or call["enable_gqa"] or query.rank < 3:
        raise refused(call.node, f"is causal or grouped, of rank {query.rank}; it must be 3 or 4")
    scale = call["scale"]
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    order = (*range(key.rank - 2), key.rank - 1, key.rank - 2)
    turned = (*key.shape[:-2], key.shape[-1], key.shape[-2])
    keys = call.add("Transpose", (key.dtype, turned), key, perm=order)
    scores = (*call.shape[:-1], key.shape[-2])
    weights = call.add("MatMul", (call.dtype, scores), query, keys)
    weights = call.like("Mul", weights, call.scalar(scale, call.dtype))
    mask: Operand | None = call["attn_mask"]
    if mask is not None and mask.dtype is DType.BOOL:
        hidden = call.scalar(-math.inf, call.dtype)
        weights = call.add("Where", (call.dtype, scores), mask, weights, hidden)
    elif mask is not None:
        weights = call.like("Add", weights, mask)
    return call.result("MatMul", call.like("Softmax", weights, axis=-1), value)


def _dropping(call: Call) -> GraphError:
    why = f"drops attention weights at random (`dropout_p` is {call['dropout_p']})"
    return refused(call.node, why, "call `model.eval()` before the export")


IN_TRAINING: dict[str, Callable[[Call], Operand]] = {
    "bmm.default": partial(product_as_it_lies, "mat2"),
    "mm.default": partial(product_as_it_lies, "mat2"),
}

TABLE: dict[str, Callable[[Call], Operand]] = {
    "addmm.default": affine,
    "baddbmm.default": added_products,
    "bmm.default": partial(product, "mat2"),
    "linear.default": linear,
    "matmul.default": partial(product, "other"),
    "mm.default": partial(product, "mat2"),
    "scaled_dot_product_attention.default": attention,
}

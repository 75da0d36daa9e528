"""Graphs run by torch, whose autograd knows nothing of our rules."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray

from tightship.graph import Graph, Node

Array = NDArray[Any]
Tensor = torch.Tensor


def gradients(
    graph: Graph, feeds: Mapping[str, Array], of: Sequence[str], wrt: Sequence[str]
) -> list[Array]:
    """Gradients of the sum of scalars `of`, by autograd; zeros where there is none."""
    values = tensors(graph, feeds)
    for name in wrt:
        values[name].requires_grad_()
    evaluate(graph, values)
    found = torch.autograd.grad(
        sum(values[name] for name in of), [values[name] for name in wrt], allow_unused=True
    )
    return [
        np.zeros_like(values[name].detach().numpy()) if each is None else each.numpy()
        for name, each in zip(wrt, found, strict=True)
    ]


def tensors(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Any]:
    """Inputs and constants by name."""
    values: dict[str, Any] = {name: torch.tensor(array) for name, array in feeds.items()}
    for name in (*graph.constants, *graph.known):
        array = graph.constant(name).array()
        values[name] = torch.tensor(np.array(array)) if array.dtype != object else array
    return values


def evaluate(graph: Graph, values: dict[str, Any]) -> None:
    """Add what the nodes make of inputs and constants."""
    for node in graph.nodes:
        if all(_is_known_integer(graph, name) for name in node.writes):
            continue
        operands = [values[name] if name else None for name in node.inputs]
        results = OPERATORS[node.operator](node, *operands)
        results = results if isinstance(results, list | tuple) else [results]
        values.update(zip(node.outputs, results, strict=False))


def _is_known_integer(graph: Graph, name: str) -> bool:
    known = graph.known.get(name)
    return known is not None and known.dtype.value.startswith("int")


def _ints(tensor: Tensor) -> list[int]:
    return [int(number) for number in tensor.reshape(-1)]


def _pads(node: Node) -> list[int]:
    pads = list(node.attributes.get("pads", (0,) * 4))
    half = len(pads) // 2
    assert pads[:half] == pads[half:], node
    return pads[:half]


def _conv(node: Node, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    rank = w.ndim - 2
    given = node.attributes
    steps = [list(given.get(name, (1,) * rank)) for name in ("strides", "dilations")]
    return (F.conv1d, F.conv2d)[rank - 1](
        x, w, b, steps[0], _pads(node)[:rank], steps[1], given.get("group", 1)
    )


def _transposed(node: Node, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    return F.conv_transpose2d(x, w, b, list(node.attributes["strides"]), _pads(node))


def _pool(pool: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(node: Node, x: Tensor) -> Tensor:
        given = node.attributes
        more = {} if pool is F.max_pool2d else {"count_include_pad": False}
        window = list(given["kernel_shape"]), list(given.get("strides", (1, 1)))
        return pool(x, *window, _pads(node), **more)

    return run


def _batch_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor, *_: Tensor) -> Tensor:
    epsilon = node.attributes.get("epsilon", 1e-5)
    return F.batch_norm(x, None, None, scale, bias, training=True, eps=epsilon)


def _running_batch_norm(
    node: Node, x: Tensor, scale: Tensor, bias: Tensor, *running: Tensor
) -> Any:
    """Normalize by the batch; running statistics change."""
    momentum, epsilon = node.attributes.get("momentum", 0.9), node.attributes.get("epsilon", 1e-5)
    return F.batch_norm(x, *running, scale, bias, training=True, momentum=1 - momentum, eps=epsilon)


def _recurrent(cell: Any, node: Node, x: Tensor, w: Tensor, r: Tensor, b: Tensor) -> list[Tensor]:
    """A cell over all steps, in both directions if there are two, no state before the first."""
    size, sequences, last = node.attributes["hidden_size"], [], []
    for way in range(w.shape[0]):
        state = (x.new_zeros(x.shape[1], size),) * 2
        shown = []
        for step in x.flip(0) if way else x:
            state = cell(step @ w[way].T, state, r[way], *b[way].chunk(2))
            shown.append(state[0])
        sequences.append(torch.stack(shown[::-1] if way else shown))
        last.append(state)
    return [torch.stack(sequences, 1), *(torch.stack(each) for each in zip(*last, strict=True))]


def _lstm_cell(given: Tensor, state: Any, r: Tensor, bias: Tensor, own: Tensor) -> Any:
    """Gates in ONNX's order."""
    h, c = state
    i, o, f, g = (given + bias + h @ r.T + own).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru_cell(given: Tensor, state: Any, r: Tensor, bias: Tensor, own: Tensor) -> Any:
    """Resets the product of the state."""
    h = state[0]
    (z, k, n), (z_of, k_of, n_of) = (part.chunk(3, 1) for part in (given + bias, h @ r.T + own))
    z, k = (z + z_of).sigmoid(), (k + k_of).sigmoid()
    h = z * h + (1 - z) * (n + k * n_of).tanh()
    return h, h


def _layer_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.layer_norm(x, scale.shape, scale, bias, node.attributes.get("epsilon", 1e-5))


def _gemm(node: Node, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    a = a.T if node.attributes.get("transA") else a
    b = b.T if node.attributes.get("transB") else b
    y = a @ b * node.attributes.get("alpha", 1.0)
    return y if c is None else y + c * node.attributes.get("beta", 1.0)


def _slice(_: Node, x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor) -> Tensor:
    for start, end, axis in zip(_ints(starts), _ints(ends), _ints(axes), strict=True):
        length = x.shape[axis]
        first, last, _step = slice(start, end).indices(length)
        x = x.narrow(axis, first, last - first)
    return x


def _split(node: Node, x: Tensor, sizes: Tensor | None = None) -> Sequence[Tensor]:
    axis, count = node.attributes.get("axis", 0), len(node.outputs)
    return x.split(x.shape[axis] // count if sizes is None else _ints(sizes), axis)


def _reshape(_: Node, x: Tensor, shape: Tensor) -> Tensor:
    return x.reshape([x.shape[i] if n == 0 else n for i, n in enumerate(_ints(shape))])


def _gather(node: Node, x: Tensor, index: Tensor) -> Tensor:
    axis = node.attributes.get("axis", 0)
    index = torch.where(index < 0, index + x.shape[axis], index)
    found = x.index_select(axis, index.reshape(-1))
    return found.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


def _mean(node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    given = node.attributes.get("axes", range(x.ndim))
    chosen = list(given) if axes is None else _ints(axes)
    return x.mean(chosen, keepdim=bool(node.attributes.get("keepdims", 1)))


def _unsqueeze(_: Node, x: Tensor, axes: Tensor) -> Tensor:
    for axis in sorted(_ints(axes)):
        x = x.unsqueeze(axis)
    return x


def _resize(_: Node, x: Tensor, __: Tensor | None, factors: Tensor) -> Tensor:
    for axis, factor in enumerate(_ints(factors)):
        x = x.repeat_interleave(factor, axis)
    return x


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, *operands: function(*operands)


DTYPES = {1: torch.float32, 7: torch.int64, 9: torch.bool, 11: torch.float64}
OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": _plain(torch.add),
    "AveragePool": _pool(F.avg_pool2d),
    "BatchNormalization": _running_batch_norm,
    "BatchNormalizationTraining": _batch_norm,
    "Cast": lambda node, x: x.to(DTYPES[node.attributes["to"]]),
    "Clip": _plain(lambda x, low, high: x.clamp(low, high)),
    "Concat": lambda node, *parts: torch.cat(parts, node.attributes["axis"]),
    "Conv": _conv,
    "ConvTranspose": _transposed,
    "Div": _plain(torch.div),
    "Erf": _plain(torch.erf),
    "Flatten": lambda node, x: x.flatten(node.attributes.get("axis", 1)),
    "Gather": _gather,
    "Gelu": lambda node, x: F.gelu(x, approximate=node.attributes.get("approximate", "none")),
    "Gemm": _gemm,
    "GlobalAveragePool": _plain(lambda x: x.mean(list(range(2, x.ndim)), keepdim=True)),
    "IsNaN": _plain(torch.isnan),
    "GRU": partial(_recurrent, _gru_cell),
    "LSTM": partial(_recurrent, _lstm_cell),
    "LayerNormalization": _layer_norm,
    "MatMul": _plain(torch.matmul),
    "MaxPool": _pool(F.max_pool2d),
    "Mul": _plain(torch.mul),
    "Pow": _plain(torch.pow),
    "ReduceMean": _mean,
    "Relu": _plain(torch.relu),
    "Reshape": _reshape,
    "Resize": _resize,
    "Sigmoid": _plain(torch.sigmoid),
    "Slice": _slice,
    "Softmax": lambda node, x: x.softmax(node.attributes.get("axis", -1)),
    "SoftmaxCrossEntropyLoss": _plain(F.cross_entropy),
    "Split": _split,
    "Squeeze": lambda _, x, axes: x.squeeze(_ints(axes)),
    "Sqrt": _plain(torch.sqrt),
    "Sub": _plain(torch.sub),
    "Tanh": _plain(torch.tanh),
    "Transpose": lambda node, x: x.permute(*node.attributes["perm"]),
    "Unsqueeze": _unsqueeze,
    "Where": _plain(torch.where),
}

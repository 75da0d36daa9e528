"""Nodes built by hand, their output types inferred by ONNX."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.engine.kernels.node_suite import kernel_for, run
from tightship.engine.kernels import Array, Kernel, reference_kernel
from tightship.graph import Inline, Node


@dataclass(frozen=True, slots=True)
class Typed:
    """A node with its inputs, and arrays that have the types of its outputs."""

    node: Node
    inputs: tuple[Array | None, ...]
    like: tuple[Array, ...]

    @property
    def kernel(self) -> Kernel:
        kernel = kernel_for(self.node, self.inputs, self.like)
        assert kernel is not None, f"no kernel covers {self.node}"
        return kernel

    @property
    def is_covered(self) -> bool:
        return kernel_for(self.node, self.inputs, self.like) is not None

    def run(self) -> list[Any]:
        return run(self.kernel, self.inputs, self.like)

    def reference(self) -> list[Any]:
        return reference_kernel(self.node)(self.inputs)


def typed(
    operator: str,
    *inputs: Array | None,
    version: int = 22,
    outputs: int = 1,
    like: Sequence[Array] | None = None,
    **attributes: Any,
) -> Typed:
    """The node `operator`; `like` gives the output types where ONNX cannot infer them."""
    names = tuple("" if x is None else f"x{i}" for i, x in enumerate(inputs))
    results = tuple(f"y{i}" for i in range(outputs))
    node = Node(operator, operator, names, results, _ours(attributes), "", version)
    if like is None:
        like = _infer(operator, dict(zip(names, inputs, strict=True)), node, attributes)
    return Typed(node, inputs, tuple(like))


def _ours(attributes: Mapping[str, Any]) -> dict[str, Any]:
    def value(given: Any) -> Any:
        if isinstance(given, np.ndarray):
            return Inline(given)
        return tuple(given) if isinstance(given, list) else given

    return {name: value(given) for name, given in attributes.items()}


def _infer(
    operator: str, arrays: Mapping[str, Any], node: Node, attributes: Mapping[str, Any]
) -> list[Array]:
    proto = helper.make_node(
        operator,
        node.inputs,
        node.outputs,
        **{
            name: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v
            for name, v in attributes.items()
        },
    )
    present = {name: array for name, array in arrays.items() if name}
    graph = helper.make_graph(
        [proto],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in present.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in node.outputs],
        [numpy_helper.from_array(a, n) for n, a in present.items() if a.size <= 64],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", node.version)])
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    return [_like(info.type.tensor_type) for info in inferred.graph.output]


def _like(kind: onnx.TypeProto.Tensor) -> Array:
    assert all(d.HasField("dim_value") for d in kind.shape.dim), kind
    shape = tuple(d.dim_value for d in kind.shape.dim)
    return np.zeros(shape, helper.tensor_dtype_to_np_dtype(kind.elem_type))

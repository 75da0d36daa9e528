"""A module of torch, run by Tightship and by torch, and its graph held against ONNX's rules."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, shape_inference

import tightship
from tightship.engine.kernels.to_proto import node_to_proto
from tightship.frontend.torch import read
from tightship.graph import Graph

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

OF_TORCH = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
"""torch warns of its own parts while it copies and decomposes a program."""


class Function(torch.nn.Module):
    """A module that is a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def exported(module, *inputs):
    return torch.export.export(module.eval(), inputs)


def array(tensor):
    return tensor.detach().numpy().copy()


def results_of(program, *inputs):
    """Outputs by name, in the program's order."""
    with tightship.load(program) as model:
        feeds = {name: array(each) for name, each in zip(model.input_types, inputs, strict=True)}
        return model.run(feeds)


def check(module, *inputs, tolerance=1e-5):
    """Hold outputs against torch's eager ones, and the graph's types against ONNX's inference."""
    program = exported(module, *inputs)
    with torch.no_grad():
        wanted = module(*[each.clone() for each in inputs])
    results = results_of(program, *inputs)
    each_wanted = wanted if isinstance(wanted, tuple | list) else (wanted,)
    assert len(results) >= len(each_wanted)
    for want, (name, found) in zip(each_wanted, results.items(), strict=False):
        assert found.dtype == array(want).dtype, name
        np.testing.assert_allclose(found, array(want), rtol=tolerance, atol=tolerance, err_msg=name)
    graph = read(program)
    check_types(graph)
    return graph


def check_types(graph: Graph) -> None:
    """ONNX's own inference gives every value the type that it has here, as far as it gives one."""
    model = onnx_model(graph)
    del model.graph.value_info[:]
    inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    for info in inferred.graph.value_info:
        value, type_ = graph.values[info.name], info.type.tensor_type
        assert type_.elem_type == helper.np_dtype_to_tensor_dtype(value.dtype.numpy), info.name
        lengths = [each.dim_value for each in type_.shape.dim if each.HasField("dim_value")]
        if len(lengths) == len(type_.shape.dim):
            assert tuple(lengths) == value.shape, info.name


def onnx_model(graph: Graph) -> onnx.ModelProto:
    """The graph as a model of ONNX."""
    made = helper.make_graph(
        [node_to_proto(node) for node in graph.nodes],
        "graph",
        [_info(graph, name) for name in graph.inputs],
        [_info(graph, name) for name in graph.outputs],
        [numpy_helper.from_array(c.array(), name) for name, c in graph.constants.items()],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def _info(graph: Graph, name: str) -> onnx.ValueInfoProto:
    value = graph.values[name]
    number = helper.np_dtype_to_tensor_dtype(value.dtype.numpy)
    return helper.make_tensor_value_info(name, number, value.shape)

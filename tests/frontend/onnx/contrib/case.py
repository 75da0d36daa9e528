"""Operators of ONNX Runtime's own domain, against ONNX Runtime."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

import tightship

RANDOM = np.random.default_rng(5)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def integers(dtype: Any, *shape: int) -> Any:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


@dataclass
class Case:
    """One node; operands that `weights` names are initializers, None is absent."""

    operator: str
    inputs: dict[str, Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("y",)
    weights: tuple[str, ...] = ()
    domain: str = "com.microsoft"
    opset: int = 17

    @property
    def model(self) -> bytes:
        present = {name: array for name, array in self.inputs.items() if array is not None}
        names = [name if name in present else "" for name in self.inputs]
        node = helper.make_node(
            self.operator, names, list(self.outputs), "node", domain=self.domain, **self.attributes
        )
        infos = {
            name: helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in present.items()
        }
        graph = helper.make_graph(
            [node], "g", [info for name, info in infos.items() if name not in self.weights],
            [onnx.ValueInfoProto(name=name) for name in self.outputs if name],
            [onnx.numpy_helper.from_array(present[name], name) for name in self.weights],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return model.SerializeToString()

    @property
    def feeds(self) -> dict[str, Any]:
        return {
            name: array
            for name, array in self.inputs.items()
            if array is not None and name not in self.weights
        }


def run(case: Case) -> dict[str, Any]:
    with tightship.load(case.model) as model:
        return model.run(case.feeds)


def assert_as_onnxruntime(case: Case, *, step: float = 0.0, within: float = 1e-5) -> None:
    """Numbers close to ONNX Runtime's; integers at most a step apart."""
    onnxruntime.set_default_logger_severity(3)
    names = [name for name in case.outputs if name]
    wanted = onnxruntime.InferenceSession(case.model).run(names, case.feeds)
    found = run(case)
    for name, want in zip(names, wanted, strict=True):
        assert (found[name].dtype, found[name].shape) == (want.dtype, want.shape), name
        if want.dtype.kind == "f":
            np.testing.assert_allclose(found[name], want, rtol=1e-4, atol=within, err_msg=name)
        else:
            apart = np.abs(found[name].astype(np.int64) - want.astype(np.int64))
            assert apart.max(initial=0) <= step, name

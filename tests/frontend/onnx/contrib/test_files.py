"""Whole models as ONNX Runtime writes them after its own optimizations."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import tightship
from tests.processor import HAS_AVX512, HAS_VNNI
from tests.zoo import quantized
from tests.zoo.catalogue import SMALL
from tests.zoo.oracle import assert_near

WRITTEN = {
    "bert": {"FusedGemm", "FusedMatMul", "SkipLayerNormalization"},
    "bert_decomposed": {"FusedGemm", "FusedMatMul", "SkipLayerNormalization"},
    "gpt2": {"FastGelu", "FusedMatMul", "SkipLayerNormalization"},
    "gpt2_decomposed": {"FastGelu", "FusedMatMul", "SkipLayerNormalization"},
    "resnet50_folded": {"FusedConv"},
}
"""Operators of its own that it puts into a model, at least."""


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_that_onnxruntime_has_optimized(name: str, tmp_path: Path) -> None:
    case = SMALL[name](1)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(case.model, options)
    names = [output.name for output in session.get_outputs()]
    wanted = dict(zip(names, session.run(names, case.feeds), strict=True))
    written = onnx.load(tmp_path / "optimized.onnx")
    found = {node.op_type for node in written.graph.node if node.domain == "com.microsoft"}
    assert found >= WRITTEN[name]
    with tightship.load(tmp_path / "optimized.onnx") as model:
        assert_near(model.run(case.feeds), wanted)


def test_a_network_quantized_whole_computes_with_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(quantized.OPERATORS, "operators", None)
    case = quantized.quantized(SMALL["resnet50_folded"](1), "operators")
    operators = {node.op_type for node in onnx.load_from_string(case.model).graph.node}
    assert {"QLinearAdd", "QLinearConv", "QLinearGlobalAveragePool", "QGemm"} <= operators
    wanted = onnxruntime.InferenceSession(case.model).run(None, case.feeds)
    with tightship.load(case.model) as model:
        (found,) = model.run(case.feeds).values()
        steps = {(step.operator, step.kernel) for step in model.plan.steps}
    assert ("Conv+QuantizeLinear", "onednn") in steps
    assert (("Gemm+QuantizeLinear", "onednn") in steps) == (HAS_AVX512 and HAS_VNNI)
    sums = {(f"{name}QuantizeLinear", "onednn") for name in ("Add+", "Add+Relu+")}
    assert not steps.isdisjoint(sums | {("QuantizedRows", "native")})
    near = np.abs(found - wanted[0]) <= 0.05 * np.abs(wanted[0]).max()
    assert near.all() if HAS_VNNI else near.mean() > 0.9  # sums that saturate differ in order

"""Products with NumPy's BLAS and without it."""

import subprocess
import sys

import numpy as np
import pytest

from tightship.engine.kernels.product import product, without_blas

SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
]
FOLDED = """
import numpy as np, onnx, tightship
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)
shapes = {"a": (256, 256), "b": (256, 256), "i": (1, 64, 14, 14), "w": (128, 64, 1, 1)}
weights = [
    numpy_helper.from_array(random.standard_normal(s, np.float32), n) for n, s in shapes.items()
]
nodes = [
    helper.make_node("MatMul", ["a", "b"], ["c"]),
    helper.make_node("MatMul", ["x", "c"], ["y"]),
    helper.make_node("Conv", ["i", "w"], ["d"]),
    helper.make_node("Add", ["z", "d"], ["v"]),
]
value = helper.make_tensor_value_info
inputs = [
    value("x", TensorProto.FLOAT, [2, 256]), value("z", TensorProto.FLOAT, [1, 128, 14, 14])
]
outputs = [
    value("y", TensorProto.FLOAT, [2, 256]), value("v", TensorProto.FLOAT, [1, 128, 14, 14])
]
graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

def data_kib():
    for line in open("/proc/self/status"):
        if line.startswith("VmData"):
            return int(line.split()[1])

loaded = tightship.load(model.SerializeToString())
feeds = {"x": np.ones((2, 256), np.float32), "z": np.zeros((1, 128, 14, 14), np.float32)}
found = loaded.run(feeds)
before = data_kib()
a, b, i, w = (numpy_helper.to_array(each) for each in weights)
wanted = np.ones((2, 256), np.float32) @ (a @ b)
np.testing.assert_allclose(found["y"], wanted, 1e-4, 1e-3)
np.testing.assert_allclose(found["v"], np.einsum("ncij,oc->noij", i, w[:, :, 0, 0]), 1e-4, 1e-3)
print(data_kib() - before)
"""


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_both_are_equal_for_all_shapes(a, b, dtype):
    random = np.random.default_rng(0)
    left = (10 * random.standard_normal(a)).astype(dtype)
    right = (10 * random.standard_normal(b)).astype(dtype)
    wanted = np.matmul(left, right)
    found, again = np.empty_like(wanted), np.empty_like(wanted)
    with without_blas():
        product(left, right, found)
    product(left, right, again)
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-3)
    np.testing.assert_array_equal(again, wanted)


def test_constants_are_folded_without_the_buffer_of_the_blas():
    done = subprocess.run(
        [sys.executable, "-c", FOLDED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30 << 10  # the first product of the process with the BLAS

"""Checks that the tests of sample networks share."""

import numpy as np
import onnx

import tightship
from tests.zoo.net import Array
from tests.zoo.oracle import expected


def feeds(model: bytes, batch: int, steps: int = 1) -> dict[str, Array]:
    """Draw inputs for lengths; the first token of a text is always there."""
    random = np.random.default_rng(batch)
    lengths = {"batch": batch, "sequence": steps}
    found: dict[str, Array] = {}
    for value in onnx.load_from_string(model).graph.input:
        kind = value.type.tensor_type
        shape = [lengths.get(d.dim_param, d.dim_value) for d in kind.shape.dim]
        if kind.elem_type == onnx.TensorProto.FLOAT:
            found[value.name] = random.standard_normal(shape).astype(np.float32)
        else:
            found[value.name] = random.integers(0, 2, shape)
            found[value.name][:, 0] = 1
    return found


def check(model: bytes, batch: int, steps: int = 1) -> None:
    """Run a model with other lengths than its file names, and compare with ONNX Runtime."""
    given = feeds(model, batch, steps)
    wanted = expected(model, given)
    with tightship.load(model, shapes={k: v.shape for k, v in given.items()}) as loaded:
        results = loaded.run(given)
    for name, want in wanted.items():
        np.testing.assert_allclose(results[name], want, rtol=2e-4, atol=2e-5)
        assert want.shape[0] == batch

"""Models whose batch is opened, and run by ONNX Runtime for several samples at once."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
import pytest

from tests.zoo.net import Array, Case, Net
from tests.zoo.oracle import expected
from tightship.frontend.model_file import open_model_bytes
from tightship.frontend.onnx.open_batch import BATCH, open_batch
from tightship.graph.batch_axis import FixedBatchError


def opened(model: bytes) -> bytes:
    """Open the batch of a model."""
    graph = open_model_bytes(model).graph({})
    proto = onnx.load_from_string(model)
    open_batch(proto.graph, graph)
    onnx.checker.check_model(proto, full_check=True)
    return proto.SerializeToString()


def check_samples(case: Case, count: int = 3, tolerance: float = 1e-4) -> None:
    """Check that several batches at once give what each gives alone, in order.

    Outputs whose first axis is not the batch are joined along the axis whose length grew.
    """
    model = opened(case.model)
    with_samples = {
        value.name
        for value in onnx.load_from_string(model).graph.input
        if value.type.tensor_type.shape.dim[:1]
        and value.type.tensor_type.shape.dim[0].dim_param == BATCH
    }
    assert with_samples
    batches = [_drawn(case.feeds, with_samples, seed) for seed in range(count)]
    joined = {
        name: np.concatenate([each[name] for each in batches]) if name in with_samples else value
        for name, value in case.feeds.items()
    }
    alone = [expected(case.model, each) for each in batches]
    for name, value in expected(model, joined).items():
        parts = [each[name] for each in alone]
        (axis,) = (
            axis
            for axis, (after, before) in enumerate(zip(value.shape, parts[0].shape, strict=True))
            if after == count * before and after != before
        )
        want = np.concatenate(parts, axis)
        np.testing.assert_allclose(value, want, rtol=tolerance, atol=tolerance)
        assert not np.array_equal(*np.array_split(want, count, axis)[:2]), "samples are alike"


def check_or_refusal(write: Callable[[Net, str], str], batch: int, reason: str) -> None:
    """Check samples of a network of one operator, or that it is refused for a reason."""
    net = Net(1)
    net.output(write(net, net.normal("x", batch, 4)))
    if not reason:
        check_samples(net.case())
        return
    with pytest.raises(FixedBatchError, match=reason):
        opened(net.case().model)


def _drawn(feeds: Mapping[str, Array], drawn: set[str], seed: int) -> dict[str, Array]:
    """Draw other samples: real numbers anew, integers in another order."""
    random = np.random.default_rng(seed)
    found = dict(feeds)
    for name in drawn:
        value = feeds[name]
        if value.dtype.kind == "f":
            found[name] = random.standard_normal(value.shape).astype(value.dtype)
        else:
            found[name] = random.permuted(value, axis=-1)
    return found

"""Steps that run in Python."""

import numpy as np

from tests.zoo.net import Net
from tightship.engine.lower.selection import lower
from tightship.engine.plan.footprint import calls_blas
from tightship.engine.program.program import ReferenceWork
from tightship.frontend.onnx import read_bytes


def test_a_kernel_on_objects_knows_the_types_that_it_writes() -> None:
    net = Net(opset=17)
    x, chosen = net.normal("x", 4, 3, 8, 8), net.input("chosen", np.arange(4) < 2)
    images = net("Compress", x, chosen, axis=0)
    net.output(net("Conv", images, net.weight(2, 3, 3, 3)))
    lowered = lower(read_bytes(net.case().model), without=["onednn"])
    found = [(step.implementation, type(step.work)) for step in lowered.steps]
    assert found == [("Compress", ReferenceWork), ("Conv", ReferenceWork)]
    assert calls_blas(lowered)

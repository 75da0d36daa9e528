"""STFT, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest

import tightship
from tests.zoo.net import Case, Net


def transformed(*, one_sided: int | None, windowed: bool, step: int) -> Case:
    net = Net(opset=17)
    signal = net.normal("signal", 2, 200, 1)
    window = net.constant(np.hanning(32).astype(np.float32)) if windowed else ""
    length = net.constant(np.array(32, np.int64))
    steps = net.constant(np.array(step, np.int64))
    stated = {} if one_sided is None else {"onesided": one_sided}
    net.output(net("STFT", signal, steps, window, length, **stated))
    return net.case()


@pytest.mark.parametrize("one_sided", [None, 0, 1])
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("step", [8, 13])
def test_spectra_are_those_of_onnxruntime(
    one_sided: int | None, step: int, *, windowed: bool
) -> None:
    case = transformed(one_sided=one_sided, windowed=windowed, step=step)
    (wanted,) = onnxruntime.InferenceSession(case.model).run(None, case.feeds)
    with tightship.load(case.model) as model:
        (found,) = model.run(case.feeds).values()
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)

"""Native segments of a run."""

import numpy as np
import pytest

from tests.engine.run.programs import loaded
from tightship._core import StopFlag
from tightship.engine.run.executable import NativeSegment
from tightship.engine.run.limits import Limits
from tightship.engine.run.native_run import run_native
from tightship.errors import InputError, StoppedError

TEXT = "g (float[3] x, int64[2] k) => (float[2] y) { a = Neg (x) y = Gather (a, k) }"


def bound(k):
    run, _ = loaded(TEXT)
    arrays = {"x": np.arange(3, dtype=np.float32), "k": np.array(k), "y": np.empty(2, np.float32)}
    ports = {**run.program.inputs, **run.program.outputs}
    run.arena.bind({ports[name].slot: array for name, array in arrays.items()}, None)
    (segment,) = run.executable.segments
    assert isinstance(segment, NativeSegment)
    return run, segment, arrays


@pytest.mark.parametrize("workers", [1, 2])
def test_a_segment_writes_its_results(workers):
    run, segment, arrays = bound([2, 1])
    run_native(run.executable, run.arena, segment, Limits(workers=workers), None)
    assert arrays["y"].tolist() == [-2, -1]


def test_elements_that_an_operator_cannot_take_are_an_input_error():
    run, segment, _ = bound([5, 1])
    with pytest.raises(InputError, match="5"):
        run_native(run.executable, run.arena, segment, Limits(), None)


def test_a_stop_flag_ends_it():
    run, segment, _ = bound([0, 1])
    flag = StopFlag()
    flag.set()
    with pytest.raises(StoppedError):
        run_native(run.executable, run.arena, segment, Limits(flag), None)

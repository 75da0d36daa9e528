import pytest

import tightship
from tests.decoders import llama
from tests.small_models import cell, dense
from tightship.errors import InputError
from tightship.lengths import LengthPeaks, OpenLengths


def opened(shapes=None, **more):
    found = OpenLengths.of(dense(**more)[0], shapes)
    assert found is not None
    return found


def test_peaks_are_those_of_plans():
    found = opened({"batch": 1024}).peaks("batch", (1, 2, 64))
    assert [length for length, _ in found.peaks] == [1024, 2048, 65536]
    for length, peak in found.peaks:
        assert tightship.plan(dense()[0], shapes={"batch": length}).peak_bytes == peak


def test_lengths_that_are_not_given_are_chosen():
    found = opened()
    assert (dict(found.lengths), found.are_chosen) == ({"batch": 1}, True)
    assert (found.shapes, opened({"x": (3, 32)}).are_chosen) == ({"x": (1, 32)}, False)


def test_growth_is_per_length():
    found = LengthPeaks("n", 16, ((16, 100), (64, 400)))
    assert found.growth_bytes == 100
    assert LengthPeaks("n", 16, ((16, 100),)).growth_bytes == 0


def test_the_largest_length_that_a_limit_holds_is_exact():
    found = opened({"batch": 8})
    largest = found.largest("batch", "64MiB")
    assert found.peak_bytes("batch", largest) <= 64 << 20 < found.peak_bytes("batch", largest + 1)
    assert found.largest("batch", "1MiB") == 0


def test_lengths_computed_from_others_follow():
    """The mask of a decoder has the sum of the past and the new tokens."""
    found = OpenLengths.of(llama())
    assert found is not None
    name = "past_sequence_length"
    shapes = found._shapes(name, 50)
    past = next(shape for each, shape in shapes.items() if "past" in each)
    assert 50 in past
    assert tightship.plan(llama(), shapes=shapes).peak_bytes == found.peak_bytes(name, 50)


def test_modules_of_torch_are_planned_for_each_length():
    torch = pytest.importorskip("torch")
    module, x = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU()), torch.zeros(2, 32)
    shapes = {"input": ("batch", 32)}
    found = OpenLengths.of(module, shapes, example_inputs=x)
    assert dict(found.lengths) == {"batch": 2}
    for length, peak in found.peaks("batch", (1, 3, 500)).peaks:
        assert tightship.plan(module, x, shapes={**shapes, "batch": length}).peak_bytes == peak
    assert OpenLengths.of(module, example_inputs=x) is None
    with pytest.raises(InputError, match="give `example_inputs`"):
        OpenLengths.of(module)


def test_workers_are_those_of_a_plan():
    found = OpenLengths.of(dense()[0], {"batch": 64}, workers=2)
    assert (
        found.peak_bytes() == tightship.plan(dense()[0], shapes={"batch": 64}, workers=2).peak_bytes
    )
    with pytest.raises(InputError, match="give `workers` too"):
        OpenLengths.of(dense()[0], workers_memory="1MiB")


def test_a_model_without_open_lengths_is_not_one():
    assert OpenLengths.of(cell()) is None


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match=r"no open length `seq`; it has `batch`"):
        opened().peaks("seq")
    with pytest.raises(InputError, match="is not an amount of memory"):
        opened().largest("batch", "much")
    with pytest.raises(InputError, match="no input and no dimension `seq`"):
        opened({"seq": 3})

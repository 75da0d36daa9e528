import gc
import re
import sys

import numpy as np
import pytest

from tests.engine.graphs import built, graph_of, prepared, static_placement
from tests.models import filled
from tests.processor import HAS_AVX512
from tests.zoo.networks import STATIC
from tightship import _core
from tightship.engine.program.program import NATIVE_WORK, KernelWork, PrimitiveWork, ReferenceWork
from tightship.engine.program.schedule import ALIGNMENT
from tightship.engine.run.executable import NativeSegment, PythonStep
from tightship.engine.weights.allocation import allocate
from tightship.engine.weights.pack import staging_bytes
from tightship.errors import OutOfMemoryError
from tightship.resource import HostResource

ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")


class Refusing:
    """A resource that refuses its n-th request."""

    def __init__(self, refused):
        self.refused = refused
        self.requests = []
        self.upstream = HostResource()

    def allocate_block(self, size_bytes, alignment):
        self.requests.append(size_bytes)
        if len(self.requests) == self.refused:
            raise MemoryError
        return self.upstream.allocate_block(size_bytes, alignment)


MIXED = """g (float[4, 8] x) => (float[4, 8] y, float[4, 8] z) {
    a = MatMul (x, w)
    b = Erf (a)
    c = MatMul (b, w)
    d = Tanh (c)
    y = MatMul (d, w)
    z = Identity (d)
}"""


WITHOUT_PRODUCTS = re.sub(r"MatMul \((\w), w\)", r"Sigmoid (\1)", MIXED)


def is_native(work):
    return isinstance(work, NATIVE_WORK)


@pytest.mark.parametrize("name", STATIC)
def test_segments_hold_every_step_once_and_in_order(name):
    placement = static_placement(name)
    executable = built(placement)
    works = [step.work for step in placement.lowered.steps]
    position = native = 0
    for segment in executable.segments:
        if isinstance(segment, NativeSegment):
            assert segment.first == native
            count = segment.last - segment.first
            assert count > 0
            assert all(is_native(work) for work in works[position : position + count])
            native, position = segment.last, position + count
        else:
            assert segment.index == position
            work = works[position]
            assert segment.work == (work.ready() if isinstance(work, KernelWork) else work)
            assert not is_native(segment.work)
            position += 1
    assert position == len(works)
    assert native == (executable.native.step_count if executable.native else 0)


@ONEDNN
def test_what_is_built_holds_no_description_of_a_primitive():
    placement = prepared(graph_of(MIXED, w=filled(8, 8))).placement
    desc = next(s.work.desc for s in placement.lowered.steps if isinstance(s.work, PrimitiveWork))
    before = sys.getrefcount(desc)
    executable = built(placement)
    assert sys.getrefcount(desc) == before
    steps = executable.placement.lowered.steps
    assert not any(is_native(step.work) for step in steps)
    assert [step._replace(work=None) for step in steps] == [
        step._replace(work=None) for step in placement.lowered.steps
    ]


@ONEDNN
def test_native_steps_in_a_row_are_one_call():
    graph = graph_of(MIXED, w=filled(8, 8)) if HAS_AVX512 else graph_of(WITHOUT_PRODUCTS)
    placement = prepared(graph, ("native",)).placement
    segments = built(placement).segments
    assert [type(segment) for segment in segments] == [NativeSegment, PythonStep, NativeSegment]
    assert isinstance(segments[1].work, KernelWork)


def test_a_program_of_python_steps_alone_has_no_native_part():
    graph = graph_of("g (int32[3] x) => (int32[3] y) { y = Neg (x) }")
    executable = built(prepared(graph, ("native",)).placement)
    assert executable.native is None
    assert [type(segment) for segment in executable.segments] == [PythonStep]


def test_what_a_kernel_was_made_for_is_kept_no_longer_than_it_takes_to_build():
    graph = graph_of("g (int32[3] x) => (int32[3] y) { y = Neg (x) }")
    placement = prepared(graph, ("native",)).placement
    executable = built(placement)
    (step,), (kept,) = executable.segments, executable.placement.lowered.steps
    sites = [
        each.kernel.context for each in (placement.lowered.steps[0].work, step.work, kept.work)
    ]
    assert [context is None for context in sites] == [False, True, True]


def test_weights_are_kept_and_what_packing_needed_is_given_back():
    placement = static_placement("residual")
    host = HostResource()
    executable = built(placement, host)
    gc.collect()
    page = 4096
    kept = -(-placement.weights_bytes // page) * page
    staging = -(-max(staging_bytes(placement.lowered.weights), 1) // page) * page
    assert host.current_bytes == kept
    assert host.peak_bytes == kept + staging
    assert any(copy.array().any() for copy in executable.weights)


def test_a_weight_is_found_by_its_index():
    graph = graph_of("g (int32[3] x) => (int32[3] y) { a = Add (x, v) y = Mul (a, w) }",
                     v=np.array([1, 2, 3], np.int32), w=np.array([4, 5, 6], np.int32))  # fmt: skip
    placement = prepared(graph).placement
    copies = built(placement).weights
    for weight, copy in zip(placement.lowered.weights, copies, strict=True):
        np.testing.assert_array_equal(copy.array().view(np.int32), weight.constant.array())
        assert copy.address % ALIGNMENT == 0


@pytest.mark.parametrize("name", ["residual", "encoder", "recurrent"])
def test_progress_grows_up_to_its_end(name):
    seen = []
    built(static_placement(name), None, lambda done, total: seen.append((done, total)))
    assert len(seen) == len(static_placement(name).lowered.weights)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len({total for _, total in seen}) == 1
    assert seen[-1][0] == seen[-1][1]


def test_the_largest_weight_comes_first():
    sizes, seen = [w.size_bytes for w in static_placement("encoder").lowered.weights], []
    built(static_placement("encoder"), None, lambda done, _: seen.append(done))
    steps = np.diff([0, *seen]).tolist()
    assert steps == sorted(sizes, reverse=True)


@pytest.mark.parametrize(("refused", "what"), [(1, "the weights"), (2, "a piece of a weight")])
def test_a_refusal_says_what_for_and_leaves_nothing(refused, what):
    resource = Refusing(refused)
    with pytest.raises(OutOfMemoryError, match=what) as error:
        built(static_placement("residual"), resource)
    assert error.value.requested_bytes == resource.requests[-1]
    assert f"{resource.requests[-1]} bytes" in str(error.value)
    del error
    gc.collect()
    assert resource.upstream.current_bytes == 0


def test_what_is_not_refused_is_allocated():
    assert allocate(HostResource(), 100, "nothing").size_bytes == 100


DYING = """g (float[6] x) => (int64[1, n] y, float[k] z) {
    a = NonZero (x)
    b = Add (a, one)
    c = Mul (b, a)
    y = Identity (c)
    z = Compress (x, keep)
}"""


def test_an_object_goes_with_its_last_reader_and_outputs_stay():
    graph = graph_of(DYING, one=np.array(1), keep=np.array([True, False]))
    placement = prepared(graph).placement
    executable = built(placement)
    frees = {segment.step.writes[0].name: segment.frees for segment in executable.segments
             if isinstance(segment.work, ReferenceWork)}  # fmt: skip
    assert frees == {"a": (), "b": (), "c": ("a", "b"), "y": ("c",), "z": ()}

import numpy as np
import pytest

from tests.engine.graphs import graph_of, implementations, lowered, static_graph
from tests.models import filled, if_model
from tests.zoo.networks import DYNAMIC, STATIC
from tightship import _core
from tightship._core import OneDnnError
from tightship.engine.lower.onednn.choose import SLOW, fast, is_slow
from tightship.engine.program.program import KernelWork, Space
from tightship.errors import InputError
from tightship.frontend.onnx import read_bytes
from tightship.planner import AliasKind

ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")


@ONEDNN
@pytest.mark.parametrize("name", STATIC)
def test_no_slow_implementation_is_ever_chosen(name):
    found = implementations(static_graph(name))
    assert any(kernel == "onednn" for _, kernel, _ in found)
    assert all(SLOW.isdisjoint(implementation.split(":")) for _, _, implementation in found)


@pytest.mark.parametrize("name", STATIC)
def test_what_has_known_shapes_is_planned_throughout(name):
    assert all(step.dynamic_reason is None for step in lowered(static_graph(name)).steps)


class Described:
    """A description that goes from one implementation to the next."""

    def __init__(self, *implementations):
        self.left = list(implementations)

    @property
    def implementation(self):
        return self.left[0]

    def next_implementation(self):
        if len(self.left) == 1:
            return False
        self.left.pop(0)
        return True


def test_the_first_implementation_that_is_not_slow_is_taken():
    def chosen(*implementations):
        found = fast(lambda: Described(*implementations))
        return None if found is None else found.implementation

    assert chosen("jit:avx2", "brgconv:avx2") == "jit:avx2"
    assert chosen("x64:gemm:jit", "ref:any", "jit:avx2", "ref:any") == "jit:avx2"
    assert chosen("gemm:ref", "ref:any") is None
    assert chosen("simple:any") == "simple:any"


def test_what_the_library_cannot_describe_is_nothing():
    def refuse():
        raise OneDnnError("unimplemented")

    assert fast(refuse) is None


def test_slow_is_a_word_of_the_name_and_not_a_part_of_one():
    assert is_slow("ref")
    assert is_slow("x64:gemm:jit")
    assert not is_slow("brgemm:avx2")
    assert not is_slow("jit:refined")


SMALL = "g (float[2, 3] x) => (float[2, 3] y) {{ {} }}"


@ONEDNN
@pytest.mark.parametrize(
    ("body", "kernel"),
    [
        ("y = Sigmoid (x)", "onednn"),
        ("y = Relu (x)", "native"),
        ("y = Softplus (x)", "native"),
        ("y = MatMul (x, w)", "onednn"),
        ("y = Erf (x)", "native"),
    ],
)
def test_onednn_comes_first_then_native_kernels_then_numpy(body, kernel):
    graph = graph_of(SMALL.format(body), w=filled(3, 3))
    assert implementations(graph)[0][1] == kernel
    assert implementations(graph, ("onednn", "native"))[0][1] == "numpy"


@pytest.mark.parametrize("dtype", ["double", "int32", "float16"])
def test_types_that_onednn_is_not_given_run_natively(dtype):
    graph = graph_of(f"g ({dtype}[2, 3] x) => ({dtype}[2, 3] y) {{ y = Add (x, x) }}")
    assert [kernel for _, kernel, _ in implementations(graph)] == ["native"]


@pytest.mark.parametrize("shape", ["2, 0", "0", "1, 1, 1, 2, 1, 3"])
def test_empty_tensors_and_ranks_above_five_run_natively(shape):
    graph = graph_of(f"g (float[{shape}] x) => (float[{shape}] y) {{ y = Relu (x) }}")
    assert [kernel for _, kernel, _ in implementations(graph)] == ["native"]


def test_a_kernel_may_write_over_what_it_reads():
    graph = graph_of("g (int32[9] x) => (int32[9] y) { a = Neg (x) b = Abs (a) y = Neg (b) }")
    steps = lowered(graph).steps
    assert [s.kind for step in steps for s in step.sharing] == [AliasKind.IN_PLACE]
    assert [s.output for s in steps[1].sharing] == [steps[1].writes[0].slot]
    assert [s.input for s in steps[1].sharing] == [steps[0].writes[0].slot]


REASONS = {
    "shape depends on data; at most 24 bytes": "g (float[3] x) => (int64[1, n] y) {y=NonZero (x)}",
    "strings": "g (string[3] x) => (string[3] y) { y = StringNormalizer (x) }",
    "sequence, optional or map": """g (float[3] x) => (float[3] y) {
        s = SequenceConstruct (x) y = SequenceAt (s, zero) }""",
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_step_outside_the_plan_says_why(reason):
    program = lowered(graph_of(REASONS[reason], zero=np.array(0)))
    assert program.steps[0].dynamic_reason == reason
    assert program.steps[0].kernel == "reference"


def test_a_step_that_runs_a_graph_says_so():
    program = lowered(read_bytes(if_model().SerializeToString()))
    assert [step.dynamic_reason for step in program.steps] == ["shape depends on data"]
    static = graph_of("""g (bool flag, float[2] x) => (float[2] y) {
        y = If (flag) < then_branch = a () => (float[2] p) { p = Neg (x) },
                        else_branch = b () => (float[2] q) { q = Abs (x) } > }""")
    reasons = {"reference": "runs a graph, which allocates its values", "native": None}
    for without in ((), ("native",)):
        (step,) = lowered(static, without).steps
        assert step.kernel == ("reference" if without else "native")
        assert step.dynamic_reason == reasons[step.kernel]
        assert {o.name for o in step.reads} == {"flag", "x"}
        assert step.writes[0].space is Space.EXTERNAL


@pytest.mark.parametrize("name", DYNAMIC)
def test_only_what_must_allocates(name):
    for step in lowered(read_bytes(DYNAMIC[name]().model)).steps:
        is_dynamic = step.dynamic_reason is not None
        assert is_dynamic == (step.kernel == "reference")
        if isinstance(step.work, KernelWork):
            assert all(o.space is not Space.OBJECT for o in (*step.reads, *step.writes))


def test_a_dropout_that_drops_nothing_is_a_view():
    graph = graph_of("g (float[3] x) => (float[3] y) { a = Neg (x) b = Dropout (a) y = Neg (b) }")
    assert [step.operator for step in lowered(graph).steps] == ["Neg", "Neg"]


def test_a_name_that_is_no_pass_is_refused():
    with pytest.raises(InputError, match="Unknown pass `x`"):
        lowered(graph_of(SMALL.format("y = Neg (x)")), ("x",))

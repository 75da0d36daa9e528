"""`planned_apart`: what a plan states where another process plans the model."""

from tests.models import conv_net, filled, parse
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.library import open_library
from tightship.engine.plan.footprint import FRONTEND_BYTES, PYTHON_BYTES, PYTHON_OWN_BYTES
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.plan.planned_apart import planned_apart
from tightship.frontend.onnx import read_bytes

MIB = 1 << 20


def compiled(model) -> CompiledModel:
    open_library()
    return prepare(read_bytes(model.SerializeToString()), "model", Settings())


def stated(made: CompiledModel) -> MemoryPlan:
    return planned_apart(made.plan, made.placement.lowered, made.node_count)


def test_the_process_that_takes_over_reads_no_model() -> None:
    made = compiled(conv_net())
    plan, other = made.plan, stated(made)
    assert other.runtime_bytes <= plan.runtime_bytes - FRONTEND_BYTES // 2
    assert other.peak_bytes == plan.peak_bytes - plan.runtime_bytes + other.runtime_bytes
    assert other.here_bytes == plan.peak_bytes == plan.here_bytes


def test_the_other_process_has_weights_and_a_python_of_its_own() -> None:
    count = MIB
    text = f"g (float[{count}] x) => (float[{count}] y) {{ y = Add (x, b) }}"
    small, large = (stated(compiled(parse(text, b=filled(length)))).apart for length in (1, count))
    assert small is not None
    assert large is not None
    assert small.process_bytes >= PYTHON_BYTES + FRONTEND_BYTES
    assert 4 * count - 64 <= large.process_bytes - small.process_bytes <= 8 * count
    assert large.process_bytes - large.together_bytes < PYTHON_BYTES - PYTHON_OWN_BYTES


def test_both_at_once_are_at_least_the_peak() -> None:
    text = f"g (float[{64 * MIB}] x) => (float[{64 * MIB}] y) {{ y = Relu (x) }}"
    plan = stated(compiled(parse(text)))
    assert plan.apart is not None
    assert plan.apart.together_bytes == plan.peak_bytes > plan.apart.process_bytes

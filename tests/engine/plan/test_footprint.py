from dataclasses import replace

import numpy as np
import pytest

from tests.engine.graphs import graph_of, lowered, prepared, static_graph, static_placement
from tests.models import filled
from tests.zoo.networks import STATIC
from tightship import _core
from tightship.engine.plan import footprint
from tightship.engine.plan.footprint import (
    COMPILING_BYTES,
    FRONTEND_BYTES,
    HEAP_BYTES,
    IMPLEMENTATION_BYTES,
    KERNEL_BYTES,
    NATIVE_STEP_BYTES,
    NODES_AS_ONE,
    ONEDNN_BYTES,
    REFERENCE_BYTES,
    STACK_BYTES,
    STEP_BYTES,
    THREAD_BYTES,
    counted_nodes,
    further_bytes,
    program_bytes,
    runtime_bytes,
    steps_bytes,
)
from tightship.engine.program.program import NativeWork, ReferenceWork
from tightship.graph import Derived, DType, Inline

MIB = 1 << 20
ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")


@pytest.fixture(scope="module")
def program():
    return static_placement("residual").lowered


@pytest.mark.parametrize("name", STATIC)
def test_the_same_model_has_the_same_runtime(name):
    first, second = lowered(static_graph(name)), lowered(static_graph(name))
    assert runtime_bytes(first, 10) == runtime_bytes(second, 10)


@pytest.mark.parametrize("name", STATIC)
def test_nodes_steps_and_threads_only_add(name):
    program = static_placement(name).lowered
    base = runtime_bytes(program, 10)
    assert runtime_bytes(program, 11) > base
    longer = program._replace(steps=program.steps + program.steps)
    assert runtime_bytes(longer, 10) > base
    shorter = program._replace(steps=program.steps[: len(program.steps) // 2])
    assert runtime_bytes(shorter, 10) < base


def test_an_empty_program_takes_what_reading_it_takes(program):
    empty = program._replace(steps=(), weights=())
    assert runtime_bytes(empty, 0) == max(FRONTEND_BYTES, HEAP_BYTES)


def test_nodes_that_shapes_determine_count_in_part():
    graph = graph_of(
        "g (float[3, 4] x) => (int64[m] y, float[3, 4] z)"
        "{ s = Shape (x) t = Neg (s) y = Abs (t) z = Relu (x) }"
    )
    assert sum(name in graph.known for name in "sty") == 3
    assert counted_nodes(graph) == 1 + -(-3 // NODES_AS_ONE)


def test_copies_of_a_node_count_once():
    graph = graph_of("g (float[3, 4] x) => (float[3, 4] z) { y = Relu (x) z = Relu (y) }")
    first, second = graph.nodes
    copied = replace(graph, nodes=(first, replace(second, attributes=first.attributes)))
    assert (counted_nodes(graph), counted_nodes(copied)) == (2, 1)


def test_steps_of_the_core_count_less_unless_they_are_stored(program):
    natives = sum(isinstance(step.work, NativeWork) for step in program.steps)
    saved = natives * (STEP_BYTES - NATIVE_STEP_BYTES)
    assert program_bytes(program) == program_bytes(program, is_stored=True) - saved
    assert steps_bytes(program) == len(program.steps) * STEP_BYTES - saved
    assert further_bytes(program) <= further_bytes(program, is_stored=True)


def test_each_further_thread_has_a_stack(program):
    base = runtime_bytes(program, 10)
    for threads in (2, 3, 16):
        more = runtime_bytes(program._replace(threads=threads), 10)
        assert more == base + (threads - 1) * THREAD_BYTES


@ONEDNN
def test_a_program_with_primitives_pays_for_their_library(program):
    assert runtime_bytes(program, 0) >= FRONTEND_BYTES + ONEDNN_BYTES


@ONEDNN
def test_compiling_counts_where_the_arena_is_smaller(program):
    small = runtime_bytes(program, 0)
    (*others, last) = program.slots
    roomy = program._replace(slots=(*others, last._replace(size_bytes=16 * MIB)))
    kinds = {step.implementation for step in program.steps if step.kernel == "onednn"}
    most = COMPILING_BYTES + len(kinds) * IMPLEMENTATION_BYTES
    assert 0 < small - runtime_bytes(roomy, 0) <= most


def test_a_reference_kernel_pays_for_its_library():
    program = lowered(graph_of("g (float[3] x) => (int64[1, n] y) { y = NonZero (x) }"))
    assert isinstance(program.steps[0].work, ReferenceWork)
    planned = lowered(graph_of("g (int32[3] x) => (int32[3] y) { y = Neg (x) }"))
    assert runtime_bytes(program, 1) - runtime_bytes(planned, 1) >= REFERENCE_BYTES - MIB


@ONEDNN
def test_code_is_counted_for_each_primitive_that_is_unlike_the_others(program):
    def tanh(rows):
        return lowered(
            graph_of(f"g (float[{rows}, 3] x) => (float[{rows}, 3] y) {{ y = Tanh (x) }}")
        ).steps[0]

    alike = program._replace(steps=tuple(tanh(7) for _ in range(150)))
    unlike = program._replace(steps=tuple(tanh(rows) for rows in range(1, 151)))
    assert runtime_bytes(unlike, 1) > runtime_bytes(alike, 1) + MIB


@ONEDNN
def test_another_library_keeps_what_it_reserves_for_code(program, monkeypatch):
    graph = "g (float[{0}, 3] x) => (float[{0}, 3] y) {{ y = Tanh (x) }}"
    steps = [lowered(graph_of(graph.format(rows))).steps[0] for rows in range(1, 151)]
    many = program._replace(steps=tuple(steps))
    sealed = runtime_bytes(many, 1)
    monkeypatch.setattr(footprint, "seals_code", lambda: False)
    assert runtime_bytes(many, 1) - sealed >= 150 * KERNEL_BYTES - 12 * MIB
    threads = [runtime_bytes(many._replace(threads=count), 1) for count in (1, 3)]
    assert threads[1] - threads[0] == 2 * (THREAD_BYTES + STACK_BYTES)


def test_a_weight_that_is_computed_whole_is_held_while_it_is_packed():
    count = 32 * MIB
    constant = Derived(DType.FLOAT32, (count,), lambda: np.zeros(count, np.float32))
    program = lowered(graph_of("g (float[3] x) => (float[3] y) { a = Neg (x) y = Add (a, w) }",
                               w=filled(3)))  # fmt: skip
    (weight,) = program.weights
    small = runtime_bytes(program, 2)
    large = runtime_bytes(program._replace(weights=(weight._replace(constant=constant),)), 2)
    assert large - small >= 2 * 4 * count - 4 * MIB
    inline = Inline(np.zeros(1, np.float32))
    as_it_is = program._replace(weights=(weight._replace(constant=inline),))
    assert runtime_bytes(as_it_is, 2) == small


def test_a_plan_states_the_runtime_before_anything_is_loaded():
    graph = static_graph("mobile")
    made = prepared(graph)
    assert made.plan.runtime_bytes == runtime_bytes(made.placement.lowered, len(graph.nodes))

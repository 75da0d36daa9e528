from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.format.flatbuffers import Scalar
from tests.planner.format.tflite_models import chain, operator, planned, tensor
from tightship.errors import FormatError, InputError
from tightship.planner import place, verify_offsets
from tightship.planner.format.tflite import read_tflite, write_tflite


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.tflite"


def read(path, content):
    path.write_bytes(content)
    return read_tflite(path)


def subgraph(tensors, operators=(), inputs=(), outputs=()):
    return chain({2: [{0: tensors, 1: list(inputs), 2: list(outputs), 3: list(operators)}]})


def test_tensors_live_from_their_writer_to_their_last_reader(path):
    tensors = read(path, chain())
    problem = tensors.problem
    assert list(problem.names) == ["x", "a", "b", "y"]
    assert tensors.tensor == (0, 2, 3, 5)
    assert problem.columns().T.tolist() == [
        [32, 0, 1, 16],
        [64, 0, 2, 16],
        [5, 1, 3, 16],
        [16, 2, 3, 16],
    ]
    assert tensors.offset_bytes is None


def test_inputs_live_from_the_first_step_and_outputs_to_the_last(path):
    steps = [operator([0], [1]), operator([1], [2]), operator([3], [4])]
    names = [tensor(name, 4) for name in "abcde"]
    problem = read(path, subgraph(names, steps, inputs=(0, 3), outputs=(1, 4))).problem
    spans = list(zip(problem.start_step.tolist(), problem.stop_step.tolist(), strict=True))
    assert spans == [(0, 1), (0, 3), (1, 2), (0, 3), (2, 3)]


def test_half_a_byte_an_element_is_rounded_up(path):
    tensors = [tensor("a", 3, kind=17), tensor("b", kind=0), tensor("c", 0, 5)]
    problem = read(path, subgraph(tensors, [operator([0, 1], [2])])).problem
    assert problem.size_bytes.tolist() == [2, 4, 0]


def test_metadata_holds_an_offset_for_each_tensor(path):
    tensors = read(path, planned([0, -1, 32, 96, -1, 0]))
    assert tensors.offset_bytes is not None
    assert tensors.offset_bytes.tolist() == [0, 32, 96, 0]
    verify_offsets(tensors.problem, tensors.offset_bytes)


@pytest.mark.parametrize("content", [chain(), planned([0] * 6)], ids=["without", "with"])
def test_a_plan_is_written_and_read_and_nothing_else_changes(path, tmp_path, content):
    tensors = read(path, content)
    plan = place(tensors.problem)
    target = tmp_path / "planned.tflite"
    write_tflite(target, path, tensors, plan.offset_bytes)
    again = read_tflite(target)
    assert again.offset_bytes is not None
    assert again.offset_bytes.tolist() == plan.offset_bytes.tolist()
    assert again.problem.columns().tolist() == tensors.problem.columns().tolist()
    written = target.read_bytes()
    write_tflite(target, target, again, plan.offset_bytes)
    assert target.read_bytes() == written


def test_other_metadata_and_the_weights_stay(path, tmp_path):
    tensors = read(path, planned([0] * 5, count=5).replace(b"Offline", b"Oldline"))
    target = tmp_path / "planned.tflite"
    write_tflite(target, path, tensors, np.arange(4) * 64)
    written = target.read_bytes()
    assert b"min_runtime_version" in written
    assert b"OldlineMemoryAllocation" in written
    weights = bytes(range(64)) * 4
    assert written.index(weights) % 16 == path.read_bytes().index(weights) % 16
    assert read_tflite(target).problem.columns().tolist() == tensors.problem.columns().tolist()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "bytes 4 to 8 must be `TFL3`"),
        (chain()[:200], "cut or damaged"),
        (chain({2: []}), "has no subgraph"),
        (subgraph([tensor("s", 1, kind=5)], [operator([0], [])]), "tensor 0 `s` has type 5"),
        (
            subgraph([tensor("d", 1, signature=(-1,))], [operator([0], [])]),
            "`d` has an unknown length",
        ),
        (subgraph([tensor("a", 1)], [operator([0], [7])]), "step 0 names tensor 7; .* has 1"),
        (subgraph([tensor("a", 1, buffer=9)], [operator([0], [])]), "`a` is in buffer 9"),
        (planned([0] * 5, count=5), "has 32 bytes for 5 tensors; the subgraph has 6"),
        (planned([0] * 3, count=6), "has 24 bytes for 6 tensors"),
        (planned([0] * 6, subgraph=1), "is for subgraph 1"),
        (
            chain({6: [{0: "OfflineMemoryAllocation", 1: Scalar("I", 9)}]}),
            "is in buffer 9 of 2",
        ),
    ],
)
def test_what_is_wrong_is_named(path, content, words):
    with pytest.raises(FormatError, match=words):
        read(path, content)


@given(st.data())
def test_a_damaged_file_is_read_or_refused_but_breaks_nothing(tmp_path_factory, data):
    content = bytearray(planned([0, -1, 32, 96, -1, 0]))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    path = tmp_path_factory.mktemp("tflite") / "model.tflite"
    with suppress(FormatError):
        read(path, bytes(content))


def test_data_outside_the_flatbuffer_is_not_moved(path, tmp_path):
    tensors = read(path, chain({4: [{}, {1: Scalar("Q", 4096), 2: Scalar("Q", 64)}]}))
    with pytest.raises(FormatError, match="data outside its flatbuffer"):
        write_tflite(tmp_path / "out.tflite", path, tensors, np.arange(4))


def test_fields_of_a_later_format_are_not_lost(path, tmp_path):
    tensors = read(path, chain({9: "new"}))
    with pytest.raises(FormatError, match="fields that this writer does not know"):
        write_tflite(tmp_path / "out.tflite", path, tensors, np.arange(4))


def test_an_offset_beyond_32_bits_is_refused(path, tmp_path):
    tensors = read(path, chain())
    with pytest.raises(InputError, match="holds offsets below 2147483648"):
        write_tflite(tmp_path / "out.tflite", path, tensors, np.array([0, 0, 0, 2**31]))

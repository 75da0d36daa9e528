"""Prepared files on nodes: found, prepared, sent, and refused."""

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import tightship
from tests import small_models
from tests.cluster.serve_clients import anchors, until
from tightship.cluster.node_file import (
    Source,
    check_source,
    find_file,
    receive_file,
    source_of,
)
from tightship.cluster.preparing_process import prepare_apart
from tightship.errors import FormatError, InputError
from tightship.prepared_cache import UnusableCacheError

SHAPES = {"x": (4, 32)}
MIB = 1 << 20


@pytest.fixture
def node(tmp_path, monkeypatch):
    """Switch to the cache of another node of this name."""

    def switch(name):
        monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / name))

    switch("first")
    return switch


@pytest.fixture
def source(node, tmp_path):
    assert node
    path = tmp_path / "dense.onnx"
    path.write_bytes(small_models.dense()[0])
    return source_of(path, SHAPES, 1)


def chunks(content, size=5000):
    return (content[start : start + size] for start in range(0, len(content), size))


def never(_source, path):
    raise AssertionError(path)


def test_a_node_prepares_a_file_once(source):
    made = find_file(source, prepare_apart)
    assert made == find_file(source, never)
    with tightship.load(made.path) as model:
        assert model.input_types["x"][1] == SHAPES["x"]


def test_a_file_arrives_in_chunks_and_is_the_same(source, node):
    sent = find_file(source, prepare_apart)
    content = Path(sent.path).read_bytes()
    node("second")
    missing = replace(source, path=source.path + ".elsewhere")
    assert find_file(missing, never) is None
    digest = hashlib.sha256(content).hexdigest()
    found = receive_file(missing, sent, digest, chunks(content))
    assert found.path != sent.path
    assert Path(found.path).read_bytes() == content
    assert receive_file(missing, sent, digest, iter(())) == found  # it is there


@pytest.mark.parametrize("place", [100, -1])
def test_a_file_that_arrives_damaged_is_refused(source, node, place):
    sent = find_file(source, prepare_apart)
    content = bytearray(Path(sent.path).read_bytes())
    true_digest = hashlib.sha256(content).hexdigest()
    content[place] ^= 1
    node("second")
    with pytest.raises((FormatError, UnusableCacheError), match="other bytes than were sent"):
        receive_file(source, sent, true_digest, chunks(content))
    forged = hashlib.sha256(content).hexdigest()
    with pytest.raises((FormatError, UnusableCacheError), match="damaged"):
        receive_file(source, sent, forged, chunks(content))
    assert find_file(source, prepare_apart).size_bytes == sent.size_bytes


def test_a_model_that_differs_between_nodes_is_refused(source, tmp_path):
    (tmp_path / "dense.onnx").write_bytes(small_models.dense(hidden=32)[0])
    with pytest.raises(InputError, match=r"differs between nodes: its digest is .* here and"):
        find_file(source, never)


def test_a_file_for_another_processor_is_refused(source, node):
    sent = find_file(source, prepare_apart)
    node("second")
    other = replace(sent, facts=(("cpu", "another"), *sent.facts))
    with pytest.raises(InputError, match="prepared it for cpu another"):
        receive_file(source, other, "", iter(()))


def test_a_prepared_model_serves_as_it_is(source, tmp_path):
    path = tmp_path / "dense.tship"
    tightship.prepare(source.path, path, shapes=SHAPES)
    given = source_of(path, None, 1)
    assert find_file(given, never).path == str(path)
    content = bytearray(path.read_bytes())
    content[5000] ^= 1  # a weight
    path.write_bytes(content)
    with pytest.raises(FormatError, match="does not match its checksum"):
        find_file(source_of(path, None, 1), never)


def test_errors_of_the_preparing_process_are_raised_here(source, tmp_path):
    unshaped = Source(source.path, source.digest, source.size_bytes)
    with pytest.raises(InputError, match="batch"):
        prepare_apart(unshaped, tmp_path / "out")
    with pytest.raises(OSError, match="missing"):
        prepare_apart(source, tmp_path / "missing" / "out")


def test_a_key_is_that_of_the_prepared_file(source, tmp_path):
    other = tmp_path / "other.onnx"
    other.write_bytes(Path(source.path).read_bytes())
    assert source_of(other, SHAPES, 1).key == source.key
    assert source_of(other, {"batch": 4}, 1).key == source.key
    assert source_of(other, {"x": (8, 32)}, 1).key != source.key
    assert source_of(other, SHAPES, 2).key != source.key
    prepared = tmp_path / "dense.tship"
    tightship.prepare(source.path, prepared, shapes=SHAPES)
    assert source_of(prepared, SHAPES, 1).key == source_of(prepared, None, 1).key


def test_a_model_without_shared_weights_is_checked_by_its_bytes(source):
    check_source(source)
    with pytest.raises(InputError, match="is missing on this node"):
        check_source(replace(source, path=source.path + ".elsewhere"))
    Path(source.path).write_bytes(small_models.dense(hidden=32)[0])
    with pytest.raises(InputError, match="differs between nodes"):
        check_source(source)


def test_an_anchor_receives_what_its_node_lacks(shared_cluster, source, tmp_path):
    import ray

    from tightship.cluster.held_nodes import hold_on
    from tightship.cluster.node_processes import Process
    from tightship.cluster.ray_state import alive_nodes
    from tightship.cluster.weights_bookings import Holding

    first, second = (shared_cluster.nodes[index].node_id for index in (0, 1))
    elsewhere = replace(source, path=str(tmp_path / "elsewhere.onnx"))
    user = subprocess.Popen(["sleep", "600"])
    process = Process("replica", user.pid, "dense", 0)
    (has,) = hold_on({first: MIB}, [Holding(source, MIB)])
    ray.get(has.register.remote(process, [source.key]))  # before the second anchor has started
    (lacks,) = hold_on({second: MIB}, [Holding(elsewhere, MIB)])
    ray.get(lacks.register.remote(process, [source.key]))
    sent, found = ray.get([has.file.remote(source), lacks.file.remote(elsewhere)])
    assert sent.path != found.path
    assert ray.get(has.digest.remote(source)) == ray.get(lacks.digest.remote(elsewhere))
    with pytest.raises(InputError, match="is missing on this node"):
        ray.get(lacks.file.remote(replace(elsewhere, digest="0")))
    user.kill()
    user.wait()
    until(lambda: not anchors())
    until(lambda: all(each.free_bytes == each.memory_bytes for each in alive_nodes()))

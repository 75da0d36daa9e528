"""Requirements of models; needs no Ray."""

import subprocess
import sys
from dataclasses import replace

import pytest

import tightship
from tests import small_models
from tests.zoo import light
from tightship import cluster
from tightship.engine.stored.container import PAGE_BYTES
from tightship.errors import InputError


@pytest.fixture
def dense(tmp_path):
    path = tmp_path / "dense.onnx"
    path.write_bytes(small_models.dense()[0])
    return path


def test_tensors_are_those_of_the_plan():
    path = light.path_of("squeezenet")
    needs, plan = cluster.requirements(path), tightship.plan(path)
    assert 0 <= needs.weights_bytes - plan.weights_bytes < PAGE_BYTES
    assert needs.arena_bytes == plan.arena_bytes
    assert needs.io_bytes == plan.io_bytes
    assert needs.node_bytes == needs.weights_bytes
    assert needs.replica_bytes == plan.arena_bytes + plan.io_bytes + needs.runtime_bytes


def test_a_replica_that_shares_nothing_holds_the_weights():
    path = light.path_of("squeezenet")
    alone, shared = cluster.requirements(path, share=False), cluster.requirements(path)
    assert alone.node_bytes == 0
    assert alone.replica_bytes == tightship.plan(path).here_bytes  # it may have imported onnx
    assert alone.replica_bytes >= shared.replica_bytes + shared.node_bytes


def test_a_prepared_file_has_the_requirements_of_its_model(tmp_path):
    path, prepared = light.path_of("squeezenet"), tmp_path / "model.tship"
    plan = tightship.prepare(path, prepared)
    needs = cluster.requirements(prepared)
    planned = cluster.requirements(path)
    assert needs.weights_bytes <= planned.weights_bytes  # a file has equal weights once
    assert needs == replace(planned, weights_bytes=needs.weights_bytes)
    assert needs.plan_bytes == plan.peak_bytes
    assert needs.data_bytes == plan.peak_bytes - plan.weights_bytes


def test_a_replica_may_take_what_its_prepared_file_plans(tmp_path):
    path, prepared = tmp_path / "resnet50.onnx", tmp_path / "model.tship"
    light.randomised("resnet50", 20, tmp_path).rename(path)  # no two weights are equal
    needs, plan = cluster.requirements(path), tightship.prepare(path, prepared)
    assert needs == replace(cluster.requirements(prepared), model=needs.model)
    assert needs.plan_bytes == plan.peak_bytes


def test_shapes_and_threads_count(dense):
    small = cluster.requirements(dense, shapes={"x": (1, 32)})
    large = cluster.requirements(dense, shapes={"x": (64, 32)}, threads=2)
    assert large.io_bytes == 64 * small.io_bytes
    assert large.threads == 2
    assert large.runtime_bytes > small.runtime_bytes


def test_a_model_that_allocates_while_it_runs_is_refused(tmp_path):
    path = tmp_path / "nonzero.onnx"
    path.write_bytes(small_models.nonzero())
    with pytest.raises(InputError, match="allocate outside the plan, the first"):
        cluster.requirements(path)


def test_a_model_that_nodes_cannot_read_is_refused(dense, tmp_path):
    with pytest.raises(InputError, match="is a path that its nodes can read, not bytes"):
        cluster.requirements(dense.read_bytes())
    with pytest.raises(InputError, match=r"`x`.*batch"):
        cluster.requirements(dense)
    prepared = tmp_path / "dense.tship"
    tightship.prepare(dense, prepared, shapes={"x": (1, 32)})
    with pytest.raises(InputError, match="so replicas share its weights"):
        cluster.requirements(prepared, share=False)


def test_ray_is_imported_by_none_of_this():
    code = (
        "import sys, tightship; assert 'tightship.cluster' not in sys.modules; "
        "from tightship import cluster; cluster.requirements; assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_process_without_a_cluster_is_told_to_connect():
    pytest.importorskip("ray", reason="Ray is not installed: `pip install 'tightship[ray]'`")
    code = (
        "from tightship import cluster\n"
        "try:\n    cluster.worker_bytes()\n"
        "except ValueError as error:\n    assert 'call `ray.init()` first' in str(error)\n"
        "else:\n    raise SystemExit(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""Stages as programs of their own: chained, they compute what the whole model does."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest

import tightship
from tests.cluster.test_splitting import chain
from tests.zoo import light
from tests.zoo.catalogue import SMALL
from tests.zoo.random_graph import random_case
from tightship import cluster
from tightship.cluster.splitting import Splitter
from tightship.cluster.stage_file import source_of_stage
from tightship.errors import InputError

SCRIPT = """
import json, resource, sys
import numpy as np
import tightship

def status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

path, peak = sys.argv[1], int(sys.argv[2])
before = {"resident": status("VmRSS"), "data": status("VmData")}
limit = before["data"] + peak
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
with tightship.load(path) as model:
    inputs = {
        name: np.zeros(shape, dtype.numpy) for name, (dtype, shape) in model.input_types.items()
    }
    for _ in range(3):
        results = model.run(inputs)
    print(json.dumps(status("VmHWM") - before["resident"]))
"""


def stages_of(model, parts, threads=1):
    """Cut a model at cuts that divide them about equally."""
    found = Splitter.of(model, None, threads)
    last = len(found.table.cuts) - 1
    ends = sorted({last * part // parts for part in range(parts + 1)})
    return [found.stage(pair, 0, 1 << 40) for pair in pairwise(ends)]


def chained(stages, inputs, folder):
    """Run stages one after another, each from a file of its own."""
    values = dict(inputs)
    for number, stage in enumerate(stages):
        path = folder / f"{number}.tship"
        assert stage.prepare(path).peak_bytes <= stage.plan.peak_bytes
        with tightship.load(path) as model:
            values |= model.run({name: values[name] for name in model.input_names})
    return values


def is_storable(model, path):
    with suppress(InputError):
        tightship.prepare(model, path)
    return path.exists()


def check(source, stages, folder, feeds=None):
    with tightship.load(source) as whole:
        feeds = feeds or {name: np.random.default_rng(3).standard_normal(shape, np.float32)
                          for name, (_, shape) in whole.input_types.items()}  # fmt: skip
        expected = whole.run(feeds)
    values = chained(stages, feeds, folder)
    for name, array in expected.items():
        assert values[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("parts", [2, 3, 7])
@pytest.mark.parametrize("model", [chain(), chain(tied=True), chain(skip=True)])
def test_stages_of_a_chain_compute_the_whole(model, parts, tmp_path):
    check(model, stages_of(model, parts), tmp_path)


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "inception_v1", "densenet121"])
def test_stages_of_networks_of_images_compute_the_whole(name, tmp_path):
    path = light.path_of(name)
    check(path, stages_of(path, 5), tmp_path)


@pytest.mark.parametrize("name", SMALL)
def test_stages_of_the_zoo_compute_the_whole(name, tmp_path):
    case = SMALL[name](1)
    check(case.model, stages_of(case.model, 4), tmp_path, case.feeds)


@pytest.mark.parametrize("seed", range(20))
def test_stages_of_random_graphs_compute_the_whole(seed, tmp_path):
    case = random_case(Random(seed), 25)
    if not is_storable(case.model, tmp_path / "whole.tship"):
        pytest.skip("no prepared model can hold it")
    check(case.model, stages_of(case.model, 6), tmp_path, case.feeds)


@pytest.mark.parametrize("name", ["squeezenet", "resnet50"])
def test_the_process_of_a_stage_stays_within_its_plan(name, tmp_path):
    for number, stage in enumerate(stages_of(light.path_of(name), 2)):
        path, peak = tmp_path / f"{number}.tship", stage.plan.peak_bytes
        stage.prepare(path)
        command = [sys.executable, "-c", SCRIPT, str(path), str(peak)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) <= peak


def test_tied_embeddings_are_in_both_files(tmp_path):
    case = SMALL["gpt2"](1)
    first, *_, last = stages_of(case.model, 3)
    table = 100 * 64 * 4
    assert first.prepare(tmp_path / "first.tship").weights_bytes >= table
    assert last.prepare(tmp_path / "last.tship").weights_bytes >= table


def test_a_model_that_changed_is_refused(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(chain())
    (stage,) = cluster.split(path, ["1GiB"]).stages
    path.write_bytes(chain(skip=True))
    with pytest.raises(InputError, match=r"`model.onnx` has changed since it was split"):
        stage.prepare(tmp_path / "stage.tship")
    path.unlink()
    with pytest.raises(InputError, match="or is gone; split it again"):
        stage.prepare(tmp_path / "stage.tship")
    assert not (tmp_path / "stage.tship").exists()


def test_the_model_itself_is_not_overwritten(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(chain())
    (stage,) = cluster.split(path, ["1GiB"]).stages
    with pytest.raises(InputError, match="would take the place of the model"):
        stage.prepare(path)


def test_a_stage_with_a_missing_input_names_it(tmp_path):
    second = stages_of(chain(skip=True), 2)[1]
    second.prepare(tmp_path / "second.tship")
    with tightship.load(tmp_path / "second.tship") as model:
        names = model.input_names
        assert len(names) == 2  # the value before it, and what skips
        row = np.zeros((1, 64), np.float32)
        with pytest.raises(InputError, match=f"`{names[1]}` is missing"):
            model.run({names[0]: row})


def test_ray_is_imported_by_none_of_this():
    code = (
        "import sys\nfrom tightship import cluster\n"
        "cluster.split, cluster.pipeline, cluster.Pipeline\nassert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "model.onnx"
    path.write_bytes(chain())
    return source_of_stage(stages_of(path, 2)[1])


def test_a_node_prepares_its_stage_once(source):
    path = source.path()
    with tightship.load(path) as model:
        assert model.output_names == ("y",)
    before = os.stat(path)
    assert source.path() == path
    assert os.stat(path).st_mtime_ns == before.st_mtime_ns


def test_a_model_that_differs_or_is_missing_on_a_node_is_refused(source, tmp_path):
    with pytest.raises(InputError, match="differs between nodes: its digest is"):
        replace(source, digest="0" * 64).path()
    with pytest.raises(InputError, match=r"is missing on this node, which is to run `?model\.onnx"):
        replace(source, model=str(tmp_path / "other.onnx")).path()


def test_other_steps_than_those_that_were_split_are_refused(source):
    other = replace(source, part=replace(source.part, signature="0" * 64))
    with pytest.raises(InputError, match="has other steps than the one that was split"):
        other.path()

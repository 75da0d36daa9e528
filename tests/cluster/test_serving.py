"""Deployments on a real Serve controller: what they book, answer, and survive."""

import gzip
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml

import tightship
from tests.cluster.conftest import SERVE_PORT
from tests.cluster.overruns import end_process, too_much
from tests.cluster.serve_clients import (
    SEEN_SOON,
    WAIT_S,
    anchors,
    asked,
    body_of,
    is_free,
    nodes,
    pids_of,
    running,
    state,
    until,
)
from tests.zoo import light
from tightship import cluster
from tightship.errors import CapacityError, InputError, OutOfMemoryError

URL = f"http://127.0.0.1:{SERVE_PORT}"
MODEL = "light_squeezenet"


@pytest.fixture(scope="module")
def image():
    return np.random.default_rng(0).standard_normal(light.SHAPE, np.float32)


@pytest.fixture(scope="module")
def expected(image):
    with tightship.load(light.path_of("squeezenet")) as model:
        (name,) = model.input_names
        return name, model.run({name: image})


def check_handle(handle, image, expected):
    name, outputs = expected
    found = handle.run.remote({name: image}).result(timeout_s=WAIT_S)
    assert all(np.array_equal(found[key], outputs[key]) for key in outputs)


def check_http(name, outputs, image):
    for raw in (False, True):
        path = f"/m/v2/models/{MODEL}/infer"
        status, answer, _ = asked(URL + path, *body_of(name, image, raw=raw))
        assert status == 200, answer
        (output,) = json.loads(answer)["outputs"]
        flat = outputs[output["name"]].ravel()
        assert np.array_equal(np.array(output["data"], np.float32), flat)
    assert json.loads(asked(f"{URL}/m/v2/models/{MODEL}")[1])["inputs"][0]["name"] == name
    assert asked(f"{URL}/m/v2/health/ready")[0] == 200
    assert asked(f"{URL}/m/v2/models/none/infer", b"{}")[0] == 404
    assert asked(f"{URL}/m/v2/models/{MODEL}/infer", b"{")[0] == 400
    assert asked(f"{URL}/m/v2/repository/models/x/unload", b"")[0] == 404
    packed = gzip.compress(body_of(name, image, raw=False)[0])
    assert asked(f"{URL}/m/v2/models/{MODEL}/infer", packed, {"Content-Encoding": "gzip"})[0] == 200
    large = asked(f"{URL}/m/v2/models/{MODEL}/infer", b" " * (1 << 20))
    assert large[0] == 413, large[1]
    assert b"max_memory" in large[1]
    assert asked(URL + path, *body_of(name, image, raw=True))[0] == 200


def check_tritonclient(name, outputs, image):
    """Unmodified, by the path that the deployment has as Triton would have the root."""
    http = pytest.importorskip("tritonclient.http")
    with http.InferenceServerClient(f"127.0.0.1:{SERVE_PORT}/m") as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready(MODEL)
        assert client.get_server_metadata()["name"] == "tightship"
        assert client.get_model_metadata(MODEL)["inputs"][0]["name"] == name
        assert client.get_model_config(MODEL)["name"] == MODEL
        (row,) = client.get_model_repository_index()
        assert (row["name"], row["state"]) == (MODEL, "READY")
        given = http.InferInput(name, list(image.shape), "FP32")
        for is_raw in (True, False):
            given.set_data_from_numpy(image, binary_data=is_raw)
            for packing in (None, "gzip"):
                found = client.infer(MODEL, [given], request_compression_algorithm=packing)
                assert all(np.array_equal(found.as_numpy(key), outputs[key]) for key in outputs)
        with pytest.raises(http.InferenceServerException, match="there is no call"):
            client.unload_model(MODEL)
        assert client.get_inference_statistics(MODEL)["model_stats"][0]["name"] == MODEL


def test_auto_fills_each_node_and_serves_both_ways(served, shared_cluster, image, expected):
    name, outputs = expected
    with (
        shared_cluster.leaving(330, 230),
        running(served, light.path_of("squeezenet")) as handle,
    ):
        check_handle(handle, image, expected)
        booked = handle.status.remote().result()["booked_bytes"]
        time.sleep(1)  # the head hears of bookings some moments later
        assert all(node.free_bytes < booked for node in nodes())
        seen = {}
        for _ in range(12):
            each = handle.status.remote().result()
            seen[each["pid"]] = each
        assert all(each["pss_bytes"] <= each["booked_bytes"] for each in seen.values())
        assert all(each["data_bytes"] <= each["data_limit_bytes"] for each in seen.values())
        check_http(name, outputs, image)
        check_tritonclient(name, outputs, image)
    until(lambda: not anchors())


def test_a_replica_that_overruns_or_ends_takes_no_other_with_it(served, image, expected):
    import ray

    with running(served, light.path_of("squeezenet"), replicas=2) as handle:
        controller = ray.get_actor("SERVE_CONTROLLER_ACTOR", "serve")
        before = ray.get(controller.get_pid.remote()) if hasattr(controller, "get_pid") else None
        pids = pids_of(handle, 2)
        with pytest.raises(MemoryError) as raised:
            handle.apply.remote(too_much).result()
        assert isinstance(getattr(raised.value, "cause", raised.value), OutOfMemoryError)
        assert pids_of(handle, 2) == pids
        with pytest.raises(ray.exceptions.RayError, match="died"):
            handle.apply.remote(end_process).result(timeout_s=WAIT_S)
        check_handle(handle, image, expected)
        until(lambda: state(served) == "HEALTHY")
        after = pids_of(handle, 2)
        assert len(pids & after) == 1
        assert before is None or ray.get(controller.get_pid.remote()) == before
        check_handle(handle, image, expected)


def test_models_of_one_replica_share_an_arena(served, image, expected):
    paths = {"small": light.path_of("squeezenet"), "large": light.path_of("resnet50")}
    with running(served, paths, replicas=1) as handle:
        for name, path in paths.items():
            with tightship.load(path) as model:
                (input_name,) = model.input_names
                outputs = model.run({input_name: image})
            found = handle.options(multiplexed_model_id=name).run.remote({input_name: image})
            results = found.result(timeout_s=WAIT_S)
            assert all(np.array_equal(results[key], outputs[key]) for key in outputs)
        needs = [cluster.requirements(path) for path in paths.values()]
        status = handle.status.remote().result()
        assert status["arena_bytes"] <= max(each.arena_bytes for each in needs) + 4096
        weights = sum(each.weights_bytes for each in needs)  # booked by the anchor
        assert status["pss_bytes"] <= status["booked_bytes"] + weights
        with pytest.raises(InputError, match="Unknown model `other`; choose `small`, `large`"):
            handle.run.remote({expected[0]: image}, "other").result()
        assert asked(f"{URL}/m/v2/models/small")[0] == 200


def test_autoscaling_is_bounded_by_the_nodes(served):
    path = light.path_of("squeezenet")

    def is_bounded() -> bool:
        app = cluster.deployment(path, autoscaling={"min_replicas": 1})
        config = app._bound_deployment._deployment_config.autoscaling_config
        try:
            cluster.deployment(path, autoscaling={"max_replicas": config.max_replicas + 1})
        except CapacityError as error:
            return "do not fit; the nodes hold" in str(error)
        return False

    until(is_bounded)  # memory of the replicas that the last test ended may come back meanwhile
    with pytest.raises(CapacityError, match=r"more than `max_memory`, 1\.00 MiB"):
        cluster.deployment(path, max_memory="1MiB")
    with pytest.raises(InputError, match="`num_replicas`, which follows from the memory"):
        cluster.deployment(path, options={"num_replicas": 3})
    with pytest.raises(InputError, match="`replicas` is `many`"):
        cluster.deployment(path, replicas="many")
    with pytest.raises(InputError, match="`model` is missing"):
        cluster.application({"replicas": 1})
    with pytest.raises(InputError, match="Unknown argument `replica`"):
        cluster.application({"model": path, "replica": 1})
    assert served.status().applications == {}


def test_a_config_file_deploys(served, image, expected):
    path = str(light.path_of("squeezenet"))
    entry = {
        "name": "model",
        "route_prefix": "/m",
        "import_path": "tightship.cluster:application",
        "args": {"model": path, "replicas": 1, "max_memory": "250MiB", "options": SEEN_SOON},
    }
    deploy_file(served, {"applications": [entry]})
    handle = served.get_app_handle("model")
    check_handle(handle, image, expected)
    assert handle.status.remote().result()["booked_bytes"] == 250 << 20
    served.delete("model")
    until(is_free)


@pytest.mark.slow
def test_a_file_of_serve_build_deploys(served, shared_cluster, tmp_path, image, expected):
    path = str(light.path_of("squeezenet"))
    code = f"from tightship import cluster\napp = cluster.deployment({path!r}, replicas=1)\n"
    (tmp_path / "built_app.py").write_text(code)
    command = [sys.executable, "-c", "from ray.serve.scripts import cli; cli()", "build"]
    command += ["--app-dir", str(tmp_path), "-o", str(tmp_path / "built.yaml"), "built_app:app"]
    environment = {**os.environ, "RAY_ADDRESS": shared_cluster.address}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    config = yaml.safe_load((tmp_path / "built.yaml").read_text())
    (entry,) = config["applications"]
    found = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    entry |= {"name": "model", "runtime_env": {"env_vars": {"PYTHONPATH": found}}}
    deploy_file(served, {"applications": [entry]})
    check_handle(served.get_app_handle("model"), image, expected)
    served.delete("model")
    until(is_free)
    until(lambda: not anchors())


def deploy_file(serve, config):
    from ray.serve.context import _get_global_client
    from ray.serve.schema import ServeDeploySchema

    _get_global_client().deploy_apps(ServeDeploySchema.model_validate(config))
    until(lambda: serve.status().applications["model"].status.value == "RUNNING")

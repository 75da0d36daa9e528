"""Waits for deployments in tests, reads the state of the cluster, and sends requests over HTTP."""

import json
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from tightship import cluster

WAIT_S = 120
"""Seconds to wait for what a busy machine takes long for; a test that passes waits less."""
SEEN_SOON = {"graceful_shutdown_wait_loop_s": 0.1, "health_check_period_s": 1}
"""Replicas without requests end at once, and Serve sees within a second that one has ended.

By default it looks after two seconds, and every ten seconds."""


def until(condition, wait_s=WAIT_S):
    end = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


def nodes():
    from tightship.cluster.ray_state import alive_nodes

    return alive_nodes()


def is_free():
    return all(node.free_bytes == node.memory_bytes for node in nodes())


def anchors():
    import ray

    found = ray.util.list_named_actors(all_namespaces=True)
    return [each["name"] for each in found if "tightship" in each["name"]]


@contextmanager
def running(serve, *arguments, **options):
    """Deploy a model; afterwards wait until what it booked is free again."""
    name = options.pop("app", "model")
    options["options"] = {**SEEN_SOON, **options.get("options", {})}
    before = {node.node_id: node.free_bytes for node in nodes()}
    handle = serve.run(cluster.deployment(*arguments, **options), name=name, route_prefix="/m")
    try:
        yield handle
    finally:
        serve.delete(name)
        until(lambda: all(node.free_bytes >= before.get(node.node_id, 0) for node in nodes()))


def asked(url, body=None, headers=None):
    """Return status, body and headers of the answer of a URL."""
    request = urllib.request.Request(url, body, headers or {})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers


def body_of(name, image, *, raw):
    """Return an inference request of one input, and its headers."""
    entry = {"name": name, "datatype": "FP32", "shape": list(image.shape)}
    if not raw:
        return json.dumps({"inputs": [{**entry, "data": image.ravel().tolist()}]}).encode(), {}
    entry["parameters"] = {"binary_data_size": image.nbytes}
    header = json.dumps({"inputs": [entry]}).encode()
    return header + image.tobytes(), {"Inference-Header-Content-Length": str(len(header))}


def pids_of(handle, count):
    found = set()
    until(lambda: found.add(handle.status.remote().result()["pid"]) or len(found) == count)
    return found


def state(serve):
    app = serve.status().applications["model"]
    return app.deployments["tightship"].status.value


def is_alive(pid):
    return Path(f"/proc/{pid}").exists()

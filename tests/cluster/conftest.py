"""One cluster of two nodes for all tests with Ray; they skip where Ray is missing."""

import pytest

from tests.cluster.local_cluster import cluster_of
from tests.cluster.serve_clients import anchors, is_free, until

NODES_MIB = (800, 400)
SERVE_PORT = 8197


@pytest.fixture(scope="package")
def whole_cluster():
    pytest.importorskip("ray", reason="Ray is not installed: `pip install 'tightship[ray]'`")
    with cluster_of(*NODES_MIB) as found:
        yield found


@pytest.fixture(scope="module")
def shared_cluster(whole_cluster):
    """Nodes on which nothing is booked, and on which the tests of a file leave nothing."""
    yield whole_cluster
    until(is_free)
    until(lambda: not anchors())


@pytest.fixture(scope="package")
def started_serve(whole_cluster):
    pytest.importorskip("ray.serve", reason="Ray Serve is not installed: 'ray[serve]'")
    from ray import serve

    assert whole_cluster.nodes
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": SERVE_PORT})
    yield serve
    serve.shutdown()


@pytest.fixture(scope="module")
def served(started_serve, shared_cluster):
    """Serve without applications; the tests of a file leave none."""
    assert shared_cluster.nodes
    yield started_serve
    assert started_serve.status().applications == {}

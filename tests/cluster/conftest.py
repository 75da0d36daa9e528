"""A cluster of three nodes that the tests of a file share; they skip where Ray is missing."""

import pytest

from tests.cluster.local_cluster import cluster_of

NODES_MIB = (800, 300, 200)


@pytest.fixture(scope="module")
def shared_cluster():
    pytest.importorskip("ray", reason="Ray is not installed: `pip install 'tightship[ray]'`")
    with cluster_of(*NODES_MIB) as found:
        yield found

"""Arguments of the keeper: plain values in a config file, sources of models in the actor."""

import json

import pytest

from tests.zoo import light


def test_sources_pass_through_plain_values():
    pytest.importorskip("ray", reason="Ray is not installed: `pip install 'tightship[ray]'`")
    from tightship.cluster.keeper_actor import holding_of, plain_holding
    from tightship.cluster.node_file import source_of
    from tightship.cluster.weights_bookings import Holding

    path = light.path_of("squeezenet")
    for shapes in (None, {"data_0": (1, 3, 224, 224)}):
        holding = Holding(source_of(path, shapes, 2), 7)
        plain = plain_holding(holding)
        assert json.loads(json.dumps(plain)) == plain
        assert holding_of(plain) == holding
        assert holding_of(plain).source.key == holding.source.key

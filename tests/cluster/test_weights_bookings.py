"""Names by which anchors find what replicas need."""

from tightship.cluster.node_file import Source
from tightship.cluster.weights_bookings import (
    Holding,
    anchor_name,
    replicas_name,
    weights_name,
)


def test_names_of_groups_differ_and_tell_what_they_need():
    holdings = [Holding(Source(f"{name}.onnx", name, 1), 1) for name in "ab"]
    keys = ",".join(each.source.key for each in holdings)
    first, second = replicas_name(holdings), replicas_name(holdings)
    assert first != second
    assert first.split(":")[:2] == ["tightship", "replicas"]
    assert first.split(":")[3] == keys
    assert replicas_name([]).split(":")[3] == ""


def test_an_anchor_and_a_booking_have_the_name_of_their_node():
    assert anchor_name("n1").endswith(":n1")
    assert anchor_name("n1") != anchor_name("n2")
    assert weights_name("n1", "k").split(":")[2:] == ["n1", "k"]

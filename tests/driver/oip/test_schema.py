"""The table of messages against the classes that clients have."""

import pytest

pb2 = pytest.importorskip("tritonclient.grpc.service_pb2")

from tightship.driver.oip.schema import DATA_TYPES, message_classes  # noqa: E402

CLASSES = message_classes()
RPCS = list(pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods)


def same(ours, theirs, seen):
    """Every field of ours is one of theirs: by number, name, kind and what it holds."""
    if (ours.full_name, theirs.full_name) in seen:
        return
    seen.add((ours.full_name, theirs.full_name))
    for field in ours.fields:
        other = theirs.fields_by_number[field.number]
        assert (field.name, field.type) == (other.name, other.type), theirs.full_name
        assert field.is_repeated == other.is_repeated, other.full_name
        assert (field.containing_oneof is None) == (other.containing_oneof is None)
        if field.message_type is not None:
            of, other_of = field.message_type, other.message_type
            assert of.GetOptions().map_entry == other_of.GetOptions().map_entry
            same(of, other_of, seen)


@pytest.mark.parametrize("rpc", RPCS, ids=[rpc.name for rpc in RPCS])
def test_the_messages_of_a_call_are_those_of_clients(rpc):
    streamed = rpc.name == "ModelStreamInfer"
    asked = "ModelInferRequest" if streamed else f"{rpc.name}Request"
    assert rpc.input_type.name == asked
    for theirs in (rpc.input_type, rpc.output_type):
        same(CLASSES[theirs.name].DESCRIPTOR, theirs, set())


def test_requests_have_no_field_that_is_not_read():
    for rpc in RPCS:
        theirs = {field.name for field in rpc.input_type.fields}
        ours = {field.name for field in CLASSES[rpc.input_type.name].DESCRIPTOR.fields}
        assert ours == theirs


def test_element_types_have_the_numbers_of_clients():
    from tritonclient.grpc import model_config_pb2

    theirs = model_config_pb2.DataType.DESCRIPTOR.values_by_name
    assert {f"TYPE_{name}": number for number, name in enumerate(DATA_TYPES)} == {
        name: value.number for name, value in theirs.items()
    }

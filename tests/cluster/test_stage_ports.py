"""Names and types of values that cross a cut."""

from tests.zoo import light
from tightship.cluster.splitting import Splitter
from tightship.cluster.stage_ports import ports
from tightship.graph import DType


def test_inputs_and_outputs_are_themselves():
    lowered = Splitter.of(light.path_of("squeezenet"), None, 1).lowered
    found = ports(lowered)
    for name, operand in (*lowered.inputs.items(), *lowered.outputs.items()):
        assert found[operand.slot] == operand._replace(name=name)


def test_other_values_have_names_of_their_own_and_all_their_bytes():
    lowered = Splitter.of(light.path_of("squeezenet"), None, 1).lowered
    found = ports(lowered)
    assert len({each.name for each in found.values()}) == len(found)
    own = {each.slot for each in (*lowered.inputs.values(), *lowered.outputs.values())}
    inside = {slot: each for slot, each in found.items() if slot not in own}
    assert DType.UINT8 in {each.dtype for each in inside.values()}  # images in another layout
    for slot, each in inside.items():
        assert each.size_bytes == lowered.slots[slot].size_bytes

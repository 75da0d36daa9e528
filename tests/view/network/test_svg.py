"""The still picture."""

import re
import xml.etree.ElementTree as ET

from tests.view.network import networks
from tightship.view.network.levels import levels_of
from tightship.view.network.network import network_of
from tightship.view.network.svg import network_svg

SPACE = "{http://www.w3.org/2000/svg}"


def drawn(picture, step=None):
    network = network_of(picture)
    text = network_svg(network, levels_of(network), step)
    return text, ET.fromstring(text)


def test_nodes_of_the_same_bytes_have_the_same_colour():
    _, root = drawn(networks.in_place())
    group = next(each for each in root.iter(f"{SPACE}g"))
    colours = [r.get("class") for r in group.iter(f"{SPACE}rect") if "tn-b" in r.get("class")]
    assert len(colours) == 2
    assert len(set(colours)) == 1
    kinds = [path.get("class") for path in group.iter(f"{SPACE}path")]
    assert kinds.count("tn-edge tn-place") == 1


def test_each_node_names_tensor_bytes_and_offset():
    text, root = drawn(networks.in_place())
    titles = [title.text for title in root.iter(f"{SPACE}title")]
    assert "Relu\nr 64 B at 0" in titles
    assert "x\nx, outside the arena" in titles
    assert "arena 96 B; the same colour is the same bytes" in text


def test_a_step_has_counters_and_free_boxes():
    text, root = drawn(networks.in_place(), step=1)
    assert "step 1, Relu; free boxes: 32 B at 64" in text
    assert len(root.findall(f".//{SPACE}rect[@class='tn-now']")) == 1
    circles = [circle.get("class") for circle in root.iter(f"{SPACE}circle")]
    assert sorted(circles) == ["tn-badge", "tn-zero"]
    assert len(root.findall(f".//{SPACE}rect[@class='tn-later']")) == 1


def test_a_hostile_name_stays_a_name():
    name = "</text><script>alert(1)</script>&\x00"
    picture = networks.picture_of([("Relu", [name], [name + "2"])], inputs=(name,), title=name)
    text, _ = drawn(picture)
    assert "<script>" not in text
    assert "\x00" not in text


def test_blocks_are_drawn_closed():
    text, root = drawn(networks.layers(12, 50))
    assert len(root.findall(f".//{SPACE}g/{SPACE}rect[@class='tn-frame']")) == 24
    assert "25 steps" in text
    assert re.search(r'viewBox="0 0 \d+ \d+"', text)

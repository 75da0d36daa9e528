"""Elements of a still picture."""

from xml.etree import ElementTree

from tightship.view.marks import escaped, line, words


def test_words_are_text_at_their_point():
    element = ElementTree.fromstring(words(1.26, 2, "<a> & \x1b", "soft", "end"))
    assert element.text == "<a> & ?"
    assert element.attrib == {"class": "soft", "x": "1.3", "y": "2.0", "text-anchor": "end"}
    assert escaped('"<') == "&quot;&lt;"


def test_a_line_joins_its_points():
    found = ElementTree.fromstring(line(0, 1, 2.5, 3, "grid")).attrib
    assert found == {"class": "grid", "x1": "0.0", "y1": "1.0", "x2": "2.5", "y2": "3.0"}

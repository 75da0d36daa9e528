from tests.difference.pictures import chain, plan
from tightship.difference import compare_plans


def test_keys_and_modules_and_operators_are_told():
    old = chain(64, 128, operators=["Conv", "Relu"])
    new = chain(64, 256, operators=["Conv", "Relu"])
    new = plan(new.steps, new.rectangles, key={"threads": "4"}, runtime_bytes=100)
    found = compare_plans(old, new)
    assert found.keys == {"threads": ("", "4")}
    assert found.by_operator() == {"Relu": 128}
    assert found.by_module() == {}
    assert [change.why for change in found.changes if change.part == "runtime"] == [
        "threads 4 instead of unset"
    ]


def test_its_representations_are_short():
    found = compare_plans(chain(64, 128), chain(64, 256))
    assert repr(found) == "<tightship.PlanDifference model.onnx to model.onnx: +128 bytes>"
    assert found._repr_html_().startswith("<p><b>+128 B")

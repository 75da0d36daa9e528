import json

import pytest

import tightship
from tests.small_models import dense
from tightship.difference import compare_plans, read_plan
from tightship.errors import FormatError


def test_a_plan_that_was_saved_does_not_differ_from_itself(tmp_path):
    plan = tightship.plan(dense()[0], shapes={"batch": 2})
    plan.save(tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan.picture()
    assert compare_plans(read_plan(tmp_path / "plan.json"), plan).changes == ()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"model": 1, "tensors": 3}', "\xff"])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "plan.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(FormatError, match=r"`.*plan.json` is not a plan of a model"):
        read_plan(path)


def test_a_plan_of_an_earlier_version_has_no_weights(tmp_path):
    plan = tightship.plan(dense()[0], shapes={"batch": 2})
    values = plan.to_json()
    del values["weights"]
    (tmp_path / "plan.json").write_text(json.dumps(values))
    found = compare_plans(read_plan(tmp_path / "plan.json"), plan)
    assert found.change_bytes == sum(change.change_bytes for change in found.changes) == 0

import json

from tests.difference.pictures import chain
from tightship.difference import compare_plans


def test_json_has_every_change_in_bytes():
    found = compare_plans(chain(64, 128), chain(64, 256))
    values = json.loads(json.dumps(found.to_json()))
    assert values["change_bytes"] == 128
    assert values["cause"]["name"] == "t1"
    assert [change["new_bytes"] - change["old_bytes"] for change in values["changes"]] == [128]
    assert values["parts"][1] == {"part": "arena", "old_bytes": 192, "new_bytes": 320}

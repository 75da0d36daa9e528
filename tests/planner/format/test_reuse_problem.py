import gzip
import json

import pytest

from tightship.errors import FormatError
from tightship.planner.format.reuse_problem import read_reuse_problem

BUFFER = {"alignment": 4, "allowed_pools": [0], "name": "b", "size": 8}
MADE = {
    "schema_version": 1,
    "profile": "dsa_rp_v1",
    "problem": {
        "pools": [{"capacity": 64, "id": 0, "name": "default", "reserved_ranges": []}],
        "buffers": [
            {**BUFFER, "id": 7, "live_intervals": [{"lower": 0, "upper": 3}]},
            {**BUFFER, "id": 5, "live_intervals": [{"lower": 3, "upper": 4}]},
        ],
        "constraints": {"separations": []},
        "cost_model": {"reuse_penalties": [{"cost": 2, "first": 5, "second": 7}]},
    },
}


@pytest.mark.parametrize("compressed", [False, True])
def test_buffers_and_pairs_are_read_by_their_ids(tmp_path, compressed):
    path = tmp_path / ("problem.json.gz" if compressed else "problem.json")
    content = json.dumps(MADE).encode()
    path.write_bytes(gzip.compress(content) if compressed else content)
    made, penalties = read_reuse_problem(path)
    assert made.columns().T.tolist() == [[8, 0, 3, 4], [8, 3, 4, 4]]
    assert (made.capacity_bytes, list(made.names)) == (64, ["b", "b"])
    assert penalties.rows.tolist() == [[1, 0, 2]]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"dsa_rp_v1"', '"other"', "`profile` must be `dsa_rp_v1`"),
        ('"reserved_ranges": []', '"reserved_ranges": [1]', "without reserved ranges"),
        ('"separations": []', '"separations": [1]', "`separations` is .1.; it must be empty"),
        ('{"lower": 0, "upper": 3}', "", "`live_intervals` is ..; it must be one interval"),
        ('"upper": 3', '"upper": 0', r"lives in steps \[0, 0\)"),
        ('"id": 7', '"id": 5', "an `id` occurs twice"),
        ('"first": 5', '"first": 6', "`first` is 6; it must be the `id` of a buffer"),
        ('"cost": 2', '"cost": -2', "`cost` is -2"),
        ('"size": 8', '"size": "8"', "`size` is \"8\"; it must be an integer"),
        ('"schema_version"', "schema", "is not JSON"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_by_field(tmp_path, old, new, words):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(MADE).replace(old, new, 1))
    with pytest.raises(FormatError, match=words):
        read_reuse_problem(path)

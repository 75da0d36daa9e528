"""Buffers stacked as another plan has them, from the shell."""

import json

import pytest

from tightship.cli import main

BUFFERS = "id,lower,upper,size\nscores,0,2,{}\nrows,1,4,64\nmask,0,3,16\nout,3,5,99\n"


@pytest.fixture
def files(tmp_path):
    paths = {}
    for name, size in (("small", 100), ("large", 6400)):
        paths[name] = tmp_path / f"{name}.csv"
        paths[name].write_text(BUFFERS.format(size))
    paths["plan"] = tmp_path / "plan.csv"
    assert main(["place", str(paths["small"]), "-o", str(paths["plan"])]) == 0
    return paths


def planned(capsys, *arguments):
    capsys.readouterr()
    assert main(["place", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_plan_is_decoded_for_other_sizes(files, capsys):
    found = planned(capsys, files["large"], "--order", files["plan"])
    assert found["strategy"] == "stored_order"
    assert found["peak_bytes"] == planned(capsys, files["large"])["peak_bytes"]


def test_of_several_orders_the_smallest_counts(files, tmp_path, capsys):
    upside_down = tmp_path / "upside_down.csv"
    upside_down.write_text(
        "id,lower,upper,size,offset\nscores,0,2,1,99\nrows,1,4,1,98\nmask,0,3,1,97\nout,3,5,1,0\n"
    )
    wrong = planned(capsys, files["large"], "--order", upside_down)
    both = planned(capsys, files["large"], "--order", upside_down, "--order", files["plan"])
    assert both["peak_bytes"] < wrong["peak_bytes"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["large", "--order", "small"], "without offsets"),
        (["large", "--order", "plan", "--minimize"], "`--minimize` searches"),
        (["large", "--order", "plan", "--order", "other"], "that are not those of"),
    ],
)
def test_what_cannot_be_is_refused(files, arguments, message, tmp_path, capsys):
    files["other"] = tmp_path / "other.csv"
    files["other"].write_text("id,lower,upper,size,offset\na,0,1,4,0\n")
    assert main(["place", *(str(files.get(word, word)) for word in arguments)]) == 2
    assert message in capsys.readouterr().err

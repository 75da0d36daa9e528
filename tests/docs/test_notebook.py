"""The tutorial notebook runs from its first cell to its last, and shows what it says."""

import json

import pytest
from docs.site import notebook


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Every code cell with what it printed and its value, run in an empty folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("notebook"))
        return list(notebook.run(notebook.read()["cells"]))


def test_every_cell_runs(ran):
    cells = [cell for cell in notebook.read()["cells"] if cell["cell_type"] == "code"]
    assert [cell for cell, _, _ in ran] == cells
    assert len(cells) >= 8


def test_the_saved_outputs_are_of_these_cells(ran):
    """Numbers differ with the processor; which cells show what does not."""
    for cell, printed, value in ran:
        made = notebook.outputs(printed, value, cell["execution_count"])
        assert [each["output_type"] for each in made] == [
            each["output_type"] for each in cell["outputs"]
        ]
        for one, saved in zip(made, cell["outputs"], strict=True):
            assert one.get("data", {}).keys() == saved.get("data", {}).keys()


def test_values_are_short_as_text(ran):
    for _, _, value in ran:
        assert len(repr(value)) < 1000


def test_the_last_run_fits_its_limit(ran):
    stats = next(value for _, _, value in ran if hasattr(value, "arena_peak_bytes"))
    assert stats.weights_bytes + stats.arena_peak_bytes < 160 << 20


def test_the_file_is_a_notebook_of_version_4():
    values = notebook.read()
    assert (values["nbformat"], values["nbformat_minor"]) == (4, 5)
    identifiers = [cell["id"] for cell in values["cells"]]
    assert len(set(identifiers)) == len(identifiers)
    for cell in values["cells"]:
        wanted = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            wanted |= {"execution_count", "outputs"}
        assert cell.keys() == wanted
    assert json.dumps(values, indent=1, ensure_ascii=False) + "\n" == notebook.NOTEBOOK.read_text()

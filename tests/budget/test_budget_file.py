import pytest

from tests.small_models import dense
from tightship.budget import read_budgets
from tightship.errors import FormatError, InputError

WHOLE = """
isa = "avx512_core"

[[budget]]
model = "model.onnx"
limit = "64MiB"
shapes = {batch = 8}

[[budget]]
name = "wide"
model = "model.onnx"
limit = 1_000_000
shapes = {x = [1, 32]}
threads = 2
dynamic = "1KiB"

[[budget]]
model = "model.onnx"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(dense()[0])
    return tmp_path


def test_budgets_have_models_limits_shapes_and_threads(folder):
    (folder / "tightship.toml").write_text(WHOLE)
    found = read_budgets()
    first, second, third = found.budgets
    assert (found.isa, found.path.name) == ("avx512_core", "tightship.toml")
    assert (first.limit_bytes, first.shapes, first.threads) == (64 << 20, {"batch": 8}, 1)
    assert (second.limit_bytes, second.shapes) == (1_000_000, {"x": (1, 32)})
    assert (second.threads, second.dynamic_bytes) == (2, 1024)
    assert [each.title for each in found.budgets] == ["model.onnx batch=8", "wide", "model.onnx"]
    assert third.limit_bytes is None


def test_a_project_has_its_budgets_in_a_table(folder):
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "p"\n[[tool.tightship.budget]]\nmodel = "model.onnx"\nlimit = "1GiB"\n'
    )
    assert [each.limit_bytes for each in read_budgets().budgets] == [1 << 30]
    assert [each.title for each in read_budgets("pyproject.toml").budgets] == ["model.onnx"]
    assert read_budgets(folder).isa == "avx2"


def test_a_file_of_its_own_comes_before_the_project(folder):
    (folder / "pyproject.toml").write_text('[[tool.tightship.budget]]\nmodel = "model.onnx"\n')
    (folder / "tightship.toml").write_text('[[budget]]\nmodel = "model.onnx"\nname = "own"\n')
    assert [each.title for each in read_budgets().budgets] == ["own"]


def test_models_are_beside_the_file(folder, monkeypatch):
    (folder / "tightship.toml").write_text('[[budget]]\nmodel = "model.onnx"\n')
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert read_budgets("../tightship.toml").budgets[0].model.is_file()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "cannot be read as TOML"),
        ("", "has no budgets; write a table `[[budget]]`"),
        ("budget = 3", "has no budgets"),
        ("budget = [3]", "budget 1 is not a table"),
        ("[[budget]]\n", "budget 1 has no `model`"),
        ("[[budget]]\nmodel = 3\n", "budget 1 has no `model`"),
        ('[[budget]]\nmodel = "model.onnx"\nlimits = 3\n', "unknown key `limits`; known are"),
        ('isas = 3\n[[budget]]\nmodel = "model.onnx"\n', "unknown key `isas`"),
        ('isa = "sse"\n[[budget]]\nmodel = "model.onnx"\n', "`sse` is not an instruction set"),
        ('[[budget]]\nmodel = "model.onnx"\nlimit = "much"\n', "budget 1: `limit`: `much` is not"),
        ('[[budget]]\nmodel = "model.onnx"\nlimit = 1.5\n', "budget 1: `limit`: 1.5 is not"),
        ('[[budget]]\nmodel = "model.onnx"\nthreads = 0\n', "`threads` is 0; it must be"),
        ('[[budget]]\nmodel = "model.onnx"\nthreads = true\n', "`threads` is True"),
        ('[[budget]]\nmodel = "model.onnx"\nshapes = 3\n', "`shapes` is 3; write a table"),
        ('[[budget]]\nmodel = "model.onnx"\nshapes = {x = "8x32"}\n', "shape `x` is '8x32'"),
        ('[[budget]]\nmodel = "model.onnx"\nshapes = {x = [1, -2]}\n', "shape `x` is [1, -2]"),
        ('[[budget]]\nmodel = "model.onnx"\n' * 2, "two budgets `model.onnx`; give one of them"),
    ],
)
def test_what_is_not_understood_is_refused(folder, text, said):
    (folder / "tightship.toml").write_text(text)
    with pytest.raises(FormatError) as caught:
        read_budgets()
    assert said in str(caught.value)
    assert "tightship.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_are_named(folder):
    with pytest.raises(InputError, match=r"has no `tightship.toml`, and no `pyproject.toml` with"):
        read_budgets()
    with pytest.raises(InputError, match=r"The file `no.toml` does not exist"):
        read_budgets("no.toml")
    (folder / "tightship.toml").write_text('[[budget]]\nmodel = "no.onnx"\n')
    with pytest.raises(InputError, match=r"budget 1: no model `.*no.onnx`"):
        read_budgets()
    (folder / "tightship.toml").unlink()
    (folder / "pyproject.toml").write_text("[tool.other]\n")
    with pytest.raises(InputError, match=r"has no `tightship.toml`"):
        read_budgets()

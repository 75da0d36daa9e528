import subprocess
import sys

import pytest

from tightship.engine.kernels.gradient import GRADIENT_BUILDERS
from tightship.engine.kernels.objects import CONTROL, OPTIONAL
from tightship.engine.kernels.select import BUILDERS
from tightship.engine.lower.native import NATIVE_EMITTERS
from tightship.engine.lower.onednn import EMITTERS, QUANTIZED_EMITTERS
from tightship.engine.on_demand import OnDemand, names, of_onnx

TABLES = {
    "BUILDERS": BUILDERS,
    "CONTROL": CONTROL,
    "GRADIENT_BUILDERS": GRADIENT_BUILDERS,
    "OPTIONAL": OPTIONAL,
    "NATIVE_EMITTERS": NATIVE_EMITTERS,
    "EMITTERS": EMITTERS,
    "QUANTIZED_EMITTERS": QUANTIZED_EMITTERS,
}


@pytest.mark.parametrize("name", TABLES)
def test_every_module_serves_exactly_the_keys_it_is_listed_with(name):
    for table, keys in TABLES[name].tables():
        assert set(table) == set(keys)


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_listed_once_and_can_be_called(name):
    table = TABLES[name]
    listed = [key for _, keys in table.tables() for key in keys]
    assert sorted(listed) == sorted(table)
    assert all(callable(table[key]) for key in table)


def test_a_module_is_imported_when_a_key_of_it_is_looked_up():
    code = """
import sys
from tightship.engine.lower.native import NATIVE_EMITTERS as table
name = "tightship.engine.lower.native.ranks"
before = name in sys.modules
assert ("", "TopK") in table and table.get(("", "No")) is None
assert not before and name not in sys.modules
table["", "TopK"]
assert name in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_key_that_is_not_listed_is_not_there():
    table = OnDemand("tightship.engine.kernels", {"padding.PADDING": names("Pad")})
    assert len(table) == 1
    assert table.get("Conv") is None
    with pytest.raises(KeyError):
        table["Conv"]


def test_names_are_told_apart_by_spaces():
    assert names("Add  Mul\nSub") == ("Add", "Mul", "Sub")
    assert of_onnx("Add Mul") == (("", "Add"), ("", "Mul"))

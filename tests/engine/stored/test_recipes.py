"""Recipes of layouts that have no name of their own."""

import pytest

from tightship import _core
from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.library import open_library

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("channels", [16, 1000])
@pytest.mark.parametrize("layout", ["aBc16b", "aBcd16b", "aBcd8b", "aBcde16b"])
def test_channels_in_blocks_seen_as_a_row_are_made_again(
    layout: str, channels: int, batch: int
) -> None:
    open_library()
    ones = [1] * (len(layout) - 5 if "16" in layout else len(layout) - 4)
    image = MemoryDesc.named([batch, channels, *ones], "float32", layout)
    row = image.reshaped([batch, channels])
    _core.record_recipes(wanted=True)
    try:
        desc = PrimitiveDesc.reorder(row, MemoryDesc([batch, channels]), Attributes())
    finally:
        _core.record_recipes(wanted=False)
    assert desc.recipe
    again = PrimitiveDesc.of_recipe(desc.recipe)
    assert again.signature == desc.signature
    assert again.operand(1) == row
    for length in range(len(desc.recipe)):
        with pytest.raises((ValueError, _core.OneDnnError, RuntimeError)):
            PrimitiveDesc.of_recipe(desc.recipe[:length])

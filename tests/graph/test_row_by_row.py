"""Constants that are made a few rows at a time."""

from pathlib import Path

import numpy as np

from tightship.graph import DType, Mapped, MappedFile
from tightship.graph.row_by_row import PIECE_BYTES, RowByRow


def test_rows_are_converted_in_pieces_in_order(tmp_path: Path) -> None:
    row_bytes, rows = 1000, 3 * PIECE_BYTES // 1000 + 5
    raw = np.random.default_rng(0).integers(0, 256, (rows, row_bytes), np.uint8)
    path = tmp_path / "raw"
    path.write_bytes(b"head" + raw.tobytes())
    stored = Mapped(MappedFile(path), 4, DType.UINT8, raw.shape)
    constant = RowByRow(DType.UINT8, (rows, 10), stored, lambda x: x[:, :10] ^ 1, "key")
    np.testing.assert_array_equal(constant.array(), raw[:, :10] ^ 1)
    sizes = [len(part) for _, part in constant.pieces()]
    assert len(sizes) == 4
    assert max(sizes) * row_bytes <= PIECE_BYTES
    assert constant.sources == (stored,)

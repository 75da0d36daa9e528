"""Numbers of an encoder in the metadata of its file."""

import pytest

from tests.frontend.gguf.encoders import encoder
from tightship.errors import FormatError, GraphError
from tightship.frontend.gguf import open_bytes


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"attention.head_count": 5}, FormatError, "must be a divisor of 64, the width"),
        ({"attention.causal": True}, FormatError, "must be false, for an encoder"),
        ({"rope.freq_base": 1e4}, GraphError, r"`bert\.rope\.freq_base`, which is not supported"),
        ({"attention.layer_norm_epsilon": -1.0}, FormatError, "must be a number above 0"),
        ({"block_count": 0}, FormatError, "must be an integer"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(
    fields: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        open_bytes(encoder(**fields).written())  # type: ignore[arg-type]

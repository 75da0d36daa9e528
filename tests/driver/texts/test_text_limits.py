"""Limits of texts."""

import pytest

from tightship.driver.texts.text_limits import TextLimits
from tightship.errors import InputError


@pytest.mark.parametrize("given", [{"sessions": 0}, {"waiting": -1}])
def test_limits_that_answer_nothing_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(InputError, match="cannot answer"):
        TextLimits(**given)  # type: ignore[arg-type]


def test_a_folder_without_bytes_for_it_is_refused() -> None:
    with pytest.raises(InputError, match="`--spill`"):
        TextLimits(spill_folder="/var/tmp")

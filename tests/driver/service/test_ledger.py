import pytest

from tightship.driver.service.ledger import Identifiers
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError


@pytest.mark.parametrize("key", [0, 1, 6, 7, 12345, 2**40 + 9])
def test_every_number_is_given_once(key):
    identifiers = Identifiers(8, key)
    assert sorted(identifiers.take() for _ in range(255)) == list(range(1, 256))
    with pytest.raises(DriverError, match="All 255 identifiers are used up") as caught:
        identifiers.take()
    assert caught.value.status == ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT


def test_another_key_gives_another_order():
    first, second = (Identifiers(31, key) for key in (12345, 54321))
    assert [first.take() for _ in range(5)] != [second.take() for _ in range(5)]

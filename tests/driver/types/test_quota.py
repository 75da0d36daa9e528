import pytest

from tightship.driver.types.quota import Account, Resource
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

LIMITS = dict.fromkeys(Resource, 100)
POOLS = Resource.POOLS


def refusal(account, amount):
    with pytest.raises(DriverError) as caught:
        account.charge(POOLS, amount)
    return ErrorStatus(caught.value.status).name


def test_what_is_charged_is_charged_above_as_well():
    user = Account(LIMITS)
    one, other = Account(LIMITS, user), Account(LIMITS, user)
    one.charge(POOLS, 60)
    assert refusal(other, 41) == "RESOURCE_EXHAUSTED_TRANSIENT"
    assert (user.used[POOLS], other.used[POOLS]) == (60, 0)
    one.refund(POOLS, 60)
    other.charge(POOLS, 100)
    assert user.used[POOLS] == 100


def test_more_than_the_limit_will_never_do():
    user = Account(LIMITS)
    account = Account(LIMITS | {POOLS: 200}, user)
    assert refusal(account, 101) == "RESOURCE_EXHAUSTED_PERSISTENT"
    assert account.room(POOLS) == 100
    assert account.used[POOLS] == 0

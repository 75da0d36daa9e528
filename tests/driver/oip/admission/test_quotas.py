"""Quotas of clients, as a gate applies them."""

import pytest

from tightship.driver.oip.admission.gate import AdmissionError, Gate
from tightship.driver.oip.admission.quotas import Quotas
from tightship.driver.oip.regions import Code


def test_calls_at_once_are_limited_for_each_account_until_they_end():
    gate = Gate(quotas=Quotas(concurrent_max=2))
    uses = [gate.begin("one", is_open=False) for _ in range(2)]
    with pytest.raises(AdmissionError, match="more than 2 calls at once; try again in 1 s"):
        gate.begin("one", is_open=False)
    gate.begin("one", is_open=True).end()
    gate.begin("two", is_open=False)
    for _ in range(2):
        uses[0].end()
    gate.begin("one", is_open=False)
    with pytest.raises(AdmissionError):
        gate.begin("one", is_open=False)


def test_bytes_of_a_use_count_for_its_account():
    gate = Gate(quotas=Quotas(sizes=[(100, 3600)]))
    use = gate.begin("one", is_open=False)
    use.spend(60)
    gate.count("one")
    use.spend(60)
    with pytest.raises(AdmissionError, match="more than 100 bytes an hour") as refused:
        gate.count("one")
    assert refused.value.code is Code.RESOURCE_EXHAUSTED
    gate.count("two")

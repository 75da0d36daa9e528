"""Admission of calls by their headers."""

import pytest

from tightship.driver.oip.admission.gate import AdmissionError, Gate, joined
from tightship.driver.oip.admission.proxies import Proxies
from tightship.driver.oip.admission.quotas import Quotas
from tightship.driver.oip.admission.tokens import TokenFile
from tightship.driver.oip.regions import Code

TOKEN = "a-token-of-alice-0123"


@pytest.fixture
def gate(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"alice {TOKEN}\n")
    path.chmod(0o600)
    return Gate(TokenFile(path))


def test_the_account_is_that_of_the_token(gate):
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert gate.admit("10.1.2.3", headers, is_open=False) == "token:alice"


@pytest.mark.parametrize(
    ("headers", "said"),
    [({}, "has no token"), ({"authorization": "Bearer wrong"}, "has a token that is not valid")],
)
def test_without_a_valid_token_only_open_calls_are_admitted(gate, headers, said):
    with pytest.raises(AdmissionError, match=f"{said}; send the header") as refused:
        gate.admit("10.1.2.3", headers, is_open=False)
    assert refused.value.code is Code.UNAUTHENTICATED
    assert gate.admit("10.1.2.3", headers, is_open=True) == "10.1.2.3"


def test_without_tokens_the_account_is_the_address():
    assert Gate().admit("10.1.2.3", {}, is_open=False) == "10.1.2.3"


def test_a_repeated_header_hides_no_other(gate):
    headers = joined([("authorization", "Bearer wrong"), ("authorization", f"Bearer {TOKEN}")])
    with pytest.raises(AdmissionError, match="is not valid"):
        gate.admit("10.1.2.3", headers, is_open=False)
    lines = [("x-forwarded-for", "192.0.2.66"), ("x-forwarded-for", "192.0.2.1"), ("a", "b")]
    behind = Gate(proxies=Proxies(["10.1.2.3"]))
    assert behind.client_of("10.1.2.3", joined(lines)) == "192.0.2.1"
    assert behind.client_of("10.1.2.4", joined(lines)) == "10.1.2.4"
    assert behind.client_of("10.1.2.3", {}) == "10.1.2.3"
    assert Gate().client_of("10.1.2.3", joined(lines)) == "10.1.2.3"


def test_wrong_tokens_count_for_the_address_and_right_ones_for_the_client(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"alice {TOKEN}\n")
    path.chmod(0o600)
    gate = Gate(TokenFile(path), quotas=Quotas([(2, 3600)]))
    given = {"authorization": f"Bearer {TOKEN}"}
    for address, headers, codes in (
        ("10.1.2.3", {}, (401, 401, 429)),
        ("10.1.2.3", {"authorization": "Bearer wrong"}, (429,)),
        ("10.1.2.4", {"authorization": "Bearer wrong"}, (401, 401, 429)),
        ("10.1.2.3", given, (200, 200, 429)),
        ("10.1.2.5", given, (429,)),
    ):
        for code in codes:
            assert outcome(gate, address, headers) == code
    assert gate.admit("10.1.2.3", {}, is_open=True) == "10.1.2.3"


def outcome(gate, address, headers):
    try:
        gate.admit(address, headers, is_open=False)
    except AdmissionError as error:
        return 401 if error.retry_s is None else 429
    return 200

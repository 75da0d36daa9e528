"""Admission of calls by their headers."""

import pytest

from tightship.driver.oip.admission.gate import AdmissionError, Gate
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

"""Clients behind proxies: whom a header is believed, whatever it says."""

import pytest

from tightship.driver.oip.admission.proxies import Proxies
from tightship.errors import InputError

PROXIES = Proxies(["10.0.0.7", "10.1.0.0/16", "2001:db8::/32"])


@pytest.mark.parametrize(
    ("address", "forwarded", "client"),
    [
        ("10.0.0.7", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.7", " 192.0.2.1 , 10.1.2.3 ", "192.0.2.1"),
        ("::ffff:10.0.0.7", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.7", "192.0.2.1:4711", "192.0.2.1"),
        ("10.0.0.7", "[2001:DB9:0::1]:4711", "2001:db9::1"),
        ("2001:db8::5", "2001:db9::1", "2001:db9::1"),
        ("10.0.0.7", "10.1.2.3, 10.1.2.4", "10.1.2.3"),  # a proxy is the client
    ],
)
def test_a_trusted_proxy_says_who_its_client_is(address, forwarded, client):
    assert PROXIES.client_of(address, forwarded) == client


@pytest.mark.parametrize(
    ("address", "forwarded", "client"),
    [
        ("192.0.2.9", "192.0.2.1", "192.0.2.9"),
        ("10.0.0.8", "192.0.2.1", "10.0.0.8"),
        ("gone", "192.0.2.1", "gone"),
        ("10.0.0.7", "192.0.2.66, 192.0.2.1", "192.0.2.1"),  # the client wrote the first
        ("10.0.0.7", "10.1.2.3, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.7", "192.0.2.66, unknown", "10.0.0.7"),
        ("10.0.0.7", "192.0.2.66, _hidden, 10.1.2.3", "10.1.2.3"),
        ("10.0.0.7", "", "10.0.0.7"),
        ("10.0.0.7", ",", "10.0.0.7"),
        ("10.0.0.7", "192.0.2.1\r\nevil", "10.0.0.7"),
        ("10.0.0.7", "[192.0.2.1", "192.0.2.1"),
        ("10.0.0.7", "192.0.2.1%eth0", "10.0.0.7"),
        ("10.0.0.7", "4711", "10.0.0.7"),
        ("10.0.0.7", "\xb2\xb2.0.2.1", "10.0.0.7"),
    ],
)
def test_what_a_client_writes_itself_is_not_believed(address, forwarded, client):
    assert PROXIES.client_of(address, forwarded) == client


def test_a_long_header_costs_little_and_hides_nothing():
    assert PROXIES.client_of("10.0.0.7", "192.0.2.66," * 6000 + "192.0.2.1") == "192.0.2.1"
    assert (
        PROXIES.client_of("10.0.0.7", "192.0.2.66," + "10.1.2.3," * 40 + "10.1.2.4") == "10.1.2.3"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("proxy.example", "`proxy.example` is not an address or a network"),
        ("10.1.2.3/16", "has host bits set; write 10.0.0.7 or 10.1.0.0/16"),
        ("", "`` is not an address"),
        ("*", "is not an address"),
        ("0.0.0.0/0", "trusts every address"),
        ("::/0", "trusts every address"),
    ],
)
def test_what_is_not_an_address_is_refused(text, said):
    with pytest.raises(InputError, match=said.replace("*", r"\*")):
        Proxies([text])

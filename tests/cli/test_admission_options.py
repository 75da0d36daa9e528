"""Options about who may call: what is refused, and what is warned of."""

import pytest

from tests.driver.oip.admission.pem import certificate
from tightship.cli.admission_options import entry_of
from tightship.cli.arguments import parser
from tightship.errors import InputError

TOKEN = "the-token-of-alice-0123456789"


def parsed(*options):
    return parser().parse_args(["serve", *map(str, options)])


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(TOKEN)
    path.chmod(0o600)
    return path


def test_without_options_every_client_of_this_machine_is_admitted(caplog):
    entry = entry_of(parsed("--http", "0", "--grpc", "[::1]:0", "--host-name", "Models.example"))
    assert (entry.certificate, entry.gate) == (None, None)
    assert entry.host_names == {"models.example"}
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--http", "0", "--tls-cert", "none"), "`--tls-cert` needs `--tls-key` as well"),
        (("--http", "0", "--tls-key", "none"), "`--tls-key` needs `--tls-cert` as well"),
        (("--token-file", "none"), "`--token-file` is for HTTP and gRPC; give `--http`"),
        (("--tls-cert", "no", "--tls-key", "no"), "`--tls-cert` is for HTTP and gRPC"),
        (("--http", "0", "--trusted-proxy", "nginx"), "`nginx` is not an address or a network"),
        (("--trusted-proxy", "::/0"), "`--trusted-proxy` is for HTTP and gRPC"),
        (("--http", "0", "--token-file", "none"), "`none` cannot be read"),
        (("--grpc", "0", "--tls-cert", "no", "--tls-key", "no"), "`no` cannot be read"),
    ],
)
def test_options_that_lack_another_or_a_file_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        entry_of(parsed(*options))


def test_a_public_address_without_a_token_or_without_tls_warns(caplog, tokens, tmp_path):
    entry_of(parsed("--http", "0.0.0.0:0", "--grpc", "0"))
    assert len(caplog.messages) == 1
    assert "`--http 0.0.0.0` is reachable from other machines, and every" in caplog.messages[0]
    entry_of(parsed("--grpc", "[::]:0", "--token-file", tokens))
    assert len(caplog.messages) == 2
    assert "`--grpc ::` is reachable from other machines without TLS" in caplog.messages[1]
    chain, key = certificate(tmp_path)
    secured = ("--tls-cert", chain, "--tls-key", key, "--token-file", tokens)
    entry = entry_of(parsed("--http", "0.0.0.0:0", *secured))
    assert entry.certificate is not None
    assert entry.gate is not None
    assert len(caplog.messages) == 2
    assert TOKEN not in caplog.text

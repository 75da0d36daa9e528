"""Certificates of files: what is valid, and that replaced files are taken whole."""

import ssl

import pytest

from tests.driver.oip.admission.pem import certificate, encrypted
from tightship.driver.oip.admission import watched_files
from tightship.driver.oip.admission.certificate import Certificate
from tightship.errors import InputError


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(watched_files, "PERIOD_S", 0.0)


def test_old_versions_of_tls_are_refused(tmp_path):
    context = Certificate(*certificate(tmp_path)).context()
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert not context.options & ssl.OP_NO_TLSv1_3


def test_files_that_are_not_valid_are_refused(tmp_path):
    chain, key = certificate(tmp_path)
    _, other = certificate(tmp_path, "other")
    for files, said in (
        ((chain, other), "(?i)mismatch"),
        ((key, key), "is not valid"),
        ((chain, chain), "is not valid"),
        ((chain, tmp_path / "none"), "The TLS key .* cannot be read: No such file"),
        ((tmp_path / "none", key), "The TLS certificate .* cannot be read: No such file"),
        ((chain, encrypted(key)), "is encrypted; decrypt it"),
    ):
        with pytest.raises(InputError, match=said):
            Certificate(*files)
    key.chmod(0o666)
    with pytest.raises(InputError, match="can be written by every user"):
        Certificate(chain, key)


def test_files_may_be_replaced_one_after_the_other(tmp_path, caplog):
    chain, key = certificate(tmp_path)
    found = Certificate(chain, key)
    before, pem = found.context(), found.pem()
    new_chain, new_key = certificate(tmp_path, "new")
    new_chain.replace(chain)
    assert found.context() is before
    assert found.context() is before
    assert len(caplog.messages) == 1
    assert "The certificate before stays in use." in caplog.messages[0]
    new_key.replace(key)
    assert found.context() is not before
    assert found.pem() != pem
    assert found.number == 1

"""Tokens of a file: which are valid, how a changed file is taken, and what is never told."""

import hmac
import logging
import os

import pytest

from tightship.driver.oip.admission import tokens as module
from tightship.driver.oip.admission import watched_files
from tightship.driver.oip.admission.tokens import TokenFile
from tightship.errors import InputError

FIRST, SECOND = "first-token-0123456789", "second~token+/._0123456789=="


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(watched_files, "PERIOD_S", 0.0)


def written(folder, text, mode=0o600):
    path = folder / "tokens"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_token_names_its_client(tmp_path):
    found = TokenFile(written(tmp_path, f"# comment\n\n{FIRST}\n  alice\t{SECOND}  \n"))
    assert found.client_of(f"Bearer {FIRST}") == "token-1"
    assert found.client_of(f"bearer  {SECOND} ") == "alice"


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        FIRST,
        f"Basic {FIRST}",
        f"Bearer {FIRST[:-1]}",
        f"Bearer {FIRST}x",
        f"Bearer {FIRST.upper()}",
        f"Bearer {FIRST}\0",
        f"Bearer {FIRST}, {FIRST}",
        f"Bearer alice {SECOND}",
        "Bearer # comment",
        "Bearer \udcff\xff" + "x" * 60_000,
    ],
)
def test_anything_else_names_none(tmp_path, given):
    found = TokenFile(written(tmp_path, f"# comment\n{FIRST}\nalice {SECOND}\n"))
    assert found.client_of(given) is None


def test_every_token_is_compared_in_constant_time(tmp_path, monkeypatch):
    compared = []

    def seen(one, other):
        compared.append((len(one), len(other)))
        return compare(one, other)

    compare = hmac.compare_digest
    monkeypatch.setattr(module.hmac, "compare_digest", seen)
    found = TokenFile(written(tmp_path, f"{FIRST}\n{SECOND}\n"))
    for given in (FIRST, SECOND, "x", "x" * 1000):
        found.client_of(f"Bearer {given}")
    assert compared == [(32, 32)] * 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no token; write one"),
        ("# only\n", "has no token; write one"),
        ("short\n", "Line 1 .* not 16 to 1024 letters"),
        (f"{FIRST}\n{'x' * 1025}\n", "Line 2 .* not 16 to 1024 letters"),
        (f"{FIRST}é\n", "Line 1 .* not 16 to 1024 letters"),
        (f"a b {FIRST}\n", "Line 1 .* has 3 words"),
        (f"a:b {FIRST}\n", "Line 1 .* name that is not 1 to 64"),
        (f"{FIRST}\nb {FIRST}\n", "Line 2 .* repeats a token"),
        (f"b {FIRST}\nb {SECOND}\n", "Line 2 .* repeats the name"),
        ("\n".join(f"{FIRST}{n}" for n in range(257)), "has 257 tokens; it may have 256"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_without_its_content(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as refused:
        TokenFile(written(tmp_path, text))
    assert FIRST not in str(refused.value)
    assert "short" not in str(refused.value)


def test_a_file_that_others_can_write_is_refused_and_one_they_can_read_warns(tmp_path, caplog):
    with pytest.raises(InputError, match=r"can be written by every user .*; `chmod 600` it"):
        TokenFile(written(tmp_path, FIRST, 0o602))
    TokenFile(written(tmp_path, FIRST, 0o600))
    assert caplog.messages == []
    TokenFile(written(tmp_path, FIRST, 0o644))
    assert "can be read by every user" in caplog.messages[0]


def test_what_is_not_a_readable_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        TokenFile(tmp_path / "none")
    with pytest.raises(InputError, match=r"is not a regular file|cannot be read: Is a directory"):
        TokenFile(tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(InputError, match="is not a regular file"):
        TokenFile(tmp_path / "pipe")
    with pytest.raises(InputError, match="has more than 1 MiB"):
        TokenFile(written(tmp_path, "x" * (1 << 20) + "x"))


def test_a_changed_file_counts_at_once_and_a_broken_one_leaves_the_tokens_before(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = written(tmp_path, FIRST)
    found = TokenFile(path)
    path.unlink()
    assert found.client_of(f"Bearer {FIRST}") == "token-1"
    written(tmp_path, "broken")
    assert found.client_of(f"Bearer {FIRST}") == "token-1"
    assert found.client_of(f"Bearer {FIRST}") == "token-1"
    assert len(caplog.messages) == 2  # each failure once
    assert "The tokens before stay valid." in caplog.messages[-1]
    written(tmp_path, f"alice {SECOND}")
    assert found.client_of(f"Bearer {FIRST}") is None
    assert found.client_of(f"Bearer {SECOND}") == "alice"
    assert FIRST not in caplog.text


def test_no_token_can_be_read_out_of_the_object(tmp_path):
    found = TokenFile(written(tmp_path, FIRST))
    assert FIRST not in repr(vars(found)) + repr(found)

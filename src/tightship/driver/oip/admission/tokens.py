"""Bearer tokens from a file, compared in constant time; only their digests are kept."""

import hmac
import logging
import re
from hashlib import sha256
from pathlib import Path

from tightship.driver.oip.admission.watched_files import WatchedFiles, check_secret, read_small
from tightship.errors import InputError

TOKENS_MAX = 256
"""Most tokens of a file, because each request is compared with all of them."""
CHARACTERS_MIN, CHARACTERS_MAX = 16, 1024
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_WHAT = "The token file"
_SCHEME = "bearer "

_LOG = logging.getLogger(__name__)

Digests = tuple[tuple[bytes, str], ...]
"""Digest and name of each token."""


class TokenFile:
    """Tokens that clients may call with, as a file has them now.

    A line is a token, or a name of its client and a token. Empty lines and those that begin with #
    are left out. If a changed file is not valid, the tokens before stay, and an error is logged.
    May be used from several threads.
    """

    def __init__(self, path: Path) -> None:
        """Read a file.

        Raises:
            InputError: It cannot be read, other users can write it, or it is not valid.
        """
        self._path = path
        self._files = WatchedFiles([path])
        warning = check_secret(path, _WHAT)
        self._digests = _read(path)
        self._failure = ""
        if warning is not None:
            _LOG.warning("%s", warning)

    def client_of(self, authorization: str) -> str | None:
        """Return the name of the client whose token a header has; None if it has none of these.

        Args:
            authorization: Value of the header `Authorization`.
        """
        if self._files.have_changed():
            self._read_again()
        scheme, given = authorization[: len(_SCHEME)], authorization[len(_SCHEME) :].strip(" ")
        if scheme.lower() != _SCHEME:
            return None
        digest, found = _digest(given), None
        for known, name in self._digests:  # all, so that the time does not tell which one fits
            if hmac.compare_digest(known, digest):
                found = name
        return found

    def _read_again(self) -> None:
        try:
            check_secret(self._path, _WHAT)
            self._digests, self._failure = _read(self._path), ""
        except InputError as error:
            self._files.look_again()
            if str(error) != self._failure:
                self._failure = str(error)
                _LOG.error("%s The tokens before stay valid.", error)


def _read(path: Path) -> Digests:
    text = read_small(path, _WHAT).decode("latin-1")
    found: dict[bytes, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"Line {number} of the token file `{path}`"  # without its content, a secret
        token, name = _checked(words, where, len(found) + 1)
        if _digest(token) in found:
            raise InputError(f"{where} repeats a token; give each client its own.")
        if name in found.values():
            raise InputError(f"{where} repeats the name of a client; give each its own.")
        found[_digest(token)] = name
    if not found:
        raise InputError(f"The token file `{path}` has no token; write one token a line.")
    if len(found) > TOKENS_MAX:
        raise InputError(
            f"The token file `{path}` has {len(found)} tokens; it may have {TOKENS_MAX}."
        )
    return tuple(found.items())


def _checked(words: list[str], where: str, count: int) -> tuple[str, str]:
    """Return token and name of a line.

    Raises:
        InputError: They are not valid.
    """
    if len(words) > 2:
        raise InputError(f"{where} has {len(words)} words; write a token, or a name and a token.")
    token, name = words[-1], words[0] if len(words) == 2 else f"token-{count}"
    if not _NAME.fullmatch(name):
        raise InputError(f"{where} has a name that is not 1 to 64 letters, digits, `.`, `_`, `-`.")
    if not (CHARACTERS_MIN <= len(token) <= CHARACTERS_MAX and _TOKEN.fullmatch(token)):
        raise InputError(
            f"{where} has a token that is not {CHARACTERS_MIN} to {CHARACTERS_MAX} letters, "
            "digits or `-._~+/` (then perhaps `=`); `openssl rand -hex 32` makes one."
        )
    return token, name


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="replace")).digest()

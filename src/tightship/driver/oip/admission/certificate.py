"""Certificate of TLS from files, which may be replaced while the server runs."""

import logging
import ssl
from pathlib import Path
from typing import NoReturn

from tightship.driver.oip.admission.watched_files import WatchedFiles, check_secret, read_small
from tightship.errors import InputError

_KEY, _CHAIN = "The TLS key", "The TLS certificate"

_LOG = logging.getLogger(__name__)


class Certificate:
    """Certificate with its key, as the files have them now.

    If changed files are not valid, those before stay in use, and an error is logged; so one of the
    two may be replaced before the other. May be used from several threads.

    Attributes:
        number: Increases when other files were read.
    """

    def __init__(self, chain: Path, key: Path) -> None:
        """Read the files.

        Args:
            chain: The server's certificate, followed by those that signed it, as PEM.
            key: Its key as PEM, not encrypted.

        Raises:
            InputError: A file cannot be read, other users can write the key, or the key is not that
                of the certificate.
        """
        self._chain, self._key = chain, key
        self._files = WatchedFiles([chain, key])
        warning = check_secret(key, _KEY)
        self.number, self._failure = 0, ""
        self._context, self._pem = self._read()
        if warning is not None:
            _LOG.warning("%s", warning)

    def context(self) -> ssl.SSLContext:
        """Return the context of new connections."""
        self._refresh()
        return self._context

    def pem(self) -> tuple[bytes, bytes]:
        """Return the content of the files: of the key, and of the certificate."""
        self._refresh()
        return self._pem

    def _refresh(self) -> None:
        if not self._files.have_changed():
            return
        try:
            check_secret(self._key, _KEY)
            self._context, self._pem = self._read()
        except InputError as error:
            self._files.look_again()
            if str(error) != self._failure:
                self._failure = str(error)
                _LOG.error("%s The certificate before stays in use.", error)
        else:
            self.number, self._failure = self.number + 1, ""

    def _read(self) -> tuple[ssl.SSLContext, tuple[bytes, bytes]]:
        pem = read_small(self._key, _KEY), read_small(self._chain, _CHAIN)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self._chain, self._key, self._refuse_password)
        except ssl.SSLError as error:
            raise InputError(
                f"The TLS certificate `{self._chain}` with the key `{self._key}` is not valid: "
                f"{error.reason or error}; give PEM files of a certificate and of its own key."
            ) from None
        except OSError as error:
            raise InputError(
                f"The TLS certificate `{self._chain}` or the key `{self._key}` cannot be read: "
                f"{error.strerror}."
            ) from None
        if (read_small(self._key, _KEY), read_small(self._chain, _CHAIN)) != pem:
            raise InputError(f"{_CHAIN} `{self._chain}` changed while it was read; try again.")
        return context, pem

    def _refuse_password(self) -> NoReturn:
        raise InputError(
            f"{_KEY} `{self._key}` is encrypted; decrypt it (`openssl pkey -in ... -out ...`)."
        )

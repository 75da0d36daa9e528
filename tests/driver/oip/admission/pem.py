"""Certificates for tests, signed by themselves."""

import shutil
import subprocess

import pytest


def certificate(folder, name="server", *, host="localhost"):
    """Make a certificate for a host and 127.0.0.1; the paths of it and of its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the program openssl")
    chain, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", key, "-out", chain]
    names = f"subjectAltName=DNS:{host},IP:127.0.0.1"
    subprocess.run([*command, "-addext", names], check=True, capture_output=True)
    key.chmod(0o600)
    return chain, key


def encrypted(key):
    """Encrypt a key in place."""
    other = key.with_suffix(".enc")
    command = ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", other]
    subprocess.run(command, check=True, capture_output=True)
    other.chmod(0o600)
    return other

"""TLS to the brokers: the context of `shareq tap --tls`, and the reasons of failed handshakes in words."""

from __future__ import annotations

import ssl
from pathlib import Path

from shareq.model.errors import ConfigException

_HOST_MISMATCH = {62, 64}
"""OpenSSL's codes for a certificate of another host name or address."""


def client_context(ca: Path | None = None, certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """A context that checks the brokers' certificates and host names.

    `ca`: the trusted certificates (PEM; None: those of this machine). `certificate`: the client's own, for brokers with
    `ssl.client.auth`, with its key in the same file or in `key`. ConfigException for a file that cannot be used.
    """
    if key is not None and certificate is None:
        raise ConfigException(f"key={str(key)!r}: needs the certificate of this key")
    context = _trusting(ca)
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ValueError) as problem:
            raise ConfigException(f"cert={str(certificate)!r}, key={str(key or certificate)!r}: {problem}") from None
    return context


def _trusting(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as problem:
        raise ConfigException(f"ca={str(ca)!r}: must be a file of certificates in PEM ({problem})") from None


def _no_password() -> str:
    """OpenSSL would ask for the password in the terminal."""
    raise ValueError("must not be encrypted")


def handshake_failure(problem: OSError) -> str:
    """The reason why a broker cannot be reached, with the remedy if TLS is the cause."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        if problem.verify_code in _HOST_MISMATCH:
            return f"its certificate is that of another host: {problem.verify_message}"
        return f"its certificate is not trusted ({problem.verify_message}): name its CA with --ca, or ssl="
    if isinstance(problem, ssl.SSLError):
        if "WRONG_VERSION_NUMBER" in str(problem) or isinstance(problem, ssl.SSLEOFError):
            return "it does not speak TLS"
        return f"TLS handshake failed: {problem.reason or problem}"
    return str(problem) or type(problem).__name__

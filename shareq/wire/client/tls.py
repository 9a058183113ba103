"""TLS on the side of clients: the context, a socket, and the reasons of failed handshakes in words."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from pathlib import Path

from shareq.model.errors import ConfigException
from shareq.model.hidden_values import check_file_names
from shareq.wire.readiness import until_ready

_HOST_MISMATCH = {62, 64}
"""OpenSSL's codes for a certificate of another host name or address."""

RECORD_BYTES = 1 << 14


class TlsFailure(OSError):
    """TLS failed in a way that another attempt does not mend: the text has the reason."""


def client_context(
    ca: str | Path | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    *,
    ca_pem: str | None = None,
    key_password: str | None = None,
) -> ssl.SSLContext:
    """A context that checks the brokers' certificates and host names.

    `ca`: a file or a folder of the trusted certificates, PEM; or `ca_pem` itself; None: those of this machine.
    `certificate`: the client's own, for brokers with `ssl.client.auth`, with its key in the same file or in `key`.
    ConfigException for a file that cannot be used.
    """
    check_file_names(ca=ca, cert=certificate, key=key)
    if key is not None and certificate is None:
        raise ConfigException(f"key={str(key)!r}: needs the certificate of this key")
    context = _trusting(ca, ca_pem)
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key, password=key_password or _no_password)
        except (OSError, ValueError) as problem:
            raise ConfigException(f"cert={str(certificate)!r}, key={str(key or certificate)!r}: {problem}") from None
    return context


def _trusting(ca: str | Path | None, ca_pem: str | None) -> ssl.SSLContext:
    try:
        if ca is not None and Path(ca).is_dir():
            return ssl.create_default_context(capath=ca)
        return ssl.create_default_context(cafile=ca, cadata=ca_pem)
    except OSError as problem:
        raise ConfigException(f"ca={str(ca)!r}: must be a file of certificates in PEM ({problem})") from None


def _no_password() -> str:
    """OpenSSL would ask for the password in the terminal."""
    raise ValueError("must not be encrypted without its password")


def handshake_failure(problem: OSError) -> str:
    """The reason why a broker cannot be reached, with the remedy if TLS is the cause."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        if problem.verify_code in _HOST_MISMATCH:
            return f"its certificate is that of another host: {problem.verify_message}"
        return f"its certificate is not trusted ({problem.verify_message}): name its CA"
    if isinstance(problem, ssl.SSLError):
        if "WRONG_VERSION_NUMBER" in str(problem) or isinstance(problem, ssl.SSLEOFError):
            return "it does not speak TLS"
        return f"TLS failed: {(problem.reason or str(problem)).replace('_', ' ').lower()}"
    return str(problem) or type(problem).__name__


class TlsSocket:
    """A connected socket with TLS, as a plain socket that does not block. OSError as a plain one; TlsFailure."""

    def __init__(self, secured: ssl.SSLSocket) -> None:
        self._secured = secured

    def fileno(self) -> int:
        return self._secured.fileno()

    def send(self, data: bytes | bytearray) -> int:
        """Send as much as the socket takes. BlockingIOError if that is nothing."""
        sent = 0
        with memoryview(data) as view:
            try:
                while sent < len(view):
                    sent += self._secured.send(view[sent:])
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if not sent:
                    raise BlockingIOError from None
            except ssl.SSLError as problem:
                raise TlsFailure(handshake_failure(problem)) from None
        return sent

    def recv(self, size: int) -> bytes:
        """What has arrived, about `size` bytes at most; nothing at the end. No byte stays behind in this process: the
        loop watches the system's socket."""
        parts: list[bytes] = []
        received = 0
        try:
            while received < size or self._secured.pending():
                part = self._secured.recv(RECORD_BYTES)
                if not part:
                    break
                parts.append(part)
                received += len(part)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if not parts:
                raise BlockingIOError from None
        except ssl.SSLError as problem:
            raise TlsFailure(handshake_failure(problem)) from None
        return b"".join(parts)

    def shutdown(self, how: int) -> None:
        with suppress(OSError, ValueError):
            self._secured.unwrap()  # tells the peer, and does not wait for its answer
        self._secured.shutdown(how)

    def close(self) -> None:
        self._secured.close()


async def begin_tls(opened: socket.socket, host: str, context: ssl.SSLContext) -> TlsSocket:
    """The handshake. TlsFailure, or OSError if the peer ends the connection; the socket is closed then."""
    secured: ssl.SSLSocket | socket.socket = opened
    try:
        secured = context.wrap_socket(opened, do_handshake_on_connect=False, server_hostname=host)
        while True:
            try:
                secured.do_handshake()
                return TlsSocket(secured)
            except ssl.SSLWantReadError:
                await until_ready(secured)
            except ssl.SSLWantWriteError:
                await until_ready(secured, to_write=True)
    except BaseException as problem:
        secured.close()
        if isinstance(problem, ssl.SSLEOFError):
            raise ConnectionResetError(
                "it has ended the connection during the TLS handshake: it may not speak TLS"
            ) from None
        if isinstance(problem, ssl.SSLError):
            raise TlsFailure(handshake_failure(problem)) from None
        raise

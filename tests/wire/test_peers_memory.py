"""What a process holds in memory for each peer without a login, with all that is not Python's: OpenSSL's, the buffers
of the loop, and what the allocators do not give back. `test_sasl_server.py` counts what Python allocates."""

from __future__ import annotations

import ssl
import struct
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from shareq.model.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.wire.certificates import PASSWORD
from tests.wire.raw import Raw
from tests.wire.secured import Vault
from tests.wire.test_cli import ports, running
from tests.wire.test_sasl_server import SMALL, connected, heard, send_all_that_is_taken

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

PEERS = 100
"""So many that what the process takes once is a hundredth of it for each."""

MOST_BYTES = 1 << 20

LARGEST = 524_288
"""The largest frame before the login."""

LARGEST_HELLO = 131_396
"""OpenSSL's limit of a ClientHello."""

HELD = "connection.failed.authentication.delay.ms=60000"
"""A failed login keeps its connection until all are there."""


def memory(pid: int, which: str) -> int:
    """`VmRSS` is what the process has now, `VmHWM` the most that it ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(which)) << 10


# ---- what peers send -------------------------------------------------------------------------------------------------


def frame(size: int) -> bytes:
    """A frame of a SaslAuthenticate, which is not allowed yet."""
    return struct.pack(">ih", size, SaslAuthenticateRequest.API_KEY) + bytes(size - 2)


def unfinished(raw: Raw) -> bytes:
    return frame(LARGEST)[:-1]


def large_frames(raw: Raw) -> bytes:
    return frame(LARGEST) * 5


def small_frames(raw: Raw) -> bytes:
    """While the failure is held back."""
    return SMALL * 100_000


def long_password(raw: Raw) -> bytes:
    """The largest request that is parsed."""
    raw.ask(SaslHandshakeRequest(mechanism="PLAIN"))
    data = raw.frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + b"x" * (LARGEST - 100)))
    assert len(data) <= LARGEST
    return data * 2


def unfinished_password(raw: Raw) -> bytes:
    return long_password(raw)[:-1]


FRAMES = (
    unfinished,
    large_frames,
    *(pytest.param(one, marks=pytest.mark.long) for one in (small_frames, long_password, unfinished_password)),
)


def records(data: bytes) -> bytes:
    """Bytes of a handshake as records of TLS."""
    parts = [data[at : at + (1 << 14)] for at in range(0, len(data), 1 << 14)]
    return b"".join(struct.pack(">BHH", 22, 0x0301, len(part)) + part for part in parts)


def first_byte() -> bytes:
    return b"\x16"


def unfinished_hello() -> bytes:
    return records(b"\x01" + LARGEST_HELLO.to_bytes(3, "big") + bytes(LARGEST_HELLO - 1))


def hello() -> bytes:
    """A whole one: the server sends its certificates, and waits for an answer to them."""
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1").do_handshake()
    return outgoing.read()


def hello_and_more() -> bytes:
    """And then records as if they were encrypted, of which the first cannot be read."""
    return hello() + (struct.pack(">BHH", 23, 0x0303, 1 << 14) + bytes(1 << 14)) * 64


# ---- what it takes ---------------------------------------------------------------------------------------------------


def taken_for_each(
    tmp_path: Path, attack: Callable[[int, ssl.SSLContext | None, ExitStack], None], *, tls: bool
) -> float:
    """The memory of a server's process at its most during the attack, less that before, for each of the peers."""
    vault = Vault(tmp_path)
    users = tmp_path / "users.properties"
    users.write_text(f"alice={PASSWORD}\n")
    files = ("--tls-cert", vault.server.cert, "--tls-key", vault.server.key) if tls else ()
    context = ssl.create_default_context(cafile=vault.authority.file) if tls else None
    with running("--sasl-users", str(users), "--config", HELD, *files) as process, ExitStack() as stack:
        (port,) = ports(process)
        heard(port, context)
        before = memory(process.pid, "VmRSS")
        attack(port, context, stack)
        heard(port, context)
        return (memory(process.pid, "VmHWM") - before) / PEERS


@pytest.mark.parametrize("tls", [False, True], ids=["plaintext", "TLS"])
@pytest.mark.parametrize("data_of", FRAMES)
def test_a_peer_that_sends_frames_takes_at_most_a_mebibyte(
    tmp_path: Path, data_of: Callable[[Raw], bytes], tls: bool
) -> None:
    def attack(port: int, context: ssl.SSLContext | None, stack: ExitStack) -> None:
        for _ in range(PEERS):
            raw = stack.enter_context(connected(port, context))
            send_all_that_is_taken(raw.socket, data_of(raw), lambda: heard(port, context))

    assert taken_for_each(tmp_path, attack, tls=tls) <= MOST_BYTES


@pytest.mark.parametrize("data_of", [first_byte, unfinished_hello, hello, hello_and_more])
def test_a_peer_that_ends_no_handshake_takes_at_most_a_mebibyte(tmp_path: Path, data_of: Callable[[], bytes]) -> None:
    data = data_of()

    def attack(port: int, context: ssl.SSLContext | None, stack: ExitStack) -> None:
        for _ in range(PEERS):
            raw = stack.enter_context(connected(port, None))
            with suppress(ConnectionError):  # it is closed at the first record that cannot be read
                send_all_that_is_taken(raw.socket, data, lambda: heard(port, context))

    assert taken_for_each(tmp_path, attack, tls=True) <= MOST_BYTES

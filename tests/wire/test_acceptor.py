"""A broker's port: connections while it closes, a process without free file descriptors, IPv6."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import confluent_kafka
import pytest

import shareq
from shareq import Admin, Cluster, NewTopic, Producer
from shareq.model.errors import ConfigException
from shareq.wire import acceptor as listener_module
from shareq.wire.acceptor import Acceptor, bind, ports_of
from tests.polling import PATIENCE_S, QUICK, take

HOST = "127.0.0.1"


class GreetAndClose(asyncio.Protocol):
    """Sends a greeting and closes the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")
        transport.close()


def run(scenario: Callable[[Acceptor], Awaitable[None]], refusal_ms: Callable[[str], int] | None = None) -> None:
    async def main() -> None:
        acceptor = Acceptor(HOST, 0, lambda _: GreetAndClose(), refusal_ms=refusal_ms)
        try:
            await acceptor.follow(True)
            await scenario(acceptor)
        finally:
            await acceptor.follow(False)

    asyncio.run(main())


def received_bytes(peer: socket.socket) -> bytes | None:
    """All bytes until the peer closes; None if the connection is reset before the first byte."""
    data = b""
    try:
        while more := peer.recv(100):
            data += more
    except ConnectionResetError:
        return data or None
    return data


@pytest.mark.parametrize("turns", range(6))
def test_a_connection_to_a_closing_port_is_closed(turns: int) -> None:
    """The port closes after `turns` turns of the loop: the connection is pending, accepted or made."""

    async def scenario(acceptor: Acceptor) -> None:
        with socket.create_connection((HOST, acceptor.port), PATIENCE_S) as peer:
            for _ in range(turns):
                await asyncio.sleep(0)
            await acceptor.follow(False)
            assert await asyncio.to_thread(received_bytes, peer) in (b"hello", None)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, acceptor.port), PATIENCE_S)

    run(scenario)


@pytest.mark.parametrize("closes", [pytest.param(True, id="with the port"), pytest.param(False, id="after its time")])
def test_a_refused_connection_is_not_read_and_ends(closes: bool) -> None:
    addresses = []

    def refusal_ms(address: str) -> int:
        addresses.append(address)
        return 3_600_000 if closes else 1

    async def scenario(acceptor: Acceptor) -> None:
        with socket.create_connection((HOST, acceptor.port), PATIENCE_S) as peer:
            while not addresses:
                await asyncio.sleep(0)
            if closes:
                await acceptor.follow(False)
            assert await asyncio.to_thread(received_bytes, peer) == b""
        assert not acceptor._refused

    run(scenario, refusal_ms)
    assert addresses == [HOST]


class SocketWithoutDescriptors(socket.socket):
    """A socket of a process without free file descriptors: its first three accepts fail."""

    accepts = 0

    def accept(self) -> Any:
        SocketWithoutDescriptors.accepts += 1
        if SocketWithoutDescriptors.accepts <= 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_connections_wait_while_no_file_descriptor_is_free(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def bind(host: str, port: int) -> socket.socket:
        bound = SocketWithoutDescriptors(fileno=real(host, port).detach())
        bound.setblocking(False)
        return bound

    async def scenario(acceptor: Acceptor) -> None:
        with socket.create_connection((HOST, acceptor.port), PATIENCE_S) as peer:
            assert await asyncio.to_thread(received_bytes, peer) == b"hello"

    real = listener_module.bind
    monkeypatch.setattr(listener_module, "bind", bind)
    monkeypatch.setattr(listener_module, "REOPEN_AFTER_S", 0.001)
    monkeypatch.setattr(SocketWithoutDescriptors, "accepts", 0)
    run(scenario)
    ours = [record.getMessage() for record in caplog.records if record.name == "shareq.server"]
    assert [text.split(": ", 1)[1] for text in ours] == ["[Errno 24] Too many open files; trying again"] * 3


# ---- IPv6 ------------------------------------------------------------------------------------------------------------


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["2001:db8::1", *([] if has_ipv6() else ["::1"])])
def test_an_address_of_another_machine_is_refused(host: str) -> None:
    with Cluster(clock="wall") as cluster, pytest.raises(ConfigException, match=host):
        cluster.serve(host=host)


def test_ipv6_is_refused_on_a_machine_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> socket.socket:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", refused)
    with pytest.raises(ConfigException, match="port 0 on ::1 cannot be opened: Address family not supported"):
        bind("::1", 0)


@pytest.mark.parametrize("client", [shareq, confluent_kafka], ids=["shareq", "confluent"])
@pytest.mark.parametrize("host", ["::1"] if has_ipv6() else ["127.0.0.1"])
def test_clients_connect_over_ipv6(host: str, client: Any) -> None:
    with Cluster(brokers=2, clock="wall", seed=7, config=QUICK) as cluster, cluster.serve(host=host) as server:
        where = f"[{host}]" if ":" in host else host
        assert all(address.startswith(f"{where}:") for address in server.bootstrap_servers.split(","))
        with Admin({"bootstrap.servers": server.bootstrap_servers}) as admin:
            admin.create_topics([NewTopic("orders", 2)]).check()
            admin.alter_group_configs("g", {"share.auto.offset.reset": "earliest"})
            with Producer({"bootstrap.servers": server.bootstrap_servers}) as producer:
                for partition in range(2):
                    producer.produce("orders", "hello", partition=partition)
            with closing(client.ShareConsumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "g"})) as one:
                one.subscribe(["orders"])
                assert [message.value() for message in take(one, 2)] == [b"hello"] * 2
                (member,) = admin.describe_share_groups(["g"]).check()["g"].members
                assert member.host == f"/{host}"


def test_the_last_broker_may_have_the_highest_port() -> None:
    assert ports_of("127.0.0.1", 65_533, 3) == [65_533, 65_534, 65_535]
    with pytest.raises(ConfigException, match=r"the first of 3 ports must be 1\.\.65533"):
        ports_of("127.0.0.1", 65_534, 3)

"""Attacks by batches, frames, connections and topics: each is what one client, or one machine, can send to a server.

An attack returns when it is over.
"""

from __future__ import annotations

import random
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import cramjam

from shareq.log.batches import HEADER_BYTES
from shareq.log.compression import CODECS
from shareq.log.records import encode_batch
from shareq.model.ids import TopicId
from shareq.model.messages.cluster import FindCoordinatorRequest, MetadataRequest
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from shareq.model.messages.topics import CreateTopicsRequest, DeleteTopicsRequest
from tests.attack.connection import WOULD_BLOCK, Raw
from tests.log.support import patched

Attack = Callable[[int], None]
"""`attack(port)`."""

MIB = 1 << 20
NOW = 1_700_000_000_000
NOWHERE = TopicId("x" * 21 + "w")


class Attacks(dict[str, Attack]):
    """Attacks by their titles, in the order in which they run."""

    def titled(self, title: str) -> Callable[[Attack], Attack]:
        """The decorator of an attack."""

        def kept(attack: Attack) -> Attack:
            self[title] = attack
            return attack

        return kept


ON_CONNECTIONS = Attacks()


@contextmanager
def many(port: int, count: int) -> Iterator[list[Raw]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Raw(port)) for _ in range(count)]


def until_closed(raw: Raw) -> None:
    """Wait until the server has read, answered or refused all."""
    with suppress(OSError, AssertionError):
        raw.receive()


def send(port: int, frame: bytes) -> None:
    """Send a frame on a connection of its own, and wait until the server is done with it."""
    with Raw(port) as raw, suppress(OSError):
        raw.socket.sendall(frame)
        raw.socket.recv(1)


def topic(port: int, name: str = "orders") -> TopicId:
    with Raw(port) as raw:
        (found,) = raw.ask(MetadataRequest(topics=(MetadataRequest.Topic(name=name),))).topics
        topic_id: TopicId = found.topic_id
        return topic_id


# ---- batches ---------------------------------------------------------------------------------------------------------


def produce(port: int, batch: bytes, times: int) -> None:
    part = ProduceRequest.Partition(index=0, records=batch)
    with Raw(port) as raw:
        request = ProduceRequest(topics=(ProduceRequest.Topic(topic_id=topic(port), partitions=(part,)),))
        for _ in range(times):
            raw.ask(request)


def compressed(payload: bytes, codec: str, count: int) -> bytes:
    header = bytearray(encode_batch([(b"k", b"v", (), NOW)])[:HEADER_BYTES])
    header[8:12] = (HEADER_BYTES - 12 + len(payload)).to_bytes(4, "big")
    header[22] = CODECS[codec]
    header[23:27] = (count - 1).to_bytes(4, "big")
    header[57:61] = count.to_bytes(4, "big")
    return patched(bytes(header) + payload, 23, bytes(header[23:27]))


@ON_CONNECTIONS.titled("zstd: 960 kB that stand for 30 GB")
def zstd_bomb(port: int) -> None:
    """30 frames of a gigabyte each."""
    produce(port, compressed(bytes(cramjam.zstd.compress(bytes(1 << 30))) * 30, "zstd", 1), 5)


@ON_CONNECTIONS.titled("gzip: 1 MB that stand for 1 GB")
def gzip_bomb(port: int) -> None:
    payload = bytes(cramjam.gzip.compress(bytes(1 << 30), 9))[: 1000 * 1000]
    produce(port, compressed(payload, "gzip", 1), 5)


@ON_CONNECTIONS.titled("zstd: 1,900,000 records of 8 bytes")
def small_records(port: int) -> None:
    one = encode_batch([(None, None, (), NOW)])[HEADER_BYTES:]
    count = 15 * MIB // len(one)
    produce(port, compressed(bytes(cramjam.zstd.compress(one * count)), "zstd", count), 3)


# ---- frames ----------------------------------------------------------------------------------------------------------


def heartbeat(group: str = "g") -> bytes:
    with socket.socket() as unconnected:
        raw = Raw.__new__(Raw)
        raw.socket, raw.client_id, raw._sent, raw._ids = unconnected, None, {}, 0
        return raw.frame(ShareGroupHeartbeatRequest(group_id=group, member_id="m" * 22, member_epoch=0))


def send_tags(port: int, tags: int, encoded: bytes) -> None:
    """Send a header with so many tags; `encoded`: their number as an unsigned varint."""
    plain = heartbeat()[4:]
    frame = plain[:10] + encoded + b"\x63\x00" * tags + plain[11:]
    send(port, struct.pack(">i", len(frame)) + frame)


@ON_CONNECTIONS.titled("a header with 4,000,000 tags")
def header_tags(port: int) -> None:
    send_tags(port, 4_000_000, b"\x80\x92\xf4\x01")


@ON_CONNECTIONS.titled("a header with 20,000,000 tags")
def more_header_tags(port: int) -> None:
    """The server may refuse so large a frame before it reads a tag."""
    send_tags(port, 20_000_000, b"\x80\xda\xc4\x09")


@ON_CONNECTIONS.titled("a million coordinators' keys")
def coordinator_keys(port: int) -> None:
    with Raw(port) as raw, suppress(OSError):
        raw.send(FindCoordinatorRequest(coordinator_keys=tuple(f"group-{i}" for i in range(1_000_000))))
        until_closed(raw)


@ON_CONNECTIONS.titled("10,000 keys of 900 bytes")
def long_keys(port: int) -> None:
    with Raw(port) as raw, suppress(OSError):
        for _ in range(3):
            raw.send(FindCoordinatorRequest(coordinator_keys=tuple(f"{i}" + "g" * 900 for i in range(9_999))))
            until_closed(raw)


@ON_CONNECTIONS.titled("a group id of 9 MB")
def long_group(port: int) -> None:
    send(port, heartbeat("g" * 9_000_000))


@ON_CONNECTIONS.titled("a share session with 90,000 unknown partitions")
def unknown_partitions(port: int) -> None:
    parts = tuple(ShareFetchRequest.Partition(partition_index=index) for index in range(90_000))
    wanted = (ShareFetchRequest.Topic(topic_id=NOWHERE, partitions=parts),)
    with Raw(port) as raw:
        for epoch in range(5):
            request = ShareFetchRequest(
                group_id="g", member_id="m", share_session_epoch=epoch, topics=wanted if epoch == 0 else ()
            )
            raw.ask(request)


# ---- connections -----------------------------------------------------------------------------------------------------


@ON_CONNECTIONS.titled("100 connections that pipeline and never read")
def pipelines(port: int) -> None:
    with many(port, 100) as raws:
        frames = [b"".join(raw.frame(MetadataRequest(topics=None)) for _ in range(1000)) for raw in raws]
        for raw in raws:
            raw.socket.setblocking(False)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            writable = select.select([], [raw.socket for raw in raws], [], 0.1)[1]
            for raw, frame in zip(raws, frames, strict=True):
                if raw.socket in writable:
                    with suppress(*WOULD_BLOCK, ConnectionError):
                        raw.socket.send(frame)


@ON_CONNECTIONS.titled("50 connections that ask for 55 MB and never read")
def unread(port: int) -> None:
    part = ProduceRequest.Partition(index=0, records=encode_batch([(None, bytes(1_000_000), (), NOW)]))
    orders = topic(port)
    with Raw(port) as raw:
        for _ in range(55):
            raw.ask(ProduceRequest(topics=(ProduceRequest.Topic(topic_id=orders, partitions=(part,)),)))
    wanted = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=60 * MIB)
    request = FetchRequest(max_bytes=60 * MIB, topics=(FetchRequest.Topic(topic_id=orders, partitions=(wanted,)),))
    with many(port, 50) as raws:
        for raw in raws:
            for _ in range(3):
                raw.send(request)
        time.sleep(5)


@ON_CONNECTIONS.titled("50 connections with 20 MB each of a Produce")
def unfinished(port: int) -> None:
    with many(port, 50) as raws:
        head, chunk = struct.pack(">ih", 100_000_000, ProduceRequest.API_KEY), bytes(MIB)
        left = {raw.socket: 20 for raw in raws}
        for raw in raws:
            raw.socket.sendall(head)
            raw.socket.setblocking(False)
        end = time.monotonic() + 5
        while any(left.values()) and time.monotonic() < end:
            for writable in select.select([], [sock for sock, count in left.items() if count], [], 0.1)[1]:
                with suppress(*WOULD_BLOCK, ConnectionError):
                    writable.send(chunk)
                    left[writable] -= 1


@ON_CONNECTIONS.titled("3 connections that announce 100 MB each")
def announced(port: int) -> None:
    with many(port, 3) as raws:
        for raw in raws:
            raw.socket.sendall(struct.pack(">ih", 100_000_000, ProduceRequest.API_KEY))
        time.sleep(3)


@ON_CONNECTIONS.titled("3 connections with 95 MB each of a Produce")
def nearly_finished(port: int) -> None:
    with many(port, 3) as raws:
        for raw in raws:
            with suppress(OSError):
                raw.socket.sendall(struct.pack(">ih", 100_000_000, ProduceRequest.API_KEY))
                raw.socket.settimeout(3)
                raw.socket.sendall(bytes(95_000_000))
        time.sleep(3)


@ON_CONNECTIONS.titled("3,000 connections, each closed at once")
def opened_and_closed(port: int) -> None:
    for _ in range(3000):
        Raw(port).close()


@ON_CONNECTIONS.titled("500 connections that send nothing")
def silent_connections(port: int) -> None:
    with many(port, 500):
        time.sleep(3)


@ON_CONNECTIONS.titled("200 connections that send a byte at a time")
def bytes_one_by_one(port: int) -> None:
    frame = heartbeat()
    with many(port, 200) as raws:
        for index in range(len(frame)):
            for raw in raws:
                raw.socket.sendall(frame[index : index + 1])


@ON_CONNECTIONS.titled("200 frames that state 2 GB")
def stated_sizes(port: int) -> None:
    with many(port, 200) as raws:
        for raw in raws:
            raw.socket.sendall(struct.pack(">i", (1 << 31) - 1) + bytes(1000))
        for raw in raws:
            until_closed(raw)


@ON_CONNECTIONS.titled("20,000 frames of random bytes")
def random_frames(port: int) -> None:
    rng = random.Random(1)
    for _ in range(200):
        with Raw(port) as raw, suppress(OSError):
            raw.socket.sendall(b"".join(struct.pack(">i", 500) + rng.randbytes(500) for _ in range(100)))
            until_closed(raw)


@ON_CONNECTIONS.titled("300 waiting fetches that break at once")
def broken_fetches(port: int) -> None:
    parts = tuple(FetchRequest.Partition(partition=index, fetch_offset=0) for index in range(10))
    wanted = (FetchRequest.Topic(topic_id=topic(port), partitions=parts),)
    with many(port, 300) as raws:
        for raw in raws:
            raw.send(FetchRequest(max_wait_ms=60_000, min_bytes=1 << 20, topics=wanted))


@ON_CONNECTIONS.titled("1,000 share sessions on one connection")
def sessions(port: int) -> None:
    with Raw(port) as raw:
        for index in range(1000):
            request = ShareFetchRequest(group_id="g", member_id=f"m{index}", share_session_epoch=0, max_wait_ms=0)
            raw.ask(request)


# ---- topics ----------------------------------------------------------------------------------------------------------


@ON_CONNECTIONS.titled("10,000 topics, created and deleted")
def many_topics(port: int) -> None:
    names = [f"attack_{index}" for index in range(10_000)]
    with Raw(port) as raw:
        new = tuple(CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=1) for name in names)
        raw.ask(CreateTopicsRequest(topics=new))
        raw.ask(DeleteTopicsRequest(topics=tuple(DeleteTopicsRequest.Topic(name=name) for name in names)))


@ON_CONNECTIONS.titled("50,000 names in a Metadata request")
def many_names(port: int) -> None:
    with Raw(port) as raw:
        names = tuple(MetadataRequest.Topic(name=f"new_{index}") for index in range(50_000))
        raw.ask(MetadataRequest(topics=names, allow_auto_topic_creation=True))

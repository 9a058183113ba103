"""A TCP proxy between clients and a served cluster that parses Kafka's frames and injects faults into them.

A rule takes each frame and returns a fault or None. Brokers advertise the proxy's addresses, so that every connection
of every client goes through it.
"""

from __future__ import annotations

import asyncio
import random
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any, NamedTuple, Self

from shareq import Cluster
from shareq.wire.apis import APIS

Address = tuple[str, int]

HOST = "127.0.0.1"
NAMES = {api.key: api.name for api in APIS}
RESPONSE_OF_UNKNOWN = "?"


class Fault(StrEnum):
    """Faults of a frame."""

    DROP = "drop"  # close the connection instead of sending the frame
    CUT = "cut"  # close the connection in the middle of the frame
    DELAY = "delay"  # delay the frame and all later ones
    DOUBLE = "double"  # send the frame twice
    SWALLOW = "swallow"  # drop the frame; the connection stays open
    PIECES = "pieces"  # send the frame in small pieces
    HALF_CLOSE = "half-close"  # end this direction of the connection


class Frame(NamedTuple):
    """A request, or the response to one."""

    api: str
    is_request: bool


UNREPEATED = {Frame("InitProducerId", True), Frame("ShareGroupHeartbeat", True)}
"""Requests that are not sent twice, because no network does so after the client has the first response.

TCP duplicates no frame: a broker receives a request twice only if a client retries it after a lost response. A retrying
client uses the second producer id, and a retrying member sends its topics, so that the coordinator's response has the
whole assignment. A client with the first response does neither. After a duplicated heartbeat it would have the former
epoch without the assignment, which is in the second response, and coordinators do not repeat an assignment to a
heartbeat of the former epoch without topics ("epoch 3, null"; nor does Apache Kafka). Tests of both actors show that a
lost response loses no assignment: `consumer/test_membership`, `coordinator/group/test_heartbeat`.
"""

Rule = Callable[[Frame], Fault | None]


def untouched(frame: Frame) -> Fault | None:
    """The rule without faults."""
    del frame
    return None


class Plan:
    """A random rule: a frame has one of `faults` with probability `rate`.

    UNREPEATED requests are not sent twice.
    """

    def __init__(self, rng: random.Random, rate: float, faults: Sequence[Fault] = tuple(Fault)) -> None:
        self._rng = rng
        self._rate = rate
        self._faults = faults

    def __call__(self, frame: Frame) -> Fault | None:
        if self._rng.random() >= self._rate:
            return None
        fault = self._rng.choice(self._faults)
        return None if fault is Fault.DOUBLE and frame in UNREPEATED else fault


class Pair:
    """A client's connection and its connection to the broker."""

    def __init__(self, client: asyncio.StreamWriter, broker: asyncio.StreamWriter) -> None:
        self._writers = (client, broker)
        self.requests: dict[int, str] = {}
        """API names of requests by correlation id, because responses do not have them."""

    def close(self) -> None:
        for writer in self._writers:
            writer.close()


class Proxy:
    """Listens for `upstreams` (broker id: address) until `close()`; `rule` can be replaced at any time."""

    def __init__(self, upstreams: Mapping[int, Address], rule: Rule = untouched, seed: int = 0) -> None:
        self.rule = rule
        self.injected: Counter[Fault] = Counter()
        self.frames = 0
        self.addresses: dict[int, Address] = {}
        self._rng = random.Random(seed)
        self._pairs: set[Pair] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._run(self._open(upstreams))

    @classmethod
    def before(cls, cluster: Cluster, rule: Rule = untouched, seed: int = 0) -> Self:
        """A proxy for a served cluster, whose brokers advertise its addresses from now on."""
        brokers = cluster.image.brokers.values()
        made = cls({broker.broker_id: (broker.host, broker.port) for broker in brokers}, rule, seed)
        cluster.readdress(made.addresses)
        return made

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.addresses.values())

    def cut(self) -> None:
        """Close all current connections."""
        self._run(self._cut())

    def close(self) -> None:
        self._run(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ---- in the proxy's thread ---------------------------------------------------------------------------------------

    def _run(self, doing: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(doing, self._loop).result()

    async def _open(self, upstreams: Mapping[int, Address]) -> None:
        for broker_id, upstream in upstreams.items():
            server = await asyncio.start_server(self._acceptor(upstream), HOST, 0)
            self._servers.append(server)
            self.addresses[broker_id] = (HOST, server.sockets[0].getsockname()[1])

    async def _cut(self) -> None:
        for pair in self._pairs:
            pair.close()

    async def _shut(self) -> None:
        for server in self._servers:
            server.close()
        await self._cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _acceptor(self, upstream: Address) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._forward(reader, writer, upstream))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return accept

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: Address) -> None:
        """Forward both directions of a connection until both have ended or one has closed it."""
        try:
            broker_reader, broker_writer = await asyncio.open_connection(*upstream)
        except OSError:  # the broker is down
            writer.close()
            return
        pair = Pair(writer, broker_writer)
        self._pairs.add(pair)
        try:
            await asyncio.gather(
                self._pump(pair, reader, broker_writer, is_request=True),
                self._pump(pair, broker_reader, writer, is_request=False),
            )
        finally:
            pair.close()
            self._pairs.discard(pair)

    async def _pump(
        self, pair: Pair, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_request: bool
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            goes_on = True
            while goes_on:
                data = await reader.readexactly(4)
                data += await reader.readexactly(*struct.unpack(">i", data))
                frame = self._frame(pair, data, is_request)
                self.frames += 1
                fault = self.rule(frame)
                if fault is None:
                    writer.write(data)
                    await writer.drain()
                else:
                    self.injected[fault] += 1
                    goes_on = await self._inject(fault, data, writer)
                if fault is Fault.HALF_CLOSE:
                    return  # the other direction continues
        pair.close()

    @staticmethod
    def _frame(pair: Pair, data: bytes, is_request: bool) -> Frame:
        if not is_request:
            (correlation_id,) = struct.unpack_from(">i", data, 4)
            return Frame(pair.requests.get(correlation_id, RESPONSE_OF_UNKNOWN), is_request)
        key, _, correlation_id = struct.unpack_from(">hhi", data, 4)
        pair.requests[correlation_id] = NAMES[key]
        return Frame(NAMES[key], is_request)

    async def _inject(self, fault: Fault, data: bytes, writer: asyncio.StreamWriter) -> bool:
        """Send a frame with a fault; False if no later frame may follow."""
        match fault:
            case Fault.CUT:
                writer.write(data[: self._rng.randrange(1, len(data))])
            case Fault.DELAY:
                await asyncio.sleep(self._rng.uniform(0.01, 0.3))
                writer.write(data)
            case Fault.DOUBLE:
                writer.write(data + data)
            case Fault.PIECES:
                step = max(1, len(data) // 10)
                for at in range(0, len(data), step):
                    writer.write(data[at : at + step])
                    await asyncio.sleep(0.001)
            case Fault.HALF_CLOSE:
                writer.write(data)
                writer.write_eof()
        await writer.drain()
        return fault not in (Fault.DROP, Fault.CUT)

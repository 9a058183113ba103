"""A TCP proxy that knows Kafka's frames and does them harm: between real clients and a served cluster.

A rule looks at each frame and names a fault, or None. Brokers advertise the proxy's addresses, so that every connection
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
ANSWER_OF_UNKNOWN = "?"


class Fault(StrEnum):
    """What can become of a frame."""

    DROP = "drop"  # the connection is closed instead
    CUT = "cut"  # the connection is closed in the middle of the frame
    DELAY = "delay"  # the frame, and all behind it, come late
    DOUBLE = "double"  # the frame comes twice
    SWALLOW = "swallow"  # the frame is lost, the connection goes on
    PIECES = "pieces"  # the frame comes in small pieces
    HALF_CLOSE = "half-close"  # nothing more comes in this direction


class Frame(NamedTuple):
    """A request, or the answer to one."""

    api: str
    is_request: bool


UNREPEATED = {Frame("InitProducerId", True), Frame("ShareGroupHeartbeat", True)}
"""Requests that are not doubled, because no network doubles them for a client that has the first answer.

TCP doubles no frame: what comes to a broker twice is a client's retry, after an answer that was lost. Then a client
takes the second producer id, and a member names its topics, to which a coordinator answers with the whole assignment.
A client that has the first answer does neither. After a doubled heartbeat it would be at the former epoch without
knowing: the assignment is in the second answer, which it does not wait for, and coordinators repeat none to a heartbeat
of the former epoch without topics ("epoch 3, null"; Apache Kafka's neither). That a lost answer costs no assignment is
tested at both actors: `consumer/test_membership`, `coordinator/group/test_heartbeat`.
"""

Rule = Callable[[Frame], Fault | None]


def untouched(frame: Frame) -> Fault | None:
    """The rule that lets every frame pass."""
    del frame
    return None


class Plan:
    """A rule by chance: one frame of `1 / rate` suffers one of `faults`.

    UNREPEATED requests are not doubled.
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
    """One client's connection and the one to the broker that belongs to it."""

    def __init__(self, client: asyncio.StreamWriter, broker: asyncio.StreamWriter) -> None:
        self._writers = (client, broker)
        self.asked: dict[int, str] = {}
        """The names of requests by correlation id: answers do not say what they are."""

    def close(self) -> None:
        for writer in self._writers:
            writer.close()


class Proxy:
    """Stands before `upstreams` (broker id: address) until `close()`; `rule` may be replaced at any time."""

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
        """Before a cluster that is served: its brokers advertise the proxy from now on."""
        brokers = cluster.image.brokers.values()
        made = cls({broker.broker_id: (broker.host, broker.port) for broker in brokers}, rule, seed)
        cluster.readdress(made.addresses)
        return made

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.addresses.values())

    def cut(self) -> None:
        """Close all connections that there are."""
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
            server = await asyncio.start_server(self._door(upstream), HOST, 0)
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

    def _door(self, upstream: Address) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._serve(reader, writer, upstream))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return enter

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: Address) -> None:
        """Both directions of a connection, until both have ended or one of them has closed it."""
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
                    goes_on = await self._harm(fault, data, writer)
                if fault is Fault.HALF_CLOSE:
                    return  # the other direction goes on
        pair.close()

    @staticmethod
    def _frame(pair: Pair, data: bytes, is_request: bool) -> Frame:
        if not is_request:
            (correlation_id,) = struct.unpack_from(">i", data, 4)
            return Frame(pair.asked.get(correlation_id, ANSWER_OF_UNKNOWN), is_request)
        key, _, correlation_id = struct.unpack_from(">hhi", data, 4)
        pair.asked[correlation_id] = NAMES[key]
        return Frame(NAMES[key], is_request)

    async def _harm(self, fault: Fault, data: bytes, writer: asyncio.StreamWriter) -> bool:
        """Let a frame suffer a fault; False where nothing more may follow it."""
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

"""How an actor speaks with the world: it is handed messages and returns effects. It does no I/O (as in h11).

    effects = actor.handle(message, now_ms)

`handle` is the only way in. Time is an argument, randomness a `random.Random` given at construction. The broker
carries the effects out and hands the results back as further messages, in order, never from inside `handle`.
After each `handle` the broker reads `actor.wake_at_ms`: the time at which the actor wants a `Tick` (None: never); an
early or spurious `Tick` is harmless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from shareq.model.errors import Errors
from shareq.model.events import Event
from shareq.model.ids import TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request, Response
from shareq.model.records import NO_PRODUCER_ID, AbortedTransaction, CoordinatorRecord, RecordBatch

NEWEST_VERSION = 32767


class ClientContext(NamedTuple):
    """Who sent a request. A connection that closes takes its share sessions with it.

    `api_version`: in which version the request came over the wire, where the answer depends on it; in process the
    newest is spoken.
    """

    client_id: str = ""
    client_host: str = "/127.0.0.1"
    connection_id: int = -1
    api_version: int = NEWEST_VERSION


IN_PROCESS = ClientContext()


# ---- messages: what an actor is handed -------------------------------------------------------------------------------


class Incoming(NamedTuple):
    """A request to answer with one `Respond` of the same id (now or later)."""

    id: int
    request: Request
    client: ClientContext = IN_PROCESS


class Answer(NamedTuple):
    """What became of a `Call` or `Persist` of this id. Without a response `error` says why: NETWORK_EXCEPTION when the
    connection broke or the node is dead, REQUEST_TIMED_OUT when the broker gave up waiting, UNSUPPORTED_VERSION when
    the broker does not know such a request; `reason` says it in words, where there is more to say."""

    id: int
    response: Response | None
    error: Errors = Errors.NONE
    reason: str = ""


class LogRead(NamedTuple):
    """The outcome of one `ReadLog`. `batches` are whole record batches, the first one holding the asked offset.

    With OFFSET_OUT_OF_RANGE the offsets still tell where the log stands. `aborted` is () for read_uncommitted.
    """

    id: int
    error: Errors
    batches: tuple[RecordBatch, ...] = ()
    high_watermark: int = -1
    log_start_offset: int = -1
    last_stable_offset: int = -1
    aborted: tuple[AbortedTransaction, ...] = ()


class OffsetFound(NamedTuple):
    """The outcome of one `FindOffset`; -1 where there is none."""

    id: int
    error: Errors
    offset: int = -1


class Appended(NamedTuple):
    """The outcome of one `AppendRecords`: committed (high watermark passed), or failed and not in the log."""

    id: int
    error: Errors
    base_offset: int = -1


class EndMarker(NamedTuple):
    """A marker in a coordinator's own log: the producer's transaction is over."""

    offset: int
    producer_id: int
    committed: bool


class RecordsRead(NamedTuple):
    """A chunk of a coordinator's own log: (offset, key, value) each. `done`: the log holds no more.

    Records of transactions are named by offset in `producer_ids`; `markers` are in order of offset, too.
    """

    id: int
    error: Errors
    records: Sequence[tuple[int, bytes, bytes | None]] = ()
    next_offset: int = 0
    done: bool = False
    producer_ids: Mapping[int, int] = MappingProxyType({})
    markers: Sequence[EndMarker] = ()


class RecordsDeleted(NamedTuple):
    """The outcome of one `DeleteRecordsBefore`."""

    id: int
    error: Errors


class ImageChanged(NamedTuple):
    """The cluster's metadata, whole. The first message that every broker-side actor gets."""

    image: ClusterImage


class ShardElected(NamedTuple):
    """This broker now leads `partition` of the coordinator's topic, at `leader_epoch`: load it, then serve it."""

    partition: int
    leader_epoch: int


class ShardResigned(NamedTuple):
    """This broker no longer leads `partition` of the coordinator's topic."""

    partition: int


class MarkerWritten(NamedTuple):
    """A transaction has ended in `partition` of the coordinator's own topic, which this broker leads."""

    partition: int
    producer_id: int
    committed: bool


class LogGrew(NamedTuple):
    """Records can be read that could not before: the high watermark or the last stable offset moved."""

    topic_partition: TopicPartition


class ConnectionClosed(NamedTuple):
    connection_id: int


class Tick(NamedTuple):
    """Time has come to what the actor asked for with `wake_at_ms`."""


Message = (
    Incoming
    | Answer
    | LogRead
    | OffsetFound
    | Appended
    | RecordsRead
    | RecordsDeleted
    | ImageChanged
    | ShardElected
    | ShardResigned
    | MarkerWritten
    | LogGrew
    | ConnectionClosed
    | Tick
)


# ---- effects: what an actor asks for ---------------------------------------------------------------------------------


class Respond(NamedTuple):
    """Answer the `Incoming` of this id."""

    id: int
    response: Response


ANY_NODE = -1


class Call(NamedTuple):
    """Send `request` to broker `node` (ANY_NODE: whichever is alive); comes back as `Answer` with this id."""

    id: int
    node: int
    request: Request
    timeout_ms: int = 30000


class Persist(NamedTuple):
    """Hand a share-state request (83-87, one group) to this broker's persister; comes back as `Answer` with this id."""

    id: int
    request: Request


MAX_OFFSET = (1 << 63) - 1


class ReadLog(NamedTuple):
    """Read record batches of a led partition from `offset`, at most `max_bytes` (the first batch always comes whole);
    comes back as `LogRead`. `end_offset`: batches that begin there or above are of no use, but for the first: it shows
    how far the log is empty."""

    id: int
    topic_partition: TopicPartition
    offset: int
    max_bytes: int
    isolation_level: int = 0
    end_offset: int = MAX_OFFSET


class FindOffset(NamedTuple):
    """Look an offset up by timestamp (-1 high watermark, -2 log start, >= 0 first record not older); `OffsetFound`."""

    id: int
    topic_partition: TopicPartition
    timestamp: int


class AppendRecords(NamedTuple):
    """Append records atomically to `partition` of the coordinator's own topic; comes back as `Appended`.

    With a producer id they belong to that producer's transaction.
    """

    id: int
    topic_partition: TopicPartition
    records: tuple[CoordinatorRecord, ...]
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1


class ReadRecords(NamedTuple):
    """Read a chunk of the coordinator's own log from `offset`; comes back as `RecordsRead`."""

    id: int
    topic_partition: TopicPartition
    offset: int


class DeleteRecordsBefore(NamedTuple):
    """Prune the coordinator's own log: drop what lies before `offset`; comes back as `RecordsDeleted`."""

    id: int
    topic_partition: TopicPartition
    offset: int


class CreateInternalTopic(NamedTuple):
    """Ask the controller for an internal topic; its appearance is seen in a later `ImageChanged`."""

    topic: str


class Admit(NamedTuple):
    """Let a request on to whoever serves it; `verdicts` refuse some of the partitions that it names."""

    incoming: Incoming
    verdicts: Mapping[TopicPartition, Errors] = MappingProxyType({})


class MarkerAppended(NamedTuple):
    """Tell everybody on this broker that a transaction has ended in a partition, by the marker at `offset`."""

    topic_partition: TopicPartition
    offset: int
    producer_id: int
    committed: bool


Effect = (
    Respond
    | Call
    | Persist
    | ReadLog
    | FindOffset
    | AppendRecords
    | ReadRecords
    | DeleteRecordsBefore
    | CreateInternalTopic
    | Admit
    | MarkerAppended
    | Event
)
"""Events are effects too: the broker puts them into the journal. Actors built with `traced=False` make none."""


class Actor(Protocol):
    """A state machine without I/O."""

    @property
    def wake_at_ms(self) -> int | None: ...

    def handle(self, message: Message, now_ms: int) -> list[Effect]: ...

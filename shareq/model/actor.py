"""The interface of an actor: it handles messages and returns effects. It does no I/O (as in h11).

    effects = actor.handle(message, now_ms)

`handle` is the only entry point. Time is an argument; randomness is a `random.Random` passed at construction. The
broker performs the effects and passes their results to `handle` as further messages, in order, never from inside
`handle`. After each `handle` the broker reads `actor.wake_at_ms`: the time at which the actor needs a `Tick` (None:
never). An early or spurious `Tick` has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Union

from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey, TopicPartition
from shareq.model.log_looks import LogSeen, LookAtLog
from shareq.model.messages.base import Request, Response
from shareq.model.records import NO_PRODUCER_ID, AbortedTransaction, CoordinatorRecord, KeyRun, RecordBatch

if TYPE_CHECKING:  # clients start without the events of brokers, and without their image
    from shareq.model.events import Event
    from shareq.model.image import ClusterImage

NEWEST_VERSION = 32767

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a sender that has not authenticated (Kafka: KafkaPrincipal.ANONYMOUS)."""

BROKER = "Broker:cluster"
"""The principal of the brokers among each other, which may do everything. No client has a principal of this type."""


class ClientContext(NamedTuple):
    """The sender of a request. The share sessions of a connection end when it closes.

    `api_version`: the version of the request on the wire; some answers depend on it. In process it is the newest.
    `principal`: the authenticated sender, as type and name.
    """

    client_id: str = ""
    client_host: str = "/127.0.0.1"
    connection_id: int = -1
    api_version: int = NEWEST_VERSION
    principal: str = ANONYMOUS


IN_PROCESS = ClientContext()


# ---- messages: the input of an actor ---------------------------------------------------------------------------------


class Incoming(NamedTuple):
    """A request to answer with one `Respond` of the same id (now or later)."""

    id: int
    request: Request
    client: ClientContext = IN_PROCESS


class Answer(NamedTuple):
    """The result of the `Call` or `Persist` of this id. If `response` is None, `error` is the cause: NETWORK_EXCEPTION
    when the connection broke or the node is dead, REQUEST_TIMED_OUT when the response did not arrive in time,
    UNSUPPORTED_VERSION when the broker does not support the request; `reason` is a further detail, or empty."""

    id: int
    response: Response | None
    error: Errors = Errors.NONE
    reason: str = ""


class LogRead(NamedTuple):
    """The result of one `ReadLog`. `batches` are whole record batches; the first one holds the requested offset.

    The offsets of the log are valid also with OFFSET_OUT_OF_RANGE. `aborted` is () for read_uncommitted.
    """

    id: int
    error: Errors
    batches: tuple[RecordBatch, ...] = ()
    high_watermark: int = -1
    log_start_offset: int = -1
    last_stable_offset: int = -1
    aborted: tuple[AbortedTransaction, ...] = ()
    keys: tuple[KeyRun, ...] = ()


class OffsetFound(NamedTuple):
    """The result of one `FindOffset`; -1 if no offset matches."""

    id: int
    error: Errors
    offset: int = -1


class Appended(NamedTuple):
    """The result of one `AppendRecords`: committed (below the high watermark), or failed and not in the log."""

    id: int
    error: Errors
    base_offset: int = -1


class EndMarker(NamedTuple):
    """A marker in a coordinator's own log: it ends the producer's transaction."""

    offset: int
    producer_id: int
    committed: bool


class RecordsRead(NamedTuple):
    """A chunk of a coordinator's own log: a list of (offset, key, value). `done`: this chunk is the last one.

    `producer_ids` maps the offsets of transactional records to producer ids; `markers` are in order of offset.
    """

    id: int
    error: Errors
    records: Sequence[tuple[int, bytes, bytes | None]] = ()
    next_offset: int = 0
    done: bool = False
    producer_ids: Mapping[int, int] = MappingProxyType({})
    markers: Sequence[EndMarker] = ()


class RecordsDeleted(NamedTuple):
    """The result of one `DeleteRecordsBefore`."""

    id: int
    error: Errors


class ImageChanged(NamedTuple):
    """The complete metadata of the cluster. The first message of every broker-side actor."""

    image: ClusterImage


class ShardElected(NamedTuple):
    """This broker now leads `partition` of the coordinator's topic, at `leader_epoch`: load it, then serve it."""

    partition: int
    leader_epoch: int


class ShardResigned(NamedTuple):
    """This broker no longer leads `partition` of the coordinator's topic."""

    partition: int


class MarkerWritten(NamedTuple):
    """A transaction has ended in `partition` of the coordinator's own topic; this broker leads the partition."""

    partition: int
    producer_id: int
    committed: bool


class DeadLettersEnded(NamedTuple):
    """The way of these ranges [first, end) to the dead-letter queue has ended: they are in it, or need not be.

    `id` is that of their `SendDeadLetters`. `stopped`: the result of `StopDeadLetters`; no more ranges follow.
    `fenced`: a later leader writes the others; this one has to stop them."""

    id: int
    ranges: tuple[tuple[int, int], ...]
    stopped: bool = False
    fenced: bool = False


class DeadLetter(NamedTuple):
    """Records [first, end) for the dead-letter queue: rejected, expired (an experiment), or else delivered too
    often."""

    first: int
    end: int
    delivery_count: int
    rejected: bool
    expired: bool = False


class SendDeadLetters(NamedTuple):
    """Send records of a share-partition to the dead-letter queue of its group. `DeadLettersEnded` messages with this id
    contain each of them once. The broker's writer gets this effect as a message.

    All letters of a share-partition in memory have one id, and reach the queue in the order in which they are sent."""

    id: int
    key: SharePartitionKey
    topic: str
    leader_epoch: int
    letters: tuple[DeadLetter, ...]


class StopDeadLetters(NamedTuple):
    """Send no further letters of this id. The result is a `DeadLettersEnded` with `stopped`, when no request that has
    some is under way any more."""

    id: int


class LogGrew(NamedTuple):
    """The high watermark or the last stable offset has moved, so more records can be read."""

    topic_partition: TopicPartition


class CleanByGroups(NamedTuple):
    """It is time to delete what all groups have finished (an experiment)."""


class ConnectionClosed(NamedTuple):
    connection_id: int


class Tick(NamedTuple):
    """The clock has reached the actor's `wake_at_ms`."""


Message = (
    Incoming
    | Answer
    | LogRead
    | OffsetFound
    | Appended
    | RecordsRead
    | RecordsDeleted
    | LogSeen
    | ImageChanged
    | ShardElected
    | ShardResigned
    | MarkerWritten
    | LogGrew
    | CleanByGroups
    | ConnectionClosed
    | Tick
    | SendDeadLetters
    | StopDeadLetters
    | DeadLettersEnded
)


# ---- effects: the output of an actor ---------------------------------------------------------------------------------


class Respond(NamedTuple):
    """Answer the `Incoming` of this id."""

    id: int
    response: Response


ANY_NODE = -1


class Call(NamedTuple):
    """Send `request` to broker `node` (ANY_NODE: any live broker). The result is an `Answer` with this id.

    `version`: over TCP, the version of the request if the broker supports it, else the broker's highest one below.
    """

    id: int
    node: int
    request: Request
    timeout_ms: int = 30000
    version: int = NEWEST_VERSION


class Persist(NamedTuple):
    """Pass a share-state request (83-87, one group) to this broker's persister; the `Answer` with this id follows."""

    id: int
    request: Request


MAX_OFFSET = (1 << 63) - 1


class ReadLog(NamedTuple):
    """Read record batches of a led partition from `offset`, at most `max_bytes` (the first batch is always complete).
    The result is a `LogRead`. `end_offset`: the read may omit batches that begin there or above, except the first one,
    which marks the end of a gap in the log."""

    id: int
    topic_partition: TopicPartition
    offset: int
    max_bytes: int
    isolation_level: int = 0
    end_offset: int = MAX_OFFSET
    keys: bool = False
    """The result has the keys of the records, too."""


class FindOffset(NamedTuple):
    """Look an offset up by timestamp (-1 high watermark, -2 log start, >= 0 first record not older); `OffsetFound`."""

    id: int
    topic_partition: TopicPartition
    timestamp: int


class AppendRecords(NamedTuple):
    """Append records atomically to `partition` of the coordinator's own topic. The result is an `Appended`.

    With a producer id they belong to that producer's transaction.
    """

    id: int
    topic_partition: TopicPartition
    records: tuple[CoordinatorRecord, ...]
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1


class ReadRecords(NamedTuple):
    """Read a chunk of the coordinator's own log from `offset`. The result is a `RecordsRead`."""

    id: int
    topic_partition: TopicPartition
    offset: int


class DeleteRecordsBefore(NamedTuple):
    """Prune the coordinator's own log: delete the records before `offset`. The result is a `RecordsDeleted`."""

    id: int
    topic_partition: TopicPartition
    offset: int


class CreateInternalTopic(NamedTuple):
    """Request that the controller creates an internal topic. A later `ImageChanged` contains it."""

    topic: str


class Admit(NamedTuple):
    """Forward a request to its service; `verdicts` are the errors of the partitions that are refused."""

    incoming: Incoming
    verdicts: Mapping[TopicPartition, Errors] = MappingProxyType({})


class MarkerAppended(NamedTuple):
    """Notify every actor of this broker that the marker at `offset` has ended a transaction in a partition."""

    topic_partition: TopicPartition
    offset: int
    producer_id: int
    committed: bool


class Failed(NamedTuple):
    """One of several independent operations has raised; the others are done. The broker reports the error."""

    error: Exception


Effect = Union[
    Respond,
    Failed,
    Call,
    Persist,
    ReadLog,
    FindOffset,
    AppendRecords,
    ReadRecords,
    LookAtLog,
    DeleteRecordsBefore,
    CreateInternalTopic,
    Admit,
    MarkerAppended,
    SendDeadLetters,
    StopDeadLetters,
    DeadLettersEnded,
    "Event",  # a name alone, which the operator | does not take
]
"""Events are effects too: the broker appends them to the journal. Actors built with `traced=False` return none."""


def isolated(effects: list[Effect], operation: Callable[..., object], *args: Any) -> None:
    """Run one of several independent operations; an exception becomes an effect, so that the others run."""
    try:
        operation(*args)
    except Exception as error:
        effects.append(Failed(error))


class Actor(Protocol):
    """A state machine without I/O."""

    @property
    def wake_at_ms(self) -> int | None: ...

    def handle(self, message: Message, now_ms: int) -> list[Effect]: ...

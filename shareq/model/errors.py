"""Kafka's error codes as values, and the exceptions that a client application sees.

A broker never raises across a request: it answers with an `Errors` value, which has a wire code and a `retriable` flag.
Exceptions report misuse of the API to the application. Source: Kafka's protocol guide; confluent-kafka for the client's
errors.
"""

from __future__ import annotations

import builtins
from enum import IntEnum
from typing import ClassVar, Self


class Errors(IntEnum):
    """A Kafka error code: `int(error)` is the code on the wire, `error.name` its name. NONE is falsy.

    Codes below -1 are librdkafka's, for what a client finds by itself; they are not on the wire.
    """

    _SSL = -181
    _AUTHENTICATION = -169

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133

    @property
    def retriable(self) -> bool:
        """True if the same request, unchanged, may succeed later."""
        return self in _RETRIABLE


_RETRIABLE = frozenset(
    {
        Errors.CORRUPT_MESSAGE,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.REQUEST_TIMED_OUT,
        Errors.REPLICA_NOT_AVAILABLE,
        Errors.NETWORK_EXCEPTION,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Errors.REBALANCE_IN_PROGRESS,
        Errors.NOT_CONTROLLER,
        Errors.CONCURRENT_TRANSACTIONS,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.FETCH_SESSION_ID_NOT_FOUND,
        Errors.INVALID_FETCH_SESSION_EPOCH,
        Errors.LISTENER_NOT_FOUND,
        Errors.FENCED_LEADER_EPOCH,
        Errors.UNKNOWN_LEADER_EPOCH,
        Errors.OFFSET_NOT_AVAILABLE,
        Errors.PREFERRED_LEADER_NOT_AVAILABLE,
        Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        Errors.ELECTION_NOT_NEEDED,
        Errors.UNSTABLE_OFFSET_COMMIT,
        Errors.THROTTLING_QUOTA_EXCEEDED,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.INCONSISTENT_TOPIC_ID,
        Errors.FETCH_SESSION_TOPIC_ID_ERROR,
        Errors.SHARE_SESSION_NOT_FOUND,
        Errors.INVALID_SHARE_SESSION_EPOCH,
        Errors.SHARE_SESSION_LIMIT_REACHED,
    }
)


class KafkaError:
    """An error with the interface of confluent-kafka's: `code()`, `name()`, `str()`, `retriable()`, `fatal()`.

    Codes below -1 are local to the client (`_STATE`, `_INVALID_ARG`, ...), as in librdkafka; the others are Kafka's.
    """

    _BAD_MSG = -199
    _BAD_COMPRESSION = -198
    _MAX_POLL_EXCEEDED = -147
    _KEY_DESERIALIZATION = -160
    _VALUE_DESERIALIZATION = -159
    _INVALID_ARG = -186
    _TIMED_OUT = -185
    _STATE = -172
    _CONFLICT = -173
    _TRANSPORT = -195
    _UNKNOWN_TOPIC = -188
    _UNKNOWN_PARTITION = -190
    _PURGE_QUEUE = -152
    _PURGE_INFLIGHT = -151
    _MSG_TIMED_OUT = -192
    _FATAL = -150
    _SSL = -181
    _AUTHENTICATION = -169
    _LOCAL_NAMES: ClassVar[dict[int, builtins.str]] = {
        -199: "_BAD_MSG",
        -198: "_BAD_COMPRESSION",
        -147: "_MAX_POLL_EXCEEDED",
        -160: "_KEY_DESERIALIZATION",
        -159: "_VALUE_DESERIALIZATION",
        -186: "_INVALID_ARG",
        -185: "_TIMED_OUT",
        -172: "_STATE",
        -173: "_CONFLICT",
        -195: "_TRANSPORT",
        -188: "_UNKNOWN_TOPIC",
        -190: "_UNKNOWN_PARTITION",
        -152: "_PURGE_QUEUE",
        -151: "_PURGE_INFLIGHT",
        -192: "_MSG_TIMED_OUT",
        -150: "_FATAL",
        -181: "_SSL",
        -169: "_AUTHENTICATION",
    }

    __slots__ = ("_code", "_fatal", "_reason")

    def __init__(self, error: int, reason: builtins.str | None = None, fatal: bool = False) -> None:
        self._code = int(error)
        self._reason = reason
        self._fatal = fatal

    def code(self) -> int:
        """The error code of Kafka's protocol; below -1, a local code of librdkafka."""
        return self._code

    def name(self) -> builtins.str:
        """The name of the code, such as `UNKNOWN_MEMBER_ID`."""
        return self._LOCAL_NAMES.get(self._code) or Errors(self._code).name

    def str(self) -> builtins.str:
        """The reason passed to the constructor, else the name as words."""
        return self._reason or self.name().strip("_").replace("_", " ").capitalize()

    def retriable(self) -> bool:
        """True if the same request can succeed later."""
        return self._code >= -1 and Errors(self._code).retriable

    def fatal(self) -> bool:
        """True if the client cannot be used after this error."""
        return self._fatal

    def __eq__(self, other: object) -> bool:
        if isinstance(other, KafkaError):
            return self._code == other._code
        return isinstance(other, int) and self._code == other

    def __hash__(self) -> int:
        return hash(self._code)

    def __str__(self) -> builtins.str:
        return f"KafkaError{{code={self.name()},val={self._code},str={self.str()!r}}}"

    __repr__ = __str__


class KafkaException(Exception):
    """Raised to the application; `args[0]` is the `KafkaError`."""

    @property
    def error(self) -> KafkaError:
        """The `KafkaError` that was raised."""
        error = self.args[0]
        assert isinstance(error, KafkaError)
        return error


class IllegalStateException(RuntimeError):
    """The call is not allowed in the object's current state (closed, not subscribed, wrong acknowledgement mode,
    ...)."""


class ConcurrentModificationException(RuntimeError):
    """A second thread is inside a client that serves one thread at a time."""


class WakeupException(RuntimeError):
    """`wakeup()` interrupted a blocking call."""


class ClientFailedException(RuntimeError):
    """The client's own code failed with the error in `__cause__`. Every later call of this client raises this, too."""

    @classmethod
    def of(cls, client_id: str, failure: Exception) -> Self:
        """The exception for a client whose actor ended with `failure`."""
        return cls(f"client {client_id!r} failed with an unhandled error: {failure!r}")


class ConfigException(ValueError):
    """A configuration is invalid. The message contains the key, the value and the allowed range."""


def in_words(problem: Exception) -> str:
    """The message of an exception; that of the system begins with the file, in place of the number of its error."""
    if isinstance(problem, OSError) and problem.filename is not None and problem.strerror:
        return f"{problem.filename}: {problem.strerror}"
    return str(problem)

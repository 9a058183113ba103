"""The topics of the backend: one is gone when no broker knows it any more. BEHAVIOUR.md, section 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from shareq.model.actor import Answer
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse


class Client(Protocol):
    """What is needed of `BackendClient`."""

    def call(self, node: int, request: Request, done: Callable[[Answer], object]) -> None: ...


class _Question:
    """To several brokers: which of these topics do they all not know? `denied` gets them."""

    def __init__(
        self, topics: Iterable[TopicId], brokers: Iterable[int], denied: Callable[[frozenset[TopicId]], object]
    ) -> None:
        self._denied = frozenset(topics)
        self._waiting = set(brokers)
        self._report = denied

    def ask(self, client: Client) -> None:
        """Ask each broker."""
        request = MetadataRequest(topics=tuple(MetadataRequest.Topic(topic_id=one) for one in sorted(self._denied)))
        for broker in sorted(self._waiting):
            client.call(broker, request, partial(self._take, broker))

    def _take(self, broker: int, answer: Answer) -> None:
        """A broker that does not answer may know them all."""
        self._waiting.discard(broker)
        topics = answer.response.topics if isinstance(answer.response, MetadataResponse) else ()
        self._denied &= {topic.topic_id for topic in topics if topic.error_code is Errors.UNKNOWN_TOPIC_ID}
        if not self._waiting:
            self._report(self._denied)


class KnownTopics:
    """The topics by name. Brokers follow the metadata at their own pace, so a response may be older than the one before
    it: a topic that it lacks stays until all brokers have been asked for it. Coordinators delete the states of topics
    that are gone, which cannot be undone.

    `gone()` is called when topics turn out to be gone; the next response is shown without them.
    """

    def __init__(self, client: Client, gone: Callable[[], object]) -> None:
        self.by_name: dict[str, MetadataResponse.Topic] = {}
        self._client = client
        self._report = gone
        self._gone: set[TopicId] = set()
        self._asking: set[TopicId] = set()
        self._brokers: set[int] = set()

    def learn(self, response: MetadataResponse) -> None:
        """Take over what a response shows; a topic that has not changed stays the same object."""
        brokers = {broker.node_id for broker in response.brokers}
        asked, self._brokers = brokers | self._brokers, brokers
        shown = {t.name: t for t in response.topics if t.name and not t.error_code and t.topic_id not in self._gone}
        missing = []
        for name, known in self.by_name.items():
            found = shown.get(name)
            if known.topic_id in self._gone:
                continue
            if found is None or found.topic_id != known.topic_id:
                missing.append(known)
            elif len(found.partitions) < len(known.partitions):  # older: partitions are only ever added
                shown[name] = known
            elif found == known:
                shown[name] = known  # the same object: its image needs no comparison
        if len(asked) == 1:
            self._gone.update(topic.topic_id for topic in missing)
        else:
            shown.update((topic.name, topic) for topic in missing if topic.name)
            self._check([topic.topic_id for topic in missing], asked)
        self.by_name = shown

    def ask(self, topics: Iterable[TopicId], denied: Callable[[frozenset[TopicId]], object]) -> None:
        """Ask all brokers for topics by their ids; `denied` gets those that none of them knows."""
        _Question(topics, self._brokers, denied).ask(self._client)

    def _check(self, topics: Iterable[TopicId], brokers: Iterable[int]) -> None:
        new = frozenset(topics) - self._asking
        if new:
            self._asking |= new
            _Question(new, brokers, partial(self._checked, new)).ask(self._client)

    def _checked(self, asked: frozenset[TopicId], denied: frozenset[TopicId]) -> None:
        self._asking -= asked
        if denied:
            self._gone |= denied
            self._report()

"""The panel: the clients that it owns, its controls by name, and the lines of code executed so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from shareq.broker import Cluster
from shareq.model.errors import ConfigException
from shareq.team import Feed, Team
from shareq.trace.analysis.group_history import history_of
from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq.trace.views.member_names import MemberNames, names_of
from shareq_widgets.steering.beginning import lines_of
from shareq_widgets.steering.control import Control
from shareq_widgets.steering.controls import all_but_configs
from shareq_widgets.steering.dynamic_configs import config_controls

IMPORTS = "from shareq import Admin, Cluster\nfrom shareq.team import Feed, Policy, Team"


@used_by_one_thread
class Steering:
    """Steers the share group `group` on `topics` of a cluster in this process.

        steering = Steering(cluster, "crew", ["jobs"])
        steering.do("produce", 20)
        steering.do("add consumer", "accept")
        steering.do("advance", 5000)
        print(steering.program)

    `controls()` lists all controls: the list follows the consumers of the panel and the partitions of the topics, the
    values and the availability of a `Control` follow the cluster. Existing topics only; ConfigException otherwise.
    Consumers that other code has added to the group show as members, and cannot be steered.
    """

    def __init__(self, cluster: Cluster, group: str, topics: Sequence[str]) -> None:
        if not isinstance(group, str) or not group:
            raise ConfigException(f"group={group!r}: must be the name of a group")
        known = [topic for topic in cluster.image.topics if not topic.startswith("__")]
        if isinstance(topics, str) or not topics:
            raise ConfigException(f"topics={topics!r}: must be a list of {', '.join(known) or 'existing topics'}")
        if unknown := [topic for topic in topics if topic not in known]:
            raise ConfigException(
                f"topic={unknown[0]!r}: the cluster has no such topic, it has {', '.join(map(repr, known)) or 'none'}"
            )
        self.cluster = cluster
        self.group = group
        self.topics = tuple(topics)
        self._beginning = lines_of(cluster)
        self.setup = self._setup()
        self.log: list[str] = []
        """The lines executed so far, oldest first."""
        self.namespace: dict[str, Any] = {}
        exec(IMPORTS, self.namespace)
        self.namespace["cluster"] = cluster
        exec(self.setup, self.namespace)
        self.admin = self.namespace["admin"]
        self.team: Team = self.namespace["team"]
        one = len(self.topics) == 1
        self.feeds: dict[str, Feed] = {self.topics[0]: self.namespace["feed"]} if one else self.namespace["feeds"]
        self.history = history_of(cluster.journal, group)

    def _setup(self) -> str:
        names = list(self.topics)
        feeds = (
            f"feed = Feed(cluster, {names[0]!r})"
            if len(names) == 1
            else f"feeds = {{topic: Feed(cluster, topic) for topic in {names!r}}}"
        )
        return "\n".join(
            [
                'admin = Admin({"bootstrap.servers": cluster.bootstrap_servers})',
                f"team = Team(cluster, {self.group!r}, {names!r})",
                feeds,
            ]
        )

    @property
    def program(self) -> str:
        """The code of the session so far, as a program of its own: it makes a cluster like this one at the beginning of
        the panel, and does what the panel has done. What other code has done with the cluster is not in it."""
        return "\n".join([IMPORTS, "", *self._beginning, self.setup, "", *self.log])

    # ---- controls ----------------------------------------------------------------------------------------------------

    def controls(self, area: str | None = None) -> list[Control]:
        """All controls, or those of one area, in order of display."""
        return [control for control in self._all() if area in (None, control.area)]

    def __getitem__(self, name: str) -> Control:
        """The control of this name. KeyError with the similar names for an unknown one."""
        for control in self._all():
            if control.name == name:
                return control
        names = [control.name for control in self._all()]
        first = name.split(" ", maxsplit=1)[0]
        similar = [one for one in names if one.startswith(first)] or get_close_matches(name, names)
        raise KeyError(f"{name!r}: must be one of {', '.join(similar) or 'the names in controls()'}")

    def do(self, name: str, value: Any = None) -> str:
        """Use a control; returns the executed line. Raises as `Control.do`."""
        return self[name].do(value)

    def _all(self) -> Iterator[Control]:
        yield from all_but_configs(self)
        yield from config_controls(self, self.cluster, self.group, self.topics)

    # ---- what the controls use ---------------------------------------------------------------------------------------

    def execute(self, line: str) -> None:
        """Execute a line with the names of `setup`, and keep it. A line that raises is not kept."""
        exec(line, self.namespace)
        self.log.append(line)

    def feed_name(self, topic: str) -> str:
        """The expression for the feed of a topic."""
        return "feed" if len(self.topics) == 1 else f"feeds[{topic!r}]"

    def members(self) -> list[str]:
        """The client ids of the group's members, as the coordinator knows them."""
        self.history.refresh()
        members = self.history.group(self.history.total).members.values()
        return sorted(member.client_id or member.member_id for member in members)

    def joining(self, until: int | None = None) -> list[str]:
        """The consumers of the panel that have not joined the group: their first heartbeat is an event to come.

        `until`: at this moment of the journal; None: now.
        """
        joined = self.seen_members().joined(self.cluster.journal.total if until is None else until)
        return [worker.name for worker in self.team if worker.at_work and worker.consumer.member_id() not in joined]

    def seen_members(self) -> MemberNames:
        """The names and letters of all members that the group has had, as the views show them."""
        return names_of(self.cluster.journal, self.group)

    def close(self) -> None:
        """Close the clients. The cluster stays open; one that is closed already has ended them."""
        if self.cluster.closed:
            return
        self.team.close()
        for feed in self.feeds.values():
            feed.close()
        self.admin.close()

    def __repr__(self) -> str:
        return (
            f"Steering({self.cluster.bootstrap_servers}, {self.group!r}, {list(self.topics)!r}, {len(self.log)} lines)"
        )

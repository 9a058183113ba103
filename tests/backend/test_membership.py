"""Membership and lease of a process on virtual time, against the rules of a classic group. BEHAVIOUR.md, section 6."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from random import Random
from types import MappingProxyType

import pytest

from shareq.broker.backend.identity import Identity, has_ended, own_identity, state_and_start
from shareq.broker.backend.lease import MARGIN_MS, REBALANCE_MS, SESSION_MS, Lease
from shareq.broker.backend.membership import HEARTBEAT_MS
from shareq.broker.loop import VirtualLoop
from tests.backend.classic_group import ClassicGroup, Participant
from tests.polling import eventually

PARTITIONS = [("orders", index) for index in range(7)] + [("payments", 0), ("returns", 0)]
NO_CONFIGS: Mapping[str, str] = MappingProxyType({})
ADDRESSES = {0: ("127.0.0.1", 9192)}


class Fleets:
    """A group, and its processes. At each event, no partition has two leaders."""

    def __init__(self, seed: int = 1, lost_messages: float = 0) -> None:
        self._lost_messages = lost_messages
        self.loop = VirtualLoop()
        self.rng = Random(seed)
        self.group = ClassicGroup(self.loop)
        self.members: list[Participant] = []
        self.terms: list[int] = []
        self._expire()

    def _expire(self) -> None:
        self.group.expire()
        self.loop.at(self.loop.time_ms() + 10, self._expire)

    def join(
        self, *, served: bool = True, identity: Identity | None = None, configs: Mapping[str, str] = NO_CONFIGS
    ) -> Participant:
        name = f"process-{len(self.members)}"
        made = Participant(
            self.loop,
            self.group,
            self.rng,
            name,
            self.terms,
            lost_messages=self._lost_messages,
            identity=identity,
            configs=configs,
        )
        self.members.append(made)
        if served:
            made.membership.readdress(ADDRESSES)
        made.membership.start()
        return made

    def leaders(self) -> dict[tuple[str, int], list[Participant]]:
        return {at: [one for one in self.members if one.leads(*at)] for at in PARTITIONS}

    def run(self, ms: float) -> None:
        """Let time pass, and check after each event."""
        end_ms = self.loop.time_ms() + ms
        while self.loop.time_ms() < end_ms:
            self.loop.step()
            twice = {at: found for at, found in self.leaders().items() if len(found) > 1}
            assert not twice, f"two leaders: {twice}"

    def all_led(self) -> bool:
        return all(len(found) == 1 for found in self.leaders().values())

    def until_all_led(self, limit_ms: int) -> int:
        """How long it takes until each partition has a leader."""
        started_ms = self.loop.time_ms()
        while not self.all_led():
            assert self.loop.time_ms() - started_ms < limit_ms, "partitions without a leader"
            self.run(1)
        return self.loop.time_ms() - started_ms

    def led_by(self, member: Participant) -> int:
        return sum(member in found for found in self.leaders().values())


@pytest.fixture
def fleets() -> Fleets:
    return Fleets()


# ---- joining and leaving ---------------------------------------------------------------------------------------------


def test_the_first_process_leads_all(fleets: Fleets) -> None:
    first = fleets.join(served=False)
    fleets.until_all_led(1_000)
    assert (first.membership.process.slot, fleets.led_by(first)) == (0, len(PARTITIONS))


def test_processes_share_the_partitions_and_keep_their_slots(fleets: Fleets) -> None:
    members = [fleets.join() for _ in range(3)]
    fleets.run(5_000)
    assert fleets.all_led()
    assert all(fleets.led_by(member) >= 2 for member in members)  # of each three adjacent partitions one
    before = [member.membership.process.slot for member in members]
    members[0].membership.leave()
    fleets.run(5_000)
    assert [member.membership.process.slot for member in members[1:]] == before[1:]
    assert fleets.join().membership.process.slot == -1
    fleets.run(5_000)
    assert sorted(one.membership.process.slot for one in fleets.members[1:]) == [0, 1, 2]


def test_each_process_warns_once_of_another_one_with_other_configurations(
    fleets: Fleets, caplog: pytest.LogCaptureFixture
) -> None:
    for configs in ({"a": "1", "b": "2"}, {"a": "1", "b": "2"}, {"a": "3"}):
        fleets.join(configs=configs)
        fleets.run(5_000)
    expected = [(slot, "a, b") for slot in (0, 1, 2, 2)]  # by the third of the first two, and by these of it
    pattern = re.compile("the process in slot (.) has other configurations: (.*)")
    found = [pattern.fullmatch(message) for message in caplog.messages]
    assert sorted((int(one[1]), one[2]) for one in found if one is not None) == expected
    fleets.members[0].membership.leave()
    fleets.run(5_000)
    assert len(caplog.messages) == len(found)


def test_a_process_that_is_not_served_leads_nothing_beside_one_that_is(fleets: Fleets) -> None:
    alone = fleets.join(served=False)
    fleets.until_all_led(1_000)
    served = fleets.join()
    fleets.run(5_000)
    assert (fleets.led_by(alone), fleets.led_by(served)) == (0, len(PARTITIONS))
    served.membership.leave()
    fleets.run(5_000)
    assert fleets.led_by(alone) == len(PARTITIONS)


def test_the_work_of_a_process_that_leaves_moves_with_the_next_heartbeats(fleets: Fleets) -> None:
    one, other = fleets.join(), fleets.join()
    fleets.run(5_000)
    assert fleets.led_by(one)
    one.membership.leave()
    fleets.until_all_led(HEARTBEAT_MS + 1_000)
    assert fleets.led_by(other) == len(PARTITIONS)


def test_the_work_of_a_killed_process_moves_when_its_session_has_ended(fleets: Fleets) -> None:
    one, other = fleets.join(), fleets.join()
    fleets.run(5_000)
    one.kill()
    fleets.until_all_led(SESSION_MS + HEARTBEAT_MS + 1_000)
    assert fleets.led_by(other) == len(PARTITIONS)


@pytest.fixture
def ended() -> Identity:
    """The identity of a program that has ended."""
    own = own_identity()
    if own is None:
        pytest.skip("this system has no /proc")
    return own._replace(started="1")


def test_a_process_of_this_machine_that_has_ended_is_removed_at_once(fleets: Fleets, ended: Identity) -> None:
    one, other = fleets.join(identity=ended), fleets.join(identity=own_identity())
    one.kill()
    fleets.until_all_led(HEARTBEAT_MS + 1_000)
    assert fleets.led_by(other) == len(PARTITIONS)


@pytest.mark.parametrize("rejoins", [False, True])
def test_the_next_process_does_not_wait_for_the_end_of_a_session(
    fleets: Fleets, ended: Identity, rejoins: bool
) -> None:
    one = fleets.join(served=False, identity=ended)
    fleets.until_all_led(1_000)
    if rejoins:
        one.membership.readdress(ADDRESSES)
        while fleets.group.generation == 1:
            fleets.run(1)
    one.kill()
    other = fleets.join(identity=own_identity())
    fleets.until_all_led(1_000)
    assert fleets.led_by(other) == len(PARTITIONS)


def test_a_program_has_ended_when_it_has_an_exit_code() -> None:
    own = own_identity()
    if own is None:
        pytest.skip("this system has no /proc")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as program:
        other = own._replace(pid=program.pid, started=state_and_start(program.pid)[1])
        assert not has_ended(other, own)
        assert has_ended(other._replace(started="1"), own)  # the id belongs to another program now
        assert not has_ended(other._replace(started="1", machine="another"), own)
        program.send_signal(signal.SIGSTOP)
        eventually(lambda: state_and_start(program.pid)[0], "T")
        assert not has_ended(other, own)
        program.kill()
        eventually(lambda: state_and_start(program.pid)[0], "Z")
        assert has_ended(other, own)
    assert has_ended(other, own)
    assert not has_ended(None, own)


def test_terms_grow(fleets: Fleets) -> None:
    found = []
    for _ in range(3):
        member = fleets.join()
        fleets.run(5_000)
        assert member.fleet is not None
        found.append(member.fleet.term)
    assert found == sorted(set(found))


def test_terms_grow_although_those_that_are_drawn_begin_again(fleets: Fleets) -> None:
    """BEHAVIOUR.md, 6.7: the topic of the terms was deleted."""
    first = fleets.join()
    for _ in range(4):
        fleets.join().membership.leave()
        fleets.run(3_000)
    assert first.fleet is not None
    before = first.fleet.term
    fleets.terms.clear()
    second = fleets.join()
    fleets.run(5_000)
    assert second.fleet is not None
    assert before < second.fleet.term == first.fleet.term


def test_a_term_that_states_require_is_reached_by_all_processes(fleets: Fleets) -> None:
    """BEHAVIOUR.md, 6.7: without another change, and once."""
    members = [fleets.join() for _ in range(3)]
    fleets.run(5_000)
    members[1].membership.require_term(1_000)
    fleets.until_all_led(1_000)
    fleets.run(5_000)
    assert [one.fleet.term for one in members if one.fleet is not None] == [1_000] * 3
    members[2].membership.require_term(900)
    fleets.run(5_000)
    assert [one.fleet.term for one in members if one.fleet is not None] == [1_000] * 3


# ---- pauses ----------------------------------------------------------------------------------------------------------


def test_a_process_that_was_paused_for_long_begins_anew(fleets: Fleets) -> None:
    paused, other = fleets.join(), fleets.join()
    fleets.run(5_000)
    called: list[str] = []
    paused.pause()
    fleets.run(60_000)
    assert fleets.led_by(other) == len(PARTITIONS)
    paused.resume()
    paused.membership.when_held(lambda: called.append("a zombie's answer"))
    assert not called
    fleets.run(5_000)
    assert (called, paused.losses) == ([], 1)
    assert fleets.all_led()
    assert fleets.led_by(paused)


def test_a_process_that_the_group_has_kept_goes_on_as_before(fleets: Fleets) -> None:
    """As when the backend was away: sessions begin anew there."""
    only = fleets.join()
    fleets.until_all_led(1_000)
    fleet, called = only.fleet, list[str]()
    only.membership.lease.end()
    only.membership.when_held(lambda: called.append("a"))
    only.membership.when_held(lambda: called.append("b"))
    assert not called
    fleets.run(200)
    assert called == ["a", "b"]
    assert (only.losses, only.fleet) == (0, fleet)


def test_what_waits_for_the_first_assignment_goes_on_after_a_second_removal(fleets: Fleets) -> None:
    """The group forgets a new member that does not join in time. What has waited since then is not of a former fleet,
    and no connection breaks: it would have no answer."""
    paused, _ = fleets.join(), fleets.join()
    fleets.run(5_000)
    paused.pause()
    fleets.run(60_000)
    paused.resume()
    assert fleets.loop.wait(lambda: paused.losses == 1, 5_000)
    called: list[str] = []
    paused.membership.when_held(lambda: called.append("a"))
    assert fleets.loop.wait(lambda: bool(fleets.group.named), 5_000)
    paused.pause()
    fleets.run(60_000)
    paused.resume()
    fleets.run(5_000)
    assert (called, paused.losses) == (["a"], 1)


def test_a_short_pause_changes_nothing(fleets: Fleets) -> None:
    paused, _ = fleets.join(), fleets.join()
    fleets.run(5_000)
    fleet = paused.fleet
    paused.pause()
    fleets.run(SESSION_MS - HEARTBEAT_MS - 500)
    paused.resume()
    fleets.run(3_000)
    assert (paused.losses, paused.fleet) == (0, fleet)


# ---- the lease -------------------------------------------------------------------------------------------------------


def test_a_lease_counts_from_the_request_and_ends_before_the_session() -> None:
    now = [0.0]
    lease = Lease(lambda: now[0])
    assert not lease.valid
    lease.confirm(100)
    now[0] = 100 + SESSION_MS - MARGIN_MS - 1
    assert lease.valid
    now[0] += 1
    assert not lease.valid
    assert not lease.would_renew(100)
    lease.confirm(now[0])
    assert lease.valid
    lease.end()
    assert not lease.valid


def test_a_rebalance_extends_a_lease_only_as_long_as_the_group_waits_for_members() -> None:
    now = [0.0]
    lease = Lease(lambda: now[0])
    lease.confirm(0)
    for sent in range(1_000, 60_000, 1_000):
        now[0] = sent
        lease.extend(sent)
        assert lease.valid == (sent < REBALANCE_MS - MARGIN_MS)


# ---- random faults ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(3))
def test_no_partition_ever_has_two_leaders(seed: int, number: int) -> None:
    """Processes join, leave, are served, paused and killed, and messages are lost; in quiet time all is led again."""
    fleets = Fleets(seed + number, lost_messages=0.02)
    rng = Random(seed + number)
    for _ in range(120):
        there = [one for one in fleets.members if one.alive]
        kind = rng.choice(["join", "pause", "resume", "resume", "kill", "leave", "serve"])
        if kind == "join" and len(there) < 4:
            fleets.join(served=rng.random() < 0.7)
        elif there:
            chosen = rng.choice(there)
            if kind == "leave":
                chosen.membership.leave()
                chosen.kill()
            elif kind == "serve":
                chosen.membership.readdress(ADDRESSES if rng.random() < 0.7 else {})
            elif kind != "join":
                getattr(chosen, kind)()
        fleets.run(rng.choice([10, 100, 1_000, 8_000]))
    for one in fleets.members:
        one.resume()
    fleets.join()
    fleets.run(2 * (REBALANCE_MS + SESSION_MS))
    assert fleets.all_led()
    assert fleets.terms == sorted(fleets.terms)

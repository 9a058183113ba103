"""The checks of the arguments of `Cluster`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from shareq.broker.configs import config_text
from shareq.broker.loop import EventLoop, VirtualLoop
from shareq.model.authorizer_configs import CLASS_NAME
from shareq.model.configs import BROKER_CONFIGS, GROUP_CONFIGS
from shareq.model.errors import ConfigException, IllegalStateException
from shareq.model.experiments import EXPERIMENT_CONFIGS
from shareq.model.hidden_values import shown_argument
from shareq.model.numbers import plain
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign, design_named

T = TypeVar("T")

MAX_BROKERS = 100
MAX_LATENCY_MS = 60_000


def broker_overrides(config: Mapping[str, object] | None, persister: str | None) -> Mapping[str, object]:
    """The configurations of the brokers, with the class of a persister that is given by its name. ConfigException for
    an unknown name, and if the configurations have a class, too."""
    config = as_mapping("config", config or {})
    if persister is None:
        return config
    class_name = design_named(persister).class_name
    if PERSISTER_CLASS in config:
        raise ConfigException(f"persister={persister!r}: {PERSISTER_CLASS}={config[PERSISTER_CLASS]!r} is given, too")
    return {**config, PERSISTER_CLASS: class_name}


def check_arguments(
    clock: str | float,
    config: Mapping[str, object],
    backend: str | None,
    connections: Mapping[str, Mapping[str, object] | None],
    *,
    brokers: int | None,
    racks: Sequence[str | None] | None,
    latency_ms: int,
) -> None:
    """ConfigException for arguments that are impossible, alone or together. `connections`: configurations by the name
    of the argument."""
    for name, given in connections.items():
        if given is not None and backend is None:
            raise ConfigException(f"{name}: only a cluster on a backend has such connections")
    if brokers is None or backend is not None:
        _check_backend(clock, brokers=brokers, racks=racks, latency_ms=latency_ms)
        _check_no_authorizer(config)
        _check_persister(config)
    else:
        _check_in_memory(brokers, latency_ms, racks)
    _check_group_keys(config)


def _check_in_memory(brokers: int, latency_ms: int, racks: Sequence[str | None] | None) -> None:
    """ConfigException for impossible brokers, latency or racks of a cluster in memory."""
    if isinstance(brokers, bool) or not isinstance(brokers, int) or not 1 <= brokers <= MAX_BROKERS:
        raise ConfigException(f"brokers={brokers!r}: must be 1..{MAX_BROKERS}")
    if isinstance(latency_ms, bool) or not isinstance(latency_ms, int) or not 0 <= latency_ms <= MAX_LATENCY_MS:
        raise ConfigException(f"latency_ms={latency_ms!r}: must be 0..{MAX_LATENCY_MS}")
    listed = not isinstance(racks, str) and all(
        rack is None or (isinstance(rack, str) and rack) for rack in racks or ()
    )
    if racks is not None and not (listed and len(racks) == brokers):
        raise ConfigException(f"racks={racks!r}: must be {brokers}, one for each broker, each a name or None")


def _check_backend(clock: str | float, **of_the_backend: object) -> None:
    """ConfigException for a virtual clock, and for arguments that a cluster on a backend has from it."""
    for key, value in of_the_backend.items():
        if value:
            raise ConfigException(f"{key}={value!r}: brokers and network are those of the backend")
    if clock == "virtual":
        raise ConfigException("clock='virtual': a backend has real time: use clock='wall', or a factor such as 10.0")


def _check_persister(config: Mapping[str, object]) -> None:
    """ConfigException for a persister that a cluster on a backend cannot have."""
    if config.get(PERSISTER_CLASS) == StateDesign.CONTROL_RECORDS.class_name:
        raise ConfigException(
            f"persister={str(StateDesign.CONTROL_RECORDS)!r}: a client cannot append control records to the topics of "
            f"a backend: use persister='state-topic' or 'compacted-topic'"
        )


def _check_no_authorizer(config: Mapping[str, object]) -> None:
    """ConfigException for an authorizer of a cluster on a backend."""
    if config.get(CLASS_NAME):
        raise ConfigException(
            f"{CLASS_NAME}={config[CLASS_NAME]!r}: a cluster on a backend does not authorize requests: what is not "
            "about share groups reaches the backend under the principal of this process"
        )


def _check_group_keys(config: Mapping[str, object]) -> None:
    """ConfigException for a configuration of groups, with the call that sets it."""
    of_groups = GROUP_CONFIGS | EXPERIMENT_CONFIGS
    for key, value in config.items():
        if key in of_groups and key not in BROKER_CONFIGS:
            broker_key = of_groups[key].broker_key
            for_all = f"; {broker_key} is the brokers' default for all groups" if broker_key else ""
            raise ConfigException(
                f"{key}={value!r}: a configuration of a group, not of a broker: "
                f"use cluster.configure_group(group_id, {{{key!r}: {value!r}}}){for_all}"
            )


def as_mapping(name: str, given: Mapping[str, T]) -> Mapping[str, T]:
    """The argument. ConfigException if it is no dict."""
    if not isinstance(given, Mapping):
        raise ConfigException(f"{name}={shown_argument(given)}: must be a dict of configurations by their keys")
    return given


def checked_capacity(journal: bool | int) -> int | None:
    """The number of events that a journal keeps; None: all, or none. ConfigException for anything but a bool or a
    whole number."""
    if not isinstance(journal, int):
        raise ConfigException(f"journal={journal!r}: must be True, False, or the number of newest events to keep")
    return None if isinstance(journal, bool) else journal


def topic_arguments(
    name: str, partitions: int, replication_factor: int, configs: Mapping[str, object] | None
) -> tuple[str, int, int, Mapping[str, str]]:
    """The arguments of a new topic, with the texts of its configurations. ConfigException for a name that is no text,
    for counts that are no whole numbers, and for configurations that are no dict."""
    if not isinstance(name, str):
        raise ConfigException(f"name={name!r:.100}: must be the name of a topic")
    counts = {"partitions": plain(partitions), "replication_factor": plain(replication_factor)}
    for key, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigException(f"{key}={value!r:.100}: must be a whole number")
    texts = {key: config_text(value) for key, value in as_mapping("configs", configs or {}).items()}
    return name, counts["partitions"], counts["replication_factor"], texts


def changed_configs(configs: Mapping[str, object | None]) -> dict[str, str | None]:
    """The texts of a group's configurations; None removes one. ConfigException: they are no dict."""
    given = as_mapping("configs", configs).items()
    return {key: None if value is None else config_text(value) for key, value in given}


def checked_user(user: str) -> str:
    """The name of a user. ConfigException for what is no text or empty."""
    if not isinstance(user, str) or not user:
        raise ConfigException(f"user={user!r}: must be the name of a user, such as alice")
    return user


def check_servable(clock: str | float) -> None:
    """IllegalStateException for a virtual clock."""
    if clock == "virtual":
        raise IllegalStateException(
            "clock='virtual': a cluster on a virtual clock cannot be served, because its time would stand still "
            "while TCP clients wait: use Cluster(clock='wall'), or a factor such as clock=10.0"
        )


def known_broker(broker_id: int, known: Collection[int], running: Collection[int], *, alive: bool) -> int:
    """The id. ConfigException for an unknown broker, IllegalStateException for one that runs, or does not, already."""
    if broker_id not in known or isinstance(broker_id, bool):
        raise ConfigException(f"broker_id={broker_id!r}: must be one of {sorted(known)}")
    if (broker_id in running) != alive:
        raise IllegalStateException(f"broker {broker_id} is {'not running' if alive else 'running already'}")
    return plain(broker_id)


def checked_ms(ms: float) -> float:
    """A duration of `advance` in ms. ConfigException for anything but a number that is not negative."""
    ms = plain(ms)
    if isinstance(ms, bool) or not isinstance(ms, (int, float)):
        raise ConfigException(f"ms={ms!r}: must be a number of milliseconds")
    if ms < 0:
        raise ConfigException(f"ms={ms!r}: must be >= 0, time does not run backwards")
    return ms


LONGEST_JUMP_MS = 31_536_000_000
"""A year."""


def checked_jump(ms: object, *, of_day: bool) -> int:
    """The duration of a jump of the clock. ConfigException outside 0..LONGEST_JUMP_MS: time does not run backwards; the
    time of day may be set back as far."""
    ms, earliest_ms = plain(ms), -LONGEST_JUMP_MS if of_day else 0
    if isinstance(ms, bool) or not isinstance(ms, int) or not earliest_ms <= ms <= LONGEST_JUMP_MS:
        raise ConfigException(f"ms={ms!r}: must be a whole number in {earliest_ms}..{LONGEST_JUMP_MS}")
    return ms


def virtual_loop(loop: EventLoop, clock: str | float, what: str) -> VirtualLoop:
    """The loop of a virtual clock. IllegalStateException for another one, which cannot do `what`."""
    if not isinstance(loop, VirtualLoop):
        raise IllegalStateException(f"clock={clock!r} runs by itself: only clock='virtual' can {what}")
    return loop

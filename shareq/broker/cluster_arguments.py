"""The checks of the arguments of `Cluster`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shareq.model.configs import BROKER_CONFIGS, GROUP_CONFIGS
from shareq.model.errors import ConfigException

MAX_BROKERS = 100
MAX_LATENCY_MS = 60_000


def check_in_memory(brokers: int, latency_ms: int, racks: Sequence[str | None] | None) -> None:
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


def check_backend(clock: str | float, **of_the_backend: object) -> None:
    """ConfigException for a virtual clock, and for arguments that a cluster on a backend has from it."""
    for key, value in of_the_backend.items():
        if value:
            raise ConfigException(f"{key}={value!r}: brokers and network are those of the backend")
    if clock == "virtual":
        raise ConfigException("clock='virtual': a backend has real time: use clock='wall', or a factor such as 10.0")


def check_group_keys(config: Mapping[str, object]) -> None:
    """ConfigException for a configuration of groups, with the call that sets it."""
    for key, value in config.items():
        if key in GROUP_CONFIGS and key not in BROKER_CONFIGS:
            broker_key = GROUP_CONFIGS[key].broker_key
            for_all = f"; {broker_key} is the brokers' default for all groups" if broker_key else ""
            raise ConfigException(
                f"{key}={value!r}: a configuration of a group, not of a broker: "
                f"use cluster.configure_group(group_id, {{{key!r}: {value!r}}}){for_all}"
            )

"""The broker configurations of connections. Source: Kafka's SocketServerConfigs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address

from shareq.model.config_def import INT_MAX, ConfigDef
from shareq.model.errors import ConfigException
from shareq.model.messages.topics import ConfigType

MAX_CONNECTIONS = "max.connections"
MAX_PER_IP = "max.connections.per.ip"
PER_IP_OVERRIDES = "max.connections.per.ip.overrides"
CREATION_RATE = "max.connection.creation.rate"
WINDOW_NUM = "quota.window.num"
WINDOW_SECONDS = "quota.window.size.seconds"
CONTROLLER_WINDOW_NUM = "controller.quota.window.num"
CONTROLLER_WINDOW_SECONDS = "controller.quota.window.size.seconds"

CONNECTION_CONFIGS = (
    ConfigDef("socket.request.max.bytes", 104857600, "The largest request in bytes.", 1, INT_MAX),
    ConfigDef(
        "connections.max.idle.ms",
        600000,
        "A connection that is idle for this time is closed.",
        1,
        INT_MAX,
        type=ConfigType.LONG,
    ),
    ConfigDef(MAX_CONNECTIONS, INT_MAX, "The most connections of a broker; further ones wait.", 0, INT_MAX),
    ConfigDef(MAX_PER_IP, INT_MAX, "The most connections of an address to a broker.", 0, INT_MAX),
    ConfigDef(PER_IP_OVERRIDES, "", "The most connections of single addresses, such as 10.0.0.1:100,10.0.0.2:5."),
    ConfigDef(CREATION_RATE, INT_MAX, "The most new connections of a broker in a second; others wait.", 0, INT_MAX),
    ConfigDef(
        "queued.max.request.bytes",
        1 << 28,
        "Above so many bytes of unanswered requests no further large one is read; -1: no limit.",
        -1,
        type=ConfigType.LONG,
    ),
    ConfigDef(WINDOW_NUM, 11, "The windows over which the use of client quotas is measured.", 1, INT_MAX),
    ConfigDef(WINDOW_SECONDS, 1, "The length of such a window.", 1, INT_MAX),
    ConfigDef(CONTROLLER_WINDOW_NUM, 11, "The windows whose quota of new partitions can be used at once.", 1, INT_MAX),
    ConfigDef(CONTROLLER_WINDOW_SECONDS, 1, "The length of such a window.", 1, INT_MAX),
)


@lru_cache(maxsize=16)
def limits_by_ip(text: str) -> Mapping[str, int]:
    """The limits in `max.connections.per.ip.overrides` by address. ConfigException for a text of another form, and for
    a name in place of an address: names would be looked up with each connection."""
    found = {}
    for part in filter(None, map(str.strip, text.split(","))):
        address, _, limit = part.rpartition(":")
        try:
            found[str(ip_address(address.strip("[] ")))] = _count(limit)
        except ValueError:
            raise ConfigException(f"{PER_IP_OVERRIDES}={text!r}: {part!r} must be an address and a number") from None
    return found


def _count(text: str) -> int:
    """ValueError for anything but digits."""
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(text)
    return int(text)

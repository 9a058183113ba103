"""A network address."""

from __future__ import annotations

from typing import NamedTuple


class Address(NamedTuple):
    """A host by name or number, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(address: str) -> bool:
    """True for a number, with or without a scope, that only programs on this machine reach."""
    from ipaddress import ip_address  # not at import: a tool that starts needs none

    return ip_address(address.partition("%")[0]).is_loopback

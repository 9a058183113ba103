"""The Kafka protocol over TCP: messages become bytes and back, a server, a client transport."""

from __future__ import annotations

from importlib.util import find_spec

from shareq.extras import install_command

if find_spec("kio") is None:
    raise ModuleNotFoundError(f"Kafka's protocol needs the package kio: {install_command('kafka')}", name="kio")

"""The Kafka protocol over TCP: messages become bytes and back, a server, a client transport."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("kio") is None:
    raise ModuleNotFoundError("Kafka's protocol needs the package kio: pip install 'shareq[kafka]'", name="kio")

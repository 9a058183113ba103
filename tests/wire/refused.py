"""Clients of shareq that a secured listener does not let in: what each of them says, and within which time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from shareq import Admin, KafkaException, Producer, ShareConsumer, monitor, observe, tap
from shareq.cli import main

SOON_S = 5
"""The longest time in which a client must say why it does not get in, from its start to its end."""

Conf = dict[str, Any]
Says = Callable[[str, Conf, Path], str]


def admin(address: str, conf: Conf, tmp_path: Path) -> str:
    del tmp_path
    with Admin({"bootstrap.servers": address, **conf}) as made:
        return _raised(made.list_topics)


def producer(address: str, conf: Conf, tmp_path: Path) -> str:
    del tmp_path
    errors: list[str] = []
    with Producer({"bootstrap.servers": address, **conf}) as made:
        made.produce("orders", b"x", on_delivery=lambda error, _: errors.append(str(error)))
        made.flush(SOON_S)
        (error,) = errors
        return error


def consumer(address: str, conf: Conf, tmp_path: Path) -> str:
    del tmp_path
    with ShareConsumer({"bootstrap.servers": address, "group.id": "g", **conf}) as made:
        made.subscribe(["orders"])
        return _raised(lambda: made.poll(SOON_S))


def observer(address: str, conf: Conf, tmp_path: Path) -> str:
    del tmp_path
    with observe(address, "g", ["orders"], config=conf) as made:
        assert not made.refresh(SOON_S)
        return made.trouble


def fleet_monitor(address: str, conf: Conf, tmp_path: Path) -> str:
    del tmp_path
    with monitor(address, config=conf) as made:
        report = made.refresh(SOON_S)
        assert report.unreachable_since_ms is not None
        return str(report)


def upstream_of_tap(address: str, conf: Conf, tmp_path: Path) -> str:
    del tmp_path
    return _raised(lambda: tap(address, config=conf).close())


def command(address: str, conf: Conf, tmp_path: Path) -> str:
    properties = tmp_path / "client.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in conf.items()))
    options = ["--bootstrap-server", address, "--command-config", str(properties), "--timeout", str(SOON_S * 1000)]
    done = CliRunner().invoke(main, ["groups", *options, "--list"])
    assert done.exit_code == 1
    return done.output


CLIENTS: tuple[Says, ...] = (admin, producer, consumer, observer, fleet_monitor, upstream_of_tap, command)


FAULTS = {
    "wrong password": "Authentication failed",
    "expired token": "invalid_token",
    "untrusted certificate": "not trusted",
    "wrong host name": "another host",
    "plaintext to TLS": "speaks TLS: set security.protocol",
    "TLS to plaintext": "it may not speak TLS",
}
"""Why a client does not get in, and what it says then."""

OF_TAP = {"plaintext to TLS": "a port with TLS needs --tls", "TLS to plaintext": "it does not speak TLS"}
"""Where the tap has other words: it asks one time, before it opens its own ports."""


def assert_said_soon(client: Says, fault: str, address: str, conf: Conf, tmp_path: Path) -> None:
    """The client names the fault within `SOON_S`."""
    began = time.monotonic()
    said = client(address, conf, tmp_path)
    assert time.monotonic() - began < SOON_S
    assert (OF_TAP if client is upstream_of_tap else {}).get(fault, FAULTS[fault]) in said


def _raised(call: Callable[[], object]) -> str:
    try:
        call()
    except KafkaException as refused:
        return refused.error.str()
    raise AssertionError("the client gets in")

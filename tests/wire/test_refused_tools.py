"""What observers and the command line say within seconds where a secured listener does not let them in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shareq import Cluster, observe
from shareq.cli import main
from shareq.wire.security import channel_security
from shareq.wire.security.listener_security import ListenerSecurity
from shareq.wire.server import Server
from tests.wire.secured import Vault, secured
from tests.wire.test_secured_clients import SOON_S

Conf = dict[str, Any]


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    return Vault(tmp_path_factory.mktemp("vault"))


@contextmanager
def refused(vault: Vault, why: str) -> Iterator[Conf]:
    """A server, and the configuration of a client that it does not let in."""
    kind = {"wrong password": "PLAIN", "expired token": "OAUTHBEARER"}.get(why, "TLS")
    conf = vault.client_config(kind)
    if why in ("wrong host name", "TLS to plaintext"):
        files = ListenerSecurity(tls_cert=vault.elsewhere.cert, tls_key=vault.elsewhere.key)
        security = files if why == "wrong host name" else None
        with Cluster(brokers=1, clock="wall") as cluster, Server(cluster, security=security) as server:
            yield {**conf, "bootstrap.servers": server.bootstrap_servers}
        return
    conf |= {
        "wrong password": lambda: {"sasl.password": "wrong"},
        "expired token": lambda: {
            "sasl.oauthbearer.token.endpoint.url": vault.token_file(vault.issuer.token(lifetime_s=-120))
        },
        "untrusted certificate": lambda: {"ssl.ca.location": vault.stranger.file},
        "plaintext to TLS": lambda: {"security.protocol": "plaintext"},
    }[why]()
    with secured(vault, kind) as broker:
        yield {**conf, "bootstrap.servers": broker.bootstrap_servers}


def observer_says(address: str, conf: Conf, tmp_path: Path) -> str:
    del tmp_path
    with observe(address, "g", ["orders"], config=conf) as observer:
        assert not observer.refresh(SOON_S)
        return str(observer.trouble)


def command_says(address: str, conf: Conf, tmp_path: Path) -> str:
    properties = tmp_path / "client.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in conf.items()))
    options = ["--bootstrap-server", address, "--command-config", str(properties), "--timeout", str(SOON_S * 1000)]
    done = CliRunner().invoke(main, ["groups", *options, "--list"])
    assert done.exit_code == 1
    return done.output


@pytest.mark.parametrize("says", [observer_says, command_says])
@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("wrong password", "Authentication failed"),
        ("expired token", "invalid_token"),
        ("untrusted certificate", "not trusted"),
        ("wrong host name", "another host"),
        ("plaintext to TLS", "speaks TLS: set security.protocol"),
        ("TLS to plaintext", "it may not speak TLS"),
    ],
)
def test_the_cause_is_named(
    vault: Vault, why: str, text: str, says: Callable[[str, Conf, Path], str], tmp_path: Path
) -> None:
    with refused(vault, why) as conf:
        assert text in says(conf.pop("bootstrap.servers"), conf, tmp_path)


@pytest.mark.parametrize(
    ("has", "warnings"), [("", 1), ("tls", 1), ("users", 1), ("tls users", 0)], ids=["plain", "TLS", "SASL", "both"]
)
def test_a_server_that_others_reach_warns_when_it_starts(
    vault: Vault, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, has: str, warnings: int
) -> None:
    """Not every machine has another address than the loopback one, which passes for one here."""
    monkeypatch.setattr(channel_security, "is_loopback", lambda _: False)
    security = ListenerSecurity(
        tls_cert=vault.server.cert if "tls" in has else None,
        tls_key=vault.server.key if "tls" in has else None,
        users={"alice": "secret"} if "users" in has else None,
    )
    with Cluster(brokers=1, clock="wall") as cluster, cluster.serve(security=security):
        texts = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [text.startswith("serving on 127.0.0.1 without TLS and SASL:") for text in texts] == [True] * warnings

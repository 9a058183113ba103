"""What each client and tool of shareq says within seconds where a secured listener does not let it in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shareq import Cluster
from shareq.wire.security import channel_security
from shareq.wire.security.listener_security import ListenerSecurity
from shareq.wire.server import Server
from tests.wire.refused import CLIENTS, FAULTS, Conf, Says, assert_said_soon
from tests.wire.secured import Vault, secured


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


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_cause_is_named_soon(vault: Vault, fault: str, client: Says, tmp_path: Path) -> None:
    with refused(vault, fault) as conf:
        assert_said_soon(client, fault, conf.pop("bootstrap.servers"), conf, tmp_path)


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

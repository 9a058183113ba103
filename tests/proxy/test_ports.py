"""The ports of the tap. Numbers in ids are sections of shareq/proxy/BEHAVIOUR.md."""

from __future__ import annotations

import pytest

from shareq.proxy import tap
from shareq.wire.acceptor import Acceptor
from tests.proxy.stage import address, served


@pytest.mark.parametrize(
    ("bound", "warned"), [("127.0.0.1", False), ("::1", False), ("192.168.7.9", True), ("fe80::7%2", True)]
)
def test_an_address_that_others_reach_is_warned_of(
    bound: str, warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """1.8, however many brokers there are."""
    with served(3) as cluster:
        monkeypatch.setattr(Acceptor, "address", property(lambda _: bound, lambda _, __: None), raising=False)
        with tap(address(cluster)):
            pass
    found = [record.getMessage() for record in caplog.records if record.name == "shareq.tap"]
    assert len(found) == warned
    assert all(bound in text for text in found)

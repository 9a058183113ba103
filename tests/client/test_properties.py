"""Properties files of clients, with confluent-kafka's keys and with Java's."""

from __future__ import annotations

from pathlib import Path

import pytest

from shareq.client.properties import client_properties, properties_of
from shareq.model.errors import ConfigException

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b=c", {"a.b": "c"}),
        ("# comment\n! another\n\nA.b : c = d \n", {"A.b": "c = d"}),
        ("sasl.password=a%b=c", {"sasl.password": "a%b=c"}),
        ("ssl.truststore.type=PEM\nssl.truststore.location=/ca.pem", {"ssl.ca.location": "/ca.pem"}),
        (
            "ssl.keystore.type=pem\nssl.keystore.location=/me.pem\nssl.key.password=x",
            {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem", "ssl.key.password": "x"},
        ),
        (
            f'sasl.jaas.config={MODULE} required username="alice" password="a\\"b;c";',
            {"sasl.username": "alice", "sasl.password": 'a"b;c'},
        ),
        (
            f"sasl.jaas.config={MODULE} required username=alice password='x' ;",
            {"sasl.username": "alice", "sasl.password": "x"},
        ),
        (f"sasl.jaas.config={MODULE} required;", {}),
    ],
)
def test_a_file_is_read(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    file = tmp_path / "client.properties"
    file.write_text(text)
    assert client_properties(file) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no value", "not of the form key=value: line 1"),
        ("ssl.truststore.location=/ca.jks", "only key stores in PEM"),
        ("ssl.keystore.type=PKCS12\nssl.keystore.location=/me.p12", "has the type PKCS12"),
        ("sasl.jaas.config=secret", "must be one login module"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_without_its_secrets(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(text)
    with pytest.raises(ConfigException, match=message) as refused:
        client_properties(file)
    assert "secret" not in str(refused.value)


def test_a_missing_file_and_another_encoding_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigException, match="No such file"):
        properties_of(tmp_path / "none")
    file = tmp_path / "latin"
    file.write_bytes(b"a=\xff")
    with pytest.raises(ConfigException, match="UTF-8"):
        properties_of(file)

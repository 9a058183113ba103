"""How Java's clients get into secured servers: their properties, and the files that these name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from tests.wire.certificates import PASSWORD, Certificate
from tests.wire.secured import Vault

MODULES = "org.apache.kafka.common.security"
SCRAM_MODULE = f"{MODULES}.scram.ScramLoginModule"
PLAIN_MODULE = f"{MODULES}.plain.PlainLoginModule"
TOKEN_MODULE = f"{MODULES}.oauthbearer.OAuthBearerLoginModule"


class JavaVault(Vault):
    """Java reads files of tokens and keys only if a property of the system allows it. `token` and `expired_token`: the
    URLs of the files that it may read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.token = self.token_file(self.issuer.token())
        self.expired_token = self.token_file(self.issuer.token(lifetime_s=-120))

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """A Java that starts meanwhile may read the files."""
        urls = [self.issuer.url, self.token, self.expired_token]
        files = ",".join(url.removeprefix("file://") for url in urls)
        with pytest.MonkeyPatch.context() as patch:
            options = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(urls)}"
            patch.setenv("JAVA_TOOL_OPTIONS", f"{options} -Dorg.apache.kafka.sasl.oauthbearer.allowed.files={files}")
            yield


def key_store(certificate: Certificate) -> str:
    """A file of a certificate and its key in Java's form of PEM, PKCS #8."""
    path = Path(certificate.cert).with_suffix(".store.pem")
    key = serialization.load_pem_private_key(Path(certificate.key).read_bytes(), None)
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(encoded + Path(certificate.cert).read_bytes())
    return str(path)


def java_config(vault: JavaVault, kind: str, password: str = PASSWORD) -> dict[str, str]:
    """The properties of a Java client that gets in."""
    conf = {"ssl.truststore.type": "PEM", "ssl.truststore.location": vault.authority.file}
    if kind in ("TLS", "mutual TLS"):
        conf["security.protocol"] = "SSL"
    else:
        conf |= {"security.protocol": "SASL_SSL", "sasl.mechanism": kind}
    login = f'required username="alice" password="{password}";'
    if kind == "mutual TLS":
        conf |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": key_store(vault.client)}
    elif kind == "PLAIN":
        conf["sasl.jaas.config"] = f"{PLAIN_MODULE} {login}"
    elif kind == "OAUTHBEARER":
        conf["sasl.jaas.config"] = f"{TOKEN_MODULE} required;"
        conf["sasl.login.callback.handler.class"] = f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
        conf["sasl.oauthbearer.token.endpoint.url"] = vault.token
    elif kind != "TLS":
        conf["sasl.jaas.config"] = f"{SCRAM_MODULE} {login}"
    return conf


def write(path: Path, conf: Mapping[str, str]) -> str:
    path.write_text("".join(f"{key}={value}\n" for key, value in conf.items()))
    return str(path)

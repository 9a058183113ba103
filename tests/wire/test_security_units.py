"""The parts of security without a socket: rules of principals, names of certificates, SCRAM, tokens.

Numbers in ids are sections of shareq/wire/BEHAVIOUR.md.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException
from shareq.model.scram import ScramCredential, ScramMechanism
from shareq.wire.client.sasl_mechanisms import MOST_ITERATIONS, ScramClient
from shareq.wire.security.distinguished_name import distinguished_name
from shareq.wire.security.mechanisms import PlainServer
from shareq.wire.security.oauth_bearer import JwtCheck, OauthBearerServer
from shareq.wire.security.principal_rules import PrincipalRules
from shareq.wire.security.sasl_failure import SaslRefused
from shareq.wire.security.scram_messages import decoded_name, encoded_name
from shareq.wire.security.scram_server import ScramServer, SecretSalts
from tests.wire.certificates import PASSWORD, TokenIssuer

NAME = "CN=kafka1.example.com,OU=Ops,O=Example,C=DE"


# ---- rules of principals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        pytest.param("DEFAULT", NAME, NAME, id="2.19 default: the name as it is"),
        pytest.param(r"RULE:^CN=(.*?),.*$/$1/", NAME, "kafka1.example.com", id="2.19 a group of the pattern"),
        pytest.param(r"RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L", NAME, "kafka1.example.com@ops", id="2.19 lower case"),
        pytest.param(r"RULE:^CN=(.*?),.*$/$1/U", NAME, "KAFKA1.EXAMPLE.COM", id="2.19 upper case"),
        pytest.param(
            r"RULE:^CN=(.*?)$/$1/, DEFAULT", NAME, "kafka1.example.com,OU=Ops,O=Example,C=DE", id="2.19 order"
        ),
        pytest.param(r"RULE:^UID=(.*)$/$1/,DEFAULT", NAME, NAME, id="2.19 the first rule that matches"),
        pytest.param(r"RULE:^UID=(.*)$/$1/", NAME, None, id="2.19 no rule matches"),
        pytest.param(r"RULE:OU=Ops/ops/", NAME, None, id="2.19 the whole name must match"),
        pytest.param(r"RULE:^CN=a\/b$/x\/y/", "CN=a/b", r"x\/y", id="2.19 an escaped slash ends nothing"),
    ],
)
def test_a_rule_makes_a_principal_of_a_name(rules: str, name: str, expected: str | None) -> None:
    assert PrincipalRules(rules).name_of(name) == expected


@pytest.mark.parametrize("rules", ["RULE", "RULE:a/b", "RULE:(/b/", "DEFAULT;DEFAULT", "RULE:a/$1/", "RULE:a/b/X"])
def test_an_invalid_rule_is_refused_at_the_start(rules: str) -> None:
    with pytest.raises(ConfigException, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalRules(rules)


# ---- names of certificates -------------------------------------------------------------------------------------------


def certificate(*parts: list[x509.NameAttribute[Any]]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.RelativeDistinguishedName(part) for part in parts])
    now = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + dt.timedelta(days=1))
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def part(oid: x509.ObjectIdentifier, value: str) -> x509.NameAttribute[str]:
    return x509.NameAttribute(oid, value)


CN, ORG, OU, C, MAIL = (
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.COUNTRY_NAME,
    NameOID.EMAIL_ADDRESS,
)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([[part(C, "DE")], [part(ORG, "Ex")], [part(CN, "a")]], "CN=a,O=Ex,C=DE", id="2.19 the last first"),
        pytest.param([[part(CN, 'a,b+c"d')]], r"CN=a\,b\+c\"d", id="2.19 escapes"),
        pytest.param([[part(CN, " a ")]], r"CN=\ a\ ", id="2.19 spaces at the ends"),
        pytest.param([[part(CN, "Jürgen")]], "CN=Jürgen", id="2.19 not only ASCII"),
        pytest.param(
            [[part(MAIL, "a@b.c")], [part(CN, "a")]],
            "CN=a,1.2.840.113549.1.9.1=#1605" + b"a@b.c".hex(),
            id="2.19 without a keyword: number and bytes",
        ),
        pytest.param(
            [[part(MAIL, "a" * 150)]],
            "1.2.840.113549.1.9.1=#168196" + (b"a" * 150).hex(),
            id="2.19 bytes with a long length",
        ),
    ],
)
def test_the_subject_of_a_certificate_is_written_as_in_java(
    parts: list[list[x509.NameAttribute[Any]]], expected: str
) -> None:
    assert distinguished_name(certificate(*parts)) == expected


def test_a_part_of_several_attributes_has_a_plus() -> None:
    assert set(distinguished_name(certificate([part(CN, "a"), part(OU, "b")])).split("+")) == {"CN=a", "OU=b"}


# ---- SCRAM -----------------------------------------------------------------------------------------------------------


def credential(mechanism: ScramMechanism, password: str = PASSWORD) -> ScramCredential:
    return ScramCredential.of_password(mechanism, password, b"salt of sixteen ", 4096)


def test_the_example_of_rfc_7677(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_urlsafe", lambda size: "rOprNGfwEbeRWgbNEkqO")
    client = ScramClient(ScramMechanism.SCRAM_SHA_256, "user", "pencil")
    assert client.step(None) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = client.step(b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert final == b"c=biws,r=" + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert client.step(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("name", ["alice", "a=b,c", "Zoë"])
def test_both_sides_of_scram_agree(mechanism: ScramMechanism, name: str) -> None:
    server = ScramServer(mechanism, {name: {mechanism: credential(mechanism)}}, SecretSalts())
    client = ScramClient(mechanism, name, PASSWORD)
    data: bytes | None = None
    while (message := client.step(data)) is not None:
        assert server.user is None
        data = server.step(message)
    assert server.user == name


@pytest.mark.parametrize(
    "users",
    [
        pytest.param({"alice": {ScramMechanism.SCRAM_SHA_256: credential(ScramMechanism.SCRAM_SHA_256, "other")}}),
        pytest.param({"alice": {ScramMechanism.SCRAM_SHA_512: credential(ScramMechanism.SCRAM_SHA_512)}}),
        pytest.param({}),
    ],
    ids=["2.20 a wrong password", "2.20 no credential of the mechanism", "2.20 no such user"],
)
def test_a_client_does_not_learn_whether_its_user_exists(users: Any) -> None:
    salts = SecretSalts()
    seen = []
    for _ in range(2):
        server = ScramServer(ScramMechanism.SCRAM_SHA_256, users, salts)
        client = ScramClient(ScramMechanism.SCRAM_SHA_256, "alice", PASSWORD)
        first = client.step(None)
        assert first is not None
        challenge = server.step(first)
        seen.append(challenge.partition(b",s=")[2])
        final = client.step(challenge)
        assert final is not None
        with pytest.raises(SaslRefused) as refused:
            server.step(final)
        assert (str(refused.value), refused.value.answer) == ("Invalid username or password", None)
    assert seen[0] == seen[1], "the salt of a user must not change"


@pytest.mark.parametrize(
    "data",
    [b"", b"n,,", b"p=tls,,n=alice,r=x", b"n,,n=,r=x", b"n,,n=a=b,r=x", b"n,,n=alice,r=" + b"x" * 9000, b"\xff" * 40],
)
def test_an_invalid_first_message_is_refused(data: bytes) -> None:
    with pytest.raises(SaslRefused, match="invalid SCRAM message"):
        ScramServer(ScramMechanism.SCRAM_SHA_256, {}, SecretSalts()).step(data)


def test_a_login_as_another_user_is_refused() -> None:
    users = {"alice": {ScramMechanism.SCRAM_SHA_256: credential(ScramMechanism.SCRAM_SHA_256)}}
    with pytest.raises(SaslRefused, match="authorization id"):
        ScramServer(ScramMechanism.SCRAM_SHA_256, users, SecretSalts()).step(b"n,a=bob,n=alice,r=x")
    with pytest.raises(SaslRefused, match="authorization id"):
        PlainServer(users, SecretSalts()).step(f"bob\0alice\0{PASSWORD}".encode())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"r=other,s=c2FsdA==,i=4096", id="another nonce"),
        pytest.param(b"r=%b,s=c2FsdA==,i=4096", id="no part of the nonce is the server's"),
        pytest.param(b"r=%bx,s=c2FsdA==,i=4095", id="too few iterations"),
        pytest.param(b"r=%%bx,s=c2FsdA==,i=%d" % (MOST_ITERATIONS + 1), id="too many iterations"),
        pytest.param(b"e=other-error", id="an error"),
    ],
)
def test_a_client_refuses_an_invalid_challenge(answer: bytes) -> None:
    client = ScramClient(ScramMechanism.SCRAM_SHA_256, "alice", PASSWORD)
    first = client.step(None)
    assert first is not None
    nonce = first.partition(b",r=")[2]
    with pytest.raises(ValueError, match="server"):
        client.step(answer.replace(b"%b", nonce))


def test_a_client_refuses_a_server_that_does_not_know_the_password() -> None:
    users = {"alice": {ScramMechanism.SCRAM_SHA_256: credential(ScramMechanism.SCRAM_SHA_256)}}
    server = ScramServer(ScramMechanism.SCRAM_SHA_256, users, SecretSalts())
    client = ScramClient(ScramMechanism.SCRAM_SHA_256, "alice", PASSWORD)
    first = client.step(None)
    assert first is not None
    client.step(server.step(first))
    with pytest.raises(ValueError, match="has not proved"):
        client.step(b"v=" + b64encode(bytes(32)))


def test_names_are_escaped() -> None:
    assert encoded_name("a=b,c") == b"a=3Db=2Cc"
    assert decoded_name(b"a=3Db=2Cc") == "a=b,c"


# ---- PLAIN -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0bob\0" + PASSWORD.encode(), "Authentication failed: Invalid username or password"),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"alice", None),
        (b"\0alice\0\xff", None),
    ],
)
def test_plain_is_refused_with_kafkas_messages(data: bytes, answer: str | None) -> None:
    server = PlainServer(
        {"alice": {ScramMechanism.SCRAM_SHA_512: credential(ScramMechanism.SCRAM_SHA_512)}}, SecretSalts()
    )
    with pytest.raises(SaslRefused) as refused:
        server.step(data)
    assert refused.value.answer == answer
    assert server.user is None


# ---- OAUTHBEARER -----------------------------------------------------------------------------------------------------


def check(issuer: TokenIssuer, **more: str) -> JwtCheck:
    url = more.pop("jwks_endpoint_url", None) or issuer.url
    keys = {"jwks.endpoint.url": url, "expected.audience": "kafka", "expected.issuer": "issuer"}
    keys |= {key.replace("_", "."): value for key, value in more.items()}
    return JwtCheck(BrokerConfig({f"sasl.oauthbearer.{key}": value for key, value in keys.items()}))


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> TokenIssuer:
    return TokenIssuer(tmp_path_factory.mktemp("keys"))


def bearer(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def test_a_valid_token_names_the_user_and_its_end(issuer: TokenIssuer) -> None:
    server = OauthBearerServer(check(issuer))
    assert server.step(bearer(issuer.token(lifetime_s=600))) == b""
    assert server.user == "alice"
    assert server.lifetime_ms is not None
    assert 0 < server.lifetime_ms <= 600_000


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        pytest.param({"lifetime_s": -60}, "expired", id="expired"),
        pytest.param({"aud": "other"}, "[Aa]udience", id="another audience"),
        pytest.param({"iss": "other"}, "[Ii]ssuer", id="another issuer"),
        pytest.param({"sub": ""}, "sub", id="no user"),
        pytest.param({"nbf": time.time() + 3600}, "not yet valid", id="not yet valid"),
    ],
)
def test_an_invalid_token_is_refused_in_two_steps(issuer: TokenIssuer, claims: dict[str, Any], why: str) -> None:
    server = OauthBearerServer(check(issuer))
    assert server.step(bearer(issuer.token(**claims))) == b'{"status":"invalid_token"}'
    with pytest.raises(SaslRefused, match=why) as refused:
        server.step(b"\x01")
    assert refused.value.answer == '{"status":"invalid_token"}'
    assert server.user is None


def test_a_token_with_another_algorithm_or_key_is_refused(issuer: TokenIssuer, tmp_path: Path) -> None:
    now = int(time.time())
    claims = {"sub": "alice", "iat": now, "exp": now + 600, "aud": "kafka", "iss": "issuer"}
    stranger = TokenIssuer(tmp_path)
    for token in (
        jwt.encode(claims, "", "none", headers={"kid": "first"}),
        jwt.encode(claims, "x" * 64, "HS256", headers={"kid": "first"}),
        stranger.token(),
        issuer.token()[:-8] + "AAAAAAAA",
        "no.token.atall",
    ):
        server = OauthBearerServer(check(issuer))
        assert server.step(bearer(token)).startswith(b"{")
        assert server.user is None


def test_a_file_of_keys_may_have_their_private_parts(issuer: TokenIssuer, tmp_path: Path) -> None:
    """Only the public part is kept."""
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [issuer.private_jwk]}))
    checked = check(issuer, jwks_endpoint_url=file.as_uri())
    assert checked(issuer.token()).user == "alice"
    assert not [key for key in checked._keys.values() if hasattr(key, "private_bytes")]


@pytest.mark.parametrize("content", ["[1]", "1", '{"keys": [{"kty": "RSA", "alg": []}]}'])
def test_a_file_without_keys_is_an_error_at_the_start(content: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(content)
    with pytest.raises(ConfigException, match=r"jwks\.endpoint\.url"):
        check(TokenIssuer(tmp_path), jwks_endpoint_url=file.as_uri())


def test_the_skew_of_clocks_is_allowed(issuer: TokenIssuer) -> None:
    assert check(issuer)(issuer.token(lifetime_s=-5)).lifetime_ms == 0


@pytest.mark.parametrize("what", ["audience", "issuer"])
def test_the_audience_and_the_issuer_are_checked_unless_any_is_allowed(issuer: TokenIssuer, what: str) -> None:
    with pytest.raises(ConfigException, match=rf"expected\.{what} must be set .*allow\.unverified\.{what}=true"):
        check(issuer, **{f"expected_{what}": ""})
    lax = check(issuer, **{f"expected_{what}": "", f"allow_unverified_{what}": "true"})
    assert lax(issuer.token(aud="other") if what == "audience" else issuer.token(iss="other")).user == "alice"


@pytest.mark.parametrize("url", ["https://example.com/keys", "file:///no/such/file.json", "keys.json"])
def test_keys_that_cannot_be_read_are_an_error_at_the_start(url: str) -> None:
    with pytest.raises(ConfigException, match=r"jwks\.endpoint\.url"):
        check(TokenIssuer(Path()), jwks_endpoint_url=url)


@pytest.mark.parametrize("data", [b"", b"n,,\x01\x01", b"n,,\x01auth=Basic x\x01\x01", b"auth=Bearer x", b"\x01"])
def test_an_invalid_message_with_a_token_is_refused(issuer: TokenIssuer, data: bytes) -> None:
    with pytest.raises(SaslRefused, match="invalid OAUTHBEARER message"):
        OauthBearerServer(check(issuer)).step(data)

"""Properties files, such as those of Kafka's tools: a key and a value in each line, with `=` or `:` between."""

from __future__ import annotations

import re
from pathlib import Path

from shareq.model.errors import ConfigException


def properties_of(path: Path) -> dict[str, str]:
    """The keys and values of a properties file. ConfigException: the file cannot be read, or has another form; as it
    may have passwords, the exception names the line by its number only."""
    import configparser  # here, because most commands read no file

    parser = configparser.RawConfigParser(
        delimiters=("=", ":"), comment_prefixes=("#", "!"), default_section="", strict=False
    )
    parser.optionxform = str  # type: ignore[assignment, method-assign]    # keys keep their case
    try:
        parser.read_string(f"[properties]\n{path.read_text(encoding='utf-8')}", str(path))
    except configparser.ParsingError as problem:
        lines = ", ".join(str(number - 1) for number, _ in problem.errors)
        raise ConfigException(f"{path}: not of the form key=value: line {lines}") from None
    except (OSError, UnicodeDecodeError, configparser.Error) as problem:
        why = getattr(problem, "strerror", None) or "not a properties file in UTF-8"
        raise ConfigException(f"{path}: {why}") from None
    return dict(parser["properties"])


_TRANSLATED = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.enabled.protocols": None,
    "ssl.protocol": None,
    "ssl.truststore.type": None,
    "ssl.keystore.type": None,
    "ssl.truststore.password": None,
    "ssl.keystore.password": None,
    "sasl.login.callback.handler.class": None,
}
"""Java's keys, and those of confluent-kafka; None: without effect here."""

_QUOTED = r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^;"'])"""
_LOGIN = re.compile(rf"\s*\S+\s+(?:required|requisite|sufficient|optional)\b(?P<options>{_QUOTED}*);\s*", re.DOTALL)
_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""")


def client_properties(path: Path) -> dict[str, str]:
    """The configuration of a client in a properties file, in confluent-kafka's keys or in Java's, as Kafka's tools take
    it with --command-config. ConfigException as `properties_of`, and for a key store that is not PEM."""
    given = properties_of(path)
    for store in ("truststore", "keystore"):
        kind = given.get(f"ssl.{store}.type", "JKS").upper()
        if f"ssl.{store}.location" in given and kind != "PEM":
            why = "only key stores in PEM can be read, with the type PEM"
            raise ConfigException(f"{path}: ssl.{store}.location: {why}; this one has the type {kind}")
    made: dict[str, str] = {}
    for key, value in given.items():
        if key == "sasl.jaas.config":
            made |= _login(path, value)
        elif key == "ssl.keystore.location":
            made |= {"ssl.certificate.location": value, "ssl.key.location": value}
        else:
            known = _TRANSLATED.get(key, key)
            made |= {} if known is None else {known: value}
    return made


def _login(path: Path, text: str) -> dict[str, str]:
    """The name and the password of `sasl.jaas.config`."""
    found = _LOGIN.fullmatch(text)
    if found is None:
        raise ConfigException(f"{path}: sasl.jaas.config: must be one login module, with a semicolon at its end")
    options = {name: next(filter(None, values), "") for name, *values in _OPTION.findall(found["options"])}
    names = {"username": "sasl.username", "password": "sasl.password"}
    return {names[key]: re.sub(r"\\(.)", r"\1", value) for key, value in options.items() if key in names}

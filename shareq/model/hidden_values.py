"""What messages show of values that may be secrets: nothing."""

from __future__ import annotations

from shareq.model.errors import ConfigException

_WORDS = ("pas", "word", "pwd", "pem", "secret", "token", "jaas", "credential", "private", "user.info")
"""Parts of the keys of secrets: short ones, because a key may be misspelt."""

_HIDDEN = "hidden"


def shown(key: object, value: object) -> str:
    """The value for a message, hidden if the key may be that of a secret, however it is misspelt."""
    name = str(key).lower().replace("_", ".")
    secret = name.startswith(("sasl", "ssl", "oauthbearer")) or _has_word(name)
    return _HIDDEN if secret else repr(value)


def shown_argument(value: object) -> str:
    """The beginning of a value of a wrong type for a message, hidden if there may be secrets in it."""
    text = repr(value)
    return _HIDDEN if _has_word(text.lower()) else text[:100]


def _has_word(text: str) -> bool:
    return any(word in text for word in _WORDS)


def check_file_names(**files: object) -> None:
    """ConfigException for a key or a certificate where the name of its file is expected."""
    for name, value in files.items():
        if "-----BEGIN" in str(value):
            raise ConfigException(f"{name}: must be the name of a file, and is the content of one")

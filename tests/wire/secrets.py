"""Where a secret could be shown: in the texts of objects, in errors and all that they were raised from, in logs."""

from __future__ import annotations

import re
import traceback
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path


class Secrets:
    """Texts and bytes that must not be shown, in any form in which they could be."""

    def __init__(self) -> None:
        self._forms: dict[str, str] = {}

    def add(self, name: str, *secrets: str | bytes) -> None:
        for secret in secrets:
            raw = secret.encode() if isinstance(secret, str) else secret
            assert len(raw) >= 8, f"{name}: short texts are found by chance"
            listed = ", ".join(map(str, raw))
            encoded = (b64encode(raw).decode().rstrip("="), urlsafe_b64encode(raw).decode().rstrip("="))
            for form in (raw.decode("latin-1"), repr(raw)[2:-1], raw.hex(), listed, listed.replace(" ", ""), *encoded):
                self._forms[form] = name

    def add_key(self, pem: str | bytes) -> None:
        """The lines of a private key, but for the short ones: any of them is a part of it."""
        text = pem.decode() if isinstance(pem, bytes) else pem
        self.add("a private key", *(line for line in text.splitlines() if re.fullmatch(r"[\w+/=]{40,}", line)))

    def add_token(self, token: str) -> None:
        """Its claims and its signature: either of them is half of it. The header is no secret."""
        self.add("a token", *token.split(".")[1:])

    def shown_in(self, texts: Iterable[str]) -> list[str]:
        """The names of the secrets that are shown, each with the beginning of the text."""
        return [f"{name} in {text[:200]}" for text in texts for form, name in self._forms.items() if form in text]


def texts_of(*shown: object) -> Iterator[str]:
    """All that Python and Jupyter show of objects."""
    for one in shown:
        yield from (repr(one), str(one), f"{one}")
        for name in ("_repr_html_", "_repr_mimebundle_"):
            make = getattr(one, name, None)
            if make is not None:
                yield str(make())


def texts_of_error(error: BaseException) -> Iterator[str]:
    """The traceback, and what a program sees of an error and of those that it was raised from."""
    yield "".join(traceback.format_exception(error))
    found: BaseException | None = error
    while found is not None:
        yield from (repr(found), str(found), repr(found.args))
        inner = getattr(found, "error", None)
        yield from texts_of(inner)
        found = found.__cause__


def content_of(file: Path) -> str:
    """The bytes of a file, each as a character."""
    return file.read_bytes().decode("latin-1")

"""Why a client is refused: in words for it, which do not show whether its user exists, and in words for the journal."""

from __future__ import annotations


class SaslRefused(Exception):
    """A mechanism ends with a failure. `answer`: the message for the client, None for Kafka's general one; the text of
    the exception is for the journal. `user`: the name that the client claims."""

    def __init__(self, reason: str, answer: str | None = None, user: str = "") -> None:
        super().__init__(reason)
        self.answer = answer
        self.user = user

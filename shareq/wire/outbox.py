"""The responses of a connection that its socket has not taken yet.

They are kept as they were encoded: in pieces, of which those of record batches are the log's own bytes. So a peer that
asks for much and reads nothing takes no memory for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

SENT_TOGETHER_BYTES = 1 << 18
"""So many bytes are joined to be sent at once."""

_JOINED_PIECES = 256
_SMALL_BYTES = 64
"""So many pieces are joined if they are no larger than this, on the average: less than a batch, which is not copied."""


class Outbox:
    """`size`: in bytes."""

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self.size = 0

    def add(self, pieces: Sequence[bytes], size: int) -> None:
        """Add a response; a small one is one piece from now on."""
        if size <= SENT_TOGETHER_BYTES:
            self._pieces.append(b"".join(pieces))
        else:
            for start in range(0, len(pieces), _JOINED_PIECES):
                some = pieces[start : start + _JOINED_PIECES]
                if sum(map(len, some)) <= len(some) * _SMALL_BYTES:
                    self._pieces.append(b"".join(some))
                else:
                    self._pieces.extend(some)
        self.size += size

    def take(self) -> bytes:
        """The next bytes to send: SENT_TOGETHER_BYTES, and the rest of the piece that reaches so far."""
        pieces, size = [], 0
        while self._pieces and size < SENT_TOGETHER_BYTES:
            pieces.append(self._pieces.popleft())
            size += len(pieces[-1])
        self.size -= size
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def clear(self) -> None:
        self._pieces.clear()
        self.size = 0

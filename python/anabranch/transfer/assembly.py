"""Putting messages together that came in pieces."""

from __future__ import annotations

from typing import TypeAlias

from anabranch.transfer.errors import MessageSizeError
from anabranch.transfer.shapes import Message

Piece: TypeAlias = tuple[bytes, int, bool, int, bool, bool]
"""Payload, stream, whether it is ordered, PPID, whether the message begins with it, whether it ends with it."""


class Assembly:
    """The beginnings of messages that are larger than the receive buffer, and so come in pieces."""

    __slots__ = ("_bytes", "_largest_bytes", "_pieces")

    def __init__(self, largest_bytes: int) -> None:
        self._largest_bytes = largest_bytes
        # The pieces of two messages mix only if these differ in their stream or in whether they are ordered.
        self._pieces: dict[tuple[int, bool], list[bytes]] = {}
        self._bytes = 0

    def add(self, piece: Piece) -> Message | None:
        """The message that this piece completes.

        Raises `MessageSizeError` if what has begun is more than a message may have.
        """
        payload, stream, ordered, ppid, beginning, ending = piece
        if beginning and ending:
            return Message(payload, stream, ordered, ppid)
        pieces = self._pieces.setdefault((stream, ordered), [])
        pieces.append(payload)
        self._bytes += len(payload)
        if self._bytes > self._largest_bytes:
            raise MessageSizeError(
                f"a message on stream {stream} has more than {self._largest_bytes} B; "
                "the peer is to send smaller ones, or this side to set largest_message_bytes"
            )
        if not ending:
            return None
        whole = b"".join(self._pieces.pop((stream, ordered)))
        self._bytes -= len(whole)
        return Message(whole, stream, ordered, ppid)

    def clear(self) -> None:
        """Forgets what has begun."""
        self._pieces.clear()
        self._bytes = 0

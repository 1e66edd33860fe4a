"""Reassembles messages that are delivered in parts."""

from __future__ import annotations

from typing import TypeAlias

from anabranch.transfer.errors import MessageSizeError
from anabranch.transfer.snapshots import Message

MessagePart: TypeAlias = tuple[bytes, int, bool, int, bool, bool]
"""Payload, stream, whether it is ordered, PPID, whether the message begins with it, whether it ends with it."""


class Reassembly:
    """Messages that are larger than the receive buffer, which the native module delivers in parts."""

    __slots__ = ("_bytes", "_largest_bytes", "_parts")

    def __init__(self, largest_bytes: int) -> None:
        self._largest_bytes = largest_bytes
        # The parts of two messages mix only if these differ in their stream or in whether they are ordered.
        self._parts: dict[tuple[int, bool], list[bytes]] = {}
        self._bytes = 0

    def add(self, part: MessagePart) -> Message | None:
        """The message that this part completes.

        Raises `MessageSizeError` if incomplete messages are larger than a message may be.
        """
        payload, stream, ordered, ppid, beginning, ending = part
        if beginning:
            self._give_up(stream)
        if beginning and ending:
            return Message(payload, stream, ordered, ppid)
        parts = self._parts.setdefault((stream, ordered), [])
        parts.append(payload)
        self._bytes += len(payload)
        if self._bytes > self._largest_bytes:
            raise MessageSizeError(
                f"a message on stream {stream} has more than {self._largest_bytes} B; "
                "the peer is to send smaller ones, or this side to set largest_message_bytes"
            )
        if not ending:
            return None
        whole = b"".join(self._parts.pop((stream, ordered)))
        self._bytes -= len(whole)
        return Message(whole, stream, ordered, ppid)

    def _give_up(self, stream: int) -> None:
        # A message in parts has its stream to itself: where another one begins, the peer has abandoned it (RFC 3758).
        for ordered in (True, False):
            self._bytes -= sum(map(len, self._parts.pop((stream, ordered), ())))

    def clear(self) -> None:
        """Discards incomplete messages."""
        self._parts.clear()
        self._bytes = 0

"""Reassembly of messages that are delivered in parts."""

from __future__ import annotations

from typing import TypeAlias

from anabranch.transfer.errors import MessageSizeError
from anabranch.transfer.snapshots import Message

MessagePart: TypeAlias = tuple[bytes, int, bool, int, bool, bool]
"""Payload, stream, `ordered`, PPID, `True` for the first part of a message, `True` for the last part."""


class Reassembly:
    """Reassembly of messages larger than the receive buffer, which the native module delivers in parts."""

    __slots__ = ("_bytes", "_largest_bytes", "_parts")

    def __init__(self, largest_bytes: int) -> None:
        self._largest_bytes = largest_bytes
        # Parts of two messages mix only if the messages differ in stream or in `ordered`.
        self._parts: dict[tuple[int, bool], list[bytes]] = {}
        self._bytes = 0

    def add(self, part: MessagePart) -> Message | None:
        """Adds a part, and returns the message that it completes, if any.

        Raises `MessageSizeError` if incomplete messages exceed the limit for one message.
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
        # A message in parts occupies its stream: when another one begins, the peer has abandoned it (RFC 3758).
        for ordered in (True, False):
            self._bytes -= sum(map(len, self._parts.pop((stream, ordered), ())))

    def clear(self) -> None:
        """Discards incomplete messages."""
        self._parts.clear()
        self._bytes = 0

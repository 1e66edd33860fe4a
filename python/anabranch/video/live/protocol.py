"""Messages of a transmission. Description and packets have a stream each.

1. The sender describes the clip, reliably (`DESCRIPTION_STREAM`).
2. The player answers on the same stream: `ok`, or `no` with the reason. The sender's clock starts with `ok`.
3. Packets follow on `PACKET_STREAM`, unordered, each with its number before its bytes of the bitstream.
4. The sender shuts the association down. If it is aborted, the sender was stopped before its end.
"""

from __future__ import annotations

import struct

from anabranch.errors import VideoError
from anabranch.video.ffmpeg import escaped

DESCRIPTION_STREAM, PACKET_STREAM = 0, 1
STREAMS = 2
LARGEST_ANSWER_BYTES = 1024

_ACCEPTED, _REFUSED = b"ok", b"no "
_MAX_REASON_CHARACTERS = 200
_NUMBER = struct.Struct("!I")
NUMBER_BYTES = _NUMBER.size


def acceptance() -> bytes:
    """Returns the answer to an acceptable description."""
    return _ACCEPTED


def refusal(reason: str) -> bytes:
    """Returns the answer to a description that is refused."""
    return _REFUSED + reason[:_MAX_REASON_CHARACTERS].encode("utf-8")


def check_answer(message: bytes) -> None:
    """Raises `VideoError` with the player's reason unless the player accepts."""
    if message == _ACCEPTED:
        return
    if not message.startswith(_REFUSED):
        raise VideoError("the peer answers as no player does: start `anabranch video play` there")
    said = message[len(_REFUSED) :].decode("utf-8", "replace")[:_MAX_REASON_CHARACTERS]
    raise VideoError(f"the player refuses the clip: {escaped(said)}")


def packet_message(number: int, payload: bytes | memoryview) -> bytes:
    """Returns a packet as a message."""
    return _NUMBER.pack(number) + bytes(payload)


def read_packet(message: bytes) -> tuple[int, memoryview]:
    """Returns number and bytes of a packet. Raises `VideoError` if the message is too short."""
    if len(message) <= NUMBER_BYTES:
        raise VideoError(f"the sender broke the protocol: a packet of {len(message)} bytes")
    return _NUMBER.unpack_from(message)[0], memoryview(message)[NUMBER_BYTES:]

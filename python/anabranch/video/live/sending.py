"""Sender that hands the packets of each frame over at its time, and lets the endpoint abandon expired ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from anabranch.errors import VideoError
from anabranch.transfer import Association, Statistics
from anabranch.video.coded import CodedClip
from anabranch.video.frame import Frame
from anabranch.video.live.description import Description
from anabranch.video.live.protocol import DESCRIPTION_STREAM, PACKET_STREAM, STREAMS, check_answer, packet_message
from anabranch.video.packets import Packet
from anabranch.video.reliability import Limit, LimitKind, Reliability

# Time limit of a player to read a description and to answer.
_ANSWER_LIMIT_S = 30.0


@dataclass(slots=True)
class Sent:
    """Progress of a sender. `overdue_packets` were never handed over, since their lifetime had passed before.

    `abandoned_messages` counts messages that the endpoint abandoned. Parts of them may have arrived.
    """

    frames: int = 0
    packets: int = 0
    overdue_packets: int = 0
    abandoned_messages: int = 0
    is_complete: bool = False


class ClipSender:
    """Sender of one clip over one association. `sent` can be read at any time."""

    def __init__(self, clip: CodedClip, deadline_ms: float, reliability: Reliability) -> None:
        self._clip = clip
        self._description = Description.of(clip, deadline_ms)
        self._reliability = reliability
        self.sent = Sent()

    async def run(self, association: Association, step: Callable[[], object]) -> None:
        """Sends all packets; the caller shuts down. `step` is called after each frame.

        Raises `VideoError` if the player refuses the clip or supports no messages with a limit, and `TransferError`.
        """
        self._check_peer(association)
        await self._agree(association)
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        for number, packets in groupby(self._clip.packets, key=lambda packet: packet.frame):
            frame = self._clip.frames[number]
            await asyncio.sleep(max(begun_s + frame.time_ms / 1000 - loop.time(), 0))
            await self._hand_over(association, frame, list(packets), begun_s)
            step()

    def end(self, statistics: Statistics) -> None:
        """Records the number of messages that the endpoint abandoned. Call it once nothing is outstanding."""
        counts = (
            statistics.abandoned_by_lifetime,
            statistics.abandoned_by_retransmissions,
            statistics.abandoned_by_priority,
        )
        self.sent.abandoned_messages = sum(sum(count) for count in counts)
        self.sent.is_complete = True

    def _check_peer(self, association: Association) -> None:
        limited = any(limit.kind is not LimitKind.NONE for limit in self._reliability.values())
        if limited and not association.supports_partial_reliability:
            raise VideoError(f"{association.peer}: abandons no message (RFC 3758): send with --reliability full")
        if association.streams < STREAMS:
            raise VideoError(f"{association.peer}: takes {association.streams} streams, and video needs {STREAMS}")

    async def _agree(self, association: Association) -> None:
        await association.send(self._description.encode(), stream=DESCRIPTION_STREAM)
        try:
            answer = await asyncio.wait_for(association.recv(), _ANSWER_LIMIT_S)
        except asyncio.TimeoutError:
            raise VideoError(f"{association.peer}: no answer within {_ANSWER_LIMIT_S:g} s: is it a player?") from None
        if answer is None:
            raise VideoError(f"{association.peer}: ended without an answer: is it a player?")
        check_answer(answer.payload)

    async def _hand_over(self, association: Association, frame: Frame, packets: list[Packet], begun_s: float) -> None:
        limit = self._reliability[frame.type]
        payload = memoryview(self._clip.coded[frame.number].bytes_of(self._clip.stream))
        at = 0
        for packet in packets:
            message = packet_message(packet.number, payload[at : at + packet.size_bytes])
            at += packet.size_bytes
            late_ms = (asyncio.get_running_loop().time() - begun_s) * 1000 - frame.time_ms
            options = _send_options(limit, late_ms)
            if options is None:
                self.sent.overdue_packets += 1
                continue
            await association.send(message, stream=PACKET_STREAM, ordered=False, context=packet.number, **options)
            self.sent.packets += 1
        self.sent.frames += 1


def _send_options(limit: Limit, late_ms: float) -> dict[str, Any] | None:
    """Returns the limit as arguments of `Association.send`; `None` if the lifetime has passed.

    Lifetimes count from the frame's time, even if a full send buffer has delayed the sender.
    """
    if limit.kind is LimitKind.NONE:
        return {}
    if limit.kind is LimitKind.RETRANSMISSIONS:
        return {"max_retransmissions": int(limit.value)}
    if limit.kind is LimitKind.PRIORITY:
        return {"priority": int(limit.value)}
    left_ms = limit.value - late_ms
    return {"lifetime_s": left_ms / 1000} if left_ms > 0 else None

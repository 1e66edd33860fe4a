"""Reception of a clip: the arrival time of each packet, and its bytes at their place of the bitstream.

Times count from the hand-over of the first frame, on the assumption that the first packet took no time. So frame `d` of
the order of display is shown `deadline` + (`d` + reordering) / rate after the first packet, since the player knows only
its own clock. A simulation, which knows both clocks, counts the delay of that packet as well. A packet that took less
time than the first, over another path, counts as one that took none.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import VideoError
from anabranch.transfer import Message
from anabranch.video.fates import Delivery, Fate, Playout, deliveries
from anabranch.video.live.description import Description
from anabranch.video.live.protocol import PACKET_STREAM, read_packet


@dataclass(slots=True)
class Progress:
    """Counts of frames whose playout has passed, by their completeness. Dependencies are not considered yet."""

    in_time: int = 0
    late: int = 0
    missing: int = 0

    @property
    def due(self) -> int:
        """Number of frames whose playout has passed."""
        return self.in_time + self.late + self.missing


class Reception:
    """Receives packets of one clip. A sender that sends anything else is refused; its data is not trusted.

    The bytes go to the file `payloads`, which never exceeds the described bitstream.
    """

    def __init__(self, description: Description, playout: Playout, payloads: Path) -> None:
        self.description = description
        self.playout = playout
        self._file = os.open(payloads, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        self._payloads = payloads
        self._received_s = array("d", [math.nan]) * len(description.packets)
        self._missing_packets = array("L", (0 for _ in description.frames))
        self._completed_ms = array("d", [math.nan]) * len(description.frames)
        self._frame_offsets = array("Q", _offsets(description))
        for packet in description.packets:
            self._missing_packets[packet.frame] += 1
        self._due_ms = array("d", playout.due_ms(description.frames))
        self._first_packets = _first_packets(description)
        self._origin_s: float | None = None
        self._next_due = 0
        # Playout of the last frame.
        self.last_playout_ms = max(self._due_ms)
        self.packets = 0
        self.progress = Progress()

    def close(self) -> None:
        """Removes the file of received bytes. The caller has copied the needed bytes."""
        os.close(self._file)
        self._payloads.unlink(missing_ok=True)

    def take(self, message: Message, now_s: float) -> None:
        """Stores a message that arrived at `now_s` of any monotonic clock.

        Raises `VideoError` for a message that is no packet of the description, or a duplicate of one.
        """
        if message.stream != PACKET_STREAM:
            raise VideoError(f"the sender broke the protocol: a message on stream {message.stream} amid the packets")
        number, payload = read_packet(message.payload)
        packets = self.description.packets
        if number >= len(packets):
            raise VideoError(f"the sender broke the protocol: packet {number} of {len(packets)}")
        packet = packets[number]
        if len(payload) != packet.size_bytes:
            raise VideoError(
                f"the sender broke the protocol: packet {number} has {len(payload)} bytes, not {packet.size_bytes}"
            )
        if not math.isnan(self._received_s[number]):
            raise VideoError(f"the sender broke the protocol: packet {number} came twice")
        before = (number - self._first_packets[packet.frame]) * self.description.payload_bytes
        os.pwrite(self._file, payload, self._frame_offsets[packet.frame] + before)
        self._note(number, packet.frame, now_s)

    def _note(self, number: int, frame: int, now_s: float) -> None:
        if self._origin_s is None:
            self._origin_s = now_s - self.description.frames[frame].time_ms / 1000
        self._received_s[number] = now_s
        self.packets += 1
        self._missing_packets[frame] -= 1
        if self._missing_packets[frame] == 0:
            self._completed_ms[frame] = self._arrival_ms(now_s, frame)

    def now_ms(self, now_s: float) -> float:
        """Returns the time on the clock of the trace. The clock starts with the first packet."""
        return 0.0 if self._origin_s is None else (now_s - self._origin_s) * 1000

    def _arrival_ms(self, received_s: float, frame: int) -> float:
        return max(round(self.now_ms(received_s), 3), self.description.frames[frame].time_ms)

    def arrivals_ms(self) -> dict[int, float]:
        """Returns the arrival of each received packet, on the clock of the trace, at least its frame's hand-over."""
        return {
            packet.number: self._arrival_ms(self._received_s[packet.number], packet.frame)
            for packet in self.description.packets
            if not math.isnan(self._received_s[packet.number])
        }

    def received_ms(self) -> dict[int, float]:
        """Returns the same times unclamped: a packet that was faster than the first may precede its frame."""
        return {
            number: round(self.now_ms(received_s), 3)
            for number, received_s in enumerate(self._received_s)
            if not math.isnan(received_s)
        }

    def advance(self, now_s: float) -> Progress:
        """Counts the frames whose playout has passed by now, in coding order."""
        now_ms = self.now_ms(now_s)
        while self._next_due < len(self._due_ms) and self._due_ms[self._next_due] < now_ms:
            completed_ms = self._completed_ms[self._next_due]
            if math.isnan(completed_ms):
                self.progress.missing += 1
            elif completed_ms > self._due_ms[self._next_due]:
                self.progress.late += 1
            else:
                self.progress.in_time += 1
            self._next_due += 1
        return self.progress

    def deliveries(self) -> list[Delivery]:
        """Returns the fate of every frame, by the packets that have arrived."""
        description = self.description
        return deliveries(description.frames, description.packets, self.arrivals_ms(), self.playout)

    def played_frames(self, now_s: float) -> int:
        """Returns the number of frames, in coding order, shown by now, up to a gap in the order of display."""
        latest_display, played = -1, 0
        now_ms = self.now_ms(now_s)
        for frame in self.description.frames:
            if self._origin_s is None or self._due_ms[frame.number] > now_ms:
                break
            latest_display = max(latest_display, frame.display)
            if latest_display == frame.number:
                played = frame.number + 1
        return played

    def good_stream(self, delivered: list[Delivery]) -> Iterator[bytes]:
        """Yields the received bitstream of the good frames, frame by frame."""
        for each in delivered:
            if each.fate is Fate.GOOD:
                yield os.pread(self._file, each.frame.size_bytes, self._frame_offsets[each.frame.number])


def _offsets(description: Description) -> Iterator[int]:
    at = 0
    for size_bytes in description.sizes_bytes:
        yield at
        at += size_bytes


def _first_packets(description: Description) -> array[int]:
    first = array("L", [0]) * len(description.frames)
    for packet in reversed(description.packets):
        first[packet.frame] = packet.number
    return first

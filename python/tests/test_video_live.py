"""Descriptions and packets of clips over sockets, from honest and hostile senders."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from anabranch.errors import VideoError
from anabranch.transfer import Association, AssociationLostError, Listener, Message
from anabranch.video import CodedClip, read_arrivals, write_arrivals
from anabranch.video.fates import Fate
from anabranch.video.frame import FrameType
from anabranch.video.live import description as description_module
from anabranch.video.live.description import Description, read_description
from anabranch.video.live.playing import Ending, Player, _part
from anabranch.video.live.protocol import (
    DESCRIPTION_STREAM,
    PACKET_STREAM,
    acceptance,
    check_answer,
    packet_message,
    refusal,
)
from anabranch.video.live.reception import Reception
from anabranch.video.live.sending import _send_options
from anabranch.video.reliability import Limit, LimitKind, read_reliability

DEADLINE_MS = 150.0


def said(make: Callable[[], object]) -> str:
    with pytest.raises(VideoError) as refused:
        make()
    assert str(refused.value).isprintable()
    return str(refused.value)


@pytest.fixture
def description(coded_clip: CodedClip) -> Description:
    return Description.of(coded_clip, DEADLINE_MS)


@pytest.fixture
def reception(description: Description, tmp_path: Path) -> Iterator[Reception]:
    made = Reception(description, description.playout(), tmp_path / "payloads")
    yield made
    made.close()


def message(clip: CodedClip, number: int) -> Message:
    """Returns a packet as the sender makes it."""
    packet = clip.packets[number]
    frame = clip.coded[packet.frame].bytes_of(clip.stream)
    first = next(other.number for other in clip.packets if other.frame == packet.frame)
    at = (number - first) * clip.manifest["payload_bytes"]
    return Message(packet_message(number, frame[at : at + packet.size_bytes]), PACKET_STREAM, ordered=False)


def with_header(encoded: bytes, **fields: object) -> bytes:
    header, _, table = encoded.partition(b"\n")
    return json.dumps({**json.loads(header), **fields}).encode() + b"\n" + table


def test_a_description_is_read_as_it_was_written(coded_clip: CodedClip, description: Description) -> None:
    read = read_description(description.encode())
    assert read == description
    assert read.frames == coded_clip.frames
    assert read.packets == coded_clip.packets
    assert read.bitstream_bytes == len(coded_clip.stream)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "anabranch-video-live-1"}, "`format` is not"),
        ({"clip": 7}, "`clip` is not text"),
        ({"clip": "x" * 129}, "`clip` is not text"),
        ({"width": 0}, "`width` is not a whole number"),
        ({"width": True}, "`width` is not a whole number"),
        ({"width": 1 << 40}, "`width` is not a whole number"),
        ({"width": 177}, "odd side"),
        ({"width": 4096, "height": 4096}, "outside 32x32"),
        ({"rate": "1/0"}, "`rate` is not a fraction"),
        ({"rate": "9" * 4000}, "no header"),
        ({"rate": 30}, "`rate` is not a fraction"),
        ({"rate": "1001"}, "a rate of 1001"),
        ({"rate": "1/100000"}, "more than 86400 s"),
        ({"payload_bytes": 0}, "`payload_bytes` is not a whole number"),
        ({"payload_bytes": 65_001}, "`payload_bytes` is not a whole number"),
        ({"deadline_ms": -1}, "a deadline of -1 ms"),
        ({"deadline_ms": float("nan")}, "`deadline_ms` is not a time"),
        ({"deadline_ms": 10**400}, "`deadline_ms` is not a time"),
        ({"deadline_ms": -(10**400)}, "`deadline_ms` is not a time"),
        ({"deadline_ms": None}, "`deadline_ms` is not a time"),
        ({"bitstream_sha256": "../../etc/passwd"}, "`bitstream_sha256` is not a SHA-256"),
    ],
)
def test_a_description_out_of_bounds_is_refused(
    description: Description, fields: dict[str, object], message: str
) -> None:
    assert message in said(lambda: read_description(with_header(description.encode(), **fields)))


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        (b"", "has no header"),
        (b"{}" * 4000, "has no header"),
        (b"{}\n", "`format` is not"),
        (b"[" * 3000 + b"\n", "not JSON"),
        (b"\xff\n", "not JSON"),
        (b"[1]\n", "`format` is not"),
    ],
)
def test_invalid_description_is_refused(encoded: bytes, message: str) -> None:
    assert message in said(lambda: read_description(encoded))


def test_truncated_empty_or_mistyped_table_of_frames_is_refused(description: Description) -> None:
    encoded = description.encode()
    header = encoded[: encoded.index(b"\n") + 1]
    assert "no table of" in said(lambda: read_description(header))
    assert "no table of" in said(lambda: read_description(encoded[:-1]))
    assert "of no type I, P or B" in said(lambda: read_description(header + b"S\x00\x00\x00\x01" + bytes(4)))
    assert "a frame of 0 bytes" in said(lambda: read_description(header + b"I\x00\x00\x00\x00" + bytes(4)))
    assert "more than 1073741824 bytes" in said(lambda: read_description(header + b"I\xff\xff\xff\xff" + bytes(4)))


def test_frames_and_packets_of_a_description_are_bounded(
    description: Description, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(description, payload_bytes=1)
    monkeypatch.setattr(description_module, "MAX_LIVE_PACKETS", 1000)
    assert "packets are more than 1000" in said(lambda: read_description(small.encode()))
    monkeypatch.setattr(description_module, "MAX_FRAMES", 10)
    assert "no table of 1 to 10 frames" in said(lambda: read_description(description.encode()))


def test_a_damaged_description_is_refused_or_within_its_bounds(description: Description) -> None:
    chance = random.Random(4)
    encoded = description.encode()
    refused = 0
    for _ in range(200):
        damaged = bytearray(encoded)
        for _ in range(chance.randint(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        del damaged[chance.randrange(len(damaged)) if chance.random() < 0.2 else len(damaged) :]
        try:
            read = read_description(bytes(damaged))
        except VideoError:
            refused += 1
        else:
            assert read.bitstream_bytes <= 1 << 30
            assert len(read.packets) <= 1_000_000
    assert 50 < refused < 200


def test_answer_is_shown_without_control_characters() -> None:
    check_answer(acceptance())
    assert said(lambda: check_answer(refusal("too \x1b[31mlarge"))) == "the player refuses the clip: too \\x1b[31mlarge"
    assert len(said(lambda: check_answer(b"no " + b"x" * 1000))) < 300
    assert "start `anabranch video play` there" in said(lambda: check_answer(b"\x00" * 50))


def test_all_packets_in_any_order_make_up_the_bitstream(coded_clip: CodedClip, reception: Reception) -> None:
    numbers = list(range(len(coded_clip.packets)))
    # All at once. The first to arrive sets the clock, and is the first of the clip here.
    for number in [0, *random.Random(1).sample(numbers[1:], len(numbers) - 1)]:
        reception.take(message(coded_clip, number), 1000.0)
    delivered = reception.deliveries()
    assert {each.fate for each in delivered} == {Fate.GOOD}
    assert b"".join(reception.good_stream(delivered)) == coded_clip.stream
    assert reception.packets == len(numbers)


def test_the_clock_starts_with_the_first_packet_as_if_it_had_taken_no_time(
    coded_clip: CodedClip, reception: Reception
) -> None:
    third = coded_clip.packets[3]
    time_ms = coded_clip.frames[third.frame].time_ms
    reception.take(message(coded_clip, 3), 50.0)
    reception.take(message(coded_clip, 4), 50.2)
    assert reception.arrivals_ms() == {3: time_ms, 4: pytest.approx(time_ms + 200)}


def test_a_packet_that_was_faster_than_the_first_took_no_time(
    coded_clip: CodedClip, reception: Reception, tmp_path: Path
) -> None:
    reception.take(message(coded_clip, 0), 50.0)
    reception.take(message(coded_clip, 5), 50.001)
    handed_over_ms = coded_clip.frames[coded_clip.packets[5].frame].time_ms
    assert reception.received_ms()[5] == 1.0
    assert reception.arrivals_ms()[5] == handed_over_ms > 1.0
    # `anabranch video evaluate` accepts the file, since no packet arrives before it is sent.
    write_arrivals(tmp_path / "a.csv", reception.arrivals_ms())
    read = read_arrivals(tmp_path / "a.csv", coded_clip.frames, coded_clip.packets)
    assert read == reception.arrivals_ms()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda whole: replace(whole, stream=0), "a message on stream 0 amid the packets"),
        (lambda whole: replace(whole, payload=whole.payload[:4]), "a packet of 4 bytes"),
        (lambda whole: replace(whole, payload=b""), "a packet of 0 bytes"),
        (lambda whole: replace(whole, payload=whole.payload + b"x"), "not "),
        (lambda whole: replace(whole, payload=whole.payload[:-1]), "not "),
        (lambda whole: replace(whole, payload=b"\xff\xff\xff\xff" + whole.payload[4:]), "packet 4294967295 of"),
    ],
)
def test_packet_of_another_clip_is_refused(
    coded_clip: CodedClip, reception: Reception, change: Callable[[Message], Message], complaint: str
) -> None:
    assert complaint in said(lambda: reception.take(change(message(coded_clip, 0)), 1.0))
    assert reception.arrivals_ms() == {}


def test_a_packet_that_comes_twice_is_refused(coded_clip: CodedClip, reception: Reception) -> None:
    reception.take(message(coded_clip, 0), 1.0)
    assert "packet 0 came twice" in said(lambda: reception.take(message(coded_clip, 0), 1.0))


def test_random_messages_never_fill_more_than_the_bitstream(
    coded_clip: CodedClip, reception: Reception, tmp_path: Path
) -> None:
    chance = random.Random(9)
    for _ in range(3000):
        number = chance.randrange(2 * len(coded_clip.packets))
        size_bytes = chance.choice([4, 5, 100, 1456, 60_000])
        payload = number.to_bytes(4, "big") + bytes(size_bytes - 4)
        try:
            reception.take(Message(payload, chance.choice([0, 1, 1, 1])), chance.random())
        except VideoError:
            continue
    assert (tmp_path / "payloads").stat().st_size <= len(coded_clip.stream)


def test_progress_counts_frames_whose_playout_has_passed(coded_clip: CodedClip, reception: Reception) -> None:
    # One packet for a frame, except for I frames; frame 1 arrives late, frame 2 never.
    by_frame = {packet.frame: packet.number for packet in coded_clip.packets}
    for packet in coded_clip.packets:
        frame = coded_clip.frames[packet.frame]
        if packet.frame != 2:
            late_s = 1.0 if packet.number == by_frame[1] else 0.01 if packet.number else 0.0
            reception.take(message(coded_clip, packet.number), 10 + frame.time_ms / 1000 + late_s)
    progress = reception.advance(10 + 0.300)
    assert (progress.in_time, progress.late, progress.missing) == (2, 1, 1)
    progress = reception.advance(20)
    assert (progress.in_time, progress.late, progress.missing, progress.due) == (54, 1, 1, 56)


def test_of_an_interrupted_clip_whole_stretches_were_played(coded_clip: CodedClip, reception: Reception) -> None:
    assert reception.played_frames(100.0) == 0
    reception.take(message(coded_clip, 0), 10.0)
    for now_s, played in ((10.0, 0), (10.2, 1), (10.3, 4), (10.4, 7), (12.0, 55), (13.0, 56)):
        assert reception.played_frames(now_s) == played
        shown = sorted(frame.display for frame in coded_clip.frames[:played])
        assert shown == list(range(played))


class EndedAssociation:
    """Association that the sender has shut down, with its last packets lost."""

    async def recv(self) -> None:
        return None

    async def shutdown(self) -> None:
        raise AssociationLostError("the peer stopped answering", "peer-unreachable")


def test_a_clip_is_complete_even_if_the_end_of_its_association_is_lost(reception: Reception, tmp_path: Path) -> None:
    player = Player(tmp_path / "other", None, lambda *_: None, lambda _: None)
    player.reception = reception

    async def scene() -> None:
        association = cast(Association, EndedAssociation())
        await player._receive(association, reception.description)
        await _part(association)

    asyncio.run(scene())
    assert player.ending is Ending.COMPLETE
    assert player.played_frames == 56


class VanishingAssociation:
    """Sender that describes a clip and disconnects before it is accepted."""

    peer = "192.0.2.1:9899"

    def __init__(self, description: Description) -> None:
        self._description = description

    async def recv(self) -> Message:
        return Message(self._description.encode(), DESCRIPTION_STREAM)

    async def send(self, *_: object, **__: object) -> None:
        raise AssociationLostError("the peer \x1b[2J aborted", "aborted-by-peer")

    def abort(self) -> None:
        pass


class VanishingSenders:
    """Several such senders, then Ctrl-C after the player has refused all of them."""

    def __init__(self, description: Description, senders: int, refused: list[str]) -> None:
        self._description = description
        self._senders = self._left = senders
        self._refused = refused

    async def accept(self) -> VanishingAssociation:
        if self._left == 0:
            while len(self._refused) < self._senders:
                await asyncio.sleep(0)
            raise KeyboardInterrupt
        self._left -= 1
        return VanishingAssociation(self._description)


def test_senders_that_vanish_after_description_leave_no_state(description: Description, tmp_path: Path) -> None:
    said: list[str] = []

    def say(text: str) -> None:
        assert not (tmp_path / "payloads").exists()
        said.append(text)

    player = Player(tmp_path / "payloads", None, lambda *_: None, say)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(player.run(cast(Listener, VanishingSenders(description, 3, said))))
    assert player.reception is None
    assert len(said) == 3
    assert all(line.isprintable() for line in said)


def test_limits_are_read_for_all_frames_and_by_type() -> None:
    default = read_reliability([], DEADLINE_MS)
    assert set(default.values()) == {Limit(LimitKind.LIFETIME, 150)}
    chosen = read_reliability(["I=full", "retransmissions:2", "B=lifetime:0.1s"], DEADLINE_MS)
    assert {kind.value: str(limit) for kind, limit in chosen.items()} == {
        "I": "full",
        "P": "retransmissions:2",
        "B": "lifetime:100ms",
    }
    some = read_reliability(["P=priority:7"], DEADLINE_MS)
    assert [str(some[kind]) for kind in FrameType] == ["lifetime:150ms", "priority:7", "lifetime:150ms"]


@pytest.mark.parametrize(
    "text",
    ["", "fully", "lifetime:150", "lifetime:0ms", "lifetime:2000000s", "retransmissions:1.5", "priority:4294967296",
     "X=full", "I=P=full", "retransmissions:2ms", "\x1b[0m"],
)  # fmt: skip
def test_invalid_limit_text_is_refused(text: str) -> None:
    said(lambda: read_reliability([text], DEADLINE_MS))


def test_two_limits_for_the_same_frames_are_refused() -> None:
    assert "omit one of them" in said(lambda: read_reliability(["I=full", "I=full"], DEADLINE_MS))


def test_lifetime_starts_at_the_time_of_the_frame() -> None:
    lifetime = Limit(LimitKind.LIFETIME, 150)
    assert _send_options(lifetime, 50) == {"lifetime_s": pytest.approx(0.1)}
    assert _send_options(lifetime, 150) is None
    assert _send_options(Limit(LimitKind.RETRANSMISSIONS, 0), 1e6) == {"max_retransmissions": 0}
    assert _send_options(Limit(LimitKind.PRIORITY, 3), 0) == {"priority": 3}
    assert _send_options(Limit(LimitKind.NONE), 1e6) == {}

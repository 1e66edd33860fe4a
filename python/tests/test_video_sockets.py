"""Clip sent to a player over loopback: complete, through a lossy relay, interrupted, and by hostile senders."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transfer_rig import HANGS_AFTER_S, environment

import anabranch
from anabranch import video
from anabranch.transfer import AssociationLostError
from anabranch.video import CodedClip, Coding, ReadOptions, RunArrivals
from anabranch.video.encoder import decode
from anabranch.video.fates import Fate
from anabranch.video.live.playing import LARGEST_MESSAGE_BYTES, Ending, Player
from anabranch.video.live.protocol import DESCRIPTION_STREAM, PACKET_STREAM, packet_message
from anabranch.video.live.results import LABEL, QUALITY, _rebuilt, write_played, write_quality
from anabranch.video.live.sending import ClipSender
from anabranch.video.metrics import METRICS
from anabranch.video.rebuild import rebuild, shown_frames
from anabranch.video.reliability import read_reliability

DEADLINE_MS = 20_000.0
LOOPBACK = "127.0.0.0/8"


@pytest.fixture(scope="module")
def fast_clip(tmp_path_factory: pytest.TempPathFactory) -> CodedClip:
    """Clip of 19 frames with several packets each, which take less than a tenth of a second."""
    return video.write_coded(
        "photographs",
        tmp_path_factory.mktemp("fast"),
        reading=ReadOptions(frames=19, rate=Fraction(300)),
        coding=Coding(quantiser=4),
        payload_bytes=500,
    )


@pytest.fixture(scope="module")
def long_clip(tmp_path_factory: pytest.TempPathFactory) -> CodedClip:
    """Clip of 91 frames in a third of a second, with enough packets that some are lost."""
    return video.write_coded(
        "photographs",
        tmp_path_factory.mktemp("long"),
        reading=ReadOptions(frames=91, rate=Fraction(300)),
        payload_bytes=500,
    )


@pytest.fixture(scope="module")
def slow_clip(tmp_path_factory: pytest.TempPathFactory) -> CodedClip:
    """Clip of nearly two minutes: a test that waits for its end hangs."""
    return video.write_coded(
        "synthetic", tmp_path_factory.mktemp("slow"), reading=ReadOptions(frames=1000, size=(64, 48), rate=Fraction(9))
    )


def within_limit(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, HANGS_AFTER_S))


async def send(clip: CodedClip, to: list[str], reliability: list[str], **settings: Any) -> ClipSender:
    sender = ClipSender(clip, DEADLINE_MS, read_reliability(reliability, DEADLINE_MS))
    async with anabranch.connect(to, **settings) as association:
        await sender.run(association, lambda: None)
    sender.end(await association.statistics())
    return sender


async def play(clip: CodedClip, player: Player, reliability: list[str], **settings: Any) -> ClipSender:
    """Sends a clip to a player over two paths of loopback."""
    listening = anabranch.listen(
        ["127.0.0.1:0", "127.0.0.2:0"], largest_message_bytes=LARGEST_MESSAGE_BYTES, **settings
    )
    async with listening as listener:
        playing = asyncio.create_task(player.run(listener))
        sender = await send(clip, listener.addresses, reliability, local=["127.0.1.1", "127.0.1.2"], **settings)
        await playing
    return sender


def new_player(folder: Path, said: list[str] | None = None) -> Player:
    lines = [] if said is None else said
    return Player(folder / ".received.part", None, lambda *_: None, lines.append)


@pytest.mark.parametrize("scheme", anabranch.schemes().schemes.names)
def test_without_loss_every_scheme_has_exactly_the_quality_of_coding(
    fast_clip: CodedClip, tmp_path: Path, scheme: str
) -> None:
    player = new_player(tmp_path)
    within_limit(_complete(fast_clip, player, scheme))
    assert player.reception is not None
    assert player.ending is Ending.COMPLETE
    played = write_played(player, tmp_path)
    # The received bitstream equals that of the encoder, so that decoding it gives exactly the quality of coding.
    assert (tmp_path / "received.m4v").read_bytes() == fast_clip.stream
    assert played.measures is not None
    assert played.measures.decodable_ratio == 1
    player.reception.close()
    assert not (tmp_path / ".received.part").exists()


async def _complete(clip: CodedClip, player: Player, scheme: str) -> None:
    sender = await play(clip, player, ["full"], scheme=scheme)
    assert sender.sent.is_complete
    assert (sender.sent.packets, sender.sent.overdue_packets) == (len(clip.packets), 0)


def test_with_the_senders_folder_quality_is_that_of_an_evaluation(fast_clip: CodedClip, tmp_path: Path) -> None:
    player = new_player(tmp_path)
    within_limit(_complete(fast_clip, player, "bonded"))
    assert player.reception is not None
    evaluation = write_quality(player.reception, write_played(player, tmp_path), fast_clip, tmp_path, pictures=False)
    player.reception.close()
    quality = evaluation.runs[0].quality
    assert quality is not None
    for metric in METRICS:
        assert np.array_equal(quality.frames[metric], evaluation.coding.frames[metric])
    assert json.loads((tmp_path / QUALITY / "summary.json").read_text())["runs"][LABEL]["decodable_frame_ratio"] == 1


@contextmanager
def program(*words: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Runs a command, and kills it if it has not ended."""
    # Not started by its module name, since a shell in the background may have disabled Ctrl-C.
    start = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    text = f"{start}from anabranch.command.dispatch import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", text, *map(str, words)]
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def address_of(process: subprocess.Popen[str], stream: Any) -> str:
    """Returns the address that a program prints when it listens."""
    for line in stream:
        if found := re.search(r"listening on ([\d.]+:\d+)", line):
            return found[1]
    raise AssertionError("it does not listen")


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=HANGS_AFTER_S)
    return process.returncode, out, err


def test_through_a_relay_with_loss_frames_are_lost_and_the_rest_is_decoded(
    long_clip: CodedClip, tmp_path: Path
) -> None:
    played = tmp_path / "played"
    words = ["--listen", "127.0.0.1:0", "--from", LOOPBACK, "--reference", long_clip.folder, "--out", played, "--json"]
    with program("video", "play", *words) as player:
        target = address_of(player, player.stderr)
        link = "rate=50Mbit,delay=2ms,loss=20%,queue=1000p,reverse=(delay=2ms)"
        with program("relay", "--listen", "127.0.0.11:0", "--to", target, "--link", link) as relay:
            via = address_of(relay, relay.stdout)
            to = ("--to", via, "--scheme", "sctp", "--reliability", "I=full", "--reliability", "retransmissions:0")
            sending = ("video", "send", long_clip.folder, target, *to)
            with program(*sending, "--deadline", "20s", "--json") as sender:
                status, out, err = ended(sender)
                assert (status, json.loads(out)["frames_sent"]) == (0, 91), err
        status, out, err = ended(player)
    assert status == 0, err
    summary = json.loads(out)
    assert summary["ending"] == "complete"
    assert summary["packets_received"] < summary["packets"]
    fates = {kind: summary["frames"][kind] for kind in "IPB"}
    assert fates["I"] == {"good": 11, "lost": 0, "late": 0, "undecodable": 0}
    assert sum(fates[kind]["lost"] for kind in "PB") > 0
    _check_quality(long_clip, played, summary)


def _check_quality(clip: CodedClip, played: Path, summary: dict[str, Any]) -> None:
    """Checks that an evaluation of the arrivals has the fates and the quality that the player printed."""
    found = video.evaluate(clip, [RunArrivals(LABEL, played / "arrivals.csv")], DEADLINE_MS)
    run = found.runs[0]
    assert run.measures.decodable_ratio == summary["decodable_frame_ratio"]
    assert run.quality is not None
    assert summary["quality"]["runs"][LABEL]["psnr_db"] == run.quality.mean("psnr_db")
    assert run.quality.mean("psnr_db") < found.coding.mean("psnr_db")
    assert (played / QUALITY / "received.mp4").stat().st_size > 0


def test_player_decodes_the_same_frames_as_an_evaluation(fast_clip: CodedClip, tmp_path: Path) -> None:
    player = new_player(tmp_path)
    within_limit(_complete(fast_clip, player, "bonded"))
    reception = player.reception
    assert reception is not None
    # As if two P frames and a B frame had been lost.
    for number, packet in enumerate(fast_clip.packets):
        if packet.frame in (1, 8, 13):
            reception._received_s[number] = float("nan")
    delivered = write_played(player, tmp_path).deliveries
    good = sorted(each.frame.display for each in delivered if each.fate is Fate.GOOD)
    assert 0 < len(good) < 19
    work = tmp_path / "work"
    work.mkdir()
    shown = _rebuilt(reception.description, delivered, good, tmp_path / "received.m4v", work)
    whole = decode(fast_clip.folder / "stream.m4v", fast_clip.source, tmp_path / "whole.yuv")
    expected = rebuild(whole, shown_frames(delivered), tmp_path / "expected.yuv")
    assert np.array_equal(shown.samples(), expected.samples())
    reception.close()


def test_ctrl_c_at_the_player_keeps_played_frames(slow_clip: CodedClip, tmp_path: Path) -> None:
    played = tmp_path / "played"
    words = ["--listen", "127.0.0.1:0", "--from", LOOPBACK, "--out", played, "--deadline", "100ms"]
    with program("video", "play", *words) as player:
        target = address_of(player, player.stderr)
        with program("video", "send", slow_clip.folder, target) as sender:
            wait_for_bytes(played / ".received.part")
            player.send_signal(signal.SIGINT)
            status, out, err = ended(player)
            assert status == 130, err
            sender_status, _, sender_err = ended(sender)
            assert sender_status == 1
            assert "abort" in sender_err
    assert re.match(r"\d+ of 1000 frames played", out)
    rows = (played / "arrivals.csv").read_text().splitlines()
    assert rows[0] == "packet,arrival_ms,received_ms"
    assert len(rows) > 1
    assert json.loads((played / "reception.json").read_text())["ending"] == "interrupted"
    assert not (played / ".received.part").exists()


def test_ctrl_c_at_the_sender_ends_the_player_with_its_frames(slow_clip: CodedClip, tmp_path: Path) -> None:
    played = tmp_path / "played"
    words = ["--listen", "127.0.0.1:0", "--insecure", "--out", played, "--deadline", "100ms", "--no-pictures"]
    with program("video", "play", *words) as player:
        target = address_of(player, player.stderr)
        with program("video", "send", slow_clip.folder, target, "--insecure") as sender:
            wait_for_bytes(played / ".received.part")
            sender.send_signal(signal.SIGINT)
            status, out, err = ended(sender)
            assert status == 130, err
            assert re.search(r"\d+ of 1000 frames sent", out)
            status, _, err = ended(player)
    assert status == 1, err
    assert json.loads((played / "reception.json").read_text())["ending"] == "sender-stopped"
    assert len((played / "arrivals.csv").read_text().splitlines()) > 1


def wait_for_bytes(path: Path) -> None:
    """Waits until the first packet has arrived. The caller ends a program that hangs."""
    import time

    begun_s = time.monotonic()
    while not path.exists() or path.stat().st_size == 0:
        assert time.monotonic() - begun_s < HANGS_AFTER_S, "no packet came"
        time.sleep(0.01)


def test_refused_sender_learns_it_and_the_next_is_played(fast_clip: CodedClip, tmp_path: Path) -> None:
    said: list[str] = []
    player = new_player(tmp_path, said)

    async def scene() -> None:
        async with anabranch.listen("127.0.0.1:0", largest_message_bytes=LARGEST_MESSAGE_BYTES) as listener:
            playing = asyncio.create_task(player.run(listener))
            answers = [await answer_to(listener.addresses, text) for text in (b"GET / HTTP/1.1\r\n\r\n", b"\x1b[2J\n")]
            assert all(answer.startswith(b"no description: ") for answer in answers)
            await send(fast_clip, listener.addresses, ["full"])
            await playing

    within_limit(scene())
    assert player.ending is Ending.COMPLETE
    assert len(said) == 2
    assert all("refused: description: " in line and line.isprintable() for line in said)


async def answer_to(addresses: list[str], text: bytes) -> bytes:
    async with anabranch.connect(addresses) as association:
        await association.send(text, stream=DESCRIPTION_STREAM)
        answer = await association.recv()
        assert answer is not None
        return answer.payload


def test_sender_that_breaks_the_protocol_is_aborted_and_frames_stay(fast_clip: CodedClip, tmp_path: Path) -> None:
    player = new_player(tmp_path)

    async def scene() -> None:
        async with anabranch.listen("127.0.0.1:0", largest_message_bytes=LARGEST_MESSAGE_BYTES) as listener:
            playing = asyncio.create_task(player.run(listener))
            sender = ClipSender(fast_clip, DEADLINE_MS, read_reliability(["full"], DEADLINE_MS))
            association = await anabranch.connect(listener.addresses)
            await sender.run(association, lambda: None)
            await association.send(packet_message(1 << 31, b"beyond"), stream=PACKET_STREAM, ordered=False)
            with pytest.raises(AssociationLostError):
                await association.closed()
            await playing

    within_limit(scene())
    assert player.ending is Ending.PROTOCOL
    assert "packet 2147483648 of" in player.fault
    assert player.reception is not None
    assert player.reception.packets > 0


def test_sender_that_never_begins_is_aborted(
    fast_clip: CodedClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch.video.live.playing.FIRST_PACKET_LIMIT_S", 0.0)
    player = new_player(tmp_path)

    async def scene() -> None:
        async with anabranch.listen("127.0.0.1:0", largest_message_bytes=LARGEST_MESSAGE_BYTES) as listener:
            playing = asyncio.create_task(player.run(listener))
            sender = ClipSender(fast_clip, DEADLINE_MS, read_reliability(["full"], DEADLINE_MS))
            association = await anabranch.connect(listener.addresses)
            await sender._agree(association)
            with pytest.raises(AssociationLostError):
                await association.closed()
            await playing

    within_limit(scene())
    assert player.ending is Ending.TIME_LIMIT
    assert player.played_frames == 0


def test_a_reference_that_is_another_clip_is_refused(
    fast_clip: CodedClip, slow_clip: CodedClip, tmp_path: Path
) -> None:
    words = ["--listen", "127.0.0.1:0", "--from", LOOPBACK, "--out", tmp_path, "--reference", slow_clip.folder]
    with program("video", "play", *words) as player:
        with program("video", "send", fast_clip.folder, address_of(player, player.stderr), "-q") as sender:
            assert ended(sender)[0] == 0
        status, _, err = ended(player)
    assert status == 1
    assert "is not the clip that the sender described" in err
    assert (tmp_path / "arrivals.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["play", "--out", "x", "--keys", "x", "--insecure"], "not allowed with argument --keys"),
        (["play"], "--out"),
        (["play", "--out", "x", "--from", "192.0.2.1", "--sctp-port", "65536"], "not a port from 1 to 65535"),
        (["play", "--out", "x", "--from", "192.0.2.1", "--timeout", "nan"], "is not a time: expected seconds"),
        (["send", "photographs"], "HOST[:PORT]"),
        (["send", "photographs", "192.0.2.1", "--connect-timeout", "0"], "is not between 0.001s and 86400s"),
    ],
)
def test_invalid_command_line_is_reported(words: list[str], message: str) -> None:
    with program("video", *words) as process:
        status, _, err = ended(process)
    assert status == 2
    assert message in err
    assert not os.path.exists("x")


def test_player_without_authorised_peers_prints_the_remedy(tmp_path: Path) -> None:
    with program("video", "play", "--keys", tmp_path / "keys", "--out", tmp_path / "played") as process:
        status, _, err = ended(process)
    assert status == 2
    assert "no peer may connect; run `anabranch keys --keys" in err


def test_silent_sender_does_not_block_others(fast_clip: CodedClip, tmp_path: Path) -> None:
    player = new_player(tmp_path)

    async def scene() -> None:
        async with anabranch.listen("127.0.0.1:0", largest_message_bytes=LARGEST_MESSAGE_BYTES) as listener:
            playing = asyncio.create_task(player.run(listener))
            async with anabranch.connect(listener.addresses) as silent:
                await send(fast_clip, listener.addresses, ["full"])
                await playing
                assert await silent.closed() is None

    with pytest.raises(AssociationLostError):
        within_limit(scene())
    assert player.ending is Ending.COMPLETE


def test_a_wrong_network_is_a_wrong_command_line(tmp_path: Path) -> None:
    with program("video", "play", "--out", tmp_path, "--from", "192.0.2.0/99") as process:
        status, _, err = ended(process)
    assert status == 2
    assert "the prefix length has to be" in err

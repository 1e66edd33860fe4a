"""`anabranch video send` and `anabranch video play`: a clip over real sockets."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.command.status import INPUT_ERROR, INTERRUPTED
from anabranch.command.video_values import deadline_ms, port, seconds, whole_number
from anabranch.errors import VideoError

if TYPE_CHECKING:
    from anabranch.video.coded import CodedClip
    from anabranch.video.live.playing import Player
    from anabranch.video.live.sending import ClipSender, Sent


_DEFAULT_DEADLINE_MS = 150.0
_DEFAULT_PORT = 9899
_SILENCE_S = 15.0

_SEND_EXAMPLES = """\
Examples:
  Send an encoded clip, or encode a clip and send it, over all available paths:
    anabranch video send out/highway player.example
    anabranch video send photographs player.example --frames 300 --deadline 200ms
  Send over two relays, retransmit I frames until they arrive, and never retransmit B frames:
    anabranch video send out/highway player.example --to 127.0.0.11:9899 --to 127.0.0.12:9899 \\
        --reliability I=full --reliability B=retransmissions:0

LIMIT is full, lifetime:TIME, retransmissions:N or priority:N. With I=, P= or B= before it, it applies to frames of
this type only.
exit status: 0 sent to the end, 1 the player could not be reached, refused or was lost, 2 wrong command line, 130 Ctrl-C
"""
_PLAY_EXAMPLES = """\
Examples:
  Accept a sender with an authorised key on all local addresses, or on two of them and from one address only:
    anabranch video play --out out/played
    anabranch video play --listen 192.0.2.1 --listen 198.51.100.1 --from 203.0.113.7 --out out/played
  Compute PSNR, SSIM, VQM and VMAF too, from a copy of the sender's encoded clip:
    anabranch video play --listen 127.0.0.1 --reference out/highway --out out/played

The command plays one clip and exits. Packets are encrypted. Only senders with a key in authorized_keys are accepted:
see `anabranch keys`. With --from, packets from other source addresses get no answer.
exit status: 0 played to the end, 1 the sender stopped, was lost or violated the protocol, or a file cannot be written,
2 wrong command line, 130 Ctrl-C. If playing ends early, the files contain the frames up to that time.
"""


def add_send(commands: Any) -> None:
    """Adds the command `send`."""
    parser = commands.add_parser(
        "send",
        help="send a clip to a player, each frame at its time",
        description="Sends a clip in real time to `anabranch video play`, over one or several paths. The sender "
        "abandons a packet when it reaches the limit that --reliability sets for its frame.",
        epilog=_SEND_EXAMPLES,
    )
    add = parser.add_argument
    add(
        "clip",
        metavar="CLIP|DIR",
        help="a folder of `anabranch video encode --out DIR`, or a clip, which is encoded first",
    )
    add("peer", metavar="HOST[:PORT]", help="the player [port: 9899]")
    add(
        "--deadline",
        metavar="TIME",
        type=deadline_ms,
        default=_DEFAULT_DEADLINE_MS,
        help="time from sending to playout, which is sent to the player [default: 150ms]",
    )
    add(
        "--reliability",
        metavar="[TYPE=]LIMIT",
        action="append",
        default=[],
        help="limit at which packets are abandoned, for all frames or for frames of one type; can be repeated "
        "[default: a lifetime equal to the deadline]",
    )
    add("--frames", metavar="N", type=whole_number, help="encode and send only the first N frames of a clip")
    add(
        "--path",
        metavar="ADDR|IFACE",
        action="append",
        default=[],
        help="local address or interface of a path; can be repeated [default: all that `anabranch paths` reports as "
        "usable]",
    )
    add(
        "--to",
        metavar="ADDR:PORT",
        action="append",
        default=[],
        help="destination of paths, such as a relay, in place of HOST's addresses; one for all, or one for each --path",
    )
    add(
        "--connect-timeout",
        metavar="TIME",
        type=seconds,
        default=15.0,
        help="maximum time until the peer answers [default: 15s]",
    )
    _add_association(parser)
    parser.set_defaults(run=_send)


def add_play(commands: Any) -> None:
    """Adds the command `play`."""
    parser = commands.add_parser(
        "play",
        help="receive a clip, and write the fate of each frame",
        description="Waits for one sender, and records the arrival time of each packet. Playout starts when the "
        "deadline has passed since the first packet. Writes arrivals.csv, frames.csv, received.m4v, reception.json, "
        "and the shown video.",
        epilog=_PLAY_EXAMPLES,
    )
    add = parser.add_argument
    add(
        "--listen",
        metavar="ADDR[:PORT]",
        action="append",
        default=[],
        help="a local address to listen on; can be repeated [default: all that `anabranch paths` reports as usable, "
        "port 9899]",
    )
    add(
        "--from",
        dest="accept",
        metavar="ADDR[/PREFIX]",
        action="append",
        default=[],
        help="accept only senders with a source address in this network; an address is allowed too; can be repeated",
    )
    add("--out", metavar="DIR", type=Path, required=True, help="the folder to write")
    add(
        "--deadline",
        metavar="TIME",
        type=deadline_ms,
        help="time from sending to playout [default: that of the sender]",
    )
    add("--reference", metavar="DIR", type=Path, help="the folder that the sender sends, to compare the pictures with")
    add("--no-pictures", dest="pictures", action="store_false", help="decode nothing, and write no clips or stills")
    _add_association(parser)
    parser.set_defaults(run=_play)


def _add_association(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--scheme",
        metavar="SCHEME",
        default="bonded",
        help="scheme, such as cmt; see `anabranch schemes` [default: bonded]",
    )
    add(
        "--sctp-port",
        metavar="PORT",
        type=port,
        default=_DEFAULT_PORT,
        help="SCTP port to listen on, inside UDP [default: 9899]",
    )
    add(
        "--timeout",
        metavar="TIME",
        type=seconds,
        default=_SILENCE_S,
        help="time without packets after which the peer counts as lost [default: 15s]",
    )
    protection = parser.add_mutually_exclusive_group()
    protection.add_argument(
        "--keys",
        metavar="DIR",
        type=Path,
        help="the folder with this user's key, known_hosts and "
        "authorized_keys [default: $ANABRANCH_HOME, or else ~/.config/anabranch]",
    )
    protection.add_argument(
        "--insecure",
        action="store_true",
        help="disable encryption and authentication; the other side has to do the same",
    )
    add("--json", action="store_true", help="print one JSON object at the end in place of the text")
    add("-q", "--quiet", action="store_true", help="no progress, and no output except with --json and errors")


def _send(options: argparse.Namespace) -> int:
    from anabranch.transfer import ArgumentError
    from anabranch.video.live.sending import ClipSender
    from anabranch.video.reliability import read_reliability

    try:
        reliability = read_reliability(options.reliability, options.deadline)
    except VideoError as error:
        print(f"error: --reliability: {error}", file=sys.stderr)
        return INPUT_ERROR
    with _clip(options) as clip:
        sender = ClipSender(clip, options.deadline, reliability)
        _notice(options)
        try:
            asyncio.run(_send_all(options, sender, len(clip.frames)))
        except ArgumentError as error:
            return _input_error(error)
        finally:
            # The user gets the report after errors, too.
            _report(options, sender.sent, len(clip.frames))
    return 0


async def _send_all(options: argparse.Namespace, sender: ClipSender, frames: int) -> None:
    import anabranch

    connecting = anabranch.connect(
        options.to or options.peer,
        local=options.path or None,
        scheme=options.scheme,
        sctp_port=options.sctp_port,
        connect_timeout_s=options.connect_timeout,
        peer_silence_s=options.timeout,
        keys=options.keys,
        insecure=options.insecure,
    )
    with _bar(options, frames) as bar:
        async with connecting as association:
            await sender.run(association, bar.update)
        sender.end(await association.statistics())


def _report(options: argparse.Namespace, sent: Sent, frames: int) -> None:
    figures = {
        "frames": frames,
        "frames_sent": sent.frames,
        "packets_sent": sent.packets,
        "packets_overdue": sent.overdue_packets,
        "messages_abandoned": sent.abandoned_messages,
        "complete": sent.is_complete,
    }
    if options.json:
        print(json.dumps(figures), flush=True)
    elif not options.quiet and sent.frames:
        print(
            f"{sent.frames} of {frames} frames sent, {sent.packets} packets; {sent.abandoned_messages} abandoned, "
            f"{sent.overdue_packets} too late to be sent",
            flush=True,
        )


@contextlib.contextmanager
def _clip(options: argparse.Namespace) -> Iterator[CodedClip]:
    from anabranch.video.coded import MANIFEST, read_coded, write_coded
    from anabranch.video.user_clip import ReadOptions

    if Path(options.clip, MANIFEST).exists():
        if options.frames is not None:
            raise VideoError(f"{options.clip}: is encoded already: leave --frames out, or encode fewer frames")
        yield read_coded(Path(options.clip))
        return
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        yield write_coded(options.clip, Path(folder), reading=ReadOptions(frames=options.frames))


def _play(options: argparse.Namespace) -> int:
    from anabranch.transfer import ArgumentError
    from anabranch.video.coded import read_coded
    from anabranch.video.live.playing import Ending, Player

    reference = None if options.reference is None else read_coded(options.reference)
    options.out.mkdir(parents=True, exist_ok=True)
    _notice(options)
    bar = _bar(options, 0)
    player = Player(options.out / ".received.part", options.deadline, _show(bar), _say)
    try:
        with bar:
            interrupted = _interrupted(options, player)
        if player.reception is not None:
            _write(options, player, reference)
    except ArgumentError as error:
        return _input_error(error)
    finally:
        if player.reception is not None:
            player.reception.close()
    if interrupted:
        return INTERRUPTED
    return 0 if player.ending is Ending.COMPLETE else 1


def _input_error(error: Exception) -> int:
    print(f"error: {error}", file=sys.stderr)
    return INPUT_ERROR


def _interrupted(options: argparse.Namespace, player: Player) -> bool:
    """Plays one clip. Returns `True` if Ctrl-C ended it."""
    try:
        asyncio.run(_play_one(options, player))
    except KeyboardInterrupt:
        return True
    return False


async def _play_one(options: argparse.Namespace, player: Player) -> None:
    import anabranch
    from anabranch.video.live.playing import LARGEST_MESSAGE_BYTES

    listening = anabranch.listen(
        options.listen or None,
        accept_from=options.accept or None,
        scheme=options.scheme,
        sctp_port=options.sctp_port,
        largest_message_bytes=LARGEST_MESSAGE_BYTES,
        peer_silence_s=options.timeout,
        keys=options.keys,
        insecure=options.insecure,
    )
    async with listening as listener:
        if not options.quiet:
            print(f"listening on {', '.join(listener.addresses)}", file=sys.stderr, flush=True)
        await player.run(listener)


def _write(options: argparse.Namespace, player: Player, reference: CodedClip | None) -> None:
    from anabranch.video.live.playing import Ending
    from anabranch.video.live.results import (
        QUALITY,
        as_text,
        check_reference,
        write_pictures,
        write_played,
        write_quality,
    )
    from anabranch.video.outcome import as_text as quality_text
    from anabranch.video.outcome import summary as quality_summary

    assert player.reception is not None
    played = write_played(player, options.out)
    if not options.quiet and not options.json:
        print(as_text(player, played), flush=True)
    elif player.fault:
        _say(player.fault)
    summary = dict(played.summary)
    # The quality of a part of a clip is not comparable.
    if reference is not None and player.ending is Ending.COMPLETE:
        check_reference(reference, player.reception.description)
        evaluation = write_quality(player.reception, played, reference, options.out, pictures=options.pictures)
        summary[QUALITY] = quality_summary(evaluation)
        if not options.quiet and not options.json:
            print(f"\n{quality_text(evaluation)}")
    elif options.pictures:
        write_pictures(player.reception, played.deliveries, options.out)
    if options.json:
        print(json.dumps(summary, indent=2))


def _notice(options: argparse.Namespace) -> None:
    if options.insecure and not options.quiet:
        print(
            "warning: --insecure: content is not encrypted, and neither side proves its identity: "
            "every host that forwards the packets can read and change them",
            file=sys.stderr,
        )


def _say(text: str) -> None:
    from tqdm import tqdm

    tqdm.write(f"anabranch video: {text}", file=sys.stderr)


def _bar(options: argparse.Namespace, frames: int) -> Any:
    from tqdm import tqdm

    # With None, tqdm shows the bar on a terminal only.
    disabled = True if options.quiet else None
    return tqdm(total=frames, unit="frame", desc="video", disable=disabled, leave=False, dynamic_ncols=True)


def _show(bar: Any) -> Any:
    def show(description: Any, progress: Any) -> None:
        bar.total = len(description.types)
        bar.n = progress.due
        bar.set_postfix_str(f"in time {progress.in_time}, late {progress.late}, missing {progress.missing}")

    return show

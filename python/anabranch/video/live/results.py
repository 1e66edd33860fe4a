"""Results of a player: arrivals, the fate of each frame, the received bitstream, pictures, and a summary.

If the sender's folder is available, the received bytes are compared with it, and `anabranch video evaluate` evaluates
the arrivals. Otherwise the received bitstream itself is decoded, and there is no reference for the quality of the
pictures.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anabranch
from anabranch.errors import VideoError
from anabranch.estimate import rounded
from anabranch.video.browser_clip import write_browser_clip
from anabranch.video.coded import CodedClip
from anabranch.video.encoder import decode
from anabranch.video.evaluation import Evaluation, RunArrivals, evaluate
from anabranch.video.fates import Delivery, Fate
from anabranch.video.live.description import Description
from anabranch.video.live.playing import Ending, Player
from anabranch.video.live.reception import Reception
from anabranch.video.measures import DeliveryMeasures, delivery_measures
from anabranch.video.outcome import of_measures, write_outcome
from anabranch.video.raw import RawFrames
from anabranch.video.rebuild import rebuild, shown_frames
from anabranch.video.tables import write_table

ARRIVALS, FRAMES, STREAM, SUMMARY = "arrivals.csv", "frames.csv", "received.m4v", "reception.json"
LABEL = "received"
QUALITY = "quality"


@dataclass(frozen=True)
class Played:
    """Outcome of the frames that were shown."""

    deliveries: list[Delivery]
    measures: DeliveryMeasures | None
    summary: dict[str, Any]


def check_reference(reference: CodedClip, description: Description) -> None:
    """Raises `VideoError` if the sender sends another clip."""
    if reference.manifest["bitstream_sha256"] != description.bitstream_sha256:
        raise VideoError(
            f"{reference.folder}: is not the clip that the sender described: give the folder that it sends, or none"
        )


def write_played(player: Player, folder: Path) -> Played:
    """Writes the tables, the bitstream and the summary of the shown frames. Raises `OSError`."""
    reception = player.reception
    assert reception is not None
    # Read once: unless the clip is complete, the value grows with the clock.
    played_frames = player.played_frames
    delivered = reception.deliveries()[:played_frames]
    _write_arrivals(folder / ARRIVALS, reception)
    _write_frames(folder / FRAMES, delivered)
    with (folder / STREAM).open("wb") as file:
        file.writelines(reception.good_stream(delivered))
    measures = delivery_measures(delivered) if delivered else None
    summary = _summary(player, reception, played_frames, measures)
    (folder / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return Played(delivered, measures, summary)


def _write_arrivals(path: Path, reception: Reception) -> None:
    arrivals_ms, received_ms = reception.arrivals_ms(), reception.received_ms()
    columns: dict[str, list[Any]] = {
        "packet": list(arrivals_ms),
        "arrival_ms": list(arrivals_ms.values()),
        "received_ms": [received_ms[number] for number in arrivals_ms],
    }
    write_table(path, columns)


def _write_frames(path: Path, delivered: list[Delivery]) -> None:
    names = ("display", "number", "type", "fate", "delay_ms")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for each in sorted(delivered, key=lambda each: each.frame.display):
        delay_ms = None if each.delay_ms is None else round(each.delay_ms, 3)
        row = (each.frame.display, each.frame.number, each.frame.type.value, each.fate.value, delay_ms)
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    write_table(path, columns)


def _summary(
    player: Player, reception: Reception, played_frames: int, measures: DeliveryMeasures | None
) -> dict[str, Any]:
    description = reception.description
    return {
        "version": anabranch.__version__,
        "peer": player.peer,
        "ending": player.ending.value,
        "clip": description.clip,
        "bitstream_sha256": description.bitstream_sha256,
        "frames_sent": len(description.frames),
        "frames_played": played_frames,
        "packets": len(description.packets),
        "packets_received": reception.packets,
        "deadline_ms": reception.playout.deadline_ms,
        **({} if measures is None else of_measures(measures)),
    }


def write_pictures(reception: Reception, delivered: list[Delivery], folder: Path) -> None:
    """Decodes the received frames, and writes the clip that a viewer saw. Raises `VideoError`.

    The files are not written if no frame is good.
    """
    good = sorted(each.frame.display for each in delivered if each.fate is Fate.GOOD)
    if not good:
        return
    with tempfile.TemporaryDirectory(prefix="anabranch-") as work:
        shown = _rebuilt(reception.description, delivered, good, folder / STREAM, Path(work))
        write_browser_clip(shown, folder / f"{LABEL}.mp4")


def _rebuilt(
    description: Description, delivered: list[Delivery], good: list[int], stream: Path, work: Path
) -> RawFrames:
    """Returns the clip that was shown, from the received bitstream alone, which has only the good frames."""
    whole = RawFrames(stream, description.format, len(delivered))
    decoded = decode(stream, whole, work / "decoded.yuv", frames=len(good))
    place = {display: index for index, display in enumerate(good)}
    shown = [None if display is None else place[display] for display in shown_frames(delivered)]
    return rebuild(decoded, shown, work / "shown.yuv")


def write_quality(
    reception: Reception, played: Played, reference: CodedClip, folder: Path, *, pictures: bool
) -> Evaluation:
    """Compares the received bytes with the sender's folder, and then the quality.

    Raises `VideoError` if a good frame has other bytes than were sent, since its picture is unknown then.
    """
    good = [each.frame.number for each in played.deliveries if each.fate is Fate.GOOD]
    for number, received in zip(good, reception.good_stream(played.deliveries), strict=True):
        if received != reference.coded[number].bytes_of(reference.stream):
            raise VideoError(f"frame {number} has other bytes than {reference.folder}: the sender sent something else")
    out = folder / QUALITY
    out.mkdir(exist_ok=True)
    runs = [RunArrivals(LABEL, folder / ARRIVALS)]
    evaluation = evaluate(reference, runs, reception.playout.deadline_ms, pictures=out if pictures else None)
    write_outcome(evaluation, out)
    return evaluation


def as_text(player: Player, played: Played) -> str:
    """Returns the text that a player prints at its end."""
    summary, measures = played.summary, played.measures
    head = (
        f"{summary['frames_played']} of {summary['frames_sent']} frames played, {summary['packets_received']} of "
        f"{summary['packets']} packets received, deadline {summary['deadline_ms']:g} ms"
    )
    if measures is None:
        return head
    by_fate = ", ".join(f"{measures.count(fate)} {fate.value}" for fate in Fate)
    lines = [head, f"frames: {by_fate}; decodable {measures.decodable_ratio:.3f}"]
    all_s, longest_s = rounded(measures.stall_s, 2), rounded(measures.longest_stall_s, 2)
    stalls = f"stalls: {measures.stalls}, {all_s} s in all, {longest_s} s the longest"
    lines.append(stalls)
    if measures.delays is not None:
        delays = measures.delays
        mean, high, most = (rounded(ms, 1) for ms in (delays.mean_ms, delays.percentiles_ms[95], delays.largest_ms))
        lines.append(
            f"delay over that of the first packet: {mean} ms in the mean, {high} ms at the 95th percentile, "
            f"{most} ms at most"
        )
    if player.ending not in (Ending.COMPLETE, Ending.INTERRUPTED):
        lines.append(f"not complete: {player.fault}")
    return "\n".join(lines)

"""Coded clip as a folder: the source's frames, the bitstream, traces for a sender, and a manifest.

`source.yuv` has the raw frames, `stream.m4v` the elementary stream, `trace.csv` a row for each frame and `packets.csv`
one for each packet. `manifest.json`, which is written last, records how they were made.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any

from anabranch.errors import VideoError
from anabranch.video import ffmpeg
from anabranch.video.bounds import MAX_BITSTREAM_BYTES, MAX_FRAMES
from anabranch.video.clips import SOURCES, Step, make_clip
from anabranch.video.elementary import CodedFrame, split
from anabranch.video.encoder import Coding, encode
from anabranch.video.format import FrameFormat
from anabranch.video.frame import Frame, FrameType, scheduled
from anabranch.video.packets import DEFAULT_PAYLOAD_BYTES, Packet, check_payload, packetise
from anabranch.video.raw import RawFrames
from anabranch.video.tables import write_table
from anabranch.video.trace import write_frame_trace
from anabranch.video.user_clip import ReadOptions

MANIFEST, SOURCE, STREAM, TRACE, PACKETS = "manifest.json", "source.yuv", "stream.m4v", "trace.csv", "packets.csv"
FORMAT = "anabranch-video-1"
_REWRITE_HINT = "encode the clip again with `anabranch video encode`"
# The manifest of a clip with a variable rate has the times of all frames.
_LARGEST_MANIFEST_BYTES = 1 << 22
_KEYS = {
    "format": str,
    "width": int,
    "height": int,
    "rate": str,
    "payload_bytes": int,
    "source_sha256": str,
    "bitstream_sha256": str,
}


@dataclass(frozen=True)
class CodedClip:
    """Content of such a folder. `coded` has the place of each frame in `stream`, `frames` its time of transmission."""

    folder: Path
    manifest: Mapping[str, Any]
    source: RawFrames
    stream: bytes
    coded: list[CodedFrame]
    frames: list[Frame]
    packets: list[Packet]


def write_coded(
    name: str,
    folder: Path,
    *,
    reading: ReadOptions | None = None,
    coding: Coding | None = None,
    payload_bytes: int = DEFAULT_PAYLOAD_BYTES,
    step: Step | None = None,
) -> CodedClip:
    """Makes or reads the clip `name`, encodes it, and writes the results into `folder`. Raises `VideoError`."""
    coding = (coding or Coding()).checked()
    check_payload(payload_bytes)
    _make_folder(folder)
    source = make_clip(name, folder / SOURCE, reading, step)
    stream = encode(source, folder / STREAM, coding)
    coded = split(stream, str(folder / STREAM))
    frames = _scheduled(coded, source.format)
    packets = packetise(frames, payload_bytes)
    write_frame_trace(folder / TRACE, frames)
    _write_packets(folder / PACKETS, frames, packets)
    manifest = {
        "format": FORMAT,
        **_of_source(name, source),
        **asdict(coding),
        **_of_stream(stream, frames, packets, payload_bytes),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return CodedClip(folder, manifest, source, stream, coded, frames, packets)


def _make_folder(folder: Path) -> None:
    """Makes the folder and removes an old manifest. Raises `VideoError` if the folder has other content."""
    folder.mkdir(parents=True, exist_ok=True)
    ours = (MANIFEST, SOURCE, STREAM, TRACE, PACKETS)
    other = sorted(entry.name for entry in folder.iterdir() if not entry.name.lstrip(".").startswith(ours))
    if other and not (folder / MANIFEST).exists():
        raise VideoError(f"{folder}: has other files (`{ffmpeg.escaped(other[0])}`): name another folder")
    # An old manifest would not match the new files.
    (folder / MANIFEST).unlink(missing_ok=True)


def _scheduled(coded: list[CodedFrame], frame: FrameFormat) -> list[Frame]:
    return scheduled([each.type for each in coded], [each.size_bytes for each in coded], frame)


def _write_packets(path: Path, frames: list[Frame], packets: list[Packet]) -> None:
    columns: dict[str, list[Any]] = {
        "packet": [packet.number for packet in packets],
        "frame": [packet.frame for packet in packets],
        "type": [frames[packet.frame].type.value for packet in packets],
        "size_bytes": [packet.size_bytes for packet in packets],
        "time_ms": [frames[packet.frame].time_ms for packet in packets],
    }
    write_table(path, columns)


def _of_source(name: str, source: RawFrames) -> dict[str, Any]:
    computed = {"clip": name, "scikit_image": metadata.version("scikit-image")} if name == "photographs" else {}
    return {
        # The file's name without its folder.
        "clip": name if name in SOURCES else Path(name).name,
        **computed,
        "width": source.format.width,
        "height": source.format.height,
        "rate": str(source.format.rate),
        **({} if source.format.times_us is None else {"times_us": list(source.format.times_us)}),
        "frames": source.count,
        "source_sha256": source.sha256(),
    }


def _of_stream(stream: bytes, frames: list[Frame], packets: list[Packet], payload_bytes: int) -> dict[str, Any]:
    of_frames = Counter(frame.type for frame in frames)
    of_packets = Counter(frames[packet.frame].type for packet in packets)
    return {
        "codec": "mpeg4",
        "encoder": ffmpeg.version(),
        "bitstream_bytes": len(stream),
        "bitstream_sha256": hashlib.sha256(stream).hexdigest(),
        "frames_by_type": {kind.value: of_frames[kind] for kind in FrameType},
        "payload_bytes": payload_bytes,
        "packets": len(packets),
        "packets_by_type": {kind.value: of_packets[kind] for kind in FrameType},
    }


def read_coded(folder: Path) -> CodedClip:
    """Reads a folder of `write_coded`. Raises `VideoError` about a file that is missing, damaged or changed."""
    manifest = _manifest(folder / MANIFEST)
    source = RawFrames.open(folder / SOURCE, _format(manifest, folder / MANIFEST))
    stream = _read(folder / STREAM, MAX_BITSTREAM_BYTES)
    _check_hash(folder / SOURCE, source.sha256(), manifest["source_sha256"])
    _check_hash(folder / STREAM, hashlib.sha256(stream).hexdigest(), manifest["bitstream_sha256"])
    coded = split(stream, str(folder / STREAM))
    if len(coded) != source.count or len(source.format.times_us or coded) != source.count:
        raise VideoError(f"{folder}: {len(coded)} coded frames of {source.count} in the source: {_REWRITE_HINT}")
    frames = _scheduled(coded, source.format)
    return CodedClip(folder, manifest, source, stream, coded, frames, packetise(frames, manifest["payload_bytes"]))


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(_read(path, _LARGEST_MANIFEST_BYTES))
    except (ValueError, RecursionError) as error:
        raise VideoError(f"{path}: is damaged ({error}): {_REWRITE_HINT}") from error
    if not isinstance(manifest, dict):
        raise VideoError(f"{path}: is not a manifest of a coded clip: {_REWRITE_HINT}")
    for key, kind in _KEYS.items():
        if type(manifest.get(key)) is not kind:
            raise VideoError(f"{path}: `{key}` is missing or is no {kind.__name__}: {_REWRITE_HINT}")
    if manifest["format"] != FORMAT:
        raise VideoError(f"{path}: `format` is not `{FORMAT}`, which this version reads: {_REWRITE_HINT}")
    return manifest


def _format(manifest: Mapping[str, Any], path: Path) -> FrameFormat:
    try:
        rate = Fraction(manifest["rate"])
    except (ValueError, ZeroDivisionError):
        raise VideoError(f"{path}: `rate` is not a fraction: {_REWRITE_HINT}") from None
    return FrameFormat(manifest["width"], manifest["height"], rate, _times(manifest, path)).checked(str(path))


def _times(manifest: Mapping[str, Any], path: Path) -> tuple[int, ...] | None:
    """Returns the times of the frames of a clip whose rate varies."""
    times = manifest.get("times_us")
    if times is None:
        return None
    if not isinstance(times, list) or not 1 <= len(times) <= MAX_FRAMES or any(type(each) is not int for each in times):
        raise VideoError(f"{path}: `times_us` is not a list of whole numbers: {_REWRITE_HINT}")
    return tuple(times)


def _read(path: Path, most_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise VideoError(f"{path}: cannot be read: {error.strerror}: {_REWRITE_HINT}") from error
    if len(content) > most_bytes:
        raise VideoError(f"{path}: has more than {most_bytes} bytes: {_REWRITE_HINT}")
    return content


def _check_hash(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise VideoError(f"{path}: differs from manifest.json, so it is damaged or was changed: {_REWRITE_HINT}")

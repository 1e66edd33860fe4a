"""MPEG-4 part 2 encoder and decoder, with the structure of the video in CMT-QA's experiment."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import VideoError
from anabranch.video import ffmpeg
from anabranch.video.bounds import MAX_FRAME_PIXELS, time_limit_s
from anabranch.video.elementary import split
from anabranch.video.frame import FrameType
from anabranch.video.raw import RawFrames

# Options of ffmpeg's own regression tests that make the arithmetic equal on every processor.
BIT_EXACT = ("-flags", "+bitexact", "-idct", "simple")
_BIT_EXACT_ENCODER = (*BIT_EXACT, "-fflags", "+bitexact", "-dct", "fastint")
# A cut in the clip starts no I frame, so that every clip has the same structure.
_NO_SCENE_CUTS = ("-sc_threshold", "1000000000")
_MAX_GOP_FRAMES = 600
_MAX_B_FRAMES = 8
_QUANTISERS = range(1, 32)


@dataclass(frozen=True, slots=True)
class Coding:
    """Parameters of the encoder. The defaults give the paper's counts: 2000 frames in about 2250 packets."""

    gop_frames: int = 9
    b_frames: int = 2
    # Constant for all frames: rate control would make the quality of a frame depend on those before it.
    quantiser: int = 8

    def checked(self) -> Coding:
        """Returns the parameters. Raises `VideoError` for values that the encoder would refuse or silently change."""
        if not 1 <= self.gop_frames <= _MAX_GOP_FRAMES:
            raise VideoError(f"a GOP of {self.gop_frames} frames: give 1 to {_MAX_GOP_FRAMES} with --gop")
        if not 0 <= self.b_frames <= _MAX_B_FRAMES or self.gop_frames % (self.b_frames + 1):
            raise VideoError(
                f"{self.b_frames} B frames between references do not divide a GOP of {self.gop_frames}: "
                f"give 0 to {_MAX_B_FRAMES} with --b-frames, so that one more divides --gop"
            )
        if self.quantiser not in _QUANTISERS:
            raise VideoError(f"a quantiser of {self.quantiser}: give 1 (best) to 31 with --quantiser")
        return self

    def expected(self, frames: int) -> Counter[FrameType]:
        """Returns the frames of each type in a clip of `frames` frames. The last frame is always a reference."""
        distance = self.b_frames + 1
        references = (frames - 1) // distance + 1
        rest = (frames - 1) % distance
        # The last frame after the last full group ends the clip, so it is a reference.
        references += rest > 0
        intra = (frames - 1) // self.gop_frames + 1
        # ffmpeg ends a group early if the last distance would cross its end, unless it is the first group.
        into_group = (frames - 1) % self.gop_frames
        intra += rest > 0 and frames > self.gop_frames and into_group >= self.gop_frames - self.b_frames
        return Counter({FrameType.I: intra, FrameType.P: references - intra, FrameType.B: frames - references})


def encode(clip: RawFrames, out: Path, coding: Coding | None = None) -> bytes:
    """Writes the elementary stream of the clip to `out`, and returns it.

    Raises `VideoError` if ffmpeg fails, or if its frames have other types than expected.
    """
    coding = (coding or Coding()).checked()
    ffmpeg.require("encoders", "mpeg4")
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        coded = Path(folder) / "stream.m4v"
        limit_s = time_limit_s(clip.format.luma_bytes, clip.count)
        ffmpeg.run([*_arguments(clip, coding), ffmpeg.file_url(coded)], str(clip.path), limit_s)
        stream = coded.read_bytes()
    types = Counter(frame.type for frame in split(stream, str(out)))
    expected = coding.expected(clip.count)
    if types != +expected:
        raise VideoError(
            f"{clip.path}: {ffmpeg.version()} made {_counts(types)} where {_counts(expected)} were expected: "
            f"use the ffmpeg of imageio-ffmpeg: {ffmpeg.INSTALL}"
        )
    out.write_bytes(stream)
    return stream


def _counts(types: Counter[FrameType]) -> str:
    return ", ".join(f"{types[kind]} {kind.value}" for kind in FrameType)


def _arguments(clip: RawFrames, coding: Coding) -> list[str]:
    return [
        *raw_input(clip),
        *("-c:v", "mpeg4", "-g", str(coding.gop_frames), "-bf", str(coding.b_frames)),
        *("-qscale:v", str(coding.quantiser), *_NO_SCENE_CUTS, *_BIT_EXACT_ENCODER, *ffmpeg.SINGLE_THREAD),
        *("-f", "m4v"),
    ]


def raw_input(clip: RawFrames) -> list[str]:
    """Returns ffmpeg's options that read the frames of a clip."""
    shape = clip.format
    return [
        *("-f", "rawvideo", "-pix_fmt", "yuv420p", "-video_size", shape.size, "-framerate", str(shape.rate)),
        *("-i", ffmpeg.file_url(clip.path)),
    ]


def decode(stream: Path, clip: RawFrames, out: Path, frames: int | None = None) -> RawFrames:
    """Writes the frames of an elementary stream of `clip` to `out`, in display order.

    Raises `VideoError` unless ffmpeg decodes `frames` frames (default: those of the clip).
    """
    expected = clip.count if frames is None else frames
    ffmpeg.require("decoders", "mpeg4")
    limit_s = time_limit_s(clip.format.luma_bytes, expected)
    arguments = [
        *("-max_pixels", str(MAX_FRAME_PIXELS), *BIT_EXACT, *ffmpeg.SINGLE_THREAD),
        *("-f", "m4v", "-i", ffmpeg.file_url(stream)),
        *("-fps_mode", "passthrough", "-frames:v", str(expected + 1)),
        # A stream of another host may have other frames than described, and grow as it is decoded.
        *("-fs", str((expected + 1) * clip.format.frame_bytes)),
        *("-f", "rawvideo", "-pix_fmt", "yuv420p", ffmpeg.file_url(out)),
    ]
    ffmpeg.run(arguments, str(stream), limit_s)
    decoded = RawFrames.open(out, clip.format)
    if decoded.count != expected:
        raise VideoError(f"{stream}: {decoded.count} frames were decoded of {expected}: encode the clip again")
    return decoded

"""The clip that a viewer sees: the decoded frames, with the last good frame in place of each that is not good.

A decoder that gets a stream with gaps drops and repeats frames at will, so that the numbers of its frames no longer
match those of the clip. Therefore the fates decide, frame by frame. A frame whose packets and references all arrived
decodes to the same samples as in the whole stream, which the tests confirm with streams from which frames were removed.
The clip is therefore rebuilt from the decoded whole stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from anabranch.video.elementary import CodedFrame
from anabranch.video.fates import Delivery, Fate
from anabranch.video.format import FrameFormat
from anabranch.video.raw import RawFrames, write_frames

# Black of the limited range, shown until the first good frame.
_BLACK_LUMA, _BLACK_CHROMA = 16, 128


def shown_frames(deliveries: Sequence[Delivery]) -> list[int | None]:
    """Returns the frame that is shown in the place of each frame in the order of display: itself, or the last good one.

    `None` means black, before the first good frame.
    """
    shown: list[int | None] = []
    last: int | None = None
    for each in sorted(deliveries, key=lambda each: each.frame.display):
        if each.fate is Fate.GOOD:
            last = each.frame.display
        shown.append(last)
    return shown


def reduced_stream(stream: bytes, coded: Sequence[CodedFrame], deliveries: Sequence[Delivery]) -> bytes:
    """Returns the bitstream of the good frames. The first is an I frame, before which the encoder puts the headers."""
    pairs = zip(coded, deliveries, strict=True)
    return b"".join(frame.bytes_of(stream) for frame, each in pairs if each.fate is Fate.GOOD)


def rebuild(decoded: RawFrames, shown: Sequence[int | None], out: Path) -> RawFrames:
    """Writes the clip that is shown: the same number of frames, each in its place."""
    return write_frames(out, decoded.format, _frames(decoded, shown), str(out))


def _frames(decoded: RawFrames, shown: Sequence[int | None]) -> Iterator[bytes]:
    samples = decoded.samples()
    black = black_frame(decoded.format)
    for each in shown:
        yield black if each is None else samples[each].tobytes()


def black_frame(frame: FrameFormat) -> bytes:
    """Returns a black frame."""
    chroma_bytes = frame.frame_bytes - frame.luma_bytes
    return bytes([_BLACK_LUMA]) * frame.luma_bytes + bytes([_BLACK_CHROMA]) * chroma_bytes

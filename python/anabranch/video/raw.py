"""Files of raw frames: planar YUV 4:2:0, one after the other without gaps."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch.errors import VideoError
from anabranch.video.format import FrameFormat, check_frame_count

Samples: TypeAlias = npt.NDArray[np.uint8]

_HASH_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class RawFrames:
    """Frames of a file, which is mapped into memory as they are needed."""

    path: Path
    format: FrameFormat
    count: int

    @classmethod
    def open(cls, path: Path, frame: FrameFormat) -> RawFrames:
        """Opens a file of frames. Raises `VideoError` if its size is not a whole number of frames."""
        try:
            size_bytes = path.stat().st_size
        except OSError as error:
            raise VideoError(f"{path}: cannot be read: {error.strerror}") from error
        frame.checked(str(path))
        count, rest = divmod(size_bytes, frame.frame_bytes)
        if rest:
            raise VideoError(
                f"{path}: {size_bytes} bytes are no whole number of frames of {frame.size} "
                f"({frame.frame_bytes} bytes each): it is cut off, or has another size, which --size WxH gives"
            )
        check_frame_count(frame, count, str(path))
        return cls(path, frame, count)

    def samples(self) -> Samples:
        """Returns all samples, a row for each frame."""
        return np.memmap(self.path, np.uint8, "r", shape=(self.count, self.format.frame_bytes))

    def luma(self) -> Samples:
        """Returns luma as (frame, row, column)."""
        luma = self.samples()[:, : self.format.luma_bytes]
        return luma.reshape(self.count, self.format.height, self.format.width)

    def sha256(self) -> str:
        """Returns the SHA-256 of all frames."""
        return file_sha256(self.path)


def file_sha256(path: Path) -> str:
    """Returns the SHA-256 of a file. Raises `OSError`."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def write_frames(path: Path, frame: FrameFormat, frames: Iterable[bytes | memoryview], name: str) -> RawFrames:
    """Writes frames as they come, up to the bounds. Removes a file that is not complete.

    Raises `VideoError` about the clip `name` if there are too many frames or none.
    """
    count = 0
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            for each in frames:
                count += 1
                check_frame_count(frame, count, name)
                file.write(each)
        check_frame_count(frame, count, name)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return RawFrames(path, frame, count)

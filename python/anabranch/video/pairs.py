"""Quality of a clip's frames when an older frame is shown in place of each that is not good.

PSNR, SSIM and VQM of a frame depend only on the frame that is due and on the one that is shown. So each such pair is
compared once, for all runs that show it. The comparison is that of `metrics`, on clips that consist of the pairs: the
means are those of `anabranch video evaluate`. VMAF depends on motion as well, and is therefore not included.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from anabranch.errors import VideoError
from anabranch.video.bounds import MAX_FRAMES
from anabranch.video.metrics import SPATIAL_METRICS, SpatialMetric, psnr_and_ssim
from anabranch.video.raw import RawFrames
from anabranch.video.rebuild import black_frame, rebuild
from anabranch.video.vqm import Noticeable, noticeable, pooled

# Maximum number of pairs that one thread compares at once: two temporary files of 76 MB each for QCIF. The minimum
# makes each start of ffmpeg serve hundreds of pairs.
_BATCH_PAIRS = 2000
_MIN_PAIRS = 200
# Number of frames whose coefficients are computed together.
_AT_ONCE = 32
# Maximum size of a clip's coefficients in memory. They take 405 MB for 2000 frames of QCIF.
_MAX_BYTES = 1 << 30
BLACK = -1
"""Place of the black frame, which is shown before the first good frame."""

Shown = npt.NDArray[np.int64]
_RUN = re.compile(r"(\d{1,9})([gltu])")


def shown_by_fates(fates: str) -> Shown:
    """Returns the shown frame for each frame in the order of display, by fates as in results of runs: `12g1l3u`.

    Raises `VideoError` for another text.
    """
    if not re.fullmatch(rf"({_RUN.pattern})*", fates):
        raise VideoError(f"frame fates are numbers of frames with g, l, t or u, not {fates[:32]!a}")
    stretches = [(int(count), letter == "g") for count, letter in _RUN.findall(fates)]
    if (frames := sum(count for count, _ in stretches)) > MAX_FRAMES:
        raise VideoError(f"frame fates of {frames} frames: a clip has {MAX_FRAMES} at the most")
    good = [np.full(count, is_good) for count, is_good in stretches]
    shown = np.concatenate([np.empty(0, bool), *good])
    places = np.where(shown, np.arange(len(shown)), BLACK)
    last: Shown = np.maximum.accumulate(places) if len(places) else places
    return last


class Pictures:
    """Frames of a clip, with the coefficients of VQM of each, computed once."""

    def __init__(self, frames: RawFrames) -> None:
        self.frames = frames
        black = np.frombuffer(black_frame(frames.format), np.uint8)[: frames.format.luma_bytes]
        self._black = noticeable(black.reshape(1, frames.format.height, frames.format.width))
        self._noticeable = None if frames.count * self._black.nbytes > _MAX_BYTES else self._all()

    def noticeable(self, places: npt.NDArray[np.int64]) -> Noticeable:
        """Returns a row for each place. A place may be `BLACK`."""
        if self._noticeable is None:
            rows = noticeable(self.frames.luma()[np.maximum(places, 0)])
        else:
            rows = self._noticeable[places]
        rows[places == BLACK] = self._black
        return rows

    def write(self, path: Path, places: npt.NDArray[np.int64]) -> RawFrames:
        """Writes the frames at these places as a clip."""
        return rebuild(self.frames, [None if place == BLACK else place for place in places.tolist()], path)

    def _all(self) -> Noticeable:
        luma = self.frames.luma()
        return np.concatenate([noticeable(luma[at : at + _AT_ONCE]) for at in range(0, len(luma), _AT_ONCE)])


class PairQuality:
    """Quality of one clip against a reference. Both have the same number of frames."""

    def __init__(self, reference: Pictures, decoded: Pictures) -> None:
        self._reference = reference
        self._decoded = decoded
        self._count = decoded.frames.count
        self._known: dict[SpatialMetric, npt.NDArray[np.float64]] = {metric: np.empty(0) for metric in SPATIAL_METRICS}
        # Sorted. The values of each are at the same place in `_known`.
        self._pairs: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def learn(self, runs: Iterable[Shown]) -> None:
        """Compares the pairs of these runs that are missing, on all processors. Raises `VideoError`."""
        wanted = np.unique(np.concatenate([np.empty(0, np.int64), *(self._keys(shown) for shown in runs)]))
        missing = np.setdiff1d(wanted, self._pairs, assume_unique=True)
        if not len(missing):
            return
        threads = os.cpu_count() or 1
        size = min(max(-(-len(missing) // threads), _MIN_PAIRS), _BATCH_PAIRS)
        batches = [missing[at : at + size] for at in range(0, len(missing), size)]
        with ThreadPoolExecutor(threads) as pool:
            for keys, found in zip(batches, pool.map(self._compared, batches), strict=True):
                self._keep(keys, found)

    def mean(self, shown: Shown, metric: SpatialMetric) -> float:
        """Returns the mean over frames; NaN if none was good, since then there is no picture."""
        if not len(shown) or shown[-1] == BLACK:
            return float("nan")
        self.learn([shown])
        places = np.searchsorted(self._pairs, self._keys(shown))
        return float(self._known[metric][places].mean())

    def _keys(self, shown: Shown) -> npt.NDArray[np.int64]:
        """Returns a number for each pair of a frame that is due and one that is shown."""
        if len(shown) > self._count:
            raise VideoError(f"{len(shown)} frames are shown of a clip of {self._count}")
        keys: npt.NDArray[np.int64] = np.arange(len(shown), dtype=np.int64) * (self._count + 1) + shown + 1
        return keys

    def _compared(self, keys: npt.NDArray[np.int64]) -> dict[SpatialMetric, npt.NDArray[np.float64]]:
        due, shown = np.divmod(keys, self._count + 1)
        shown -= 1
        with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
            references = self._reference.write(Path(folder, "due.yuv"), due)
            pictures = self._decoded.write(Path(folder, "shown.yuv"), shown)
            found: dict[SpatialMetric, npt.NDArray[np.float64]] = dict(psnr_and_ssim(references, pictures).items())
        found["vqm"] = np.concatenate(
            [
                pooled(
                    self._reference.noticeable(due[at : at + _AT_ONCE]),
                    self._decoded.noticeable(shown[at : at + _AT_ONCE]),
                )
                for at in range(0, len(keys), _AT_ONCE)
            ]
        )
        return found

    def _keep(self, keys: npt.NDArray[np.int64], found: Mapping[SpatialMetric, npt.NDArray[np.float64]]) -> None:
        pairs = np.concatenate([self._pairs, keys])
        order = np.argsort(pairs)
        self._pairs = pairs[order]
        for metric in SPATIAL_METRICS:
            self._known[metric] = np.concatenate([self._known[metric], found[metric]])[order]

"""Quality of many runs of one clip by all metrics. Each pair of a due frame and the shown frame is compared once.

A run shows in the place of frame `d` either `d` itself or an older frame, and so do other runs: ten thousand frames of
many runs have only a few hundred different pairs. PSNR, SSIM and VQM depend on nothing but the pair; where these are
enough, `pairs` computes them. VMAF also depends on the motion of the reference, from the frame before `d` to the one
after it (libvmaf's feature `motion2`), which is the same in all runs. So pairs are computed in windows that include
these two frames. The windows follow one another in one clip that ffmpeg compares with its reference. The figures are
those of whole clips, bit for bit.
"""

from __future__ import annotations

import os
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anabranch.video.metrics import METRICS, Quality, quality
from anabranch.video.pairs import BLACK
from anabranch.video.raw import RawFrames
from anabranch.video.rebuild import rebuild

# Maximum size of the raw frames of one comparison, which has two such files.
_MAX_PASS_BYTES = 128 << 20
_MAX_PASS_FRAMES = 2000

Pair = tuple[int, int]
Shown = Sequence["int | None"]


@dataclass(frozen=True, slots=True)
class _Window:
    """Frames to compare, in the order of display. Only the values of those at `wanted` are kept."""

    due: list[int]
    shown: list[int]
    wanted: list[int]


class PairMetrics:
    """Metrics of frames of `decoded` shown in the place of frames of `reference`.

    `coding` is the quality without loss. Threads may share one object, except for `compute`.
    """

    def __init__(self, reference: RawFrames, decoded: RawFrames) -> None:
        self.coding = quality(reference, decoded)
        self._reference = reference
        self._decoded = decoded
        self._known: dict[Pair, tuple[float, ...]] = {}
        self._lock = threading.Lock()

    def quality(self, shown: Shown) -> Quality:
        """Returns the quality of a run that shows these frames. Computes the pairs that are missing."""
        self.compute([shown])
        frames = {metric: self.coding.frames[metric].copy() for metric in METRICS}
        for pair in _unlike(shown):
            for metric, value in zip(METRICS, self._known[pair], strict=True):
                frames[metric][pair[0]] = value
        return Quality(frames)

    def compute(
        self, runs: Iterable[Shown], step: Callable[[int, int], object] | None = None, workers: int | None = None
    ) -> None:
        """Computes the missing pairs of these runs, with `workers` threads (default: one for each processor).

        `step` is called with the number of compared frames and of all frames. Finished pairs are kept after an
        exception.
        """
        passes = list(_passes(self._windows(runs), self._pass_frames()))
        total = sum(len(window.due) for each in passes for window in each)
        done = 0
        with tempfile.TemporaryDirectory(prefix="anabranch-") as folder, _pool(workers) as pool:
            works = {pool.submit(self._compare, each, Path(folder), number): each for number, each in enumerate(passes)}
            for work in _finished(works):
                work.result()
                done += sum(len(window.due) for window in works[work])
                if step is not None:
                    step(done, total)

    def pairs_to_compute(self, runs: Iterable[Shown]) -> int:
        """Returns the number of pairs of these runs that are not computed yet."""
        return len({pair for shown in runs for pair in _unlike(shown)} - self._known.keys())

    def _windows(self, runs: Iterable[Shown]) -> Iterator[_Window]:
        planned: set[Pair] = set()
        for shown in runs:
            missing = [pair for pair in _unlike(shown) if pair not in self._known and pair not in planned]
            planned.update(missing)
            for stretch in _stretches(missing, self._pass_frames()):
                yield self._window(stretch)

    def _window(self, stretch: list[Pair]) -> _Window:
        """Returns the pairs of a stretch, between the frames around it."""
        first, last = stretch[0][0], stretch[-1][0]
        before = [first - 1] if first > 0 else []
        after = [last + 1] if last + 1 < self._reference.count else []
        return _Window(
            due=[*before, *(due for due, _ in stretch), *after],
            shown=[*before, *(shown for _, shown in stretch), *after],
            wanted=list(range(len(before), len(before) + len(stretch))),
        )

    def _pass_frames(self) -> int:
        return max(min(_MAX_PASS_BYTES // self._reference.format.frame_bytes, _MAX_PASS_FRAMES), 1)

    def _compare(self, windows: list[_Window], folder: Path, number: int) -> None:
        due = [frame for window in windows for frame in window.due]
        shown = [None if frame == BLACK else frame for window in windows for frame in window.shown]
        reference = rebuild(self._reference, due, folder / f"due-{number}.yuv")
        clip = rebuild(self._decoded, shown, folder / f"shown-{number}.yuv")
        found = quality(reference, clip)
        values = np.column_stack([found.frames[metric] for metric in METRICS]).tolist()
        reference.path.unlink()
        clip.path.unlink()
        at = 0
        with self._lock:
            for window in windows:
                for place in window.wanted:
                    self._known[window.due[place], window.shown[place]] = tuple(values[at + place])
                at += len(window.due)

    def save(self, path: Path, key: str) -> None:
        """Stores the computed pairs for another process; `key` identifies the two clips. Raises `OSError`."""
        pairs = np.array(sorted(self._known), dtype=np.int64).reshape(-1, 2)
        values = np.array([self._known[due, shown] for due, shown in pairs.tolist()], dtype=np.float64)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        with beside.open("wb") as file:
            np.savez(file, key=np.array(key), pairs=pairs, values=values.reshape(-1, len(METRICS)))
        beside.replace(path)

    def load(self, path: Path, key: str) -> None:
        """Loads the pairs that `save` stored under this key.

        Ignores a missing or damaged file, or one of other clips.
        """
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
                pairs, values, of = kept["pairs"], kept["values"], str(kept["key"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return
        whole = pairs.dtype == np.int64 and values.dtype == np.float64
        if of == key and whole and pairs.shape[1:] == (2,) and values.shape == (len(pairs), len(METRICS)):
            known = zip(map(tuple, pairs.tolist()), map(tuple, values.tolist()), strict=True)
            self._known.update(known)


def _unlike(shown: Shown) -> list[Pair]:
    """Returns the pairs of a run that shows another frame than is due."""
    return [(due, BLACK if frame is None else frame) for due, frame in enumerate(shown) if frame != due]


def _stretches(pairs: list[Pair], most_frames: int) -> Iterator[list[Pair]]:
    """Yields pairs whose due frames follow one another, at most `most_frames` together."""
    stretch: list[Pair] = []
    for pair in pairs:
        if stretch and (pair[0] != stretch[-1][0] + 1 or len(stretch) == most_frames):
            yield stretch
            stretch = []
        stretch.append(pair)
    if stretch:
        yield stretch


def _passes(windows: Iterable[_Window], most_frames: int) -> Iterator[list[_Window]]:
    """Yields the windows of each comparison.

    A window is never divided, so a comparison may have slightly more frames than `most_frames`.
    """
    held: list[_Window] = []
    frames = 0
    for window in windows:
        if held and frames + len(window.due) > most_frames:
            yield held
            held, frames = [], 0
        held.append(window)
        frames += len(window.due)
    if held:
        yield held


def _pool(workers: int | None) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers or os.cpu_count() or 1)


def _finished(works: Iterable[Future[None]]) -> Iterator[Future[None]]:
    """Yields futures as they finish, in any order. After an exception, no further one is started."""
    futures = list(works)
    try:
        yield from as_completed(futures)
    finally:
        for future in futures:
            future.cancel()

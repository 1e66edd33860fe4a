"""Evaluation of runs of a coded clip: fates by arrivals, the clip that is shown, and its quality."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anabranch.errors import VideoError
from anabranch.video.arrivals import read_arrivals
from anabranch.video.bounds import MAX_RUNS
from anabranch.video.browser_clip import write_browser_clip
from anabranch.video.coded import STREAM, CodedClip
from anabranch.video.encoder import decode
from anabranch.video.fates import Delivery, Playout, deliveries
from anabranch.video.ffmpeg import escaped
from anabranch.video.measures import DeliveryMeasures, delivery_measures
from anabranch.video.metrics import Quality
from anabranch.video.pair_windows import PairMetrics
from anabranch.video.raw import RawFrames
from anabranch.video.rebuild import rebuild, shown_frames
from anabranch.video.stills import Column, frames_that_differ, write_stills

# Label of the clip without any loss, as the encoder made it.
SENT = "sent"
STILLS = "stills.png"
# A label is part of a file's name.
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,()=+-]{0,63}")

Against = Literal["source", "sent"]
Step = Callable[[], object]


@dataclass(frozen=True, slots=True)
class RunArrivals:
    """File with the arrivals of one run, and a label such as the name of the scheme."""

    label: str
    arrivals: Path


@dataclass(frozen=True)
class EvaluatedRun:
    """Results of one run. `quality` is `None` if no frame was decodable, because no picture can then be compared."""

    label: str
    deliveries: list[Delivery]
    measures: DeliveryMeasures
    shown: list[int | None]
    quality: Quality | None


@dataclass(frozen=True)
class Evaluation:
    """Results of all runs. `coding` is the quality of the clip without loss."""

    clip: CodedClip
    deadline_ms: float
    against: Against
    coding: Quality
    runs: list[EvaluatedRun]


def evaluate(
    clip: CodedClip,
    runs: Sequence[RunArrivals],
    deadline_ms: float,
    *,
    against: Against = "source",
    pictures: Path | None = None,
    step: Step | None = None,
) -> Evaluation:
    """Computes fates and quality of each run. Writes stills and a clip of each run to the folder `pictures`, if given.

    `against` selects the reference of the quality: the source, which includes the loss by coding, or the clip as sent.
    `step` is called after each of `steps(runs)`. Raises `VideoError`.
    """
    check_labels(runs)
    playout = Playout.of(deadline_ms)
    # All files are read before anything is computed, so that an error in the last one is reported at once.
    delivered = [
        deliveries(clip.frames, clip.packets, read_arrivals(run.arrivals, clip.frames, clip.packets), playout)
        for run in runs
    ]
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        judge = _Judge(clip, Path(folder), against, pictures, step or (lambda: None))
        evaluated = [judge.run(run.label, each) for run, each in zip(runs, delivered, strict=True)]
        if pictures is not None:
            _write_stills(pictures / STILLS, judge, evaluated)
    return Evaluation(clip, deadline_ms, against, judge.coding, evaluated)


def steps(runs: Sequence[RunArrivals]) -> int:
    """Returns the number of calls of `step` by `evaluate`: one for the clip as sent, and one for each run."""
    return 1 + len(runs)


def check_labels(runs: Sequence[RunArrivals]) -> None:
    """Raises `VideoError` for labels that no file can have, for labels that occur twice, and for too many runs."""
    if not 1 <= len(runs) <= MAX_RUNS:
        raise VideoError(f"{len(runs)} runs: give 1 to {MAX_RUNS} files of arrivals")
    seen: set[str] = set()
    for run in runs:
        if _LABEL.fullmatch(run.label) is None or run.label == SENT:
            raise VideoError(
                f"{escaped(str(run.arrivals))}: `{escaped(run.label[:64])}` is not a label: name the run, as in "
                "--arrivals cmt=FILE, with letters, digits and ._,()=+-"
            )
        if run.label in seen:
            raise VideoError(f"{run.arrivals}: there are two runs `{run.label}`: name one, as in --arrivals cmt-2=FILE")
        seen.add(run.label)


class _Judge:
    """Decodes the clip once, and compares the frames that each run shows."""

    def __init__(self, clip: CodedClip, folder: Path, against: Against, pictures: Path | None, step: Step) -> None:
        self._clip = clip
        self._folder = folder
        self._pictures = pictures
        self._step = step
        self.decoded = decode(clip.folder / STREAM, clip.source, folder / "decoded.yuv")
        self._pairs = PairMetrics(clip.source if against == "source" else self.decoded, self.decoded)
        self.coding = self._pairs.coding
        self._write_clip(self.decoded, SENT)
        step()

    def run(self, label: str, delivered: list[Delivery]) -> EvaluatedRun:
        shown = shown_frames(delivered)
        measures = delivery_measures(delivered)
        judged = self._pairs.quality(shown) if any(each is not None for each in shown) else None
        if judged is not None and self._pictures is not None:
            self._write_clip(rebuild(self.decoded, shown, self._folder / "rebuilt.yuv"), label)
        self._step()
        return EvaluatedRun(label, delivered, measures, shown, judged)

    def _write_clip(self, frames: RawFrames, label: str) -> None:
        if self._pictures is not None:
            write_browser_clip(frames, self._pictures / f"{label}.mp4")


def _write_stills(path: Path, judge: _Judge, runs: list[EvaluatedRun]) -> None:
    values = [judge.coding.frames["psnr_db"], *(run.quality.frames["psnr_db"] for run in runs if run.quality)]
    columns = [Column(SENT, list(range(judge.decoded.count))), *(Column(run.label, run.shown) for run in runs)]
    write_stills(path, judge.decoded, columns, frames_that_differ(values))

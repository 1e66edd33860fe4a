"""Evaluation of simulated runs: fates and quality of every run, and means with intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anabranch.estimate import Estimate, mean_interval
from anabranch.video.arrivals import read_arrivals
from anabranch.video.coded import STREAM, CodedClip
from anabranch.video.encoder import decode
from anabranch.video.evaluation import Against
from anabranch.video.fates import Delivery, Fate, Playout, deliveries
from anabranch.video.frame import FrameType
from anabranch.video.measures import DeliveryMeasures, delivery_measures
from anabranch.video.metrics import METRICS, Quality
from anabranch.video.pair_windows import PairMetrics
from anabranch.video.raw import RawFrames
from anabranch.video.rebuild import shown_frames
from anabranch.video_comparison.runs import SimulatedRun

PAIRS = "pairs.npz"


@dataclass(frozen=True, slots=True)
class Figure:
    """Figure of a run. `is_better` is 1 if more is better, -1 if less is, and 0 if neither is."""

    name: str
    title: str
    unit: str
    decimals: int
    is_better: int = 0


FIGURES: tuple[Figure, ...] = (
    Figure("decodable_percent", "decodable", "%", 1, 1),
    *(Figure(f"not_shown_{kind.value}", f"{kind.value} not shown", "frames", 1, -1) for kind in FrameType),
    *(Figure(fate.value, fate.value, "frames", 1, -1) for fate in Fate if fate is not Fate.GOOD),
    Figure("stalls", "stalls", "", 1, -1),
    Figure("stall_s", "stall time", "s", 2, -1),
    Figure("longest_stall_s", "longest stall", "s", 2, -1),
    Figure("delay_p95_ms", "delay, 95th percentile", "ms", 1, -1),
    Figure("abandoned", "abandoned", "messages", 1),
    Figure("psnr_db", "PSNR", "dB", 2, 1),
    Figure("ssim", "SSIM", "", 4, 1),
    Figure("vqm", "VQM", "", 3, -1),
    Figure("vmaf", "VMAF", "", 2, 1),
)


@dataclass(frozen=True)
class Detail:
    """Values of each frame, in the order of coding (`deliveries`) and of display (`shown`, and those of `quality`)."""

    deliveries: list[Delivery]
    shown: list[int | None]
    quality: Quality | None


@dataclass(frozen=True)
class ComparedRun:
    """Evaluated run. `figures` has a number for each of `FIGURES`, or NaN. Only runs of one seed have a `detail`."""

    run: SimulatedRun
    figures: Mapping[str, float]
    detail: Detail | None

    @property
    def has_picture(self) -> bool:
        """`True` if any frame was decodable."""
        return not math.isnan(self.figures["psnr_db"])


def _figures(run: SimulatedRun, measures: DeliveryMeasures, judged: Quality | None) -> dict[str, float]:
    delays = measures.delays
    return {
        "decodable_percent": measures.decodable_ratio * 100,
        **{f"not_shown_{kind.value}": measures.dropped(kind) for kind in FrameType},
        **{fate.value: measures.count(fate) for fate in Fate if fate is not Fate.GOOD},
        "stalls": measures.stalls,
        "stall_s": measures.stall_s,
        "longest_stall_s": measures.longest_stall_s,
        "delay_p95_ms": math.nan if delays is None else delays.percentiles_ms[95],
        "abandoned": math.nan if run.abandoned is None else run.abandoned,
        **{metric: math.nan if judged is None else judged.mean(metric) for metric in METRICS},
    }


@dataclass(frozen=True)
class Comparison:
    """Compared runs, scheme by scheme. `decoded` is the clip as the encoder made it, and `coding` its quality."""

    clip: CodedClip
    decoded: RawFrames
    deadline_ms: float
    against: Against
    coding: Quality
    runs: list[ComparedRun]
    warnings: list[str] = field(default_factory=list)

    @property
    def schemes(self) -> list[str]:
        """Schemes in the order of the runs."""
        return list(dict.fromkeys(each.run.scheme for each in self.runs))

    @property
    def seeds(self) -> list[int]:
        """Seeds in the order of the runs."""
        return list(dict.fromkeys(each.run.seed for each in self.runs))

    def of(self, scheme: str) -> list[ComparedRun]:
        """Returns the runs of a scheme."""
        return [each for each in self.runs if each.run.scheme == scheme]

    def estimates(self, scheme: str) -> dict[str, Estimate]:
        """Returns means over the seeds of a scheme, with their intervals."""
        figures = [each.figures for each in self.of(scheme)]
        return {figure.name: mean_interval([of[figure.name] for of in figures]) for figure in FIGURES}

    def differences(self, baseline: str, figure: str) -> Iterator[tuple[str, Estimate]]:
        """Yields the mean difference of each other scheme to `baseline`, over seeds."""
        base = {each.run.seed: each.figures[figure] for each in self.of(baseline)}
        for scheme in self.schemes:
            if scheme != baseline:
                pairs = [(each.figures[figure], base.get(each.run.seed, math.nan)) for each in self.of(scheme)]
                yield scheme, mean_interval([value - other for value, other in pairs])


def compare(
    clip: CodedClip,
    runs: Sequence[SimulatedRun],
    deadline_ms: float,
    work: Path,
    *,
    shown_seed: int,
    against: Against = "source",
    cache: Path | None = None,
    step: Callable[[int, int], object] | None = None,
) -> Comparison:
    """Returns fates and quality of all runs, and single frames of those with `shown_seed`.

    `work` is a folder for the decoded clip, `cache` a file for pairs of frames. `step` is called with the number of
    compared frames and of all frames. Raises `VideoError`.
    """
    playout = Playout.of(deadline_ms)
    watched = [_watch(clip, run, playout, keep=run.seed == shown_seed) for run in runs]
    decoded = decode(clip.folder / STREAM, clip.source, work / "decoded.yuv")
    pairs = PairMetrics(clip.source if against == "source" else decoded, decoded)
    key = _key(clip.manifest, against)
    if cache is not None:
        pairs.load(cache, key)
    try:
        pairs.compute((each.shown for each in watched if _has_picture(each.shown)), step)
    finally:
        if cache is not None:
            pairs.save(cache, key)
    compared = [_judge(run, each, pairs) for run, each in zip(runs, watched, strict=True)]
    return Comparison(clip, decoded, deadline_ms, against, pairs.coding, compared)


@dataclass(frozen=True, slots=True)
class _Watched:
    """Frames that a viewer saw in a run. `deliveries` is None for runs without single frames."""

    shown: list[int | None]
    measures: DeliveryMeasures
    deliveries: list[Delivery] | None


def _watch(clip: CodedClip, run: SimulatedRun, playout: Playout, *, keep: bool) -> _Watched:
    arrivals_ms = read_arrivals(run.arrivals, clip.frames, clip.packets)
    found = deliveries(clip.frames, clip.packets, arrivals_ms, playout)
    measures = delivery_measures(found)
    return _Watched(shown_frames(found), measures, found if keep else None)


def _judge(run: SimulatedRun, watched: _Watched, pairs: PairMetrics) -> ComparedRun:
    judged = pairs.quality(watched.shown) if _has_picture(watched.shown) else None
    detail = None if watched.deliveries is None else Detail(watched.deliveries, watched.shown, judged)
    return ComparedRun(run, _figures(run, watched.measures, judged), detail)


def _has_picture(shown: Sequence[int | None]) -> bool:
    return any(each is not None for each in shown)


def _key(manifest: Mapping[str, Any], against: Against) -> str:
    """Returns the dependencies of pairs of frames: both clips, and the programs that compare them."""
    import anabranch
    from anabranch.video import ffmpeg

    parts = (anabranch.__version__, ffmpeg.version(), manifest["source_sha256"], manifest["bitstream_sha256"], against)
    return "\n".join(parts)

"""Measures of video flows: frames that are not shown, and the quality of the pictures shown in their place.

The figures of runs contain the fate of each frame. Quality is computed from the fates and from the clip, which is
encoded again. The trace of the scenario is named after its clip, and has to be equal to that of the encoder. Quality
has no values if the packages for video are missing or the encoder is another one. A message reports this once.
"""

from __future__ import annotations

import filecmp
import math
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import ExperimentError, VideoError
from anabranch.experiments.measures.definition import measure
from anabranch.experiments.measures.of_runs import Runs
from anabranch.experiments.model import Measure

if TYPE_CHECKING:
    import pandas

    from anabranch.video.metrics import SpatialMetric
    from anabranch.video.pairs import PairQuality

_TABLE = "cmt-qa Table 2"
# Package with the encoder of the traces beside the scenarios.
_ENCODER = "imageio-ffmpeg==0.8.1"


def _summed(runs: Runs, asked: Measure, columns: list[str]) -> pandas.Series:
    """Returns the sum of columns of videos for each run; NaN for a run without a video."""
    flows = runs.of_flow(asked)
    return flows[columns].sum(axis=1, min_count=len(columns)).groupby(level=0).sum(min_count=1)


@measure("Frames not shown", "per run", "none", allows=["flow"], grows=True)
def dropped_frames(runs: Runs, asked: Measure) -> pandas.Series:
    """Frames that are lost, late, or undecodable because another frame is missing."""
    return _summed(runs, asked, [f"dropped_{kind}_frames" for kind in "ipb"])


@measure("Dropped frames", "per run", _TABLE, allows=["flow"], grows=True)
def missing_frames(runs: Runs, asked: Measure) -> pandas.Series:
    """Frames that are lost or late, the dropped frames of the paper."""
    return _summed(runs, asked, [f"missing_{kind}_frames" for kind in "ipb"])


@measure("Dropped I frames", "per run", _TABLE, allows=["flow"], grows=True)
def missing_i_frames(runs: Runs, asked: Measure) -> pandas.Series:
    """`missing_frames` of I frames only."""
    return _summed(runs, asked, ["missing_i_frames"])


@measure("Dropped P frames", "per run", _TABLE, allows=["flow"], grows=True)
def missing_p_frames(runs: Runs, asked: Measure) -> pandas.Series:
    """`missing_frames` of P frames only."""
    return _summed(runs, asked, ["missing_p_frames"])


@measure("Dropped B frames", "per run", _TABLE, allows=["flow"], grows=True)
def missing_b_frames(runs: Runs, asked: Measure) -> pandas.Series:
    """`missing_frames` of B frames only."""
    return _summed(runs, asked, ["missing_b_frames"])


@measure("Lost frames", "per run", "none", allows=["flow"], grows=True)
def lost_frames(runs: Runs, asked: Measure) -> pandas.Series:
    """Frames of which a packet never arrived."""
    return _summed(runs, asked, ["lost_frames"])


@measure("Late frames", "per run", "none", allows=["flow"], grows=True)
def late_frames(runs: Runs, asked: Measure) -> pandas.Series:
    """Frames that were complete only after their playout time."""
    return _summed(runs, asked, ["late_frames"])


@measure("Abandoned messages", "per run", "none", allows=["flow"], grows=True)
def abandoned_messages(runs: Runs, asked: Measure) -> pandas.Series:
    """Messages that the sender abandoned because they had reached their limits."""
    return _summed(runs, asked, ["abandoned_messages"])


@measure("Delay of frames, 95th percentile", "ms", "none", needs=["flow"])
def frame_delay_p95_ms(runs: Runs, asked: Measure) -> pandas.Series:
    """Time from the hand-over of a frame to the arrival of its last packet, of complete frames."""
    return runs.of_flow(asked)["frame_delay_p95_ms"]


@measure("PSNR", "dB", "cmt-qa Table 2, whose PSNR seems to be against the source", needs=["flow"])
def video_psnr_db(runs: Runs, asked: Measure) -> pandas.Series:
    """Mean PSNR of luma of the shown pictures against the source, as `anabranch video evaluate` computes it."""
    return _quality(runs, asked, "psnr_db", "source")


@measure("SSIM against the clip as sent", "1", "cmt-qa Table 2, which compared with the sent video", needs=["flow"])
def video_ssim_sent(runs: Runs, asked: Measure) -> pandas.Series:
    """Mean SSIM of luma of the shown pictures against the encoder's output."""
    return _quality(runs, asked, "ssim", "sent")


@measure("VQM against the clip as sent", "1", "cmt-qa Table 2, which compared with the sent video", needs=["flow"])
def video_vqm_sent(runs: Runs, asked: Measure) -> pandas.Series:
    """Mean VQM of the shown pictures against the encoder's output; lower is better."""
    return _quality(runs, asked, "vqm", "sent")


@measure("SSIM", "1", "another reading of cmt-qa Table 2", needs=["flow"])
def video_ssim_source(runs: Runs, asked: Measure) -> pandas.Series:
    """Mean SSIM of luma of the shown pictures against the source."""
    return _quality(runs, asked, "ssim", "source")


@measure("VQM", "1", "another reading of cmt-qa Table 2", needs=["flow"])
def video_vqm_source(runs: Runs, asked: Measure) -> pandas.Series:
    """Mean VQM of the shown pictures against the source; lower is better."""
    return _quality(runs, asked, "vqm", "source")


def _quality(runs: Runs, asked: Measure, metric: SpatialMetric, against: str) -> pandas.Series:
    import pandas

    from anabranch.video.pairs import shown_by_fates

    fates = runs.of_flow(asked)["frame_fates"]
    if fates.isna().any():
        raise ExperimentError(f"measure `{asked}`: flow `{asked.flow}` is not a video")
    try:
        quality = _pairs(_trace(runs, asked))[against]
    except VideoError as error:
        _say_once(f"PSNR, SSIM and VQM are omitted: {error}")
        return pandas.Series(math.nan, index=fates.index)
    shown = {text: shown_by_fates(text) for text in fates.unique()}
    # All missing pairs are compared in one call, so that ffmpeg is started once for thousands of pairs instead of once
    # per run.
    quality.learn(shown.values())
    means = {text: quality.mean(frames, metric) for text, frames in shown.items()}
    return pandas.Series({key: means[text] for key, text in fates.items()}, dtype=float)


def _trace(runs: Runs, asked: Measure) -> Path:
    """Returns the trace that the flow sends in all runs."""

    def named(tables: dict[str, Any]) -> str:
        return next(str(flow["trace"]) for flow in tables["flow"] if flow["name"] == asked.flow)

    names = {named(runs.scenario(place)) for place in set(runs.places.values())}
    if len(names) != 1:
        raise ExperimentError(
            f"measure `{asked}`: flow `{asked.flow}` sends several traces: {', '.join(sorted(names))}"
        )
    return runs.folder / names.pop()


@cache
def _pairs(trace: Path) -> dict[str, PairQuality]:
    """Returns the quality against the source and against the clip as sent. Each pair is compared once in a process.

    Raises `VideoError` if a package is missing, or the trace differs from that of the encoder.
    """
    from anabranch.video.clip_cache import cached_clip
    from anabranch.video.coded import STREAM, TRACE
    from anabranch.video.encoder import decode
    from anabranch.video.pairs import PairQuality, Pictures

    clip = cached_clip(trace.stem)
    if not filecmp.cmp(trace, clip.folder / TRACE, shallow=False):
        encoder = str(clip.manifest.get("encoder")).partition(" Copyright")[0]
        raise VideoError(
            f"{trace}: is not what {encoder} makes of the clip `{trace.stem}`: quality needs the encoder that the "
            f"trace was made with, pip install '{_ENCODER}'"
        )
    # It is removed when the process ends.
    folder = tempfile.TemporaryDirectory(prefix="anabranch-")
    _KEPT.append(folder)
    sent = Pictures(decode(clip.folder / STREAM, clip.source, Path(folder.name) / "decoded.yuv"))
    return {"source": PairQuality(Pictures(clip.source), sent), "sent": PairQuality(sent, sent)}


@cache
def _say_once(message: str) -> None:
    print(message, file=sys.stderr)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []

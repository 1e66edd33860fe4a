"""PSNR, SSIM, VMAF and VQM of each frame of a clip against a reference.

PSNR, SSIM and VMAF come from ffmpeg's filters `psnr`, `ssim` and `libvmaf`, VQM from `vqm`. All use luma only; VMAF has
no other model. Both clips have the same number of frames at the same times.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from anabranch.errors import VideoError
from anabranch.video import ffmpeg
from anabranch.video.bounds import time_limit_s
from anabranch.video.encoder import raw_input
from anabranch.video.raw import RawFrames
from anabranch.video.vqm import frame_vqm

# PSNR of identical frames is infinite, and would make each mean infinite. MSU's tool reports 100 dB as well.
IDENTICAL_PSNR_DB = 100.0

FilterMetric = Literal["psnr_db", "ssim"]
SpatialMetric = Literal[FilterMetric, "vqm"]
SPATIAL_METRICS: tuple[SpatialMetric, ...] = get_args(SpatialMetric)
"""Metrics of a frame that depend on that frame only."""
Metric = Literal[SpatialMetric, "vmaf"]
METRICS: tuple[Metric, ...] = (*SPATIAL_METRICS, "vmaf")
Values: TypeAlias = npt.NDArray[np.float64]

_PSNR = re.compile(r"^lavfi\.psnr\.psnr\.y=(\S+)$", re.MULTILINE)
_SSIM = re.compile(r"^lavfi\.ssim\.Y=(\S+)$", re.MULTILINE)
_METADATA, _VMAF_LOG = "metadata.txt", "vmaf.json"
# Both inputs have the same frames at the same times. The filters take the clip first and its reference second.
_SPATIAL_FILTERS = f"[1:v]split=2[r1][r2];[0:v][r1]psnr[p];[p][r2]ssim,metadata=mode=print:file={_METADATA}"
_FILTERS = (
    "[1:v]split=3[r1][r2][r3];[0:v][r1]psnr[p];[p][r2]ssim[s];"
    f"[s][r3]libvmaf=n_threads=1:log_fmt=json:log_path={_VMAF_LOG},metadata=mode=print:file={_METADATA}"
)


@dataclass(frozen=True)
class Quality:
    """Value of each metric for each frame in the order of display."""

    frames: Mapping[Metric, Values]

    def mean(self, metric: Metric) -> float:
        """Returns the mean over frames."""
        return float(self.frames[metric].mean())


def quality(reference: RawFrames, clip: RawFrames) -> Quality:
    """Returns all metrics. Raises `VideoError` if the formats differ, or if ffmpeg fails or lacks a filter."""
    ffmpeg.require("filters", "libvmaf")
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        values: dict[Metric, Values] = dict(_filtered(reference, clip, _FILTERS, Path(folder)).items())
        vmaf = json.loads(Path(folder, _VMAF_LOG).read_text(encoding="ascii"))
    values["vqm"] = frame_vqm(reference.luma(), clip.luma())
    values["vmaf"] = np.array([frame["metrics"]["vmaf"] for frame in vmaf["frames"]])
    _check_count("vmaf", values["vmaf"], clip)
    return Quality({metric: values[metric] for metric in METRICS})


def psnr_and_ssim(reference: RawFrames, clip: RawFrames) -> dict[FilterMetric, Values]:
    """Returns PSNR and SSIM, which do not depend on the order of frames. Raises `VideoError` like `quality`."""
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        return _filtered(reference, clip, _SPATIAL_FILTERS, Path(folder))


def _filtered(reference: RawFrames, clip: RawFrames, filters: str, folder: Path) -> dict[FilterMetric, Values]:
    """Returns PSNR and SSIM from the output of the filters."""
    if (reference.format, reference.count) != (clip.format, clip.count):
        raise VideoError(
            f"{clip.path}: {clip.count} frames of {clip.format.size} cannot be compared with {reference.count} of "
            f"{reference.format.size} in {reference.path}"
        )
    ffmpeg.require("filters", "psnr", "ssim")
    arguments = [*raw_input(clip), *raw_input(reference), "-lavfi", filters, *ffmpeg.SINGLE_THREAD]
    limit_s = time_limit_s(clip.format.luma_bytes, clip.count)
    ffmpeg.run([*arguments, "-f", "null", "-"], str(clip.path), limit_s, folder=folder)
    metadata = Path(folder, _METADATA).read_text(encoding="ascii")
    values: dict[FilterMetric, Values] = {
        "psnr_db": np.minimum(_matches(_PSNR, metadata), IDENTICAL_PSNR_DB),
        "ssim": _matches(_SSIM, metadata),
    }
    for metric, found in values.items():
        _check_count(metric, found, clip)
    return values


def _check_count(metric: Metric, found: Values, clip: RawFrames) -> None:
    if len(found) != clip.count:
        raise VideoError(f"{clip.path}: {metric} of {len(found)} frames was computed, not of {clip.count}")


def _matches(pattern: re.Pattern[str], text: str) -> Values:
    return np.array([float(found) for found in pattern.findall(text)])

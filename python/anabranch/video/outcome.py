"""Evaluation as files and text: a table with a row for each frame of each run, a summary, and a printed table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anabranch
from anabranch.counting import counted
from anabranch.estimate import rounded
from anabranch.video.evaluation import SENT, EvaluatedRun, Evaluation
from anabranch.video.fates import Fate
from anabranch.video.frame import FrameType
from anabranch.video.measures import Delays, DeliveryMeasures
from anabranch.video.metrics import METRICS, Quality
from anabranch.video.tables import write_table

FRAMES, SUMMARY = "frames.parquet", "summary.json"
NOTHING_DECODABLE = "no frame was decodable, so no quality can be computed"
_DECIMALS = {"psnr_db": 2, "ssim": 4, "vqm": 3, "vmaf": 2}
_ABSENT = "-"


def write_outcome(evaluation: Evaluation, folder: Path) -> None:
    """Writes the table of frames and the summary. Raises `OSError`."""
    write_table(folder / FRAMES, _frames(evaluation))
    (folder / SUMMARY).write_text(json.dumps(summary(evaluation), indent=2) + "\n", encoding="utf-8")


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """Returns the evaluated clip, and the figures of each run."""
    return {
        "version": anabranch.__version__,
        "clip": dict(evaluation.clip.manifest),
        "deadline_ms": evaluation.deadline_ms,
        "against": evaluation.against,
        "coding": _means(evaluation.coding),
        "runs": {run.label: _of_run(run) for run in evaluation.runs},
    }


def _of_run(run: EvaluatedRun) -> dict[str, Any]:
    return {
        **({"note": NOTHING_DECODABLE} if run.quality is None else {}),
        **_means(run.quality),
        **of_measures(run.measures),
    }


def of_measures(measures: DeliveryMeasures) -> dict[str, Any]:
    """Returns the measures of delivery, which need no pictures."""
    return {
        "decodable_frame_ratio": measures.decodable_ratio,
        "frames": {
            kind.value: {fate.value: count for fate, count in fates.items()} for kind, fates in measures.fates.items()
        },
        "dropped": {kind.value: measures.dropped(kind) for kind in FrameType},
        "stalls": measures.stalls,
        "stall_s": measures.stall_s,
        "longest_stall_s": measures.longest_stall_s,
        "delay": None if measures.delays is None else _delays(measures.delays),
    }


def _means(quality: Quality | None) -> dict[str, float | None]:
    return {metric: None if quality is None else quality.mean(metric) for metric in METRICS}


def _delays(delays: Delays) -> dict[str, float]:
    percentiles = {f"p{percent}_ms": value for percent, value in delays.percentiles_ms.items()}
    return {"frames": delays.frames, "mean_ms": delays.mean_ms, **percentiles, "largest_ms": delays.largest_ms}


def _frames(evaluation: Evaluation) -> dict[str, list[Any]]:
    names = ("run", "display", "number", "type", "fate", "shown", "delay_ms", *METRICS)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for run in evaluation.runs:
        for each in sorted(run.deliveries, key=lambda each: each.frame.display):
            frame = each.frame
            place = frame.display
            values = [None if run.quality is None else float(run.quality.frames[metric][place]) for metric in METRICS]
            row = (run.label, place, frame.number, frame.type.value, each.fate.value, run.shown[place], each.delay_ms)
            for column, value in zip(columns.values(), (*row, *values), strict=True):
                column.append(value)
    return columns


def as_text(evaluation: Evaluation) -> str:
    """Returns a table with a row for the clip as sent, and one for each run."""
    head = ("run", "PSNR dB", "SSIM", "VQM", "VMAF", "I", "P", "B", "lost", "late", "undec.", "decodable", "stall s")
    sent = [SENT, *_cells(evaluation.coding), *"000", *"000", "1.000", "0.00"]
    rows = [list(head), sent, *(_row(run) for run in evaluation.runs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [_line(row, widths) for row in rows]
    manifest = evaluation.clip.manifest
    about = (
        f"{manifest.get('clip')}, {counted(evaluation.clip.source.count, 'frame')} of "
        f"{evaluation.clip.source.format.size}, "
        f"{counted(len(evaluation.clip.packets), 'packet')}; deadline {evaluation.deadline_ms:g} ms; "
        f"quality against the {'source' if evaluation.against == 'source' else 'clip as sent'}"
    )
    return "\n".join(
        [
            about,
            "",
            *lines,
            "",
            "I, P, B: frames not shown. VQM: lower is better. VMAF is not calibrated for small frames.",
        ]
    )


def _row(run: EvaluatedRun) -> list[str]:
    measures = run.measures
    return [
        run.label,
        *_cells(run.quality),
        *(str(measures.dropped(kind)) for kind in FrameType),
        *(str(measures.count(fate)) for fate in (Fate.LOST, Fate.LATE, Fate.UNDECODABLE)),
        rounded(measures.decodable_ratio, 3),
        rounded(measures.stall_s, 2),
    ]


def _cells(quality: Quality | None) -> list[str]:
    return [_ABSENT if quality is None else rounded(quality.mean(metric), _DECIMALS[metric]) for metric in METRICS]


def _line(row: list[str], widths: list[int]) -> str:
    first, *others = (
        cell.ljust(width) if at == 0 else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([first, *others])

"""Comparison as files and text: a row for each run, a summary as JSON, and a printed table."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import anabranch
from anabranch.counting import counted
from anabranch.estimate import Estimate, rounded
from anabranch.video.metrics import METRICS
from anabranch.video.outcome import NOTHING_DECODABLE
from anabranch.video.tables import write_table
from anabranch.video_comparison.comparison import FIGURES, Comparison, Figure

SUMMARY, RUN_TABLE = "comparison.json", "runs.csv"
_PRINTED = ("not_shown_I", "not_shown_P", "not_shown_B", "lost", "late", "undecodable", "decodable_percent", "stalls",
            "stall_s", *METRICS)  # fmt: skip
_SHORT = {"not_shown_I": "I", "not_shown_P": "P", "not_shown_B": "B", "undecodable": "undec.", "stall_s": "stall s",
          "decodable_percent": "decod. %", "psnr_db": "PSNR dB"}  # fmt: skip


def write_comparison(comparison: Comparison, folder: Path, settings: dict[str, Any]) -> None:
    """Writes the tables. `settings` describe the runs. Raises `OSError`."""
    columns: dict[str, list[Any]] = {"scheme": [], "seed": [], **{figure.name: [] for figure in FIGURES}}
    for each in comparison.runs:
        columns["scheme"].append(each.run.scheme)
        columns["seed"].append(each.run.seed)
        for name, value in each.figures.items():
            columns[name].append(None if math.isnan(value) else value)
    write_table(folder / RUN_TABLE, columns)
    (folder / SUMMARY).write_text(json.dumps(summary(comparison, settings), indent=2) + "\n", encoding="utf-8")


def summary(comparison: Comparison, settings: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings, and means with half the width of their 95 % intervals."""
    return {
        "version": anabranch.__version__,
        "clip": dict(comparison.clip.manifest),
        "deadline_ms": comparison.deadline_ms,
        "against": comparison.against,
        **settings,
        "seeds": comparison.seeds,
        "coding": {metric: comparison.coding.mean(metric) for metric in METRICS},
        "warnings": comparison.warnings,
        "schemes": {
            scheme: {name: _as_json(estimate) for name, estimate in comparison.estimates(scheme).items()}
            for scheme in comparison.schemes
        },
    }


def _as_json(estimate: Estimate) -> dict[str, Any]:
    return {
        "mean": _number(estimate.mean),
        "half_width": _number(estimate.half_width),
        "n": estimate.n,
        "kind": estimate.kind,
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def as_text(comparison: Comparison) -> str:
    """Returns a table with a row for the clip as sent and one for each scheme."""
    figures = {figure.name: figure for figure in FIGURES}
    head = ["scheme", *(_SHORT.get(name, figures[name].title) for name in _PRINTED)]
    sent = ["sent", *(cell_of_coding(comparison, figures[name]) for name in _PRINTED)]
    rows = [head, sent]
    for scheme in comparison.schemes:
        estimates = comparison.estimates(scheme)
        rows.append([scheme, *(cell(estimates[name], figures[name]) for name in _PRINTED)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    clip = comparison.clip
    about = (
        f"{clip.manifest.get('clip')}, {clip.source.count} frames of {clip.source.format.size}; deadline "
        f"{comparison.deadline_ms:g} ms; {counted(len(comparison.seeds), 'seed')}, ± is half a 95 % interval"
    )
    notes = "I, P, B: frames not shown. VQM: lower is better. VMAF is not calibrated for small frames."
    return "\n".join([about, "", *lines, "", notes, *comparison.warnings])


def cell(estimate: Estimate, figure: Figure) -> str:
    """Returns a mean with half its interval, in the digits of the figure."""
    if estimate.n == 0:
        return "-"
    mean = rounded(estimate.mean, figure.decimals)
    return f"{mean} ± {rounded(estimate.half_width, figure.decimals)}" if estimate.kind == "interval" else mean


def cell_of_coding(comparison: Comparison, figure: Figure) -> str:
    """Returns the figure of the clip without loss."""
    if figure.name in METRICS:
        metric = next(metric for metric in METRICS if metric == figure.name)
        return rounded(comparison.coding.mean(metric), figure.decimals)
    return {"decodable_percent": "100.0", "delay_p95_ms": "-", "abandoned": "-"}.get(figure.name, "0")


def warnings_of(comparison: Comparison) -> list[str]:
    """Returns a warning for each run without a decodable frame."""
    without = [each for each in comparison.runs if not each.has_picture]
    return [f"{each.run.label}: {NOTHING_DECODABLE}" for each in without]

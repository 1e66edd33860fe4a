"""Figures as files: a picture as SVG and PNG, the data beside it as CSV and Parquet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.estimate import significant
from anabranch.experiments import outcome as out
from anabranch.experiments.claims.claim import Claim
from anabranch.experiments.drawing.data import figure_data, lines
from anabranch.experiments.drawing.draw import draw
from anabranch.experiments.drawing.published import frame_of, published_values
from anabranch.experiments.jobs import Measurements
from anabranch.experiments.model import Figure
from anabranch.figures.saving import save


def write_figure(
    figure: Figure, measurements: Measurements, claims: Sequence[Claim], folder: Path, endings: Sequence[str]
) -> out.FigureOutcome:
    """Draws a figure with the claimed numbers over it into a folder, as files with these endings.

    Raises `OSError` if the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    frame = figure_data(figure, measurements)
    # The first figure's data goes by a name that is the same in all folders.
    stem = "data" if figure.name == "figure" else f"{figure.name}-data"
    files = [f"{stem}.csv", f"{stem}.parquet"]
    frame.to_csv(folder / files[0], index=False, lineterminator="\n")
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / files[1], compression="zstd")
    published = published_values(figure, measurements.setting, claims)
    if published:
        files.append("claimed.csv" if figure.name == "figure" else f"{figure.name}-claimed.csv")
        frame_of(published).to_csv(folder / files[-1], index=False, lineterminator="\n")
    drawn = draw(frame, figure, measurements.setting, published)
    if drawn is not None:
        for ending in endings:
            save(drawn, folder / f"{figure.name}.{ending}")
            files.append(f"{figure.name}.{ending}")
    return {
        "name": figure.name,
        "kind": figure.kind,
        "title": figure.title,
        "files": files,
        "table": _table(figure, frame),
    }


def _table(figure: Figure, frame: pd.DataFrame) -> list[list[str]]:
    """Returns the rows of figures that are tables: a header, and a row for each scheme."""
    if frame.empty:
        return []
    if figure.kind == "regression":
        return _regression_table(frame)
    return _means_table(frame) if figure.kind == "table" else []


def _means_table(frame: pd.DataFrame) -> list[list[str]]:
    labels = list(dict.fromkeys(frame["label"]))
    rows = [["", "scheme", *labels]]
    for (panel, scheme), own in frame.groupby(["panel", "scheme"], sort=False):
        cells = {row.label: _estimate(row) for row in own.itertuples()}
        rows.append([str(panel), str(scheme), *[cells.get(label, "") for label in labels]])
    return rows


def _regression_table(frame: pd.DataFrame) -> list[list[str]]:
    rows = [["", "scheme", "line", "R²", "multiple R", "standard error", "F", "p-value", "points"]]
    for fit in lines(frame).itertuples():
        equation = f"y = {significant(fit.slope, 5)}x {'-' if fit.intercept < 0 else '+'} {abs(fit.intercept):.6g}"
        figures = [f"{fit.r2:.3f}", f"{fit.multiple_r:.3f}", f"{fit.standard_error:.4g}", f"{fit.f:.4g}"]
        rows.append([str(fit.panel), str(fit.scheme), equation, *figures, f"{fit.p_value:.2g}", str(fit.n)])
    return rows


def _estimate(row: Any) -> str:
    """Returns a mean with Student's interval and, in parentheses, the normal interval of the sources."""
    if math.isnan(row.mean):
        return "no value"
    if math.isnan(row.half_width):
        return significant(row.mean, 5)
    return f"{significant(row.mean, 5)} ± {row.half_width:.3g} (± {row.half_width_normal:.3g})"

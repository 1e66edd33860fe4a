"""Figures as files: a picture as SVG and PNG, the data beside it as CSV and Parquet."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.figures.saving import save
from anabranch.papers import outcome as out
from anabranch.papers.drawing import data
from anabranch.papers.drawing.draw import draw
from anabranch.papers.model import TRACED_FIGURES, Figure
from anabranch.papers.pages.wording import estimate_text
from anabranch.papers.reproduce import Samples


def write_figure(figure: Figure, samples: Samples, folder: Path) -> out.FigureOutcome:
    """Draws a figure into a folder. Raises `OSError` if that cannot be written to."""
    folder.mkdir(parents=True, exist_ok=True)
    frame = figure_data(figure, samples)
    # The first figure's data goes by a name that is the same in all folders.
    stem = "data" if figure.name == "figure" else f"{figure.name}-data"
    files = [f"{stem}.csv", f"{stem}.parquet"]
    frame.to_csv(folder / files[0], index=False, lineterminator="\n")
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / files[1], compression="zstd")
    drawn = draw(frame, figure, samples.setting)
    if drawn is not None:
        for ending in ("svg", "png"):
            save(drawn, folder / f"{figure.name}.{ending}")
            files.append(f"{figure.name}.{ending}")
    return {
        "name": figure.name,
        "kind": figure.kind,
        "title": figure.title,
        "files": files,
        "table": _table(figure, frame),
    }


def figure_data(figure: Figure, samples: Samples) -> pd.DataFrame:
    """What a figure shows."""
    if figure.kind in TRACED_FIGURES:
        return data.rounded(data.over_time(figure, samples.setting, samples.curves))
    return data.rounded(data.means(figure, samples.setting, samples.grids[figure.measure]))


def _table(figure: Figure, frame: pd.DataFrame) -> list[list[str]]:
    """The figure in words, for kinds that are tables: a header, and a row for each scheme."""
    if frame.empty:
        return []
    if figure.kind == "regression":
        return _regression_table(frame)
    return _means_table(frame) if figure.kind == "table" else []


def _means_table(frame: pd.DataFrame) -> list[list[str]]:
    labels = list(dict.fromkeys(frame["label"]))
    rows = [["", "scheme", *labels]]
    for (panel, scheme), own in frame.groupby(["panel", "scheme"], sort=False):
        cells = {row.label: estimate_text(row.mean, row.half_width, row.half_width_normal) for row in own.itertuples()}
        rows.append([str(panel), str(scheme), *[cells.get(label, "") for label in labels]])
    return rows


def _regression_table(frame: pd.DataFrame) -> list[list[str]]:
    rows = [["", "scheme", "line", "R²", "multiple R", "standard error", "F", "p-value", "points"]]
    for fit in data.lines(frame).itertuples():
        equation = f"y = {fit.slope:.5g}x {'-' if fit.intercept < 0 else '+'} {abs(fit.intercept):.6g}"
        figures = [f"{fit.r2:.3f}", f"{fit.multiple_r:.3f}", f"{fit.standard_error:.4g}", f"{fit.f:.4g}"]
        rows.append([str(fit.panel), str(fit.scheme), equation, *figures, f"{fit.p_value:.2g}", str(fit.n)])
    return rows

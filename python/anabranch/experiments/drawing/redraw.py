"""Draws figures of a reproduction from their stored data."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from anabranch.errors import ExperimentError
from anabranch.experiments.drawing.draw import draw
from anabranch.experiments.drawing.published import published_values
from anabranch.experiments.plan import Scope, settings_of
from anabranch.experiments.study import Study
from anabranch.figures.saving import save


def redraw(study: Study, experiment: str, name: str, frame: pd.DataFrame, file: Path) -> Path:
    """Draws a figure as `papers reproduce` does, from the data that it wrote, and returns the file.

    Raises `ExperimentError` if the source no longer has the figure.
    """
    found = [figure for figure in study.experiment(experiment).figures if figure.name == name]
    setting = settings_of(study.experiment(experiment), Scope())[0]
    published = published_values(found[0], setting, study.claims) if found else []
    drawn = draw(frame, found[0], setting, published) if found else None
    if drawn is None:
        raise ExperimentError(
            f"{study.key}/{experiment}: figure `{name}` of the stored results cannot be drawn; reproduce "
            "the study again and store the results"
        )
    return save(drawn, file)

"""Draws figures of a reproduction from their stored data."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from anabranch.errors import PaperError
from anabranch.experiments.drawing.draw import draw
from anabranch.experiments.drawing.published import published_values
from anabranch.experiments.paper import Paper
from anabranch.experiments.plan import Scope, settings_of
from anabranch.figures.saving import save


def redraw(paper: Paper, experiment: str, name: str, frame: pd.DataFrame, file: Path) -> Path:
    """Draws a figure as `papers reproduce` does, from the data that it wrote, and returns the file.

    Raises `PaperError` if the paper no longer has the figure.
    """
    found = [figure for figure in paper.experiment(experiment).figures if figure.name == name]
    setting = settings_of(paper.experiment(experiment), Scope())[0]
    published = published_values(found[0], setting, paper.claims) if found else []
    drawn = draw(frame, found[0], setting, published) if found else None
    if drawn is None:
        raise PaperError(
            f"{paper.key}/{experiment}: figure `{name}` of the stored results cannot be drawn; reproduce "
            "the paper again and store the results"
        )
    return save(drawn, file)

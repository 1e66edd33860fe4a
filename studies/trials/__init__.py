"""Runs of many scenarios that are no grid, with the same seeds, for commands that judge schemes by them."""

from studies.trials.figures import Figures, PathFigures
from studies.trials.measuring import Measured, Options, Trial, measure

__all__ = ["Figures", "Measured", "Options", "PathFigures", "Trial", "measure"]

"""Runs of single points that form no grid: scenarios as text, each with a scheme, under the same seeds.

A point may have links, paths and flows of its own, which no key of one scenario describes. Runs share the cache, the
executors and the progress of sweeps.
"""

from anabranch.experiments.points.bench import Bench
from anabranch.experiments.points.figures import Figures, MessageDelays, PathFigures
from anabranch.experiments.points.trial import Trial

__all__ = ["Bench", "Figures", "MessageDelays", "PathFigures", "Trial"]

"""Index of all runs, so that the page of a timeline can choose among them and show how to add more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anabranch.reporting.choice import MAX_CHOSEN

MAX_POINTS = 500
"""Maximum number of points in a page, in addition to those that have traces."""

# Position of a run's point, scheme and seed.
Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class RunIndex:
    """All runs that a timeline may show, with those that it does show.

    `points` contains the values of `keys` as text. `runs` maps each label of the timeline to its run. `made` lists the
    existing runs; `None` if there is one for each point, scheme and seed. `command` writes this report again, without
    its choices of runs, which are `present`.
    """

    command: Sequence[str]
    present: Sequence[str]
    keys: Sequence[str]
    points: Sequence[Sequence[str]]
    schemes: Sequence[str]
    seeds: Sequence[int]
    runs: Mapping[str, Place]
    made: Sequence[Place] | None = None
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def content(self) -> dict[str, Any] | None:
        """Data for the page's script; `None` if there is nothing to choose."""
        if len(self.points) < 2 and len(self.seeds) < 2:
            return None
        return {
            "command": self.command,
            "present": self.present,
            "keys": self.keys,
            "points": self.points,
            "schemes": self.schemes,
            "seeds": self.seeds,
            "runs": self.runs,
            "made": self.made,
            "most": MAX_CHOSEN,
        }


def index_of(
    command: Sequence[str],
    present: Sequence[str],
    points: Sequence[Mapping[str, str]],
    runs: Mapping[str, tuple[Mapping[str, str], str, int]],
    made: Sequence[tuple[Mapping[str, str], str, int]],
) -> RunIndex:
    """Returns the index of the runs `made`, each a point, a scheme and a seed. Those in `runs` have traces."""
    traced = [run[0] for run in runs.values()]
    listed = [point for at, point in enumerate(points) if at < MAX_POINTS or point in traced]
    place = {tuple(point.values()): at for at, point in enumerate(listed)}
    schemes = list(dict.fromkeys(scheme for _, scheme, _ in made))
    seeds = sorted({seed for _, _, seed in made})

    def placed(run: tuple[Mapping[str, str], str, int]) -> Place:
        return place[tuple(run[0].values())], schemes.index(run[1]), seeds.index(run[2])

    there = sorted({placed(run) for run in made if tuple(run[0].values()) in place})
    left = len(points) - len(listed)
    return RunIndex(
        command,
        present,
        list(points[0]) if points else [],
        [list(point.values()) for point in listed],
        schemes,
        seeds,
        {label: placed(run) for label, run in runs.items()},
        None if len(there) == len(listed) * len(schemes) * len(seeds) else there,
        (f"{left} of {len(points)} points are not in the list of points",) if left else (),
    )

"""Manifest of a sweep's results: the scenario, the swept values and the engine that computed them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from anabranch import _native
from anabranch.errors import ScenarioError
from anabranch.results import FORMAT
from anabranch.sweeps.grid import Grid
from anabranch.sweeps.precision import Precision
from anabranch.values import literal
from anabranch.version import Engine


def manifest(grid: Grid, engine: Engine, until: Precision | None, missing: int) -> dict[str, Any]:
    """Returns the manifest of the results of a grid.

    It contains no times or paths, so equal runs have equal manifests.
    """
    return {
        "format": FORMAT,
        "version": engine.version,
        "commit": engine.commit,
        "fingerprint": engine.fingerprint,
        "scenario_name": grid.given.name,
        "scenario": _canonical(grid),
        "source": grid.given.text,
        "set": [list(override) for override in grid.overrides],
        "over": grid.over,
        "together": [list(axis.keys) for axis in grid.axes if len(axis.keys) > 1],
        "schemes": grid.schemes,
        **_own_schemes(grid),
        "seeds": list(grid.seeds),
        "precision": asdict(until) if until else None,
        "missing": missing,
    }


def _own_schemes(grid: Grid) -> dict[str, Any]:
    """Returns the key `own_schemes` with the base scheme of each scheme in Python, or nothing if the grid has none."""
    own = {name: scheme.base for name, scheme in grid.python_schemes.items()}
    return {"own_schemes": own} if own else {}


def _canonical(grid: Grid) -> str:
    """Returns the resolved scenario without the swept values.

    If it is invalid without them, the first of each is set.
    """
    overrides = [(key, literal(value)) for key, value in grid.overrides]
    try:
        return _native.resolve(grid.given.text, grid.given.name, overrides)
    except ScenarioError:
        first = zip(grid.keys, grid.points[0].values, strict=True)
        overrides += [(key, literal(value)) for key, value in first]
        return _native.resolve(grid.given.text, grid.given.name, overrides)

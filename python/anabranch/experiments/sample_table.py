"""Writer of `samples.parquet`, from which other programs can compute the verdicts.

The table has a row for each setting, scheme, value of each axis and seed, and a column for each measure. The metadata
of the file has a description as JSON under the key `anabranch`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.experiments.jobs import Measurements
from anabranch.experiments.measures import MEASURES
from anabranch.experiments.model import Experiment

SAMPLES_FILE = "samples.parquet"
METADATA = b"anabranch"
FORMAT = "anabranch samples 1"


def write_samples(experiment: Experiment, measured: Sequence[Measurements], file: Path) -> None:
    """Writes the measurements under all settings of an experiment, the default one first.

    Raises `OSError` if the file cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    frame = pd.concat([_frame(each) for each in measured], ignore_index=True)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    about = json.dumps(_about(experiment, measured), ensure_ascii=False)
    pq.write_table(table.replace_schema_metadata({METADATA: about}), file, compression="zstd")


def _frame(measurements: Measurements) -> pd.DataFrame:
    """Returns the rows of one setting, in the order of the arrays: schemes, axes, seeds."""
    setting = measurements.setting
    names = ["scheme", *(axis.name for axis in setting.axes), "seed"]
    values = [list(setting.schemes), *(axis.values for axis in setting.axes), setting.seeds]
    frame = pd.DataFrame(list(itertools.product(*values)), columns=names)
    frame.insert(0, "setting", setting.id)
    for measure, grid in sorted(measurements.grids.items(), key=lambda each: str(each[0])):
        frame[str(measure)] = np.asarray(grid.values, dtype=float).ravel()
    return frame


def _about(experiment: Experiment, measured: Sequence[Measurements]) -> dict[str, Any]:
    measures = dict.fromkeys(measure for each in measured for measure in each.grids)
    return {
        "format": FORMAT,
        "experiment": experiment.id,
        "measure": {key: value for key, value in asdict(experiment.measure).items() if value is not None},
        "grows": sorted(str(measure) for measure in measures if MEASURES[measure.name].grows),
        "resolutions": {str(measure): MEASURES[measure.name].resolution for measure in measures},
        "schemes": list(experiment.schemes),
        "axes": [{"name": axis.name, "values": axis.values, "positions": axis.positions} for axis in experiment.axes],
        "settings": {each.setting.id: _setting(each) for each in measured},
    }


def _setting(measurements: Measurements) -> dict[str, Any]:
    """Returns the kind of a setting, and the claims that it may decide (all if empty)."""
    change = measurements.setting.change
    return {
        "kind": change.kind if change else "default",
        "claims": list(change.claims) if change else [],
        "shortened": measurements.setting.shortened,
    }

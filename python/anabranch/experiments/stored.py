"""Results of a full reproduction in one compact file: verdicts with means and intervals, and the data of figures.

The pages and pictures of the book are generated from it, so that the repository stores neither. The file is JSON,
compressed with xz. Equal results give equal bytes.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd

from anabranch.errors import ExperimentError
from anabranch.experiments import outcome as out
from anabranch.experiments.adding import add_change
from anabranch.experiments.cost import Cost
from anabranch.text_file import read_text
from anabranch.version import engine

FORMAT = "anabranch reproduction 1"

LARGEST_PICTURE_BYTES = 200_000
"""Maximum size of a picture of the book, as SVG. The data of larger pictures, mostly time series, is not stored."""


class Addition(TypedDict):
    """Runs of a change whose results were added to stored ones."""

    date: str
    commit: str
    runs: int


class _Run(TypedDict):
    """Date, version and cost of a reproduction."""

    version: str
    commit: str
    fingerprint: str
    date: str
    seconds: float
    runs_computed: int
    runs_cached: int
    packets: int


class About(_Run, total=False):
    """`run.json`. Stored results also have the changes that were `added`, by id."""

    added: dict[str, Addition]


@dataclass(frozen=True, slots=True)
class Stored:
    """Results of a reproduction. `frames` contains the data of figures, by `KEY/EXPERIMENT/NAME`."""

    about: About
    outcome: out.Outcome
    frames: Mapping[str, pd.DataFrame]


def store(folder: Path, file: Path) -> None:
    """Writes the results that the book shows, of the reproduction in `folder`, to `file`.

    If the reproduction is that of a change alone, its results are added to those in `file`. Raises `ExperimentError` if
    the folder has no complete reproduction, or the file no results that the change belongs to.
    """
    outcome: out.Outcome = _read_json(folder / out.VERDICTS_FILE)
    about: About = _read_json(folder / out.RUN_FILE)
    if change := outcome["scope"].get("change"):
        content = _read_stored(file)
        add_change(str(change), outcome, content["outcome"], file)
        runs = about["runs_computed"] + about["runs_cached"]
        addition: Addition = {"date": about["date"], "commit": about["commit"], "runs": runs}
        content["about"]["added"] = content["about"].get("added", {}) | {change: addition}
        write_compact(file, content)
        return
    pictures = _data_of_pictures(folder, outcome)
    content = {
        "format": FORMAT,
        "about": about,
        "outcome": outcome,
        "frames": {name: columns_of(pd.read_parquet(place)) for name, place in pictures.items()},
    }
    write_compact(file, content)


def write_compact(file: Path, content: Mapping[str, Any]) -> None:
    """Writes content as compressed JSON."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def read_compact(file: Path, kind: str, command: str) -> dict[str, Any]:
    """Reads a file that `write_compact` has written, with `kind` as its format.

    Raises `ExperimentError` for any other file. The message names the `command` that writes such files.
    """
    try:
        content = json.loads(lzma.decompress(file.read_bytes()))
    except (OSError, lzma.LZMAError, ValueError) as error:
        raise ExperimentError(f"{file}: cannot be read ({error}): name a file that `{command}` wrote") from error
    if not isinstance(content, dict) or content.get("format") != kind:
        raise ExperimentError(f"{file}: has another format: store the results again with `{command}`")
    return content


def about_now(cost: Cost) -> About:
    """Returns version and commit of this package, the date, and the cost of the runs."""
    return {
        **asdict(engine()),  # type: ignore[typeddict-item]
        "date": datetime.now(timezone.utc).date().isoformat(),
        "seconds": round(cost.seconds, 1),
        "runs_computed": cost.computed,
        "runs_cached": cost.cached,
        "packets": round(cost.packets),
    }


def load(file: Path) -> Stored:
    """Reads a file that `store` has written.

    Raises `ExperimentError` if the file is missing, damaged or of another format.
    """
    content = _read_stored(file)
    frames = {name: frame_of(columns) for name, columns in content["frames"].items()}
    return Stored(content["about"], content["outcome"], frames)


def _read_stored(file: Path) -> dict[str, Any]:
    content = read_compact(file, FORMAT, "anabranch papers store")
    if content["outcome"]["format"] != out.FORMAT:
        raise ExperimentError(f"{file}: has another format: store the results again with `anabranch papers store`")
    return content


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except (OSError, ValueError) as error:
        raise ExperimentError(
            f"{path}: cannot be read ({error}): name the folder that `anabranch papers reproduce all` wrote"
        ) from error


def _data_of_pictures(folder: Path, outcome: out.Outcome) -> dict[str, Path]:
    """Returns the Parquet file of each figure whose picture is small enough for the book."""
    found = {}
    for study in outcome["studies"]:
        for experiment in study["experiments"]:
            place = folder / study["key"] / experiment["id"]
            for figure in experiment["figures"]:
                picture = place / f"{figure['name']}.svg"
                if picture.is_file() and picture.stat().st_size <= LARGEST_PICTURE_BYTES:
                    (data,) = [name for name in figure["files"] if name.endswith(".parquet")]
                    found[f"{study['key']}/{experiment['id']}/{figure['name']}"] = place / data
    return found


def columns_of(frame: pd.DataFrame) -> dict[str, Any]:
    """Returns the columns of a frame in the form of JSON, with their types; missing numbers are null."""
    return {
        name: {
            "dtype": "str" if column.dtype.kind not in "if" else str(column.dtype),
            "values": [None if pd.isna(value) else value for value in column.tolist()],
        }
        for name, column in frame.items()
    }


def frame_of(columns: Mapping[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: pd.Series(column["values"], dtype=object if column["dtype"] == "str" else column["dtype"])
            for name, column in columns.items()
        }
    )

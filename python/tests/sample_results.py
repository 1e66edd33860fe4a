"""Results of small sweeps for tests, made by the engine, and frames of figures that a test chooses."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from anabranch import _native
from anabranch.results import Results
from anabranch.results.schema import FIGURES, TABLES, schema

ROOT = Path(__file__).resolve().parents[2]
LOSS = "path.path-2.loss"


def frame(values: Mapping[str, Sequence[float]], metric: str = "goodput_kbps", **columns: object) -> pd.DataFrame:
    """Runs of these schemes with seeds from 1."""
    rows = [
        {**columns, "scheme": scheme, "seed": seed, metric: value}
        for scheme, of_scheme in values.items()
        for seed, value in enumerate(of_scheme, 1)
    ]
    return pd.DataFrame(rows)


def points(values: Mapping[float, Mapping[str, Sequence[float]]], key: str = LOSS) -> pd.DataFrame:
    """Runs at several values of a swept key."""
    return pd.concat([frame(of_point, **{key: value}) for value, of_point in values.items()], ignore_index=True)


def made(
    scenario: str,
    over: Mapping[str, Sequence[Any]],
    schemes: Sequence[str],
    seeds: Sequence[int],
    **settings: str,
) -> Results:
    """The results of a grid over a scenario's file; `settings` have `__` for dots, as in `run__duration`."""
    path = ROOT / "scenarios" / scenario
    source = path.read_text(encoding="utf-8")
    given = [(key.replace("__", "."), value) for key, value in settings.items()]
    jobs, heads = [], []
    for point in itertools.product(*over.values()):
        values = list(zip(over, point, strict=True))
        text = _native.resolve(source, path.name, [*given, *((key, str(value)) for key, value in values)])
        for scheme in schemes:
            prepared = _native.Prepared(text, scheme, path.parent, path.name)
            jobs += [(prepared, seed) for seed in seeds]
            heads += [dict(values)] * len(seeds)
    found: dict[int, dict[str, Any]] = {}
    _native.run_batch(jobs, lambda index, text: found.__setitem__(index, json.loads(text)))
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
    for index, head in enumerate(heads):
        _add(rows, {"run": f"{index:064x}", **head}, found[index])
    manifest = {
        "over": {key: list(values) for key, values in over.items()},
        "schemes": list(schemes),
        "seeds": list(seeds),
        "scenario": source,
        "scenario_name": path.name,
        "source": source,
        "set": [list(pair) for pair in given],
        "together": [],
        "missing": 0,
        **_native.engine(),
        "format": "anabranch results 1",
    }
    tables = {table: pa.Table.from_pylist(rows[table], schema(table, over)) for table in TABLES}
    return Results(**tables, manifest=manifest)


def _add(rows: dict[str, list[dict[str, Any]]], head: dict[str, Any], result: dict[str, Any]) -> None:
    head = {**head, "scheme": result["scheme"], "seed": result["seed"]}
    of_run = {name: result.get(name) for name in FIGURES["runs"].names}
    rows["runs"].append({**head, **of_run})
    arrived = sum(path["data_packets"] for path in result["paths"])
    for path in result["paths"]:
        share = path["data_packets"] / max(arrived, 1)
        rows["paths"].append({**head, **path, "path": path["name"], "share": share})
    for flow in result["flows"]:
        rows["flows"].append({**head, **flow, "flow": flow["name"], "flow_scheme": flow["scheme"], **_identity(head)})
    for table in TABLES:
        names = {*head, *FIGURES[table].names}
        rows[table] = [{name: value for name, value in row.items() if name in names} for row in rows[table]]


def _identity(head: dict[str, Any]) -> dict[str, Any]:
    """A flow has a `scheme` of its own, which the column `scheme` is not."""
    return {"scheme": head["scheme"], "seed": head["seed"]}


@cache
def losses() -> Results:
    """Three schemes at four losses with five seeds each."""
    return made(
        "two-path.toml",
        {LOSS: [0.0, 0.02, 0.05, 0.1]},
        ("sctp", "cmt", "cmt-pf"),
        range(1, 6),
        run__duration="4 s",
    )


@cache
def transfers() -> Results:
    """Two schemes and three sizes of file."""
    return made("file.toml", {"flow.flow-1.size": ["100 kB", "400 kB", "1 MB"]}, ("sctp", "cmt"), range(1, 5))


@cache
def two_flows() -> Results:
    """Two flows that share a bottleneck."""
    return made("shared-bottleneck.toml", {}, ("cmt",), range(1, 5), run__duration="3 s", run__warmup="0 s")


@cache
def without_chance() -> Results:
    """Where nothing is left to chance, every seed gives the same."""
    return made("outage.toml", {}, ("cmt", "cmt-pf"), range(1, 4), run__duration="3 s")

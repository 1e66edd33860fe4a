"""Results of the grid whose goodputs a test chooses, so that what should come of them is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
from sample_results import ROOT

import anabranch
from anabranch import Results

PLANS = ROOT / "studies" / "choice" / "plans"
SCHEMES = ("sctp", "cmt", "cmt-pf", "mptcp-ns2")
SEEDS = 4
SHORT = {"run.duration": "1 s", "run.warmup": "0 s"}
OVER: dict[Any, list[Any]] = {
    "association.recv_buffer": ["32 KiB", "1 MiB"],
    "path.path-2.delay": ["20 ms", "100 ms"],
    "path.path-2.loss.rate": [0.0, 0.05],
}

Goodputs = Mapping[str, Sequence[float]]


@cache
def two_links() -> Results:
    """Eight cells of the grid, really run, if only for a second each."""
    return anabranch.sweep(
        PLANS / "two-links.toml", {**OVER, "scheme": SCHEMES}, SEEDS, overrides=SHORT, cache=None, progress=False
    )


@cache
def shared_link() -> Results:
    """One condition of the shared link."""
    return anabranch.sweep(
        PLANS / "shared.toml",
        {"path.right.delay": ["30 ms"], "scheme": SCHEMES},
        SEEDS,
        overrides=SHORT,
        cache=None,
        progress=False,
    )


def planted(everywhere: Goodputs, elsewhere: Mapping[int, Goodputs] | None = None) -> Results:
    """The grid with these goodputs of the schemes, seed by seed; `elsewhere` has others for single cells."""
    results = two_links()
    cells = results.runs.num_rows // (len(SCHEMES) * SEEDS)
    goodputs = [
        value
        for cell in range(cells)
        for scheme in SCHEMES
        for value in {**everywhere, **(elsewhere or {}).get(cell, {})}[scheme]
    ]
    place = results.runs.column_names.index("goodput_kbps")
    return replace(results, runs=results.runs.set_column(place, "goodput_kbps", pa.array(goodputs, pa.float64())))


def planted_shares(one_path: Mapping[str, float]) -> Results:
    """The shared link, where the flow with one path has this beside 3000 kbit/s of the other; two seeds differ."""
    results = shared_link()
    flows = results.flows.to_pandas()
    goodputs = [
        one_path[row.scheme] + (row.seed % 2) * 10 if row.flow == "one-path" else 3000.0 for row in flows.itertuples()
    ]
    place = results.flows.column_names.index("goodput_kbps")
    return replace(results, flows=results.flows.set_column(place, "goodput_kbps", pa.array(goodputs, pa.float64())))

"""Results of the grid with goodputs that a test chooses, so that the expected outcome is known."""

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
    """Returns the results of eight cells of the grid, each run for a second."""
    return anabranch.sweep(
        PLANS / "two-links.toml", {**OVER, "scheme": SCHEMES}, SEEDS, overrides=SHORT, cache=None, progress=False
    )


@cache
def shared_link() -> Results:
    """Returns the results of one condition of the shared link."""
    return anabranch.sweep(
        PLANS / "shared.toml",
        {"path.right.delay": ["30 ms"], "scheme": SCHEMES},
        SEEDS,
        overrides=SHORT,
        cache=None,
        progress=False,
    )


def planted(everywhere: Goodputs, elsewhere: Mapping[int, Goodputs] | None = None) -> Results:
    """Returns the grid with these goodputs of the schemes by seed. `elsewhere` has those of single cells."""
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
    """Returns the shared link, where the flow with one path has this goodput beside 3000 kbit/s of the other.

    Two seeds differ.
    """
    results = shared_link()
    flows = results.flows.to_pandas()
    goodputs = [
        one_path[row.scheme] + (row.seed % 2) * 10 if row.flow == "one-path" else 3000.0 for row in flows.itertuples()
    ]
    place = results.flows.column_names.index("goodput_kbps")
    return replace(results, flows=results.flows.set_column(place, "goodput_kbps", pa.array(goodputs, pa.float64())))

"""Single runs of some cells, explained by `anabranch explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from anabranch import Scenario
from studies.choice.cells import described
from studies.explained import explanation

SEED = 1


@dataclass(frozen=True, slots=True)
class Case:
    """Cell to explain, with the schemes to compare."""

    settings: Mapping[str, object]
    schemes: Sequence[str]


def cell(recv_buffer: str, rate_mbps: float, delay: str, loss: float) -> dict[str, object]:
    """Returns the settings of a cell of the grid. The background is a twentieth of the rate."""
    return {
        "association.recv_buffer": recv_buffer,
        "path.path-2.rate": f"{rate_mbps:g} Mbit/s",
        "path.path-2.background.0.rate": f"{rate_mbps * 50:g} kbit/s",
        "path.path-2.delay": delay,
        "path.path-2.loss.rate": loss,
    }


CASES = (
    Case(cell("32 KiB", 4, "200 ms", 0), ("cmt", "sctp", "cmt+sttf")),
    Case(cell("32 KiB", 1, "20 ms", 0), ("cmt", "sctp", "naive-cmt")),
    Case(cell("128 KiB", 16, "20 ms", 0), ("cmt", "cmt+blest", "cmt-rpv1")),
    Case(cell("128 KiB", 16, "200 ms", 0), ("cmt", "cmt+sttf", "mptcp-ns2(shared-window=true)")),
    Case(cell("1 MiB", 16, "40 ms", 0.001), ("cmt", "db-cmt", "cmt-dfr")),
    Case(cell("1 MiB", 16, "200 ms", 0.01), ("cmt", "db-cmt", "cmt-dfr")),
)


def explained(scenario: Path, cases: Sequence[Case] | None = None) -> pd.DataFrame:
    """Returns a row for each case and scheme with one seed. The default cases are `CASES`.

    Columns: `case` (its number), those of `described`, `scheme`, `goodput_kbps`, `closed` (share of the time in which
    only the peer's window blocked data), `used_1` and `used_2` (shares of the paths' rates), `cwnd_1_kib` and
    `cwnd_2_kib` (means), `cuts`, `timeouts`, `retransmitted` and `spurious` (chunks). Raises `RunError` if a run
    cannot be explained.
    """
    rows = []
    for number, case in enumerate(CASES if cases is None else cases, 1):
        given = Scenario.read(scenario).with_values(case.settings)
        for scheme in case.schemes:
            report = explanation(given, scheme, SEED)
            rows.append({"case": number, **described(given), "scheme": report["scheme"], **_row(report)})
    return pd.DataFrame(rows)


def _row(report: Mapping[str, Any]) -> dict[str, Any]:
    (flow,) = report["flows"]
    first, second = flow["paths"]
    return {
        "goodput_kbps": report["goodput_kbps"],
        "closed": flow["peer_window"]["closed_share"],
        "used_1": first["used_share"],
        "used_2": second["used_share"],
        "cwnd_1_kib": first["mean_cwnd_bytes"] / 1024,
        "cwnd_2_kib": second["mean_cwnd_bytes"] / 1024,
        "cuts": sum(cut["times"] for path in flow["paths"] for cut in path["cuts"]),
        "timeouts": flow["timeouts"],
        "retransmitted": flow["retransmissions"]["chunks"],
        "spurious": flow["retransmissions"]["spurious"],
    }

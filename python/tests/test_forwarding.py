"""The study of forwarded programs: its table, and the commands of its ways."""

from __future__ import annotations

import argparse
import json
import types
from pathlib import Path
from typing import Any

from studies.forwarding import program
from studies.forwarding.command import rates_table, read, table
from studies.forwarding.ways import ways


def test_cells_are_medians_of_the_rounds_and_failures_are_named() -> None:
    rows: list[dict[str, Any]] = [{"way": "a", "work": "equal", "round": n, "mbps": n} for n in (1, 2, 9)]
    rows += [{"way": "b", "work": "equal", "round": 1, "error": "refused"}]
    first, second = table(rows, ["a", "b"]).rows
    assert first[:3] == ["a", "2.0 Mbit/s", "failed"]
    assert second[:2] == ["b", "failed"]


def test_gap_counts_from_the_last_data_before_the_cut(monkeypatch: Any) -> None:
    arrivals = [(0.5, 1_000_000), (0.9, 1_000_000), (1.4, 500_000), (1.5, 500_000)]
    monkeypatch.setattr(program, "Download", lambda *_: types.SimpleNamespace(arrivals=arrivals, error=None))
    clock = types.SimpleNamespace(until=lambda _: None)
    options = argparse.Namespace(host="", seconds=1.6, cut_s=1.0)
    figures = program.download(clock, options)  # type: ignore[arg-type]
    assert {name: round(value, 3) for name, value in figures.items()} == {
        "mbps": 15.0,
        "gap_ms": 500.0,
        "after_mbps": 13.333,
    }


def test_each_way_but_plain_tcp_changes_the_path_of_the_program() -> None:
    plain, mptcp, aggligator, forward = ways(Path("anabranch"), "agg-tunnel")
    assert plain.wrapped(["a"]) == ["a"]
    assert mptcp.wrapped(["a"]) == ["mptcpize", "run", "a"]
    network: Any = types.SimpleNamespace(server_address=lambda number: f"10.91.{number}.2")
    assert [way.host(network) for way in (plain, mptcp, aggligator, forward)] == [
        *("10.91.1.2", "10.91.1.2"),
        *("127.0.0.1", "127.0.0.1"),
    ]


def test_late_runs_are_measured_again_and_in_no_table(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    rows = [{"way": "a", "work": "equal", "round": n, "mbps": n, "late_us": late} for n, late in ((1, 10), (2, 900))]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert read(file) == rows[:1]


def test_rates_are_shares_of_the_sum_over_each_link() -> None:
    rates = {"fast": 200, "slow": 50, "fast and slow": 240, "two fast": 300}
    rows: list[dict[str, Any]] = [{"way": "a", "work": work, "round": 1, "mbps": mbps} for work, mbps in rates.items()]
    row = rates_table(rows, ["a", "b"]).rows
    assert row[0] == ["a", "200 Mbit/s", "50 Mbit/s", "240 Mbit/s", "0.96", "300 Mbit/s", "0.75"]
    assert row[1] == ["b", "failed", "failed", "failed", "", "failed", ""]

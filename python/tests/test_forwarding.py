"""The study of forwarded programs: its table, and the commands of its ways."""

from __future__ import annotations

import argparse
import types
from pathlib import Path
from typing import Any

from studies.forwarding import program
from studies.forwarding.command import table
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

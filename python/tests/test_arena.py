"""Links, programs and figures of the comparison with other stacks."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from book import BOOK
from studies.arena import command, judging, simulated
from studies.arena.command import Runs, read_rows, run_all
from studies.arena.measuring import Row, measure, row_of, stalled
from studies.arena.settings import SYNTHETIC, Setting, spread
from studies.arena.stacks import NATIVE_PEER, STACKS
from studies.arena.works import Work, works
from studies.recorded.sections import Section
from studies.results import parts_of
from studies.stored import block_json, read_study

from anabranch.errors import AnabranchError
from anabranch.experiments.stored import frame_of

MACHINE: judging.Machine = {"kernel": "6.1", "processors": 2, "versions": {"tquic": "1.6.0"}}
COUNTERS = {
    "forward": {"offered": {"packets": 2, "bytes": 3000}},
    "reverse": {"offered": {"packets": 1, "bytes": 52}},
    "late_mean_us": 80.0,
    "late_max_us": 900.0,
}


def row(work: Work, sent: dict[str, Any], received: dict[str, Any]) -> Row:
    ends = {"processor_s": 0.5, **sent}, {"processor_s": 0.25, **received}
    return row_of("equal", "mptcp", work, 1, *ends, [COUNTERS, COUNTERS])


def test_goodput_counts_bytes_that_arrived_within_the_duration() -> None:
    bulk = Work("bulk", "bulk", 2)
    figures = row(bulk, {}, {"bytes": 3_000_000, "bins": [[0, 1_000_000], [19, 1_000_000], [20, 1_000_000]]})
    assert figures["goodput_mbps"] == 8.0
    assert (figures["wire_bytes"], figures["user_bytes"], figures["processor_s"]) == (6104, 3_000_000, 0.75)


def test_outage_has_its_own_goodput_and_longest_stall() -> None:
    bulk = Work("bulk-outage", "bulk", 3, outage=(1.0, 2.0))
    figures = row(bulk, {}, {"bytes": 375_000, "bins": [[9, 125_000], [15, 125_000], [20, 125_000]]})
    assert (figures["goodput_mbps"], figures["outage_mbps"]) == (1.0, 1.0)
    assert figures["stalled_s"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("bins", "expected"),
    [({}, 1.0), ({10: 1}, 0.9), ({19: 1}, 0.9), (dict.fromkeys(range(10, 20), 1), 0.0), ({5: 1, 25: 1}, 1.0)],
)
def test_stall_is_the_longest_time_without_an_arrival(bins: dict[int, int], expected: float) -> None:
    assert stalled(bins, 1.0, 2.0) == pytest.approx(expected)


def test_quantile_of_delays_counts_missing_messages_as_the_slowest() -> None:
    messages = Work("messages", "messages", 2)
    figures = row(messages, {"messages": 100}, {"delays_ms": [float(at) for at in range(99, 0, -1)]})
    assert (figures["p50_ms"], figures["p99_ms"], figures["missing"]) == (51.0, None, 1)


def test_failed_run_has_an_error_and_no_figures() -> None:
    figures = row(Work("bulk", "bulk", 2), {"error": "ConnectTimeoutError: no answer"}, {})
    assert figures["error"] == "ConnectTimeoutError: no answer"
    assert (figures["goodput_mbps"], figures["processor_s"]) == (None, None)


def test_section_is_written_where_its_links_read_it(tmp_path: Path) -> None:
    section = Section("drive", "uplink", ((1.0, 2.0), (3.0, 4.0)))
    setting = Setting("drive", ('capacity=(file="{file}",column=x_mbps),delay=1ms', "rate=1Mbit,delay=1ms"), section)
    first, second = setting.written(tmp_path, outage=(5.0, 10.0))
    assert f'file="{tmp_path / "drive.csv"}"' in first
    assert (tmp_path / "drive.csv").read_text(encoding="utf-8").startswith("time,x_mbps,y_mbps\n0,1,2\n")
    assert first.endswith(f',outage_trace=(file="{tmp_path / "outage.csv"}",repeat=false)')
    assert (tmp_path / "outage.csv").read_text(encoding="utf-8") == "time,up\n0,1\n5,0\n10,1\n"
    assert "outage_trace" not in second


def test_selection_is_spread_over_the_list() -> None:
    listed = [Setting(str(number), ("", "")) for number in range(10)]
    assert [setting.name for setting in spread(listed, 3)] == ["0", "3", "6"]
    assert spread(listed, 20) == listed


def test_finished_runs_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[tuple[str, str]] = []

    def planted(_program: Path, setting: Setting, stack: Any, work: Work, number: int) -> dict[str, Any]:
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append((setting.name, stack.name))
        figures: dict[str, Any] = {**row(work, {}, {"bytes": 0, "bins": []})}
        return {**figures, "setting": setting.name, "stack": stack.name, "round": number}

    monkeypatch.setattr(command, "measure", planted)
    runs, file = Runs(SYNTHETIC[:1], STACKS[:4], [Work("bulk", "bulk", 1)], rounds=1), tmp_path / "runs.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run_all(runs, file)
    assert len(read_rows(file)) == 2
    kept, measured[:] = list(measured), []
    run_all(runs, file)
    assert [*kept, *measured] == [("equal", stack.name) for stack in STACKS[:4]]
    assert len(read_rows(file)) == 4


def test_settings_side_by_side_append_each_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=60)

    def planted(_program: Path, setting: Setting, stack: Any, work: Work, number: int) -> dict[str, Any]:
        both.wait()
        figures: dict[str, Any] = {**row(work, {}, {"bytes": 0, "bins": []})}
        return {**figures, "setting": setting.name, "stack": stack.name, "round": number}

    monkeypatch.setattr(command, "measure", planted)
    runs, file = Runs(SYNTHETIC[:2], STACKS[:3], [Work("bulk", "bulk", 1)], rounds=1), tmp_path / "runs.jsonl"
    run_all(runs, file, side_by_side=2)
    finished = sorted((row["setting"], row["stack"]) for row in read_rows(file))
    assert finished == sorted((setting.name, stack.name) for setting in SYNTHETIC[:2] for stack in STACKS[:3])


def test_error_of_a_run_ends_the_runs_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(*_arguments: Any) -> None:
        raise AnabranchError("its programs were not ready")

    monkeypatch.setattr(command, "measure", planted)
    runs, file = Runs(SYNTHETIC, STACKS, [Work("bulk", "bulk", 1)], rounds=1), tmp_path / "runs.jsonl"
    with pytest.raises(AnabranchError, match="not ready"):
        run_all(runs, file, side_by_side=2)
    assert read_rows(file) == []


def test_finished_runs_are_stored_as_tables_without_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps(planted("equal", stack, goodput_mbps=8.0)) for stack in ("mptcp", "braid")]
    (tmp_path / "runs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    stored = tmp_path / "arena.json.xz"
    assert command.main(["--finished", "--out", str(tmp_path), "--store", str(stored)]) == 0
    assert "| `braid` | 8.0 |" in capsys.readouterr().out
    parts = parts_of(tmp_path, "arena")
    assert "| `braid` | 8.0 |" in parts["synthetic"]
    assert parts["made"].endswith(": 2 runs.")


def test_stored_tables_are_those_of_the_stored_runs() -> None:
    content = read_study(BOOK.parent / "results", "arena")
    rows = frame_of(content["runs"]).to_dict("records")
    rows = [{key: None if pd.isna(value) else value for key, value in row.items()} for row in rows]
    parts = judging.tables(rows, [setting.name for setting in SYNTHETIC], content["machine"])
    for simulated_part in "simulator", "explained":
        assert content["parts"].pop(simulated_part)
    assert content["parts"] == {name: [block_json(block) for block in part] for name, part in parts.items()}


def test_goodput_of_schemes_is_compared_with_the_simulator() -> None:
    section = Section("drive", "uplink", ((8.0, 8.0),) * 10)
    rows = [planted("drive", stack, goodput_mbps=16.0) for stack in ("cmt", "mptcp")]
    (_, table) = simulated.compared(rows, {"drive": section}, ["cmt"], seconds=5)["simulator"]
    (stack, count, median, *_), *others = table.rows  # type: ignore[union-attr]
    assert (stack, count, others) == ("`cmt`", "1", [])
    # The links have 16 Mbit/s, of which handshake, slow start and headers take a part.
    assert 1.03 < float(median) < 1.6


def test_sections_with_the_lowest_ratio_to_mptcp_are_explained() -> None:
    section = Section("drive", "uplink", ((8.0, 8.0),) * 10)
    rows = [planted(name, "mptcp", goodput_mbps=10.0) for name in "abcde"]
    rows += [
        planted(name, "braid", goodput_mbps=rate)
        for name, rate in zip("abcde", (9.0, 7.0, 8.0, 20.0, 5.0), strict=True)
    ]
    assert judging.lowest(rows, "abcd", "mptcp", 2) == {"b": 0.7, "c": 0.8}
    blocks = simulated.explained(rows, {"d": section}, seconds=5)["explained"]
    assert blocks[0].markdown() == "d, 2.00 times that of `mptcp`:"
    assert "delivered" in blocks[1].markdown()


def test_table_of_the_simulator_is_left_out_without_sections() -> None:
    assert simulated.compared([planted("equal", "cmt", goodput_mbps=16.0)], {}, ["cmt"], seconds=5) == {}


def test_damaged_line_is_an_error_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text('{"setting": "equal"}\n{"sett', encoding="utf-8")
    with pytest.raises(AnabranchError, match=r"runs\.jsonl:2: cannot be read"):
        read_rows(file)


def test_stacks_and_works_have_different_names() -> None:
    assert len({stack.name for stack in STACKS}) == len(STACKS)
    assert all(name == work.name for name, work in works(20, 10).items())


def planted(setting: str, stack: str, **figures: Any) -> Row:
    bulk = row(Work("bulk", "bulk", 1), {}, {"bytes": 1000, "bins": []})
    return {**bulk, "setting": setting, "stack": stack, **figures}  # type: ignore[typeddict-item]


def cells(rows: list[Row], name: str) -> list[str]:
    """Returns the lines of a table below its header, after the blocks before it."""
    lines = [line for block in judging.tables(rows, ["equal"], MACHINE)[name] for line in block.markdown().splitlines()]
    return [line for line in lines if line.startswith("| `")]


def test_tcp_has_the_figures_of_the_better_link() -> None:
    rows = [planted("equal", f"tcp-cubic-{link}", goodput_mbps=rate) for link, rate in ((1, 4.0), (2, 9.0))]
    assert cells(rows, "synthetic") == ["| `tcp-cubic` | 9.0 |"]


def test_cell_is_the_median_of_the_valid_rounds() -> None:
    rows = [planted("equal", "braid", round=number, goodput_mbps=float(number)) for number in (1, 2, 6)]
    rows += [planted("equal", "braid", round=7, error="lost", goodput_mbps=None)]
    rows += [planted("equal", "braid", round=8, goodput_mbps=100.0, late_mean_us=2.0 * judging.LATE_US)]
    assert cells(rows, "synthetic") == ["| `braid` | 2.0 |"]
    assert "Runs with a mean above 5 ms are left out: 1." in judging.conditions(rows, MACHINE)


def test_recorded_sections_are_compared_with_mptcp_in_pairs() -> None:
    pairs = [("a", 10.0, 20.0), ("b", 2.0, 2.0), ("c", 4.0, 6.0)]
    rows = [planted(name, "mptcp", goodput_mbps=rate) for name, rate, _ in pairs]
    rows += [planted(name, "braid", goodput_mbps=rate) for name, _, rate in pairs]
    table = cells(rows, "recorded")
    assert table[0].startswith("| `mptcp` | 4.0 |")
    assert table[1].startswith("| `braid` | 6.0 |")
    assert table[1].endswith("| 1.50 |")


def test_recorded_sections_are_compared_with_the_better_link() -> None:
    rows = [planted("a", f"tcp-cubic-{link}", goodput_mbps=rate) for link, rate in ((1, 4.0), (2, 10.0))]
    rows += [planted("a", "tcp-bbr-2", goodput_mbps=8.0), planted("a", "braid", goodput_mbps=15.0)]
    assert cells(rows, "recorded") == [
        "| `tcp-cubic` | 10.0 | 1.00 | 1.00 | 1.00 | 1 of 1 |  |",
        "| `tcp-bbr` | 8.0 | 0.80 | 0.80 | 0.80 | 0 of 1 |  |",
        "| `braid` | 15.0 | 1.50 | 1.50 | 1.50 | 1 of 1 |  |",
    ]


@pytest.mark.parametrize(
    ("rate", "gain", "share"),
    [(11.0, "goal of 1.1 is met", "goal of 95 % is met"), (9.0, "goal of 1.1 is missed", "goal of 95 % is missed")],
)
def test_short_answer_states_whether_both_goals_are_met(rate: float, gain: str, share: str) -> None:
    rates = {"tcp-cubic-1": 10.0, "mptcp": 10.0, "braid": rate}
    rows = [planted("a", stack, goodput_mbps=each) for stack, each in rates.items()]
    (short,) = judging.tables(rows, [], MACHINE)["short"]
    assert gain in short.markdown()
    assert share in short.markdown()


def test_cost_is_bytes_on_the_links_and_processor_time() -> None:
    # 0.75 s of processor time and 6,104 bytes on the links, for 1,000 bytes of user data.
    assert cells([planted("equal", "braid")], "cost") == ["| `braid` | 6.10 |  | 750000 |"]


def test_file_that_did_not_arrive_counts_as_the_slowest() -> None:
    times = [("a", 1.0), ("b", 2.0), ("c", None)]
    rows = [planted(name, "braid", work="file-1", goodput_mbps=None, seconds=each) for name, each in times]
    assert cells(rows, "files") == ["| `braid` | 2.00 s, not in time |"]


def test_missing_quantile_counts_as_the_slowest() -> None:
    delays = [("a", 10.0, 40.0, 0), ("b", 12.0, None, 3), ("c", 14.0, None, 2)]
    rows = [
        planted(name, "braid", work="messages", goodput_mbps=None, p50_ms=p50, p99_ms=p99, missing=missing)
        for name, p50, p99, missing in delays
    ]
    assert cells(rows, "recorded-messages") == ["| `braid` | 12 | inf | inf | 2 of 3 |"]


def test_tables_of_failed_runs_have_only_their_errors() -> None:
    rows = [planted("equal", "cmt", error="ConnectTimeoutError: no answer") for _ in range(2)]
    parts = judging.tables(rows, ["equal"], MACHINE)
    assert sorted(parts) == ["conditions", "failed"]
    (failed,) = parts["failed"]
    assert failed.markdown() == "* `cmt`, bulk: ConnectTimeoutError: no answer (2 runs)"


NATIVE = ("tquic", "aggligator") if NATIVE_PEER.is_file() else ()
"""Stacks whose program takes some minutes to build. `make study NAME=arena` does it."""

can_run = (
    sys.platform == "linux"
    and os.geteuid() == 0
    and Path("/dev/net/tun").exists()
    and all(shutil.which(tool) for tool in command.TOOLS)
    and command.PROGRAM.is_file()
)


@pytest.mark.skipif(
    not can_run, reason="needs root on Linux with iproute2, and `cargo build --release --bin arena-link`"
)
@pytest.mark.parametrize("name", ["tcp-cubic-1", "mptcp", "braid", *NATIVE])
def test_stack_sends_a_file_over_links_with_rate_and_delay(name: str) -> None:
    (stack,) = [stack for stack in STACKS if stack.name == name]
    setting = Setting("test", ("rate=20Mbit,delay=15ms", "rate=8Mbit,delay=15ms"))
    figures = measure(command.PROGRAM, setting, stack, Work("file", "file", 60, 300_000), 1)
    assert figures["error"] is None, json.dumps(figures)
    # A connection and an answer take two round trips of 30 ms, and 300 kB take at least 85 ms at 28 Mbit/s.
    assert figures["seconds"] is not None
    assert figures["seconds"] > 0.145
    assert figures["wire_bytes"] > figures["user_bytes"] == 300_000

"""Tests of the evaluation of measurements by `make bench-sim`."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import beside_ns2
import ratios
import windows
from beside_ns2 import Watched
from ratios import Row, Table

LESS = Row("time", goal=0.2)
MORE = Row("speed-up", goal=1.9, more_is_better=True)


@pytest.fixture(autouse=True)
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provides a separate file of stored values for each test."""
    monkeypatch.setattr(ratios, "STORED", tmp_path / "sim.tsv")
    return tmp_path / "sim.tsv"


def table_of(values: dict[Row, list[float]]) -> Table:
    table = Table()
    for row, each in values.items():
        for value in each:
            table.add(row, value)
    return table


def reported(values: dict[Row, list[float]]) -> list[str]:
    return ["  ".join(line.split()) for line in ratios.report(table_of(values))]


def test_a_row_has_median_spread_and_goal() -> None:
    assert reported({LESS: [0.4, 0.1, 0.3], MORE: [1.8]})[1:] == [
        "time  0.300  0.100  to  0.400  none  <=  0.2",
        "speed-up  1.800  1.800  to  1.800  none  >=  1.9",
    ]


def test_regression_above_five_percent_is_reported() -> None:
    ratios.store(table_of({LESS: [0.2], MORE: [2.0]}))
    assert len(reported({LESS: [0.209], MORE: [1.91]})) == 3
    assert len(reported({LESS: [0.1], MORE: [3.0]})) == 3
    told = reported({LESS: [0.22], MORE: [1.0]})[3:]
    assert [" ".join(line.split()) for line in told] == [
        "*** WORSE THAN STORED by 10 %: time",
        "*** WORSE THAN STORED by 100 %: speed-up",
    ]


def test_differences_within_the_tolerance_are_not_reported() -> None:
    memory = Row("memory", goal=5.0, slack=1.0)
    ratios.store(table_of({memory: [1.5]}))
    assert len(reported({memory: [2.5]})) == 2
    assert reported({memory: [2.7]})[-1].endswith("memory")


def test_rows_that_were_not_measured_stay_stored(stored: Path) -> None:
    ratios.store(table_of({LESS: [0.2], MORE: [2.0]}))
    ratios.store(table_of({MORE: [1.5]}))
    assert ratios.stored() == {"time": 0.2, "speed-up": 1.5}
    assert stored.read_text(encoding="utf-8") == "row\tvalue\ntime\t0.200\nspeed-up\t1.500\n"


def test_packets_of_all_runs_and_paths_are_counted() -> None:
    printed = '{"paths":[{"sent_packets":3},{"sent_packets":4}]}\n{"paths":[{"sent_packets":5}]}\n'
    assert beside_ns2.packets_in(printed) == 12


def test_processor_time_is_that_of_the_command() -> None:
    busy = "import time\nwhile time.process_time() < 0.2: pass\nprint('done')"
    processor_s, printed = ratios.spent([sys.executable, "-c", busy])
    assert printed == "done\n"
    assert processor_s > 0.19
    idle_s, _ = ratios.spent([sys.executable, "-c", "import time; time.sleep(0.3)"])
    assert idle_s < 0.25


def test_failed_command_ends_the_program_with_its_output() -> None:
    failing = "import sys, time; time.sleep(0.1); print('no such thing', file=sys.stderr); sys.exit(3)"
    with pytest.raises(SystemExit, match="ended with status 3: no such thing"):
        ratios.spent([sys.executable, "-c", failing])
    with pytest.raises(SystemExit, match="ended with status 3"):
        Watched.run([sys.executable, "-c", failing])


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux tells how long threads wait")
def test_waiting_for_a_processor_is_taken_off_the_time() -> None:
    found = Watched.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"])
    assert 0.15 < found.undisturbed_s <= found.elapsed_s


def test_ns2_counts_are_requested_only_if_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ns"
    program.write_text('#!/bin/sh\n[ "$5" = 0 ] && exit\necho packets=7\necho packets=5\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert beside_ns2.ns2(3, "duration", "2", counted=True).packets == 12
    assert beside_ns2.ns2(3, "duration", "2").packets == 0


def test_packet_cost_is_the_difference_of_long_and_short_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(command: list[str]) -> tuple[float, str]:
        assert all(isinstance(word, str) for word in command)
        rounds = int(command[-1])
        # Half a second to start, then 3 us for each of 64 packets a round.
        return 0.5 + 3e-6 * 64 * rounds, f"{64 * rounds}\n"

    monkeypatch.setattr(windows, "spent", spent)
    assert windows.cost_us("program", "cmt", 2, 0, 64) == pytest.approx(3)
    table = Table()
    windows.add_rows(table, "program", 1)
    assert all(value == pytest.approx(1) for value in table.medians().values())
    assert len(table.medians()) == len(windows.SETTINGS)

"""Runs of points that are no grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import anabranch
from anabranch.experiments.limits.known import Broken, news, read_known, write_known
from anabranch.experiments.points import Bench, Trial
from anabranch.experiments.sweeps import SweepOptions
from anabranch.scenario import Scenario
from anabranch.sweeps.grid import Grid
from anabranch.sweeps.native import NativeThreads

TEXT = """
[run]
duration = "2 s"
delays = true
[[path]]
rate = "1 Mbit/s"
delay = "10 ms"
loss = 0.02
[[path]]
rate = "1 Mbit/s"
delay = "20 ms"
[[flow]]
name = "subject"
messages = { size = "100 B", interval = "50 ms" }
"""


def trials() -> list[Trial]:
    slow = TEXT.replace("20 ms", "80 ms")
    texts = {"near": TEXT, "far": slow}
    return [
        Trial(name, Scenario.parse(text).to_toml(resolved=True), scheme)
        for name, text in texts.items()
        for scheme in ("cmt", "bonded")
    ]


def bench(cache: Path | None = None, executor: str | None = None) -> Bench:
    return Bench(SweepOptions(cache, executor, progress=False))


def effort(made: Bench) -> tuple[int, int]:
    return made.cost.computed, made.cost.cached


def test_figures_are_those_of_single_runs() -> None:
    made = bench()
    made.run("test", trials(), [1, 5])
    assert effort(made) == (8, 0)
    for trial in trials():
        for seed, figures in zip([1, 5], made.of(trial, [1, 5]), strict=True):
            single = anabranch.run(Scenario.parse(trial.scenario), trial.scheme, seed)
            assert figures.goodput_kbps == {"subject": single.metrics["goodput_kbps"]}
            assert figures.paths["path-1"].dropped_packets == single.paths[0].drops
            assert figures.paths["path-2"].delay_ms == single.paths[1].delay_ms
            delays = single.flows[0].message_delays
            assert delays is not None
            assert figures.messages["subject"].p99_ms == delays.p99_ms


def test_processes_give_the_figures_of_threads() -> None:
    threads, processes = bench(), bench(executor="processes:2")
    for each in (threads, processes):
        each.run("test", trials(), [1, 2])
    assert all(processes.of(trial, [1, 2]) == threads.of(trial, [1, 2]) for trial in trials())


def test_finished_runs_come_from_the_cache(tmp_path: Path) -> None:
    first, again = bench(tmp_path), bench(tmp_path)
    first.run("test", trials()[:2], [1, 2])
    again.run("test", trials(), [1, 2, 3])
    assert effort(again) == (12 - 4, 4)
    assert all(again.of(trial, [1, 2]) == first.of(trial, [1, 2]) for trial in trials()[:2])


def test_damaged_entry_is_run_again(tmp_path: Path) -> None:
    bench(tmp_path).run("test", trials()[:1], [1])
    (entry,) = (file for file in tmp_path.rglob("*") if file.is_file())
    entry.write_bytes(entry.read_bytes()[:-9])
    again = bench(tmp_path)
    again.run("test", trials()[:1], [1])
    assert effort(again) == (1, 0)


def test_ctrl_c_keeps_finished_runs_and_says_how_to_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = NativeThreads.make

    def stopped(self: NativeThreads, grid: Grid, positions: Sequence[int], record: Callable[[int, str], None]) -> None:
        made(self, grid, positions[:3], record)
        raise KeyboardInterrupt

    monkeypatch.setattr(NativeThreads, "make", stopped)
    with pytest.raises(KeyboardInterrupt, match=r"3 of 4 runs are finished and kept in .*: the same sweep continues"):
        bench(tmp_path).run("test", trials(), [1])
    monkeypatch.undo()
    again = bench(tmp_path)
    again.run("test", trials(), [1])
    assert effort(again) == (1, 3)


def test_run_of_a_bench_is_made_once() -> None:
    made = bench()
    made.run("test", trials()[:1], [1, 2])
    before = made.of(trials()[0], [2])[0]
    made.run("test", trials()[:2], [1, 2])
    assert made.of(trials()[0], [2])[0] is before
    assert effort(made) == (4, 0)


def test_known_breaks_are_written_read_and_compared(tmp_path: Path) -> None:
    one, two = Broken("cmt", "share", "queue-10"), Broken("cmt", "goal", "loss10-0")
    file = tmp_path / "sub" / "known.json"
    write_known(file, [one, two])
    assert read_known(file) == {one, two}
    assert news([one], [two]) == ([one], [two])
    write_known(file, [])
    assert read_known(file) == frozenset()


@pytest.mark.parametrize("text", ["", "[]", '{"format": "other", "broken": []}', '{"broken": [1]}'])
def test_a_file_that_is_no_list_of_known_breaks_is_named(tmp_path: Path, text: str) -> None:
    from anabranch.errors import PlanError

    file = tmp_path / "known.json"
    file.write_text(text)
    with pytest.raises(PlanError, match=r"known\.json.*--store-known"):
        read_known(file)

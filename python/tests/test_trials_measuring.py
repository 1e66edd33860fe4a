"""Runs of trials: made once, kept, and taken from where they are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies.trials import Options, Trial, measure
from studies.trials.bench import Bench
from studies.trials.known import Broken, news, read_known, write_known

import anabranch
from anabranch.scenario import Scenario
from anabranch.sweeps.cache import Cache

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


def quiet(cache: Cache | None = None) -> Options:
    return Options(cache, progress=False)


def test_figures_are_those_of_single_runs() -> None:
    measured = measure("test", trials(), [1, 5], quiet())
    assert (measured.computed, measured.cached) == (8, 0)
    for trial in trials():
        for seed, figures in zip([1, 5], measured.of(trial, [1, 5]), strict=True):
            made = anabranch.run(Scenario.parse(trial.scenario), trial.scheme, seed)
            assert figures.goodput_kbps == {"subject": made.metrics["goodput_kbps"]}
            assert figures.paths["path-1"].dropped_packets == made.paths[0].drops
            assert figures.paths["path-2"].delay_ms == made.paths[1].delay_ms
            delays = made.flows[0].message_delays
            assert delays is not None
            assert figures.messages["subject"].p99_ms == delays.p99_ms


def test_what_was_finished_is_not_run_again(tmp_path: Path) -> None:
    cache = Cache.open(tmp_path)
    first = measure("test", trials()[:2], [1, 2], quiet(cache))
    again = measure("test", trials(), [1, 2, 3], quiet(cache))
    assert (again.computed, again.cached) == (12 - 4, 4)
    assert all(again.figures[key] == figures for key, figures in first.figures.items())


def test_a_damaged_entry_is_run_again(tmp_path: Path) -> None:
    cache = Cache.open(tmp_path)
    measure("test", trials()[:1], [1], quiet(cache))
    (entry,) = (file for file in tmp_path.rglob("*") if file.is_file())
    entry.write_bytes(entry.read_bytes()[:-9])
    assert measure("test", trials()[:1], [1], quiet(cache)).computed == 1


def test_ctrl_c_says_how_to_go_on_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache.open(tmp_path)
    from anabranch.sweeps.native import NativeThreads

    made = NativeThreads.make

    def stopped(self: NativeThreads, grid: object, positions: list[int], record: object) -> None:
        made(self, grid, positions[:3], record)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(NativeThreads, "make", stopped)
    with pytest.raises(KeyboardInterrupt, match=r"3 of 4 runs are finished and kept in .* goes on from there"):
        measure("test", trials(), [1], quiet(cache))
    monkeypatch.undo()
    assert measure("test", trials(), [1], quiet(cache)).cached == 3


def test_a_bench_makes_a_run_once() -> None:
    bench = Bench(quiet())
    bench.run("test", trials()[:1], [1, 2])
    before = bench.of(trials()[0], [2])[0]
    bench.run("test", trials()[:2], [1, 2])
    assert bench.of(trials()[0], [2])[0] is before


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

"""Function `sweep`: its runs, its errors, and results that depend on scenario and grid alone."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import random
import re
import threading
import time
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sweep_support import AfterEntries, entries, rows, same, write_scenario

from anabranch import _native
from anabranch.errors import ExecutorError, RunError, ScenarioError, SweepError
from anabranch.results import Results
from anabranch.sweeps import CacheWarning, Precision, sweep
from anabranch.sweeps.steps import read_grid


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write_scenario(tmp_path)


def figures_of(scenario: Path, scheme: str, seed: int, *settings: tuple[str, str]) -> dict[str, object]:
    """Returns the figures of a run without this package's sweeps."""
    text = _native.resolve(scenario.read_text(), "two", list(settings))
    texts: dict[int, str] = {}
    _native.run_batch([(_native.Prepared(text, scheme), seed)], texts.__setitem__)
    figures: dict[str, object] = json.loads(texts[0])
    return figures


def test_run_is_unchanged_after_another_run_sent_the_same_file(two: Path) -> None:
    text = two.read_text().replace("1 s", "60 s")
    two.write_text(f'{text}\n[[flow]]\nkind = "file"\nsize = "1 MB"\n')
    sizes = ["3 MB", "1500 kB", "70 kB", "1 kB", "2 MB", "4 MB"]
    wanted = [(size, scheme, seed) for seed in (2, 5) for size in sizes for scheme in ("cmt", "sctp")]
    jobs = []
    for size, scheme, seed in wanted:
        text = _native.resolve(two.read_text(), "two", [("flow.flow-1.size", json.dumps(size))])
        jobs.append((_native.Prepared(text, scheme), seed))
    texts: dict[int, str] = {}
    _native.run_batch(jobs, texts.__setitem__, threads=1)
    for index, (size, scheme, seed) in enumerate(wanted):
        found = json.loads(texts[index])
        assert found == figures_of(two, scheme, seed, ("flow.flow-1.size", json.dumps(size)))
        assert found["flows"][0]["intact"]
        assert found["flows"][0]["sha256"]


def test_every_run_is_the_one_that_the_engine_makes_alone(two: Path) -> None:
    results = sweep(two, {"path.path-1.rate": ["10 Mbit/s", "4 Mbit/s"], "scheme": ["cmt", "sctp"]}, [3, 9], cache=None)
    for row in results.to_pandas().to_dict("records"):
        alone = figures_of(two, row["scheme"], row["seed"], ("path.path-1.rate", row["path.path-1.rate"]))
        for name in ("goodput_kbps", "duration_s", "retransmissions", "timeouts", "peak_reorder_bytes", "profile"):
            assert row[name] == alone[name]


def test_scenario_is_a_path_or_an_object_with_toml(two: Path, tmp_path: Path) -> None:
    class Own:
        name = "own"
        folder = tmp_path

        def to_toml(self) -> str:
            return two.read_text()

    results = sweep(Own(), cache=None)
    assert results.manifest["scenario_name"] == "own"
    assert results.runs.equals(sweep(str(two), cache=None).runs)


def test_defaults_follow_a_swept_value(two: Path) -> None:
    """Sweeps a rate, whose reverse direction is equal by default."""
    grid = read_grid(two, {"path.path-1.rate": ["1 Mbit/s", "2 Mbit/s"]}, 1, None, None)
    assert [point.scenario.count('rate = "1 Mbit/s"') for point in grid.points] == [2, 0]


def test_the_scenario_decides_schemes_and_seeds_that_are_left_out(two: Path) -> None:
    results = sweep(two, cache=None)
    assert rows(results.runs, "scheme", "seed") == [(s, n) for s in ("cmt", "cmt-pf") for n in (1, 2, 3)]
    assert results.over == []
    fixed = sweep(two, overrides={"run.seeds": [4, 2], "run.schemes": ["sctp"]}, cache=None)
    assert rows(fixed.runs, "scheme", "seed") == [("sctp", 4), ("sctp", 2)]


def test_a_number_of_seeds_counts_from_one_and_a_list_keeps_its_order(two: Path) -> None:
    assert sweep(two, {"scheme": ["cmt"]}, 2, cache=None).manifest["seeds"] == [1, 2]
    listed = sweep(two, {"scheme": ["cmt"]}, np.array([9, 4]), cache=None)
    assert listed.runs["seed"].to_pylist() == [9, 4]


def test_all_combinations_are_run_the_last_key_going_fastest(two: Path) -> None:
    over = {"path.path-1.loss": [0.0, 0.1], "path.path-2.loss": [0.05, 0.0, 0.02], "scheme": ["sctp"]}
    results = sweep(two, over, 1, cache=None)
    expected = [(a, b) for a in (0.0, 0.1) for b in (0.05, 0.0, 0.02)]
    assert rows(results.runs, "path.path-1.loss", "path.path-2.loss") == expected


def test_keys_in_a_tuple_go_through_their_values_side_by_side(two: Path) -> None:
    over = {("path.path-1.loss", "path.path-2.loss"): [(0, 0.1), (0.1, 0)], "association.streams": [1, 2]}
    results = sweep(two, {**over, "scheme": ["cmt"]}, 1, cache=None)
    assert rows(results.runs, "path.path-1.loss", "path.path-2.loss", "association.streams") == [
        (0, 0.1, 1),
        (0, 0.1, 2),
        (0.1, 0, 1),
        (0.1, 0, 2),
    ]
    assert results.over == ["path.path-1.loss", "path.path-2.loss", "association.streams"]
    assert results.manifest["together"] == [["path.path-1.loss", "path.path-2.loss"]]


def test_columns_have_the_type_of_the_values_given(two: Path) -> None:
    over = {
        "path.path-1.loss": [0, 0.5],
        "association.streams": [1, 2],
        "association.ordered": [True, False],
        "path.path-2.loss": [0.01, "2 %"],
        "path.path-1.delay": ["45 ms"],
    }
    results = sweep(two, {**over, "scheme": ["sctp"]}, 1, cache=None)
    types = {name: str(results.runs.schema.field(name).type) for name in over}
    assert list(types.values()) == ["double", "int64", "bool", "string", "string"]
    assert set(results.runs["path.path-2.loss"].to_pylist()) == {"0.01", "2 %"}


def test_numpy_arrays_and_ranges_are_lists_of_values(two: Path) -> None:
    over = {"path.path-1.loss": np.linspace(0, 0.1, 3), "association.streams": range(1, 3)}
    grid = read_grid(two, over, 1, None, None)
    assert grid.over == {"path.path-1.loss": [0.0, 0.05, 0.1], "association.streams": [1, 2]}


def test_schemes_are_expressions_written_in_full(two: Path) -> None:
    results = sweep(two, {"scheme": ["cmt( trigger = 4 )", "sctp,cmt"]}, 1, cache=None)
    assert results.schemes == ["cmt(trigger=4)", "sctp", "cmt"]
    everything = read_grid(two, {"scheme": ["all"]}, 1, None, None)
    assert len(everything.schemes) > 10


def test_a_scheme_can_itself_be_swept(two: Path) -> None:
    two.write_text(two.read_text() + '[scheme.eager]\nexpression = "cmt(trigger=2)"\n')
    results = sweep(
        two, {"scheme.eager.expression": ["cmt(trigger=2)", "cmt(trigger=5)"], "scheme": ["eager"]}, 2, cache=None
    )
    assert results.schemes == ["eager"]
    two.write_text(two.read_text().replace("trigger=2", "trigger=5"))
    five = sweep(two, {"scheme": ["eager"]}, 2, cache=None)
    assert results.runs["goodput_kbps"].to_pylist()[2:] == five.runs["goodput_kbps"].to_pylist()


def test_flows_with_schemes_of_their_own_are_run_once(two: Path) -> None:
    two.write_text(two.read_text() + '[[flow]]\nscheme = "cmt"\n[[flow]]\nscheme = "sctp"\n')
    results = sweep(two, cache=None)
    assert rows(results.runs, "scheme", "seed") == [("cmt,sctp", seed) for seed in (1, 2, 3)]
    assert rows(results.flows, "flow", "flow_scheme")[:2] == [("flow-1", "cmt"), ("flow-2", "sctp")]
    assert all(0 < index <= 1 for index in results.runs["jain_index"].to_pylist())
    with pytest.raises(SweepError, match="`scheme`: has no effect, since every flow has its own"):
        sweep(two, {"scheme": ["cmt-pf"]}, cache=None)
    swept = sweep(two, {"flow.flow-1.scheme": ["cmt", "cmt-pf"]}, 1, cache=None)
    assert swept.runs["scheme"].to_pylist() == ["cmt,sctp", "cmt-pf,sctp"]


def test_a_transfer_that_is_not_finished_is_a_failure_in_the_results(two: Path) -> None:
    two.write_text(two.read_text() + '[[flow]]\nkind = "file"\nsize = "20 kB"\n')
    sizes = {"flow.flow-1.size": ["20 kB", "20 MB"], "scheme": ["cmt"]}
    results = sweep(two, sizes, 1, cache=None)
    small, large = results.runs["failure"].to_pylist()
    assert small is None
    assert large.startswith("flow `flow-1`: not finished at the end of the run, ")
    assert results.flows["intact"].to_pylist() == [True, False]
    assert results.flows["transfer_s"].to_pylist()[1] is None


def test_a_grid_without_faults_is_run_and_one_with_many_names_them_all(two: Path) -> None:
    over = {"path.path-2.losss": [0.1], "path.path-9.loss": [0.1], "path.path-1.loss": [0.1, 7, "high"]}
    with pytest.raises(SweepError) as caught:
        sweep(two, over, cache=None)
    message = str(caught.value)
    assert "did you mean `loss`?" in message
    assert "no path is named `path-9`" in message
    assert "found 7" in message
    assert 'path.path-1.loss="high"' in message
    faults = [line for line in message.splitlines() if not line.lstrip().startswith("|")]
    assert len(faults) == 4
    assert all(line.startswith(f"{two}: ") for line in faults)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"over": {"path.path-1.loss": []}}, "`path.path-1.loss`: has an empty list of values"),
        ({"over": {"path.path-1.loss": 0.1}}, "`path.path-1.loss`: expected a list of values"),
        ({"over": {"path.path-1.loss": "0.1"}}, "`path.path-1.loss`: expected a list of values"),
        ({"over": {"path.path-1.loss": [0.1, 0.2, 0.1]}}, "`path.path-1.loss`: has the value 0.1 twice"),
        ({"over": {"path.path-1.loss": [0.1, "10 %"]}}, "are the same scenario"),
        ({"over": {"path.path-1.loss": [0, 0.0]}}, "are the same scenario"),
        ({"over": {"path.path-1.loss": [math.nan]}}, "`path.path-1.loss`: nan is not a value of a scenario"),
        ({"over": {"path.path-1.loss": [None]}}, "`path.path-1.loss`: None is a NoneType"),
        ({"over": {"run.duration": [2**70]}}, "larger than TOML's integers"),
        ({"over": {"": [1]}}, "is not a key"),
        ({"over": {("a", "b"): [(1, 2), (1,)]}}, "expected a value for each of the 2 keys"),
        (
            {"over": {("path.path-1.loss", "path.path-2.loss"): [(0, 0)], "path.path-1.loss": [1]}},
            "`path.path-1.loss`: has a value already",
        ),
        (
            {"over": {"path.path-1.loss": [0]}, "overrides": {"path.path-1.loss": 0}},
            "has a value already, in `overrides`",
        ),
        ({"over": {"scheme": []}}, "`scheme`: expected a list of schemes"),
        ({"over": {"scheme": "cmt"}}, "`scheme`: expected a list of schemes"),
        ({"over": {"scheme": ["cmt", "cmt-fp"]}}, "unknown scheme `cmt-fp`, did you mean `cmt-pf`"),
        ({"over": {"scheme": ["cmt", "sctp,cmt"]}}, "`scheme`: has cmt twice, in `cmt` and `sctp,cmt`"),
        ({"over": {"schemes": ["cmt"]}}, "did you mean `scheme`?"),
        ({"over": {"run.seeds": [3]}}, "`run.seeds`: give seeds as seeds= or --seeds"),
        ({"over": {"seed": [3]}}, "`seed`: give seeds"),
        ({"over": {"run.schemes": [["cmt"]]}}, "`run.schemes`: give schemes as"),
        ({"over": {"run.profile": ["rfc9260", "rfc"]}}, "rfc9260"),
        ({"overrides": {"path.path-1.loss": object()}}, "`overrides`"),
        ({"seeds": 0}, "`seeds`: expected a number of seeds from 1"),
        ({"seeds": []}, "`seeds`: expected a list of 1 to"),
        ({"seeds": [1, 2, 1]}, "`seeds`: 1 is in the list twice"),
        ({"seeds": [-1]}, "whole numbers from 0"),
        ({"seeds": [1.5]}, "expected whole numbers, found 1.5"),
        ({"seeds": True}, "`seeds`: expected whole numbers, found True"),
        ({"seeds": "5"}, "`seeds`: expected a number such as 20"),
        ({"seeds": 4, "until": Precision(max_seeds=5)}, "the stopping rule may use 5"),
        ({"workers": 0}, "`workers`: expected a whole number, 1 or more, found 0"),
    ],
)
def test_invalid_sweep_is_refused_before_the_first_run(
    two: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, object], expected: str
) -> None:
    monkeypatch.setattr(_native, "run_batch", lambda *_, **__: pytest.fail("a run was made"))
    with pytest.raises(SweepError) as caught:
        sweep(two, cache=None, **arguments)  # type: ignore[arg-type]
    assert expected in str(caught.value)


def test_faults_of_keys_schemes_and_seeds_are_reported_together(two: Path) -> None:
    with pytest.raises(SweepError) as caught:
        sweep(two, {"path.path-1.loss": [], "scheme": "cmt"}, 0, cache=None)
    message = str(caught.value)
    assert all(word in message for word in ("empty list", "list of schemes", "from 1 to"))


def test_keys_that_contradict_each_other_are_found_at_their_point(two: Path) -> None:
    over = {"run.duration": ["1 s", "5 s"], "run.start": ["0 s", "2 s"]}
    with pytest.raises(SweepError, match="no flow starts before the run is over"):
        sweep(two, over, cache=None)


def test_a_scenario_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none.toml: the scenario cannot be read: No such file"):
        sweep(tmp_path / "none.toml", cache=None)
    with pytest.raises(ScenarioError, match=r"the path of a scenario file, found .\[run\]"):
        sweep("[run]\nduration = '5 s'\n", cache=None)
    with pytest.raises(ScenarioError, match="expected a Scenario or the path of a scenario file, found 5"):
        sweep(5, cache=None)  # type: ignore[arg-type]
    (tmp_path / "bad.toml").write_text("[run]\nduration = 5\n")
    with pytest.raises(SweepError, match=r"bad.toml:2:\d+"):
        sweep(tmp_path / "bad.toml", cache=None)


def test_long_lists_of_faults_are_cut(two: Path) -> None:
    with pytest.raises(SweepError, match="and 75 more"):
        sweep(two, {"path.path-1.loss": list(range(2, 102))}, cache=None)


def random_grid(rng: random.Random) -> dict[str, list[object]]:
    losses = [0, 0.001, 0.01, "2 %", 0.05]
    choices: dict[str, list[object]] = {
        "path.path-1.loss": losses,
        "path.path-2.loss": losses,
        "association.streams": [1, 2, 5],
        "association.recv_buffer": ["16 KiB", "64 KiB"],
        "scheme": ["sctp", "cmt", "cmt-pf", "cmt(trigger=4)", "a-cmt"],
    }
    keys = rng.sample(sorted(choices), rng.randint(1, 3))
    return {key: rng.sample(choices[key], rng.randint(1, 2)) for key in keys}


@pytest.mark.parametrize("seed", range(8))
def test_grid_has_each_combination_once_on_every_backend(two: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    over = random_grid(rng)
    seeds = rng.sample(range(100), rng.randint(1, 4))
    results = sweep(two, over, seeds, cache=tmp_path / "cache", workers=2)
    expected = math.prod(len(values) for values in over.values()) * len(seeds)
    expected *= 1 if "scheme" in over else 2
    assert results.runs.num_rows == expected
    columns = [*results.over, "scheme", "seed"]
    assert len(set(rows(results.runs, *columns))) == expected
    assert len(set(results.runs["run"].to_pylist())) == expected
    assert results.effort is not None
    assert (results.effort.computed, results.effort.cached) == (expected, 0)

    shuffled = {key: rng.sample(values, len(values)) for key, values in rng.sample(sorted(over.items()), len(over))}
    again = sweep(two, shuffled, rng.sample(seeds, len(seeds)), cache=tmp_path / "cache")
    assert again.effort is not None
    assert (again.effort.computed, again.effort.cached) == (0, expected)
    assert sorted(rows(again.runs, "run", "goodput_kbps")) == sorted(rows(results.runs, "run", "goodput_kbps"))


def files_of(results: Results, folder: Path) -> dict[str, bytes]:
    results.write(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_are_equal_bytes_on_every_backend(two: Path, tmp_path: Path) -> None:
    over = {"path.path-2.loss": [0, 0.01, 0.05], "scheme": ["cmt", "sctp"]}
    one = files_of(sweep(two, over, 5, workers=1, cache=None), tmp_path / "one")
    several = files_of(sweep(two, over, 5, workers=3, cache=tmp_path / "cache"), tmp_path / "several")
    cached = files_of(sweep(two, over, 5, cache=tmp_path / "cache"), tmp_path / "cached")
    with ThreadPoolExecutor(3) as executor:
        threads = files_of(sweep(two, over, 5, executor=executor, cache=None), tmp_path / "threads")
    processes = files_of(sweep(two, over, 5, executor="processes:2", cache=None), tmp_path / "processes")
    assert sorted(one) == ["flows.parquet", "manifest.json", "paths.parquet", "runs.parquet"]
    for other in (several, cached, threads, processes):
        assert other == one


def test_a_process_pool_of_the_caller_is_left_open(two: Path) -> None:
    expected = sweep(two, cache=None)
    with ProcessPoolExecutor(1) as executor, warnings.catch_warnings():
        # The caller chose to fork with threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        assert same(sweep(two, executor=executor, cache=None), expected)
        assert executor.submit(len, "abc").result() == 3


def test_a_sweep_runs_in_a_thread_other_than_the_main_one(two: Path) -> None:
    found: list[Results] = []
    thread = threading.Thread(target=lambda: found.append(sweep(two, cache=None)))
    thread.start()
    thread.join()
    assert same(found[0], sweep(two, cache=None))


def test_time_of_an_executor_is_measured(two: Path) -> None:
    with ThreadPoolExecutor(2) as executor:
        effort = sweep(two, seeds=20, executor=executor, cache=None).effort
    assert effort is not None
    assert effort.computed == 40
    assert 2 < effort.units < 40
    assert effort.overhead is not None
    assert effort.overhead >= 0


@pytest.mark.parametrize("executor", ["fast", "threads:0", "processes:", 7, len])
def test_object_that_is_no_executor_is_refused(two: Path, executor: object) -> None:
    with pytest.raises(ExecutorError, match="expected `threads:N`"):
        sweep(two, executor=executor, cache=None)


def test_a_number_of_workers_that_has_no_effect_is_refused(two: Path) -> None:
    with pytest.raises(ExecutorError, match="`workers`: has no effect, since `threads:2` makes the runs"):
        sweep(two, executor="threads:2", workers=3, cache=None)


def test_an_executor_that_was_shut_down_is_an_error_and_no_hang(two: Path) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(ExecutorError, match=r"no longer accepts work.*\n0 of 6 runs are finished; no cache"):
        sweep(two, executor=executor, cache=None)


def test_lost_process_ends_the_sweep_and_keeps_finished_runs(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, duration="10 s")
    cache = tmp_path / "cache"
    kill = AfterEntries(cache, 10, lambda: [child.kill() for child in multiprocessing.active_children()])
    with pytest.raises(ExecutorError, match=r"a worker process has died.*\n\d+ of 400 runs are finished") as caught:
        sweep(scenario, seeds=200, executor="processes:2", cache=cache)
    kept = len(entries(cache))
    assert 10 <= kill.found <= kept < 400
    assert f"\n{kept} of 400 runs are finished and kept in {cache}" in str(caught.value)
    assert caught.value.results.runs.num_rows == kept  # type: ignore[attr-defined]


def test_units_that_were_finished_beside_one_that_failed_are_kept(two: Path, tmp_path: Path) -> None:
    class Failing(ThreadPoolExecutor):
        """Computes at once, except the second unit, which fails, and the third, which it never begins."""

        units = 0
        runs = 0
        waiting: Future[bytes]

        def submit(self, call, unit):  # type: ignore[no-untyped-def]
            future: Future[bytes] = Future()
            self.units += 1
            if self.units == 2:
                future.set_exception(OSError("out of luck"))
            elif self.units == 3:
                self.waiting = future
            else:
                future.set_result(call(unit))
                self.runs += len(json.loads(unit)["runs"])
            return future

    with Failing(1) as executor, pytest.raises(ExecutorError, match="a worker failed: OSError: out of luck"):
        sweep(two, seeds=20, executor=executor, workers=8, cache=tmp_path / "cache")
    assert executor.runs >= 10
    assert executor.waiting.cancelled()
    assert len(entries(tmp_path / "cache")) == executor.runs


def test_unexpected_failure_of_a_worker_is_an_executor_error(two: Path) -> None:
    class Odd(ThreadPoolExecutor):
        def submit(self, *_, **__):  # type: ignore[no-untyped-def]
            return super().submit(lambda: 1 / 0)

    class Cancelling(ThreadPoolExecutor):
        def submit(self, *_, **__):  # type: ignore[no-untyped-def]
            future: Future[bytes] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    class Without(ThreadPoolExecutor):
        def submit(self, *_, **__):  # type: ignore[no-untyped-def]
            return super().submit(__import__, "anabranch.sweeps.none")

    with Odd(1) as executor, pytest.raises(ExecutorError, match="a worker failed: ZeroDivisionError"):
        sweep(two, executor=executor, cache=None)
    with Cancelling(1) as executor, pytest.raises(ExecutorError, match="has cancelled work that it had taken"):
        sweep(two, executor=executor, cache=None)
    with (
        Without(1) as executor,
        pytest.raises(ExecutorError, match=r"cannot load this package .*install the same version"),
    ):
        sweep(two, executor=executor, cache=None)


def with_file(folder: Path, content: bytes) -> Path:
    scenario = write_scenario(folder, duration="60 s")
    flow = '[[flow]]\nkind = "file"\npath = "payload.bin"\n'
    scenario.write_text(scenario.read_text().replace("[run]", '[run]\nstop = "transfer"') + flow)
    (folder / "payload.bin").write_bytes(content)
    return scenario


def test_a_file_that_is_sent_is_part_of_the_key(tmp_path: Path) -> None:
    scenario = with_file(tmp_path, b"a" * 5000)
    first = sweep(scenario, seeds=1, cache=tmp_path / "cache")
    assert first.flows["intact"].to_pylist() == [True, True]
    (tmp_path / "payload.bin").write_bytes(b"b" * 5000)
    second = sweep(scenario, seeds=1, cache=tmp_path / "cache")
    assert second.effort is not None
    assert second.effort.computed == 2
    assert not set(first.runs["run"].to_pylist()) & set(second.runs["run"].to_pylist())


def test_trace_of_a_link_is_part_of_the_key(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path)
    scenario.write_text(re.sub(r"(?m)^rate = .*$", 'capacity = "drive.csv"', scenario.read_text()))
    runs = []
    for rate in (3, 4):
        (tmp_path / "drive.csv").write_text(f"0,{rate}\n1,{rate}\n")
        runs.append(sweep(scenario, seeds=1, cache=tmp_path / "cache"))
    assert not set(runs[0].runs["run"].to_pylist()) & set(runs[1].runs["run"].to_pylist())
    (tmp_path / "drive.csv").unlink()
    with pytest.raises(SweepError, match=rf"`path.path-1.capacity`: {tmp_path}/drive.csv: No such file"):
        sweep(scenario, cache=None)


def test_a_file_that_is_missing_is_found_before_the_first_run(tmp_path: Path) -> None:
    scenario = with_file(tmp_path, b"")
    (tmp_path / "payload.bin").unlink()
    with pytest.raises(SweepError, match=rf"`flow.flow-1.path`: {tmp_path}/payload.bin: No such file"):
        sweep(scenario, cache=None)


def test_worker_refuses_a_file_that_changed_since_the_sweep_started(tmp_path: Path) -> None:
    scenario = with_file(tmp_path, b"a" * 5000)

    class Late(ThreadPoolExecutor):
        """Executor that replaces a file before it submits the work."""

        def submit(self, *arguments, **keywords):  # type: ignore[no-untyped-def]
            (tmp_path / "payload.bin").write_bytes(b"other")
            return super().submit(*arguments, **keywords)

    with Late(1) as executor, pytest.raises(ExecutorError, match=rf"{tmp_path}/payload.bin: differs from the file"):
        sweep(scenario, executor=executor, cache=None)
    (tmp_path / "payload.bin").write_bytes(b"a" * 5000)
    with ThreadPoolExecutor(1) as executor:
        assert same(sweep(scenario, executor=executor, cache=None), sweep(scenario, cache=None))


@pytest.mark.parametrize(("change", "expected"), [("vanish", "No such file"), ("grow", "has changed while the sweep")])
def test_file_that_changes_during_a_sweep_ends_it_without_bad_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, expected: str
) -> None:
    scenario = with_file(tmp_path, b"a" * 5000)
    cache = tmp_path / "cache"
    payload = tmp_path / "payload.bin"
    made = _native.run_batch

    def changing(jobs, done, **keywords):  # type: ignore[no-untyped-def]
        made(jobs[:2], done, **keywords)
        while len(entries(cache)) < 2:
            time.sleep(0.001)
        if change == "vanish":
            payload.unlink()
        else:
            payload.write_bytes(b"a" * 6000)
        made(jobs[2:], done, **keywords)

    monkeypatch.setattr(_native, "run_batch", changing)
    with pytest.raises(RunError, match=rf"{payload}: {expected}.*\n2 of 6 runs are finished and kept in"):
        sweep(scenario, cache=cache)
    assert len(entries(cache)) == 2
    monkeypatch.undo()
    payload.write_bytes(b"a" * 5000)
    again = sweep(scenario, cache=cache)
    assert again.effort is not None
    assert again.effort.cached == 2
    assert set(again.flows["delivered_bytes"].to_pylist()) == {5000}


def test_progress_is_shown_when_asked_for_and_nowhere_else(two: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sweep(two, cache=None)
    assert capfd.readouterr() == ("", "")
    sweep(two, cache=None, progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "sweep" in shown.err
    assert "6/6" in shown.err


def test_key_depends_on_scenario_scheme_and_seed_only(two: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / "renamed.toml"
    moved.write_text("# The same, with another comment.\n" + two.read_text().replace('"1 s"', '"1000 ms"'))
    assert sweep(moved, cache=None).runs["run"].equals(sweep(two, cache=None).runs["run"])
    changed = sweep(two, overrides={"association.streams": 2}, cache=None).runs["run"].to_pylist()
    assert not set(changed) & set(sweep(two, cache=None).runs["run"].to_pylist())


def test_a_sweep_of_another_engine_has_other_keys(two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep(two, cache=tmp_path / "cache")
    other = {**_native.engine(), "fingerprint": hashlib.sha256(b"changed").hexdigest()}
    monkeypatch.setattr(_native, "engine", lambda: other)
    again = sweep(two, cache=tmp_path / "cache")
    assert again.effort is not None
    assert again.effort.computed == 6


def test_files_have_no_time_or_path(two: Path, tmp_path: Path) -> None:
    import socket

    for content in files_of(sweep(two, cache=tmp_path / "cache"), tmp_path / "out").values():
        assert str(tmp_path).encode() not in content
        assert socket.gethostname().encode() not in content


def test_sweep_continues_without_the_default_cache(two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(CacheWarning, match=r"finished runs cannot be kept here.*continues without a cache"):
        results = sweep(two)
    assert results.runs.num_rows == 6

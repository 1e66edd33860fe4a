"""Stopping rule: seeds are added until means are precise enough, independent of the order of runs."""

from __future__ import annotations

import random
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from scipy import stats
from sweep_support import same, write_scenario

from anabranch.errors import SweepError
from anabranch.results import Results
from anabranch.sweeps import Precision, sweep
from anabranch.sweeps.precision import half_width, mean
from anabranch.sweeps.summary import summarise


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write_scenario(tmp_path, duration="2 s")


def samples_of(results: Results, metric: str = "goodput_kbps") -> dict[tuple[object, ...], list[float]]:
    frame = results.to_pandas()
    return {key: list(group[metric]) for key, group in frame.groupby([*results.over, "scheme"], sort=False)}


def test_the_half_width_is_that_of_students_t() -> None:
    rng = random.Random(1)
    for n in (2, 3, 10, 50):
        sample = [rng.gauss(100, 15) for _ in range(n)]
        low, high = stats.t.interval(0.95, n - 1, loc=mean(sample), scale=stats.sem(sample))
        assert half_width(sample) == pytest.approx((high - low) / 2, rel=1e-12)


def test_seeds_are_added_until_the_mean_is_exact_enough_and_no_longer(two: Path) -> None:
    until = Precision(within=0.15, min_seeds=3, max_seeds=60)
    results = sweep(two, {"path.path-2.loss": [0, 0.05]}, until=until, cache=None)
    samples = samples_of(results)
    assert len(samples) == 4
    for figures in samples.values():
        assert 3 <= len(figures) < 60
        assert half_width(figures) < 0.15 * mean(figures)
        # The first samples did not suffice, or there would be no more.
        assert len(figures) == 3 or half_width(figures[:3]) >= 0.15 * mean(figures[:3])
    assert len({len(figures) for figures in samples.values()}) > 1
    assert results.manifest["precision"] == {"metric": "goodput_kbps", "within": 0.15, "min_seeds": 3, "max_seeds": 60}
    assert results.manifest["seeds"] == list(range(1, 61))
    assert results.effort is not None
    assert results.effort.capped == ()


def test_a_point_that_is_never_exact_enough_ends_at_the_cap_and_is_named(two: Path) -> None:
    results = sweep(
        two, {"path.path-2.loss": [0.01]}, until=Precision(within=1e-6, min_seeds=2, max_seeds=7), cache=None
    )
    assert [len(figures) for figures in samples_of(results).values()] == [7, 7]
    assert results.effort is not None
    assert results.effort.capped == (
        "path.path-2.loss = 0.01, scheme cmt",
        "path.path-2.loss = 0.01, scheme cmt-pf",
    )


def test_samples_that_are_all_the_same_are_exact(two: Path) -> None:
    lossless = {"path.*.loss": 0}
    results = sweep(two, overrides=lossless, until=Precision(within=1e-9, min_seeds=4, max_seeds=50), cache=None)
    assert [len(figures) for figures in samples_of(results).values()] == [4, 4]
    assert results.effort is not None
    assert results.effort.capped == ()


def test_a_figure_that_runs_do_not_have_ends_at_the_cap(two: Path) -> None:
    results = sweep(two, until=Precision(metric="jain_index", min_seeds=2, max_seeds=3), cache=None)
    assert results.runs.num_rows == 2 * 3
    assert results.effort is not None
    assert len(results.effort.capped) == 2


def test_a_mean_of_zero_is_exact_only_if_all_samples_are_zero() -> None:
    until = Precision(within=0.5, min_seeds=2, max_seeds=9)
    assert until.required_seeds([0.0, 0.0]) == 2
    assert until.required_seeds([-1.0, 1.0]) == 4
    assert until.required_seeds([None, None]) == 4
    assert until.required_seeds([1.0]) == 2
    assert until.required_seeds([float(n) for n in range(9)]) == 9


def test_rounds_grow_with_missing_precision_and_at_most_double() -> None:
    until = Precision(within=0.05, min_seeds=5, max_seeds=1000)
    rng = random.Random(3)
    wide = [rng.gauss(100, 80) for _ in range(5)]
    assert until.required_seeds(wide) == 10
    almost = [100, 100, 100, 106, 94, 105, 95, 104, 96, 110]
    assert until.is_reached(almost) is True
    assert until.required_seeds(almost[:5]) in range(6, 11)


class Backwards(ThreadPoolExecutor):
    """Starts with the last submitted call."""

    def __init__(self) -> None:
        super().__init__(1)
        self._later: list[tuple[Future[bytes], object, tuple[object, ...]]] = []

    def submit(self, call, /, *arguments, **keywords):  # type: ignore[no-untyped-def]
        future: Future[bytes] = Future()
        self._later.append((future, call, arguments))
        if len(self._later) >= 2:
            super().submit(self._work)
        elif len(self._later) == 1:
            super().submit(self._work_after_a_moment)
        return future

    def _work_after_a_moment(self) -> None:
        import time

        time.sleep(0.01)
        self._work()

    def _work(self) -> None:
        while self._later:
            future, call, arguments = self._later.pop()
            future.set_result(call(*arguments))  # type: ignore[operator]


def test_the_order_in_which_runs_are_finished_decides_nothing(two: Path) -> None:
    until = Precision(within=0.06, min_seeds=3, max_seeds=40)
    over = {"path.path-2.loss": [0, 0.02]}
    expected = sweep(two, over, until=until, workers=1, cache=None)
    assert same(sweep(two, over, until=until, workers=4, cache=None), expected)
    with Backwards() as executor:
        assert same(sweep(two, over, until=until, executor=executor, workers=3, cache=None), expected)


def test_sweep_with_a_stopping_rule_resumes_from_the_cache(two: Path, tmp_path: Path) -> None:
    until = Precision(within=0.06, min_seeds=3, max_seeds=40)
    sweep(two, seeds=6, cache=tmp_path / "cache")
    first = sweep(two, until=until, cache=tmp_path / "cache")
    again = sweep(two, until=until, cache=tmp_path / "cache")
    assert same(first, again)
    assert first.effort is not None
    assert again.effort is not None
    assert first.effort.cached > 0
    assert again.effort.computed == 0


def test_seeds_are_taken_in_the_order_of_their_list(two: Path) -> None:
    seeds = [40, 7, 19, 3, 88]
    results = sweep(two, {"scheme": ["cmt"]}, seeds, until=Precision(within=1e-6, min_seeds=2, max_seeds=4), cache=None)
    assert results.runs["seed"].to_pylist() == [40, 7, 19, 3]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"metric": "goodput"}, "unknown figure `goodput`; did you mean `goodput_kbps`?"),
        ({"metric": "profile"}, "unknown figure `profile`"),
        ({"within": 0}, "`within`: expected a fraction"),
        ({"within": "5 %"}, "`within`: expected a fraction"),
        ({"within": float("nan")}, "`within`: expected a fraction"),
        ({"min_seeds": 1}, "`min_seeds`: expected a whole number, 2 or more, found 1"),
        ({"max_seeds": 2.5}, "`max_seeds`: expected a whole number, 2 or more, found 2.5"),
        ({"min_seeds": 10, "max_seeds": 5}, "`min_seeds`: 10 is more than `max_seeds`, 5"),
    ],
)
def test_invalid_stopping_rule_is_refused(arguments: dict[str, object], expected: str) -> None:
    with pytest.raises(SweepError) as caught:
        Precision(**arguments)  # type: ignore[arg-type]
    assert expected in str(caught.value)


def test_a_summary_has_no_interval_where_there_is_none_to_have(two: Path) -> None:
    spread = sweep(two, {"scheme": ["cmt"]}, 4, cache=None)
    single = sweep(two, {"scheme": ["cmt"]}, 1, cache=None)
    alike = sweep(two, {"scheme": ["cmt"]}, 4, overrides={"path.*.loss": 0}, cache=None)
    (row,) = summarise(spread)
    assert row.half_width == pytest.approx(half_width(spread.runs["goodput_kbps"].to_pylist()))
    assert " ± " in row.in_words
    (row,) = summarise(single)
    assert (row.n, row.half_width) == (1, None)
    assert row.in_words.endswith("(n = 1)")
    (row,) = summarise(alike)
    assert (row.n, row.half_width) == (4, None)
    assert row.in_words.endswith("(deterministic)")

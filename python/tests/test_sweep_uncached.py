"""Sweeps over schemes whose runs cannot be cached: messages, and resumption after an interruption."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sweep_support import entries, environment, same, write_scenario

import anabranch as ab
from anabranch.sweeps import CacheWarning

COUNT = [0]


class Quiet(ab.Scheduler):
    def pick(self, ask: ab.policy.SendAsk, view: ab.policy.View) -> ab.policy.PathFacts | None:
        return next(iter(view.ready()), None)


class Reading(Quiet):
    def pick(self, ask: ab.policy.SendAsk, view: ab.policy.View) -> ab.policy.PathFacts | None:
        assert Path(__file__).exists()
        return super().pick(ask, view)


class Versioned(Reading):
    version = "1"


class Counting(Quiet):
    def pick(self, ask: ab.policy.SendAsk, view: ab.policy.View) -> ab.policy.PathFacts | None:
        COUNT[0] += 1
        return super().pick(ask, view)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write_scenario(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def effort(two: Path, scheme: Any, folder: Path | None, seeds: Any = 2) -> tuple[int, int, int, int]:
    made = ab.sweep(two, {"scheme": ["cmt", scheme]}, seeds, cache=folder).effort
    assert made is not None
    return made.computed, made.cached, made.resumed, made.uncached


def test_runs_known_to_be_the_same_are_kept(two: Path, folder: Path) -> None:
    assert [effort(two, scheme(), folder) for scheme in (Quiet, Quiet, Versioned, Versioned)] == [
        (4, 0, 0, 0), (0, 4, 0, 0), (2, 2, 0, 0), (0, 4, 0, 0),
    ]  # fmt: skip


def test_sweep_says_how_many_runs_are_uncached_and_why(two: Path, folder: Path) -> None:
    for computed, cached in ((4, 0), (2, 2)):
        with pytest.warns(CacheWarning, match=r"2 runs are not in the cache.* Reading: `Reading.pick` uses `Path`"):
            assert effort(two, Reading(), folder) == (computed, cached, 0, 2)
    assert len(entries(folder)) == 2, "only runs of cmt are left"


def test_run_that_changes_a_global_ends_the_keeping(two: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "COUNT", [0])
    with pytest.warns(CacheWarning, match="Counting: a run changed state that later runs depend on"):
        _, cached, _, uncached = effort(two, Counting(), folder, 3)
    assert cached == 0
    assert uncached >= 2


def test_disabled_cache_prints_no_notice(two: Path) -> None:
    assert effort(two, Reading(), None) == (4, 0, 0, 0)


PROGRAM = """
import sys
import anabranch as ab
from pathlib import Path
import helper_of_sweep

class Scheme(ab.Scheduler):
    def pick(self, ask, view):
        with open("value.txt") as file:
            file.read()
        ask.chunk_bytes * len([helper_of_sweep][0].__doc__ or "")
        return next(iter(view.ready()), None)

RUNS = 0

class Stopping(Scheme):
    name = "Scheme"

if sys.argv[1] == "stop":
    from anabranch.sweeps import runner
    record = runner.Runner._record
    def stop(self, position, text):
        global RUNS
        record(self, position, text)
        RUNS += 1
        if RUNS == 2:
            raise KeyboardInterrupt
    runner.Runner._record = stop

try:
    results = ab.sweep("two.toml", {"scheme": [Scheme()]}, int(sys.argv[2]), cache="cache")
    print(results.effort.computed, results.effort.resumed, results.effort.cached)
except KeyboardInterrupt as error:
    print("stopped", error)
"""


def program(folder: Path, how: str, seeds: int = 4) -> str:
    command = [sys.executable, "-W", "ignore", "study.py", how, str(seeds)]
    made = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
    return made.stdout.strip()


@pytest.fixture
def study(tmp_path: Path, two: Path) -> Path:
    """Returns a program with a scheme that opens a file and uses a module in a way that no key covers."""
    (tmp_path / "study.py").write_text(PROGRAM)
    (tmp_path / "helper_of_sweep.py").write_text("VALUE = 1\n")
    (tmp_path / "value.txt").write_text("1")
    stopped = program(tmp_path, "stop")
    assert stopped.startswith("stopped interrupted: 2 of 4 runs are finished and kept in cache"), stopped
    return tmp_path


def test_interrupted_uncached_sweep_resumes(study: Path) -> None:
    assert program(study, "go") == "2 2 0"
    assert entries(study / "cache") == [], "a complete sweep leaves nothing that the next one would take"
    assert program(study, "go") == "4 0 0"


def test_interrupted_uncached_sweep_resumes_with_more_seeds(study: Path) -> None:
    assert program(study, "go", 6) == "4 2 0"


@pytest.mark.parametrize("file", ["study.py", "helper_of_sweep.py", "value.txt"])
def test_changed_file_begins_uncached_sweep_again(study: Path, file: str) -> None:
    path = study / file
    path.write_text(path.read_text() + "\n")
    shutil.rmtree(study / "__pycache__", ignore_errors=True)
    assert program(study, "go") == "4 0 0"


def test_unfinished_results_of_another_scenario_are_not_taken(study: Path, tmp_path: Path) -> None:
    write_scenario(tmp_path, "2 s")
    assert program(study, "go") == "4 0 0"


def test_interrupted_sweep_of_known_scheme_uses_the_cache(two: Path, folder: Path) -> None:
    first = ab.sweep(two, {"scheme": [Quiet()]}, 2, cache=folder)
    assert effort(two, Quiet(), folder, 3) == (4, 2, 0, 0)
    assert same(first, ab.sweep(two, {"scheme": [Quiet()]}, 2, cache=folder))

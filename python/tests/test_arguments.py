"""Arguments of users: numbers of NumPy, files with a byte order mark, pipes, names that are nearly right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweep_support import SCENARIO, environment, write_scenario

import anabranch as ab
from anabranch.errors import PlanError, RunError, ScenarioError, StatisticsError, SweepError
from anabranch.sweeps.plan import read_plan

KEY = "path.path-2.loss"


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write_scenario(tmp_path)


def test_numbers_of_numpy_are_numbers(two: Path) -> None:
    until = ab.Precision(within=np.float64(0.5), min_seeds=np.int64(2), max_seeds=np.uint8(3))
    assert (until.within, until.min_seeds, until.max_seeds) == (0.5, 2, 3)
    results = ab.sweep(
        two,
        {KEY: np.array([0.0, 0.01])},
        until=until,
        workers=np.int64(2),  # type: ignore[arg-type]
        worker_timeout_s=np.float32(3),
        cache=None,
    )
    assert results.manifest["over"][KEY] == [0.0, 0.01]
    assert ab.run(two, "cmt", np.int64(2)).seed == 2  # type: ignore[call-overload]


@pytest.mark.parametrize("workers", [0, -1, True, 1.0, np.float64(2), float("nan"), "2", np.bool_(True)])
def test_workers_that_are_no_whole_number_are_refused(two: Path, workers: Any) -> None:
    with pytest.raises(SweepError, match="`workers`: expected a whole number, 1 or more, found"):
        ab.sweep(two, workers=workers, cache=None)


@pytest.mark.parametrize("timeout", [0, -1, True, float("nan"), "2", None])
def test_worker_timeout_that_is_no_time_is_refused(two: Path, timeout: Any) -> None:
    with pytest.raises(SweepError, match="`worker_timeout_s`: expected seconds, more than 0"):
        ab.sweep(two, worker_timeout_s=timeout, cache=None)


@pytest.mark.parametrize(
    "given",
    [{"min_seeds": True}, {"max_seeds": 2.5}, {"min_seeds": float("nan")}, {"within": True}, {"within": float("inf")}],
)
def test_precision_that_is_no_number_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(SweepError, match=f"`{next(iter(given))}`: expected"):
        ab.Precision(**given)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (10, 'rate="10 Mbit/s"'),
        (10_000_000, 'rate="10 Mbit/s"'),
        (1_234_567, 'rate="1234567 bit/s"'),
        (np.int64(2_500_000), 'rate="2.5 Mbit/s"'),
        (np.float64(2.5), 'rate="2.5 Mbit/s"'),
    ],
)
def test_rate_without_unit_hints_the_likely_one(value: Any, hint: str) -> None:
    with pytest.raises(ScenarioError, match=hint):
        ab.Path(rate=value, delay="1 ms")


@pytest.mark.parametrize("given", [{"rate": -1}, {"delay": -0.5}, {"queue": np.int64(-3)}])
def test_negative_number_without_unit_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match="is not negative, and needs a unit"):
        ab.Path(**{"rate": "1 Mbit/s", "delay": "1 ms", **given})


@pytest.mark.parametrize("seed", [-1, 1.5, True, np.True_, 2**63, "1"])
def test_seed_that_is_no_whole_number_is_refused(two: Path, seed: Any) -> None:
    with pytest.raises(RunError, match=r"invalid seed .*: a seed is a whole number from 0"):
        ab.run(two, "cmt", seed=seed)


def test_nearly_right_metric_is_suggested(two: Path) -> None:
    results = ab.sweep(two, {KEY: [0, 0.01]}, 2, cache=None)
    for name in ("goodput", "goodput_kbp"):
        with pytest.raises(StatisticsError, match="did you mean `goodput_kbps`"):
            ab.statistics.summary(results, name)
        with pytest.raises(SweepError, match="did you mean `goodput_kbps`"):
            ab.Precision(metric=name)


def test_nearly_right_plan_is_suggested() -> None:
    with pytest.raises(PlanError, match="did you mean `two-path`"):
        read_plan(Path("two-pth"))


def command(*arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    own = {**environment(), **more.pop("env", {})}
    return subprocess.run([sys.executable, "-m", "anabranch", *arguments], env=own, capture_output=True, **more)


ASCII = [{"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}]


@pytest.mark.parametrize("env", ASCII, ids=["ascii", "latin-1", "C"])
def test_output_in_another_encoding_is_plain_text(two: Path, tmp_path: Path, env: dict[str, str]) -> None:
    made = command("sweep", str(two), "--out", str(tmp_path / "out"), "--no-cache", env=env)
    assert (made.returncode, made.stderr) == (0, b"")
    assert b"+/-" in made.stdout or "±".encode("latin-1") in made.stdout or "±".encode() in made.stdout


@pytest.mark.parametrize("kind", ["file", "plan", "stdin"])
def test_byte_order_mark_is_skipped(tmp_path: Path, kind: str) -> None:
    marked = b"\xef\xbb\xbf" + SCENARIO.format(duration="1 s").encode()
    path = tmp_path / "marked.toml"
    path.write_bytes(marked)
    if kind == "plan":
        (tmp_path / "plan.toml").write_bytes(b'\xef\xbb\xbfscenario = "marked.toml"\nseeds = 1\n')
    name = {"file": str(path), "plan": str(tmp_path / "plan.toml"), "stdin": "/dev/stdin"}[kind]
    made = command("sweep", name, "--out", str(tmp_path / "out"), "--no-cache", input=marked)
    assert made.returncode == 0, made.stderr


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="the shell needs it for <(…)")
def test_process_substitution_is_read_once(two: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = f"exec {sys.executable} -m anabranch sweep <(cat {two}) --out {out} --no-cache"
    made = subprocess.run(["bash", "-c", script], env=environment(), capture_output=True)
    assert made.returncode == 0, made.stderr

"""Command `anabranch sweep`: its output, its exit status, and resumption after an interruption."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from importlib import import_module
from pathlib import Path

import pytest
from sweep_support import entries, environment, same, start, sweep_command, write_scenario

from anabranch.command.sweep import main
from anabranch.results import Results
from anabranch.sweeps import sweep


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    write_scenario(tmp_path)
    path = tmp_path / "plan.toml"
    path.write_text('scenario = "two.toml"\nseeds = 4\n[over]\n"path.path-2.loss" = [0, 0.05]\n')
    return path


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def test_a_plan_is_run_and_its_tables_are_written(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(plan, "--out", tmp_path / "out") == 0
    results = Results.read(tmp_path / "out")
    assert results.runs.num_rows == 2 * 2 * 4
    printed, complaints = capsys.readouterr()
    assert complaints == ""
    lines = printed.splitlines()
    assert lines[0].split() == ["path.path-2.loss", "scheme", "n", "goodput", "kbit/s"]
    assert len([line for line in lines if " ± " in line]) == 4
    assert "16 runs: 16 computed, 0 from the cache in" in printed
    assert f"written to {tmp_path}/out: runs.parquet, paths.parquet, flows.parquet, manifest.json" in printed


def test_the_same_command_again_takes_everything_from_the_cache(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(plan, "--out", tmp_path / "out")
    capsys.readouterr()
    assert run(plan, "--out", tmp_path / "out", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["computed"], report["cached"], report["failed"]) == (0, 16, 0)
    assert [point["n"] for point in report["points"]] == [4] * 4
    assert report["points"][0]["path.path-2.loss"] == 0


def test_options_change_the_plan(plan: Path, tmp_path: Path) -> None:
    options = ["--over", "path.path-1.loss=0,0.02", "--over", "path.path-2.loss=0.1", "--set", "run.duration=2 s"]
    assert run(plan, "--out", tmp_path / "out", *options, "--schemes", "sctp,cmt(trigger=4)", "--seeds", "7,") == 0
    results = Results.read(tmp_path / "out")
    assert results.manifest["over"] == {"path.path-2.loss": [0.1], "path.path-1.loss": [0, 0.02]}
    assert results.manifest["set"] == [["run.duration", "2 s"]]
    assert results.schemes == ["sctp", "cmt(trigger=4)"]
    assert results.manifest["seeds"] == [7]


def test_a_scenario_file_can_be_swept_without_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = write_scenario(tmp_path)
    assert run(scenario, "--out", tmp_path / "out", "--over", "path.path-1.loss=0,1 %", "--seeds", "1") == 0
    assert "(n = 1)" in capsys.readouterr().out
    assert run(scenario, "--out", tmp_path / "alike", "--set", "path.*.loss=0") == 0
    assert "(deterministic)" in capsys.readouterr().out


def test_a_built_in_plan_and_scenario_are_run_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    short = ["--set", "run.duration='1 s'", "--seeds", "1", "--schemes", "cmt", "--quiet"]
    assert run("second-path", "--out", "swept", *short) == 0
    assert Results.read(tmp_path / "swept").runs.num_rows == 5
    assert run("two-path", "--out", "alone", *short) == 0
    assert Results.read(tmp_path / "alone").runs.num_rows == 1
    # A file takes precedence. A name without a close match gets a hint to the list.
    (tmp_path / "two-path").write_text("nonsense")
    assert run("two-path", "--out", "file", *short) == 2
    assert run("second-pith", "--out", "none", *short) == 2
    assert run("quicksand", "--out", "none", *short) == 2
    complaints = capsys.readouterr().err
    assert "two-path: is not TOML" in complaints
    unknown = "no such file, and no built-in plan or scenario; "
    assert f"second-pith: {unknown}did you mean `second-path`?" in complaints
    assert f"quicksand: {unknown}`anabranch init` lists" in complaints


def test_executors_give_the_same_files(plan: Path, tmp_path: Path) -> None:
    for name, executor in (("one", "threads:1"), ("two", "threads:2"), ("processes", "processes:2")):
        assert run(plan, "--out", tmp_path / name, "--no-cache", "--executor", executor) == 0
    contents = [
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two", "processes")
    ]
    assert contents[0] == contents[1] == contents[2]


def test_times_of_executor_units_are_printed(plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(plan, "--out", tmp_path / "out", "--executor", "processes:1")
    assert "units of work, with an overhead of" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "status", "expected"),
    [
        (["--seeds", "0"], 2, "from 1 to 100000"),
        (["--seeds", "x"], 2, "--seeds: `x` is not a seed"),
        (["--over", "path.path-2.los=0"], 2, "did you mean `loss`?"),
        (
            ["--over", "path.path-1.loss=0", "--over", "path.path-1.loss=1"],
            2,
            "--over: `path.path-1.loss` is given twice",
        ),
        (["--set", "run.duration"], 2, "--set: expected KEY=VALUE"),
        (["--schemes", "cmt-fp"], 2, "did you mean `cmt-pf`"),
        (["--executor", "fast"], 2, "expected threads:N, processes:N or dask://HOST:PORT"),
        (["--cache", "/dev/null/x"], 1, "/dev/null/x: finished runs cannot be kept here"),
        (["--cache", "c", "--no-cache"], 2, "not allowed with"),
        (["--executor", "dask://127.0.0.1:1"], 1, "dask://127.0.0.1:1: no Dask scheduler answers there"),
        (["--frobnicate"], 2, "unrecognized arguments"),
    ],
)
def test_errors_are_printed_with_their_status(
    plan: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    status: int,
    expected: str,
) -> None:
    monkeypatch.setattr(import_module("anabranch.sweeps.dask"), "_ANSWER_S", 0.2)
    assert run(plan, "--out", tmp_path / "out", *options) == status
    assert expected in capsys.readouterr().err
    assert not list(tmp_path.glob("out/*"))


def test_missing_and_invalid_plans_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "none.toml", "--out", tmp_path / "out") == 2
    assert "none.toml: the plan cannot be read" in capsys.readouterr().err
    (tmp_path / "bad.toml").write_text('scenario = "none.toml"\n')
    assert run(tmp_path / "bad.toml", "--out", tmp_path / "out") == 2
    assert f"{tmp_path}/none.toml: the scenario cannot be read" in capsys.readouterr().err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    printed = capsys.readouterr().out
    assert "Examples:" in printed
    assert "--executor dask://" in printed


def test_help_and_mistakes_do_not_wait_for_heavy_libraries() -> None:
    program = (
        "import sys\n"
        "from anabranch.command.sweep import main\n"
        "assert main(['--help']) == 0 and main(['none.toml', '--out', 'x']) == 2\n"
        "heavy = {'pyarrow', 'pandas', 'scipy', 'distributed', 'numpy', 'matplotlib', 'tqdm'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([*sweep_command()[:2], program], env=environment(), check=True, capture_output=True)


def test_a_folder_with_other_things_is_refused_before_the_first_run(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("")
    assert run(plan, "--out", tmp_path / "out") == 1
    assert "has other files" in capsys.readouterr().err
    assert not entries(tmp_path / "cache")
    assert run(plan, "--out", tmp_path / "out", "--force") == 0


def test_another_sweep_is_replaced_only_by_force(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(plan, "--out", out) == 0
    first = Results.read(out)
    for more in (["--seeds", "2"], ["--over", "path.path-1.loss=0,0.5"], ["--set", "run.duration='3 s'"]):
        capsys.readouterr()
        assert run(plan, "--out", out, *more) == 1
        complaint = capsys.readouterr().err
        assert f"{out}: contains the results of another sweep" in complaint
        assert "--force" in complaint
        assert Results.read(out).runs.equals(first.runs)
    assert run(plan, "--out", out, "--seeds", "5") == 0, "further seeds lose nothing"
    assert run(plan, "--out", out, "--seeds", "2", "--force") == 0
    assert Results.read(out).runs.num_rows < first.runs.num_rows


def test_unwritable_folder_is_reported_before_the_first_run(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(plan, "--out", tmp_path / "plan.toml" / "out") == 1
    assert f"{tmp_path}/plan.toml/out: results cannot be written here: Not a directory" in capsys.readouterr().err
    assert not entries(tmp_path / "cache")


def test_failed_runs_are_counted_and_make_the_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = write_scenario(tmp_path)
    scenario.write_text(scenario.read_text() + '[[flow]]\nkind = "file"\nsize = "20 MB"\n')
    assert run(scenario, "--out", tmp_path / "out", "--seeds", 2) == 1
    assert "4 runs failed, the first: flow `flow-1`: not finished" in capsys.readouterr().out
    assert Results.read(tmp_path / "out").runs.num_rows == 4


def test_points_that_stay_inexact_are_named(plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan.write_text('scenario = "two.toml"\n[until]\nwithin = 1e-9\nmin_seeds = 2\nmax_seeds = 3\n')
    assert run(plan, "--out", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert "less exact than requested, with the maximum number of seeds: the scenario as it is, scheme cmt" in printed


def test_a_damaged_entry_is_a_warning_on_standard_error(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(plan, "--out", tmp_path / "out")
    entries(tmp_path / "cache")[0].write_bytes(b"")
    capsys.readouterr()
    assert run(plan, "--out", tmp_path / "out") == 0
    assert capsys.readouterr().err.startswith("warning: 1 entry of the cache cannot be used")


LOSSES = "path.path-2.loss=0,0.01,0.02,0.05,0.1"


def long_sweep(folder: Path, *options: object, durations: str = "8 s") -> list[str]:
    """Returns a sweep of 200 runs for each duration; those of 8 s take a second or two together."""
    scenario = write_scenario(folder, duration="8 s", name="long.toml")
    over = ["--over", f"run.duration={durations}", "--over", LOSSES]
    return sweep_command(scenario, "--out", folder / "out", *over, "--seeds", 20, *options)


def endless_sweep(folder: Path, *options: object) -> list[str]:
    """Returns the runs of `long_sweep`, and then 200 of which none ends while a test lasts.

    So the sweep is not finished when a signal reaches it, even on a slow machine.
    """
    return long_sweep(folder, *options, durations="8 s,1000000 s")


def endless_sweep_in_processes(folder: Path, executor: str) -> list[str]:
    """Returns 20,000 short runs, which take longer than a test lasts.

    A worker returns runs together as a unit. A unit with an endless run would return nothing.
    """
    return long_sweep(folder, "--executor", executor, "--seeds", 2000)


def wait_for_entries(cache: Path, count: int, process: subprocess.Popen[str]) -> None:
    while len(entries(cache)) < count:
        assert process.poll() is None, "the sweep has ended before it could be stopped"
        time.sleep(0.005)


def test_a_sweep_that_was_killed_fills_only_the_holes(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    process = subprocess.Popen(endless_sweep(tmp_path), env=environment(), text=True)
    wait_for_entries(cache, 20, process)
    process.kill()
    process.wait()
    kept = len(entries(cache))
    assert not list((tmp_path / "out").iterdir())

    again = subprocess.run(
        long_sweep(tmp_path, "--json"), env=environment(), capture_output=True, text=True, check=True
    )
    report = json.loads(again.stdout)
    # A process that was killed while it wrote an entry leaves a partial file.
    assert kept - 1 <= report["cached"] <= kept
    assert report["computed"] + report["cached"] == 200
    assert report["cached"] >= 19
    resumed = Results.read(tmp_path / "out")

    over = {"run.duration": ["8 s"], "path.path-2.loss": [0, 0.01, 0.02, 0.05, 0.1]}
    whole = sweep(tmp_path / "long.toml", over, 20, workers=1, cache=None)
    assert same(resumed, whole)


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_ctrl_c_ends_with_130_and_keeps_finished_runs(tmp_path: Path, executor: str) -> None:
    cache = tmp_path / "cache"
    command = endless_sweep_in_processes(tmp_path, executor)
    process = start(command, stderr=subprocess.PIPE, text=True)
    wait_for_entries(cache, 5, process)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    kept = len(entries(cache))
    assert kept < 20_000
    assert complaint == (
        f"interrupted: {kept} of 20000 runs are finished and kept in {cache}: the same sweep continues from there\n"
    )
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_ctrl_c_does_not_wait_for_runs_that_take_long(tmp_path: Path, executor: str) -> None:
    psutil = pytest.importorskip("psutil")
    scenario = write_scenario(tmp_path, duration="1000000 s")
    process = start(sweep_command(scenario, "--out", tmp_path / "out", "--executor", executor), stderr=subprocess.PIPE)
    sweeping = psutil.Process(process.pid)
    computing_s = 0.0
    # Until everything is loaded, and runs are under way.
    while computing_s < 2:
        assert process.poll() is None
        time.sleep(0.05)
        family = [sweeping, *sweeping.children(recursive=True)]
        computing_s = sum(member.cpu_times().user for member in family)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"interrupted: 0 of 6 runs are finished" in complaint


def test_processes_end_with_the_sweep_that_began_them(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    command = endless_sweep_in_processes(tmp_path, "processes:2")
    process = subprocess.Popen(command, env=environment(), text=True)
    wait_for_entries(tmp_path / "cache", 5, process)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert len(children) >= 2
    assert alive == []


class Terminal:
    """Standard error of a process, as a terminal of 100 columns."""

    def __init__(self, command: list[str]) -> None:
        self._master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.process = start(command, stdout=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        self.shown = ""

    def read(self) -> bool:
        """Reads more output. Returns `False` at its end."""
        try:
            self.shown += os.read(self._master, 4096).decode()
        except OSError:
            os.close(self._master)
            return False
        return True

    def finished(self) -> int:
        """Number of runs that the bar has shown as finished."""
        return max((int(count) for count in re.findall(r"(\d+)/\d+ \[", self.shown)), default=0)


def test_ctrl_c_without_a_cache_writes_finished_runs(tmp_path: Path) -> None:
    terminal = Terminal(endless_sweep(tmp_path, "--no-cache"))
    while not terminal.finished():
        assert terminal.read(), "the sweep has ended before it could be stopped"
    terminal.process.send_signal(signal.SIGINT)
    while terminal.read():
        pass
    assert terminal.process.wait(30) == 130
    assert "of 400 runs are finished; no cache stores them" in terminal.shown
    results = Results.read(tmp_path / "out")
    assert terminal.finished() <= results.runs.num_rows < 400
    assert results.manifest["missing"] == 400 - results.runs.num_rows
    assert results.paths.num_rows == 2 * results.runs.num_rows


def test_a_terminal_shows_rate_and_time_left(tmp_path: Path) -> None:
    terminal = Terminal(long_sweep(tmp_path, "--seeds", "4"))
    while terminal.read():
        pass
    assert terminal.process.wait(30) == 0
    assert terminal.finished() == 40
    assert "run/s" in terminal.shown
    assert re.search(r"\d\d:\d\d<\d\d:\d\d", terminal.shown)


def test_quiet_shows_no_bar_on_a_terminal(tmp_path: Path) -> None:
    terminal = Terminal(long_sweep(tmp_path, "--seeds", "1", "--quiet"))
    while terminal.read():
        pass
    assert terminal.process.wait(30) == 0
    assert terminal.shown == ""

"""Command `anabranch` in real processes: output and exit status."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anabranch import _native

SCENARIO = """
[run]
duration = "1 s"
schemes = ["cmt"]
[[path]]
rate = "2 Mbit/s"
delay = "20 ms"
"""
# Longer than any test takes on any machine.
HANG_S = 60


def anabranch(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anabranch", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)


def stand_in(body: str, *arguments: str) -> list[str]:
    """Returns the command line of a process in which `sweep` runs `body`."""
    code = f"""
import sys, types
def command(arguments):
{textwrap.indent(textwrap.dedent(body).strip(), "    ")}
    return 0
module = types.ModuleType("anabranch.command.sweep")
module.main = command
sys.modules[module.__name__] = module
from anabranch.command import main
sys.exit(main({list(arguments) or ["sweep"]!r}))
"""
    return [sys.executable, "-c", code]


def sweep(body: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = stand_in(body, *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "one-path.toml"
    file.write_text(SCENARIO)
    return file


def test_the_help_lists_native_commands_and_those_of_the_package() -> None:
    ended = anabranch("--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    words = [line.split()[0] for line in ended.stdout.splitlines() if line.startswith("  ")]
    for command in ["run", "explain", "send", "help", *_native.python_commands()]:
        assert command.split()[0] in words
    below = anabranch("trace", "--help").stdout
    assert all(f"  {name} " in below for name in ("info", "plot", "import"))


def test_the_version_is_that_of_the_engine() -> None:
    assert anabranch("--version").stdout == f"anabranch {_native.engine()['version']}\n"


def test_missing_command_is_an_error() -> None:
    ended = anabranch()
    assert ended.returncode == 2
    assert "Usage: anabranch <COMMAND>" in ended.stderr


def test_native_commands_get_their_arguments_and_give_their_status(scenario: Path) -> None:
    ended = anabranch("run", str(scenario), "--seeds", "2")
    assert ended.returncode == 0
    assert "\ncmt " in ended.stdout
    scenario.write_text(SCENARIO.replace("delay", "dealy"))
    ended = anabranch("run", str(scenario))
    assert ended.returncode == 2
    assert f"{scenario}:7:1: unknown key" in ended.stderr
    assert "unrecognized subcommand 'swept'" in anabranch("swept").stderr


def test_help_of_a_native_command_is_its_own() -> None:
    assert anabranch("help", "run").stdout == anabranch("run", "--help").stdout


def test_arguments_that_are_no_text_reach_native_commands(tmp_path: Path) -> None:
    command = [os.fsencode(sys.executable), b"-m", b"anabranch", b"run", os.fsencode(tmp_path) + b"/\xff.toml"]
    ended = subprocess.run(command, capture_output=True, timeout=HANG_S, check=False)
    assert ended.returncode == 2
    assert b"cannot be read" in ended.stderr


def test_a_command_of_the_package_gets_its_arguments_and_gives_its_status() -> None:
    ended = sweep("print(arguments); return 3", "sweep", "plan.toml", "--out", "DIR")
    assert (ended.stdout, ended.returncode) == ("['plan.toml', '--out', 'DIR']\n", 3)


def test_help_of_a_command_of_the_package_is_asked_of_the_command() -> None:
    assert sweep("print(arguments)", "help", "sweep").stdout == "['--help']\n"


def test_status_of_argparse_is_the_status() -> None:
    ended = sweep("import argparse; argparse.ArgumentParser(prog='anabranch sweep').parse_args(['--no-such-option'])")
    assert ended.returncode == 2
    assert "anabranch sweep: error: unrecognized arguments" in ended.stderr


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        ("ScenarioError", 2),
        ("SchemeError", 2),
        ("PlanError", 2),
        ("AnabranchError", 1),
        ("RunError", 1),
        ("SweepError", 1),
        ("CacheError", 1),
        ("ReportError", 1),
    ],
)
def test_an_error_is_its_message_and_a_status(raised: str, status: int) -> None:
    ended = sweep(f"from anabranch import errors; raise errors.{raised}('plan.toml: `over`: nothing to sweep')")
    assert (ended.returncode, ended.stderr) == (status, "plan.toml: `over`: nothing to sweep\n")


def test_an_error_of_the_system_names_the_file() -> None:
    ended = sweep("open('/no/such/file')")
    assert (ended.returncode, ended.stderr) == (1, "/no/such/file: No such file or directory\n")
    ended = sweep("raise OSError('the disk is gone')")
    assert (ended.returncode, ended.stderr) == (1, "the disk is gone\n")


def test_a_fault_of_a_command_shows_where_it_is() -> None:
    ended = sweep("raise RuntimeError('a bug')")
    assert ended.returncode == 1
    assert "Traceback" in ended.stderr


@pytest.mark.parametrize("lines", [1, 100_000])
def test_closed_reader_is_no_error(lines: int) -> None:
    with started(stand_in(f"sys.stdin.readline()\nfor _ in range({lines}): print('a line')")) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write("go on\n")
        process.stdin.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(HANG_S) == 0


def test_a_broken_pipe_that_is_not_the_output_is_not_hidden() -> None:
    ended = sweep("raise BrokenPipeError('the scheduler has gone')")
    assert ended.returncode == 1
    assert "the scheduler has gone" in ended.stderr


def redirected(command: list[str], redirection: str) -> subprocess.CompletedProcess[str]:
    shell = ["sh", "-c", f'exec "$0" "$@" {redirection}', *command]
    return subprocess.run(shell, capture_output=True, text=True, timeout=HANG_S, check=False)


@pytest.mark.parametrize("broken", ["2>&-", "2>/dev/full"])
def test_notice_that_cannot_be_written_does_not_end_a_command(broken: str) -> None:
    body = "print('a notice', file=sys.stderr, flush=True); sys.stderr.write('x' * 100_000); print('the result')"
    ended = redirected(stand_in(body), broken)
    assert (ended.returncode, ended.stdout) == (0, "the result\n")


@pytest.mark.parametrize("lines", [1, 100_000])
def test_result_that_cannot_be_written_is_an_error(lines: int) -> None:
    ended = redirected(stand_in(f"for _ in range({lines}): print('a line')"), ">/dev/full")
    said = "standard output: No space left on device; the result is not written completely\n"
    assert (ended.returncode, ended.stderr) == (1, said)
    for words in (["--help"], ["schemes"], ["sweep", "--help"]):
        ended = redirected([sys.executable, "-m", "anabranch", *words], ">/dev/full")
        assert ended.returncode == 1
        assert "No space left on device" in ended.stderr


def test_closed_standard_stream_is_no_file_of_the_command(tmp_path: Path) -> None:
    body = f"file = open({str(tmp_path / 'file')!r}, 'w'); print('text', flush=True); file.close()"
    ended = redirected(stand_in(body), ">&- 2>&- <&-")
    assert ended.returncode == 0
    assert (tmp_path / "file").read_text() == ""
    assert redirected([sys.executable, "-m", "anabranch", "schemes"], ">&- 2>&-").returncode == 0


def test_ctrl_c_in_a_command_of_the_package_is_one_line_and_130() -> None:
    with started(stand_in("print('ready', flush=True); import time; time.sleep(3600)")) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG_S)
        assert (process.returncode, err) == (130, "stopped by Ctrl-C\n")


def test_ctrl_c_in_native_runs_prints_finished_ones_and_is_130(scenario: Path) -> None:
    command = [sys.executable, "-m", "anabranch", "run", str(scenario), "--seeds", "20000", "--json"]
    with started(command) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_S)
        assert process.returncode == 130
        assert first.startswith("{")
        assert out == "" or out.endswith("}\n")
        assert "aborting the current runs" in err
        assert "interrupted: " in err
        assert " of 20000 runs" in err


def test_unhandled_ctrl_c_ends_the_command_like_the_native_program(tmp_path: Path) -> None:
    fifo = tmp_path / "scenario.toml"
    os.mkfifo(fifo)
    with started([sys.executable, "-m", "anabranch", "run", str(fifo)]) as process:
        # Opening waits until the program reads.
        writer = os.open(fifo, os.O_WRONLY)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG_S)
        os.close(writer)
        assert process.returncode == -signal.SIGINT


def test_ctrl_c_stays_ignored_where_it_was(tmp_path: Path) -> None:
    fifo = tmp_path / "scenario.toml"
    os.mkfifo(fifo)
    with started(["sh", "-c", f"trap '' INT; exec {sys.executable} -m anabranch run {fifo}"]) as process:
        with fifo.open("w") as writer:
            process.send_signal(signal.SIGINT)
            writer.write(SCENARIO)
        out, _ = process.communicate(timeout=HANG_S)
        assert process.returncode == 0
        assert "\ncmt " in out


def test_the_installed_command_is_the_same() -> None:
    installed = shutil.which("anabranch", path=str(Path(sys.executable).parent))
    if installed is None:
        pytest.skip("the package is not installed here")
    ended = subprocess.run([installed, "--help"], capture_output=True, text=True, timeout=HANG_S, check=True)
    assert ended.stdout == anabranch("--help").stdout

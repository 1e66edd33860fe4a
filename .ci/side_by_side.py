"""Builds tests as `cargo test` does and runs their binaries side by side, as many at a time as there are processors.

`cargo test` runs one binary after the other. Many binaries spend their time in one long test or wait for time-outs on
sockets, so a processor is idle for most of it. The output of a binary is shown in one piece after its end. The exit
status is 1 if a binary failed; all of them run in any case. A binary that exceeds the deadline is killed with the
processes that it started, and its output names the tests that still run. Doc tests are not included:
`cargo test --doc` runs them.

Usage: side_by_side.py [--jobs N] [--deadline SECONDS] [CARGO_TEST_OPTION...] [-- TEST_OPTION...]
"""

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple


class Binary(NamedTuple):
    """Tests of a target, and the folder in which cargo would run them.

    Targets are sortable, so that their order is always the same.
    """

    folder: Path
    target: str
    program: str


def built(options):
    """Returns the test binaries that `cargo test` would run with these options."""
    command = [
        *shlex.split(os.environ.get("CARGO", "cargo")),
        "test",
        "--no-run",
        "--message-format=json-render-diagnostics",
        *options,
    ]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(ended.returncode)
    return binaries(ended.stdout)


def binaries(messages):
    """Returns the test binaries in cargo's messages."""
    found = set()
    for line in messages.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            target = message["target"]
            found.add(
                Binary(
                    Path(message["manifest_path"]).parent,
                    f"{target['kind'][0]} {target['name']}",
                    message["executable"],
                )
            )
    return sorted(found)


class Runner:
    """Runs binaries, each in its own session, so that a signal reaches a binary and the processes that it started."""

    def __init__(self, deadline_s):
        self._deadline_s = deadline_s
        self._started = []

    def run(self, binary, options):
        """Runs a binary and shows its output. Returns `True` if it succeeded."""
        began = time.monotonic()
        # A file instead of a pipe: a process that survives its parent would keep a pipe open.
        with tempfile.TemporaryFile() as output:
            how = self._outcome(self._start(binary, options, output))
            output.seek(0)
            head = f"     Running {binary.target} of {binary.folder.name}: {time.monotonic() - began:.1f} s{how}\n"
            # The output is written in one call, so that output of other binaries does not interrupt it.
            sys.stdout.buffer.write(head.encode() + output.read())
            sys.stdout.buffer.flush()
        return not how

    def kill_all(self):
        """Kills the binaries and the processes that they started."""
        for process in list(self._started):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _start(self, binary, options, output):
        process = subprocess.Popen(
            [binary.program, *options],
            cwd=binary.folder,
            env={**os.environ, "CARGO_MANIFEST_DIR": str(binary.folder)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def _outcome(self, process):
        """Waits for a binary. Returns the empty string after a success, and else a text for the head of its output."""
        try:
            status = process.wait(self._deadline_s)
        except subprocess.TimeoutExpired:
            status = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._started.remove(process)
        if status is None:
            return f", killed after the deadline of {self._deadline_s} s"
        return f", exit status {status}" if status else ""


def arguments_of(line):
    """Returns the options of this program, those of cargo and those of the tests."""
    divided = line.index("--") if "--" in line else len(line)
    parser = argparse.ArgumentParser(description=__doc__, add_help=False, allow_abbrev=False)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    # The longest binary takes four minutes on two idle cores.
    parser.add_argument("--deadline", type=float, default=1200)
    own, for_cargo = parser.parse_known_args(line[:divided])
    return own, for_cargo, line[divided + 1 :]


def main(line):
    own, for_cargo, for_tests = arguments_of(line)
    tests = built(for_cargo)
    began = time.monotonic()
    runner = Runner(own.deadline)
    pool = ThreadPoolExecutor(own.jobs)
    try:
        succeeded = list(pool.map(lambda binary: runner.run(binary, for_tests), tests))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        runner.kill_all()
    print(f"{len(tests)} test binaries, {own.jobs} at a time, in {time.monotonic() - began:.1f} s")
    failed = [binary for binary, good in zip(tests, succeeded, strict=True) if not good]
    for binary in failed:
        print(f"FAILED: {binary.target} of {binary.folder}: {binary.program}")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Builds tests as `cargo test` does and runs their binaries side by side, as many at a time as there are processors.

`cargo test` runs one binary after the other. Many binaries spend their time in one long test or wait for time-outs on
sockets, so a processor is idle for most of it. The output of a binary is shown in one piece after its end. The exit
status is 1 if a binary failed; all of them run in any case. Doc tests are not included: `cargo test --doc` runs them.

Usage: side_by_side.py [--jobs N] [CARGO_TEST_OPTION...] [-- TEST_OPTION...]
"""

import json
import os
import shlex
import subprocess
import sys
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


def run(binary, options):
    """Runs a binary and shows its output. Returns `True` if it succeeded."""
    began = time.monotonic()
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(binary.folder)}
    ended = subprocess.run(
        [binary.program, *options],
        cwd=binary.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    seconds = time.monotonic() - began
    # A binary that a signal ends cannot report which tests failed.
    how = "" if ended.returncode in (0, 101) else f", exit status {ended.returncode}"
    head = f"     Running {binary.target} of {binary.folder.name}: {seconds:.1f} s{how}\n"
    # The output is written in one call, so that output of other binaries does not interrupt it.
    sys.stdout.buffer.write(head.encode() + ended.stdout)
    sys.stdout.buffer.flush()
    return ended.returncode == 0


def main(arguments):
    jobs = os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()
    if arguments[:1] == ["--jobs"]:
        jobs, arguments = int(arguments[1]), arguments[2:]
    divided = arguments.index("--") if "--" in arguments else len(arguments)
    tests = built(arguments[:divided])
    began = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        succeeded = list(pool.map(lambda binary: run(binary, arguments[divided + 1 :]), tests))
    print(f"{len(tests)} test binaries, {jobs} at a time, in {time.monotonic() - began:.1f} s")
    failed = [binary for binary, good in zip(tests, succeeded, strict=True) if not good]
    for binary in failed:
        print(f"FAILED: {binary.target} of {binary.folder}: {binary.program}")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

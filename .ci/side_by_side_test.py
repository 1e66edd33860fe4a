"""Tests of side_by_side.py. Run with `python3 -m unittest discover .ci '*_test.py'`."""

import contextlib
import io
import json
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import side_by_side
from side_by_side import Binary, binaries


def artifact(name, *, kind="test", test=True, program="/target/x"):
    return json.dumps(
        {
            "reason": "compiler-artifact",
            "manifest_path": f"/crates/{name}/Cargo.toml",
            "target": {"kind": [kind], "name": name},
            "profile": {"test": test},
            "executable": program,
        }
    )


def is_running(pid):
    try:
        # A killed process is a zombie until its new parent reaps it.
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Printed(io.StringIO):
    """Stream that accepts bytes, as standard output does."""

    def __init__(self):
        super().__init__()
        self.buffer = io.BytesIO()


class SideBySide(unittest.TestCase):
    def outcome(self, scripts, options=(), deadline="60"):
        """Returns exit status and output of a run in which the binaries are Python programs."""
        with tempfile.TemporaryDirectory() as folder:
            tests = []
            for name, text in scripts.items():
                program = Path(folder) / name
                program.write_text(f"#!{sys.executable}\n{text}\n")
                program.chmod(0o755)
                tests.append(Binary(Path(folder), f"test {name}", str(program)))
            printed = Printed()
            with mock.patch.object(side_by_side, "built", return_value=tests), contextlib.redirect_stdout(printed):
                status = side_by_side.main(["--jobs", "2", "--deadline", deadline, "--workspace", "--", *options])
            return status, printed.buffer.getvalue().decode() + printed.getvalue()

    def test_only_binaries_of_tests_are_found(self):
        lines = [
            artifact("b"),
            artifact("a", kind="lib"),
            artifact("c", test=False),
            artifact("d", program=None),
            json.dumps({"reason": "build-finished", "success": True}),
        ]
        found = binaries("\n".join(lines))
        self.assertEqual(
            [(str(one.folder), one.target) for one in found], [("/crates/a", "lib a"), ("/crates/b", "test b")]
        )

    def test_all_binaries_run_before_a_failure_is_reported(self):
        status, printed = self.outcome({"bad": "print('it is bad'); exit(101)", "good": "print('it is good')"})
        self.assertEqual(status, 1)
        self.assertIn("it is bad", printed)
        self.assertIn("it is good", printed)
        self.assertEqual([line[:17] for line in printed.splitlines() if "FAILED" in line], ["FAILED: test bad "])

    def test_a_binary_that_dies_has_failed(self):
        status, printed = self.outcome({"dies": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"})
        self.assertEqual(status, 1)
        self.assertIn("exit status -9", printed)

    def test_binary_beyond_the_deadline_is_killed_with_its_children(self):
        # The child survives its parent and has its output open.
        hangs = (
            "import subprocess, time\n"
            "child = subprocess.Popen(['sleep', '1000'])\n"
            "print('child', child.pid, flush=True); time.sleep(1000)"
        )
        status, printed = self.outcome({"hangs": hangs}, deadline="1")
        self.assertEqual(status, 1)
        self.assertIn("killed after the deadline of 1.0 s", printed)
        child = int(printed.split("child ")[1].split()[0])
        ended_by = time.monotonic() + 10
        while is_running(child):
            self.assertLess(time.monotonic(), ended_by, "the child still runs")
            time.sleep(0.01)

    def test_options_reach_each_binary_and_success_is_reported(self):
        echo = "import sys; print('given', sys.argv[1:])"
        status, printed = self.outcome({"one": echo, "two": echo}, ["--ignored", "wireshark::"])
        self.assertEqual(status, 0)
        self.assertEqual(printed.count("given ['--ignored', 'wireshark::']"), 2)

    def test_missing_binaries_are_a_failure(self):
        self.assertEqual(self.outcome({})[0], 1)


if __name__ == "__main__":
    unittest.main()

"""Tests of tools/heartbeat.py."""

import subprocess
import sys
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "heartbeat.py"
sys.path.insert(0, str(SCRIPT.parent))

from heartbeat import Silence  # noqa: E402


class Heartbeat(unittest.TestCase):
    def test_silent_command_is_reported_once_per_interval(self):
        clock = [0.0]
        silence = Silence(lambda: clock[0])
        lines = []
        for second in range(1, 26):
            clock[0] = float(second)
            lines.append(silence.line("pip", 10.0))
        self.assertEqual([line for line in lines if line], ["  pip: running for 10 s", "  pip: running for 20 s"])

    def test_output_postpones_the_next_line(self):
        clock = [0.0]
        silence = Silence(lambda: clock[0])
        clock[0] = 9.0
        silence.ended()
        clock[0] = 18.0
        self.assertIsNone(silence.line("pip", 10.0))
        clock[0] = 19.0
        self.assertEqual(silence.line("pip", 10.0), "  pip: running for 19 s")

    def test_output_and_exit_status_are_passed_on(self):
        command = [sys.executable, "-c", "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)"]
        ended = subprocess.run(
            [sys.executable, str(SCRIPT), "it", *command], capture_output=True, text=True, check=False
        )
        self.assertEqual(ended.returncode, 3)
        self.assertEqual(sorted(ended.stdout.split()), ["one", "two"])

    def test_missing_command_is_named_with_a_remedy(self):
        ended = subprocess.run(
            [sys.executable, str(SCRIPT), "it", "/no/such/program"], capture_output=True, text=True, check=False
        )
        self.assertEqual(ended.returncode, 127)
        self.assertIn("/no/such/program: No such file or directory: check that it is installed", ended.stderr)


if __name__ == "__main__":
    unittest.main()

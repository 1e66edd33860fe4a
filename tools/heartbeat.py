"""Runs a command and prints a line after each ten seconds in which the command prints nothing.

    python3 tools/heartbeat.py LABEL COMMAND...

pip prints nothing while it compiles or unpacks packages, which takes minutes on some machines. The script passes the
output of the command on immediately, and exits with the command's status.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

SILENCE_S = 10.0


class Silence:
    """Time since the last output of the command."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._began = self._last = now()

    def ended(self) -> None:
        """Records an output of the command."""
        self._last = self._now()

    def line(self, label: str, limit_s: float) -> str | None:
        """Returns the line that is due, if any."""
        if self._now() - self._last < limit_s:
            return None
        self.ended()
        return f"  {label}: running for {self._now() - self._began:.0f} s"


def run(label: str, command: Sequence[str], limit_s: float = SILENCE_S) -> int:
    """Runs the command and returns its exit status."""
    silence = Silence(time.monotonic)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as child:
        done = threading.Event()

        def watch() -> None:
            while not done.wait(limit_s / 10):
                if line := silence.line(label, limit_s):
                    print(line, flush=True)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        assert child.stdout is not None
        for line in child.stdout:
            silence.ended()
            print(line, end="", flush=True)
        status = child.wait()
        done.set()
        watcher.join()
    return status


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return run(sys.argv[1], sys.argv[2:])
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"{sys.argv[2]}: {error.strerror}: check that it is installed", file=sys.stderr)
        return 127


if __name__ == "__main__":
    sys.exit(main())

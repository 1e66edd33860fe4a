"""Report of `anabranch explain` on one run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from anabranch import Scenario
from anabranch.errors import RunError
from anabranch.simulation import run


def explanation(scenario: Scenario, scheme: str, seed: int) -> dict[str, Any]:
    """Makes a run and returns its report as JSON has it. Raises `RunError` if the run cannot be explained."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        run(scenario, scheme, seed, trace=trace)
        command = [sys.executable, "-m", "anabranch", "explain", "--json", str(trace)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"{' '.join(command)}: {done.stderr.strip()}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report

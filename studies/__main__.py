"""Runs one study: `make study NAME=bounds ARGS=--quick`, or `python -m studies bounds --quick`."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.command.status import FAILED, INPUT_ERROR, INTERRUPTED
from anabranch.errors import AnabranchError, PlanError, ScenarioError, SchemeError, SweepError

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Study:
    """One study: a line about it, and the function that runs it and returns its exit status."""

    about: str
    run: Callable[[list[str]], int]


def _python(module: str) -> Callable[[list[str]], int]:
    """Returns a function that imports a module and calls its `main`."""

    def run(arguments: list[str]) -> int:
        status: int = importlib.import_module(module).main(arguments)
        return status

    return run


def _binary(name: str) -> Callable[[list[str]], int]:
    """Returns a function that builds and runs a binary of the workspace."""

    def run(arguments: list[str]) -> int:
        command = ["cargo", "run", "--quiet", "--release", "--locked", "--bin", name, "--", *arguments]
        return subprocess.run(command, cwd=ROOT, check=False).returncode

    return run


def _kernel(arguments: list[str]) -> int:
    """Builds the command and measures beside the kernel, in a network namespace."""
    build = ["cargo", "build", "--release", "--locked", "--bin", "anabranch"]
    if status := subprocess.run(build, cwd=ROOT, check=False).returncode:
        return status
    if shutil.which("unshare") is None:
        raise AnabranchError("unshare not found: install util-linux")
    command = ["unshare", "-n", sys.executable, "-m", "studies.kernel", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


STUDIES = {
    "bounds": Study("goodput in per cent of the bound by links and receive buffer", _python("studies.bounds.command")),
    "degradation": Study(
        "effects on one path, other flows, links and small messages", _python("studies.degradation.command")
    ),
    "adversary": Study(
        "search for settings in which a scheme falls far below its best path", _python("studies.adversary.command")
    ),
    "choice": Study("the best scheme for each cell of a grid of links", _python("studies.choice.command")),
    "ns2": Study("goodput beside that of ns-2 under profile ns2", _binary("ns2-study")),
    "fairness": Study("shares of a bottleneck beside an ordinary flow", _python("studies.fairness")),
    "recorded": Study(
        "all schemes over two recorded networks, beside the better link", _python("studies.recorded.command")
    ),
    "arena": Study(
        "anabranch and other multipath stacks over the same emulated links; needs root",
        _python("studies.arena.command"),
    ),
    "forwarding": Study(
        "programs through TCP, MPTCP, aggligator and anabranch over the same emulated links; needs root",
        _python("studies.forwarding.command"),
    ),
    "kernel": Study("files and shares beside the kernel's TCP and MPTCP; needs root", _kernel),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study that the first argument names, and returns its exit status.

    0 is for success, 1 for a failure or a broken limit, 2 for a wrong command line or file, and 130 for Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] not in STUDIES:
        print(_listing(words[:1]), file=sys.stderr)
        return INPUT_ERROR
    try:
        return STUDIES[words[0]].run(words[1:])
    except KeyboardInterrupt as stop:
        print(str(stop) or "stopped by Ctrl-C", file=sys.stderr)
        return INTERRUPTED
    except (ScenarioError, SchemeError, PlanError, SweepError) as error:
        print(error, file=sys.stderr)
        return INPUT_ERROR
    except (AnabranchError, OSError) as error:
        print(error, file=sys.stderr)
        return FAILED


def _listing(asked: Sequence[str]) -> str:
    first = f"unknown study `{asked[0]}`. " if asked else ""
    lines = [f"  {name:<12} {study.about}" for name, study in STUDIES.items()]
    return "\n".join([f"{first}Name a study, as in `make study NAME=bounds ARGS=--quick`:", *lines])


if __name__ == "__main__":
    sys.exit(main())

"""Runs every stack over every setting, and keeps each finished run in a file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from anabranch.command.parser import Parser
from anabranch.command.quantities import positive, time_within
from anabranch.errors import AnabranchError, PlanError
from anabranch.experiments.pages.document import markdown
from studies.arena import judging
from studies.arena.measuring import ROOT, Row, measure
from studies.arena.settings import SYNTHETIC, Setting, recorded, spread
from studies.arena.stacks import STACKS, Stack
from studies.arena.works import Work, works
from studies.options import chosen

_EXAMPLES = """\
Examples:
  Every stack and work over the synthetic settings:
    make study NAME=arena
  Messages and bulk data over 20 sections of recordings too:
    make study NAME=arena ARGS='--data pam2025-multi-carrier-dataset --sections 20 --works messages,bulk'
  Two stacks over one setting, in two minutes:
    make study NAME=arena ARGS='--settings equal --stacks mptcp,braid --works bulk --bulk 20'

Each finished run is a line of runs.jsonl in the folder of --out, and is not run again, so that an interrupted command
resumes. The tables of all finished runs are printed and written to summary.md there.
Runs use real time: leave the machine idle.

Status: 0 all went well, 1 something could not be run, read or written, 2 the command line is wrong, 130 Ctrl-C."""

PROGRAM = ROOT / "target" / "release" / "arena-link"
TOOLS = ("chrt", "ip", "nsenter", "unshare")


def main(arguments: list[str]) -> int:
    """Runs the study and returns its exit status."""
    options = _parser().parse_args(arguments)
    settings = list(SYNTHETIC)
    if options.data:
        settings += spread(recorded(options.data, options.most_mbps, options.draw), options.sections)
    by_name = {setting.name: setting for setting in settings}
    stacks, known = {stack.name: stack for stack in STACKS}, works(options.bulk)
    runs = Runs(
        [by_name[name] for name in chosen("--settings", options.settings, list(by_name), "setting")],
        [stacks[name] for name in chosen("--stacks", options.stacks, list(stacks), "stack")],
        [known[name] for name in chosen("--works", options.works, list(known), "work")],
        options.rounds,
    )
    require_namespaces()
    build()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "runs.jsonl"
    run_all(runs, file)
    parts = judging.tables(read_rows(file), [setting.name for setting in SYNTHETIC])
    page = markdown([block for part in parts.values() for block in part])
    (options.out / "summary.md").write_text(page, encoding="utf-8")
    print(page)
    return 0


class Runs:
    """All combinations of settings, works and stacks. The stacks take turns, so that they meet the same load."""

    def __init__(
        self, settings: Sequence[Setting], stacks: Sequence[Stack], works: Sequence[Work], rounds: int
    ) -> None:
        self.settings, self.stacks, self.works, self.rounds = settings, stacks, works, rounds

    def __iter__(self) -> Iterator[tuple[Setting, Stack, Work, int]]:
        for number in range(1, self.rounds + 1):
            for setting in self.settings:
                for work in self.works:
                    for stack in self.stacks:
                        yield setting, stack, work, number


def run_all(runs: Runs, file: Path) -> None:
    """Runs the combinations that the file does not contain, and appends a line for each."""
    done = {(row["setting"], row["stack"], row["work"], row["round"]) for row in read_rows(file)}
    left = [run for run in runs if (run[0].name, run[1].name, run[2].name, run[3]) not in done]
    for number, (setting, stack, work, round_number) in enumerate(left, 1):
        row = measure(PROGRAM, setting, stack, work, round_number)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")
        print(f"{number}/{len(left)} {setting.name}, {stack.name}, {work.name}: {_shown(row)}", flush=True)


def read_rows(file: Path) -> list[Row]:
    """Returns the finished runs. A missing file has none."""
    if not file.is_file():
        return []
    rows: list[Row] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise AnabranchError(f"{file}:{number}: cannot be read ({error}): remove the line") from error
    return rows


def _shown(row: Row) -> str:
    """Returns the main figures of a run."""
    if row["error"]:
        return row["error"]
    units = {"goodput_mbps": "Mbit/s", "seconds": "s", "p50_ms": "ms (median)", "p99_ms": "ms (99 %)"}
    shown = [f"{row[key]:.2f} {unit}" for key, unit in units.items() if row[key] is not None]  # type: ignore[literal-required]
    return ", ".join(shown) or "not finished in time"


def require_namespaces() -> None:
    """Raises `AnabranchError` where network namespaces cannot be made."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        raise AnabranchError("network namespaces need root on Linux: run the study as root there")
    if missing := [name for name in TOOLS if shutil.which(name) is None]:
        raise AnabranchError(f"{', '.join(missing)} not found: install iproute2 and util-linux")
    if not Path("/dev/net/tun").exists():
        raise AnabranchError("/dev/net/tun is missing: load the kernel's module `tun`")


def build() -> None:
    """Builds the emulator."""
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--bin", PROGRAM.name]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise AnabranchError(f"{PROGRAM.name} could not be built: see the error above")


def _seconds(text: str) -> float:
    return time_within(text, 1, 3600)


def _mbps(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise PlanError(f"--most: expected a number of Mbit/s, found `{text}`") from error


def _parser() -> Parser:
    parser = Parser(
        prog="studies arena",
        description="Run TCP, MPTCP and anabranch over the same emulated links.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("--data", metavar="PATH", type=Path, help="data set of `studies recorded`: adds sections of recordings")
    add("--sections", metavar="N", type=positive, default=20, help="number of sections [default: 20]")
    add("--most", metavar="MBPS", dest="most_mbps", type=_mbps, default=200.0, help="highest mean rate of a section")
    add("--draw", metavar="SEED", type=positive, default=1, help="seed of the choice of sections [default: 1]")
    add("--settings", metavar="LIST", help="settings [default: all]")
    add("--stacks", metavar="LIST", help="stacks [default: all]")
    add("--works", metavar="LIST", help="works [default: all]")
    add("--bulk", metavar="TIME", type=_seconds, default=60.0, help="duration of bulk data and messages [default: 60]")
    add("--rounds", metavar="N", type=positive, default=3, help="runs of each combination [default: 3]")
    add("--out", metavar="DIR", type=Path, default=Path("out/arena"), help="folder of the finished runs and tables")
    return parser

"""Runs every stack over every setting, and keeps each finished run in a file."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import pandas as pd

from anabranch.command.parser import Parser
from anabranch.command.quantities import positive, time_within
from anabranch.errors import AnabranchError, PlanError
from anabranch.experiments.cost import Cost
from anabranch.experiments.pages.document import markdown
from anabranch.experiments.stored import about_now, columns_of
from studies.arena import judging
from studies.arena.measuring import ROOT, Row, measure
from studies.arena.settings import SYNTHETIC, Setting, recorded, spread
from studies.arena.simulated import compared, explained
from studies.arena.stacks import NATIVE_PEER, PEERS, STACKS, Anabranch, Native, Stack
from studies.arena.works import Work, works
from studies.options import chosen
from studies.stored import block_json, write_study

_EXAMPLES = """\
Examples:
  Every stack and work over the synthetic settings:
    make study NAME=arena
  Messages and bulk data over 20 sections of recordings too:
    make study NAME=arena ARGS='--data pam2025-multi-carrier-dataset --sections 20 --works messages,bulk'
  Two stacks over one setting, in two minutes:
    make study NAME=arena ARGS='--settings equal --stacks mptcp,braid --works bulk --bulk 20'

  The tables of the book's chapter, from all finished runs, with those of the simulator over the same sections:
    make study NAME=arena ARGS='--data DIR --sections 20 --bulk 20 --finished --store docs/results/arena.json.xz'

Each finished run is a line of runs.jsonl in the folder of --out, and is not run again, so that an interrupted command
resumes. The tables of all finished runs are printed and written to summary.md there.
Runs use real time: leave the machine idle.

Status: 0 all went well, 1 something could not be run, read or written, 2 the command line is wrong, 130 Ctrl-C."""

PROGRAM = ROOT / "target" / "release" / "arena-link"
TOOLS = ("chrt", "ip", "nsenter", "openssl", "unshare")


def main(arguments: list[str]) -> int:
    """Runs the study and returns its exit status."""
    options = _parser().parse_args(arguments)
    settings = list(SYNTHETIC)
    if options.data:
        settings += spread(recorded(options.data, options.most_mbps, options.draw), options.sections)
    by_name = {setting.name: setting for setting in settings}
    stacks, known = {stack.name: stack for stack in STACKS}, works(options.bulk, options.messages)
    runs = Runs(
        [by_name[name] for name in chosen("--settings", options.settings, list(by_name), "setting")],
        [stacks[name] for name in chosen("--stacks", options.stacks, list(stacks), "stack")],
        [known[name] for name in chosen("--works", options.works, list(known), "work")],
        options.rounds,
    )
    options.out.mkdir(parents=True, exist_ok=True)
    file, commands = options.out / "runs.jsonl", options.out / "commands.txt"
    if not options.finished:
        require_namespaces()
        build(runs.stacks)
        with commands.open("a", encoding="utf-8") as lines:
            lines.write(f"{shlex.join(arguments)}\n")
        run_all(runs, file, options.side_by_side)
    rows, machine = read_rows(file), judging.this_machine()
    sections = {name: setting.section for name, setting in by_name.items() if setting.section}
    parts = {
        **judging.tables(rows, [setting.name for setting in SYNTHETIC], machine),
        **compared(rows, sections, [stack.name for stack in STACKS if isinstance(stack, Anabranch)], options.bulk),
        **explained(rows, sections, options.bulk),
    }
    page = markdown([block for part in parts.values() for block in part])
    (options.out / "summary.md").write_text(page, encoding="utf-8")
    print(page)
    if options.store:
        content = {
            "commands": commands.read_text(encoding="utf-8").splitlines() if commands.is_file() else [],
            "machine": machine,
            "parts": {name: [block_json(block) for block in part] for name, part in parts.items()},
            "runs": columns_of(pd.DataFrame(rows)),
        }
        write_study(options.store, {**about_now(Cost()), "runs_computed": len(rows)}, content)
    return 0


Run = tuple[Setting, Stack, Work, int]
"""Combination that is run once, with the number of its round."""


class Runs:
    """All combinations of settings, works and stacks. The stacks take turns, so that they meet the same load."""

    def __init__(
        self, settings: Sequence[Setting], stacks: Sequence[Stack], works: Sequence[Work], rounds: int
    ) -> None:
        self.settings, self.stacks, self.works, self.rounds = settings, stacks, works, rounds

    def without(self, rows: Iterable[Row]) -> Iterator[list[Run]]:
        """Yields the runs that have no row yet. The runs of a list follow each other; lists may run side by side."""
        done = {(row["setting"], row["stack"], row["work"], row["round"]) for row in rows}
        for number in range(1, self.rounds + 1):
            for work in self.works:
                for setting in self.settings:
                    combined = [(setting, stack, work, number) for stack in self.stacks]
                    if left := [run for run in combined if (run[0].name, run[1].name, work.name, number) not in done]:
                        yield left


def run_all(runs: Runs, file: Path, side_by_side: int = 1) -> None:
    """Runs the combinations that the file does not contain, and appends a line for each."""
    lists = list(runs.without(read_rows(file)))
    finished = Finished(file, sum(map(len, lists)))
    stopped = threading.Event()

    def run_list(listed: list[Run]) -> None:
        for setting, stack, work, number in listed:
            if stopped.is_set():
                return
            finished.append(measure(PROGRAM, setting, stack, work, number))

    with ThreadPoolExecutor(side_by_side) as pool:
        try:
            for running in as_completed([pool.submit(run_list, listed) for listed in lists]):
                running.result()
        finally:
            stopped.set()


class Finished:
    """File of finished runs, which several threads append to."""

    def __init__(self, file: Path, expected: int) -> None:
        self._file, self._expected, self._count = file, expected, 0
        self._lock = threading.Lock()

    def append(self, row: Row) -> None:
        """Writes a row to the file, and prints its main figures with the progress."""
        with self._lock:
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
            self._count += 1
            name = ", ".join((row["setting"], row["stack"], row["work"]))
            print(f"{self._count}/{self._expected} {name}: {_shown(row)}", flush=True)


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
        raise AnabranchError(f"{', '.join(missing)} not found: install iproute2, openssl and util-linux")
    if not Path("/dev/net/tun").exists():
        raise AnabranchError("/dev/net/tun is missing: load the kernel's module `tun`")


def build(stacks: Iterable[Stack]) -> None:
    """Builds the emulator, and the program of the stacks that need it."""
    places = {PROGRAM: ROOT}
    if any(isinstance(stack, Native) for stack in stacks):
        places[NATIVE_PEER] = PEERS
    for program, folder in places.items():
        command = ["cargo", "build", "--release", "--locked", "--quiet", "--bin", program.name]
        if subprocess.run(command, cwd=folder, check=False).returncode:
            raise AnabranchError(f"{program.name} could not be built: see the error above")


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
        description="Run TCP, MPTCP, multipath QUIC, aggligator and anabranch over the same emulated links.",
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
    add("--bulk", metavar="TIME", type=_seconds, default=60.0, help="duration of bulk data [default: 60]")
    add("--messages", metavar="TIME", type=_seconds, default=60.0, help="duration of messages [default: 60]")
    add("--rounds", metavar="N", type=positive, default=3, help="runs of each combination [default: 3]")
    add("--finished", action="store_true", help="run nothing, and make the tables of the finished runs")
    add("--store", metavar="FILE", type=Path, help="write the finished runs and their tables for the book")
    add(
        "--side-by-side", metavar="N", type=positive, default=1, help="number of settings that run at once [default: 1]"
    )
    add("--out", metavar="DIR", type=Path, default=Path("out/arena"), help="folder of the finished runs and tables")
    return parser

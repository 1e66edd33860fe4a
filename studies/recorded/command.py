"""Runs all schemes over sections of recorded networks and compares them with the better link alone."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from anabranch import Scenario, schemes
from anabranch.command.parser import Parser
from anabranch.command.quantities import positive
from anabranch.errors import PlanError
from anabranch.experiments.cost import Cost
from anabranch.experiments.pages.document import Block, Paragraph, markdown
from anabranch.experiments.stored import about_now
from studies.explained import explanation
from studies.options import add_run_options, schemes_of, seeds_of, sweep_options
from studies.recorded import judging, sections
from studies.recorded.runs import SUBJECT, X, Y, run_all, scenario_of
from studies.recorded.sections import Section
from studies.stored import block_json, write_study

_EXAMPLES = f"""\
Examples:
  Get the data set, which is not part of this repository:
    git clone {sections.SOURCE}
  All schemes over 64 sections:
    make study NAME=recorded ARGS='--data pam2025-multi-carrier-dataset'
  A part of it, in a minute:
    make study NAME=recorded ARGS='--data pam2025-multi-carrier-dataset --quick'
  The full study, and the results that the book's chapter is made from:
    make study NAME=recorded ARGS='--data pam2025-multi-carrier-dataset --store docs/results/recorded.json.xz'

Finished runs are kept in the cache, so that an interrupted command resumes.

Status: 0 all went well, 1 the data is missing, or something could not be run, read or written, 2 the command line is
wrong, 130 Ctrl-C."""

_PER_DIRECTION, _QUICK_PER_DIRECTION = 32, 3
_QUICK_SCHEMES = "sctp,cmt,bonded,braid"
_WORST = 5


def main(arguments: list[str]) -> int:
    """Runs the study and returns its exit status."""
    options = _parser().parse_args(arguments)
    if options.quick and options.store:
        raise PlanError("--store: takes the full study only; leave --quick out")
    count = _QUICK_PER_DIRECTION if options.quick else _PER_DIRECTION
    chosen = sections.choose(options.data, count, options.draw)
    listed = schemes_of(options.schemes or (_QUICK_SCHEMES if options.quick else _published()))
    if SUBJECT not in listed:
        raise PlanError(f"--schemes: add `{SUBJECT}`, which the others are compared with")
    seeds, cost = seeds_of(options.seeds), Cost()
    runs = run_all(chosen, listed, seeds, sweep_options(options), cost)
    judged = judging.judge(runs)
    parts = _parts(judged, chosen, seeds[0])
    options.out.mkdir(parents=True, exist_ok=True)
    judged.to_csv(options.out / "sections.csv", index=False, float_format="%.6g")
    page = markdown([block for part in parts.values() for block in part])
    (options.out / "summary.md").write_text(page, encoding="utf-8")
    print(page)
    if options.store:
        stored = {name: [block_json(block) for block in part] for name, part in parts.items()}
        write_study(options.store, about_now(cost), {"parts": stored})
    return 0


def _published() -> str:
    """Returns all presets, with the receive buffer as limit for the model of MPTCP in ns-2."""
    presets = [each.name for each in schemes() if each.kind == "scheme"]
    return ",".join("mptcp-ns2(shared-window=true)" if name == "mptcp-ns2" else name for name in presets)


def _parts(judged: pd.DataFrame, chosen: Sequence[Section], seed: int) -> dict[str, list[Block]]:
    lowest = judging.worst(judged, _WORST)
    missed = sorted((each for each in chosen if each.name in lowest), key=lambda each: lowest.index(each.name))
    explained = [block for section in missed for block in _explained(section, seed)]
    return {
        "short": [Paragraph(judging.short_text(judged))],
        "schemes": [judging.ranking(judged)],
        "directions": [judging.directions(judged)],
        "worst": [judging.worst_table(judged, missed)],
        "explained": explained,
    }


def _explained(section: Section, seed: int) -> list[Block]:
    """Returns what `anabranch explain` finds about the subject in a section."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "section.toml"
        text = scenario_of([X, Y], section.write(Path(folder)).name).to_toml()
        file.write_text(text, encoding="utf-8")
        report = explanation(Scenario.read(file), SUBJECT, seed)
    return judging.findings(section.name, report)


def _parser() -> Parser:
    parser = Parser(
        prog="studies recorded",
        description="Run schemes over sections of two recorded networks, and print their goodput beside that of the "
        "better link alone.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("--data", metavar="PATH", type=Path, required=True, help="data set: a folder, or a ZIP archive of its tables")
    add("--draw", metavar="SEED", type=positive, default=1, help="seed of the choice of sections [default: 1]")
    add("--schemes", metavar="LIST", help="schemes to run, braid among them [default: all presets]")
    add("--seeds", metavar="N|LIST", default="1", help="seeds of the runs [default: 1]")
    add("--out", metavar="DIR", type=Path, default=Path("out/recorded"), help="folder for the tables")
    add("--store", metavar="FILE", type=Path, help="write the results that the book's tables are made from")
    add_run_options(parser)
    return parser

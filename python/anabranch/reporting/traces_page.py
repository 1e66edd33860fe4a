"""Report of a folder of traces: of simulated runs, or of associations on real sockets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.counting import counted
from anabranch.errors import ReportError
from anabranch.reporting.choice import MAX_CHOSEN, MAX_RUNS, Choice, ChoiceError, left_out, listed, schemes_of
from anabranch.reporting.content import Column, Document, Page, Recipe, Table
from anabranch.reporting.numbers import NOTHING, number
from anabranch.reporting.progress import Progress
from anabranch.reporting.run_index import RunIndex, index_of
from anabranch.reporting.section import timeline_section
from anabranch.reporting.timeline.trace import joined, timeline_of
from anabranch.text_file import read_text

if TYPE_CHECKING:
    from anabranch.series import Series

RUN_FILE = "run.toml"
REPORT_COMMAND = ("anabranch", "report", "traces")


def trace_folders(folder: Path) -> list[Path]:
    """Returns the folders of runs: this one, or those in it; empty if there are no traces."""
    if (folder / RUN_FILE).is_file():
        return [folder]
    return sorted(file.parent for file in folder.glob(f"*/{RUN_FILE}"))


def page_of_traces(
    folder: Path, choices: Sequence[Choice], seed: int | None, title: str | None, progress: Progress
) -> Page:
    """Returns the page. Raises `TraceError` for unreadable traces, and `ChoiceError` for runs that do not exist."""
    from anabranch.series import Series

    runs = sorted(map(Series, trace_folders(folder)), key=_place)
    asked = _chosen(runs, choices, seed)
    chosen = asked[:MAX_CHOSEN]
    labels = _labels(runs)
    # A new `Series` for each run, so that the data of one is freed before the next is read.
    timeline = joined(timeline_of(Series(run.folder), labels[run.folder]) for run in progress.track(chosen, "trace"))
    if not timeline.tracks:
        raise ReportError(f"{folder}: none of its runs sent data, so no chart can be shown")
    about = [_what(chosen, runs)]
    return Page(
        title=title or f"Traces in {_name(folder)}",
        lead=_lead(runs),
        tables=(_table(runs, labels),),
        warnings=tuple(left_out([labels[run.folder] for run in asked[MAX_CHOSEN:]])),
        timeline=timeline_section(
            timeline,
            tuple(about),
            counted="sent" if any(map(is_host, chosen)) else "arrived",
            index=_index(chosen, runs, labels),
        ),
        facts=_facts(runs),
        documents=_scenarios(runs, labels),
        recipes=_recipes(runs),
    )


def is_host(run: Series) -> bool:
    """Returns `True` if a run was recorded at one end of real sockets."""
    return run.manifest.get("vantage") == "host"


def _place(run: Series) -> tuple[str, int, str]:
    """Returns the sort key of a run: scheme, seed and folder."""
    return _scheme(run), run.manifest.get("seed", 0), run.folder.name


def _name(folder: Path) -> str:
    return folder.resolve().name


def _chosen(runs: Sequence[Series], choices: Sequence[Choice], seed: int | None) -> list[Series]:
    """Returns the runs of these schemes and seeds, in the given order; by default the first ten."""
    for choice in choices:
        if choice.values:
            key = choice.values[0][0]
            raise ChoiceError(f"`{key}` cannot choose among traces, of which no keys were swept: name a scheme only")
    seeds = list(dict.fromkeys(run.manifest["seed"] for run in runs if "seed" in run.manifest))
    for asked in (seed, *(choice.seed for choice in choices)):
        if asked is not None and asked not in seeds:
            known = listed(seeds) if seeds else "none, as these are traces of real sockets"
            raise ChoiceError(f"no run has seed {asked}; choose one of: {known}")
    if not choices:
        return _of_seed(runs, seed)[:MAX_RUNS]
    found: dict[Path, Series] = {}
    for choice in choices:
        of_seed = _of_seed(runs, seed if choice.seed is None else choice.seed)
        for scheme in schemes_of(choice, list(dict.fromkeys(map(_scheme, of_seed)))):
            found |= {run.folder: run for run in of_seed if _scheme(run) == scheme}
    return list(found.values())


def _of_seed(runs: Sequence[Series], seed: int | None) -> list[Series]:
    return [run for run in runs if seed is None or run.manifest.get("seed") == seed]


def _index(chosen: Sequence[Series], runs: Sequence[Series], labels: Mapping[Path, str]) -> RunIndex | None:
    """Returns the runs of the folder by scheme and seed; `None` if any has no seed."""
    if not all("seed" in run.manifest for run in runs):
        return None
    at: dict[Path, tuple[dict[str, str], str, int]] = {
        run.folder: ({}, _scheme(run), int(run.manifest["seed"])) for run in runs
    }
    traced = {labels[run.folder]: at[run.folder] for run in chosen}
    present = dict.fromkeys(f"{scheme}@seed={seed}" for _, scheme, seed in traced.values())
    words = [word for choice in present for word in ("--timeline", choice)]
    return index_of(REPORT_COMMAND, words, [{}], traced, list(at.values()))


def _scheme(run: Series) -> str:
    return str(run.manifest.get("scheme", ""))


def _labels(runs: Sequence[Series]) -> dict[Path, str]:
    """Returns a unique label of each run: its scheme, with the seed if needed; the folder if that is ambiguous."""
    plain = {run.folder: _scheme(run) or _name(run.folder) for run in runs}
    seeded = {run.folder: f"{plain[run.folder]}, seed {run.manifest.get('seed')}" for run in runs}
    named = {run.folder: _name(run.folder) for run in runs}
    for labels in (plain, seeded):
        if max(Counter(labels.values()).values()) == 1:
            return labels
    return named


def _lead(runs: Sequence[Series]) -> str:
    recorded = sum(map(is_host, runs))
    simulations = counted(len(runs) - recorded, "simulated run")
    recordings = f"{counted(recorded, 'recording')} of real sockets, seen from one end"
    if recorded == 0:
        return simulations
    return recordings if recorded == len(runs) else f"{simulations}, {recordings}"


def _what(chosen: Sequence[Series], runs: Sequence[Series]) -> str:
    if len(chosen) == len(runs):
        return "Every run of the folder. The boxes select the shown runs."
    return (
        f"{len(chosen)} of {counted(len(runs), 'run')}. The boxes select the shown runs; "
        "--timeline SCHEME@seed=N adds other runs when the report is written."
    )


_COLUMNS = (
    ("goodput_kbps", Column("goodput", "kbit/s"), 1, 0),
    ("retransmissions", Column("resent", "chunks"), 1, 0),
    ("spurious_retransmissions", Column("spurious resent", "chunks"), 1, 0),
    ("timeouts", Column("time-outs"), 1, 0),
    ("fast_retransmits", Column("fast retr."), 1, 0),
    ("peak_reorder_bytes", Column("reorder", "KiB"), 1024, 1),
    ("rwnd_blocked_s", Column("blocked", "s"), 1, 2),
    ("records_dropped", Column("records dropped"), 1, 0),
)


def _table(runs: Sequence[Series], labels: dict[Path, str]) -> Table:
    """Returns the counters of each run, without columns that no run has."""
    results: dict[Path, dict[str, Any]] = {run.folder: (run.result or {}).get("result") or {} for run in runs}
    columns = [each for each in _COLUMNS if any(each[0] in result for result in results.values())]
    has_paths = any("paths" in result for result in results.values())
    rows = []
    for run in runs:
        result = results[run.folder]
        row = [labels[run.folder], str(run.manifest.get("seed", NOTHING)), number(run.end_s, 1)]
        for name, _, divisor, digits in columns:
            value = result.get(name)
            row.append(number(None if value is None else value / divisor, digits))
        rows.append((*row, _shares(result)) if has_paths else tuple(row))
    head = (Column("run", is_number=False), Column("seed"), Column("length", "s"), *(each[1] for each in columns))
    return Table(
        "Runs",
        (*head, Column("share", "%", is_number=False)) if has_paths else head,
        tuple(rows),
        notes=("Each row is one run and has no interval. The share is that of the packets with data that arrived.",)
        if has_paths
        else ("Each row is one recording: it has no interval.",),
    )


def _shares(result: dict[str, Any]) -> str:
    paths = result.get("paths") or []
    if not any(path["share"] for path in paths):
        return NOTHING
    return ", ".join(f"{path['name']} {100 * path['share']:.1f}" for path in paths)


def _facts(runs: Sequence[Series]) -> tuple[tuple[str, str], ...]:
    def of(key: str) -> str:
        return ", ".join(dict.fromkeys(str(run.manifest[key]) for run in runs if key in run.manifest))

    facts = (
        ("Schemes", of("scheme")),
        ("Seeds", of("seed")),
        ("Profile", of("profile")),
        ("Written by", f"version {of('version')}"),
        *_addresses(runs),
    )
    return tuple((name, text) for name, text in facts if text)


def _addresses(runs: Sequence[Series]) -> Iterator[tuple[str, str]]:
    """Yields the addresses of the paths of real sockets."""
    for run in runs:
        for sender in run.manifest.get("sender", []):
            for path, address in zip(sender["paths"], sender.get("addresses", []), strict=False):
                yield f"{_name(run.folder)}, {sender['name']}, {path}", address


def _scenarios(runs: Sequence[Series], labels: dict[Path, str]) -> tuple[Document, ...]:
    return tuple(
        Document(f"Scenario of {labels[run.folder]}, as it was run", text)
        for run in runs
        if (text := _scenario(run)) is not None
    )


def _scenario(run: Series) -> str | None:
    file = run.folder / "scenario.toml"
    return read_text(file) if not is_host(run) and file.is_file() else None


def _recipes(runs: Sequence[Series]) -> tuple[Recipe, ...]:
    simulated = [run for run in runs if not is_host(run)]
    report = Recipe(
        "This report",
        ("Where traces is the folder that this report was written from:",),
        f"{' '.join(REPORT_COMMAND)}\n",
    )
    if not simulated:
        return (report,)
    first = simulated[0]
    command = f"anabranch run scenario.toml --seeds {first.manifest['seed']}, --trace traces"
    python = f'run = anabranch.run("scenario.toml", seed={first.manifest["seed"]})\nrun.series.throughput()\n'
    return (
        Recipe(
            "The traces",
            (f"With the scenario of {_scheme(first)} above saved as scenario.toml; it names its scheme.",),
            f"{command}\n",
        ),
        Recipe("In Python", (), f"import anabranch\n\n{python}"),
        report,
    )

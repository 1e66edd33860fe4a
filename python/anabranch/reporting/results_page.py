"""Report of the results of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anabranch.counting import counted
from anabranch.errors import ReportError, RunError, ScenarioError, SchemeError
from anabranch.reporting.answer import answer
from anabranch.reporting.charts import charts_of
from anabranch.reporting.choice import MAX_CHOSEN, MAX_RUNS, Choice, ChoiceError, left_out, listed, schemes_of
from anabranch.reporting.content import Page, TimelineSection
from anabranch.reporting.points import Point, at_point, chosen_point, point_text, points_of, value_text, varied_keys
from anabranch.reporting.progress import Progress
from anabranch.reporting.recipes import REPORT_COMMAND, documents_of, recipes_of, timeline_words
from anabranch.reporting.rerun import RunKey, repeat_runs
from anabranch.reporting.run_index import RunIndex, index_of
from anabranch.reporting.section import timeline_section
from anabranch.reporting.tables import failure_tables, result_tables
from anabranch.reporting.timeline.model import Timeline
from anabranch.reporting.timeline.trace import joined, timeline_of
from anabranch.version import engine

if TYPE_CHECKING:
    from anabranch.results import Results
    from anabranch.series import Series

_MAX_WARNED = 5


def page_of_results(
    results: Results, choices: Sequence[Choice], seed: int | None, title: str | None, progress: Progress
) -> Page:
    """Returns the page. Raises `ReportError` for results without runs, and `ChoiceError` for runs that do not exist."""
    if results.runs.num_rows == 0:
        raise ReportError("the results have no runs to report: run the sweep again")
    asked = _wanted(results, choices, seed)
    wanted = asked[:MAX_CHOSEN]
    warnings = [*_missing(results), *left_out(list(map(str, asked[MAX_CHOSEN:])))]
    timeline, differing = _timeline(results, wanted, progress)
    warnings.extend(differing)
    baseline = _baseline(results)
    charts = charts_of(results, baseline)
    name = results.manifest["scenario_name"]
    return Page(
        title=title or f"Sweep of {name}",
        lead=_lead(results),
        answer=answer(results, baseline),
        warnings=tuple(warnings),
        failures=failure_tables(results),
        tables=result_tables(results, baseline),
        figures=charts.figures,
        figure_notes=charts.notes,
        timeline=timeline,
        facts=_facts(results),
        documents=documents_of(results),
        recipes=recipes_of(results, wanted, charts.code),
    )


def _schemes(results: Results) -> list[str]:
    """Returns the schemes that have runs, by their names in the results."""
    return list(dict.fromkeys(results.runs["scheme"].to_pylist()))


def _seeds(results: Results) -> list[int]:
    return sorted(set(results.runs["seed"].to_pylist()))


def _baseline(results: Results) -> str | None:
    """Returns the scheme that others are compared with: `cmt`, or the first one if `cmt` was not run."""
    schemes = _schemes(results)
    if len(schemes) < 2:
        return None
    return "cmt" if "cmt" in schemes else schemes[0]


def _missing(results: Results) -> list[str]:
    missing = results.manifest.get("missing", 0)
    if not missing:
        return []
    return [f"{missing} runs are missing, because the sweep was stopped. Repeat the sweep to add them."]


def _wanted(results: Results, choices: Sequence[Choice], seed: int | None) -> list[RunKey]:
    """Returns the runs of the timeline, without schemes in Python.

    By default they are of the first point and seed, and at most ten.
    """
    points, seeds = points_of(results), _seeds(results)
    own = results.manifest.get("own_schemes", {})
    known = [scheme for scheme in _schemes(results) if scheme not in own]
    for asked in (seed, *(choice.seed for choice in choices)):
        if asked is not None and asked not in seeds:
            raise ChoiceError(f"no run has seed {asked}; choose one of: {listed(seeds)}")
    if not choices:
        return _runs_at(results, points[0], known, seed)[:MAX_RUNS]
    runs = []
    for choice in choices:
        if choice.scheme in own:
            raise ChoiceError(
                f"`{choice.scheme}` is a scheme in Python, whose runs cannot be repeated from its name: write traces "
                "with anabranch.run(..., trace=DIR), and make a report of DIR"
            )
        schemes, point = schemes_of(choice, known), chosen_point(choice, points)
        of_seed = seed if choice.seed is None else choice.seed
        found = _runs_at(results, point, schemes, of_seed)
        if not found:
            raise ChoiceError(f"there is no run of `{choice.scheme}` with seed {of_seed} at this point")
        runs.extend(found)
    return list(dict.fromkeys(runs))


def _runs_at(results: Results, point: Point, schemes: Sequence[str], seed: int | None) -> list[RunKey]:
    """Returns a run of each scheme at a point, with this seed or the first one that it has."""
    rows = at_point(results.to_pandas("runs"), point)
    if seed is not None:
        rows = rows[rows["seed"] == seed]
    first = rows.groupby("scheme", sort=False)["seed"].first()
    return [RunKey(tuple(point.items()), scheme, int(first[scheme])) for scheme in schemes if scheme in first]


def _timeline(
    results: Results, wanted: Sequence[RunKey], progress: Progress
) -> tuple[TimelineSection | None, list[str]]:
    """Repeats these runs. Returns their timeline, and warnings about runs that differ from the results."""
    if not wanted:
        return None, [
            "The report has no timeline, because runs of schemes in Python cannot be repeated from their names."
        ]
    labels = _labels(wanted)
    parts: dict[RunKey, Timeline] = {}
    with progress.bar(len(wanted), "run") as step:

        def use(run: RunKey, series: Series) -> None:
            parts[run] = timeline_of(series, labels[run])
            step()

        try:
            differences = repeat_runs(results, wanted, use)
        except (RunError, ScenarioError, SchemeError) as error:
            return None, [f"The report has no timeline, because a run could not be repeated: {error}"]
    # The runs ended in any order.
    timeline = joined(parts[run] for run in wanted)
    warnings = [f"{run}: {'; '.join(found)}" for run, found in differences.items() if found]
    if warnings:
        left = len(warnings) - _MAX_WARNED
        warnings = [
            f"{len(warnings)} of {counted(len(wanted), 'run')} of the timeline, repeated, "
            f"{'is' if len(warnings) == 1 else 'are'} not the same as in the results: "
            "timeline and tables do not belong together. "
            f"The results are of {_engine_of(results)}, the timeline is of {_engine_here()}.",
            *warnings[:_MAX_WARNED],
            *([f"and {left} more"] if left > 0 else []),
        ]
    if not timeline.tracks:
        return None, [*warnings, "No timeline is shown, because no data was sent."]
    index = _index(results, wanted, labels)
    return timeline_section(timeline, _about(results, wanted, same=not warnings), index=index), warnings


def _index(results: Results, wanted: Sequence[RunKey], labels: Mapping[RunKey, str]) -> RunIndex:
    own = results.manifest.get("own_schemes", {})
    keys = list(results.over)

    def texts(point: Mapping[str, Any]) -> dict[str, str]:
        return {key: value_text(point[key]) for key in keys}

    rows = results.runs.select([*keys, "scheme", "seed"]).to_pylist()
    made = [(texts(row), row["scheme"], row["seed"]) for row in rows if row["scheme"] not in own]
    schemes = list(dict.fromkeys(scheme for _, scheme, _ in made))
    runs = {labels[run]: (texts(dict(run.point)), run.scheme, run.seed) for run in wanted}
    points = [texts(point) for point in points_of(results)]
    return index_of(REPORT_COMMAND, timeline_words(wanted, schemes), points, runs, made)


def _labels(wanted: Sequence[RunKey]) -> dict[RunKey, str]:
    """Returns a unique label of each run: its scheme, the values of keys that differ, and the seed if it differs."""
    keys = varied_keys([dict(run.point) for run in wanted])
    several_seeds = len({run.seed for run in wanted}) > 1
    labels = {}
    for run in wanted:
        at = f" @ {point_text(dict(run.point), keys)}" if keys else ""
        labels[run] = f"{run.scheme}{at}{f', seed {run.seed}' if several_seeds else ''}"
    return labels


def _about(results: Results, wanted: Sequence[RunKey], *, same: bool) -> tuple[str, ...]:
    points = [dict(run.point) for run in wanted]
    keys = varied_keys(points)
    where = "; ".join(f"{key} = {value_text(value)}" for key, value in points[0].items() if key not in keys)
    seeds = ", ".join(str(seed) for seed in dict.fromkeys(run.seed for run in wanted))
    of_all = f"{len(wanted)} of {counted(results.runs.num_rows, 'run')}"
    lines = [f"{of_all}, with seed {seeds}{f' and {where}' if where else ''}."]
    if keys:
        lines.append(f"Behind the @ of a run is its value of {', '.join(keys)}.")
    if same:
        lines.append("They were repeated for this report, with the same figures as in the results.")
    lines.append(
        "The boxes choose what is shown. Where point or seed can be chosen and have no traces here, the page says how "
        "to add them."
    )
    return (" ".join(lines),)


def _lead(results: Results) -> str:
    parts = [
        counted(len(points_of(results)), "point"),
        counted(len(_schemes(results)), "scheme"),
        counted(len(_seeds(results)), "seed"),
    ]
    return f"{counted(results.runs.num_rows, 'run')}: {', '.join(parts)}"


def _facts(results: Results) -> tuple[tuple[str, str], ...]:
    manifest = results.manifest
    keys = [(key, ", ".join(map(value_text, values))) for key, values in manifest["over"].items()]
    given = [(key, str(value)) for key, value in manifest.get("set", [])]
    seeds, own = _seeds(results), manifest.get("own_schemes", {})
    of_seeds = f"{len(seeds)}: {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    precision = manifest.get("precision")
    facts = [
        ("Scenario", str(manifest["scenario_name"])),
        *((f"{key}, swept", text) for key, text in keys),
        *((f"{key}, set to", text) for key, text in given),
        ("Schemes", ", ".join(_schemes(results))),
        *((f"{name}, in Python", f"in place of policies of {base}") for name, base in own.items()),
        ("Seeds", of_seeds),
        *([("Stopping rule", str(precision))] if precision else []),
        ("Profile", ", ".join(dict.fromkeys(results.runs["profile"].to_pylist()))),
        ("Engine", _engine_of(results)),
        ("Fingerprint", manifest["fingerprint"]),
    ]
    return tuple(facts)


def _engine_of(results: Results) -> str:
    manifest = results.manifest
    return f"version {manifest['version']}, commit {manifest['commit']}, fingerprint {manifest['fingerprint'][:12]}…"


def _engine_here() -> str:
    here = engine()
    return f"version {here.version}, commit {here.commit}, fingerprint {here.fingerprint[:12]}…"

"""Tables of results: means with intervals, paired differences, shares, flows and failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anabranch.counting import counted
from anabranch.errors import StatisticsError
from anabranch.estimate import text_of
from anabranch.figures.labels import metric_label
from anabranch.reporting.content import Column, Table
from anabranch.reporting.numbers import NOTHING
from anabranch.reporting.points import point_text, points_of, up_to_point, value_text, varied_keys
from anabranch.statistics import paired_difference, summary

if TYPE_CHECKING:
    from anabranch.results import Results

MAX_ROWS = 400
"""Maximum number of rows of a table, one for each point and scheme. At least one point is shown."""

MAX_POINTS_ASIDE = 16
"""Maximum number of points side by side in the table of goodput."""

MAX_FAILURES = 50

_METRICS = (
    "goodput_kbps",
    "retransmissions",
    "spurious_retransmissions",
    "timeouts",
    "fast_retransmits",
    "peak_reorder_bytes",
    "rwnd_blocked_s",
    "jain_index",
)
_INTERVAL = (
    "± is half the width of the 95 % confidence interval of the mean over seeds, by Student's t. Where all runs gave "
    "the same figure it says deterministic, and where there is one run n = 1: neither has an interval."
)


@dataclass(frozen=True, slots=True)
class _Shown:
    """Results that fit the tables: those of the first points. `keys` are those that vary over all points."""

    results: Results
    keys: list[str]
    notes: tuple[str, ...]


def result_tables(results: Results, baseline: str | None) -> tuple[Table, ...]:
    """Returns the tables that have content for these results."""
    shown = _shown(results)
    made = (
        _goodput_table(shown),
        _summary_table(shown),
        _paired_table(shown, baseline) if baseline is not None else None,
        _share_table(shown),
        _flow_table(shown),
    )
    return tuple(table for table in made if table is not None)


def _shown(results: Results) -> _Shown:
    points = points_of(results)
    keys = varied_keys(points)
    most = max(MAX_ROWS // len(set(results.runs["scheme"].to_pylist())), 1)
    if len(points) <= most:
        return _Shown(results, keys, ())
    note = f"The first {most} of {len(points)} points. results.to_pandas() has all of them."
    return _Shown(up_to_point(results, points[most]), keys, (note,))


def failure_tables(results: Results) -> tuple[Table, ...]:
    """Returns a table of the runs that failed, if any did."""
    runs = results.to_pandas("runs")
    failed = runs[runs["failure"].notna()]
    if failed.empty:
        return ()
    keys = varied_keys(points_of(results))
    shown = failed.head(MAX_FAILURES)
    rows = [
        (*(value_text(row[key]) for key in keys), row["scheme"], str(row["seed"]), row["failure"])
        for row in shown.to_dict("records")
    ]
    columns = (*_words(keys), Column("scheme", is_number=False), Column("seed"), Column("failure", is_number=False))
    return (
        Table(
            "Failures",
            columns,
            tuple(rows),
            about=(
                f"{len(failed)} of {counted(len(runs), 'run')} failed. "
                "Tables and figures include their figures up to the failure.",
            ),
            notes=(f"The first {len(rows)} of them.",) if len(rows) < len(failed) else (),
        ),
    )


def _goodput_table(shown: _Shown) -> Table | None:
    """Returns goodput as `anabranch run --sweep` shows it: schemes by points."""
    results, keys = shown.results, shown.keys
    points = points_of(results)
    if not 1 < len(points) <= MAX_POINTS_ASIDE:
        return None
    means = summary(results, "goodput_kbps", table="runs")
    common = int(means["n"].iloc[0]) if means["n"].nunique() == 1 else None
    cells = {(row["scheme"], point_text(row, keys)): _text(row, 1.0, common) for row in means.to_dict("records")}
    columns = [point_text(point, keys) for point in points]
    rows = [(scheme, *(cells.get((scheme, column), NOTHING) for column in columns)) for scheme in _schemes(results)]
    return Table(
        f"Goodput over {', '.join(keys)}",
        (Column("scheme", is_number=False), *(Column(column, "kbit/s") for column in columns)),
        tuple(rows),
        notes=(f"n = {common}. {_INTERVAL}" if common else _INTERVAL,),
    )


def _summary_table(shown: _Shown) -> Table:
    """Returns all figures of runs, a row for each point and scheme."""
    results, keys = shown.results, shown.keys
    runs = results.to_pandas("runs")
    metrics = [metric for metric in _METRICS if runs[metric].fillna(0).ne(0).any() or metric == "goodput_kbps"]
    means = {metric: summary(results, metric, table="runs").to_dict("records") for metric in metrics}
    rows = []
    for place, row in enumerate(means["goodput_kbps"]):
        cells = [_text(means[metric][place], metric_label(metric).factor, row["n"]) for metric in metrics]
        rows.append((*(value_text(row[key]) for key in keys), row["scheme"], str(row["n"]), *cells))
    measures = [metric_label(metric) for metric in metrics]
    columns = (
        *_words([*keys, "scheme"]),
        Column("n"),
        *(Column(measure.name, measure.unit) for measure in measures),
    )
    zero = [metric_label(metric).name for metric in _METRICS if metric not in metrics and metric != "jain_index"]
    nothing = (f"Zero in every run: {', '.join(zero)}.",) if zero else ()
    notes = (_INTERVAL, *nothing, *shown.notes)
    return Table("Figures of the runs", columns, tuple(rows), notes=notes)


def _paired_table(shown: _Shown, baseline: str) -> Table | None:
    """Returns goodput compared with the baseline under the same seeds."""
    results, keys = shown.results, shown.keys
    try:
        differences = paired_difference(results, baseline, "goodput_kbps", table="runs").to_dict("records")
        gains = paired_difference(results, baseline, "goodput_kbps", relative=True, table="runs").to_dict("records")
    except StatisticsError as error:
        return Table(f"Goodput compared with {baseline}", (), (), about=(f"Not compared: {error}.",))
    rows = [
        (
            *(value_text(row[key]) for key in keys),
            row["scheme"],
            str(row["n"]),
            _text(row, 1.0, row["n"]),
            _text(gain, 100.0, row["n"]),
            _p_value(row["p_value"]),
        )
        for row, gain in zip(differences, gains, strict=True)
    ]
    columns = (
        *_words([*keys, "scheme"]),
        Column("pairs"),
        Column("difference", "kbit/s"),
        Column("gain", "%"),
        Column("p"),
    )
    about = (
        f"The difference of each scheme's goodput to that of {baseline} under the same seed, under which both meet the "
        "same channel. Such differences scatter less than the runs do.",
    )
    notes = (
        "± as above, over pairs. p is that of the paired t-test that there is no difference.",
        *shown.notes,
    )
    return Table(f"Goodput compared with {baseline}", columns, tuple(rows), about, notes)


def _share_table(shown: _Shown) -> Table | None:
    """Returns the shares of the paths in the packets with data that arrived."""
    results, keys = shown.results, shown.keys
    means = summary(results, "share", table="paths")
    paths = list(dict.fromkeys(means["path"]))
    if len(paths) < 2:
        return None
    groups = list(means.groupby([*results.over, "scheme"], sort=False, dropna=False, observed=True))
    rows = []
    for _, group in groups:
        by_path = {row["path"]: row for row in group.to_dict("records")}
        first = next(iter(by_path.values()))
        cells = [_text(by_path[path], 100.0, first["n"]) if path in by_path else NOTHING for path in paths]
        rows.append((*(value_text(first[key]) for key in keys), first["scheme"], str(first["n"]), *cells))
    columns = (*_words([*keys, "scheme"]), Column("n"), *(Column(path, "%") for path in paths))
    about = ("The part of each path in the packets with data that arrived, retransmissions and copies included.",)
    return Table("Shares of the paths", columns, tuple(rows), about, shown.notes)


def _flow_table(shown: _Shown) -> Table | None:
    """Returns the flows, if there are several or any that ends."""
    results, keys = shown.results, shown.keys
    flows = results.to_pandas("flows")
    has_transfers = flows["transfer_s"].notna().any()
    if not has_transfers and flows["flow"].nunique() < 2:
        return None
    goodput = summary(results, "goodput_kbps", table="flows").to_dict("records")
    times = summary(results, "transfer_s", table="flows").to_dict("records") if has_transfers else goodput
    keys_of_flows = flows[[*results.over, "scheme", "flow"]].itertuples(index=False, name=None)
    schemes = dict(zip(keys_of_flows, flows["flow_scheme"], strict=True))
    rows = []
    for row, time in zip(goodput, times, strict=True):
        scheme = schemes[tuple(row[key] for key in (*results.over, "scheme", "flow"))]
        cells = [_text(row, 1.0, row["n"])]
        if has_transfers:
            cells.append(_text(time, 1.0, row["n"]))
        rows.append(
            (*(value_text(row[key]) for key in keys), row["scheme"], row["flow"], scheme, str(row["n"]), *cells)
        )
    columns = (
        *_words([*keys, "scheme", "flow", "scheme of the flow"]),
        Column("n"),
        Column("goodput", "kbit/s"),
        *((Column("transfer time", "s"),) if has_transfers else ()),
    )
    return Table("Flows", columns, tuple(rows), notes=shown.notes)


def _schemes(results: Results) -> list[str]:
    """Returns the schemes that have runs, by their names in the results."""
    return list(dict.fromkeys(results.runs["scheme"].to_pylist()))


def _text(row: dict[str, Any], factor: float, n: int | None) -> str:
    """Returns an estimate as text, without its number of seeds if that equals `n`."""
    text = text_of(row["mean"] * factor, row["half_width"] * factor, row["n"], row["kind"])
    return text.removesuffix(f" (n = {n})") if row["kind"] == "interval" else text


def _p_value(value: float) -> str:
    if value != value:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _words(names: Sequence[str]) -> tuple[Column, ...]:
    return tuple(Column(name, is_number=False) for name in names)
